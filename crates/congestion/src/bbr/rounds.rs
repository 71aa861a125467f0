//! Packet-timed rounds that can be started anew when the state machine changes its pace.

use swiftwater_units::ByteCount;

use crate::sample::RateSample;

/// Round counter (draft-ietf-ccwg-bbr, section 5.5.1). The transport's count goes on regardless;
/// this one lets a state begin a round of its own.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Rounds {
    count: u64,
    /// The round ends with the first packet sent when this much had been delivered.
    ends_at: ByteCount,
}

impl Rounds {
    /// An ACK with `sample`; `delivered` bytes in total have been delivered now. True if a round
    /// began with it. An ACK without a sample shows nothing.
    pub fn on_ack(&mut self, sample: Option<&RateSample>, delivered: ByteCount) -> bool {
        let start = sample.is_some_and(|sample| sample.prior_delivered >= self.ends_at);
        if start {
            self.count = self.count.saturating_add(1);
            self.restart(delivered);
        }
        start
    }

    /// A round begins now.
    pub fn restart(&mut self, delivered: ByteCount) {
        self.ends_at = delivered;
    }

    /// Completed rounds.
    pub fn count(&self) -> u64 {
        self.count
    }
}
