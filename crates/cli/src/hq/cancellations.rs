//! Rate limit of requests that a client of `hq-interop` may cancel: a token bucket as in the HTTP/3
//! engine (`max_cancelled_requests`), with the same values.

use std::time::{Duration, Instant};

/// Burst size.
const BURST: u32 = 256;

/// Tokens added per second.
const PER_SECOND: u32 = 32;

/// Remaining cancellations.
#[derive(Debug)]
pub(super) struct Cancellations {
    left: f64,
    counted: Instant,
}

impl Default for Cancellations {
    fn default() -> Self {
        Self {
            left: f64::from(BURST),
            counted: Instant::now(),
        }
    }
}

impl Cancellations {
    /// Counts one; false if the limit is exceeded.
    pub(super) fn permit(&mut self) -> bool {
        let now = Instant::now();
        self.permit_after(now.saturating_duration_since(self.counted))
            .then(|| self.counted = now)
            .is_some()
    }

    fn permit_after(&mut self, passed: Duration) -> bool {
        let gained = passed.as_secs_f64() * f64::from(PER_SECOND);
        self.left = (self.left + gained).min(f64::from(BURST)) - 1.0;
        self.left >= 0.0
    }
}
