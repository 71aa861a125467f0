//! Idle timeout of server connections, and their end.

use std::pin::Pin;
use std::time::Duration;

use tokio::time::{Instant, Sleep, sleep};

use super::connection::Http3;
use super::content::LEAST_RATE;
use crate::h3::Code;

/// The time during which a server's connection has had no request.
pub(super) struct Idle {
    timeout: Duration,
    sleep: Pin<Box<Sleep>>,
    /// Bytes that the client had not acknowledged at the previous expiry.
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
        // The clock can't represent more than some thirty years.
        let until = Instant::now().checked_add(self.timeout);
        if let Some(until) = until {
            self.sleep.as_mut().reset(until);
        }
    }

    /// Waits until the timeout has expired.
    pub(super) async fn over(&mut self) {
        self.sleep.as_mut().await;
    }

    /// Ends the connection: gracefully, or at once if the client has acknowledged almost nothing of the
    /// last responses since the previous call.
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
