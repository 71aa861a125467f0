//! Whether the pipe is full: the delivery rate no longer grows although more is sent.

use swiftwater_units::Bandwidth;

use super::gain::Gain;

/// What a round whose packets the controller itself held back counts: a fraction of one, so that a
/// full pipe is found even if no round is free of that.
const HELD_PARTS: u32 = 1;
/// What any other round counts.
const PARTS: u32 = 4;

/// Looks for a plateau in the delivery rate (draft-ietf-ccwg-bbr, section 5.3.1.2).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FullPipe {
    threshold: Gain,
    rounds: u32,
    baseline: Bandwidth,
    /// Parts of rounds without growth.
    flat: u32,
    now: bool,
    reached: bool,
}

impl FullPipe {
    /// The pipe counts as full after `rounds` rounds in which the rate stayed below `threshold`
    /// times the baseline.
    pub fn new(threshold: Gain, rounds: u32) -> Self {
        Self {
            threshold,
            rounds,
            baseline: Bandwidth::ZERO,
            flat: 0,
            now: false,
            reached: false,
        }
    }

    /// A round ended with `rate`. Rounds limited by the application say nothing.
    pub fn on_round(&mut self, rate: Bandwidth, is_app_limited: bool) {
        if !is_app_limited {
            self.on_sampled_round(rate, PARTS);
        }
    }

    /// A round ended with `rate`, of packets that the controller itself held back.
    pub fn on_held_round(&mut self, rate: Bandwidth, is_app_limited: bool) {
        if !is_app_limited {
            self.on_sampled_round(rate, HELD_PARTS);
        }
    }

    fn on_sampled_round(&mut self, rate: Bandwidth, parts: u32) {
        if self.now {
            return;
        }
        if rate >= self.threshold.of_rate(self.baseline) {
            self.look_again_from(rate);
            return;
        }
        self.flat += parts;
        if self.flat >= self.rounds * PARTS {
            self.set_full();
        }
    }

    /// Starts to look for a plateau, from nothing.
    pub fn look_again(&mut self) {
        self.look_again_from(Bandwidth::ZERO);
    }

    /// Starts to look for a plateau above `baseline`.
    pub fn look_again_from(&mut self, baseline: Bandwidth) {
        self.baseline = baseline;
        self.flat = 0;
        self.now = false;
    }

    /// Other signs, such as losses, show that the pipe is full.
    pub fn set_full(&mut self) {
        self.now = true;
        self.reached = true;
    }

    /// The pipe was taken for full in error.
    pub fn set_never_full(&mut self) {
        self.look_again();
        self.reached = false;
    }

    /// True if a plateau was found since the last look began.
    pub fn is_full_now(&self) -> bool {
        self.now
    }

    /// True if the pipe was ever full.
    pub fn was_full(&self) -> bool {
        self.reached
    }
}
