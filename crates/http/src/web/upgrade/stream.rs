//! The byte stream of an accepted request, between a service and the bodies of request and response.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, ready};

use bytes::{Buf, Bytes};
use http_body::{Body as HttpBody, Frame};
use tokio::io::{AsyncRead, AsyncWrite, DuplexStream, ReadBuf, duplex};

use super::chunks::ChunkReader;
use crate::web::body::Body;

/// Bytes that a service has written and the server has not taken yet, at most.
const BUFFER: usize = 16 * 1024;

/// The byte stream that an accepted request became.
///
/// Reading returns the client's bytes, and 0 at their end. Writing waits while the client does not read. After
/// `shutdown` the client sees an orderly end; if the stream is dropped without it, the client's stream is reset or its
/// connection closed. If the client is gone, reading and writing fail.
#[derive(Debug)]
pub struct UpgradedStream {
    incoming: Body,
    /// Read, but not returned.
    rest: Bytes,
    outgoing: DuplexStream,
    is_shut_down: Arc<AtomicBool>,
}

impl UpgradedStream {
    /// The stream that reads `incoming`, and the body of what is written to it.
    pub(super) fn new(incoming: Body) -> (Self, Body) {
        let (outgoing, reader) = duplex(BUFFER);
        let is_shut_down = Arc::new(AtomicBool::new(false));
        let body = Outgoing {
            chunks: ChunkReader::new(reader),
            is_shut_down: Arc::clone(&is_shut_down),
        };
        let stream = Self {
            incoming,
            rest: Bytes::new(),
            outgoing,
            is_shut_down,
        };
        (stream, Body::new(body))
    }
}

impl AsyncRead for UpgradedStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        while self.rest.is_empty() {
            match ready!(Pin::new(&mut self.incoming).poll_frame(cx)) {
                None => return Poll::Ready(Ok(())),
                Some(Err(error)) => return Poll::Ready(Err(io::Error::other(error))),
                // There are no trailers after a byte stream.
                Some(Ok(frame)) => self.rest = frame.into_data().unwrap_or_default(),
            }
        }
        let count = self.rest.len().min(buffer.remaining());
        buffer.put_slice(&self.rest[..count]);
        self.rest.advance(count);
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for UpgradedStream {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.outgoing).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.outgoing).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.is_shut_down.store(true, Ordering::Release);
        Pin::new(&mut self.outgoing).poll_shutdown(cx)
    }
}

/// What a service writes.
struct Outgoing {
    chunks: ChunkReader<DuplexStream>,
    is_shut_down: Arc<AtomicBool>,
}

impl HttpBody for Outgoing {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<io::Result<Frame<Bytes>>>> {
        Poll::Ready(match ready!(self.chunks.poll_chunk(cx)) {
            Ok(Some(chunk)) => Some(Ok(Frame::data(chunk))),
            Ok(None) if self.is_shut_down.load(Ordering::Acquire) => None,
            Ok(None) => Some(Err(io::ErrorKind::UnexpectedEof.into())),
            Err(error) => Some(Err(error)),
        })
    }
}
