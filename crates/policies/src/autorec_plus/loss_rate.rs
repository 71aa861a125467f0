//! The loss rate, smoothed over time so that a quiet moment is not taken for the end of losses, nor a
//! burst for a bad path.

use std::time::Duration;

use swiftwater_quic::policy::{PacketFate, PacketOutcome};
use swiftwater_units::Instant;

/// Outcomes decay with this time constant.
const MEMORY: Duration = Duration::from_secs(10);

/// Outcomes before the rate means anything.
const ENOUGH: f64 = 20.0;

/// Measures how many packets are lost; losses that turn out to be none are taken off.
#[derive(Debug, Default)]
pub struct LossRate {
    outcomes: f64,
    lost: f64,
    spurious: f64,
    decayed_at: Option<Instant>,
}

impl LossRate {
    /// Nothing is known yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// A packet's fate is known.
    pub fn on_outcome(&mut self, outcome: &PacketOutcome) {
        match outcome.fate {
            PacketFate::Acked => self.outcomes += 1.0,
            PacketFate::Lost => {
                self.outcomes += 1.0;
                self.lost += 1.0;
            }
            PacketFate::Spurious => self.spurious += 1.0,
        }
    }

    /// Lets old outcomes fade; call now and then.
    pub fn decay(&mut self, now: Instant) {
        let since = self.decayed_at.replace(now);
        let Some(elapsed) = since.map(|since| now.saturating_since(since)) else {
            return;
        };
        let keep = libm::exp(-elapsed.as_secs_f64() / MEMORY.as_secs_f64());
        self.outcomes *= keep;
        self.lost *= keep;
        self.spurious *= keep;
    }

    /// Share of packets lost, spurious losses taken off; 0 to 0.99.
    pub fn rate(&self) -> f64 {
        let lost = (self.lost - self.spurious).max(0.0);
        (lost / self.outcomes.max(ENOUGH)).clamp(0.0, 0.99)
    }
}
