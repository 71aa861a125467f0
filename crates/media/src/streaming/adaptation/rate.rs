//! The rate rule.

use super::{Adaptation, Situation};

/// The highest level whose nominal bitrate is at most a share of the predicted throughput: the
/// default logic of Chorus' published player.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RateRule {
    factor: f64,
}

impl RateRule {
    /// A rule with the share `factor`, limited to 0 to 10; NaN is 0.
    pub fn new(factor: f64) -> Self {
        let factor = if factor.is_nan() { 0.0 } else { factor };
        Self {
            factor: factor.clamp(0.0, 10.0),
        }
    }
}

impl Default for RateRule {
    /// A share of 0.9.
    fn default() -> Self {
        Self::new(0.9)
    }
}

impl Adaptation for RateRule {
    fn choose(&mut self, situation: &Situation<'_>) -> usize {
        let within = |predicted: swiftwater_units::Bandwidth| {
            situation.ladder.level_within(predicted.scaled(self.factor))
        };
        situation.predicted.map_or(0, within)
    }
}
