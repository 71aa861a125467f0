//! Packet schedulers, one file each, and their names.
//!
//! All follow the same rules on which paths may be used at all: a backup path carries data only while
//! no available path is usable (draft-ietf-quic-multipath-21, section 3.3), a path that is still being
//! validated only while there is no other, and a path with two probe timeouts in a row only while all
//! have that.

mod backup;
mod min_rtt;
mod weighted;

pub use backup::{Backup, BackupConfig};
pub use min_rtt::{MinRtt, MinRttConfig};
pub use weighted::{Weight, Weighted, WeightedConfig};

use std::fmt;
use std::sync::Arc;

use swiftwater_quic::policy::{Demand, PathPhase, PathView, Scheduler, SinglePath};
use swiftwater_tunable::{
    Catalogue, Family, MadeFrom, Parameter, ParameterError, Tunable, UnknownEntry,
};

/// Makes schedulers of one kind. Implemented by their configuration.
pub trait SchedulerFactory: Send + Sync + fmt::Debug {
    /// One for a new connection.
    fn scheduler(&self) -> Box<dyn Scheduler>;
}

/// Schedulers by name.
pub type SchedulerCatalogue = Catalogue<dyn SchedulerFactory>;

/// The first path, always: what a connection without multipath needs.
#[derive(Clone, Copy, Debug, Default)]
pub struct FirstPath;

impl SchedulerFactory for FirstPath {
    fn scheduler(&self) -> Box<dyn Scheduler> {
        Box::new(SinglePath)
    }
}

impl Tunable for FirstPath {
    fn parameters(&self) -> Vec<Parameter> {
        Vec::new()
    }

    fn set(&mut self, name: &str, _value: &str) -> Result<(), ParameterError> {
        Err(ParameterError::none(name))
    }
}

impl<C: SchedulerFactory + 'static> MadeFrom<C> for dyn SchedulerFactory {
    fn made_from(config: C) -> Arc<Self> {
        Arc::new(config)
    }
}

impl Family for dyn SchedulerFactory {
    const KIND: &'static str = "scheduler";

    /// Every scheduler of this crate; a new one adds its line here.
    fn add_standard(all: &mut SchedulerCatalogue) {
        all.add("first-path", "the first path, always", FirstPath);
        all.add(
            "min-rtt",
            "the path with the least smoothed RTT that has room",
            MinRttConfig::default(),
        );
        all.add(
            "round-robin",
            "all paths with room, in equal shares",
            WeightedConfig {
                weight: Weight::Equal,
                ..WeightedConfig::default()
            },
        );
        all.add(
            "weighted",
            "all paths with room, in proportion to their rates",
            WeightedConfig::default(),
        );
        all.add(
            "backup",
            "the cheapest path, another only while it fails",
            BackupConfig::default(),
        );
    }
}

/// The scheduler of this crate that `specification` describes, for one connection.
pub fn scheduler_by_name(specification: &str) -> Result<Box<dyn Scheduler>, UnknownEntry> {
    SchedulerCatalogue::standard()
        .get(specification)
        .map(|factory| factory.scheduler())
}

/// Where a path stands in the order of preference that the protocol asks for, smaller first; `None`
/// if it can't be used.
fn preference(path: &PathView) -> Option<u8> {
    match path.phase {
        PathPhase::Active => Some(u8::from(path.is_backup())),
        PathPhase::Validating => Some(2),
        _ => None,
    }
}

/// Probe timeouts in a row from which a path counts as failing.
const FAILING_PTO: u32 = 2;

/// The paths that may carry some of the demand: those of the best preference that there is.
fn eligible<'a>(
    paths: &'a [PathView],
    demand: &'a Demand<'_>,
) -> impl Iterator<Item = &'a PathView> {
    let suitable = move |path: &PathView| {
        let preference = preference(path).filter(|_| demand.suits(path.id))?;
        Some((path.pto_count >= FAILING_PTO, preference))
    };
    let best = paths.iter().filter_map(suitable).min();
    paths
        .iter()
        .filter(move |path| best.is_some() && suitable(path) == best)
}

/// True if window and pacer of the path let a full datagram go now.
fn has_room(path: &PathView, now: swiftwater_units::Instant) -> bool {
    path.window_room().get() >= u64::from(path.mtu) && path.pacing_release <= now
}
