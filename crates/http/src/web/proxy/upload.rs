//! The request body being forwarded: its progress for the proxy's timeouts, and waiting for the
//! upstream's 100 (Continue).

use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http::{Request, StatusCode};
use http_body::{Body as HttpBody, Frame, SizeHint};
use tokio::sync::oneshot;
use tokio::time::{Instant, Sleep, sleep};

use crate::web::body::{Body, BoxError};
use crate::web::timed_body::TimedBodyError;

/// How the client failed during an upload.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Breakage {
    Slow,
    Broken,
}

#[derive(Debug)]
struct State {
    last: Instant,
    /// The proxy waits for the client.
    starved: bool,
    breakage: Option<Breakage>,
}

/// Progress of an upload, for the task that waits for the response.
#[derive(Debug, Clone)]
pub(super) struct Progress(Arc<Mutex<State>>);

impl Progress {
    pub(super) fn new() -> Self {
        Self(Arc::new(Mutex::new(State {
            last: Instant::now(),
            starved: false,
            breakage: None,
        })))
    }

    /// Since when the proxy has waited for the upstream; now, if it waits for the client.
    pub(super) fn last(&self) -> Instant {
        let state = self.lock();
        if state.starved {
            Instant::now()
        } else {
            state.last
        }
    }

    /// The client's failure, if the body failed.
    pub(super) fn breakage(&self) -> Option<Breakage> {
        self.lock().breakage
    }

    fn note(&self, polled: &Poll<Option<Result<Frame<Bytes>, BoxError>>>) {
        let mut state = self.lock();
        state.starved = polled.is_pending();
        if !state.starved {
            state.last = Instant::now();
        }
        if let Poll::Ready(Some(Err(error))) = polled {
            let slow = matches!(
                error.downcast_ref::<TimedBodyError>(),
                Some(TimedBodyError::TooSlow)
            );
            state.breakage = Some(if slow {
                Breakage::Slow
            } else {
                Breakage::Broken
            });
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Delays a body until the upstream sends 100 (Continue) or a final response, or the time limit is
/// reached.
#[derive(Debug)]
struct Gate {
    opened: oneshot::Receiver<()>,
    time_limit: Pin<Box<Sleep>>,
}

/// A request body that is being forwarded.
#[derive(Debug)]
pub(super) struct Upload {
    inner: Body,
    progress: Progress,
    gate: Option<Gate>,
}

impl Upload {
    pub(super) fn new(inner: Body, progress: Progress) -> Self {
        Self {
            inner,
            progress,
            gate: None,
        }
    }
}

/// Makes the body of `request` wait for 100 (Continue), at most `time_limit`.
pub(super) fn await_continue(request: &mut Request<Upload>, time_limit: Duration) {
    let (open, opened) = oneshot::channel();
    let open = Mutex::new(Some(open));
    hyper::ext::on_informational(request, move |response| {
        if response.status() == StatusCode::CONTINUE
            && let Some(open) = open.lock().unwrap_or_else(PoisonError::into_inner).take()
        {
            // The body may be dropped already.
            let _ = open.send(());
        }
    });
    request.body_mut().gate = Some(Gate {
        opened,
        time_limit: Box::pin(sleep(time_limit)),
    });
}

impl HttpBody for Upload {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        if let Some(gate) = &mut self.gate {
            // An error means that the sender was dropped: the final response was received.
            let opened = Pin::new(&mut gate.opened).poll(cx).is_ready();
            if !opened && gate.time_limit.as_mut().poll(cx).is_pending() {
                return Poll::Pending;
            }
            self.gate = None;
        }
        let polled = Pin::new(&mut self.inner).poll_frame(cx);
        self.progress.note(&polled);
        polled
    }

    fn is_end_stream(&self) -> bool {
        self.inner.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.inner.size_hint()
    }
}
