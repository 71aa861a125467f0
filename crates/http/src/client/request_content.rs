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
    /// When content was last read, or given to a connection.
    last: Instant,
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
            last: Instant::now(),
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
        state.last = Instant::now();
        if state.empty {
            return Body::empty();
        }
        Body::new(Lent {
            upload: self.clone(),
            lease: state.lease,
        })
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

    /// When a connection last read some of it.
    pub(super) fn last_taken(&self) -> Instant {
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
        state.last = Instant::now();
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
