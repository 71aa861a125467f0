//! Algorithms by name: those of this crate, and others written by its user.

use std::sync::Arc;

use swiftwater_tunable::{Catalogue, CatalogueEntry, Family, MadeFrom, UnknownEntry};

use crate::bbr::{Bbr1Config, Bbr3Config};
use crate::controller::ControllerFactory;
use crate::copa::CopaConfig;
use crate::cubic::CubicConfig;
use crate::cubic_plus::CubicPlusConfig;
use crate::follow_external::FollowExternalConfig;
use crate::newreno::NewRenoConfig;
use crate::prague::PragueConfig;

/// Congestion-control algorithms by name.
pub type ControllerCatalogue = Catalogue<dyn ControllerFactory>;

/// An algorithm of a [`ControllerCatalogue`].
pub type ControllerEntry = CatalogueEntry<dyn ControllerFactory>;

impl Family for dyn ControllerFactory {
    const KIND: &'static str = "congestion controller";

    /// Every algorithm of this crate; a new one adds its line here.
    fn add_standard(all: &mut ControllerCatalogue) {
        all.add(
            "bbr1",
            "BBRv1 as in Linux, without its policer model",
            Bbr1Config::default(),
        );
        all.add(
            "bbr1-xquic",
            "BBRv1 tuned for live video",
            Bbr1Config::xquic(),
        );
        all.add("bbr2", "BBRv2 (v2alpha)", Bbr3Config::v2alpha());
        all.add(
            "bbr3",
            "BBRv3 (draft-ietf-ccwg-bbr-06)",
            Bbr3Config::default(),
        );
        all.add("copa", "Copa (NSDI 2018)", CopaConfig::default());
        all.add("cubic", "CUBIC (RFC 9438)", CubicConfig::default());
        all.add(
            "cubic-plus",
            "Cubic+: losses classified by delay, queues drained",
            CubicPlusConfig::default(),
        );
        all.add(
            "cubic-plus-paper",
            "Cubic+ as its paper has it",
            CubicPlusConfig::paper(),
        );
        all.add(
            "follow-external",
            "a rate measured outside, CUBIC without one",
            FollowExternalConfig::default(),
        );
        all.add("newreno", "NewReno (RFC 9002)", NewRenoConfig::default());
        all.add("prague", "Prague, for L4S queues", PragueConfig::default());
    }
}

impl<C: ControllerFactory + 'static> MadeFrom<C> for dyn ControllerFactory {
    fn made_from(config: C) -> Arc<Self> {
        Arc::new(config)
    }
}

/// The algorithm of this crate that `specification` describes, such as `cubic` or
/// `cubic:beta=0.8`.
pub fn by_name(specification: &str) -> Result<Arc<dyn ControllerFactory>, UnknownEntry> {
    ControllerCatalogue::standard().get(specification)
}

/// The names of the algorithms of this crate, in alphabetical order.
pub fn names() -> Vec<String> {
    ControllerCatalogue::standard()
        .names()
        .map(str::to_owned)
        .collect()
}
