//! Layer that advertises HTTP/3 to clients of HTTP/1.1 and HTTP/2 (RFC 7838; RFC 9114, section
//! 3.1.1).

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use http::header::ALT_SVC;
use http::{HeaderValue, Request, Response, Version};
use pin_project_lite::pin_project;
use tower::{Layer, Service};

/// Adds `Alt-Svc: h3=":port"; ma=…` to responses of all versions before HTTP/3, unless the service
/// set the field itself.
#[derive(Debug, Clone)]
pub struct AltSvcLayer {
    value: HeaderValue,
}

impl AltSvcLayer {
    /// HTTP/3 is at UDP `port` of the same host; clients may cache that for `max_age`, in whole
    /// seconds.
    pub fn new(port: u16, max_age: Duration) -> Self {
        let value = format!("h3=\":{port}\"; ma={}", max_age.as_secs());
        Self {
            // Only digits and the literal above: always a valid value.
            value: HeaderValue::from_str(&value)
                .unwrap_or_else(|_| HeaderValue::from_static("clear")),
        }
    }
}

impl<S> Layer<S> for AltSvcLayer {
    type Service = AltSvc<S>;

    fn layer(&self, inner: S) -> Self::Service {
        AltSvc {
            inner,
            value: self.value.clone(),
        }
    }
}

/// A service behind an [`AltSvcLayer`].
#[derive(Debug, Clone)]
pub struct AltSvc<S> {
    inner: S,
    value: HeaderValue,
}

impl<S, B, R> Service<Request<B>> for AltSvc<S>
where
    S: Service<Request<B>, Response = Response<R>>,
{
    type Response = Response<R>;
    type Error = S::Error;
    type Future = AltSvcFuture<S::Future>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let older = request.version() < Version::HTTP_3;
        AltSvcFuture {
            value: older.then(|| self.value.clone()),
            inner: self.inner.call(request),
        }
    }
}

pin_project! {
    /// Response future of an [`AltSvc`].
    #[derive(Debug)]
    pub struct AltSvcFuture<F> {
        #[pin]
        inner: F,
        value: Option<HeaderValue>,
    }
}

impl<F, R, E> Future for AltSvcFuture<F>
where
    F: Future<Output = Result<Response<R>, E>>,
{
    type Output = F::Output;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        let this = self.project();
        let mut response = ready!(this.inner.poll(cx))?;
        if let Some(value) = this.value.take() {
            response.headers_mut().entry(ALT_SVC).or_insert(value);
        }
        Poll::Ready(Ok(response))
    }
}
