//! The end of tunnels that nobody uses.

use std::pin::Pin;
use std::time::Duration;

use tokio::time::{Instant, Sleep, sleep_until};

/// When something was last received, and the one timer for that.
#[derive(Debug)]
pub(super) struct Idle {
    timeout: Duration,
    last: Instant,
    timer: Pin<Box<Sleep>>,
}

impl Idle {
    pub(super) fn new(timeout: Duration) -> Self {
        let last = Instant::now();
        Self {
            timeout,
            last,
            timer: Box::pin(sleep_until(last + timeout)),
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
            let end = self.last + self.timeout;
            if end <= Instant::now() {
                return;
            }
            self.timer.as_mut().reset(end);
        }
    }
}
