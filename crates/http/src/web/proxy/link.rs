//! Connections to the upstream that record whether they were used before: only on reused ones may a
//! failure mean that the upstream had closed them while they were idle.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};

use hyper::rt::{Read, ReadBufCursor, Write};
use hyper_util::client::legacy::connect::{Connected, Connection};
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio_rustls::client::TlsStream;

/// The name of HTTP/2 in TLS (RFC 7301).
pub(super) const ALPN_HTTP2: &[u8] = b"h2";
/// The name of HTTP/1.1.
pub(super) const ALPN_HTTP11: &[u8] = b"http/1.1";

/// Whether a connection has carried a response. Travels in the extensions of responses and in
/// errors.
#[derive(Debug, Clone, Default)]
pub(super) struct Proven(Arc<AtomicBool>);

impl Proven {
    pub(super) fn set(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    pub(super) fn get(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// A socket.
#[derive(Debug)]
pub(super) enum Wire {
    Tcp(TcpStream),
    #[cfg(unix)]
    Unix(tokio::net::UnixStream),
}

#[derive(Debug)]
enum Stream {
    Plain(Wire),
    Secure(Box<TlsStream<Wire>>),
}

/// One connection to the upstream.
#[derive(Debug)]
pub(super) struct Link {
    io: TokioIo<Stream>,
    proven: Proven,
}

impl Link {
    /// Without TLS.
    pub(super) fn new(wire: Wire) -> Self {
        Self::of(Stream::Plain(wire))
    }

    /// With TLS.
    pub(super) fn secure(stream: TlsStream<Wire>) -> Self {
        Self::of(Stream::Secure(Box::new(stream)))
    }

    fn of(stream: Stream) -> Self {
        Self {
            io: TokioIo::new(stream),
            proven: Proven::default(),
        }
    }

    /// Whether TLS agreed on a protocol other than HTTP/2, or on none.
    pub(super) fn refuses_http2(&self) -> bool {
        match self.io.inner() {
            Stream::Plain(_) => false,
            Stream::Secure(stream) => stream.get_ref().1.alpn_protocol() != Some(ALPN_HTTP2),
        }
    }
}

impl Connection for Link {
    fn connected(&self) -> Connected {
        Connected::new().extra(self.proven.clone())
    }
}

impl Read for Link {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: ReadBufCursor<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_read(cx, buf)
    }
}

impl Write for Link {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.io).poll_write(cx, buf)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_shutdown(cx)
    }

    fn is_write_vectored(&self) -> bool {
        self.io.is_write_vectored()
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.io).poll_write_vectored(cx, bufs)
    }
}

/// What the variants have in common.
trait Bytes: AsyncRead + AsyncWrite + Unpin {}

impl<T: AsyncRead + AsyncWrite + Unpin> Bytes for T {}

impl Wire {
    fn inner(self: Pin<&mut Self>) -> Pin<&mut dyn Bytes> {
        match self.get_mut() {
            Self::Tcp(stream) => Pin::new(stream),
            #[cfg(unix)]
            Self::Unix(stream) => Pin::new(stream),
        }
    }
}

impl AsyncRead for Wire {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        self.inner().poll_read(cx, buffer)
    }
}

impl AsyncWrite for Wire {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.inner().poll_write(cx, bytes)
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.inner().poll_flush(cx)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.inner().poll_shutdown(cx)
    }

    fn is_write_vectored(&self) -> bool {
        // Sockets of both kinds can.
        true
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.inner().poll_write_vectored(cx, slices)
    }
}

impl Stream {
    fn inner(self: Pin<&mut Self>) -> Pin<&mut dyn Bytes> {
        match self.get_mut() {
            Self::Plain(wire) => Pin::new(wire),
            Self::Secure(stream) => Pin::new(stream.as_mut()),
        }
    }
}

impl AsyncRead for Stream {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        self.inner().poll_read(cx, buffer)
    }
}

impl AsyncWrite for Stream {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.inner().poll_write(cx, bytes)
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.inner().poll_flush(cx)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.inner().poll_shutdown(cx)
    }

    fn is_write_vectored(&self) -> bool {
        match self {
            Self::Plain(wire) => wire.is_write_vectored(),
            Self::Secure(stream) => stream.is_write_vectored(),
        }
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.inner().poll_write_vectored(cx, slices)
    }
}
