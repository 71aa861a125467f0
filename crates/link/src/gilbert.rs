//! The states of a Gilbert-Elliott model whose state changes with time.
//!
//! The state of each step follows from that of the step before and a random number that belongs to
//! the step's index: packets have no influence on it. The effect of a state on packets is
//! implemented in `loss.rs`.

use std::time::Duration;

use swiftwater_units::Instant;

use crate::random::{IndexedStream, Purpose};

/// The good or bad state of each step since a start, queried in order of time.
///
/// A step with number `u`, uniform in [0, 1), is bad after a good one if `u < p` and bad after a bad
/// one if `u < 1 - r`. Below both bounds it is bad and above both it is good independently of the
/// previous step, so that the search from a step back to the last known one may end there: after `1
/// / (1 - |1 - p - r|)` steps on average, however long no packet was sent. No step is visited twice.
#[derive(Debug)]
pub(crate) struct SteppedStates {
    numbers: IndexedStream,
    start: Instant,
    step: u64,
    bad_after_good: f64,
    bad_after_bad: f64,
    known: u64,
    bad: bool,
}

impl SteppedStates {
    /// `step` must not be zero.
    pub(crate) fn new(seed: u64, p: f64, r: f64, step: Duration, start: Instant) -> Self {
        Self {
            numbers: IndexedStream::new(seed, Purpose::LossState),
            start,
            step: u64::try_from(step.as_nanos()).unwrap_or(u64::MAX).max(1),
            bad_after_good: p,
            bad_after_bad: 1.0 - r,
            known: 0,
            bad: false,
        }
    }

    /// The state at `time`, or at a later time if that was queried before.
    pub(crate) fn is_bad(&mut self, time: Instant) -> bool {
        let elapsed = time.as_nanos().saturating_sub(self.start.as_nanos());
        let index = elapsed / self.step;
        if index > self.known {
            self.bad = self.state_of(index);
            self.known = index;
        }
        self.bad
    }

    /// The state of a step after the last known one.
    fn state_of(&mut self, index: u64) -> bool {
        let (low, high) = if self.bad_after_good < self.bad_after_bad {
            (self.bad_after_good, self.bad_after_bad)
        } else {
            (self.bad_after_bad, self.bad_after_good)
        };
        // Steps that only propagate the state, unchanged or inverted.
        let handed_on = |count: u64, bad: bool| {
            let turns = self.bad_after_good > self.bad_after_bad;
            bad ^ (turns && count % 2 == 1)
        };
        if low <= 0.0 && high >= 1.0 {
            return handed_on(index - self.known, self.bad);
        }
        let mut at = index;
        while at > self.known {
            let number = self.numbers.unit(at);
            if number < low || number >= high {
                return handed_on(index - at, number < low);
            }
            at -= 1;
        }
        handed_on(index - self.known, self.bad)
    }
}
