//! ACK frames: which packets of the ledger they newly acknowledge.

use std::ops::RangeInclusive;

use swiftwater_units::{Instant, PacketNumber};

use crate::recovery::AckedPacket;

use super::{Entry, Ledger, State};

/// Which packets of the ledger one ACK frame newly acknowledges. Its vectors are scratch space that
/// the caller keeps.
#[derive(Debug, Default)]
pub(crate) struct AckOutcome {
    /// Newly acknowledged packets that counted in flight when sent, smallest number first in each
    /// range, ranges largest first.
    pub(crate) acked: Vec<AckedPacket>,
    /// Every newly acknowledged packet number, in the same order.
    pub(crate) numbers: Vec<PacketNumber>,
    /// The largest newly acknowledged packet.
    pub(crate) largest: Option<LargestAcked>,
    /// The largest of them that was sent on the path in use.
    largest_on_path: Option<PacketNumber>,
    /// True if any of them was ack-eliciting.
    pub(crate) ack_eliciting: bool,
    /// Newly acknowledged packets that were sent with an ECT mark.
    pub(crate) ecn_marked: u64,
    /// The frame acknowledged a packet number that was never sent.
    pub(crate) bogus: bool,
}

/// The largest packet that an ACK frame newly acknowledges.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LargestAcked {
    pub(crate) number: PacketNumber,
    pub(crate) sent_at: Instant,
    /// It was sent on the path in use.
    pub(crate) on_path: bool,
}

impl AckOutcome {
    pub(crate) fn clear(&mut self) {
        self.acked.clear();
        self.numbers.clear();
        self.largest = None;
        self.largest_on_path = None;
        self.ack_eliciting = false;
        self.ecn_marked = 0;
        self.bogus = false;
    }
}

impl Ledger {
    /// Takes an ACK frame's ranges, largest first, and reports what they newly acknowledge.
    pub(crate) fn on_ack(
        &mut self,
        largest: PacketNumber,
        ranges: impl Iterator<Item = RangeInclusive<u64>>,
        outcome: &mut AckOutcome,
    ) {
        outcome.clear();
        if largest >= self.next_number() {
            outcome.bogus = true;
            return;
        }
        for range in ranges {
            for (number, entry) in self.below.range_mut(&range) {
                acknowledge(entry, number, &mut self.eliciting_in_flight, outcome);
            }
            let (start, end) = ((*range.start()).max(self.base), *range.end() + 1);
            if start >= end {
                if self.below.first().is_none_or(|first| end <= first) {
                    // Ranges come in falling order: the rest is older still.
                    break;
                }
                continue;
            }
            if self.acked.covers(&(start..end)) {
                // Most ranges say what earlier frames have said.
                continue;
            }
            for number in self.acked.gaps_in(start..end).flatten() {
                let entry = &mut self.entries[(number - self.base) as usize];
                acknowledge(entry, number, &mut self.eliciting_in_flight, outcome);
            }
            self.acked.insert(start..end);
            self.settled.insert(start..end);
        }
        self.largest_acked = self.largest_acked.max(Some(largest));
        let on_path = outcome
            .largest_on_path
            .map_or(0, |largest| largest.get() + 1);
        self.acked_on_path_end = self.acked_on_path_end.max(on_path);
    }
}

/// Takes note that packet `number` was acknowledged.
fn acknowledge(
    entry: &mut Entry,
    number: u64,
    eliciting_in_flight: &mut u64,
    outcome: &mut AckOutcome,
) {
    let lost_in = match entry.state {
        State::Outstanding => {
            if entry.packet.is_awaited() {
                *eliciting_in_flight -= 1;
            }
            None
        }
        // A packet lost outside any episode (its space or path was abandoned) can't refute one.
        State::Lost(episode) => Some(episode.unwrap_or_default()),
        State::Skipped => {
            outcome.bogus = true;
            return;
        }
        State::Acked => return,
    };
    entry.state = State::Acked;
    let packet = &entry.packet;
    let number = PacketNumber::new(number);
    outcome.numbers.push(number);
    outcome.ack_eliciting |= packet.ack_eliciting;
    outcome.ecn_marked += u64::from(packet.ecn_marked);
    if (outcome.largest).is_none_or(|largest| number > largest.number) {
        outcome.largest = Some(LargestAcked {
            number,
            sent_at: packet.sent_at,
            on_path: packet.on_path,
        });
    }
    if packet.on_path {
        outcome.largest_on_path = outcome.largest_on_path.max(Some(number));
    }
    if packet.in_flight {
        outcome.acked.push(AckedPacket {
            number,
            sent_at: packet.sent_at,
            size: packet.size,
            snapshot: packet.snapshot,
            lost_in,
        });
    }
}
