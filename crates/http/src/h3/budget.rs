//! Token bucket that limits how often a peer may cause work for this end.

use std::time::Duration;

use swiftwater_units::Instant;

const SECOND: u64 = Duration::from_secs(1).as_nanos() as u64;

/// Permits a burst of `burst`, and `per_second` more each second.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Budget {
    burst: u64,
    per_second: u64,
    /// Tokens left, in 1/`SECOND`.
    left: u64,
    filled: Option<Instant>,
}

impl Budget {
    pub(crate) const fn new(burst: u32, per_second: u32) -> Self {
        let burst = burst as u64 * SECOND;
        Self {
            burst,
            per_second: per_second as u64,
            left: burst,
            filled: None,
        }
    }

    /// Takes one token; false if none is left.
    pub(crate) fn spend(&mut self, now: Instant) -> bool {
        let last = *self.filled.get_or_insert(now);
        if let Some(passed) = now.checked_since(last) {
            let passed = u64::try_from(passed.as_nanos()).unwrap_or(u64::MAX);
            let gained = passed.saturating_mul(self.per_second);
            self.left = self.left.saturating_add(gained).min(self.burst);
            self.filled = Some(now);
        }
        match self.left.checked_sub(SECOND) {
            Some(left) => {
                self.left = left;
                true
            }
            None => false,
        }
    }
}
