//! Lowest RTT first: what MPTCP and most multipath QUIC stacks do, with XQUIC's performance classes.

use swiftwater_quic::policy::{Demand, PathDecision, PathView, Scheduler};
use swiftwater_tunable::tunable;
use swiftwater_units::{ByteCount, Instant, PathId};

use super::eligibility::{Eligibility, EligibilityConfig};
use super::{SchedulerFactory, batch, blocked, has_room};

/// Parameters of [`MinRtt`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MinRttConfig {
    /// Bytes that follow one another on a path before the choice is made again; default 64 KiB: the path
    /// stays the best one while it has room.
    pub batch: ByteCount,
    /// Which paths may carry data.
    pub eligibility: EligibilityConfig,
}

impl Default for MinRttConfig {
    fn default() -> Self {
        Self {
            batch: batch::DEFAULT,
            eligibility: EligibilityConfig::default(),
        }
    }
}

tunable!(MinRttConfig {
    "batch" => batch, "bytes that follow one another on a path";
    ..eligibility;
});

impl SchedulerFactory for MinRttConfig {
    fn scheduler(&self) -> Box<dyn Scheduler> {
        Box::new(MinRtt::new(*self))
    }
}

/// Of the eligible paths with room, one of the best class; within a class an available path before a
/// standby one, and then the one with the least `smoothed_rtt`; among equals the one with the smaller
/// identifier.
///
/// The order is available-HIGH, standby-HIGH, available-MID, standby-MID, available-LOW, standby-LOW, and silent
/// ones last; which
/// of them are eligible at the same time, [`StandbyUse`](super::StandbyUse) says.
#[derive(Clone, Debug, Default)]
pub struct MinRtt {
    batch: ByteCount,
    eligibility: Eligibility,
}

impl MinRtt {
    /// Nothing is sent yet.
    pub fn new(config: MinRttConfig) -> Self {
        Self {
            batch: config.batch,
            eligibility: Eligibility::new(config.eligibility),
        }
    }
}

/// The choice of [`MinRtt`] for some data.
pub(crate) fn least_rtt(
    eligibility: &mut Eligibility,
    now: Instant,
    paths: &[PathView],
    demand: &Demand<'_>,
    max_bytes: ByteCount,
) -> PathDecision {
    eligibility
        .paths(now, paths, demand)
        .filter(|(_, path)| has_room(path, now))
        .min_by_key(|(class, path)| (*class, path.is_backup(), path.smoothed_rtt, path.id))
        .map_or_else(
            || blocked(now, paths, demand),
            |(_, path)| PathDecision::Path {
                id: path.id,
                max_bytes,
            },
        )
}

impl Scheduler for MinRtt {
    fn next(&mut self, now: Instant, paths: &[PathView], demand: &Demand<'_>) -> PathDecision {
        least_rtt(&mut self.eligibility, now, paths, demand, self.batch)
    }

    fn on_sent(&mut self, now: Instant, path: PathId, _bytes: ByteCount) {
        self.eligibility.on_sent(now, path);
    }
}
