//! Loss judges by name: those of this crate, and others written by its user.

use swiftwater_tunable::{Catalogue, Family};

use crate::loss_judges::{AdaptiveReorderingConfig, FixedConfig, LossJudgeFactory};
use crate::tecc::TeccLossJudgeConfig;

/// Loss judges by name.
pub type LossJudgeCatalogue = Catalogue<dyn LossJudgeFactory>;

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
        all.add(
            "tecc",
            "TECC: losses that a tunnel repairs are left to it",
            TeccLossJudgeConfig::default(),
        );
    }
}
