//! A socket wrapper that counts bytes.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll, ready};

use pin_project_lite::pin_project;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// Bytes read and written.
#[derive(Debug, Default)]
pub(super) struct Meter {
    pub(super) sent: AtomicU64,
    pub(super) received: AtomicU64,
}

pin_project! {
    /// `inner`, with its bytes counted in `meter`.
    #[derive(Debug)]
    pub(super) struct Metered<S> {
        #[pin]
        inner: S,
        meter: Arc<Meter>,
    }
}

impl<S> Metered<S> {
    pub(super) fn new(inner: S, meter: Arc<Meter>) -> Self {
        Self { inner, meter }
    }

    pub(super) fn inner(&self) -> &S {
        &self.inner
    }
}

impl<S: AsyncRead> AsyncRead for Metered<S> {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = self.project();
        let before = buffer.filled().len();
        let result = ready!(this.inner.poll_read(cx, buffer));
        let read = buffer.filled().len().saturating_sub(before);
        this.meter
            .received
            .fetch_add(read as u64, Ordering::Relaxed);
        Poll::Ready(result)
    }
}

impl<S: AsyncWrite> AsyncWrite for Metered<S> {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let this = self.project();
        let written = ready!(this.inner.poll_write(cx, bytes))?;
        this.meter.sent.fetch_add(written as u64, Ordering::Relaxed);
        Poll::Ready(Ok(written))
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let this = self.project();
        let written = ready!(this.inner.poll_write_vectored(cx, slices))?;
        this.meter.sent.fetch_add(written as u64, Ordering::Relaxed);
        Poll::Ready(Ok(written))
    }

    fn is_write_vectored(&self) -> bool {
        self.inner.is_write_vectored()
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.project().inner.poll_flush(cx)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.project().inner.poll_shutdown(cx)
    }
}
