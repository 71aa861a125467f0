//! The end of tunnels that nobody uses.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tokio::time::{Instant, Sleep, sleep_until};

/// Whether something passed that the tunnel's task does not see.
#[derive(Debug, Default)]
pub(super) struct Activity(AtomicBool);

impl Activity {
    /// Something passed.
    pub(super) fn note(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// Whether something passed since the last call.
    fn take(&self) -> bool {
        self.0.swap(false, Ordering::Relaxed)
    }
}

/// When something was last received, and the one timer for that.
#[derive(Debug)]
pub(super) struct Idle {
    timeout: Duration,
    last: Instant,
    timer: Pin<Box<Sleep>>,
    activity: Arc<Activity>,
}

impl Idle {
    /// What passes otherwise is noted in `activity`.
    pub(super) fn new(timeout: Duration, activity: Arc<Activity>) -> Self {
        let last = Instant::now();
        Self {
            timeout,
            last,
            timer: Box::pin(sleep_until(last + timeout)),
            activity,
        }
    }

    /// Something was received. The timer stays as it is: it looks again when it fires.
    pub(super) fn restart(&mut self) {
        self.last = Instant::now();
    }

    /// Waits until nothing was received for the timeout. Dropping the future loses nothing.
    pub(super) async fn wait(&mut self) {
        loop {
            self.timer.as_mut().await;
            if self.activity.take() {
                // When it was is not known: this late at most.
                self.restart();
            }
            let end = self.last + self.timeout;
            if end <= Instant::now() {
                return;
            }
            self.timer.as_mut().reset(end);
        }
    }
}
