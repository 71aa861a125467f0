//! How probe timeouts grow while nothing is acknowledged (RFC 9002, section 6.2.1).

use std::time::Duration;

/// The growth of the probe timeout.
#[derive(Clone, Copy, Debug)]
pub(super) struct Backoff {
    /// The timeout before any expired; none is shorter.
    pub(super) first: Duration,
    /// Factor from one to the next, thousandths.
    pub(super) thousandths: u32,
    /// The longest, unless `first` is longer.
    pub(super) longest: Duration,
    pub(super) limit: Option<Limit>,
}

/// A bound that holds while the sum of the timeouts is below a period.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limit {
    pub(super) timeout: Duration,
    pub(super) period: Duration,
}

impl Backoff {
    /// The timeout that follows `count` expired ones.
    pub(super) fn timeout_after(&self, count: u32) -> Duration {
        let (timeout, count) = match self.limit {
            Some(limit) => self.limited(limit, count),
            None => (self.first, count),
        };
        self.grown(timeout, count).min(self.longest).max(self.first)
    }

    /// The timeout after at most `count` expired ones while `limit` holds, and how many of `count`
    /// are left when it no longer does.
    fn limited(&self, limit: Limit, mut count: u32) -> (Duration, u32) {
        let bound = limit.timeout.max(self.first);
        let mut timeout = self.first;
        let mut elapsed = Duration::ZERO;
        while count > 0 && timeout < bound {
            elapsed = elapsed.saturating_add(timeout);
            if elapsed >= limit.period {
                return (timeout, count);
            }
            let longer = self.grown(timeout, 1).min(bound);
            if longer == timeout {
                return (timeout, 0);
            }
            timeout = longer;
            count -= 1;
        }
        // Each timeout that begins within the period keeps to the bound.
        let left = limit.period.saturating_sub(elapsed).as_nanos();
        let bounded = left.div_ceil(timeout.as_nanos().max(1)).saturating_sub(1);
        let bounded = u32::try_from(bounded).unwrap_or(u32::MAX);
        (timeout, count.saturating_sub(bounded))
    }

    /// `timeout` after `times` steps of the back-off.
    fn grown(&self, mut timeout: Duration, times: u32) -> Duration {
        if self.thousandths <= 1000 {
            return timeout;
        }
        for _ in 0..times {
            if timeout >= self.longest {
                break;
            }
            timeout = timeout.saturating_mul(self.thousandths) / 1000;
        }
        timeout
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn millis(millis: u64) -> Duration {
        Duration::from_millis(millis)
    }

    fn timeouts(backoff: Backoff, count: u32) -> Vec<u128> {
        (0..count)
            .map(|count| backoff.timeout_after(count).as_millis())
            .collect()
    }

    fn doubling(limit: Option<Limit>) -> Backoff {
        Backoff {
            first: millis(50),
            thousandths: 2000,
            longest: millis(1000),
            limit,
        }
    }

    #[test]
    fn doubles_up_to_the_longest() {
        assert_eq!(
            timeouts(doubling(None), 7),
            [50, 100, 200, 400, 800, 1000, 1000]
        );
    }

    #[test]
    fn keeps_to_the_limit_for_its_period_then_grows() {
        let limit = Limit {
            timeout: millis(150),
            period: millis(600),
        };
        // 50, 150, 300, 450 and 600 ms after the last packet: the period is over.
        assert_eq!(
            timeouts(doubling(Some(limit)), 9),
            [50, 100, 150, 150, 150, 300, 600, 1000, 1000]
        );
    }

    #[test]
    fn never_below_the_first() {
        let limit = Limit {
            timeout: millis(20),
            period: millis(100),
        };
        assert_eq!(timeouts(doubling(Some(limit)), 4), [50, 50, 100, 200]);
    }

    #[test]
    fn a_factor_of_one_stays() {
        let backoff = Backoff {
            thousandths: 1000,
            ..doubling(Some(Limit {
                timeout: millis(150),
                period: millis(600),
            }))
        };
        assert_eq!(timeouts(backoff, 3), [50, 50, 50]);
    }

    #[test]
    fn any_count_ends() {
        let limit = Limit {
            timeout: millis(150),
            period: Duration::MAX,
        };
        assert_eq!(doubling(Some(limit)).timeout_after(u32::MAX), millis(150));
        assert_eq!(doubling(None).timeout_after(u32::MAX), millis(1000));
    }
}
