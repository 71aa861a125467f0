//! Payload of measurements: zeroes, neither copied nor stored.

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};

/// Bytes written to the transport, or read from it, at once.
pub(super) const BLOCK: usize = 256 * 1024;

static ZEROES: [u8; BLOCK] = [0; BLOCK];

/// A number of zeroes, in blocks; also usable as the content of an HTTP message.
#[derive(Clone, Debug)]
pub(super) struct Zeroes {
    left: u64,
}

impl Zeroes {
    pub(super) const fn new(count: u64) -> Self {
        Self { left: count }
    }

    /// The next block; `None` at the end.
    pub(super) fn next_block(&mut self) -> Option<Bytes> {
        let length = usize::try_from(self.left).unwrap_or(BLOCK).min(BLOCK);
        self.left -= length as u64;
        (length > 0).then(|| Bytes::from_static(&ZEROES[..length]))
    }
}

impl Body for Zeroes {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        Poll::Ready(self.next_block().map(|block| Ok(Frame::data(block))))
    }

    fn is_end_stream(&self) -> bool {
        self.left == 0
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.left)
    }
}
