//! Thresholds that adapt to the reordering of the path, after RACK (RFC 8985, sections 3.3.2 and
//! 6.2).
//!
//! A packet that was declared lost and is acknowledged afterwards shows reordering. TCP takes
//! that from DSACK options, QUIC from the acknowledgement itself. Then the packet threshold rises above
//! the distance seen, and the time threshold by a quarter of the round-trip time, up to one more
//! round-trip time. Both return to the configured ones after a number of loss episodes without a
//! spurious loss (16 in RFC 8985).

use swiftwater_congestion::RttView;
use swiftwater_quic::policy::{LossJudge, ReorderingThresholds, SpuriousLoss};
use swiftwater_tunable::tunable;
use swiftwater_units::{Instant, PathId};

use super::LossJudgeFactory;

/// Eighths of the round-trip time by which a spurious loss raises the time threshold: the quarter of
/// RFC 8985, section 6.2, step 4.
const STEP_EIGHTHS: u32 = 2;

/// Parameters of [`AdaptiveReordering`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AdaptiveReorderingConfig {
    /// Largest packet threshold, 3 to 10,000; default 300.
    pub max_packets: u64,
    /// Most that the time threshold grows, eighths of the round-trip time, 0 to 16; default 8.
    pub max_extra_eighths: u32,
    /// Loss episodes without a spurious loss after which the configured thresholds hold again, 1 to
    /// 1000; default 16 (RFC 8985, section 6.2).
    pub persistence: u32,
}

impl Default for AdaptiveReorderingConfig {
    fn default() -> Self {
        Self {
            max_packets: 300,
            max_extra_eighths: 8,
            persistence: 16,
        }
    }
}

tunable!(AdaptiveReorderingConfig {
    "max-packets" => max_packets in 3_u64..=10_000, "largest packet threshold";
    "max-extra-eighths" => max_extra_eighths in 0_u32..=16,
        "most that the time threshold grows, eighths of the RTT";
    "persistence" => persistence in 1_u32..=1_000,
        "loss episodes without a spurious loss after which the configured thresholds hold again";
});

impl LossJudgeFactory for AdaptiveReorderingConfig {
    fn loss_judge(&self, _path: PathId, configured: ReorderingThresholds) -> Box<dyn LossJudge> {
        Box::new(AdaptiveReordering::new(*self, configured))
    }
}

/// See the module's documentation.
#[derive(Clone, Copy, Debug)]
pub struct AdaptiveReordering {
    config: AdaptiveReorderingConfig,
    configured: ReorderingThresholds,
    current: ReorderingThresholds,
    /// Loss episodes until the configured thresholds hold again.
    episodes_left: u32,
    /// When the time threshold rose last.
    raised_at: Option<Instant>,
}

impl AdaptiveReordering {
    /// A judge that has seen no reordering.
    pub fn new(config: AdaptiveReorderingConfig, configured: ReorderingThresholds) -> Self {
        Self {
            config,
            configured,
            current: configured,
            episodes_left: 0,
            raised_at: None,
        }
    }
}

impl LossJudge for AdaptiveReordering {
    fn thresholds(&self) -> ReorderingThresholds {
        self.current
    }

    fn on_spurious(&mut self, now: Instant, loss: &SpuriousLoss, rtt: &RttView) {
        self.episodes_left = self.config.persistence;
        let beyond = loss.distance.saturating_add(1);
        self.current.packets = self.current.packets.map(|packets| {
            let most = self.config.max_packets.max(packets);
            packets.max(beyond.min(most))
        });
        // One round trip's packets show the same reordering: RFC 8985 raises once per round trip.
        let is_due = |at: Instant| now.saturating_since(at) >= rtt.smoothed;
        if self.raised_at.is_none_or(is_due) {
            self.raised_at = Some(now);
            let most = self.configured.time_eighths + self.config.max_extra_eighths;
            self.current.time_eighths = (self.current.time_eighths + STEP_EIGHTHS).min(most);
        }
    }

    fn on_loss_episode(&mut self, _now: Instant) {
        self.episodes_left = self.episodes_left.saturating_sub(1);
        if self.episodes_left == 0 {
            self.current = self.configured;
            self.raised_at = None;
        }
    }
}
