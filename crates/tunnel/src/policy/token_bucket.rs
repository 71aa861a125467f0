//! A token bucket: how much may pass in a time (the generic cell rate algorithm, ITU-T I.371).

use std::num::NonZeroU64;
use std::time::Duration;

/// An amount each second, and what a burst may have of it at once.
#[derive(Clone, Copy, Debug)]
pub struct TokenBucket {
    per_second: NonZeroU64,
    burst: Duration,
    /// When all that passed so far has been earned; in the past if the bucket is full.
    earned_at: Duration,
}

impl TokenBucket {
    /// A full bucket, which holds what is earned in `burst`.
    pub fn new(per_second: NonZeroU64, burst: Duration) -> Self {
        Self {
            per_second,
            burst,
            earned_at: Duration::ZERO,
        }
    }

    /// The amount that is earned each second.
    pub fn per_second(&self) -> NonZeroU64 {
        self.per_second
    }

    /// True if `amount` may pass `at` this time, from a start that is always the same. From a full bucket any amount
    /// may, so that none is too large for ever.
    pub fn admits(&self, amount: u64, at: Duration) -> bool {
        let debt = self.earned_at.saturating_sub(at);
        debt.is_zero() || debt + self.time_of(amount) <= self.burst
    }

    /// `amount` passes; returns how long the next has to wait.
    pub fn take(&mut self, amount: u64, at: Duration) -> Duration {
        self.earned_at = self.earned_at.max(at) + self.time_of(amount);
        let debt = self.earned_at.saturating_sub(at);
        debt.saturating_sub(self.burst)
    }

    /// True if nothing is owed.
    pub fn is_full(&self, at: Duration) -> bool {
        self.earned_at <= at
    }

    fn time_of(&self, amount: u64) -> Duration {
        let nanos = u128::from(amount) * 1_000_000_000 / u128::from(self.per_second.get());
        Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX / 4))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn ms(n: u64) -> Duration {
        Duration::from_millis(n)
    }

    #[test]
    fn a_burst_and_then_the_rate() {
        let rate = NonZeroU64::new(1000).expect("not zero");
        let mut bucket = TokenBucket::new(rate, ms(100));
        let mut passed = 0;
        for _ in 0..200 {
            if bucket.admits(1, ms(5)) {
                bucket.take(1, ms(5));
                passed += 1;
            }
        }
        assert_eq!(passed, 100);
        assert!(!bucket.admits(1, ms(5)) && bucket.admits(1, ms(6)));
        assert!(!bucket.is_full(ms(104)) && bucket.is_full(ms(105)));
    }

    #[test]
    fn what_is_larger_than_the_burst_passes_once_it_is_earned() {
        let rate = NonZeroU64::new(1000).expect("not zero");
        let mut bucket = TokenBucket::new(rate, ms(100));
        assert!(bucket.admits(5000, ms(0)));
        assert_eq!(bucket.take(5000, ms(0)), ms(4900));
        assert!(!bucket.admits(5000, ms(4999)) && bucket.admits(5000, ms(5000)));
    }
}
