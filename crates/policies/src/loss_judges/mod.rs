//! Loss judges, one file each, and their names.

mod adaptive;

pub use adaptive::{AdaptiveReordering, AdaptiveReorderingConfig};

use std::fmt;
use std::sync::Arc;

use swiftwater_quic::policy::{FixedThresholds, LossJudge, ReorderingThresholds};
use swiftwater_tunable::{Catalogue, Family, MadeFrom, Parameter, ParameterError, Tunable};
use swiftwater_units::PathId;

/// Makes loss judges of one kind. Implemented by their configuration.
pub trait LossJudgeFactory: Send + Sync + fmt::Debug {
    /// One for a new path; `configured` are the thresholds of the transport's configuration.
    fn loss_judge(&self, path: PathId, configured: ReorderingThresholds) -> Box<dyn LossJudge>;
}

/// Loss judges by name.
pub type LossJudgeCatalogue = Catalogue<dyn LossJudgeFactory>;

/// RFC 9002, section 6.1: the configured thresholds, unchanged.
#[derive(Clone, Copy, Debug, Default)]
pub struct FixedConfig;

impl LossJudgeFactory for FixedConfig {
    fn loss_judge(&self, _path: PathId, configured: ReorderingThresholds) -> Box<dyn LossJudge> {
        Box::new(FixedThresholds(configured))
    }
}

impl Tunable for FixedConfig {
    fn parameters(&self) -> Vec<Parameter> {
        Vec::new()
    }

    fn set(&mut self, name: &str, _value: &str) -> Result<(), ParameterError> {
        Err(ParameterError::none(name))
    }
}

impl<C: LossJudgeFactory + 'static> MadeFrom<C> for dyn LossJudgeFactory {
    fn made_from(config: C) -> Arc<Self> {
        Arc::new(config)
    }
}

impl Family for dyn LossJudgeFactory {
    const KIND: &'static str = "loss judge";

    /// Every loss judge of this crate; a new one adds its line here.
    fn add_standard(all: &mut LossJudgeCatalogue) {
        all.add("fixed", "the thresholds of RFC 9002", FixedConfig);
        all.add(
            "adaptive",
            "thresholds that grow with the reordering seen, as RACK's",
            AdaptiveReorderingConfig::default(),
        );
    }
}
