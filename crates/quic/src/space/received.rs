//! Packet numbers received, and the acknowledgement that is due for them (RFC 9000, section 13.2).

use std::time::Duration;

use swiftwater_units::{Instant, PacketCount, PacketNumber};
use swiftwater_wire::frame::AckFrequency;

use crate::idle_memory::IdleMemory;
use crate::policy::{AckDecision, AckPolicy, AckView, RequestedFrequency};
use crate::ranges::RangeSet;
use crate::transmit::EcnCodepoint;

use super::Arrivals;

/// Ranges that an ACK frame reports; older ones are dropped once they were reported (RFC 9000, section
/// 13.2.3).
const MAX_ACK_RANGES: usize = 64;
/// Ranges kept at most, reported or not: more come only if no ACK can be sent.
const MAX_UNREPORTED_RANGES: usize = 256;
/// Above every packet number.
const ALL_REPORTED: u64 = u64::MAX;
/// Ranges kept to recognise duplicates; packets below the oldest then count as duplicates.
const MAX_SEEN_RANGES: usize = 256;
/// Packet numbers behind the largest whose absence may be reordering (RFC 9002, section 6.1.1).
const REORDERING: u64 = 3;

/// What decides when a 1-RTT packet is acknowledged.
pub(crate) struct AckTiming<'a> {
    pub(crate) policy: &'a mut dyn AckPolicy,
    /// The delay that this end declared, or that the peer asked for.
    pub(crate) max_ack_delay: Duration,
    pub(crate) smoothed_rtt: Duration,
    /// How often the peer asked to be acknowledged.
    pub(crate) requested: Option<AckFrequency>,
}

/// Received packets of one space.
#[derive(Debug)]
pub(crate) struct Received {
    /// What to acknowledge.
    to_ack: RangeSet,
    /// What has been processed; packet numbers below `seen_floor` count as processed.
    seen: RangeSet,
    seen_floor: u64,
    /// Packets processed, and the least of their numbers.
    packets: u64,
    least: u64,
    largest: Option<(PacketNumber, Instant)>,
    /// Ack-eliciting packets since the last ACK was sent; no more are counted from `u32::MAX` on.
    unacked_eliciting: u32,
    /// When an ACK must leave at the latest; the past means at once.
    ack_deadline: Option<Instant>,
    /// Cumulative counts: ECT(0), ECT(1), CE.
    ecn: [u64; 3],
    /// The last packet was marked CE.
    last_was_ce: bool,
    /// The number after the largest one in the last ACK frame; 0 before the first.
    after_reported: u64,
    /// Every ack-eliciting packet below was reported in an ACK frame.
    first_unreported: u64,
}

impl IdleMemory for Received {
    fn release_idle_memory(&mut self) {
        let Self {
            to_ack,
            seen,
            seen_floor: _,
            packets: _,
            least: _,
            largest: _,
            unacked_eliciting: _,
            ack_deadline: _,
            ecn: _,
            last_was_ce: _,
            after_reported: _,
            first_unreported: _,
        } = self;
        to_ack.shrink();
        seen.shrink();
    }
}

impl Received {
    pub(crate) fn new() -> Self {
        Self {
            to_ack: RangeSet::new(),
            seen: RangeSet::new(),
            seen_floor: 0,
            packets: 0,
            least: u64::MAX,
            largest: None,
            unacked_eliciting: 0,
            ack_deadline: None,
            ecn: [0; 3],
            last_was_ce: false,
            after_reported: 0,
            first_unreported: ALL_REPORTED,
        }
    }

    /// The largest packet number that arrived.
    pub(crate) fn largest(&self) -> Option<PacketNumber> {
        self.largest.map(|(number, _)| number)
    }

    /// True if `number` was processed before, or is below all that is kept.
    pub(crate) fn is_duplicate(&self, number: PacketNumber) -> bool {
        // Above the largest there is nothing to look up.
        self.largest().is_some_and(|largest| number <= largest)
            && (number.get() < self.seen_floor || self.seen.contains(number.get()))
    }

    /// What should have come, and what has not.
    pub(crate) fn arrivals(&self) -> Arrivals {
        let Some(largest) = self.largest() else {
            return Arrivals::default();
        };
        let end = largest.get() + 1;
        // Below, a number should have come.
        let due = end.saturating_sub(REORDERING).max(self.least);
        let expected = due - self.least;
        let came = self.packets - self.seen.overlap(due..end);
        Arrivals {
            expected: PacketCount::new(expected),
            missing: PacketCount::new(expected.saturating_sub(came)),
        }
    }

    /// Records an authenticated packet. Without `timing` it is acknowledged at once, as Initial and
    /// Handshake packets are (RFC 9000, section 13.2.1).
    pub(crate) fn on_packet(
        &mut self,
        now: Instant,
        number: PacketNumber,
        ack_eliciting: bool,
        ecn: Option<EcnCodepoint>,
        timing: Option<AckTiming<'_>>,
    ) {
        self.packets += u64::from(self.seen.insert_one(number.get()));
        self.least = self.least.min(number.get());
        while self.seen.len() > MAX_SEEN_RANGES {
            if let Some(oldest) = self.seen.pop_first() {
                self.seen_floor = oldest.end;
            }
        }
        self.to_ack.insert_one(number.get());
        if ack_eliciting {
            self.first_unreported = self.first_unreported.min(number.get());
        }
        let overflows = self.to_ack.len() > MAX_ACK_RANGES && !self.drop_old_ranges();
        match ecn {
            Some(EcnCodepoint::Ect0) => self.ecn[0] += 1,
            Some(EcnCodepoint::Ect1) => self.ecn[1] += 1,
            Some(EcnCodepoint::Ce) => self.ecn[2] += 1,
            None => {}
        }
        let ce = ecn == Some(EcnCodepoint::Ce);
        let ce_begins = ce && !std::mem::replace(&mut self.last_was_ce, ce);
        let previous = self.largest.map(|(largest, _)| largest);
        if previous.is_none_or(|largest| number > largest) {
            self.largest = Some((number, now));
        }
        if !ack_eliciting {
            return;
        }
        self.unacked_eliciting = self.unacked_eliciting.saturating_add(1);
        let deadline = match timing {
            None => now,
            Some(timing) => {
                let view = AckView {
                    unacked: u64::from(self.unacked_eliciting),
                    out_of_order: previous
                        .map_or(number.get() != 0, |largest| number != largest.next()),
                    ce,
                    max_ack_delay: timing.max_ack_delay,
                    smoothed_rtt: timing.smoothed_rtt,
                    requested: timing.requested.map(|requested| RequestedFrequency {
                        ack_eliciting_threshold: requested.ack_eliciting_threshold,
                        reordered: self.is_reordered_by(requested.reordering_threshold),
                        ce_begins,
                    }),
                };
                match timing.policy.on_ack_eliciting(&view) {
                    _ if overflows => now,
                    AckDecision::Now => now,
                    AckDecision::Within(delay) => now + delay.min(timing.max_ack_delay),
                }
            }
        };
        self.ack_deadline = Some(self.ack_deadline.map_or(deadline, |due| due.min(deadline)));
    }

    /// Drops the oldest ranges down to the limit; false if one of them was not reported yet and has to
    /// wait for an ACK.
    fn drop_old_ranges(&mut self) -> bool {
        while self.to_ack.len() > MAX_ACK_RANGES
            && let Some(oldest) = self.to_ack.first()
        {
            if self.first_unreported < oldest.end {
                if self.to_ack.len() <= MAX_UNREPORTED_RANGES {
                    return false;
                }
                self.first_unreported = oldest.end;
            }
            self.to_ack.pop_first();
        }
        true
    }

    /// True if the smallest missing packet that the peer can't know to be lost yet lies `threshold`
    /// behind the largest (draft-ietf-quic-ack-frequency, section 6.2).
    fn is_reordered_by(&self, threshold: u64) -> bool {
        let Some((largest, _)) = self.largest.filter(|_| threshold > 0) else {
            return false;
        };
        // The first packet number that was not reported missing yet.
        let floor = self.after_reported.saturating_sub(threshold);
        let mut missing = None;
        let mut above = largest.get() + 1;
        for range in self.seen.iter().rev() {
            if range.end < above {
                missing = Some(range.end.max(floor));
            }
            above = range.start;
            if above <= floor {
                break;
            }
        }
        // Below what is kept nothing counts as missing.
        let lowest = floor.max(self.seen_floor);
        if above > lowest {
            missing = Some(lowest);
        }
        missing.is_some_and(|missing| largest.get() - missing >= threshold)
    }

    /// The peer asked for an acknowledgement at once.
    pub(crate) fn require_ack(&mut self, now: Instant) {
        self.ack_deadline = Some(now);
    }

    /// When an ACK must leave.
    pub(crate) fn ack_deadline(&self) -> Option<Instant> {
        self.ack_deadline
    }

    /// True if an ACK must leave now.
    pub(crate) fn ack_is_due(&self, now: Instant) -> bool {
        self.ack_deadline.is_some_and(|deadline| deadline <= now)
    }

    /// True if an ACK would newly acknowledge ack-eliciting packets to the peer.
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

    /// An ACK frame with the largest `ranges` of [`Received::ranges`] was written.
    pub(crate) fn on_ack_sent(&mut self, ranges: u64) {
        let written = usize::try_from(ranges).unwrap_or(usize::MAX);
        let left_out = self.to_ack.iter().rev().nth(written);
        if left_out.is_some_and(|range| self.first_unreported < range.end) {
            // There was no room for all: the rest is reported with the next packet that has some.
            self.unacked_eliciting = 1;
        } else {
            self.first_unreported = ALL_REPORTED;
            self.unacked_eliciting = 0;
        }
        self.ack_deadline = None;
        self.after_reported = self.largest().map_or(0, |largest| largest.get() + 1);
    }

    /// The peer acknowledged an ACK that reported up to `largest`: those need no repetition (RFC
    /// 9000, section 13.2.4), but for packets that arrived after it was written.
    pub(crate) fn on_ack_acked(&mut self, largest: PacketNumber) {
        // Keep the newest range so that an ACK can always be written.
        let keep_from = self.largest().map_or(0, PacketNumber::get);
        let keep_from = keep_from.min(self.first_unreported);
        self.to_ack.remove(0..(largest.get() + 1).min(keep_from));
    }
}
