//! Content of responses, without a copy.

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use job::Outgoing;

/// Payload; none after all was sent.
pub(crate) struct Content(Option<Outgoing>);

impl Content {
    pub(crate) fn new(outgoing: Outgoing) -> Self {
        Self(Some(outgoing).filter(|outgoing| outgoing.left() > 0))
    }

    pub(crate) const fn empty() -> Self {
        Self(None)
    }
}

impl Body for Content {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let Some(outgoing) = &mut self.0 else {
            return Poll::Ready(None);
        };
        let piece = outgoing.next_bytes();
        outgoing.advance(piece.len());
        if outgoing.left() == 0 {
            self.0 = None;
        }
        Poll::Ready(Some(Ok(Frame::data(piece))))
    }

    fn is_end_stream(&self) -> bool {
        self.0.is_none()
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.0.map_or(0, |outgoing| outgoing.left()))
    }
}
