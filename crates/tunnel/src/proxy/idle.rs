//! The end of tunnels that nobody uses.

use std::time::Duration;

use tokio::time::{Instant, sleep_until};

/// When something was last received.
#[derive(Clone, Copy, Debug)]
pub(super) struct Idle {
    timeout: Duration,
    last: Instant,
}

impl Idle {
    pub(super) fn new(timeout: Duration) -> Self {
        Self {
            timeout,
            last: Instant::now(),
        }
    }

    /// Something was received.
    pub(super) fn restart(&mut self) {
        self.last = Instant::now();
    }

    /// Waits until nothing was received for the timeout, or something was received since the call.
    pub(super) async fn wait(self) {
        sleep_until(self.last + self.timeout).await;
    }

    /// True if nothing was received for the timeout.
    pub(super) fn is_over(&self) -> bool {
        self.last.elapsed() >= self.timeout
    }
}
