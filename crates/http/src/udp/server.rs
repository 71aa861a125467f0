//! Serving tower services over HTTP/3.

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
use super::connection::Http3;
use super::exchange::Exchange;
use super::hosted::Incoming;
use super::idle::Idle;
use super::webtransport::{Asked, SessionLimits, establish};
use super::{ALPN_HTTP3, content, date};
use crate::h3::{self, Code, Fault};
use crate::web::body::{Body, BoxError, text_response};
use crate::web::connection_info::{ConnectionInfo, Transport};
use crate::web::early_data::EarlyData;
use crate::web::response_budget::{ConnectionBudget, PieceSize, ResponseBudget, busy};
use crate::web::service::WebService;
use crate::web::timed_body::{Pace, TimedBody};

/// What all requests are told of ALPN.
static ALPN: LazyLock<Arc<[u8]>> = LazyLock::new(|| Arc::from(ALPN_HTTP3));

/// Why serving a connection ended otherwise than in good order.
#[derive(Clone, Debug, Error)]
#[non_exhaustive]
pub enum ServeError {
    /// The client and the server agreed on something else than `h3`.
    #[error("the client does not want HTTP/3")]
    NotHttp3,
    /// The client broke the protocol.
    #[error("the client broke the protocol: {0}")]
    Fault(#[from] Fault),
    /// The QUIC connection failed.
    #[error(transparent)]
    Connection(#[from] ConnectionError),
}

/// HTTP/3 for any tower service, connection by connection: whoever accepts QUIC connections hands
/// over those with the ALPN name `h3`.
///
/// Every request carries a [`ConnectionInfo`] in its extensions, and [`EarlyData`] if it may be a
/// replay. A service that fails is answered for with 500; one that panics loses only its request.
#[derive(Clone, Debug)]
pub struct H3Server {
    config: h3::Config,
    pace: Pace,
    send_timeout: Duration,
    idle_timeout: Duration,
    budget: ResponseBudget,
    session_limits: SessionLimits,
    draining: watch::Receiver<bool>,
    /// Keeps the default `draining` open.
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

    /// How fast the content of requests must come while the service reads it. Default: a gap of at
    /// most 30 s, and 500 bytes per second after 10 s.
    #[must_use]
    pub fn body_pace(mut self, pace: Pace) -> Self {
        self.pace = pace;
        self
    }

    /// How long a client may take nothing of a response; then the response is reset. Default: 30 s.
    #[must_use]
    pub fn send_timeout(mut self, timeout: Duration) -> Self {
        self.send_timeout = timeout;
        self
    }

    /// How long a connection may be without a request; then it is closed as by [`H3Server::drain`], whatever
    /// else the client sends: PINGs alone keep no connection open. Default: 60 s. A client that falls
    /// silent goes sooner, by the transport's idle timeout
    /// ([`max_idle_timeout`](swiftwater_net::quic::TransportConfig::max_idle_timeout)).
    #[must_use]
    pub fn idle_timeout(mut self, timeout: Duration) -> Self {
        self.idle_timeout = timeout;
        self
    }

    /// What responses may take of memory until clients have acknowledged them, over all connections; further
    /// requests are answered with 503. Servers of one process share a budget. Default: one of its own, of
    /// [`ResponseBudget::DEFAULT_BYTES`].
    #[must_use]
    pub fn response_budget(mut self, budget: ResponseBudget) -> Self {
        self.budget = budget;
        self
    }

    /// Takes up to `sessions` WebTransport sessions at once on each connection; more are refused with
    /// H3_REQUEST_REJECTED. Default: what the configuration says
    /// ([`webtransport_sessions`](h3::Config::webtransport_sessions)), and that is none. Services find
    /// a [`SessionRequest`](super::webtransport::SessionRequest) in the extensions of requests for one.
    #[must_use]
    pub fn webtransport(mut self, sessions: u64) -> Self {
        self.config.webtransport_sessions = sessions;
        self
    }

    /// What a WebTransport session may keep until its service takes it.
    #[must_use]
    pub fn session_limits(mut self, limits: SessionLimits) -> Self {
        self.session_limits = limits;
        self
    }

    /// Lets all connections end after the requests under way: clients see GOAWAY (RFC 9114, section
    /// 5.2). Connections handed over afterwards end at once.
    pub fn drain(&self) {
        self.drain.send_replace(true);
    }

    /// Connections at this moment.
    pub fn connections(&self) -> usize {
        self.open.load(Ordering::Relaxed)
    }

    /// Serves `connection` to its end.
    ///
    /// Dropping the future closes the connection, and ends the requests under way.
    pub async fn serve<S>(&self, connection: Connection, service: S) -> Result<(), ServeError>
    where
        S: WebService,
    {
        // Early data can't be for anything but what the session was made with.
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

/// What a connection's end means.
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
    // A service that panics, or a server that stops, leaves a request without an answer.
    let unanswered = Unanswered(Some(Arc::clone(&exchange)));
    let is_head = incoming.head.method == Method::HEAD;
    let (mut request, asked) = prepare(&server, &exchange, incoming);
    let client = exchange.http3.quic().remote_address().ip();
    let pieces = PieceSize::new();
    request.extensions_mut().insert(pieces.clone());
    let response = if budget.check(client).is_ok() {
        tokio::select! {
            response = serve_request(service, request) => response,
            // Nobody waits for the answer any more.
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

/// What the service says, or that it failed.
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

/// The request as the service sees it, and what there is to do if it asks for a WebTransport session.
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
    let body = if end {
        Body::empty()
    } else {
        let exchange = Some(Arc::clone(exchange));
        let body = RecvBody::new(exchange, &head.headers, Code::NO_ERROR);
        Body::new(TimedBody::new(body, server.pace))
    };
    (Request::from_parts(*head, body), None)
}

/// The service takes the WebTransport session that the request asks for.
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

/// Responses that never have content (RFC 9110, section 6.4.1).
fn is_bare(status: StatusCode) -> bool {
    matches!(status, StatusCode::NO_CONTENT | StatusCode::NOT_MODIFIED)
}

/// Adds what servers say unasked: the date, and the length if it is known.
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

/// A request that has no answer yet.
struct Unanswered(Option<Arc<Exchange>>);

impl Drop for Unanswered {
    fn drop(&mut self) {
        if let Some(exchange) = &self.0 {
            exchange.cancel(Code::INTERNAL_ERROR);
        }
    }
}

/// A place in the count of connections.
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
