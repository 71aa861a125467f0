//! How connections without requests end.

use std::pin::Pin;
use std::time::Duration;

use swiftwater_units::ByteCount;
use tokio::time::{Instant, Sleep, sleep};

use super::connection::Http3;
use crate::h3::Code;

/// The time for which a server's connection has had no request.
pub(super) struct Idle {
    timeout: Duration,
    sleep: Pin<Box<Sleep>>,
    /// What the client had not acknowledged when the timeout last expired.
    unacknowledged: Option<ByteCount>,
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

    /// Lets the connection end: gracefully, and at once if the client has taken nothing of the last
    /// responses since this was called before.
    pub(super) fn end(&mut self, http3: &Http3) {
        let unacknowledged = http3.quic().stats().send_buffered;
        match self.unacknowledged.replace(unacknowledged) {
            Some(before) if before == unacknowledged => http3.close(Code::NO_ERROR, "idle"),
            Some(_) => {}
            None => http3.shutdown(),
        }
        self.wait();
    }
}
