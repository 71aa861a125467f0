//! A body that reports its bytes and how it ended. Used by the access log and the metrics.

use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Buf;
use http_body::{Body, Frame, SizeHint};
use pin_project_lite::pin_project;

/// How a body ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Ending {
    /// Everything was read.
    Complete,
    /// The body failed.
    Failed,
    /// The body was dropped before its end: the peer went away.
    Abandoned,
}

impl Ending {
    /// The name used in logs.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Complete => "complete",
            Self::Failed => "failed",
            Self::Abandoned => "abandoned",
        }
    }
}

pin_project! {
    /// A body that reports to `report` once, when it ends or is dropped: its bytes, and how it
    /// ended.
    #[derive(Debug)]
    pub struct ObservedBody<B, F: FnOnce(u64, Ending)>  {
        #[pin]
        inner: B,
        report: Report<F>,
    }
}

impl<B: Body, F: FnOnce(u64, Ending)> ObservedBody<B, F> {
    /// Wraps `inner`.
    pub fn new(inner: B, report: F) -> Self {
        let mut report = Report {
            report: Some(report),
            bytes: 0,
        };
        if inner.is_end_stream() {
            report.send(Ending::Complete);
        }
        Self { inner, report }
    }
}

#[derive(Debug)]
struct Report<F: FnOnce(u64, Ending)> {
    report: Option<F>,
    bytes: u64,
}

impl<F: FnOnce(u64, Ending)> Report<F> {
    fn send(&mut self, ending: Ending) {
        if let Some(report) = self.report.take() {
            report(self.bytes, ending);
        }
    }
}

impl<F: FnOnce(u64, Ending)> Drop for Report<F> {
    fn drop(&mut self) {
        self.send(Ending::Abandoned);
    }
}

impl<B: Body, F: FnOnce(u64, Ending)> Body for ObservedBody<B, F> {
    type Data = B::Data;
    type Error = B::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<B::Data>, B::Error>>> {
        let mut this = self.project();
        let polled = this.inner.as_mut().poll_frame(cx);
        match &polled {
            Poll::Pending => {}
            Poll::Ready(None) => this.report.send(Ending::Complete),
            Poll::Ready(Some(Err(_))) => this.report.send(Ending::Failed),
            Poll::Ready(Some(Ok(frame))) => {
                this.report.bytes += frame.data_ref().map_or(0, Buf::remaining) as u64;
                // Nothing follows trailers, and the body must not be polled again (RFC 9110,
                // section 6.5).
                if frame.is_trailers() || this.inner.is_end_stream() {
                    this.report.send(Ending::Complete);
                }
            }
        }
        polled
    }

    fn is_end_stream(&self) -> bool {
        self.inner.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.inner.size_hint()
    }
}
