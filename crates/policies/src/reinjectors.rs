//! Re-injectors by name: those of this crate, and others written by its user.

use std::sync::Arc;

use swiftwater_quic::policy::{PolicyFactory, Reinjector};
use swiftwater_tunable::{Catalogue, Family, MadeFrom, Parameter, UnknownEntry};

use crate::art::ArtConfig;
use crate::autorec::AutoRecConfig;
use crate::autorec_plus::AutoRecPlusConfig;
use crate::bundle::Policies;
use crate::chorus::{ChorusPlusReinjectorConfig, ChorusReinjectorConfig};
use crate::failover::FailoverConfig;
use crate::redundant_copies::RedundantCopiesConfig;
use crate::reinjector_factory::{Arq, ReinjectorFactory};
use crate::tail_copies::TailCopiesConfig;
use crate::xlink::XlinkConfig;

/// Re-injectors by name.
pub type ReinjectorCatalogue = Catalogue<dyn ReinjectorFactory>;

impl<C: ReinjectorFactory + 'static> MadeFrom<C> for dyn ReinjectorFactory {
    fn made_from(config: C) -> Arc<Self> {
        Arc::new(config)
    }
}

impl Family for dyn ReinjectorFactory {
    const KIND: &'static str = "recovery policy";

    /// Every re-injector of this crate; a new one adds its line here.
    fn add_standard(all: &mut ReinjectorCatalogue) {
        for name in ["arq", "plain", "single-path"] {
            all.add(name, "plain retransmission of what is lost", Arq);
        }
        all.add(
            "art",
            "ART: copies of retransmissions, as many as the last ones needed",
            ArtConfig::default(),
        );
        all.add(
            "autorec",
            "AutoRec: replicas of lost data, spaced, under tolerances",
            AutoRecConfig::default(),
        );
        all.add(
            "autorec-paper",
            "AutoRec as its paper has it",
            AutoRecConfig::paper(),
        );
        all.add(
            "autorec-live",
            "AutoRec with the tolerances of its deployment",
            AutoRecConfig::live(),
        );
        all.add(
            "autorec-rtc",
            "AutoRec for real-time video, 20 % redundancy",
            AutoRecConfig::rtc(),
        );
        all.add(
            "autorec-rtc-lc",
            "AutoRec for real-time video, 5 % redundancy",
            AutoRecConfig::rtc_lc(),
        );
        all.add(
            "autorec-rtc-hc",
            "AutoRec for real-time video, 50 % redundancy",
            AutoRecConfig::rtc_hc(),
        );
        all.add(
            "autorec+",
            "AutoRec's aims with measured burstiness, a hard budget and deadlines",
            AutoRecPlusConfig::default(),
        );
        all.add(
            "failover",
            "what is in flight on a path that went down, at once on the others",
            FailoverConfig::default(),
        );
        all.add(
            "tail-copies",
            "failover, and the end of the data also on a faster path, within a budget",
            TailCopiesConfig::default(),
        );
        all.add(
            "chorus",
            "Chorus: failover, and what is in flight of a response that may come late",
            ChorusReinjectorConfig::default(),
        );
        all.add(
            "chorus+",
            "Chorus' aims with `tail-copies`: only what arrives too late, within a hard budget",
            ChorusPlusReinjectorConfig::default(),
        );
        all.add(
            "xlink",
            "XLINK: copies on another path while the player's buffer is low, within a budget",
            XlinkConfig::default(),
        );
        all.add(
            "xlink-paper",
            "XLINK as its paper has it: no budget, copies on slower paths, too",
            XlinkConfig::paper(),
        );
        all.add(
            "redundant",
            "with the scheduler `redundant`: every new datum also on every other path",
            RedundantCopiesConfig::default(),
        );
    }
}

/// The policies of a connection with the re-injector of this crate that `specification` describes,
/// such as `autorec` or `autorec-paper:alpha=30ms,beta=0.3`; the others are the default ones.
pub fn by_name(specification: &str) -> Result<Arc<dyn PolicyFactory>, UnknownEntry> {
    let reinjector = ReinjectorCatalogue::standard().get(specification)?;
    Ok(Arc::new(Policies::default().with_reinjector(reinjector)))
}

/// The re-injector alone, for one connection.
pub fn reinjector_by_name(specification: &str) -> Result<Box<dyn Reinjector>, UnknownEntry> {
    ReinjectorCatalogue::standard()
        .get(specification)
        .map(|factory| factory.reinjector())
}

/// The parameters of what `specification` describes, with their values.
pub fn parameters(specification: &str) -> Result<Vec<Parameter>, UnknownEntry> {
    ReinjectorCatalogue::standard().parameters(specification)
}

/// The names that [`by_name`] takes, in alphabetical order.
pub fn names() -> Vec<String> {
    ReinjectorCatalogue::standard()
        .names()
        .map(str::to_owned)
        .collect()
}
