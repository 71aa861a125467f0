//! One path at a time: the cheapest, and another only while it fails.

use std::time::Duration;

use swiftwater_quic::policy::{Demand, PathDecision, PathPhase, PathView, Scheduler};
use swiftwater_tunable::tunable;
use swiftwater_units::{ByteCount, Instant, PathId};

use super::classes::{PathClass, PathClassConfig, PathClasses};
use super::{SchedulerFactory, blocked, has_room};

/// Parameters of [`Backup`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BackupConfig {
    /// Time without a packet from which a path with data in flight counts as failing; default 1 s.
    pub max_silence: Duration,
    /// Thresholds of the classes: a path of the two lowest ones fails, too.
    pub classes: PathClassConfig,
}

impl Default for BackupConfig {
    fn default() -> Self {
        Self {
            max_silence: Duration::from_secs(1),
            classes: PathClassConfig::default(),
        }
    }
}

tunable!(BackupConfig {
    "max-silence" => max_silence in Duration::from_millis(1)..=Duration::from_secs(60),
        "time without a packet from which a path with data in flight fails";
    ..classes;
});

impl SchedulerFactory for BackupConfig {
    fn scheduler(&self) -> Box<dyn Scheduler> {
        Box::new(Backup::new(*self))
    }
}

/// Available paths before standby ones, and cheap ones before expensive ones: the first that isn't failing
/// carries all data, or the very first if all fail. An answer on a failing path ends the failure, so that the
/// connection returns to it as soon as it works again. Among equals the path in use stays in use; at the
/// start it is the one with the least RTT.
#[derive(Clone, Debug, Default)]
pub struct Backup {
    max_silence: Duration,
    classes: PathClasses,
    in_use: Option<PathId>,
}

impl Backup {
    /// No path is in use yet.
    pub fn new(config: BackupConfig) -> Self {
        Self {
            max_silence: config.max_silence,
            classes: PathClasses::new(config.classes),
            in_use: None,
        }
    }

    fn fails(&self, path: &PathView, now: Instant) -> bool {
        let is_silent = path
            .last_received
            .is_some_and(|at| now.saturating_since(at) > self.max_silence);
        self.classes.class(now, path) >= PathClass::Low
            || (is_silent && !path.bytes_in_flight.is_zero())
    }
}

/// Where a path stands in the order of preference, smaller first; `None` if it can't be used.
fn preference(path: &PathView) -> Option<u8> {
    match path.phase {
        PathPhase::Active => Some(u8::from(path.is_backup())),
        PathPhase::Validating => Some(2),
        _ => None,
    }
}

impl Scheduler for Backup {
    fn next(&mut self, now: Instant, paths: &[PathView], demand: &Demand<'_>) -> PathDecision {
        self.classes.observe(now, paths);
        let best = paths
            .iter()
            .filter(|path| demand.suits(path.id))
            .filter_map(|path| Some((path, preference(path)?)))
            .min_by_key(|(path, preference)| {
                let is_other = self.in_use != Some(path.id);
                let choice = (self.fails(path, now), *preference, path.cost);
                (choice, is_other, path.smoothed_rtt, path.id)
            });
        match best {
            Some((path, _)) if has_room(path, now) => {
                self.in_use = Some(path.id);
                PathDecision::batch(path.id)
            }
            _ => blocked(now, paths, demand),
        }
    }

    fn on_sent(&mut self, now: Instant, path: PathId, _bytes: ByteCount) {
        self.classes.on_sent(now, path);
    }
}
