//! Round trips, counted in delivered data, and what happened in the running one.

use swiftwater_congestion::Round;
use swiftwater_units::ByteCount;

/// Round counter of one path (draft-ietf-ccwg-bbr, "round-trip counting"). A round ends when a
/// packet sent after its start is acknowledged; losses that the same ACK reveals belong to the
/// round that ends.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Rounds {
    count: u64,
    /// The round ends with the first packet sent when this much had been delivered.
    ends_at: u64,
    sent: ByteCount,
    lost: ByteCount,
    limited: bool,
    limited_before: bool,
}

impl Rounds {
    pub(super) fn on_sent(&mut self, size: u64) {
        self.sent += ByteCount::new(size);
    }

    pub(super) fn on_lost(&mut self, size: ByteCount) {
        self.lost += size;
    }

    /// An ACK whose most recently sent packet left when `prior_delivered` bytes had been
    /// delivered; `delivered` have been now.
    pub(super) fn on_ack(&mut self, prior_delivered: u64, delivered: u64) -> Round {
        let start = prior_delivered >= self.ends_at;
        if start {
            *self = Self {
                count: self.count.saturating_add(1),
                ends_at: delivered,
                limited_before: self.limited,
                ..Self::default()
            };
        }
        Round {
            count: self.count,
            start,
        }
    }

    /// The window, not the application, holds the flow back.
    pub(super) fn mark_window_limited(&mut self) {
        self.limited = true;
    }

    /// True if the window was filled in this round or the one before. One look at the moment of an
    /// ACK would miss windows that fill only for a part of each round.
    pub(super) fn window_limited(&self) -> bool {
        self.limited || self.limited_before
    }

    pub(super) fn sent(&self) -> ByteCount {
        self.sent
    }

    pub(super) fn lost(&self) -> ByteCount {
        self.lost
    }
}
