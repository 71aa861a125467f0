//! Rules about growing a window that hold for every algorithm: when a batch may grow it, how far,
//! and which time counts as used. No algorithm keeps a copy of these.
//!
//! RFC 9002, sections 7.3.2 and 7.8; RFC 9438, sections 4.2 and 5.8.

use std::time::Duration;

use swiftwater_units::{ByteCount, Instant};

use crate::sample::AckBatch;

/// No window grows beyond this (256 TiB): far above any path, and far below where arithmetic on
/// windows would lose precision.
pub const MAX_WINDOW: ByteCount = ByteCount::new(1 << 48);

/// What slow start makes of an ACK.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum SlowStartStep {
    /// Stay in slow start, with the window larger by this much.
    Grow(ByteCount),
    /// Leave slow start with this window.
    Exit(ByteCount),
}

impl AckBatch {
    /// True if this batch may grow a window: it acknowledges packets sent after the last congestion
    /// event (RFC 9002, section 7.3.2), and the flow put its window to use (section 7.8).
    pub fn may_grow(&self) -> bool {
        self.sent_after_recovery_start && self.window_used()
    }

    /// True if the flow put its window to use (RFC 9002, section 7.8): all of
    /// [`AckBatch::may_grow`] for algorithms whose growth doesn't depend on losses.
    ///
    /// The window counts as used if it was filled at any time in this round or the one before, or
    /// if something other than a lack of data, such as the pacer, held sending back. Because the
    /// latter includes the peer's flow control, [`FlightPeak::cap`] bounds the growth as well.
    pub fn window_used(&self) -> bool {
        self.cwnd_limited_in_round || !self.app_limited
    }
}

/// Most bytes seen in flight in the current and the previous round: the measure of what the path
/// has been shown to carry, and so of how far a window may run ahead of its use.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct FlightPeak {
    round: u64,
    current: ByteCount,
    previous: ByteCount,
}

impl FlightPeak {
    /// Takes note of the bytes in flight before `ack`.
    pub fn observe(&mut self, ack: &AckBatch) {
        let round = ack.round.count;
        if round != self.round {
            let adjacent = self.round.checked_add(1) == Some(round);
            self.previous = if adjacent {
                self.current
            } else {
                ByteCount::ZERO
            };
            self.current = ByteCount::ZERO;
            self.round = round;
        }
        self.current = self.current.max(ack.prior_inflight);
    }

    /// The largest window that growth may lead to: twice the peak in slow start, one and a half
    /// times the peak later, [`MAX_WINDOW`] at most.
    pub fn cap(&self, in_slow_start: bool) -> ByteCount {
        let peak = self.current.max(self.previous);
        let gain = if in_slow_start { 2.0 } else { 1.5 };
        peak.scaled(gain).min(MAX_WINDOW)
    }
}

/// A clock that runs only while the flow uses its window, so that idle and application-limited time
/// doesn't count as time in which the path was probed (RFC 9438, section 5.8).
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct ActiveClock {
    elapsed: Duration,
    seen: Instant,
}

impl ActiveClock {
    /// A clock that shows zero at `now`.
    pub fn started_at(now: Instant) -> Self {
        Self {
            elapsed: Duration::ZERO,
            seen: now,
        }
    }

    /// The flow was active from the last call until `now`.
    pub fn advance(&mut self, now: Instant) {
        self.elapsed = self.elapsed.saturating_add(now.saturating_since(self.seen));
        self.seen = self.seen.max(now);
    }

    /// The flow was not active from the last call until `now`.
    pub fn skip_to(&mut self, now: Instant) {
        self.seen = self.seen.max(now);
    }

    /// Active time since the start.
    pub fn elapsed(&self) -> Duration {
        self.elapsed
    }
}
