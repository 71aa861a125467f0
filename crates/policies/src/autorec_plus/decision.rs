//! What autorec+ decides about once per round trip: how many copies a lost data range has, and when.

use std::time::Duration;

use super::config::AutoRecPlusConfig;
use super::correlation::ConditionalLoss;
use super::spacing::{MAX_COPIES, Plan, Spacing};

/// What a decision is made from.
#[derive(Clone, Copy, Debug)]
pub(super) struct PathLosses {
    /// Share of packets lost, 0 to 1.
    pub(super) loss_rate: f64,
    pub(super) curve: ConditionalLoss,
    /// Time from a transmission to the detection of its loss.
    pub(super) detection_time: Duration,
}

impl PathLosses {
    /// No losses yet.
    pub(super) fn none(detection_time: Duration) -> Self {
        Self {
            loss_rate: 0.0,
            curve: ConditionalLoss::independent(0.0),
            detection_time,
        }
    }

    fn plan(&self, config: &AutoRecPlusConfig, copies: usize) -> Plan {
        let spacing = Spacing {
            loss: &self.curve,
            loss_rate: self.loss_rate,
            detection_time: self.detection_time,
            min_gap: config.min_gap,
            tail_weight: config.tail_weight,
        };
        spacing.plan(copies)
    }
}

/// A decision.
#[derive(Clone, Copy, Debug)]
pub(super) struct CopyDecision {
    pub(super) path: PathLosses,
    /// The plan for data without a deadline.
    pub(super) plan: Plan,
    /// The plan for data that were lost with all their copies, and for the last round before a
    /// deadline.
    pub(super) strong: Plan,
    /// Probability that a data range is lost with so many copies if its retransmission was, as far as it
    /// was needed.
    residuals: [Option<f64>; MAX_COPIES + 1],
}

impl CopyDecision {
    /// No copies.
    pub(super) fn none(path: PathLosses) -> Self {
        Self {
            path,
            plan: Plan::default(),
            strong: Plan::default(),
            residuals: [None; MAX_COPIES + 1],
        }
    }

    /// The plans for a path on which the tolerances permit `limit` copies per data range.
    pub(super) fn new(path: PathLosses, limit: usize, config: &AutoRecPlusConfig) -> Self {
        let mut decision = Self::none(path);
        decision.plan = decision.enough(limit.min(MAX_COPIES), config);
        if limit > 0 {
            let most = config.max_level as usize;
            let strong = (2 * decision.plan.copies()).max(2).min(most);
            decision.strong = path.plan(config, strong);
        } else {
            decision.strong = decision.plan;
        }
        decision
    }

    /// The plan with the fewest copies that is good enough, within the limit.
    fn enough(&mut self, limit: usize, config: &AutoRecPlusConfig) -> Plan {
        let path = self.path;
        let least_gain = path.detection_time.mul_f64(config.least_gain);
        let mut best = path.plan(config, 0);
        self.residuals[0] = Some(best.residual_loss);
        for copies in 1..=limit {
            let better = path.plan(config, copies);
            self.residuals[copies] = Some(better.residual_loss);
            let gain = best
                .expected_latency
                .saturating_sub(better.expected_latency);
            let is_quick = best.expected_latency <= config.alpha || gain < least_gain;
            let is_sure = path.loss_rate * best.residual_loss <= config.residual;
            if is_quick && is_sure {
                break;
            }
            best = better;
        }
        best
    }

    /// Probability that a data range is lost with `copies` copies if its retransmission was.
    pub(super) fn residual(&mut self, copies: usize, config: &AutoRecPlusConfig) -> f64 {
        let path = self.path;
        *self.residuals[copies.min(MAX_COPIES)]
            .get_or_insert_with(|| path.plan(config, copies).residual_loss)
    }

    /// Time between copy `nth` of a data range in `round` and the one before.
    pub(super) fn gap(&self, round: u32, nth: usize, config: &AutoRecPlusConfig) -> Duration {
        let plan = if round > 1 || nth >= self.plan.copies() {
            &self.strong
        } else {
            &self.plan
        };
        let last = plan.copies().checked_sub(1).and_then(|last| plan.gap(last));
        plan.gap(nth).or(last).unwrap_or(config.min_gap)
    }
}
