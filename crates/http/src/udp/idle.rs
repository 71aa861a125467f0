//! How connections without requests end.

use std::pin::Pin;
use std::time::Duration;

use tokio::time::{Instant, Sleep, sleep};

use super::connection::Http3;
use super::content::LEAST_RATE;
use crate::h3::Code;

/// The time for which a server's connection has had no request.
pub(super) struct Idle {
    timeout: Duration,
    sleep: Pin<Box<Sleep>>,
    /// Bytes that the client had not acknowledged when the timeout last expired.
    unacknowledged: Option<u64>,
}

impl Idle {
    pub(super) fn new(timeout: Duration) -> Self {
        Self {
            timeout,
            sleep: Box::pin(sleep(timeout)),
            unacknowledged: None,
        }
    }

    /// A request ended.
    pub(super) fn restart(&mut self) {
        self.unacknowledged = None;
        self.wait();
    }

    fn wait(&mut self) {
        // Beyond some thirty years the clock can't say.
        let until = Instant::now().checked_add(self.timeout);
        if let Some(until) = until {
            self.sleep.as_mut().reset(until);
        }
    }

    /// Waits until the timeout has expired.
    pub(super) async fn over(&mut self) {
        self.sleep.as_mut().await;
    }

    /// Lets the connection end: gracefully, and at once if the client has taken next to nothing of the last
    /// responses since this was called before.
    pub(super) fn end(&mut self, http3: &Http3) {
        let unacknowledged = http3.quic().stats().send_buffered.get();
        match self.unacknowledged.replace(unacknowledged) {
            Some(before) => {
                let taken = before.saturating_sub(unacknowledged) as f64;
                if taken < LEAST_RATE * self.timeout.as_secs_f64() {
                    http3.close(Code::NO_ERROR, "idle");
                }
            }
            None => http3.shutdown(),
        }
        self.wait();
    }
}
