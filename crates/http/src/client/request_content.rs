//! The content of a request, which can be sent again as long as none of it was read.

use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http_body::{Body as _, Frame, SizeHint};
use thiserror::Error;
use tokio::time::Instant;

use crate::web::body::{Body, BoxError};

/// A request's content. Clones share it.
#[derive(Clone)]
pub(super) struct RequestContent {
    state: Arc<Mutex<State>>,
}

struct State {
    body: Body,
    /// The request has no content.
    empty: bool,
    touched: bool,
    ended: bool,
    /// When content was last read.
    last: Option<Instant>,
    /// Only the connection that got it last may read.
    lease: u64,
}

/// A connection reads content that was given to another connection.
#[derive(Debug, Error)]
#[error("the request is sent on another connection")]
struct Superseded;

impl RequestContent {
    pub(super) fn new(body: Body) -> Self {
        let empty = body.is_end_stream();
        let state = State {
            body,
            empty,
            touched: false,
            ended: empty,
            last: None,
            lease: 0,
        };
        Self {
            state: Arc::new(Mutex::new(state)),
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The content for a connection to send. An earlier connection gets nothing more.
    pub(super) fn lend(&self) -> Body {
        let mut state = self.lock();
        state.lease += 1;
        if state.empty {
            return Body::empty();
        }
        Body::new(Lent {
            upload: self.clone(),
            lease: state.lease,
        })
    }

    /// As [`RequestContent::lend`], for a connection that reads what is in memory before anything else: it gets that
    /// itself, which counts as read.
    pub(super) fn lend_at_once(&self) -> Body {
        let mut state = self.lock();
        if state.empty || !state.body.is_in_memory() {
            drop(state);
            return self.lend();
        }
        state.lease += 1;
        state.touched = true;
        state.ended = true;
        std::mem::take(&mut state.body)
    }

    /// True if there is no content.
    pub(super) fn is_empty(&self) -> bool {
        self.lock().empty
    }

    /// True if it can be sent from its beginning.
    pub(super) fn is_whole(&self) -> bool {
        let state = self.lock();
        state.empty || !state.touched
    }

    /// True if its end was read.
    pub(super) fn is_over(&self) -> bool {
        self.lock().ended
    }

    /// When a connection last read some of it; `None` if that was at once, or has not happened.
    pub(super) fn last_taken(&self) -> Option<Instant> {
        self.lock().last
    }
}

/// The content as one connection reads it.
struct Lent {
    upload: RequestContent,
    lease: u64,
}

impl http_body::Body for Lent {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        let mut state = self.upload.lock();
        if state.lease != self.lease {
            return Poll::Ready(Some(Err(Superseded.into())));
        }
        let frame = ready!(Pin::new(&mut state.body).poll_frame(cx));
        state.touched = true;
        state.last = Some(Instant::now());
        state.ended = !matches!(frame, Some(Ok(_))) || state.body.is_end_stream();
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        let state = self.upload.lock();
        state.lease == self.lease && state.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.upload.lock().body.size_hint()
    }
}

#[cfg(test)]
mod tests;
