//! Loss detection: which packets of the ledger count as lost (RFC 9002, section 6.1), and which leave flight
//! for another reason.

use std::time::Duration;

use swiftwater_congestion::{EpisodeId, LossCause};
use swiftwater_units::{ByteCount, Instant, PacketNumber};

use crate::ranges::RangeSet;
use crate::recovery::{LossThresholds, LostRecord};

use super::{Entry, Ledger, SentPacket, State};

impl Ledger {
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
        self.detect_judged(now, thresholds, |_, _, _| None, numbers, lost)
    }

    /// The same, but `judge` is asked about each packet in flight that exceeds a threshold: `None`
    /// means that it is lost, a time when it is judged again. MTU probes are not judged.
    pub(crate) fn detect_judged(
        &mut self,
        now: Instant,
        thresholds: LossThresholds,
        mut judge: impl FnMut(PacketNumber, &SentPacket, LossCause) -> Option<Instant>,
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

    /// Takes packet `number` out of flight before its fate is known; `None` if it is known.
    pub(crate) fn abandon_one(&mut self, number: PacketNumber) -> Option<LostRecord> {
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
}

/// True if `acked` has no member in `from..to`.
fn acked_none(acked: &RangeSet, from: u64, to: u64) -> bool {
    acked
        .gaps_in(from..to)
        .next()
        .is_none_or(|gap| gap == (from..to))
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
