//! The ledger of sent packets: what each carried, until its fate is known (RFC 9002, appendix A.1).
//!
//! A ring indexed by packet number holds the packets, a second ring what they carried, so that a
//! packet costs no allocation. Packets leave from the front once they are acknowledged, or lost and too old for their
//! loss to turn out spurious. Where lost ones hold up many others, they move to [`SettledPackets`], so that the rings
//! hold what is in flight. Finding newly acknowledged or lost packets costs O(those packets + ranges), not O(window).

mod acknowledge;
mod detect;
mod discard;

pub(crate) use self::acknowledge::{AckOutcome, LargestAcked};

use std::collections::VecDeque;
use std::ops::Range;

use swiftwater_congestion::EpisodeId;
use swiftwater_units::{Instant, PacketNumber};

use crate::frame_writer::Carried;
use crate::ranges::RangeSet;
use crate::recovery::DeliverySnapshot;

use super::settled::SettledPackets;

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum State {
    Outstanding,
    Acked,
    Lost(Option<EpisodeId>),
    /// The number was never used (RFC 9000, section 21.4: a trap for optimistic ACKs).
    Skipped,
}

/// A packet in the ledger.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SentPacket {
    pub(crate) sent_at: Instant,
    pub(crate) size: u16,
    pub(crate) ack_eliciting: bool,
    /// Counts in `bytes_in_flight`: ack-eliciting or padded.
    pub(crate) in_flight: bool,
    pub(crate) ecn_marked: bool,
    /// It carried stream bytes that had been sent before.
    pub(crate) retransmission: bool,
    /// It tests whether the path carries its size: no probe timeout waits for it, and there is
    /// nothing in it to repeat.
    pub(crate) mtu_probe: bool,
    /// It was sent on the path in use, not on a candidate path: its acknowledgement says how long that
    /// path takes, and which earlier packets it overtook (RFC 9000, section 9.4).
    pub(crate) on_path: bool,
    pub(crate) snapshot: DeliverySnapshot,
}

impl SentPacket {
    /// A packet on the path in use that asks for no acknowledgement and doesn't count in flight.
    pub(crate) fn not_in_flight(sent_at: Instant, size: u16) -> Self {
        Self {
            sent_at,
            size,
            ack_eliciting: false,
            in_flight: false,
            ecn_marked: false,
            retransmission: false,
            mtu_probe: false,
            on_path: true,
            snapshot: DeliverySnapshot::default(),
        }
    }

    /// True if a probe timeout runs for it.
    fn is_awaited(&self) -> bool {
        self.ack_eliciting && !self.mtu_probe
    }
}

#[derive(Debug)]
pub(in crate::space) struct Entry {
    pub(in crate::space) packet: SentPacket,
    state: State,
    pub(in crate::space) carried_from: u64,
    pub(in crate::space) carried_len: u16,
}

impl Entry {
    /// Where what the packet carried lies in a list whose first item is number `base`.
    pub(in crate::space) fn carried_range(&self, base: u64) -> Range<usize> {
        let from = (self.carried_from - base) as usize;
        from..from + usize::from(self.carried_len)
    }

    pub(in crate::space) fn is_acked(&self) -> bool {
        self.state == State::Acked
    }

    pub(in crate::space) fn is_lost(&self) -> bool {
        matches!(self.state, State::Lost(_))
    }
}

/// Sent packets of one space.
#[derive(Debug)]
pub(crate) struct Ledger {
    entries: VecDeque<Entry>,
    /// Packet number of `entries[0]`.
    base: u64,
    carried: VecDeque<Carried>,
    /// Number of `carried[0]`, counting everything ever carried.
    carried_base: u64,
    /// Lost packets and skipped numbers below `base`.
    below: SettledPackets,
    acked: RangeSet,
    /// Acknowledged, lost or skipped.
    settled: RangeSet,
    largest_acked: Option<PacketNumber>,
    /// One more than the largest acknowledged packet that was sent on the path in use, 0 before the
    /// first: only those show that earlier packets are late.
    acked_on_path_end: u64,
    eliciting_in_flight: u64,
    last_eliciting_sent_at: Option<Instant>,
}

impl Ledger {
    pub(crate) fn new() -> Self {
        Self {
            entries: VecDeque::new(),
            base: 0,
            carried: VecDeque::new(),
            carried_base: 0,
            below: SettledPackets::default(),
            acked: RangeSet::new(),
            settled: RangeSet::new(),
            largest_acked: None,
            acked_on_path_end: 0,
            eliciting_in_flight: 0,
            last_eliciting_sent_at: None,
        }
    }

    /// The packet number that the next packet gets.
    pub(crate) fn next_number(&self) -> PacketNumber {
        PacketNumber::new(self.base + self.entries.len() as u64)
    }

    /// True if every packet number was used: no packet may follow (RFC 9000, section 12.3).
    pub(crate) fn is_exhausted(&self) -> bool {
        self.base + self.entries.len() as u64 > PacketNumber::MAX.get()
    }

    /// The next packet gets this number. Only before the first one.
    #[cfg(test)]
    pub(crate) fn start_at(&mut self, number: PacketNumber) {
        assert!(self.entries.is_empty());
        self.base = number.get();
    }

    /// The largest packet number that the peer acknowledged.
    pub(crate) fn largest_acked(&self) -> Option<PacketNumber> {
        self.largest_acked
    }

    /// The largest acknowledged packet number of those sent on the path in use.
    pub(crate) fn largest_acked_on_path(&self) -> Option<PacketNumber> {
        self.acked_on_path_end.checked_sub(1).map(PacketNumber::new)
    }

    /// Ack-eliciting packets in flight, MTU probes left out.
    pub(crate) fn eliciting_in_flight(&self) -> u64 {
        self.eliciting_in_flight
    }

    /// When the last ack-eliciting packet other than an MTU probe was sent.
    pub(crate) fn last_eliciting_sent_at(&self) -> Option<Instant> {
        self.last_eliciting_sent_at
    }

    /// Leaves out the next packet number at `now`.
    pub(crate) fn skip_number(&mut self, now: Instant) {
        let number = self.next_number().get();
        let carried_from = self.carried_base + self.carried.len() as u64;
        self.entries.push_back(Entry {
            packet: SentPacket::not_in_flight(now, 0),
            state: State::Skipped,
            carried_from,
            carried_len: 0,
        });
        self.settled.insert_one(number);
    }

    /// Records the packet that took [`Ledger::next_number`], and what it carried. Inlined, so that the record
    /// is written where it belongs: a copy of what was just put together field by field stalls.
    #[inline]
    pub(crate) fn on_sent(&mut self, packet: SentPacket, carried: &[Carried]) {
        let carried_from = self.carried_base + self.carried.len() as u64;
        // Mostly there is one, and an extension of the ring costs as much as many.
        if let &[one] = carried {
            self.carried.push_back(one);
        } else {
            self.carried.extend(carried);
        }
        if packet.is_awaited() {
            self.eliciting_in_flight += 1;
            self.last_eliciting_sent_at = Some(packet.sent_at);
        }
        self.entries.push_back(Entry {
            packet,
            state: State::Outstanding,
            carried_from,
            carried_len: carried.len() as u16,
        });
    }

    fn entry(&self, number: u64) -> Option<&Entry> {
        match number.checked_sub(self.base) {
            Some(at) => self.entries.get(usize::try_from(at).ok()?),
            None => self.below.get(number),
        }
    }

    /// The record of packet `number`, unless it left the ledger.
    pub(crate) fn packet(&self, number: PacketNumber) -> Option<&SentPacket> {
        self.entry(number.get()).map(|entry| &entry.packet)
    }

    /// What packet `number` carried; nothing if it left the ledger.
    pub(crate) fn carried_by(&self, number: PacketNumber) -> impl Iterator<Item = Carried> + '_ {
        let number = number.get();
        let (list, range) = match self.entry(number) {
            Some(entry) if number >= self.base => {
                (&self.carried, entry.carried_range(self.carried_base))
            }
            Some(entry) => self.below.carried_by(entry, &self.carried),
            None => (&self.carried, 0..0),
        };
        range.map(move |at| list[at])
    }

    /// The oldest ack-eliciting packets in flight, for probes that repeat what they carried.
    pub(crate) fn oldest_outstanding(&self) -> impl Iterator<Item = PacketNumber> + '_ {
        self.settled
            .gaps_in(self.base..self.next_number().get())
            .flatten()
            .filter(|&number| {
                self.entry(number)
                    .is_some_and(|entry| entry.packet.is_awaited())
            })
            .map(PacketNumber::new)
    }

    /// Every outstanding packet with its record and what it carried, oldest first.
    pub(crate) fn outstanding(
        &self,
    ) -> impl Iterator<Item = (PacketNumber, &SentPacket, Carried)> + '_ {
        self.oldest_outstanding().flat_map(move |number| {
            let packet = self.entry(number.get()).map(|entry| &entry.packet);
            self.carried_by(number)
                .filter_map(move |carried| packet.map(|packet| (number, packet, carried)))
        })
    }

    /// True if packet `number` tests whether the path carries its size.
    pub(crate) fn is_mtu_probe(&self, number: PacketNumber) -> bool {
        self.packet(number).is_some_and(|packet| packet.mtu_probe)
    }

    /// True if a packet sent after `number`, of `size` bytes or more, was acknowledged. Looks through
    /// what was sent since, so it is for rare questions.
    pub(crate) fn has_acked_after(&self, number: PacketNumber, size: u16) -> bool {
        let from = (number.get() + 1).saturating_sub(self.base);
        self.entries
            .iter()
            .skip(usize::try_from(from).unwrap_or(usize::MAX))
            .any(|entry| entry.state == State::Acked && entry.packet.size >= size)
    }

    /// Packets kept.
    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.entries.len() + self.below.len()
    }
}
