//! One path at a time: the cheapest, and another only while it fails.

use std::time::Duration;

use swiftwater_quic::policy::{Demand, PathDecision, PathView, Scheduler};
use swiftwater_tunable::tunable;
use swiftwater_units::{ByteCount, Instant};

use super::{SchedulerFactory, has_room, preference};

/// Parameters of [`Backup`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BackupConfig {
    /// Probe timeouts in a row from which a path counts as failing; 1 to 10, default 2.
    pub max_pto: u32,
    /// Time without a packet from which a path with data in flight counts as failing; default 1 s.
    pub max_silence: Duration,
}

impl Default for BackupConfig {
    fn default() -> Self {
        Self {
            max_pto: 2,
            max_silence: Duration::from_secs(1),
        }
    }
}

tunable!(BackupConfig {
    "max-pto" => max_pto in 1_u32..=10, "probe timeouts in a row from which a path fails";
    "max-silence" => max_silence in Duration::from_millis(1)..=Duration::from_secs(60),
        "time without a packet from which a path with data in flight fails";
});

impl SchedulerFactory for BackupConfig {
    fn scheduler(&self) -> Box<dyn Scheduler> {
        Box::new(Backup(*self))
    }
}

/// Paths in the order of status, cost and identifier: the first that isn't failing carries all data,
/// or the very first if all fail. An answer on a failing path ends the failure, so that the
/// connection returns to it as soon as it works again.
#[derive(Clone, Copy, Debug, Default)]
pub struct Backup(pub BackupConfig);

impl Backup {
    fn fails(&self, path: &PathView, now: Instant) -> bool {
        let is_silent = path
            .last_received
            .is_some_and(|at| now.saturating_since(at) > self.0.max_silence);
        path.pto_count >= self.0.max_pto || (is_silent && !path.bytes_in_flight.is_zero())
    }
}

impl Scheduler for Backup {
    fn next(&mut self, now: Instant, paths: &[PathView], demand: &Demand<'_>) -> PathDecision {
        let best = paths
            .iter()
            .filter(|path| demand.suits(path.id))
            .filter_map(|path| Some((path, preference(path)?)))
            .min_by_key(|(path, preference)| {
                (self.fails(path, now), *preference, path.cost, path.id)
            });
        match best {
            Some((path, _)) if has_room(path, now) => PathDecision::Path {
                id: path.id,
                max_bytes: ByteCount::MAX,
            },
            _ => PathDecision::Blocked,
        }
    }
}
