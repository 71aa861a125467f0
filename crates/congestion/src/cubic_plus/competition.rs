//! Not in the paper: distinguishes a queue that others keep full from one of flows that drain theirs
//! too, as the mode switch of Copa does (Arun and Balakrishnan, NSDI 2018, section 2.2).
//!
//! Where all that waits is of flows that drain, the queue is nearly empty soon after a drain. Where it
//! is not within a few round trips, a flow that fills buffers is there: the window from before the
//! drains comes back, and nothing is drained until the queue was seen nearly empty, or, because a
//! flow that now fills the buffer itself might never see that, until a time that doubles with each
//! drain in vain.

use std::time::Duration;

use swiftwater_units::Instant;

/// Smoothed round-trip times without draining after the first drain in vain.
const FIRST_PAUSE: u32 = 8;

/// What a drain has come to.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Outcome {
    /// Nothing new.
    None,
    /// The queue is nearly empty.
    Emptied,
    /// It did not get so in time: the drains are to be taken back.
    Futile,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Phase {
    /// The queue may be drained.
    Cooperative,
    /// It was drained, first at that time.
    Testing(Instant),
    /// It must not be drained before that time.
    Competitive(Instant),
}

/// Whether flows that fill buffers share the path.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Competition {
    /// Smoothed round-trip times within which a drain must empty the queue.
    within: f64,
    /// Most smoothed round-trip times without draining.
    longest_pause: u32,
    phase: Phase,
    /// Tests in a row that were in vain.
    futile: u32,
}

impl Competition {
    pub(super) fn new(within: f64, longest_pause: u32) -> Self {
        Self {
            within,
            longest_pause,
            phase: Phase::Cooperative,
            futile: 0,
        }
    }

    /// Takes in whether the queue is nearly empty at `now`.
    pub(super) fn observe(
        &mut self,
        now: Instant,
        [srtt, base]: [Duration; 2],
        nearly_empty: bool,
    ) -> Outcome {
        if nearly_empty {
            self.futile = 0;
            let tested = matches!(self.phase, Phase::Testing(_));
            self.phase = Phase::Cooperative;
            return if tested {
                Outcome::Emptied
            } else {
                Outcome::None
            };
        }
        match self.phase {
            Phase::Testing(since) if now >= since + srtt + base.mul_f64(self.within) => {
                let pause = FIRST_PAUSE
                    .checked_shl(self.futile)
                    .unwrap_or(u32::MAX)
                    .min(self.longest_pause);
                self.futile = (self.futile + 1).min(16);
                self.phase = Phase::Competitive(now + srtt.saturating_mul(pause));
                Outcome::Futile
            }
            Phase::Competitive(until) if now >= until => {
                self.phase = Phase::Cooperative;
                Outcome::None
            }
            _ => Outcome::None,
        }
    }

    /// The queue is drained at `now`; true if that begins a test.
    pub(super) fn on_drain(&mut self, now: Instant) -> bool {
        let begins = self.phase == Phase::Cooperative;
        if begins {
            self.phase = Phase::Testing(now);
        }
        begins
    }

    /// The window was reduced for another reason, or the path was idle: a running test means nothing.
    pub(super) fn abandon_test(&mut self) {
        if matches!(self.phase, Phase::Testing(_)) {
            self.phase = Phase::Cooperative;
        }
    }

    /// True while the queue must not be drained.
    pub(super) fn is_competitive(&self) -> bool {
        matches!(self.phase, Phase::Competitive(_))
    }
}
