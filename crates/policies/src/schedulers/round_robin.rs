//! Equal shares: all eligible paths carry data by turns.

use swiftwater_quic::policy::{Demand, PathDecision, PathView, Scheduler};
use swiftwater_tunable::tunable;
use swiftwater_units::{ByteCount, Instant, PathId};

use super::eligibility::{Eligibility, EligibilityConfig};
use super::per_path::PerPath;
use super::{SchedulerFactory, batch, blocked, has_room};

/// Parameters of [`RoundRobin`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RoundRobinConfig {
    /// Bytes that follow one another on a path before the choice is made again, at most; default 64 KiB. An
    /// eighth of the waiting bytes and a quarter of the window at most.
    pub batch: ByteCount,
    /// Which paths may carry data.
    pub eligibility: EligibilityConfig,
}

impl Default for RoundRobinConfig {
    fn default() -> Self {
        Self {
            batch: batch::DEFAULT,
            eligibility: EligibilityConfig::default(),
        }
    }
}

tunable!(RoundRobinConfig {
    "batch" => batch, "bytes that follow one another on a path, at most";
    ..eligibility;
});

impl SchedulerFactory for RoundRobinConfig {
    fn scheduler(&self) -> Box<dyn Scheduler> {
        Box::new(RoundRobin::new(*self))
    }
}

/// The eligible path with room on which the fewest bytes were sent is next; among equals the one with the
/// least `smoothed_rtt`. A path that had no room for a while, or is new, doesn't catch up.
#[derive(Clone, Debug, Default)]
pub struct RoundRobin {
    batch: ByteCount,
    eligibility: Eligibility,
    /// Bytes sent on each path; while it has no room, at least as many as on the one that is chosen.
    turns: PerPath<u64>,
}

impl RoundRobin {
    /// No path has sent anything yet.
    pub fn new(config: RoundRobinConfig) -> Self {
        Self {
            batch: config.batch,
            eligibility: Eligibility::new(config.eligibility),
            turns: PerPath::default(),
        }
    }
}

impl Scheduler for RoundRobin {
    fn next(&mut self, now: Instant, paths: &[PathView], demand: &Demand<'_>) -> PathDecision {
        let turns = &mut self.turns;
        turns.keep(paths);
        let ready = self
            .eligibility
            .paths(now, paths, demand)
            .map(|(_, path)| path)
            .filter(|path| has_room(path, now));
        let start = ready.clone().filter_map(|path| turns.get(path.id)).min();
        let start = start.copied().unwrap_or_default();
        let sent = |path: &PathView| turns.get(path.id).copied().unwrap_or(start);
        let Some(next) = ready.min_by_key(|path| (sent(path), path.smoothed_rtt, path.id)) else {
            return blocked(now, paths, demand);
        };
        let reached = sent(next);
        turns.get_or_insert_with(next.id, || reached);
        for path in paths.iter().filter(|path| !has_room(path, now)) {
            if let Some(sent) = turns.get_mut(path.id) {
                *sent = reached.max(*sent);
            }
        }
        PathDecision::Path {
            id: next.id,
            max_bytes: batch::part(self.batch, next, demand.bytes()),
        }
    }

    fn on_sent(&mut self, now: Instant, path: PathId, bytes: ByteCount) {
        self.eligibility.on_sent(now, path);
        if let Some(sent) = self.turns.get_mut(path) {
            *sent += bytes.get();
        }
    }
}
