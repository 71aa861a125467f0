//! What the tunnels of one user pass, against the limit on it.

use std::num::NonZeroU64;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use super::config::UserLimit;
use crate::policy::TokenBucket;

/// What may pass at once, as the time in which it is earned.
const BURST: Duration = Duration::from_millis(250);

/// Where something goes.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Direction {
    ToClient,
    ToTarget,
}

/// What is left for a user, in each direction.
#[derive(Debug)]
pub(super) struct UserBudget {
    limit: UserLimit,
    since: Instant,
    to_client: Mutex<Buckets>,
    to_target: Mutex<Buckets>,
}

#[derive(Clone, Copy, Debug)]
struct Buckets {
    bytes: Option<TokenBucket>,
    packets: Option<TokenBucket>,
}

impl UserBudget {
    /// `None` if there is no limit.
    pub(super) fn new(limit: UserLimit) -> Option<Self> {
        if limit.bytes.is_none() && limit.packets.is_none() {
            return None;
        }
        let bucket = |rate: NonZeroU64| TokenBucket::new(rate, BURST);
        let buckets = Buckets {
            bytes: limit.bytes.map(bucket),
            packets: limit.packets.map(bucket),
        };
        Some(Self {
            limit,
            since: Instant::now(),
            to_client: Mutex::new(buckets),
            to_target: Mutex::new(buckets),
        })
    }

    /// The limit.
    pub(super) fn limit(&self) -> UserLimit {
        self.limit
    }

    /// True if nothing of the limit is used: a new budget is the same.
    pub(super) fn is_unused(&self) -> bool {
        let at = self.since.elapsed();
        let is_full = |bucket: Option<TokenBucket>| bucket.is_none_or(|it| it.is_full(at));
        [Direction::ToClient, Direction::ToTarget]
            .into_iter()
            .all(|direction| self.with(direction, |it| is_full(it.bytes) && is_full(it.packets)))
    }

    /// True if a packet of `len` bytes may pass, and is then counted.
    pub(super) fn admit(&self, direction: Direction, len: usize) -> bool {
        let at = self.since.elapsed();
        self.with(direction, |buckets| {
            let Buckets { bytes, packets } = buckets;
            let admits = bytes.is_none_or(|it| it.admits(len as u64, at))
                && packets.is_none_or(|it| it.admits(1, at));
            if admits {
                let _ = bytes.as_mut().map(|it| it.take(len as u64, at));
                let _ = packets.as_mut().map(|it| it.take(1, at));
            }
            admits
        })
    }

    /// Counts `len` bytes of a stream; returns how long further ones have to wait.
    pub(super) fn take(&self, direction: Direction, len: usize) -> Duration {
        let at = self.since.elapsed();
        self.with(direction, |buckets| {
            let bytes = buckets.bytes.as_mut();
            bytes.map_or(Duration::ZERO, |it| it.take(len as u64, at))
        })
    }

    fn with<R>(&self, direction: Direction, work: impl FnOnce(&mut Buckets) -> R) -> R {
        let buckets = match direction {
            Direction::ToClient => &self.to_client,
            Direction::ToTarget => &self.to_target,
        };
        work(&mut buckets.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// Whether a payload of `len` bytes may pass.
pub(super) fn admits(budget: Option<&UserBudget>, direction: Direction, len: usize) -> bool {
    budget.is_none_or(|budget| budget.admit(direction, len))
}
