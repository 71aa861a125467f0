//! HTTP/3 server for tower services.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use http::header::{CONTENT_LENGTH, DATE};
use http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode};
use http_body::Body as _;
use swiftwater_net::Connection;
use swiftwater_net::quic::ConnectionError;
use thiserror::Error;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tower::ServiceExt;

use super::body::RecvBody;
use super::connect::HttpDatagrams;
use super::connection::Http3;
use super::exchange::Exchange;
use super::hosted::Incoming;
use super::idle::Idle;
use super::webtransport::{Asked, SessionLimits, establish};
use super::{ALPN_HTTP3, content, date};
use crate::h3::{self, Code, ConnectProtocol, Fault};
use crate::web::body::{Body, BoxError, text_response};
use crate::web::connection_info::{ConnectionInfo, Transport};
use crate::web::early_data::EarlyData;
use crate::web::response_budget::{ConnectionBudget, PieceSize, ResponseBudget, busy};
use crate::web::service::WebService;
use crate::web::timed_body::{Pace, TimedBody};
use crate::web::upgrade::UpgradeRequest;

/// Content length from which on a response is announced to the policies, bytes. Less leaves within a round trip or two
/// whatever its paths.
const ANNOUNCED: u64 = 65_536;

/// The ALPN name in the connection information of all requests.
static ALPN: LazyLock<Arc<[u8]>> = LazyLock::new(|| Arc::from(ALPN_HTTP3));

/// Why serving a connection did not end normally.
#[derive(Clone, Debug, Error)]
#[non_exhaustive]
pub enum ServeError {
    /// Client and server negotiated another protocol than `h3`.
    #[error("the connection was not negotiated for HTTP/3")]
    NotHttp3,
    /// The client violated the protocol.
    #[error("the client violated the protocol: {0}")]
    Fault(#[from] Fault),
    /// The QUIC connection failed.
    #[error(transparent)]
    Connection(#[from] ConnectionError),
}

/// HTTP/3 for any tower service, one connection at a time: the caller accepts QUIC connections and
/// passes those with the ALPN name `h3`.
///
/// Every request carries a [`ConnectionInfo`] in its extensions, and [`EarlyData`] if it may be a
/// replay. If the service fails, the response is 500; if it panics, only that request is lost.
#[derive(Clone, Debug)]
pub struct H3Server {
    config: h3::Config,
    pace: Pace,
    send_timeout: Duration,
    idle_timeout: Duration,
    budget: ResponseBudget,
    session_limits: SessionLimits,
    draining: watch::Receiver<bool>,
    /// The sender that keeps the default `draining` channel open.
    drain: Arc<watch::Sender<bool>>,
    open: Arc<AtomicUsize>,
}

impl Default for H3Server {
    fn default() -> Self {
        Self::new(h3::Config::default())
    }
}

impl H3Server {
    /// A server whose connections have this configuration.
    pub fn new(config: h3::Config) -> Self {
        let (drain, draining) = watch::channel(false);
        Self {
            config,
            pace: Pace {
                gap: Duration::from_secs(30),
                minimum_rate: 500,
                grace: Duration::from_secs(10),
            },
            send_timeout: Duration::from_secs(30),
            idle_timeout: Duration::from_secs(60),
            budget: ResponseBudget::default(),
            session_limits: SessionLimits::default(),
            draining,
            drain: Arc::new(drain),
            open: Arc::default(),
        }
    }

    /// Minimum rate of request content while the service reads it. Default: a gap of at most 30 s,
    /// and 500 bytes per second after 10 s.
    #[must_use]
    pub fn body_pace(mut self, pace: Pace) -> Self {
        self.pace = pace;
        self
    }

    /// How long a client may leave a response unread; then the response is reset. Default: 30 s.
    #[must_use]
    pub fn send_timeout(mut self, timeout: Duration) -> Self {
        self.send_timeout = timeout;
        self
    }

    /// How long a connection may be without a request; then it is closed as by [`H3Server::drain`], whatever
    /// else the client sends: PINGs alone do not keep a connection open. Default: 60 s. A client that sends
    /// nothing is dropped sooner, by the transport's idle timeout
    /// ([`max_idle_timeout`](swiftwater_net::quic::TransportConfig::max_idle_timeout)).
    #[must_use]
    pub fn idle_timeout(mut self, timeout: Duration) -> Self {
        self.idle_timeout = timeout;
        self
    }

    /// Memory of responses until clients have acknowledged them, over all connections; further requests are
    /// answered with 503. Servers of one process share a budget. Default: a separate one of
    /// [`ResponseBudget::DEFAULT_BYTES`].
    #[must_use]
    pub fn response_budget(mut self, budget: ResponseBudget) -> Self {
        self.budget = budget;
        self
    }

    /// Accepts up to `sessions` concurrent WebTransport sessions on each connection; more are rejected
    /// with H3_REQUEST_REJECTED. Default: the configuration's
    /// ([`webtransport_sessions`](h3::Config::webtransport_sessions)), which is none. Services find a
    /// [`SessionRequest`](super::webtransport::SessionRequest) in the extensions of requests for one.
    #[must_use]
    pub fn webtransport(mut self, sessions: u64) -> Self {
        self.config.webtransport_sessions = sessions;
        self
    }

    /// Limits on what a WebTransport session buffers until its service reads it.
    #[must_use]
    pub fn session_limits(mut self, limits: SessionLimits) -> Self {
        self.session_limits = limits;
        self
    }

    /// Ends all connections after the requests in progress: clients get GOAWAY (RFC 9114, section
    /// 5.2). Connections passed afterwards end at once.
    pub fn drain(&self) {
        self.drain.send_replace(true);
    }

    /// Connections at present.
    pub fn connections(&self) -> usize {
        self.open.load(Ordering::Relaxed)
    }

    /// Serves `connection` to its end.
    ///
    /// Dropping the future closes the connection and ends the requests in progress.
    pub async fn serve<S>(&self, connection: Connection, service: S) -> Result<(), ServeError>
    where
        S: WebService,
    {
        // Early data always use the ALPN protocol of their session.
        if connection.alpn().is_some_and(|alpn| alpn != ALPN_HTTP3) {
            connection.close(Code::VERSION_FALLBACK.0, b"");
            return Err(ServeError::NotHttp3);
        }
        let _counted = Counted::new(&self.open);
        let engine = h3::Connection::server(self.config);
        let http3 = Http3::new(connection, engine, self.session_limits);
        let mut requests = JoinSet::new();
        let mut draining = self.draining.clone();
        let mut drained = false;
        let mut idle = Idle::new(self.idle_timeout);
        let budget = self.budget.connection();
        loop {
            tokio::select! {
                incoming = http3.accept() => match incoming {
                    Some(incoming) => {
                        let exchange = Exchange::new(http3.clone(), incoming.id);
                        let service = service.clone();
                        let budget = budget.clone();
                        requests.spawn(answer(self.clone(), budget, exchange, incoming, service));
                    }
                    None => break,
                },
                _ = draining.wait_for(|draining| *draining), if !drained => {
                    drained = true;
                    http3.shutdown();
                }
                Some(ended) = requests.join_next() => {
                    if ended.is_err_and(|error| error.is_panic()) {
                        tracing::error!("a service panicked");
                    }
                    idle.restart();
                }
                () = idle.over(), if requests.is_empty() => {
                    drained = true;
                    idle.end(&http3);
                }
            }
        }
        requests.shutdown().await;
        match http3.end() {
            Some(end) => conclude(end.reason, end.fault),
            None => Ok(()),
        }
    }
}

/// The result for a connection's end.
fn conclude(reason: ConnectionError, fault: Option<Fault>) -> Result<(), ServeError> {
    if let Some(fault) = fault {
        return Err(fault.into());
    }
    let is_orderly = match &reason {
        ConnectionError::LocallyClosed { .. } | ConnectionError::TimedOut => true,
        ConnectionError::PeerApplication { code, .. } => *code == Code::NO_ERROR.0,
        _ => false,
    };
    if is_orderly {
        Ok(())
    } else {
        Err(reason.into())
    }
}

/// One request, from its head to the last byte of the response.
async fn answer<S>(
    server: H3Server,
    budget: ConnectionBudget,
    exchange: Exchange,
    incoming: Incoming,
    service: S,
) where
    S: WebService,
{
    let exchange = Arc::new(exchange);
    // A service that panics, or a server that stops, leaves the request without a response.
    let unanswered = Unanswered(Some(Arc::clone(&exchange)));
    let is_head = incoming.head.method == Method::HEAD;
    let (mut request, asked) = prepare(&server, &exchange, incoming);
    let client = exchange.http3.quic().remote_address().ip();
    let pieces = PieceSize::new();
    request.extensions_mut().insert(pieces.clone());
    let response = if budget.check(client).is_ok() {
        tokio::select! {
            response = serve_request(service, request) => response,
            // The caller for this response is gone.
            () = exchange.abandoned() => return,
        }
    } else {
        drop(request);
        busy()
    };
    let response = match budget.admit(client, response, pieces) {
        Ok(response) => response.map(Body::new),
        Err(_) => busy(),
    };
    let result = match asked {
        Some(asked) if response.status().is_success() => {
            accept(&server, &exchange, response, asked, unanswered).await
        }
        Some(refused) => {
            drop(refused);
            let result = respond(&server, &exchange, response, is_head, unanswered).await;
            exchange.stop(Code::NO_ERROR);
            result
        }
        None => respond(&server, &exchange, response, is_head, unanswered).await,
    };
    if let Err(error) = result {
        tracing::debug!(%error, "a response was not completed");
    }
}

/// The service's response, or 500 if it failed.
async fn serve_request<S>(service: S, request: Request<Body>) -> Response<Body>
where
    S: WebService,
{
    service.oneshot(request).await.map_or_else(
        |error| {
            let error: BoxError = error.into();
            tracing::error!(%error, "the service failed");
            text_response(StatusCode::INTERNAL_SERVER_ERROR, "")
        },
        |response| response.map(Body::new),
    )
}

/// The request as the service sees it, and the offer if it requests a WebTransport session.
fn prepare(
    server: &H3Server,
    exchange: &Arc<Exchange>,
    incoming: Incoming,
) -> (Request<Body>, Option<Asked>) {
    let Incoming {
        mut head,
        early,
        end,
        is_session,
        ..
    } = incoming;
    let connection = exchange.http3.quic();
    head.extensions.insert(ConnectionInfo {
        peer: connection.remote_address(),
        local: connection.local_address(),
        protocol: Transport::Quic,
        alpn: Some(Arc::clone(&ALPN)),
        server_name: connection.server_name().map(Arc::from),
    });
    if early {
        head.extensions.insert(EarlyData);
    }
    if is_session {
        let (request, asked) = Asked::new(exchange, &head.headers);
        head.extensions.insert(request);
        return (Request::from_parts(*head, Body::empty()), Some(asked));
    }
    let content = (!end).then(|| {
        let exchange = Some(Arc::clone(exchange));
        RecvBody::new(exchange, &head.headers, Code::NO_ERROR)
    });
    if head.method == Method::CONNECT {
        let protocol = head.extensions.get::<ConnectProtocol>();
        let protocol = protocol.map(ConnectProtocol::as_str);
        let incoming = content.map_or_else(Body::empty, Body::new);
        let asked = UpgradeRequest::connect(protocol, incoming);
        head.extensions.insert(asked);
        if head.extensions.get::<ConnectProtocol>().is_some() {
            let datagrams = HttpDatagrams::new(exchange.http3.clone(), exchange.id);
            head.extensions.insert(datagrams);
        }
        return (Request::from_parts(*head, Body::empty()), None);
    }
    let body = content.map_or_else(Body::empty, |content| {
        Body::new(TimedBody::new(content, server.pace))
    });
    (Request::from_parts(*head, body), None)
}

/// The service accepts the WebTransport session.
async fn accept(
    server: &H3Server,
    exchange: &Exchange,
    response: Response<Body>,
    asked: Asked,
    mut unanswered: Unanswered,
) -> Result<(), BoxError> {
    let (mut head, _) = response.into_parts();
    add_date(&mut head.headers);
    let begun = || unanswered.0 = None;
    establish(exchange, asked, head, server.send_timeout, begun).await?;
    Ok(())
}

async fn respond(
    server: &H3Server,
    exchange: &Exchange,
    response: Response<Body>,
    is_head: bool,
    mut unanswered: Unanswered,
) -> Result<(), BoxError> {
    let (mut head, body) = response.into_parts();
    complete(&mut head.headers, head.status, &body, is_head);
    let end = is_head || is_bare(head.status) || body.is_end_stream();
    if !end {
        announce(exchange, &head.headers);
    }
    let begun = exchange.respond(&head, end);
    if let Err(h3::SendError::Head(error)) = &begun {
        tracing::error!(%error, "the service's response can't be sent");
        let mut plain = Response::new(()).into_parts().0;
        plain.status = StatusCode::INTERNAL_SERVER_ERROR;
        exchange.respond(&plain, true)?;
        unanswered.0 = None;
        return Ok(());
    }
    begun?;
    unanswered.0 = None;
    if !end {
        content::send(exchange, body, Some(server.send_timeout)).await?;
    }
    Ok(())
}

/// Tells the policies of the connection how large the response is: Chorus' scheduler divides it among paths.
fn announce(exchange: &Exchange, headers: &HeaderMap) {
    let length = headers.get(CONTENT_LENGTH);
    let length = length.and_then(|length| length.to_str().ok()?.parse().ok());
    if let Some(length) = length.filter(|length| *length >= ANNOUNCED) {
        exchange.http3.quic().announce_response(exchange.id, length);
    }
}

/// Responses that never have content (RFC 9110, section 6.4.1).
fn is_bare(status: StatusCode) -> bool {
    matches!(status, StatusCode::NO_CONTENT | StatusCode::NOT_MODIFIED)
}

/// Adds the fields that servers generate: the date, and the length if it is known.
fn complete<B: http_body::Body>(
    headers: &mut HeaderMap,
    status: StatusCode,
    body: &B,
    is_head: bool,
) {
    add_date(headers);
    if let Some(length) = body.size_hint().exact()
        && !headers.contains_key(CONTENT_LENGTH)
        && !is_bare(status)
        && (length > 0 || !is_head)
    {
        headers.insert(CONTENT_LENGTH, HeaderValue::from(length));
    }
}

fn add_date(headers: &mut HeaderMap) {
    if !headers.contains_key(DATE)
        && let Some(date) = date::date()
    {
        headers.insert(DATE, date);
    }
}

/// A request without a response so far.
struct Unanswered(Option<Arc<Exchange>>);

impl Drop for Unanswered {
    fn drop(&mut self) {
        if let Some(exchange) = &self.0 {
            exchange.cancel(Code::INTERNAL_ERROR);
        }
    }
}

/// A counted connection.
struct Counted(Arc<AtomicUsize>);

impl Counted {
    fn new(open: &Arc<AtomicUsize>) -> Self {
        open.fetch_add(1, Ordering::Relaxed);
        Self(Arc::clone(open))
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}
