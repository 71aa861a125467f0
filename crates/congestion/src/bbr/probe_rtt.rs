//! How long `ProbeRTT` lasts once little enough is in flight.

use std::time::Duration;

use swiftwater_units::Instant;

/// What an ACK during `ProbeRTT` brought.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum ProbeRttStep {
    /// Too much is in flight still.
    Draining,
    /// The target was reached now; the caller starts a round.
    Started,
    /// The target is being kept.
    Holding,
    /// Kept long enough.
    Done,
}

/// The stay at low flight: a set time and one round, whichever is longer
/// (draft-ietf-ccwg-bbr, section 5.3.4.3, "`HandleProbeRTT`").
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ProbeRtt {
    duration: Duration,
    done_at: Option<Instant>,
    round_done: bool,
}

impl ProbeRtt {
    /// Stays of at least `duration`.
    pub fn new(duration: Duration) -> Self {
        Self {
            duration,
            done_at: None,
            round_done: false,
        }
    }

    /// `ProbeRTT` begins.
    pub fn enter(&mut self) {
        self.done_at = None;
    }

    /// An ACK arrived; `at_target` is true if no more than the target is in flight.
    pub fn on_ack(&mut self, now: Instant, at_target: bool, round_start: bool) -> ProbeRttStep {
        if self.done_at.is_none() {
            if !at_target {
                return ProbeRttStep::Draining;
            }
            self.done_at = Some(now + self.duration);
            self.round_done = false;
            return ProbeRttStep::Started;
        }
        self.round_done |= round_start;
        if self.round_done && self.time_is_up(now) {
            ProbeRttStep::Done
        } else {
            ProbeRttStep::Holding
        }
    }

    /// True if the target was reached and the time has passed since; after an idle period that is
    /// enough, since nothing is in flight any more.
    pub fn time_is_up(&self, now: Instant) -> bool {
        self.done_at.is_some_and(|done_at| now > done_at)
    }
}
