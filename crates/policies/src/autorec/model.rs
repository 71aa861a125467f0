//! The model behind AutoRec: what K replicas per lost data range bring and cost, and which K to take.
//!
//! It assumes that every transmission is lost independently with probability R, that a lost data range
//! gets one retransmission and then K replicas, evenly spread over one detection time, for its whole
//! life, and that plain ARQ goes on after the newest copy. The sender always has new data (on-mode),
//! so real latency and goodput are no worse. All formulas: AutoRec (arXiv 2511.22046), section V-A.
//!
//! Pure functions; what R and the detection time are at present is the business of `adapter.rs`.

use std::time::Duration;

/// Most that a loss rate counts as: at 1 the recovery latency has no value.
const MAX_LOSS_RATE: f64 = 0.99;

/// What a bound may be missed by: 6 x 0.05 is more than 0.3 in binary floating point.
const SLACK: f64 = 1e-9;

/// A path as the model sees it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LossModel {
    loss_rate: f64,
    detection_time: Duration,
}

impl LossModel {
    /// A path with loss rate R (`loss_rate`, brought to 0..=0.99) on which a retransmission leaves
    /// `detection_time` (`T_unit`) after the transmission that it repairs.
    pub fn new(loss_rate: f64, detection_time: Duration) -> Self {
        let loss_rate = if loss_rate.is_nan() { 0.0 } else { loss_rate };
        Self {
            loss_rate: loss_rate.clamp(0.0, MAX_LOSS_RATE),
            detection_time,
        }
    }

    /// R, 0 to 0.99.
    pub fn loss_rate(&self) -> f64 {
        self.loss_rate
    }

    /// `T_unit`.
    pub fn detection_time(&self) -> Duration {
        self.detection_time
    }

    /// F(K)/T: mean recovery latency of data whose first retransmission is lost, in detection
    /// times (formula 1). Falls with the level.
    pub fn latency_ratio(&self, level: u32) -> f64 {
        let (rate, replicas) = (self.loss_rate, f64::from(level));
        (1.0 + replicas * power(rate, level)) / ((1.0 - rate) * (1.0 + replicas))
    }

    /// F(K): the same as a time.
    pub fn recovery_latency(&self, level: u32) -> Duration {
        let secs = self.latency_ratio(level) * self.detection_time.as_secs_f64();
        Duration::try_from_secs_f64(secs).unwrap_or(Duration::MAX)
    }

    /// G(K): replicas per packet sent for the first time (formula 2). Rises with the level.
    pub fn redundancy_cost(&self, level: u32) -> f64 {
        f64::from(level) * self.loss_rate
    }

    /// H(K): share of goodput lost to replicas while there is always new data, 0 to 1 (formula 3).
    /// Rises with the level.
    pub fn goodput_reduction(&self, level: u32) -> f64 {
        let (rate, replicas) = (self.loss_rate, f64::from(level));
        let share = 1.0 + replicas * rate - (1.0 + replicas) * rate * rate + power(rate, level + 2);
        1.0 - 1.0 / share
    }

    /// Share of lost data that need a second loss detection, 0 to 1: retransmission and all replicas
    /// are lost. Follows from the model; the paper measures it only.
    pub fn deterioration_rate(&self, level: u32) -> f64 {
        power(self.loss_rate, level + 1)
    }

    /// `K_theta` and what bounds it (formula 4), each at most `max_level`. Without loss all are 0.
    ///
    /// Cost and goodput are strict bounds. If no level is quick enough for `alpha`, the highest one
    /// counts as such: then cost and goodput decide alone.
    pub fn choose(&self, tolerances: &Tolerances, max_level: u32) -> LevelChoice {
        if self.loss_rate <= 0.0 {
            return LevelChoice::default();
        }
        let alpha = tolerances.alpha.as_secs_f64() + SLACK;
        let detection_time = self.detection_time.as_secs_f64();
        let for_latency = (0..max_level)
            .find(|&level| self.latency_ratio(level) * detection_time <= alpha)
            .unwrap_or(max_level);
        let for_cost = highest(max_level, |level| {
            self.redundancy_cost(level) <= tolerances.beta + SLACK
        });
        let for_goodput = highest(max_level, |level| {
            self.goodput_reduction(level) <= tolerances.gamma + SLACK
        });
        LevelChoice {
            for_latency,
            for_cost,
            for_goodput,
            level: for_latency.min(for_cost).min(for_goodput),
        }
    }
}

/// The highest level up to `max_level` that, with all below it, is `allowed`. Level 0 always is.
fn highest(max_level: u32, allowed: impl Fn(u32) -> bool) -> u32 {
    (1..=max_level)
        .take_while(|&level| allowed(level))
        .last()
        .unwrap_or(0)
}

/// `base` to the power of `exponent`, the same on every machine (`powi` isn't).
fn power(base: f64, exponent: u32) -> f64 {
    (0..exponent).fold(1.0, |product, _| product * base)
}

/// What the user puts up with (AutoRec, section V-A).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Tolerances {
    /// Mean recovery latency of data whose first retransmission is lost; kept when the others
    /// permit.
    pub alpha: Duration,
    /// Replicas per packet sent for the first time, 0 or more; never exceeded by intent.
    pub beta: f64,
    /// Reduction of goodput, as a share from 0 to 1; the target is never exceeded by intent.
    pub gamma: f64,
}

/// The levels that satisfy each bound.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct LevelChoice {
    /// `K_alpha`: the lowest level that is quick enough.
    pub for_latency: u32,
    /// `K_beta`: the highest level that is cheap enough.
    pub for_cost: u32,
    /// `K_gamma`: the highest level that leaves enough goodput.
    pub for_goodput: u32,
    /// `K_theta`: the lowest of the three.
    pub level: u32,
}
