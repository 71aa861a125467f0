//! What happens on one connection, and when that is reason to end it: no request for too long, no
//! progress of any response, too many requests abandoned. hyper has no limits for these.
//!
//! Requests and bodies of responses report; the task of the connection asks.

use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};

use http_body::{Body, Frame, SizeHint};
use pin_project_lite::pin_project;
use tokio::sync::Notify;
use tokio::time::{Instant, sleep_until};

use super::limits::Limits;

/// Why a connection should end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Expiry {
    /// No request for the idle time.
    Idle,
    /// The client takes nothing of what it asked for.
    Stalled,
    /// The client abandons requests faster than the limits grant.
    Abused,
}

#[derive(Debug)]
struct State {
    /// Requests so far.
    requests: u64,
    /// Requests between their head and the end of their response.
    in_flight: u32,
    /// Responses of which a piece was handed out and the next not asked for yet.
    held: u32,
    /// The last time one of the above changed.
    changed: Instant,
    abandoned: u32,
    abandon_start: Instant,
    abused: bool,
}

/// The shared record of one connection.
#[derive(Debug)]
pub(super) struct Activity {
    state: Mutex<State>,
    abuse: Notify,
    limits: Arc<Limits>,
}

impl Activity {
    pub(super) fn new(limits: Arc<Limits>) -> Arc<Self> {
        let now = Instant::now();
        Arc::new(Self {
            state: Mutex::new(State {
                requests: 0,
                in_flight: 0,
                held: 0,
                changed: now,
                abandoned: 0,
                abandon_start: now,
                abused: false,
            }),
            abuse: Notify::new(),
            limits,
        })
    }

    /// Notes the begin of a request.
    pub(super) fn begin(self: &Arc<Self>) -> Exchange {
        self.change(|state| {
            state.requests += 1;
            state.in_flight += 1;
        });
        Exchange {
            activity: Arc::clone(self),
            held: false,
            complete: false,
        }
    }

    /// Counts idle time from now on.
    pub(super) fn start(&self) {
        self.change(|_| {});
    }

    /// Requests that began so far.
    pub(super) fn requests(&self) -> u64 {
        self.lock().requests
    }

    /// Waits until the connection should end.
    pub(super) async fn expired(&self) -> Expiry {
        loop {
            let look = match self.judge() {
                Ok(expiry) => return expiry,
                Err(look) => look,
            };
            tokio::select! {
                () = sleep_until(look) => {}
                () = self.abuse.notified() => {}
            }
        }
    }

    /// Why the connection should end now; if it should not, when to look again. Requests come and
    /// go without waking anybody, so that a look is never far away.
    fn judge(&self) -> Result<Expiry, Instant> {
        let state = self.lock();
        if state.abused {
            return Ok(Expiry::Abused);
        }
        let limits = &self.limits;
        let now = Instant::now();
        let soon = now + limits.idle_timeout.min(limits.send_timeout) / 2;
        let (expiry, deadline) = if state.in_flight == 0 {
            (Expiry::Idle, state.changed + limits.idle_timeout)
        } else if state.held == state.in_flight {
            (Expiry::Stalled, state.changed + limits.send_timeout)
        } else {
            return Err(soon);
        };
        if deadline <= now {
            Ok(expiry)
        } else {
            Err(deadline.min(soon))
        }
    }

    fn change(&self, what: impl FnOnce(&mut State)) {
        let mut state = self.lock();
        what(&mut state);
        state.changed = Instant::now();
    }

    fn abandon(&self) {
        let mut state = self.lock();
        let now = Instant::now();
        if now.duration_since(state.abandon_start) > self.limits.abandon_window {
            state.abandon_start = now;
            state.abandoned = 0;
        }
        state.abandoned += 1;
        if state.abandoned > self.limits.abandoned {
            state.abused = true;
            self.abuse.notify_one();
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// One request and its response. Dropped before [`complete`](Self::complete), it counts as
/// abandoned.
#[derive(Debug)]
pub(super) struct Exchange {
    activity: Arc<Activity>,
    held: bool,
    complete: bool,
}

impl Exchange {
    /// Says whether the client is what the response waits for.
    fn hold(&mut self, held: bool) {
        let before = std::mem::replace(&mut self.held, held);
        self.activity.change(|state| {
            state.held = state.held + u32::from(held) - u32::from(before);
        });
    }

    fn complete(&mut self) {
        self.complete = true;
    }
}

impl Drop for Exchange {
    fn drop(&mut self) {
        let held = self.held;
        self.activity.change(|state| {
            state.in_flight -= 1;
            state.held -= u32::from(held);
        });
        if !self.complete {
            self.activity.abandon();
        }
    }
}

pin_project! {
    /// The body of a response that reports its progress.
    #[derive(Debug)]
    pub(super) struct TrackedBody<B> {
        #[pin]
        inner: B,
        exchange: Exchange,
    }
}

impl<B: Body> TrackedBody<B> {
    pub(super) fn new(inner: B, mut exchange: Exchange) -> Self {
        if inner.is_end_stream() {
            exchange.complete();
        }
        Self { inner, exchange }
    }
}

impl<B: Body> Body for TrackedBody<B> {
    type Data = B::Data;
    type Error = B::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<B::Data>, B::Error>>> {
        let mut this = self.project();
        let polled = this.inner.as_mut().poll_frame(cx);
        let handed_out = matches!(polled, Poll::Ready(Some(Ok(_))));
        this.exchange.hold(handed_out);
        let ended = match &polled {
            Poll::Ready(Some(Ok(_))) => this.inner.is_end_stream(),
            // The service failed, not the client.
            Poll::Ready(Some(Err(_)) | None) => true,
            Poll::Pending => false,
        };
        if ended {
            this.exchange.complete();
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
