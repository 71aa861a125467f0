//! The body type of services whose messages come from more than one source, and short plain-text
//! responses.

use std::any::Any;
use std::error::Error;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use futures_util::FutureExt;
use http::header::{CONTENT_LENGTH, CONTENT_TYPE};
use http::{HeaderValue, Response, StatusCode};
use http_body::{Frame, SizeHint};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Empty, Full};

/// Error of a body of unknown type.
pub type BoxError = Box<dyn Error + Send + Sync>;

/// The error of a response's body whose request turned out to be malformed after the head of the response was sent, as in a
/// tunnel: over HTTP/3 the stream is reset with H3_MESSAGE_ERROR (RFC 9114, section 4.1.2), not H3_INTERNAL_ERROR.
#[derive(Clone, Copy, Debug, thiserror::Error)]
#[error("the request's content is malformed")]
pub struct MalformedMessage;

/// A body of erased type: servers pass it to services, and services may answer with it.
#[derive(Debug)]
pub struct Body(Content);

#[derive(Debug)]
enum Content {
    /// In memory; `None` once it was returned, or if there is none.
    Whole(Option<Bytes>),
    Other(UnsyncBoxBody<Bytes, BoxError>),
}

impl Body {
    /// `body` with its type and error type erased. Allocates, except for a `Body`, `Full<Bytes>` and
    /// `Empty<Bytes>`.
    pub fn new<B>(body: B) -> Self
    where
        B: http_body::Body<Data = Bytes> + Send + 'static,
        B::Error: Into<BoxError>,
    {
        let mut body = Some(body);
        let any: &mut dyn Any = &mut body;
        if let Some(body) = any.downcast_mut::<Option<Self>>().and_then(Option::take) {
            return body;
        }
        if let Some(Some(full)) = any.downcast_mut::<Option<Full<Bytes>>>() {
            let frame = full.frame().now_or_never().flatten();
            let data = frame.and_then(|frame| frame.ok()?.into_data().ok());
            return Self(Content::Whole(data));
        }
        if any.is::<Option<Empty<Bytes>>>() {
            return Self::empty();
        }
        body.map_or_else(Self::empty, |body| {
            Self(Content::Other(body.map_err(Into::into).boxed_unsync()))
        })
    }

    /// A body without content.
    pub const fn empty() -> Self {
        Self(Content::Whole(None))
    }

    /// True if the content is in memory, or there is none.
    pub(crate) fn is_in_memory(&self) -> bool {
        matches!(self.0, Content::Whole(_))
    }

    /// A body that is already in memory.
    pub fn full(content: impl Into<Bytes>) -> Self {
        let content = content.into();
        Self(Content::Whole((!content.is_empty()).then_some(content)))
    }
}

impl Default for Body {
    fn default() -> Self {
        Self::empty()
    }
}

impl From<Bytes> for Body {
    fn from(content: Bytes) -> Self {
        Self::full(content)
    }
}

impl From<Vec<u8>> for Body {
    fn from(content: Vec<u8>) -> Self {
        Self::full(content)
    }
}

impl From<String> for Body {
    fn from(content: String) -> Self {
        Self::full(content)
    }
}

impl From<&'static str> for Body {
    fn from(content: &'static str) -> Self {
        Self::full(content)
    }
}

impl From<()> for Body {
    fn from((): ()) -> Self {
        Self::empty()
    }
}

impl http_body::Body for Body {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        match &mut self.0 {
            Content::Whole(data) => Poll::Ready(data.take().map(|data| Ok(Frame::data(data)))),
            Content::Other(body) => Pin::new(body).poll_frame(cx),
        }
    }

    fn is_end_stream(&self) -> bool {
        match &self.0 {
            Content::Whole(data) => data.is_none(),
            Content::Other(body) => body.is_end_stream(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.0 {
            Content::Whole(data) => {
                SizeHint::with_exact(data.as_ref().map_or(0, |data| data.len() as u64))
            }
            Content::Other(body) => body.size_hint(),
        }
    }
}

/// A short response in plain text: the status code and `text`.
pub fn text_response(status: StatusCode, text: &str) -> Response<Body> {
    let line = status_line(status, text);
    let length = line.len();
    let mut response = Response::new(Body::full(line));
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(
        CONTENT_TYPE,
        HeaderValue::from_static("text/plain; charset=utf-8"),
    );
    headers.insert(CONTENT_LENGTH, HeaderValue::from(length));
    response
}

/// The content of a short response, one line: `404 Not Found: no such file`.
pub(crate) fn status_line(status: StatusCode, text: &str) -> String {
    let reason = status.canonical_reason().unwrap_or_default();
    if text.is_empty() {
        format!("{} {reason}\n", status.as_u16())
    } else {
        format!("{} {reason}: {text}\n", status.as_u16())
    }
}
