//! Received content of a message, read by services and by users of the client.

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http::HeaderMap;
use http::header::CONTENT_LENGTH;
use http_body::{Body, Frame, SizeHint};

use super::exchange::Exchange;
use crate::h3::{self, BodyError, Code};

/// The content of a request or response received over HTTP/3, and its trailers.
///
/// Unread content counts against flow control: the peer stops sending when the window is full.
/// Dropping the body before its end sends STOP_SENDING.
pub struct RecvBody {
    /// Content that came with the head.
    first: Bytes,
    /// Reads the rest; `None` once it is over.
    exchange: Option<Arc<Exchange>>,
    /// Remaining bytes announced by Content-Length.
    remaining: Option<u64>,
    /// Code of STOP_SENDING if the rest isn't needed.
    unwanted: Code,
}

impl RecvBody {
    /// Content to be read from `exchange`.
    pub(super) fn new(exchange: Arc<Exchange>, headers: &HeaderMap, unwanted: Code) -> Self {
        let length = headers.get(CONTENT_LENGTH);
        Self {
            first: Bytes::new(),
            exchange: Some(exchange),
            remaining: length.and_then(|value| value.to_str().ok()?.parse().ok()),
            unwanted,
        }
    }

    /// Content that was received as a whole.
    pub(super) fn whole(content: Bytes) -> Self {
        Self {
            remaining: Some(content.len() as u64),
            first: content,
            exchange: None,
            unwanted: Code::NO_ERROR,
        }
    }
}

impl Body for RecvBody {
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        if !self.first.is_empty() {
            self.remaining = Some(0);
            let content = std::mem::take(&mut self.first);
            return Poll::Ready(Some(Ok(Frame::data(content))));
        }
        let Some(exchange) = &self.exchange else {
            return Poll::Ready(None);
        };
        let part = ready!(exchange.poll_read(cx));
        Poll::Ready(match part {
            Ok(h3::MessagePart::Data(data)) => {
                self.remaining = self
                    .remaining
                    .map(|remaining| remaining.saturating_sub(data.len() as u64));
                Some(Ok(Frame::data(data)))
            }
            Ok(h3::MessagePart::Trailers(trailers)) => Some(Ok(Frame::trailers(trailers))),
            Ok(h3::MessagePart::End | h3::MessagePart::Blocked) => {
                self.exchange = None;
                self.remaining = Some(0);
                None
            }
            Err(error) => {
                self.exchange = None;
                Some(Err(error))
            }
        })
    }

    fn is_end_stream(&self) -> bool {
        self.exchange.is_none() && self.first.is_empty()
    }

    fn size_hint(&self) -> SizeHint {
        self.remaining
            .map_or_else(SizeHint::default, SizeHint::with_exact)
    }
}

impl Drop for RecvBody {
    fn drop(&mut self) {
        if let Some(exchange) = &self.exchange {
            exchange.stop(self.unwanted);
        }
    }
}

impl fmt::Debug for RecvBody {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RecvBody")
            .field(
                "stream",
                &self.exchange.as_ref().map(|exchange| exchange.id),
            )
            .field("remaining", &self.remaining)
            .finish_non_exhaustive()
    }
}
