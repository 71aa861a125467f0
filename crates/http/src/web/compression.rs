//! Negotiated compression of responses: `tower_http`'s layer with a predicate that leaves alone
//! what gains nothing or must not change, and entity tags that stay true.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use http::header::{CACHE_CONTROL, CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE, ETAG};
use http::{HeaderMap, HeaderValue, Request, Response, StatusCode};
use http_body::Body;
use pin_project_lite::pin_project;
use tower::{Layer, Service};
use tower_http::compression::predicate::Predicate;
use tower_http::compression::{Compression, CompressionBody, CompressionLayer, CompressionLevel};

/// Bodies shorter than this hardly get shorter.
pub const MIN_SIZE: u64 = 860;

/// Compresses responses with br, zstd or gzip, as the client prefers (RFC 9110, section 12.5.3),
/// where that pays. Strong entity tags of compressed responses become weak, since the bytes are no
/// longer those the tag stood for (RFC 9110, section 8.8.3.3).
#[derive(Debug, Clone)]
pub struct Compress {
    level: CompressionLevel,
}

impl Default for Compress {
    fn default() -> Self {
        Self {
            level: CompressionLevel::Fastest,
        }
    }
}

impl Compress {
    /// Compresses harder than the default, which is the fastest of each algorithm.
    #[must_use]
    pub fn level(mut self, level: CompressionLevel) -> Self {
        self.level = level;
        self
    }
}

impl<S> Layer<S> for Compress {
    type Service = Compressed<S>;

    fn layer(&self, inner: S) -> Self::Service {
        let layer = CompressionLayer::new()
            .quality(self.level)
            .compress_when(Worthwhile);
        Compressed {
            inner: layer.layer(inner),
        }
    }
}

/// Which responses are compressed: whole ones, of at least [`MIN_SIZE`] bytes or of unknown length,
/// whose type is text of some kind and that `Cache-Control: no-transform` does not forbid to touch.
/// `text/event-stream` is left alone: compression would hold events back.
#[derive(Debug, Clone, Copy, Default)]
pub struct Worthwhile;

impl Predicate for Worthwhile {
    fn should_compress<B: Body>(&self, response: &Response<B>) -> bool {
        let headers = response.headers();
        let partial = response.status() == StatusCode::PARTIAL_CONTENT;
        let length = response
            .body()
            .size_hint()
            .exact()
            .or_else(|| headers.get(CONTENT_LENGTH)?.to_str().ok()?.parse().ok());
        !partial
            && length.is_none_or(|length| length >= MIN_SIZE)
            && is_compressible(headers)
            && !forbids_transformation(headers)
    }
}

/// Names types whose content is text, or close to it. What is unknown is taken for compressed.
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
    inner: Compression<S, Worthwhile>,
}

impl<S, B, R> Service<Request<B>> for Compressed<S>
where
    S: Service<Request<B>, Response = Response<R>>,
    R: Body,
{
    type Response = Response<CompressionBody<R>>;
    type Error = S::Error;
    type Future = CompressFuture<<Compression<S, Worthwhile> as Service<Request<B>>>::Future>;

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
            .field(self.inner.get_ref())
            .finish()
    }
}

pin_project! {
    /// The answer of a [`Compressed`] service.
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
    type Output = F::Output;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        let mut response = ready!(self.project().inner.poll(cx))?;
        // Compression takes the length away; a body that came coded mostly has one, and keeps its
        // tag.
        let headers = response.headers_mut();
        if headers.contains_key(CONTENT_ENCODING) && !headers.contains_key(CONTENT_LENGTH) {
            weaken(headers);
        }
        Poll::Ready(Ok(response))
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
