//! A local HTTP/1.1 proxy for CONNECT (RFC 9110, section 9.3.6) whose tunnels go through the proxy.

use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};

use http::header::ALLOW;
use http::uri::Authority;
use http::{HeaderValue, Method, Request, Response, StatusCode};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::upgrade::OnUpgrade;
use hyper_util::rt::{TokioIo, TokioTimer};
use swiftwater_http::web::body::{Body, text_response};
use tokio::net::TcpStream;

use super::datagram_relay::ForwardStats;
use super::error::OpenError;
use super::listener::{Listener, ListenerCounters, ListenerLimits, ListenerStats};
use super::tcp_tunnel::TcpTunnel;
use super::tunnel_client::TunnelClient;
use crate::proxy_status::PROXY_STATUS;
use crate::target::Target;

/// The largest head of a request, bytes.
const MAX_HEAD: usize = 16 << 10;

/// An HTTP/1.1 server of CONNECT requests alone, without authentication. The proxy resolves the names of targets.
#[derive(Debug)]
pub struct HttpConnectServer {
    listener: Listener,
    client: TunnelClient,
    limits: ListenerLimits,
    counters: Arc<ListenerCounters>,
}

impl HttpConnectServer {
    /// Binds `local`. Whoever reaches it may use the proxy: it should be a loopback address.
    pub async fn bind(
        local: SocketAddr,
        client: TunnelClient,
        limits: ListenerLimits,
    ) -> io::Result<Self> {
        Ok(Self {
            listener: Listener::bind(local, limits).await?,
            client,
            limits,
            counters: Arc::default(),
        })
    }

    /// The address that it is bound to.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }

    /// Counters so far.
    pub fn stats(&self) -> ListenerStats {
        self.counters.stats(ForwardStats::default())
    }

    /// Serves until the future is dropped, or the socket fails.
    pub async fn run(&self) -> io::Error {
        let serve = |stream, peer| {
            let connection = HttpConnection {
                client: self.client.clone(),
                counters: Arc::clone(&self.counters),
                accepted: Mutex::default(),
            };
            serve(Arc::new(connection), stream, peer, self.limits)
        };
        self.listener.run(&self.counters, serve).await
    }
}

/// One connection of a client.
struct HttpConnection {
    client: TunnelClient,
    counters: Arc<ListenerCounters>,
    /// The tunnel that the connection becomes.
    accepted: Mutex<Option<(OnUpgrade, TcpTunnel)>>,
}

async fn serve(
    connection: Arc<HttpConnection>,
    stream: TcpStream,
    peer: SocketAddr,
    limits: ListenerLimits,
) {
    let answering = Arc::clone(&connection);
    let service = service_fn(move |request| {
        let connection = Arc::clone(&answering);
        async move { Ok::<_, Infallible>(connection.answer(request).await) }
    });
    let served = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(limits.handshake)
        .max_buf_size(MAX_HEAD)
        .serve_connection(TokioIo::new(stream), service)
        .with_upgrades()
        .await;
    if let Err(error) = served {
        ListenerCounters::add(&connection.counters.rejected);
        tracing::debug!(%peer, %error, "a connection of HTTP failed");
        return;
    }
    let accepted = connection.accepted.lock();
    let accepted = accepted.unwrap_or_else(PoisonError::into_inner).take();
    let Some((upgrade, tunnel)) = accepted else {
        return;
    };
    let Ok(upgraded) = upgrade.await else { return };
    let Ok(parts) = upgraded.downcast::<TokioIo<TcpStream>>() else {
        return;
    };
    let stream = parts.io.into_inner();
    // A client may send ahead of the answer.
    let (early, counters) = (parts.read_buf, &connection.counters);
    counters.forward(stream, &early, tunnel).await;
}

impl HttpConnection {
    async fn answer(&self, mut request: Request<Incoming>) -> Response<Body> {
        if request.method() != Method::CONNECT {
            ListenerCounters::add(&self.counters.rejected);
            let text = "this proxy answers CONNECT only: use it for https";
            let mut response = text_response(StatusCode::METHOD_NOT_ALLOWED, text);
            let allowed = HeaderValue::from_static("CONNECT");
            response.headers_mut().insert(ALLOW, allowed);
            return response;
        }
        let authority = request.uri().authority().map_or("", Authority::as_str);
        let target: Target = match authority.parse() {
            Ok(target) => target,
            Err(error) => {
                ListenerCounters::add(&self.counters.rejected);
                return text_response(StatusCode::BAD_REQUEST, &error.to_string());
            }
        };
        match self.client.open_tcp(&target).await {
            Ok(tunnel) => {
                let upgrade = hyper::upgrade::on(&mut request);
                let accepted = self.accepted.lock();
                *accepted.unwrap_or_else(PoisonError::into_inner) = Some((upgrade, tunnel));
                Response::new(Body::empty())
            }
            Err(error) => {
                ListenerCounters::add(&self.counters.failed);
                tracing::warn!(%target, %error, "no tunnel");
                refusal(&error)
            }
        }
    }
}

/// The answer for a tunnel that was not opened.
fn refusal(error: &OpenError) -> Response<Body> {
    let OpenError::Refused {
        status,
        proxy_status,
    } = error
    else {
        return text_response(StatusCode::BAD_GATEWAY, &error.to_string());
    };
    let asks_for_credentials = matches!(
        *status,
        StatusCode::UNAUTHORIZED | StatusCode::PROXY_AUTHENTICATION_REQUIRED
    );
    // Those of this client were refused; its own clients have none.
    let is_usable = !asks_for_credentials && (status.is_client_error() || status.is_server_error());
    let status = if is_usable {
        *status
    } else {
        StatusCode::BAD_GATEWAY
    };
    let mut response = text_response(status, &error.to_string());
    let proxy_status = proxy_status.as_deref().map(HeaderValue::from_str);
    if let Some(Ok(value)) = proxy_status {
        response.headers_mut().insert(PROXY_STATUS, value);
    }
    response
}
