//! One request of a server, from its head to the last byte of the response.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::header::{CONTENT_LENGTH, DATE};
use http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode};
use http_body::Body as _;
use tower::ServiceExt;

use super::body::RecvBody;
use super::connect::HttpDatagrams;
use super::content::{self, Beginning};
use super::date;
use super::exchange::Exchange;
use super::hosted::Incoming;
use super::webtransport::{Asked, establish};
use crate::h3::{self, Code, ConnectProtocol};
use crate::web::body::{Body, BoxError, text_response};
use crate::web::connection_info::ConnectionInfo;
use crate::web::early_data::EarlyData;
use crate::web::response_budget::{BudgetedBody, ConnectionBudget, PieceSize, busy};
use crate::web::service::WebService;
use crate::web::timed_body::{Pace, TimedBody};
use crate::web::upgrade::UpgradeRequest;

/// Content length from which on a response is announced to the policies, bytes. Less leaves within a round trip or two
/// whatever its paths.
const ANNOUNCED: u64 = 65_536;

/// What the requests of a connection share.
pub(super) struct Answering {
    pub(super) pace: Pace,
    pub(super) send_timeout: Duration,
    pub(super) budget: ConnectionBudget,
}

/// One request, from its head to the last byte of the response.
pub(super) async fn answer<S>(
    answering: Arc<Answering>,
    exchange: Exchange,
    incoming: Incoming,
    info: ConnectionInfo,
    service: S,
) where
    S: WebService,
{
    let exchange = Arc::new(exchange);
    let client = info.peer.ip();
    // A service that panics, or a server that stops, leaves the request without a response.
    let unanswered = Unanswered(Some(Arc::clone(&exchange)));
    let is_head = incoming.head.method == Method::HEAD;
    let (mut request, asked) = prepare(&answering, &exchange, incoming, info);
    let pieces = PieceSize::new();
    request.extensions_mut().insert(pieces.clone());
    let response = if answering.budget.check(client).is_ok() {
        tokio::select! {
            biased;
            response = serve_request(service, request) => response,
            // The caller for this response is gone.
            () = exchange.abandoned() => return,
        }
    } else {
        drop(request);
        busy()
    };
    let response = match answering.budget.admit(client, response, pieces) {
        Ok(response) => response,
        Err(_) => busy().map(BudgetedBody::free),
    };
    let result = match asked {
        Some(asked) if response.status().is_success() => {
            accept(&answering, &exchange, response, asked, unanswered).await
        }
        Some(refused) => {
            drop(refused);
            let result = respond(&answering, &exchange, response, is_head, unanswered).await;
            exchange.stop(Code::NO_ERROR);
            result
        }
        None => respond(&answering, &exchange, response, is_head, unanswered).await,
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
    answering: &Answering,
    exchange: &Arc<Exchange>,
    incoming: Incoming,
    info: ConnectionInfo,
) -> (Request<Body>, Option<Asked>) {
    let Incoming {
        mut head,
        early,
        content: whole,
        end,
        is_session,
        ..
    } = incoming;
    head.extensions.insert(info);
    if early {
        head.extensions.insert(EarlyData);
    }
    if is_session {
        let (request, asked) = Asked::new(exchange, &head.headers);
        head.extensions.insert(request);
        return (Request::from_parts(*head, Body::empty()), Some(asked));
    }
    let content =
        (!end).then(|| RecvBody::new(Arc::clone(exchange), &head.headers, Code::NO_ERROR));
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
    let body = content.map_or_else(
        || Body::full(whole),
        |content| Body::new(TimedBody::new(content, answering.pace)),
    );
    (Request::from_parts(*head, body), None)
}

/// The service accepts the WebTransport session.
async fn accept(
    answering: &Answering,
    exchange: &Exchange,
    response: Response<BudgetedBody<Body>>,
    asked: Asked,
    mut unanswered: Unanswered,
) -> Result<(), BoxError> {
    let (mut head, _) = response.into_parts();
    add_date(&mut head.headers);
    let begun = || unanswered.0 = None;
    establish(exchange, asked, head, answering.send_timeout, begun).await?;
    Ok(())
}

async fn respond(
    answering: &Answering,
    exchange: &Exchange,
    response: Response<BudgetedBody<Body>>,
    is_head: bool,
    mut unanswered: Unanswered,
) -> Result<(), BoxError> {
    let (mut head, body) = response.into_parts();
    complete(&mut head.headers, head.status, &body, is_head);
    let mut body = pin!(body);
    let has_content = !(is_head || is_bare(head.status) || body.is_end_stream());
    let mut begin = Beginning::default();
    if has_content {
        announce(exchange, &head.headers);
        begin = Beginning::of(body.as_mut()).await;
    }
    let begun = exchange.respond(&head, &mut begin.data, !has_content || begin.is_last);
    if let Err(h3::SendError::Head(error)) = &begun {
        tracing::error!(%error, "the service's response can't be sent");
        let mut plain = Response::new(()).into_parts().0;
        plain.status = StatusCode::INTERNAL_SERVER_ERROR;
        exchange.respond(&plain, &mut Bytes::new(), true)?;
        unanswered.0 = None;
        return Ok(());
    }
    begun?;
    unanswered.0 = None;
    if has_content && !begin.is_sent() {
        content::send(exchange, begin, body, Some(answering.send_timeout)).await?;
    }
    Ok(())
}

/// Announces the size of the response to the policies of the connection: Chorus' scheduler divides it among paths.
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
