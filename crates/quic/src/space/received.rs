//! Packet numbers received, and the acknowledgement that is due for them (RFC 9000, section 13.2).

use std::time::Duration;

use swiftwater_units::{Instant, PacketNumber};

use crate::policy::{AckDecision, AckPolicy, AckView};
use crate::ranges::RangeSet;
use crate::transmit::EcnCodepoint;

/// Ranges that an ACK frame reports at most; older ones are dropped (RFC 9000, section 13.2.3).
const MAX_ACK_RANGES: usize = 64;
/// Ranges remembered to recognise duplicates; packets below the oldest then count as duplicates.
const MAX_SEEN_RANGES: usize = 256;

/// Received packets of one space.
#[derive(Debug)]
pub(crate) struct Received {
    /// What to acknowledge.
    to_ack: RangeSet,
    /// What has been processed; packet numbers below `seen_floor` count as processed.
    seen: RangeSet,
    seen_floor: u64,
    largest: Option<(PacketNumber, Instant)>,
    /// Ack-eliciting packets since the last ACK was sent.
    unacked_eliciting: u64,
    /// When an ACK must leave at the latest; the past means at once.
    ack_deadline: Option<Instant>,
    /// Cumulative counts: ECT(0), ECT(1), CE.
    ecn: [u64; 3],
}

impl Received {
    pub(crate) fn new() -> Self {
        Self {
            to_ack: RangeSet::new(),
            seen: RangeSet::new(),
            seen_floor: 0,
            largest: None,
            unacked_eliciting: 0,
            ack_deadline: None,
            ecn: [0; 3],
        }
    }

    /// The largest packet number that arrived.
    pub(crate) fn largest(&self) -> Option<PacketNumber> {
        self.largest.map(|(number, _)| number)
    }

    /// True if `number` was processed before, or is too old to tell.
    pub(crate) fn is_duplicate(&self, number: PacketNumber) -> bool {
        number.get() < self.seen_floor || self.seen.contains(number.get())
    }

    /// Records an authenticated packet. `immediate` acknowledges without asking `policy`, as for
    /// Initial and Handshake packets (RFC 9000, section 13.2.1).
    pub(crate) fn on_packet(
        &mut self,
        now: Instant,
        number: PacketNumber,
        ack_eliciting: bool,
        ecn: Option<EcnCodepoint>,
        policy: Option<(&mut dyn AckPolicy, Duration, Duration)>,
    ) {
        self.seen.insert_one(number.get());
        while self.seen.len() > MAX_SEEN_RANGES {
            if let Some(oldest) = self.seen.pop_first() {
                self.seen_floor = oldest.end;
            }
        }
        self.to_ack.insert_one(number.get());
        while self.to_ack.len() > MAX_ACK_RANGES {
            self.to_ack.pop_first();
        }
        match ecn {
            Some(EcnCodepoint::Ect0) => self.ecn[0] += 1,
            Some(EcnCodepoint::Ect1) => self.ecn[1] += 1,
            Some(EcnCodepoint::Ce) => self.ecn[2] += 1,
            None => {}
        }
        let previous = self.largest.map(|(largest, _)| largest);
        if previous.is_none_or(|largest| number > largest) {
            self.largest = Some((number, now));
        }
        if !ack_eliciting {
            return;
        }
        self.unacked_eliciting += 1;
        let max_delay = policy
            .as_ref()
            .map_or(Duration::ZERO, |(_, max_delay, _)| *max_delay);
        let decision = match policy {
            None => AckDecision::Now,
            Some((policy, max_ack_delay, smoothed_rtt)) => policy.on_ack_eliciting(&AckView {
                unacked: self.unacked_eliciting,
                out_of_order: previous
                    .map_or(number.get() != 0, |largest| number != largest.next()),
                ce: ecn == Some(EcnCodepoint::Ce),
                max_ack_delay,
                smoothed_rtt,
            }),
        };
        let deadline = match decision {
            AckDecision::Now => now,
            AckDecision::Within(delay) => now + delay.min(max_delay),
        };
        self.ack_deadline = Some(self.ack_deadline.map_or(deadline, |due| due.min(deadline)));
    }

    /// When an ACK must leave.
    pub(crate) fn ack_deadline(&self) -> Option<Instant> {
        self.ack_deadline
    }

    /// True if an ACK must leave now.
    pub(crate) fn ack_is_due(&self, now: Instant) -> bool {
        self.ack_deadline.is_some_and(|deadline| deadline <= now)
    }

    /// True if an ACK would tell the peer about ack-eliciting packets it doesn't know acknowledged.
    pub(crate) fn has_unacked(&self) -> bool {
        self.unacked_eliciting > 0
    }

    /// The ranges to acknowledge, largest first.
    pub(crate) fn ranges(
        &self,
    ) -> impl Iterator<Item = std::ops::RangeInclusive<u64>> + Clone + '_ {
        self.to_ack
            .iter()
            .rev()
            .map(|range| range.start..=range.end - 1)
    }

    /// Time since the largest packet arrived.
    pub(crate) fn ack_delay(&self, now: Instant) -> Duration {
        self.largest.map_or(Duration::ZERO, |(_, at)| now - at)
    }

    /// Cumulative ECN counts, if any packet was marked.
    pub(crate) fn ecn(&self) -> Option<[u64; 3]> {
        (self.ecn != [0; 3]).then_some(self.ecn)
    }

    /// An ACK frame with everything in it was written.
    pub(crate) fn on_ack_sent(&mut self) {
        self.unacked_eliciting = 0;
        self.ack_deadline = None;
    }

    /// The peer acknowledged an ACK that reported up to `largest`: those need no repetition (RFC
    /// 9000, section 13.2.4).
    pub(crate) fn on_ack_acked(&mut self, largest: PacketNumber) {
        // Keep the newest range so that an ACK can always be written.
        let keep_from = self.largest().map_or(0, PacketNumber::get);
        self.to_ack.remove(0..(largest.get() + 1).min(keep_from));
    }
}
