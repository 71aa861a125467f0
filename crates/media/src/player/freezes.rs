//! A count of freezes, which all models report in the same form.

use std::time::Duration;

/// Freezes of a viewing.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Freezes {
    /// How many.
    pub count: u64,
    /// How long all of them together.
    pub total: Duration,
    /// How long the longest.
    pub longest: Duration,
}

impl Freezes {
    pub(super) fn add(&mut self, length: Duration) {
        self.count += 1;
        self.total = self.total.saturating_add(length);
        self.longest = self.longest.max(length);
    }

    /// Freezes per 100 s of a viewing that took `watched`, freezes included; 0 if it took no time.
    pub fn per_100_s(&self, watched: Duration) -> f64 {
        if watched.is_zero() {
            return 0.0;
        }
        self.count as f64 * 100.0 / watched.as_secs_f64()
    }

    /// Share of a viewing that took `watched`, freezes included, in which the picture stood still; 0
    /// if it took no time.
    pub fn share(&self, watched: Duration) -> f64 {
        if watched.is_zero() {
            return 0.0;
        }
        self.total.as_secs_f64() / watched.as_secs_f64()
    }
}
