//! The tail loss probe (RFC 8985, section 7): when to send it, and what its acknowledgement says.

use std::time::Duration;

/// Added to two round trips while several segments are in flight.
const SLACK: Duration = Duration::from_millis(2);

/// The probe of one sender.
#[derive(Clone, Copy, Debug, Default)]
pub struct LossProbe {
    /// End of what was sent when the probe was; `None` without a probe in flight.
    end: Option<u64>,
    is_repetition: bool,
}

/// What the end of a probe says.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum ProbeOutcome {
    /// Nothing yet.
    Waiting,
    /// Nothing was lost, or new data were sent as the probe.
    Harmless,
    /// The probe repaired a loss, which calls for a reduction of the window.
    RepairedLoss,
}

impl LossProbe {
    /// How long after the last transmission to probe. `smoothed_rtt` is absent before the first sample,
    /// `single` is whether one segment is in flight, and `min_timeout` the floor of the retransmission
    /// timeout, for the delay of a lone acknowledgement.
    pub fn delay(smoothed_rtt: Option<Duration>, single: bool, min_timeout: Duration) -> Duration {
        match smoothed_rtt {
            None => Duration::from_secs(1),
            Some(rtt) if single => rtt * 2 + min_timeout,
            Some(rtt) => rtt * 2 + SLACK,
        }
    }

    /// Whether a probe is in flight.
    pub fn is_in_flight(&self) -> bool {
        self.end.is_some()
    }

    /// A probe was sent; `end` is the end of what was sent by then.
    pub fn on_sent(&mut self, end: u64, is_repetition: bool) {
        self.end = Some(end);
        self.is_repetition = is_repetition;
    }

    /// Takes an acknowledgement up to `acked`. `is_duplicate` is whether it reports a duplicate or
    /// nothing new at all: then both the original and the probe arrived.
    pub fn on_ack(&mut self, acked: u64, is_duplicate: bool) -> ProbeOutcome {
        let Some(end) = self.end.filter(|end| acked >= *end) else {
            return ProbeOutcome::Waiting;
        };
        if !self.is_repetition || is_duplicate {
            self.end = None;
            ProbeOutcome::Harmless
        } else if acked > end {
            self.end = None;
            ProbeOutcome::RepairedLoss
        } else {
            ProbeOutcome::Waiting
        }
    }

    /// Recovery began otherwise.
    pub fn cancel(&mut self) {
        self.end = None;
    }
}
