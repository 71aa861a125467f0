//! One record per request: through `tracing` with the target `access`, or to a function given by
//! the server that writes text or JSON.

use std::fmt;
use std::future::Future;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant};

use http::header::{HeaderValue, REFERER, USER_AGENT};
use http::{Method, Request, Response, Uri, Version};
use http_body::Body;
use pin_project_lite::pin_project;
use tower::{Layer, Service};

use super::connection_info::ConnectionInfo;
use super::early_data::is_early;
use super::host::host;
use super::observed_body::{Ending, ObservedBody};

/// A completed request.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Record {
    /// The method.
    pub method: Method,
    /// The path, with the query if [`AccessLogLayer::with_query`] asked for it; as sent by the client.
    pub target: String,
    /// The requested host, with its port if the client sent one.
    pub host: Option<String>,
    /// The version of HTTP.
    pub version: Version,
    /// The address of the client, if the server provides it ([`ConnectionInfo`]).
    pub peer: Option<SocketAddr>,
    /// Whether the request may be a replay ([`early_data`](super::early_data)).
    pub early: bool,
    /// The status of the response; `None` if there was none.
    pub status: Option<u16>,
    /// Bytes of content of the response.
    pub bytes: u64,
    /// From the head of the request to the end of the response.
    pub elapsed: Duration,
    /// How the response ended; `None` if there was none.
    pub ending: Option<Ending>,
    /// The field `Referer`, if [`AccessLogLayer::with_client_fields`] asked for it.
    pub referer: Option<HeaderValue>,
    /// The field `User-Agent`, if [`AccessLogLayer::with_client_fields`] asked for it.
    pub user_agent: Option<HeaderValue>,
}

impl Record {
    /// A request of which only this is known: for servers that answer without this layer.
    pub fn new(method: Method, target: String, version: Version) -> Self {
        Self {
            method,
            target,
            host: None,
            version,
            peer: None,
            early: false,
            status: None,
            bytes: 0,
            elapsed: Duration::ZERO,
            ending: None,
            referer: None,
            user_agent: None,
        }
    }

    /// The word for how it ended: `complete`, `failed`, `abandoned`, `unanswered`.
    pub fn ending(&self) -> &'static str {
        self.ending.map_or("unanswered", Ending::as_str)
    }
}

/// Destination of the records.
#[derive(Clone)]
struct Sink(Arc<dyn Fn(&Record) + Send + Sync>);

impl fmt::Debug for Sink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Sink")
    }
}

impl Default for Sink {
    fn default() -> Self {
        Self(Arc::new(trace))
    }
}

/// Writes a record with `tracing`.
fn trace(record: &Record) {
    tracing::info!(
        target: "access",
        method = %record.method,
        path = record.target,
        version = ?record.version,
        peer = record.peer.map(tracing::field::display),
        status = record.status,
        bytes = record.bytes,
        time_us = record.elapsed.as_micros() as u64,
        ending = record.ending(),
    );
}

/// Logs each request when its response has ended: method, path, version, peer, status, bytes of
/// content, time from head to end in microseconds, and how it ended.
///
/// Queries often hold secrets, so they are left out unless [`with_query`](Self::with_query) is set.
#[derive(Debug, Clone, Default)]
pub struct AccessLogLayer {
    query: bool,
    client_fields: bool,
    sink: Sink,
}

impl AccessLogLayer {
    /// Hands each request to `sink` instead of `tracing`. It is called on serving threads, so it must
    /// not block.
    pub fn to(sink: impl Fn(&Record) + Send + Sync + 'static) -> Self {
        Self {
            query: false,
            client_fields: false,
            sink: Sink(Arc::new(sink)),
        }
    }

    /// Records what clients say of themselves: `Referer` and `User-Agent`.
    #[must_use]
    pub fn with_client_fields(mut self) -> Self {
        self.client_fields = true;
        self
    }

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
            layer: self.clone(),
        }
    }
}

/// A service behind an [`AccessLogLayer`].
#[derive(Debug, Clone)]
pub struct AccessLog<S> {
    inner: S,
    layer: AccessLogLayer,
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
        let method = request.method().clone();
        let target = target(request.uri(), self.layer.query);
        let mut record = Record::new(method, target, request.version());
        record.host = host(&request).map(str::to_owned);
        let connection = request.extensions().get::<ConnectionInfo>();
        record.peer = connection.map(|connection| connection.peer);
        record.early = is_early(&request);
        if self.layer.client_fields {
            let field = |name| request.headers().get(name).cloned();
            (record.referer, record.user_agent) = (field(REFERER), field(USER_AGENT));
        }
        let line = Line {
            record,
            begin: Instant::now(),
            sink: self.layer.sink.clone(),
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

/// The record in progress. If dropped before it is written, it reports that there was no response.
#[derive(Debug)]
struct Line {
    record: Record,
    begin: Instant,
    sink: Sink,
    written: bool,
}

impl Line {
    fn write(&mut self, bytes: u64, ending: Option<Ending>) {
        self.written = true;
        self.record.bytes = bytes;
        self.record.ending = ending;
        self.record.elapsed = self.begin.elapsed();
        (self.sink.0)(&self.record);
    }
}

impl Drop for Line {
    fn drop(&mut self) {
        if !self.written {
            self.write(0, None);
        }
    }
}

/// The record of a response in progress; written when its body ends.
type LogLine = Box<dyn FnOnce(u64, Ending) + Send>;

pin_project! {
    /// Response future of an [`AccessLog`].
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
            line.record.status = Some(response.status().as_u16());
        }
        let log: LogLine = Box::new(move |bytes, ending| {
            if let Some(line) = &mut line {
                line.write(bytes, Some(ending));
            }
        });
        Poll::Ready(Ok(response.map(|body| ObservedBody::new(body, log))))
    }
}
