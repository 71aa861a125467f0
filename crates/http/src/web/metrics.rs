//! Request metrics through the `metrics` crate, and their rendering for Prometheus.
//!
//! | metric | kind | labels |
//! |---|---|---|
//! | `swiftwater_http_requests_total` | counter | version, method, status (class, `2xx`) |
//! | `swiftwater_http_requests_in_flight` | gauge | |
//! | `swiftwater_http_request_duration_seconds` | histogram | version |
//! | `swiftwater_http_response_body_bytes_total` | counter | version |
//! | `swiftwater_http_responses_abandoned_total` | counter | version |
//!
//! The number of label values is bounded whatever clients send: unknown methods count as `other`.

use std::convert::Infallible;
use std::future::{Future, Ready, ready};
use std::pin::Pin;
use std::task::{self, Context, Poll};
use std::time::Instant;

use http::header::{ALLOW, CONTENT_TYPE};
use http::{HeaderValue, Method, Request, Response, StatusCode, Version};
use http_body::Body as HttpBody;
use metrics::{counter, gauge, histogram};
use metrics_exporter_prometheus::{BuildError, Matcher, PrometheusBuilder, PrometheusHandle};
use pin_project_lite::pin_project;
use tower::{Layer, Service};

use super::body::{Body, text_response};
use super::observed_body::{Ending, ObservedBody};

const REQUESTS: &str = "swiftwater_http_requests_total";
const IN_FLIGHT: &str = "swiftwater_http_requests_in_flight";
const DURATION: &str = "swiftwater_http_request_duration_seconds";
const BODY_BYTES: &str = "swiftwater_http_response_body_bytes_total";
const ABANDONED: &str = "swiftwater_http_responses_abandoned_total";

/// Upper bounds of the duration's buckets, in seconds: half a millisecond to a minute.
const BUCKETS: [f64; 14] = [
    0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 5.0, 20.0, 60.0,
];

/// A recorder that renders for Prometheus, with buckets for the durations. It records once
/// installed: `metrics::set_global_recorder` for the process.
pub fn prometheus() -> Result<metrics_exporter_prometheus::PrometheusRecorder, BuildError> {
    let duration = Matcher::Full(DURATION.to_owned());
    let builder = PrometheusBuilder::new().set_buckets_for_metric(duration, &BUCKETS)?;
    Ok(builder.build_recorder())
}

/// Counts requests.
#[derive(Debug, Clone, Copy, Default)]
pub struct MetricsLayer;

impl<S> Layer<S> for MetricsLayer {
    type Service = Counted<S>;

    fn layer(&self, inner: S) -> Self::Service {
        Counted { inner }
    }
}

/// A service behind a [`MetricsLayer`].
#[derive(Debug, Clone)]
pub struct Counted<S> {
    inner: S,
}

impl<S, B, R> Service<Request<B>> for Counted<S>
where
    S: Service<Request<B>, Response = Response<R>>,
    R: HttpBody,
{
    type Response = Response<ObservedBody<R, OnEnd>>;
    type Error = S::Error;
    type Future = CountedFuture<S::Future>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let flight = Flight::new(request.method(), request.version());
        CountedFuture {
            inner: self.inner.call(request),
            flight: Some(flight),
        }
    }
}

/// A request before the end of its response.
#[derive(Debug)]
struct Flight {
    method: &'static str,
    version: &'static str,
    begin: Instant,
}

impl Flight {
    fn new(method: &Method, version: Version) -> Self {
        gauge!(IN_FLIGHT).increment(1.0);
        Self {
            method: method_label(method),
            version: version_label(version),
            begin: Instant::now(),
        }
    }

    fn answered(&self, status: StatusCode) {
        counter!(REQUESTS,
            "version" => self.version,
            "method" => self.method,
            "status" => status_label(status))
        .increment(1);
    }

    fn ended(&self, bytes: u64, ending: Ending) {
        let elapsed = self.begin.elapsed().as_secs_f64();
        histogram!(DURATION, "version" => self.version).record(elapsed);
        counter!(BODY_BYTES, "version" => self.version).increment(bytes);
        if ending == Ending::Abandoned {
            counter!(ABANDONED, "version" => self.version).increment(1);
        }
    }
}

impl Drop for Flight {
    fn drop(&mut self) {
        gauge!(IN_FLIGHT).decrement(1.0);
    }
}

/// What happens when a counted body ends.
type OnEnd = Box<dyn FnOnce(u64, Ending) + Send>;

pin_project! {
    /// Response future of a [`Counted`] service.
    #[derive(Debug)]
    pub struct CountedFuture<F> {
        #[pin]
        inner: F,
        flight: Option<Flight>,
    }
}

impl<F, R, E> Future for CountedFuture<F>
where
    F: Future<Output = Result<Response<R>, E>>,
    R: HttpBody,
{
    type Output = Result<Response<ObservedBody<R, OnEnd>>, E>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.project();
        let response = task::ready!(this.inner.poll(cx))?;
        let flight = this.flight.take();
        if let Some(flight) = &flight {
            flight.answered(response.status());
        }
        let on_end: OnEnd = Box::new(move |bytes, ending| {
            if let Some(flight) = flight {
                flight.ended(bytes, ending);
            }
        });
        Poll::Ready(Ok(response.map(|body| ObservedBody::new(body, on_end))))
    }
}

/// Renders the counts in the text format of Prometheus. Mount it at the path that is scraped,
/// usually `/metrics`; it ignores the request's path.
#[derive(Debug, Clone)]
pub struct PrometheusService {
    handle: PrometheusHandle,
}

impl PrometheusService {
    /// Renders what the recorder behind `handle` has counted.
    pub fn new(handle: PrometheusHandle) -> Self {
        Self { handle }
    }
}

impl<B> Service<Request<B>> for PrometheusService {
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = Ready<Result<Response<Body>, Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        if request.method() != Method::GET && request.method() != Method::HEAD {
            let mut response = text_response(StatusCode::METHOD_NOT_ALLOWED, "");
            let allow = HeaderValue::from_static("GET, HEAD");
            response.headers_mut().insert(ALLOW, allow);
            return ready(Ok(response));
        }
        // Histograms keep raw samples until upkeep runs.
        self.handle.run_upkeep();
        let mut response = Response::new(Body::full(self.handle.render()));
        let format = HeaderValue::from_static("text/plain; version=0.0.4; charset=utf-8");
        response.headers_mut().insert(CONTENT_TYPE, format);
        ready(Ok(response))
    }
}

fn method_label(method: &Method) -> &'static str {
    match *method {
        Method::GET => "GET",
        Method::HEAD => "HEAD",
        Method::POST => "POST",
        Method::PUT => "PUT",
        Method::DELETE => "DELETE",
        Method::PATCH => "PATCH",
        Method::OPTIONS => "OPTIONS",
        Method::CONNECT => "CONNECT",
        Method::TRACE => "TRACE",
        _ => "other",
    }
}

fn version_label(version: Version) -> &'static str {
    match version {
        Version::HTTP_3 => "3",
        Version::HTTP_2 => "2",
        Version::HTTP_11 => "1.1",
        Version::HTTP_10 => "1.0",
        _ => "other",
    }
}

fn status_label(status: StatusCode) -> &'static str {
    match status.as_u16() / 100 {
        1 => "1xx",
        2 => "2xx",
        3 => "3xx",
        4 => "4xx",
        5 => "5xx",
        _ => "other",
    }
}
