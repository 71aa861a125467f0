//! The ledger of sent packets: what each carried, until its fate is known (RFC 9002, appendix A.1).
//!
//! A ring indexed by packet number holds the packets, a second ring what they carried, so that a
//! packet costs no allocation. Packets leave from the front once they are acknowledged, or lost and too old for their
//! loss to turn out spurious. Where lost ones hold up many others, they move to [`SettledPackets`], so that the rings
//! hold what is in flight. Finding newly acknowledged or lost packets costs O(those packets + ranges), not O(window).

use std::collections::VecDeque;
use std::ops::{Range, RangeInclusive};
use std::time::Duration;

use swiftwater_congestion::{EpisodeId, LossCause};
use swiftwater_units::{ByteCount, Instant, PacketNumber};

use crate::frame_writer::Carried;
use crate::idle_memory::IdleMemory;
use crate::ranges::RangeSet;
use crate::recovery::{AckedPacket, DeliverySnapshot, LossThresholds, LostRecord};

use super::settled::SettledPackets;

/// Settled packets that may stay among those in flight: moving fewer is not worth it.
const MAX_SETTLED: u64 = 1024;

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
pub(super) struct Entry {
    pub(super) packet: SentPacket,
    state: State,
    pub(super) carried_from: u64,
    pub(super) carried_len: u16,
}

impl Entry {
    /// Where what the packet carried lies in a list whose first item is number `base`.
    pub(super) fn carried_range(&self, base: u64) -> Range<usize> {
        let from = (self.carried_from - base) as usize;
        from..from + usize::from(self.carried_len)
    }

    pub(super) fn is_acked(&self) -> bool {
        self.state == State::Acked
    }

    pub(super) fn is_lost(&self) -> bool {
        matches!(self.state, State::Lost(_))
    }
}

/// What one ACK frame newly told about the ledger's packets. Its vectors are scratch space that
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
    /// The largest acknowledged packet that was sent on the path in use: only those show that earlier
    /// packets are late.
    /// One more than it, 0 before the first.
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
        self.carried.extend(carried);
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
        list.range(range).copied()
    }

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

    /// Declares lost what the thresholds say (RFC 9002, section 6.1), appends it to `lost`, smallest
    /// number first, and returns when the next packet becomes lost by time. `numbers` gets every
    /// lost packet number, `lost` those that counted in flight.
    pub(crate) fn detect_lost(
        &mut self,
        now: Instant,
        thresholds: LossThresholds,
        numbers: &mut Vec<PacketNumber>,
        lost: &mut Vec<LostRecord>,
    ) -> Option<Instant> {
        let largest = self.acked_on_path_end.checked_sub(1)?;
        let mut loss_time = None;
        let first_new = numbers.len();
        'gaps: for gap in self.settled.gaps_in(self.base..largest) {
            for number in gap {
                let entry = &mut self.entries[(number - self.base) as usize];
                let lost_at = entry.packet.sent_at + thresholds.delay;
                if number + thresholds.packets > largest && lost_at > now {
                    loss_time = Some(lost_at);
                    break 'gaps;
                }
                mark_lost(entry, number, &mut self.eliciting_in_flight, numbers, lost);
            }
        }
        for number in &numbers[first_new..] {
            self.settled.insert_one(number.get());
        }
        loss_time
    }

    /// The same, but `judge` is asked about each packet in flight that exceeds a threshold: `None`
    /// means that it is lost, a time when it is judged again. MTU probes are not judged.
    pub(crate) fn detect_judged(
        &mut self,
        now: Instant,
        thresholds: LossThresholds,
        judge: &mut dyn FnMut(PacketNumber, &SentPacket, LossCause) -> Option<Instant>,
        numbers: &mut Vec<PacketNumber>,
        lost: &mut Vec<LostRecord>,
    ) -> Option<Instant> {
        let largest = self.acked_on_path_end.checked_sub(1)?;
        let mut loss_time: Option<Instant> = None;
        let mut consider = |at: Instant| loss_time = Some(loss_time.map_or(at, |t| t.min(at)));
        let first_new = numbers.len();
        'gaps: for gap in self.settled.gaps_in(self.base..largest) {
            for number in gap {
                let entry = &mut self.entries[(number - self.base) as usize];
                let packet = &entry.packet;
                let lost_at = packet.sent_at + thresholds.delay;
                let is_reordered = number + thresholds.packets <= largest;
                if !is_reordered && lost_at > now {
                    consider(lost_at);
                    break 'gaps;
                }
                let cause = if is_reordered {
                    LossCause::Reorder
                } else {
                    LossCause::Time
                };
                if packet.in_flight
                    && !packet.mtu_probe
                    && let Some(at) = judge(PacketNumber::new(number), packet, cause)
                {
                    consider(at);
                    continue;
                }
                mark_lost(entry, number, &mut self.eliciting_in_flight, numbers, lost);
            }
        }
        for number in &numbers[first_new..] {
            self.settled.insert_one(number.get());
        }
        loss_time
    }

    /// Stamps lost packets with the episode they belong to.
    pub(crate) fn set_episode(&mut self, numbers: &[PacketNumber], episode: EpisodeId) {
        for number in numbers {
            let number = number.get();
            let entry = match number.checked_sub(self.base) {
                Some(at) => usize::try_from(at)
                    .ok()
                    .and_then(|at| self.entries.get_mut(at)),
                None => self.below.get_mut(number),
            };
            if let Some(entry) = entry
                && let State::Lost(slot) = &mut entry.state
            {
                *slot = Some(episode);
            }
        }
    }

    /// True if the lost packets `numbers` (rising) span at least `duration` of ack-eliciting packets
    /// without an acknowledged one between, all sent after `since` (RFC 9002, section 7.6.2).
    pub(crate) fn is_persistent(
        &self,
        numbers: &[PacketNumber],
        since: Instant,
        duration: Duration,
    ) -> bool {
        let mut from: Option<(u64, Instant)> = None;
        for number in numbers {
            let Some(entry) = self.entry(number.get()) else {
                continue;
            };
            if !entry.packet.is_awaited() || entry.packet.sent_at <= since {
                continue;
            }
            let (first, start) = *from.get_or_insert((number.get(), entry.packet.sent_at));
            // Any acknowledged packet in between ends the period.
            if !acked_none(&self.acked, first, number.get()) {
                from = Some((number.get(), entry.packet.sent_at));
            } else if entry.packet.sent_at - start >= duration {
                return true;
            }
        }
        false
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

    /// Takes packet `number` out of flight before its fate is known; `None` if it is known.
    pub(crate) fn give_up(&mut self, number: PacketNumber) -> Option<LostRecord> {
        let index = number.get().checked_sub(self.base)?;
        let entry = self.entries.get_mut(usize::try_from(index).ok()?)?;
        if entry.state != State::Outstanding {
            return None;
        }
        let (mut numbers, mut lost) = (Vec::new(), Vec::new());
        let number = number.get();
        mark_lost(
            entry,
            number,
            &mut self.eliciting_in_flight,
            &mut numbers,
            &mut lost,
        );
        self.settled.insert_one(number);
        lost.pop()
    }

    /// Takes everything out of flight, as when keys are discarded; returns the bytes.
    pub(crate) fn abandon(&mut self, numbers: &mut Vec<PacketNumber>) -> ByteCount {
        let mut lost = Vec::new();
        let all = self.base..self.next_number().get();
        for number in self.settled.gaps_in(all.clone()).flatten() {
            let entry = &mut self.entries[(number - self.base) as usize];
            mark_lost(
                entry,
                number,
                &mut self.eliciting_in_flight,
                numbers,
                &mut lost,
            );
        }
        self.settled.insert(all);
        lost.iter()
            .map(|record| ByteCount::new(u64::from(record.size)))
            .sum()
    }

    /// Forgets every packet; their numbers are not used again, and acknowledgements of them count for
    /// nothing.
    pub(crate) fn forget_all(&mut self) {
        self.base = self.next_number().get();
        self.entries.clear();
        self.carried_base += self.carried.len() as u64;
        self.carried.clear();
        self.below.clear();
        self.acked.clear();
        self.settled.clear();
        self.eliciting_in_flight = 0;
    }

    /// Forgets packets whose fate is final: acknowledged ones, and lost ones sent before `horizon`.
    pub(crate) fn forget(&mut self, horizon: Instant) {
        self.below.forget(horizon);
        while let Some(front) = self.entries.front() {
            let old = front.packet.sent_at < horizon;
            let (done, kept) = match front.state {
                State::Acked => (true, false),
                // An ACK of a skipped number is a violation only while it can be proved.
                State::Skipped | State::Lost(_) => (old || self.is_crowded(), !old),
                // It is not in flight, and may never be acknowledged.
                State::Outstanding => (!front.packet.in_flight && old, false),
            };
            if !done {
                break;
            }
            let Some(entry) = self.entries.pop_front() else {
                break;
            };
            let carried_end = entry.carried_from + u64::from(entry.carried_len);
            let left = (carried_end - self.carried_base) as usize;
            let carried = self.carried.drain(..left);
            if kept {
                let first = left - usize::from(entry.carried_len);
                self.below.push(self.base, entry, carried.skip(first));
            }
            self.carried_base = carried_end;
            self.base += 1;
        }
        self.acked.remove(0..self.base);
        self.settled.remove(0..self.base);
    }

    /// True if many of the packets are settled: those that only wait for their end are better kept elsewhere.
    fn is_crowded(&self) -> bool {
        self.entries.len() as u64 > self.eliciting_in_flight + MAX_SETTLED
    }

    /// True if the oldest packet still waits for an acknowledgement though it was sent before
    /// `horizon`, or at that time: nothing behind it can be forgotten.
    pub(crate) fn is_stuck(&self, horizon: Instant) -> bool {
        let front = self.entries.front();
        front.is_some_and(|entry| {
            entry.state == State::Outstanding
                && entry.packet.in_flight
                && entry.packet.sent_at <= horizon
        })
    }

    /// Packets remembered.
    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.entries.len() + self.below.len()
    }
}

impl IdleMemory for Ledger {
    /// Where no packet is in flight or was lost, fates that may still arrive change nothing: all are
    /// forgotten.
    fn release_idle_memory(&mut self) {
        let matters = |entry: &Entry| match entry.state {
            State::Outstanding => entry.packet.in_flight,
            State::Lost(_) => true,
            State::Acked | State::Skipped => false,
        };
        if !self.entries.iter().any(matters) && !self.below.has_lost() {
            self.forget(Instant::FAR_FUTURE);
        }
        let Self {
            entries,
            base: _,
            carried,
            carried_base: _,
            below,
            acked,
            settled,
            largest_acked: _,
            acked_on_path_end: _,
            eliciting_in_flight: _,
            last_eliciting_sent_at: _,
        } = self;
        entries.shrink_to_fit();
        carried.shrink_to_fit();
        below.release_idle_memory();
        acked.shrink();
        settled.shrink();
    }
}

/// True if `acked` has no member in `from..to`.
fn acked_none(acked: &RangeSet, from: u64, to: u64) -> bool {
    acked
        .gaps_in(from..to)
        .next()
        .is_none_or(|gap| gap == (from..to))
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

fn mark_lost(
    entry: &mut Entry,
    number: u64,
    eliciting_in_flight: &mut u64,
    numbers: &mut Vec<PacketNumber>,
    lost: &mut Vec<LostRecord>,
) {
    entry.state = State::Lost(None);
    if entry.packet.is_awaited() {
        *eliciting_in_flight -= 1;
    }
    let number = PacketNumber::new(number);
    numbers.push(number);
    if entry.packet.in_flight {
        lost.push(LostRecord {
            number,
            sent_at: entry.packet.sent_at,
            size: entry.packet.size,
            snapshot: entry.packet.snapshot,
        });
    }
}
