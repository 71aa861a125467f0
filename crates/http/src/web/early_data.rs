//! Requests received as early data (0-RTT), which an attacker may have recorded and replayed (RFC
//! 8470).
//!
//! Servers mark such requests with [`EarlyData`]; [`EarlyDataLayer`] rejects those with unsafe
//! methods before services that don't handle replays.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use http::{HeaderMap, HeaderName, Request, Response, StatusCode};
use pin_project_lite::pin_project;
use tower::{Layer, Service};

use super::body::{Body, text_response};

/// The field by which an intermediary marks requests that it received as early data (RFC 8470,
/// section 5.1).
pub const EARLY_DATA: HeaderName = HeaderName::from_static("early-data");

/// In the extensions of a request: at least a part of it was received as early data, and the
/// handshake was not complete when it was passed to the service.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EarlyData;

/// Whether a request may be a replay: it was received as early data here, or by the intermediary
/// before this server.
pub fn is_early<B>(request: &Request<B>) -> bool {
    request.extensions().get::<EarlyData>().is_some() || says_early(request.headers())
}

/// Whether `Early-Data: 1` is among `headers`. Other values are ignored.
pub(super) fn says_early(headers: &HeaderMap) -> bool {
    headers
        .get_all(EARLY_DATA)
        .iter()
        .any(|value| value.as_bytes() == b"1")
}

/// Answers requests in early data whose method is not safe (RFC 9110, section 9.2.1) with 425, so
/// that clients send them again after the handshake (RFC 8470, section 5.2).
#[derive(Debug, Clone, Copy, Default)]
pub struct EarlyDataLayer;

impl<S> Layer<S> for EarlyDataLayer {
    type Service = EarlyDataGuard<S>;

    fn layer(&self, inner: S) -> Self::Service {
        EarlyDataGuard { inner }
    }
}

/// A service behind an [`EarlyDataLayer`].
#[derive(Debug, Clone)]
pub struct EarlyDataGuard<S> {
    inner: S,
}

impl<S, B, R> Service<Request<B>> for EarlyDataGuard<S>
where
    S: Service<Request<B>, Response = Response<R>>,
{
    type Response = Response<http_body_util::Either<R, Body>>;
    type Error = S::Error;
    type Future = EarlyDataFuture<S::Future>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        if is_early(&request) && !request.method().is_safe() {
            EarlyDataFuture { inner: None }
        } else {
            EarlyDataFuture {
                inner: Some(self.inner.call(request)),
            }
        }
    }
}

pin_project! {
    /// Response future of an [`EarlyDataGuard`].
    #[derive(Debug)]
    pub struct EarlyDataFuture<F> {
        // `None`: the request must wait for the handshake.
        #[pin]
        inner: Option<F>,
    }
}

impl<F, R, E> Future for EarlyDataFuture<F>
where
    F: Future<Output = Result<Response<R>, E>>,
{
    type Output = Result<Response<http_body_util::Either<R, Body>>, E>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        use http_body_util::Either;
        Poll::Ready(match self.project().inner.as_pin_mut() {
            Some(inner) => ready!(inner.poll(cx)).map(|response| response.map(Either::Left)),
            None => Ok(
                text_response(StatusCode::TOO_EARLY, "send it after the handshake")
                    .map(Either::Right),
            ),
        })
    }
}
