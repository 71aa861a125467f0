//! When to acknowledge (RFC 9000, section 13.2).

use std::time::Duration;

/// What an [`AckPolicy`] may know about an ack-eliciting packet that has just arrived.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct AckView {
    /// Ack-eliciting packets received since the last ACK was sent, this one included.
    pub unacked: u64,
    /// True if the packet is out of order: below, or more than one above, the largest so far.
    pub out_of_order: bool,
    /// True if the packet was marked CE.
    pub ce: bool,
    /// The `max_ack_delay` we promised.
    pub max_ack_delay: Duration,
    /// `smoothed_rtt` of the path.
    pub smoothed_rtt: Duration,
}

/// An [`AckPolicy`]'s answer.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum AckDecision {
    /// Acknowledge with the next packet, which is due now.
    Now,
    /// Acknowledge at the latest after this delay; capped at `max_ack_delay`.
    Within(Duration),
}

/// Decides when a 1-RTT packet is acknowledged.
pub trait AckPolicy: Send {
    /// An ack-eliciting packet arrived.
    fn on_ack_eliciting(&mut self, view: &AckView) -> AckDecision;
}

/// RFC 9000, section 13.2: at once for every `threshold`-th packet, for reordering and for CE;
/// otherwise within `max_ack_delay`.
#[derive(Clone, Copy, Debug)]
pub struct EveryOther {
    /// Ack-eliciting packets per acknowledgement, at least 1.
    pub threshold: u64,
}

impl AckPolicy for EveryOther {
    fn on_ack_eliciting(&mut self, view: &AckView) -> AckDecision {
        if view.unacked >= self.threshold || view.out_of_order || view.ce {
            AckDecision::Now
        } else {
            AckDecision::Within(view.max_ack_delay)
        }
    }
}
