//! The answer to CE marks.
//!
//! The draft only demands that marks are taken for congestion (section 3.7). BBRv2 and BBRv3 as
//! published in Linux answer the marks of shallow thresholds on short paths in proportion to their
//! share, as DCTCP does. Elsewhere a mark counts here as the loss of its packet.

use std::time::Duration;

use crate::bbr::gain::Gain;
use crate::clamp::clamp_or;
use crate::sample::{AckBatch, RateSample};

/// Parameters of the answer to CE marks.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct EcnConfig {
    /// Round-trip time up to which marks are answered in proportion; beyond it each counts as a
    /// loss. Default 5 ms.
    pub max_rtt: Duration,
    /// Weight of a round in the smoothed share of marks. Range 0.001 to 1, default 1/16.
    pub alpha_gain: f64,
    /// Part of that share by which the short-term bound is cut per round. Range 0 to 1, default
    /// 1/3.
    pub factor: f64,
    /// Share of marks in a round above which too much is in flight. Range 0.01 to 1, default 0.5.
    pub threshold: f64,
}

impl Default for EcnConfig {
    fn default() -> Self {
        Self {
            max_rtt: Duration::from_millis(5),
            alpha_gain: 1.0 / 16.0,
            factor: 1.0 / 3.0,
            threshold: 0.5,
        }
    }
}

impl EcnConfig {
    pub(super) fn in_range(&self) -> Self {
        let default = Self::default();
        Self {
            max_rtt: self.max_rtt,
            alpha_gain: clamp_or(self.alpha_gain, default.alpha_gain, 0.001, 1.0),
            factor: clamp_or(self.factor, default.factor, 0.0, 1.0),
            threshold: clamp_or(self.threshold, default.threshold, 0.01, 1.0),
        }
    }
}

/// Rounds with too many marks after which Startup ends.
const STARTUP_ROUNDS: u32 = 2;

/// Marks seen, and what they mean.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Ecn {
    config: EcnConfig,
    /// True once the path was found short enough for the proportional answer.
    is_proportional: bool,
    /// Smoothed share of marks. Starts at one: the first marks meet a full answer.
    alpha: f64,
    /// Packets acknowledged and marked in the running round.
    acked: u64,
    marked: u64,
    marked_rounds: u32,
}

impl Ecn {
    pub(super) fn new(config: EcnConfig) -> Self {
        Self {
            config,
            is_proportional: false,
            alpha: 1.0,
            acked: 0,
            marked: 0,
            marked_rounds: 0,
        }
    }

    /// An ACK arrived; `round_start` is true if it ends a round.
    pub(super) fn on_ack(&mut self, ack: &AckBatch, round_start: bool, min_rtt: Option<Duration>) {
        self.acked = self.acked.saturating_add(ack.acked_packets.get());
        self.marked = self.marked.saturating_add(ack.ecn.ce.get());
        self.is_proportional |= min_rtt.is_some_and(|rtt| rtt <= self.config.max_rtt);
        if !round_start || self.acked == 0 {
            return;
        }
        let share = (self.marked as f64 / self.acked as f64).min(1.0);
        self.alpha += self.config.alpha_gain * (share - self.alpha);
        self.marked_rounds = if share >= self.config.threshold {
            self.marked_rounds.saturating_add(1)
        } else {
            0
        };
        (self.acked, self.marked) = (0, 0);
    }

    /// True if marks are answered in proportion to their share.
    pub(super) fn is_proportional(&self) -> bool {
        self.is_proportional
    }

    /// What the short-term bound is multiplied by in a round with marks.
    pub(super) fn cut(&self) -> Gain {
        Gain::new(1.0 - self.alpha * self.config.factor)
    }

    /// Smoothed share of marks, 0 to 1.
    pub(super) fn alpha(&self) -> f64 {
        self.alpha
    }

    /// True if the marks since the sampled packet left say that too much was in flight.
    pub(super) fn is_too_high(&self, sample: &RateSample, packet: u64) -> bool {
        let marked = sample.ce_since_sent.get().saturating_mul(packet) as f64;
        self.is_proportional
            && marked > 0.0
            && marked >= self.config.threshold * sample.delivered.get() as f64
    }

    /// True if Startup should end for marks.
    pub(super) fn ends_startup(&self) -> bool {
        self.is_proportional && self.marked_rounds >= STARTUP_ROUNDS
    }
}
