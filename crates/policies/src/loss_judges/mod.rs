//! Loss judges, one file each. That of TECC is in [`tecc`](crate::tecc), their names are in
//! [`LossJudgeCatalogue`](crate::LossJudgeCatalogue).

mod adaptive;

pub use adaptive::{AdaptiveReordering, AdaptiveReorderingConfig};

use std::fmt;
use std::sync::Arc;

use swiftwater_quic::policy::{FixedThresholds, LossJudge, ReorderingThresholds};
use swiftwater_tunable::{MadeFrom, Parameter, ParameterError, Tunable};
use swiftwater_units::PathId;

/// Makes loss judges of one kind. Implemented by their configuration.
pub trait LossJudgeFactory: Send + Sync + fmt::Debug {
    /// One for a new path; `configured` are the thresholds of the transport's configuration.
    fn loss_judge(&self, path: PathId, configured: ReorderingThresholds) -> Box<dyn LossJudge>;
}

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
