//! Adapter between hyper and a tower service: additions to every request and every response.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use http::header::{EXPECT, HOST, TRANSFER_ENCODING};
use http::{HeaderMap, HeaderValue, Request, Response, StatusCode, Version};
use http_body_util::Either;
use hyper::body::{Body as _, Incoming};
use tower::ServiceExt;

use super::activity::Activity;
use super::exchange::{Exchange, TrackedBody};
use super::limits::TcpLimits;
use super::streams::StreamExecutor;
use super::tunnel;
use super::unread::{Linger, RequestBody};
use crate::web::body::{Body, BoxError, text_response};
use crate::web::connection_info::ConnectionInfo;
use crate::web::host;
use crate::web::response_budget::{BudgetedBody, ConnectionBudget, PieceSize, busy};
use crate::web::service::WebService;
use crate::web::timed_body::TimedBody;

/// The body of a response as hyper sees it: the service's, or a short text of the server.
pub(super) type OutgoingBody<B> = TrackedBody<BudgetedBody<Either<B, Body>>>;

/// A tower service for the requests of one connection.
#[derive(Debug, Clone)]
pub(super) struct Adapter<S> {
    pub(super) service: S,
    pub(super) info: ConnectionInfo,
    pub(super) activity: Arc<Activity>,
    pub(super) limits: Arc<TcpLimits>,
    pub(super) budget: ConnectionBudget,
    pub(super) tasks: StreamExecutor,
}

impl<S> hyper::service::Service<Request<Incoming>> for Adapter<S>
where
    S: WebService,
{
    type Response = Response<OutgoingBody<S::Content>>;
    type Error = BoxError;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, BoxError>> + Send>>;

    fn call(&self, mut request: Request<Incoming>) -> Self::Future {
        let exchange = self.activity.begin();
        let adapter = self.clone();
        let offer = tunnel::offer(&mut request);
        let offer = offer.map(|offer| (offer, self.tasks.clone(), Arc::clone(&self.limits)));
        Box::pin(async move {
            let response = adapter.answer(request, &exchange).await;
            let Some((offer, tasks, limits)) =
                offer.filter(|(offer, ..)| offer.is_accepted_by(&response))
            else {
                return Ok(response.map(|body| TrackedBody::new(body, exchange)));
            };
            let (head, body) = response.into_parts();
            let outgoing = TrackedBody::new(body, Arc::clone(&exchange));
            let leaves_http = offer.leaves_http();
            let tunnel = offer.run(outgoing, Arc::clone(&exchange), limits);
            tasks.run_tunnel(&exchange, leaves_http, tunnel);
            let nothing = BudgetedBody::free(Either::Right(Body::empty()));
            let nothing = TrackedBody::new(nothing, exchange);
            Ok(Response::from_parts(head, nothing))
        })
    }
}

impl<S: WebService> Adapter<S> {
    async fn answer(
        self,
        request: Request<Incoming>,
        exchange: &Exchange,
    ) -> Response<BudgetedBody<Either<S::Content, Body>>> {
        let client = self.info.peer.ip();
        let mut request = self.prepare(request, exchange);
        if let Err(refusal) = self.admit(&mut request) {
            return free(*refusal);
        }
        let pieces = PieceSize::new();
        request.extensions_mut().insert(pieces.clone());
        match self.service.oneshot(request).await {
            Ok(response) => {
                let response = response.map(Either::Left);
                let admitted = self.budget.admit(client, response, pieces);
                admitted.unwrap_or_else(|_| free(busy()))
            }
            Err(error) => {
                let error = error.into();
                tracing::error!(%error, "the service failed");
                free(text_response(StatusCode::INTERNAL_SERVER_ERROR, ""))
            }
        }
    }

    /// Wraps the body, and adds the extensions for the service.
    fn prepare(&self, request: Request<Incoming>, exchange: &Exchange) -> Request<Body> {
        let limits = &self.limits;
        // Reading would send 100 (Continue) for content that is not needed (RFC 9110, section
        // 10.1.1).
        let asks = request.version() < Version::HTTP_2 && request.headers().contains_key(EXPECT);
        let linger = Linger {
            bytes: limits.linger_bytes,
            time: if asks {
                Duration::ZERO
            } else {
                limits.linger_time
            },
        };
        let mut request = request.map(|body| {
            if body.is_end_stream() {
                return Body::empty();
            }
            let body = RequestBody::new(body, linger, exchange.end());
            Body::new(TimedBody::new(body, limits.body_pace))
        });
        request.extensions_mut().insert(self.info.clone());
        request
    }

    /// Requests rejected before the service.
    fn admit(&self, request: &mut Request<Body>) -> Result<(), Box<Response<Body>>> {
        if request.headers().len() > self.limits.header_count {
            let status = StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE;
            return Err(Box::new(text_response(status, "")));
        }
        if let Err(error) = host::check(request) {
            let text = error.to_string();
            return Err(Box::new(text_response(StatusCode::BAD_REQUEST, &text)));
        }
        // The host of the target takes precedence over the field (RFC 9112, section 3.2.2).
        if let Some(authority) = request.uri().authority()
            && let Ok(value) = HeaderValue::from_str(authority.as_str())
            && request.version() < Version::HTTP_2
        {
            request.headers_mut().insert(HOST, value);
        }
        if !is_understood(request.headers()) {
            let text = "transfer codings other than chunked";
            return Err(Box::new(text_response(StatusCode::NOT_IMPLEMENTED, text)));
        }
        let client = self.info.peer.ip();
        self.budget.check(client).map_err(|_| Box::new(busy()))
    }
}

/// Whether the only transfer coding is chunked (RFC 9112, section 6.1).
fn is_understood(headers: &HeaderMap) -> bool {
    headers.get_all(TRANSFER_ENCODING).iter().all(|value| {
        let value = value.as_bytes().trim_ascii();
        value.eq_ignore_ascii_case(b"chunked")
    })
}

fn free<B>(response: Response<Body>) -> Response<BudgetedBody<Either<B, Body>>> {
    response.map(|body| BudgetedBody::free(Either::Right(body)))
}
