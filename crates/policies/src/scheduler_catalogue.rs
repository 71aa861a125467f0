//! Schedulers by name: those of this crate, and others written by its user.

use swiftwater_quic::policy::Scheduler;
use swiftwater_tunable::{Catalogue, Family, UnknownEntry};

use crate::chorus::{ChorusPlusSchedulerConfig, ChorusSchedulerConfig};
use crate::schedulers::{
    BackupConfig, BlestConfig, EcfConfig, FirstPath, MinRttConfig, RedundantSchedulerConfig,
    RoundRobinConfig, SchedulerFactory, WeightedConfig,
};

/// Schedulers by name.
pub type SchedulerCatalogue = Catalogue<dyn SchedulerFactory>;

impl Family for dyn SchedulerFactory {
    const KIND: &'static str = "scheduler";

    /// Every scheduler of this crate; a new one adds its line here.
    fn add_standard(all: &mut SchedulerCatalogue) {
        all.add("first-path", "the first path, always", FirstPath);
        all.add(
            "min-rtt",
            "the path with the least smoothed RTT that has room, by performance class",
            MinRttConfig::default(),
        );
        all.add(
            "round-robin",
            "all paths with room, in equal shares",
            RoundRobinConfig::default(),
        );
        all.add(
            "weighted",
            "all paths in proportion to their rates, so that they finish together",
            WeightedConfig::default(),
        );
        all.add(
            "ecf",
            "Earliest Completion First (CoNEXT 2017)",
            EcfConfig::default(),
        );
        all.add(
            "blest",
            "blocking estimation (Networking 2016)",
            BlestConfig::default(),
        );
        all.add(
            "chorus",
            "Chorus (MobiCom 2024): parts of a response of known size, else the least RTT",
            ChorusSchedulerConfig::default(),
        );
        all.add(
            "chorus+",
            "`weighted`, with the whole of a response of known size in view",
            ChorusPlusSchedulerConfig::default(),
        );
        all.add(
            "redundant",
            "with the recovery policy `redundant`: every path carries all data",
            RedundantSchedulerConfig::default(),
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
