//! Default and competitive mode, and the `delta` that follows (paper, section 2.2).
//!
//! Copa flows alone empty the queue once in five round trips. Where it doesn't get empty, a flow
//! that fills buffers must be there, and `1/delta` is moved the way such a flow moves its window.

use std::time::Duration;

use swiftwater_units::Instant;

/// Largest `1/delta`: a standing queue of a million packets.
const MAX_INVERSE: f64 = 1_048_576.0;

/// Mode and `delta`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Mode {
    /// Of default mode; competitive mode never exceeds it.
    base: f64,
    delta: f64,
    competitive: bool,
    /// When the queue was last seen nearly empty.
    empty_at: Option<Instant>,
    lossy_round: bool,
}

impl Mode {
    pub(super) fn new(delta: f64) -> Self {
        Self {
            base: delta,
            delta,
            competitive: false,
            empty_at: None,
            lossy_round: false,
        }
    }

    /// Takes in whether the queue is nearly empty now; a mode is chosen by the last `window`.
    pub(super) fn observe(&mut self, now: Instant, nearly_empty: bool, window: Duration) {
        let empty_at = *self.empty_at.get_or_insert(now);
        if nearly_empty {
            self.empty_at = Some(now);
            self.competitive = false;
            self.delta = self.base;
        } else if !self.competitive && now.saturating_since(empty_at) > window {
            self.competitive = true;
            self.lossy_round = false;
        }
    }

    /// Time passed without packets, which says nothing about the queue.
    pub(super) fn on_idle(&mut self) {
        self.empty_at = None;
    }

    /// A round trip has ended in which the window was put to use, or not.
    pub(super) fn on_round(&mut self, window_used: bool) {
        if self.competitive && window_used && !self.lossy_round {
            self.delta = 1.0 / (1.0 / self.delta + 1.0).min(MAX_INVERSE);
        }
        self.lossy_round = false;
    }

    /// A congestion event.
    pub(super) fn on_congestion(&mut self) {
        if self.competitive {
            self.delta = (2.0 * self.delta).min(self.base);
        }
        self.lossy_round = true;
    }

    pub(super) fn is_competitive(&self) -> bool {
        self.competitive
    }

    pub(super) fn delta(&self) -> f64 {
        self.delta
    }
}
