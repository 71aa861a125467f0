//! When to acknowledge (RFC 9000, section 13.2).

use std::time::Duration;

/// What an [`AckPolicy`] is shown of an ack-eliciting packet that has just arrived.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct AckView {
    /// Ack-eliciting packets received since the last ACK was sent, this one included.
    pub unacked: u64,
    /// True if the packet is out of order: below, or more than one above, the largest so far.
    pub out_of_order: bool,
    /// True if the packet was marked CE.
    pub ce: bool,
    /// The `max_ack_delay` that this end declared.
    pub max_ack_delay: Duration,
    /// `smoothed_rtt` of the path.
    pub smoothed_rtt: Duration,
    /// What the peer asked for, if it did.
    pub requested: Option<RequestedFrequency>,
}

/// What the peer's last ACK_FREQUENCY frame requests (draft-ietf-quic-ack-frequency, section 4). The
/// delay that it requests is in [`AckView::max_ack_delay`].
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct RequestedFrequency {
    /// Ack-eliciting packets that may wait; one more makes an acknowledgement due.
    pub ack_eliciting_threshold: u64,
    /// True if a missing packet that was not reported to the peer yet is as far behind the largest as
    /// the peer's reordering threshold.
    pub reordered: bool,
    /// True if the packet is the first with a CE mark after one without.
    pub ce_begins: bool,
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
/// otherwise within `max_ack_delay`. What the peer asked for replaces all of it
/// (draft-ietf-quic-ack-frequency, section 6).
#[derive(Clone, Copy, Debug)]
pub struct EveryOther {
    /// Ack-eliciting packets per acknowledgement, at least 1.
    pub threshold: u64,
}

impl AckPolicy for EveryOther {
    fn on_ack_eliciting(&mut self, view: &AckView) -> AckDecision {
        let due = match view.requested {
            None => view.unacked >= self.threshold || view.out_of_order || view.ce,
            Some(requested) => {
                // Where the peer requests few acknowledgements, CE is reported when it begins (section 6.4).
                let ce = match requested.ack_eliciting_threshold {
                    0 | 1 => view.ce,
                    _ => requested.ce_begins,
                };
                view.unacked > requested.ack_eliciting_threshold || requested.reordered || ce
            }
        };
        if due {
            AckDecision::Now
        } else {
            AckDecision::Within(view.max_ack_delay)
        }
    }
}
