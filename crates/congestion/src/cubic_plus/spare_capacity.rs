//! Not in the paper: growth into capacity that others have left.
//!
//! A flow that left slow start beside others has a small window, and CUBIC takes seconds to fill a
//! link on which it is alone by then. Past the window of the last reduction with no queue on the path for
//! some round trips, no other flow lacks capacity, so the window grows by a share of itself in each
//! round trip. The share doubles from a small one, and any queue ends the growth, so that a window near
//! what the path carries overshoots by little. Below the window of the last reduction nothing
//! changes: a CUBIC flow beside it grows there as well, and has the same right to that capacity.

use swiftwater_units::ByteCount;

/// Share of the window by which it grows in the first round trip.
const FIRST_GAIN: f64 = 1.0 / 16.0;

/// For how many round trips there was no queue past the last known limit, and so how fast to grow.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct SpareCapacity {
    /// Largest share of the window by which it grows in a round trip.
    max_gain: f64,
    /// Round trips without a queue before it grows.
    wait: u32,
    /// The window before the last reduction for congestion.
    limit: ByteCount,
    round: u64,
    /// Completed round trips past the limit without a queue.
    empty_rounds: u32,
}

impl SpareCapacity {
    pub(super) fn new(max_gain: f64, wait: u32) -> Self {
        Self {
            max_gain,
            wait,
            limit: ByteCount::ZERO,
            round: 0,
            empty_rounds: 0,
        }
    }

    /// An ACK of round `round` saw a queue, or none, of a flow with the window `cwnd`.
    pub(super) fn on_ack(&mut self, round: u64, queue: bool, cwnd: ByteCount) {
        if queue || cwnd < self.limit {
            self.empty_rounds = 0;
        } else if round != self.round {
            self.empty_rounds = self.empty_rounds.saturating_add(1);
        }
        self.round = round;
    }

    /// The window `cwnd` is reduced because of congestion.
    pub(super) fn on_congestion(&mut self, cwnd: ByteCount) {
        self.limit = cwnd;
        self.empty_rounds = 0;
    }

    /// A loss, whatever it means, or a drain: round trips are counted anew.
    pub(super) fn restart(&mut self) {
        self.empty_rounds = 0;
    }

    /// By how much the window grows for `acked` more bytes.
    pub(super) fn growth(&self, acked: ByteCount) -> ByteCount {
        // The first completed round trip may have begun with a queue.
        let Some(rounds) = self.empty_rounds.checked_sub(self.wait + 1) else {
            return ByteCount::ZERO;
        };
        let gain = FIRST_GAIN * f64::from(1_u32 << rounds.min(16));
        acked.scaled(gain.min(self.max_gain))
    }
}
