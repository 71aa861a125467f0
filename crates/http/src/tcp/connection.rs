//! One connection: TLS handshake, choice of the HTTP version, requests until either end closes it.

use std::io;
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::conn::auto::Builder;
use rustls::ServerConfig;
use rustls::pki_types::CertificateDer;
use socket2::{SockRef, TcpKeepalive};
use thiserror::Error;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::watch;
use tokio::time::{Instant, sleep, sleep_until, timeout};
use tokio_rustls::TlsAcceptor;

use super::activity::{Activity, Expiry};
use super::adapter::Adapter;
use super::after_others::AfterOthers;
use super::limits::TcpLimits;
use super::lingering_close;
use super::metered::{Meter, Metered};
use super::observer::{ConnectionEnd, Observer, Outcome};
use super::plain_http;
use super::streams::{StreamExecutor, stream_tasks};
use super::tls::{ALPN_HTTP2, ALPN_HTTP11};
use super::tls_alpn_challenge::ALPN_ACME_TLS;
use crate::web::body::BoxError;
use crate::web::connection_info::{ConnectionInfo, Transport};
use crate::web::service::WebService;

/// hyper's smallest buffer for the head of a request.
const MIN_HEADER_BUFFER: usize = 8192;

/// How long a new connection may take for its first request once the server drains: a client that has connected just
/// before gets an answer.
const FIRST_REQUEST: Duration = Duration::from_secs(1);

/// After a minute without anything the system asks whether the client is still there, and gives up after its number of
/// further attempts (on Linux nine), 15 s each.
const KEEPALIVE: TcpKeepalive = TcpKeepalive::new()
    .with_time(Duration::from_secs(60))
    .with_interval(Duration::from_secs(15));

/// Time between two looks for that request.
const LOOK: Duration = Duration::from_millis(10);

/// Why a connection did not end normally.
#[derive(Debug, Error)]
pub(super) enum ConnectionError {
    #[error("socket: {0}")]
    Socket(#[from] io::Error),
    #[error("TLS handshake: {0}")]
    Handshake(io::Error),
    #[error("HTTP without TLS on a port for TLS")]
    PlainHttp,
    #[error("the TLS handshake took too long")]
    HandshakeTimeout,
    #[error("{0}")]
    Http(BoxError),
    #[error("the client did not read a response")]
    Stalled,
    #[error("the client abandoned too many requests")]
    Abused,
    #[error("the client did not let the connection close")]
    Lingering,
}

/// State shared by all connections of a server.
#[derive(Debug)]
pub(super) struct Shared<S> {
    pub(super) service: S,
    pub(super) tls: Option<Arc<ServerConfig>>,
    pub(super) limits: Arc<TcpLimits>,
    pub(super) observer: Option<Observer>,
    /// Becomes true when connections must end after the requests in progress.
    pub(super) draining: watch::Receiver<bool>,
}

impl ConnectionError {
    fn outcome(&self) -> Outcome {
        match self {
            Self::Handshake(error) => Outcome::HandshakeFailed(error.to_string()),
            Self::PlainHttp => Outcome::HandshakeFailed(self.to_string()),
            Self::HandshakeTimeout => Outcome::HandshakeTimeout,
            other => Outcome::Broken(other.to_string()),
        }
    }
}

/// Facts about a connection, collected while it is served.
struct Record {
    begin: Instant,
    meter: Arc<Meter>,
    activity: Arc<Activity>,
    info: ConnectionInfo,
}

/// Serves one connection to its end.
pub(super) async fn serve<S>(
    stream: TcpStream,
    peer: SocketAddr,
    shared: Arc<Shared<S>>,
) -> Result<(), ConnectionError>
where
    S: WebService + Sync,
{
    stream.set_nodelay(true)?;
    // What a client that has vanished leaves open, such as a tunnel, ends some time. Not needed for it to work.
    let _ = SockRef::from(&stream).set_tcp_keepalive(&KEEPALIVE);
    let meter: Arc<Meter> = Arc::default();
    let mut record = Record {
        begin: Instant::now(),
        meter: Arc::clone(&meter),
        activity: Activity::new(Arc::clone(&shared.limits), meter),
        info: ConnectionInfo {
            peer,
            local: stream.local_addr()?,
            protocol: Transport::Tcp,
            alpn: None,
            server_name: None,
            client_chain: None,
        },
    };
    let result = serve_recorded(stream, &mut record, &shared).await;
    if let Some(observer) = &shared.observer {
        (observer.0)(&ConnectionEnd {
            peer,
            alpn: record.info.alpn,
            requests: record.activity.requests(),
            bytes_sent: record.meter.sent.load(Ordering::Relaxed),
            bytes_received: record.meter.received.load(Ordering::Relaxed),
            elapsed: record.begin.elapsed(),
            outcome: match &result {
                Ok(()) => Outcome::Orderly,
                Err(error) => error.outcome(),
            },
        });
    }
    result
}

async fn serve_recorded<S>(
    stream: TcpStream,
    record: &mut Record,
    shared: &Shared<S>,
) -> Result<(), ConnectionError>
where
    S: WebService + Sync,
{
    let stream = Metered::new(stream, Arc::clone(&record.meter));
    let Some(tls) = &shared.tls else {
        return exchange(stream, record, shared).await;
    };
    let handshake = async {
        let mut stream = stream;
        if plain_http::is_spoken(stream.inner()).await? {
            let limits = &shared.limits;
            plain_http::refuse(&mut stream, limits.linger_bytes, limits.linger_time).await?;
            return Err(ConnectionError::PlainHttp);
        }
        let accept = TlsAcceptor::from(Arc::clone(tls)).accept(stream);
        match accept.into_fallible().await {
            Ok(stream) => Ok(stream),
            Err((error, mut stream)) => {
                if lingering_close::is_about_client_certificate(&error) {
                    let limits = &shared.limits;
                    // The client may be gone.
                    let _ =
                        lingering_close::end(&mut stream, limits.linger_bytes, limits.linger_time)
                            .await;
                }
                Err(ConnectionError::Handshake(error))
            }
        }
    };
    let stream = timeout(shared.limits.handshake_timeout, handshake)
        .await
        .map_err(|_| ConnectionError::HandshakeTimeout)??;
    let (_, session) = stream.get_ref();
    let info = &mut record.info;
    info.protocol = Transport::Tls;
    info.alpn = session.alpn_protocol().map(Arc::from);
    info.server_name = session.server_name().map(Arc::from);
    info.client_chain = session.peer_certificates().map(owned);
    if info.alpn.as_deref() == Some(ALPN_ACME_TLS) {
        let mut stream = stream;
        // The authority has seen the certificate. It may be gone already.
        let _ = stream.shutdown().await;
        return Ok(());
    }
    exchange(stream, record, shared).await
}

/// A chain that outlives its TLS session.
fn owned(chain: &[CertificateDer<'_>]) -> Arc<[CertificateDer<'static>]> {
    let certificates = chain.iter().cloned();
    certificates.map(CertificateDer::into_owned).collect()
}

/// Requests and responses over an established stream.
async fn exchange<I, S>(
    stream: I,
    record: &Record,
    shared: &Shared<S>,
) -> Result<(), ConnectionError>
where
    I: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    S: WebService,
{
    let messages = exchange_messages(stream, record, shared);
    if record.info.alpn.as_deref() == Some(ALPN_HTTP2) {
        AfterOthers::new(messages).await
    } else {
        // One response at a time: there is nothing to send together.
        messages.await
    }
}

async fn exchange_messages<I, S>(
    stream: I,
    record: &Record,
    shared: &Shared<S>,
) -> Result<(), ConnectionError>
where
    I: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    S: WebService,
{
    let limits = &shared.limits;
    let activity = &record.activity;
    let (executor, mut streams) = stream_tasks(activity);
    let builder = builder(limits, record.info.alpn.as_deref(), executor.clone());
    activity.start();
    let adapter = Adapter {
        service: shared.service.clone(),
        info: record.info.clone(),
        activity: Arc::clone(activity),
        limits: Arc::clone(limits),
        budget: limits.response_budget.connection(),
        tasks: executor,
    };
    let served = builder.serve_connection_with_upgrades(TokioIo::new(stream), adapter);
    let mut connection = pin!(served);
    let mut draining = shared.draining.clone();
    let mut ending: Option<Instant> = None;
    let mut drained = false;
    loop {
        tokio::select! {
            ended = connection.as_mut() => {
                ended.map_err(ConnectionError::Http)?;
                break;
            }
            never = streams.run() => match never {},
            () = drain(&mut draining, record), if !drained => {
                drained = true;
                connection.as_mut().graceful_shutdown();
            }
            expiry = activity.expired(), if ending.is_none() => match expiry {
                Expiry::Stalled => return Err(ConnectionError::Stalled),
                Expiry::Abused => return Err(ConnectionError::Abused),
                Expiry::Idle => {
                    connection.as_mut().graceful_shutdown();
                    ending = Some(Instant::now() + limits.send_timeout);
                }
            },
            () = sleep_until_some(ending) => return Err(ConnectionError::Lingering),
        }
    }
    if !activity.has_left_http() {
        return Ok(());
    }
    tokio::select! {
        () = streams.finish() => Ok(()),
        _ = activity.expired() => Err(ConnectionError::Stalled),
    }
}

/// Ends when the connection has to end because the server drains, but not before its first request.
async fn drain(draining: &mut watch::Receiver<bool>, record: &Record) {
    // An error means that the server is gone.
    let _ = draining.wait_for(|draining| *draining).await;
    let deadline = record.begin + FIRST_REQUEST;
    while record.activity.requests() == 0 && Instant::now() < deadline {
        sleep(LOOK).await;
    }
}

/// Sleeps until `deadline`; pending forever if there is none.
async fn sleep_until_some(deadline: Option<Instant>) {
    match deadline {
        Some(deadline) => sleep_until(deadline).await,
        None => std::future::pending().await,
    }
}

/// hyper with the server's limits, for the version chosen by ALPN. Without ALPN the first bytes
/// determine it.
fn builder(
    limits: &TcpLimits,
    alpn: Option<&[u8]>,
    executor: StreamExecutor,
) -> Builder<StreamExecutor> {
    let mut builder = Builder::new(executor);
    let header_size = limits.header_size.max(MIN_HEADER_BUFFER as u32);
    let mut http1 = builder.http1();
    http1
        .timer(TokioTimer::new())
        .header_read_timeout(limits.header_timeout)
        .max_buf_size(header_size as usize);
    if limits.header_count != 100 {
        // A limit other than hyper's default costs an allocation per request. One field more than
        // the server's limit, so that the adapter answers alike for both versions.
        http1.max_headers(limits.header_count.saturating_add(1));
    }
    builder
        .http2()
        .timer(TokioTimer::new())
        .enable_connect_protocol()
        .max_header_list_size(header_size)
        .max_concurrent_streams(limits.concurrent_streams)
        .initial_stream_window_size(limits.connection_window.clamp(65_535, 1 << 20))
        .initial_connection_window_size(limits.connection_window.max(65_535))
        .max_send_buf_size(limits.send_buffer)
        .max_pending_accept_reset_streams(limits.pending_resets)
        .max_local_error_reset_streams(limits.pending_resets.saturating_mul(8))
        .keep_alive_interval(limits.ping_interval.max(Duration::from_millis(10)))
        .keep_alive_timeout(limits.ping_interval);
    match alpn {
        Some(name) if name == ALPN_HTTP2 => builder.http2_only(),
        Some(name) if name == ALPN_HTTP11 => builder.http1_only(),
        _ => builder,
    }
}
