//! The content of an accepted CONNECT request as one byte stream.

use std::fmt;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::{Buf, Bytes};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::client::{ConnectContent, RecvContent, SendContent};
use crate::h3::{BodyError, MessagePart, SendError};

/// Bytes that are taken from a writer before the transport accepts them, at most.
const WRITTEN_AT_ONCE: usize = 16 * 1024;

/// The byte stream that an accepted CONNECT request became.
///
/// Writing waits while flow control or the send buffer hold it back; what the transport has not accepted yet leaves
/// with the next write or with a flush. `shutdown` ends the client's direction alone. If the stream is dropped
/// before, that direction is reset. A peer that resets the stream, and a connection that has ended, are errors of
/// [`io::ErrorKind::ConnectionReset`] and [`io::ErrorKind::ConnectionAborted`].
pub struct ConnectStream {
    send: SendContent,
    receive: RecvContent,
    /// Received, but not read.
    unread: Bytes,
    /// Written, but not accepted by the transport.
    unsent: Bytes,
}

impl ConnectContent {
    /// Both directions as one byte stream.
    pub fn into_stream(self) -> ConnectStream {
        ConnectStream {
            send: self.send,
            receive: self.receive,
            unread: Bytes::new(),
            unsent: Bytes::new(),
        }
    }
}

impl ConnectStream {
    fn poll_unsent(&mut self, cx: &Context<'_>) -> Poll<io::Result<()>> {
        if self.unsent.is_empty() {
            return Poll::Ready(Ok(()));
        }
        let exchange = &self.send.exchange;
        let written = exchange.poll_write(cx, &mut self.unsent, false);
        written.map_err(write_error)
    }
}

impl AsyncRead for ConnectStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        while self.unread.is_empty() && !self.receive.is_over {
            match ready!(self.receive.exchange.poll_read(cx)) {
                Ok(MessagePart::Data(data)) => self.unread = data,
                // There are no trailers after a byte stream.
                Ok(MessagePart::Trailers(_) | MessagePart::Blocked) => {}
                Ok(MessagePart::End) => self.receive.is_over = true,
                Err(error) => {
                    self.receive.is_over = true;
                    return Poll::Ready(Err(read_error(error)));
                }
            }
        }
        let count = self.unread.len().min(buffer.remaining());
        buffer.put_slice(&self.unread[..count]);
        self.unread.advance(count);
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for ConnectStream {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        ready!(self.poll_unsent(cx))?;
        let count = bytes.len().min(WRITTEN_AT_ONCE);
        self.unsent = Bytes::copy_from_slice(&bytes[..count]);
        match self.poll_unsent(cx) {
            Poll::Ready(Err(error)) => Poll::Ready(Err(error)),
            Poll::Ready(Ok(())) | Poll::Pending => Poll::Ready(Ok(count)),
        }
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.poll_unsent(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.send.is_finished {
            return Poll::Ready(Ok(()));
        }
        ready!(self.poll_unsent(cx))?;
        Poll::Ready(self.send.finish().map_err(write_error))
    }
}

fn read_error(error: BodyError) -> io::Error {
    let kind = match &error {
        BodyError::Reset(_) => io::ErrorKind::ConnectionReset,
        BodyError::ConnectionLost(_) => io::ErrorKind::ConnectionAborted,
        _ => io::ErrorKind::InvalidData,
    };
    io::Error::new(kind, error)
}

fn write_error(error: SendError) -> io::Error {
    let kind = match &error {
        SendError::Stopped(_) => io::ErrorKind::ConnectionReset,
        SendError::ConnectionLost(_) => io::ErrorKind::ConnectionAborted,
        _ => io::ErrorKind::BrokenPipe,
    };
    io::Error::new(kind, error)
}

impl fmt::Debug for ConnectStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ConnectStream")
            .field("id", &self.send.exchange.id)
            .finish_non_exhaustive()
    }
}
