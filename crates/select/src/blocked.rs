//! Memory of blocked UDP: how long QUIC is not used after it failed.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use swiftwater_units::Instant;

use crate::parameters::Parameters;

/// How sure it is that QUIC is blocked.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(crate) enum Evidence {
    /// QUIC did not work at all.
    #[default]
    Failed,
    /// Requests on QUIC were overtaken by TCP: it may be blocked, or slow.
    Overtaken,
}

/// QUIC failed, at an origin or on a network.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Block {
    until: Option<Instant>,
    failures: u32,
    evidence: Evidence,
}

/// A block in a form that can be stored.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq, Serialize, Deserialize)]
pub(crate) struct StoredBlock {
    /// When it ends: seconds since the Unix epoch.
    pub(crate) until: u64,
    /// Failures in a row.
    pub(crate) failures: u32,
}

impl Block {
    /// True while QUIC must not be used.
    pub(crate) fn is_active(&self, now: Instant) -> bool {
        self.until.is_some_and(|until| now < until)
    }

    /// True if QUIC failed and may be tried again.
    pub(crate) fn is_expired(&self, now: Instant) -> bool {
        self.until.is_some_and(|until| now >= until)
    }

    /// When QUIC may be tried again; `None` if it never failed since it worked.
    pub(crate) fn until(&self) -> Option<Instant> {
        self.until
    }

    /// Notes a failure. Each one in a row doubles the time; but while the block is active, only better
    /// evidence counts, because requests in flight fail together. True if the time changed.
    pub(crate) fn fail(
        &mut self,
        now: Instant,
        evidence: Evidence,
        parameters: &Parameters,
    ) -> bool {
        if self.is_active(now) {
            if evidence == self.evidence || evidence == Evidence::Overtaken {
                return false;
            }
            self.failures = self.failures.saturating_sub(1);
        }
        let (first, most) = match evidence {
            Evidence::Failed => (parameters.block_first, parameters.block_max),
            Evidence::Overtaken => (parameters.rollback_pause, parameters.rollback_pause_max),
        };
        self.until = Some(now + doubled(first, self.failures, most));
        self.failures = self.failures.saturating_add(1);
        self.evidence = evidence;
        true
    }

    /// Notes that QUIC worked.
    pub(crate) fn clear(&mut self) {
        *self = Self::default();
    }

    /// `clock` is the time since the Unix epoch at `now`.
    pub(crate) fn store(&self, now: Instant, clock: Duration) -> StoredBlock {
        let left = self.until.map(|until| until.saturating_since(now));
        StoredBlock {
            until: left.map_or(0, |left| {
                // Rounded up: a block that is active is not to end by being stored.
                let end = clock + left;
                let rest = !left.is_zero() && end.subsec_nanos() > 0;
                end.as_secs() + u64::from(rest)
            }),
            failures: self.failures,
        }
    }

    pub(crate) fn restore(
        stored: StoredBlock,
        now: Instant,
        clock: Duration,
        parameters: &Parameters,
    ) -> Self {
        if stored.failures == 0 {
            return Self::default();
        }
        // A clock that was set back must not make the pause longer.
        let left = Duration::from_secs(stored.until).saturating_sub(clock);
        Self {
            until: Some(now + left.min(parameters.block_max)),
            failures: stored.failures,
            evidence: Evidence::Failed,
        }
    }
}

/// `first`, doubled `times` times, at most `most`.
pub(crate) fn doubled(first: Duration, times: u32, most: Duration) -> Duration {
    let factor = 2_u32.saturating_pow(times);
    first.saturating_mul(factor).min(most)
}
