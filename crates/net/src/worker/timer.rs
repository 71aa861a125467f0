//! The one timer of the runtime that a worker uses for all its deadlines.

use std::future::Future;
use std::pin::Pin;
use std::task::Context;

use swiftwater_units::Instant;
use tokio::time::Sleep;

use crate::clock::Clock;

/// Wakes the worker at a deadline.
pub(super) struct WorkerTimer {
    clock: Clock,
    sleep: Pin<Box<Sleep>>,
    /// What `sleep` is set to; `None` once it has fired.
    armed: Option<Instant>,
}

impl WorkerTimer {
    pub(super) fn new(clock: Clock) -> Self {
        Self {
            sleep: Box::pin(tokio::time::sleep_until(clock.tokio(Instant::ZERO))),
            clock,
            armed: None,
        }
    }

    /// Arms the timer; true if `deadline` has passed already.
    pub(super) fn poll_at(&mut self, cx: &mut Context<'_>, deadline: Instant) -> bool {
        if deadline <= self.clock.now() {
            return true;
        }
        // A timer that fires too early costs less than setting it anew for every packet.
        if self.armed.is_none_or(|armed| deadline < armed) {
            self.sleep.as_mut().reset(self.clock.tokio(deadline));
            self.armed = Some(deadline);
        }
        let fired = self.sleep.as_mut().poll(cx).is_ready();
        if fired {
            self.armed = None;
        }
        fired
    }
}
