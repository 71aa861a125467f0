//! A tunnel for TCP at the client.

use std::fmt;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// A byte stream in both directions.
pub trait ByteStream: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> ByteStream for T {}

/// A TCP connection of the proxy to a target, as a byte stream.
///
/// `shutdown` ends the client's direction, and the target may still send; a tunnel that is dropped before is reset.
/// Written bytes may wait until the next write or a flush.
pub struct TcpTunnel {
    stream: Box<dyn ByteStream>,
    proxy_status: Option<String>,
}

impl TcpTunnel {
    pub(super) fn new(stream: impl ByteStream + 'static, proxy_status: Option<String>) -> Self {
        Self {
            stream: Box::new(stream),
            proxy_status,
        }
    }

    /// What the proxy says of its way to the target: the Proxy-Status field of its answer.
    pub fn proxy_status(&self) -> Option<&str> {
        self.proxy_status.as_deref()
    }
}

impl AsyncRead for TcpTunnel {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut *self.stream).poll_read(cx, buffer)
    }
}

impl AsyncWrite for TcpTunnel {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut *self.stream).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut *self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut *self.stream).poll_shutdown(cx)
    }
}

impl fmt::Debug for TcpTunnel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TcpTunnel")
            .field("proxy_status", &self.proxy_status)
            .finish_non_exhaustive()
    }
}
