//! One TCP connection attempt: TCP, the proxy's tunnel, TLS, and hyper on top.

use std::future::Future;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use hyper::client::conn::{http1, http2};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use rustls::pki_types::ServerName;
#[cfg(any(target_os = "android", target_os = "linux"))]
use socket2::SockRef;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::time::{Instant, timeout};
use tokio_rustls::TlsConnector;

use super::error::AttemptCause;
use super::origin::Origin;
use super::proxy::{self, Proxy};
use super::tcp_share::TcpAddresses;
use super::timeouts::{Phase, Timeouts};
use crate::tcp::ALPN_HTTP2;
use crate::web::body::Body;

/// hyper's handle to which requests are given.
pub(super) enum TcpSender {
    Http1(http1::SendRequest<Body>),
    Http2(http2::SendRequest<Body>),
}

/// A connection over TCP.
pub(super) struct TcpLink {
    pub(super) sender: TcpSender,
    /// Round-trip time measured by its handshake; `None` behind a proxy.
    pub(super) rtt: Option<Duration>,
    /// `None` behind a proxy, and if the system does not say.
    pub(super) addresses: Option<Arc<TcpAddresses>>,
}

impl TcpLink {
    pub(super) fn is_closed(&self) -> bool {
        match &self.sender {
            TcpSender::Http1(sender) => sender.is_closed(),
            TcpSender::Http2(sender) => sender.is_closed(),
        }
    }

    /// Another handle, if the connection can be shared and accepts more requests.
    pub(super) fn share(&self) -> Option<Self> {
        match &self.sender {
            TcpSender::Http2(sender) if !sender.is_closed() => Some(Self {
                sender: TcpSender::Http2(sender.clone()),
                rtt: self.rtt,
                addresses: self.addresses.clone(),
            }),
            _ => None,
        }
    }
}

/// How long a server may acknowledge nothing that was sent, or take nothing of what waits, unless the time limit for heads is
/// longer: a connection to one that is gone would otherwise get requests for minutes. PING of HTTP/2 is no alternative: servers
/// of gRPC close connections that send it often.
#[cfg(any(target_os = "android", target_os = "linux"))]
const SILENCE: Duration = Duration::from_secs(30);

/// A new connection and how long it took.
pub(super) struct TcpOpened {
    pub(super) link: TcpLink,
    pub(super) connect: Duration,
    pub(super) handshake: Option<Duration>,
}

/// Inputs of an attempt.
#[derive(Clone)]
pub(super) struct TcpPlan {
    pub(super) origin: Origin,
    pub(super) proxy: Option<Arc<Proxy>>,
    /// `None` only for `http` origins.
    pub(super) tls: Option<Arc<rustls::ClientConfig>>,
    pub(super) timeouts: Timeouts,
}

trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> Stream for T {}

/// Connects to `address`, which is the proxy's if there is one.
pub(super) async fn open(plan: TcpPlan, address: SocketAddr) -> Result<TcpOpened, AttemptCause> {
    let begun = Instant::now();
    let connecting = TcpStream::connect(address);
    let stream = limited(plan.timeouts.connect, Phase::Connect, async {
        Ok(connecting.await?)
    })
    .await?;
    let connect = begun.elapsed();
    stream.set_nodelay(true)?;
    #[cfg(any(target_os = "android", target_os = "linux"))]
    {
        let silence = SILENCE.max(plan.timeouts.head);
        // Without it, it only takes longer.
        let _ = SockRef::from(&stream).set_tcp_user_timeout(Some(silence));
    }
    let limit = plan.timeouts.handshake;
    let (rtt, addresses) = match plan.proxy {
        None => (Some(connect), addresses(&stream)),
        Some(_) => (None, None),
    };
    let secure = plan.tls.is_some();
    let sender = limited(limit, Phase::Handshake, handshake(plan, stream)).await?;
    Ok(TcpOpened {
        link: TcpLink {
            sender,
            rtt,
            addresses,
        },
        connect,
        handshake: secure.then(|| begun.elapsed().saturating_sub(connect)),
    })
}

fn addresses(stream: &TcpStream) -> Option<Arc<TcpAddresses>> {
    let addresses = TcpAddresses {
        local: stream.local_addr().ok()?,
        remote: stream.peer_addr().ok()?,
    };
    Some(Arc::new(addresses))
}

async fn limited<T>(
    limit: Duration,
    phase: Phase,
    work: impl Future<Output = Result<T, AttemptCause>>,
) -> Result<T, AttemptCause> {
    let done = timeout(limit, work).await;
    done.unwrap_or(Err(AttemptCause::Timeout(phase)))
}

async fn handshake(plan: TcpPlan, stream: TcpStream) -> Result<TcpSender, AttemptCause> {
    let stream: Box<dyn Stream> = match &plan.proxy {
        Some(proxy) => Box::new(proxy::tunnel(stream, proxy, &plan.origin).await?),
        None => Box::new(stream),
    };
    let Some(tls) = plan.tls else {
        return http1(stream).await;
    };
    let name = ServerName::try_from(plan.origin.host().to_owned())
        .map_err(|_| AttemptCause::ServerName)?;
    let stream = TlsConnector::from(tls).connect(name, stream).await?;
    if stream.get_ref().1.alpn_protocol() == Some(ALPN_HTTP2) {
        http2(stream).await
    } else {
        http1(stream).await
    }
}

async fn http1<T: Stream + 'static>(stream: T) -> Result<TcpSender, AttemptCause> {
    let (sender, connection) = http1::handshake(TokioIo::new(stream)).await?;
    tokio::spawn(async move {
        if let Err(error) = connection.await {
            tracing::debug!(%error, "an HTTP/1.1 connection failed");
        }
    });
    Ok(TcpSender::Http1(sender))
}

async fn http2<T: Stream + 'static>(stream: T) -> Result<TcpSender, AttemptCause> {
    let (sender, connection) = http2::Builder::new(TokioExecutor::new())
        .timer(TokioTimer::new())
        .adaptive_window(true)
        .handshake(TokioIo::new(stream))
        .await?;
    tokio::spawn(async move {
        if let Err(error) = connection.await {
            tracing::debug!(%error, "an HTTP/2 connection failed");
        }
    });
    Ok(TcpSender::Http2(sender))
}
