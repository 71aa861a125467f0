//! The one place where time is read.

use std::time::Duration;

use swiftwater_units::Instant;

/// Counts from the start of an endpoint or relay.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clock {
    start: tokio::time::Instant,
}

impl Clock {
    /// A clock whose epoch is now.
    pub(crate) fn start() -> Self {
        Self {
            start: tokio::time::Instant::now(),
        }
    }

    pub(crate) fn now(&self) -> Instant {
        // 584 years fit.
        Instant::from_nanos(self.start.elapsed().as_nanos() as u64)
    }

    /// The same point in time, past or present, for code that reads the system's clock.
    pub(crate) fn std(&self, at: Instant) -> std::time::Instant {
        self.start.into_std() + at.saturating_since(Instant::ZERO)
    }

    /// The same point in time for a tokio timer; far futures are cut to a year from now.
    pub(crate) fn tokio(&self, at: Instant) -> tokio::time::Instant {
        const YEAR: Duration = Duration::from_secs(365 * 24 * 60 * 60);
        let now = self.now();
        let after_now = at.saturating_since(now).min(YEAR);
        self.start + now.saturating_since(Instant::ZERO) + after_now
    }
}
