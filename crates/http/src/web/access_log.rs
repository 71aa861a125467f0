//! One line per request, through `tracing` with the target `access`: fields, so that a subscriber
//! may write text or JSON.

use std::future::Future;
use std::net::SocketAddr;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Instant;

use http::{Method, Request, Response, Uri, Version};
use http_body::Body;
use pin_project_lite::pin_project;
use tower::{Layer, Service};

use super::connection_info::ConnectionInfo;
use super::observed_body::{Ending, ObservedBody};

/// Logs each request when its response has ended: method, path, version, peer, status, bytes of
/// content, time from head to end in microseconds, and how it ended.
///
/// Queries often hold secrets, so they are left out unless [`with_query`](Self::with_query) asks
/// for them.
#[derive(Debug, Clone, Copy, Default)]
pub struct AccessLogLayer {
    query: bool,
}

impl AccessLogLayer {
    /// Logs the query with the path.
    #[must_use]
    pub fn with_query(mut self) -> Self {
        self.query = true;
        self
    }
}

impl<S> Layer<S> for AccessLogLayer {
    type Service = AccessLog<S>;

    fn layer(&self, inner: S) -> Self::Service {
        AccessLog {
            inner,
            query: self.query,
        }
    }
}

/// A service behind an [`AccessLogLayer`].
#[derive(Debug, Clone)]
pub struct AccessLog<S> {
    inner: S,
    query: bool,
}

impl<S, B, R> Service<Request<B>> for AccessLog<S>
where
    S: Service<Request<B>, Response = Response<R>>,
    R: Body,
{
    type Response = Response<ObservedBody<R, LogLine>>;
    type Error = S::Error;
    type Future = AccessLogFuture<S::Future>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let line = Line {
            method: request.method().clone(),
            target: target(request.uri(), self.query),
            version: request.version(),
            peer: request
                .extensions()
                .get::<ConnectionInfo>()
                .map(|connection| connection.peer),
            begin: Instant::now(),
            status: None,
            written: false,
        };
        AccessLogFuture {
            inner: self.inner.call(request),
            line: Some(line),
        }
    }
}

fn target(uri: &Uri, query: bool) -> String {
    match uri.query() {
        Some(text) if query => format!("{}?{text}", uri.path()),
        _ => uri.path().to_owned(),
    }
}

/// What a line says. Dropped unwritten, it says that there was no response.
#[derive(Debug)]
struct Line {
    method: Method,
    target: String,
    version: Version,
    peer: Option<SocketAddr>,
    begin: Instant,
    status: Option<u16>,
    written: bool,
}

impl Line {
    fn write(&mut self, bytes: u64, ending: &'static str) {
        self.written = true;
        tracing::info!(
            target: "access",
            method = %self.method,
            path = self.target,
            version = ?self.version,
            peer = self.peer.map(tracing::field::display),
            status = self.status,
            bytes,
            time_us = self.begin.elapsed().as_micros() as u64,
            ending,
        );
    }
}

impl Drop for Line {
    fn drop(&mut self) {
        if !self.written {
            self.write(0, "unanswered");
        }
    }
}

/// The line of a response that is on its way; written when its body ends.
type LogLine = Box<dyn FnOnce(u64, Ending) + Send>;

pin_project! {
    /// The answer of an [`AccessLog`].
    #[derive(Debug)]
    pub struct AccessLogFuture<F> {
        #[pin]
        inner: F,
        line: Option<Line>,
    }
}

impl<F, R, E> Future for AccessLogFuture<F>
where
    F: Future<Output = Result<Response<R>, E>>,
    R: Body,
{
    type Output = Result<Response<ObservedBody<R, LogLine>>, E>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.project();
        let response = ready!(this.inner.poll(cx))?;
        let mut line = this.line.take();
        if let Some(line) = &mut line {
            line.status = Some(response.status().as_u16());
        }
        let log: LogLine = Box::new(move |bytes, ending| {
            if let Some(line) = &mut line {
                line.write(bytes, ending.as_str());
            }
        });
        Poll::Ready(Ok(response.map(|body| ObservedBody::new(body, log))))
    }
}
