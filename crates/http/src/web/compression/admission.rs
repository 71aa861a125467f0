//! Selection of the responses to compress, within the budget.

use std::future::Future;
use std::net::{IpAddr, Ipv6Addr};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use http::header::{ACCEPT_RANGES, CONTENT_LENGTH, VARY};
use http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode};
use http_body::Body;
use pin_project_lite::pin_project;
use tower::Service;
use tower_http::compression::predicate::Predicate;

use super::{
    PLACE_SIZE, PLACES_OF_UNKNOWN, content_length, is_compressible, is_worthwhile, weaken,
};
use crate::web::connection_info::ConnectionInfo;
use crate::web::files::encodings::accepted;
use crate::web::shared_limit::{SharedLimit, SharedPermit};

/// In the extensions of a response that is to be compressed: its units of the budget.
#[derive(Clone, Debug)]
pub(super) struct Admitted(
    #[allow(dead_code, reason = "dropping it returns the units")] Arc<SharedPermit>,
);

/// Compresses what is [`Admitted`].
#[derive(Clone, Copy, Debug)]
pub struct OnlyAdmitted;

impl Predicate for OnlyAdmitted {
    fn should_compress<B: Body>(&self, response: &Response<B>) -> bool {
        response.extensions().get::<Admitted>().is_some()
    }
}

/// A service that marks the responses to compress.
#[derive(Clone, Debug)]
pub struct Admission<S> {
    inner: S,
    max_size: u64,
    budget: SharedLimit,
}

impl<S> Admission<S> {
    pub(super) fn new(inner: S, max_size: u64, budget: SharedLimit) -> Self {
        Self {
            inner,
            max_size,
            budget,
        }
    }

    pub(super) fn get_ref(&self) -> &S {
        &self.inner
    }
}

impl<S, B, R> Service<Request<B>> for Admission<S>
where
    S: Service<Request<B>, Response = Response<R>>,
    R: Body,
{
    type Response = Response<R>;
    type Error = S::Error;
    type Future = AdmissionFuture<S::Future>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let client = request.extensions().get::<ConnectionInfo>();
        let asked = Asked {
            client: client.map_or(Ipv6Addr::UNSPECIFIED.into(), |info| info.peer.ip()),
            head: request.method() == Method::HEAD,
            accepts: !accepted(request.headers()).is_empty(),
            max_size: self.max_size,
            budget: self.budget.clone(),
        };
        AdmissionFuture {
            inner: self.inner.call(request),
            asked,
        }
    }
}

/// Facts about a request that are needed when its response is available.
#[derive(Debug)]
struct Asked {
    client: IpAddr,
    head: bool,
    accepts: bool,
    max_size: u64,
    budget: SharedLimit,
}

impl Asked {
    fn judge<R: Body>(&self, response: &mut Response<R>) {
        let length = content_length(response, self.head);
        if !is_worthwhile(response, self.max_size, length) {
            // As the whole content would have it (RFC 9110, sections 15.3.7 and 15.4.5). A 304 does not say its type.
            let is_part = response.status() == StatusCode::PARTIAL_CONTENT;
            if response.status() == StatusCode::NOT_MODIFIED
                || (is_part && is_compressible(response.headers()))
            {
                vary(response.headers_mut());
            }
            return;
        }
        vary(response.headers_mut());
        if !self.accepts {
            return;
        }
        if self.head {
            // The head of a GET (RFC 9110, section 9.3.2), except fields that depend on compression.
            let headers = response.headers_mut();
            headers.remove(CONTENT_LENGTH);
            headers.remove(ACCEPT_RANGES);
            weaken(headers);
            return;
        }
        let places = length.map_or(PLACES_OF_UNKNOWN, |length| {
            length.div_ceil(PLACE_SIZE).max(1) as usize
        });
        if let Ok(permit) = self.budget.try_acquire(self.client, places) {
            response.extensions_mut().insert(Admitted(Arc::new(permit)));
        }
    }
}

/// Adds `Accept-Encoding` to Vary.
fn vary(headers: &mut HeaderMap) {
    let names = |value: &HeaderValue| {
        let value = value.to_str().unwrap_or_default().to_ascii_lowercase();
        value.contains("accept-encoding") || value.trim() == "*"
    };
    if !headers.get_all(VARY).iter().any(names) {
        headers.append(VARY, HeaderValue::from_static("accept-encoding"));
    }
}

pin_project! {
    /// Response future of an [`Admission`].
    #[derive(Debug)]
    pub struct AdmissionFuture<F> {
        #[pin]
        inner: F,
        asked: Asked,
    }
}

impl<F, R, E> Future for AdmissionFuture<F>
where
    F: Future<Output = Result<Response<R>, E>>,
    R: Body,
{
    type Output = F::Output;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.project();
        let mut response = ready!(this.inner.poll(cx))?;
        this.asked.judge(&mut response);
        Poll::Ready(Ok(response))
    }
}
