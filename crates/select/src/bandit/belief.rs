//! What is believed of one arm: the level and the spread of its log completion times.

use std::time::Duration;

use swiftwater_units::Instant;

use super::regression::Covariates;
use crate::parameters::Parameters;

/// Variance of log completion times that is assumed before there are observations, and its weight.
const VARIANCE: f64 = 0.15;
const VARIANCE_WEIGHT: f64 = 3.0;
/// Variance of the difference between two arms that is assumed before any comparison: half of all pairs
/// differ by less than a factor 1.4.
const UNKNOWN: f64 = 0.25;

/// The belief.
#[derive(Clone, Debug, Default)]
pub(super) struct Belief {
    /// Discounted number of observations.
    weight: f64,
    /// Mean log completion time, and the means of what it depends on.
    level: f64,
    means: Covariates,
    /// Discounted sum of squared deviations, and its weight.
    squares: f64,
    squares_weight: f64,
    /// Variance that the level has gained by drifting away unobserved.
    drift: f64,
    at: Option<Instant>,
}

impl Belief {
    /// Lets time pass: observations lose weight, and the level of an unobserved arm becomes less certain.
    pub(super) fn age(&mut self, now: Instant, in_use: bool, parameters: &Parameters) {
        let Some(at) = self.at.replace(now) else {
            return;
        };
        let passed = now.saturating_since(at).as_secs_f64();
        let memory: Duration = if in_use {
            parameters.plus_memory
        } else {
            parameters.plus_memory_idle
        };
        self.weight *= (-passed / memory.as_secs_f64()).exp();
        if !in_use {
            self.drift = (self.drift + parameters.plus_drift * passed).min(UNKNOWN);
        }
    }

    /// Takes an observation with a weight of at most 1 in. Returns how far it moved the level.
    pub(super) fn observe(
        &mut self,
        y: f64,
        covariates: Covariates,
        expected: f64,
        weight: f64,
    ) -> f64 {
        let deviation = y - expected;
        // A drifted level yields to the observation as if it had fewer behind it.
        let trust = self.variance() / (self.variance() + self.drift * self.weight);
        self.weight = self.weight * trust + weight;
        self.drift = 0.0;
        let share = weight / self.weight;
        // Far outliers pull the level no more than three deviations do.
        let reach = 3.0 * self.variance().sqrt();
        let pull = if self.weight > 2.0 {
            deviation.clamp(-reach, reach)
        } else {
            deviation
        };
        let (before, means) = (self.level, self.means);
        self.means = means.towards(covariates, share);
        self.level = if share < 1.0 {
            // `expected` is for these covariates; the level is for the means.
            before + share * (pull + (expected - before))
        } else {
            y
        };
        share * pull
    }

    /// Takes in how far an observation deviated from what was expected.
    pub(super) fn observe_deviation(&mut self, deviation: f64) {
        if self.weight > 1.5 {
            self.squares = 0.97 * self.squares + deviation * deviation;
            self.squares_weight = 0.97 * self.squares_weight + 1.0;
        }
    }

    /// Another arm's level moved, and this one's moves along.
    pub(super) fn shift(&mut self, by: f64) {
        self.level += by;
    }

    /// The network changed: little of what was observed counts.
    pub(super) fn doubt(&mut self, in_use: bool) {
        self.weight = self.weight.min(2.0);
        if !in_use {
            self.drift = UNKNOWN;
        }
    }

    /// Places the level by what `weight` comparisons under similar conditions taught. A single one
    /// leaves half of the doubt.
    pub(super) fn recall(&mut self, level: f64, means: Covariates, weight: f64, now: Instant) {
        self.level = level;
        self.means = means;
        self.weight = weight;
        self.drift = UNKNOWN / (1.0 + weight * weight);
        self.at = Some(now);
    }

    /// How much of what an observation moves the level is due to the network, 0 to 1. The rest is due to how little was known.
    pub(super) fn settled(&self) -> f64 {
        self.weight / (self.weight + 1.0)
    }

    pub(super) fn level(&self) -> f64 {
        self.level
    }

    pub(super) fn means(&self) -> Covariates {
        self.means
    }

    pub(super) fn is_known(&self) -> bool {
        self.weight > 0.05
    }

    /// Variance of single log completion times.
    pub(super) fn variance(&self) -> f64 {
        let weight = self.squares_weight + VARIANCE_WEIGHT;
        (self.squares + VARIANCE * VARIANCE_WEIGHT) / weight
    }

    /// Standard deviation of the change of the level that further observations of this weight are expected to make.
    pub(super) fn expected_change(&self, weight: f64) -> f64 {
        let uncertainty = self.uncertainty();
        uncertainty / (uncertainty + self.variance() / weight).sqrt()
    }

    /// Variance of the level.
    pub(super) fn uncertainty(&self) -> f64 {
        if self.is_known() {
            (self.variance() / self.weight + self.drift).min(UNKNOWN)
        } else {
            UNKNOWN
        }
    }
}
