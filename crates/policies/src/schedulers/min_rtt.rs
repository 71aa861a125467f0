//! Lowest RTT first: what MPTCP and most multipath QUIC stacks do.

use swiftwater_quic::policy::{Demand, PathDecision, PathView, Scheduler};
use swiftwater_tunable::tunable;
use swiftwater_units::{ByteCount, Instant};

use super::{SchedulerFactory, eligible, has_room};

/// Parameters of [`MinRtt`].
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct MinRttConfig {
    /// Bytes that follow one another on a path before the choice is made again; default 0: one
    /// datagram.
    pub batch: ByteCount,
}

tunable!(MinRttConfig {
    "batch" => batch, "bytes that follow one another on a path";
});

impl SchedulerFactory for MinRttConfig {
    fn scheduler(&self) -> Box<dyn Scheduler> {
        Box::new(MinRtt(*self))
    }
}

/// Of the eligible paths with room, the one with the least `smoothed_rtt`; among equals the one with
/// the smaller identifier.
#[derive(Clone, Copy, Debug, Default)]
pub struct MinRtt(pub MinRttConfig);

impl Scheduler for MinRtt {
    fn next(&mut self, now: Instant, paths: &[PathView], demand: &Demand<'_>) -> PathDecision {
        eligible(paths, demand)
            .filter(|path| has_room(path, now))
            .min_by_key(|path| (path.smoothed_rtt, path.id))
            .map_or(PathDecision::Blocked, |path| PathDecision::Path {
                id: path.id,
                max_bytes: self.0.batch,
            })
    }
}
