//! Pieces of a byte stream, in buffers that grow with what arrives at once.

use std::future::Future;
use std::io;
use std::pin::pin;
use std::task::{Context, Poll, ready};

use bytes::{Bytes, BytesMut};
use tokio::io::{AsyncRead, AsyncReadExt};

/// Buffer of a stream on which little arrives at once, bytes: what an idle stream holds.
const SMALLEST: usize = 2 * 1024;

/// Largest buffer, bytes.
const LARGEST: usize = 16 * 1024;

/// Reads a byte stream piece by piece: each holds at most 16 KiB. A stream that waits holds a buffer of 2 KiB,
/// or more if the last pieces were larger.
#[derive(Debug)]
pub struct ChunkReader<R> {
    reader: R,
    buffer: BytesMut,
    size: usize,
}

impl<R: AsyncRead + Unpin> ChunkReader<R> {
    /// Reads from `reader`.
    pub fn new(reader: R) -> Self {
        Self {
            reader,
            buffer: BytesMut::new(),
            size: SMALLEST,
        }
    }

    /// The next piece, which is not empty; `None` at the end.
    pub fn poll_chunk(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<Option<Bytes>>> {
        if self.buffer.capacity() < self.size {
            self.buffer.reserve(self.size);
        }
        let space = self.buffer.capacity();
        // Has no state of its own between calls.
        let read = ready!(pin!(self.reader.read_buf(&mut self.buffer)).poll(cx))?;
        if read == 0 {
            return Poll::Ready(Ok(None));
        }
        self.size = if read == space {
            (2 * self.size).min(LARGEST)
        } else if read < self.size / 4 {
            (self.size / 2).max(SMALLEST)
        } else {
            self.size
        };
        Poll::Ready(Ok(Some(self.buffer.split().freeze())))
    }

    /// As [`poll_chunk`](Self::poll_chunk).
    pub async fn chunk(&mut self) -> io::Result<Option<Bytes>> {
        std::future::poll_fn(|cx| self.poll_chunk(cx)).await
    }
}
