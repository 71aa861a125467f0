//! Count of freezes, common to all models.

use std::time::Duration;

/// Freezes during playback.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Freezes {
    /// Number.
    pub count: u64,
    /// Total duration.
    pub total: Duration,
    /// Longest duration.
    pub longest: Duration,
}

impl Freezes {
    pub(crate) fn add(&mut self, length: Duration) {
        self.count += 1;
        self.total = self.total.saturating_add(length);
        self.longest = self.longest.max(length);
    }

    /// Freezes per 100 s of playback of duration `watched`, freezes included; 0 for no duration.
    pub fn per_100_s(&self, watched: Duration) -> f64 {
        if watched.is_zero() {
            return 0.0;
        }
        self.count as f64 * 100.0 / watched.as_secs_f64()
    }

    /// Frozen share of playback of duration `watched`, freezes included; 0 for no duration.
    pub fn share(&self, watched: Duration) -> f64 {
        if watched.is_zero() {
            return 0.0;
        }
        self.total.as_secs_f64() / watched.as_secs_f64()
    }
}
