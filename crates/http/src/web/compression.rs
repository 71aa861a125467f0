//! Negotiated compression of responses: `tower_http`'s layer for those that `admission` selects, and
//! weakened entity tags.

mod admission;
mod permitted_body;

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use http::header::{
    CACHE_CONTROL, CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_RANGE, CONTENT_TYPE, ETAG,
};
use http::{HeaderMap, HeaderValue, Request, Response, StatusCode};
use http_body::Body;
use pin_project_lite::pin_project;
use tower::{Layer, Service};
use tower_http::compression::{Compression, CompressionBody, CompressionLayer, CompressionLevel};

pub use permitted_body::PermittedBody;

use super::shared_limit::SharedLimit;
use admission::{Admission, Admitted, OnlyAdmitted};

/// Shorter bodies are not compressed: the gain is small.
pub const MIN_SIZE: u64 = 860;

/// Bodies longer than this are not compressed unless [`Compress::max_size`] is set: 16 MiB.
pub const MAX_SIZE: u64 = 16 << 20;

/// Unit of [`Compress::budget`]: content of this many bytes that is being compressed.
pub const PLACE_SIZE: u64 = 64 << 10;

/// Units taken by a response of unknown length.
pub const PLACES_OF_UNKNOWN: usize = 16;

/// Compresses responses with br, zstd or gzip, as the client prefers (RFC 9110, section 12.5.3), where
/// that pays: whole ones, of at least [`MIN_SIZE`] bytes or of unknown length, whose type is text of some
/// kind and without `Cache-Control: no-transform`. `text/event-stream` is not compressed: compression
/// would delay events.
///
/// Compression costs far more CPU time than a request for it, so it is bounded: responses larger
/// than [`max_size`](Self::max_size) are not compressed, and of the others only as many at once as
/// the [`budget`](Self::budget) has units for; the rest is sent uncompressed.
///
/// Strong entity tags of compressed responses become weak, because the bytes differ from those that
/// the tag identifies (RFC 9110, section 8.8.3.3).
#[derive(Debug, Clone)]
pub struct Compress {
    level: CompressionLevel,
    max_size: u64,
    budget: SharedLimit,
}

impl Default for Compress {
    fn default() -> Self {
        Self {
            level: CompressionLevel::Fastest,
            max_size: MAX_SIZE,
            budget: Self::default_budget(),
        }
    }
}

impl Compress {
    /// Uses a higher compression level than the default, which is the fastest of each algorithm.
    #[must_use]
    pub fn level(mut self, level: CompressionLevel) -> Self {
        self.level = level;
        self
    }

    /// The longest body that is compressed, in bytes. Default: [`MAX_SIZE`].
    #[must_use]
    pub fn max_size(mut self, max_size: u64) -> Self {
        self.max_size = max_size;
        self
    }

    /// Limit of concurrent compression: one unit for each [`PLACE_SIZE`] bytes of content, or
    /// [`PLACES_OF_UNKNOWN`] where the length is not known. Default: 1,024 units, 64 MiB, for this layer
    /// and its clones.
    #[must_use]
    pub fn budget(mut self, budget: SharedLimit) -> Self {
        self.budget = budget;
        self
    }

    /// The default budget.
    pub fn default_budget() -> SharedLimit {
        SharedLimit::new(1024)
    }
}

impl<S> Layer<S> for Compress {
    type Service = Compressed<S>;

    fn layer(&self, inner: S) -> Self::Service {
        let layer = CompressionLayer::new()
            .quality(self.level)
            .compress_when(OnlyAdmitted);
        let admission = Admission::new(inner, self.max_size, self.budget.clone());
        Compressed {
            inner: layer.layer(admission),
        }
    }
}

/// Whether compressing a response is permitted and useful, and the length of its content, if known.
fn is_worthwhile<B: Body>(response: &Response<B>, max_size: u64, length: Option<u64>) -> bool {
    let headers = response.headers();
    response.status() != StatusCode::PARTIAL_CONTENT
        && response.status() != StatusCode::SWITCHING_PROTOCOLS
        && !headers.contains_key(CONTENT_RANGE)
        && !headers.contains_key(CONTENT_ENCODING)
        && length.is_none_or(|length| (MIN_SIZE..=max_size).contains(&length))
        && is_compressible(headers)
        && !forbids_transformation(headers)
}

/// The length of a response's content; for HEAD it is only in the head.
fn content_length<B: Body>(response: &Response<B>, head: bool) -> Option<u64> {
    let of_body = response.body().size_hint().exact().filter(|_| !head);
    let field = || {
        response
            .headers()
            .get(CONTENT_LENGTH)?
            .to_str()
            .ok()?
            .parse()
            .ok()
    };
    of_body.or_else(field)
}

/// Lists types whose content is text or similar. Unknown types are assumed to be compressed
/// already.
fn is_compressible(headers: &HeaderMap) -> bool {
    let Some(content_type) = headers.get(CONTENT_TYPE).and_then(|v| v.to_str().ok()) else {
        return false;
    };
    let essence = content_type
        .split(';')
        .next()
        .unwrap_or_default()
        .trim()
        .to_ascii_lowercase();
    if essence == "text/event-stream" {
        return false;
    }
    essence.starts_with("text/")
        || essence.ends_with("+json")
        || essence.ends_with("+xml")
        || matches!(
            essence.as_str(),
            "application/json"
                | "application/javascript"
                | "application/x-javascript"
                | "application/xml"
                | "application/wasm"
                | "application/x-ndjson"
                | "application/vnd.apple.mpegurl"
                | "application/x-mpegurl"
                | "application/manifest+json"
                | "image/bmp"
                | "image/x-icon"
                | "font/ttf"
                | "font/otf"
        )
}

fn forbids_transformation(headers: &HeaderMap) -> bool {
    headers
        .get_all(CACHE_CONTROL)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .any(|directive| directive.trim().eq_ignore_ascii_case("no-transform"))
}

/// A service behind a [`Compress`].
#[derive(Clone)]
pub struct Compressed<S> {
    inner: Compression<Admission<S>, OnlyAdmitted>,
}

impl<S, B, R> Service<Request<B>> for Compressed<S>
where
    S: Service<Request<B>, Response = Response<R>>,
    R: Body,
{
    type Response = Response<PermittedBody<CompressionBody<R>>>;
    type Error = S::Error;
    type Future =
        CompressFuture<<Compression<Admission<S>, OnlyAdmitted> as Service<Request<B>>>::Future>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        CompressFuture {
            inner: self.inner.call(request),
        }
    }
}

impl<S: fmt::Debug> fmt::Debug for Compressed<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Compressed")
            .field(self.inner.get_ref().get_ref())
            .finish()
    }
}

pin_project! {
    /// Response future of a [`Compressed`] service.
    pub struct CompressFuture<F> {
        #[pin]
        inner: F,
    }
}

impl<F, R, E> Future for CompressFuture<F>
where
    F: Future<Output = Result<Response<CompressionBody<R>>, E>>,
    R: Body,
{
    type Output = Result<Response<PermittedBody<CompressionBody<R>>>, E>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let mut response = ready!(self.project().inner.poll(cx))?;
        let admitted = response.extensions_mut().remove::<Admitted>();
        // Compression removes the length; a body that was already coded mostly has one, and keeps
        // its tag.
        let headers = response.headers_mut();
        if headers.contains_key(CONTENT_ENCODING) && !headers.contains_key(CONTENT_LENGTH) {
            weaken(headers);
        }
        Poll::Ready(Ok(response.map(|body| PermittedBody::new(body, admitted))))
    }
}

fn weaken(headers: &mut HeaderMap) {
    let Some(tag) = headers.get(ETAG) else {
        return;
    };
    if tag.as_bytes().starts_with(b"W/") {
        return;
    }
    let weak = [b"W/", tag.as_bytes()].concat();
    if let Ok(weak) = HeaderValue::from_bytes(&weak) {
        headers.insert(ETAG, weak);
    }
}
