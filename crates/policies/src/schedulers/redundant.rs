//! The scheduler's half of redundant transmission: the paths carry copies of each other's data.
//!
//! A scheduler chooses paths and copies nothing. The copies are asked for by the recovery policy of the same
//! name ([`RedundantCopies`](crate::RedundantCopies)), each for one path; this scheduler lets them leave as
//! soon as that path has room, and otherwise is the one with the least RTT. Without that policy it sends
//! nothing twice.

use swiftwater_quic::policy::{CopyDemand, Demand, PathChoice, PathDecision, PathView, Scheduler};
use swiftwater_tunable::tunable;
use swiftwater_units::{ByteCount, Instant, PathId};

use super::eligibility::{Eligibility, EligibilityConfig};
use super::{SchedulerFactory, batch, blocked, has_room};

/// Parameters of [`RedundantScheduler`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RedundantSchedulerConfig {
    /// Bytes that follow one another on a path before the choice is made again, at most; default 64 KiB. If
    /// copies wait for the path, as many as they are.
    pub batch: ByteCount,
    /// Which paths may carry data.
    pub eligibility: EligibilityConfig,
}

impl Default for RedundantSchedulerConfig {
    fn default() -> Self {
        Self {
            batch: batch::DEFAULT,
            eligibility: EligibilityConfig::default(),
        }
    }
}

tunable!(RedundantSchedulerConfig {
    "batch" => batch, "bytes that follow one another on a path, at most";
    ..eligibility;
});

impl SchedulerFactory for RedundantSchedulerConfig {
    fn scheduler(&self) -> Box<dyn Scheduler> {
        Box::new(RedundantScheduler::new(*self))
    }
}

/// Of the eligible paths with room, one for which copies wait, and then the one with the least
/// `smoothed_rtt`.
#[derive(Clone, Debug, Default)]
pub struct RedundantScheduler {
    batch: ByteCount,
    eligibility: Eligibility,
}

impl RedundantScheduler {
    /// Nothing is sent yet.
    pub fn new(config: RedundantSchedulerConfig) -> Self {
        Self {
            batch: config.batch,
            eligibility: Eligibility::new(config.eligibility),
        }
    }
}

impl Scheduler for RedundantScheduler {
    fn next(&mut self, now: Instant, paths: &[PathView], demand: &Demand<'_>) -> PathDecision {
        let copies = |id: PathId| -> ByteCount {
            let is_for = |copy: &&CopyDemand| copy.target == PathChoice::On(id);
            let copies = demand.copies.iter().filter(is_for);
            copies.map(|copy| copy.bytes).sum()
        };
        self.eligibility
            .paths(now, paths, demand)
            .map(|(_, path)| path)
            .filter(|path| has_room(path, now))
            .min_by_key(|path| (copies(path.id).is_zero(), path.smoothed_rtt, path.id))
            .map_or_else(
                || blocked(now, paths, demand),
                |path| {
                    let copies = Some(copies(path.id)).filter(|bytes| !bytes.is_zero());
                    PathDecision::Path {
                        id: path.id,
                        max_bytes: copies.map_or(self.batch, |bytes| bytes.min(self.batch)),
                    }
                },
            )
    }

    fn on_sent(&mut self, now: Instant, path: PathId, _bytes: ByteCount) {
        self.eligibility.on_sent(now, path);
    }
}
