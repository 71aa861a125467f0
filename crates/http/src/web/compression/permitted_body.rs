//! A body that returns its units to the budget when it has ended.

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use http_body::{Body, Frame, SizeHint};
use pin_project_lite::pin_project;

use super::admission::Admitted;

pin_project! {
    /// The content of a response behind a [`Compress`](super::Compress).
    #[derive(Debug)]
    pub struct PermittedBody<B> {
        #[pin]
        inner: B,
        admitted: Option<Admitted>,
    }
}

impl<B> PermittedBody<B> {
    pub(super) fn new(inner: B, admitted: Option<Admitted>) -> Self {
        Self { inner, admitted }
    }
}

impl<B: Body> Body for PermittedBody<B> {
    type Data = B::Data;
    type Error = B::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<B::Data>, B::Error>>> {
        let this = self.project();
        let frame = ready!(this.inner.poll_frame(cx));
        if !matches!(frame, Some(Ok(_))) {
            *this.admitted = None;
        }
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.inner.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.inner.size_hint()
    }
}
