//! Lost packets and skipped numbers that left the queue of sent packets, while a late acknowledgement still
//! matters: it proves a loss spurious (RFC 9002, section 6.1), or, of a skipped number, is a violation
//! (RFC 9000, section 21.4).
//!
//! They are few among many: the queue of sent packets must not keep all that was sent after them.

use std::collections::VecDeque;
use std::ops::{Range, RangeInclusive};

use swiftwater_units::Instant;

use super::ledger::Entry;
use crate::frame_writer::Carried;
use crate::idle_memory::IdleMemory;
use crate::lazy_box::LazyBox;

/// Settled packets by number, and what they carried; most spaces have none.
#[derive(Debug, Default)]
pub(super) struct SettledPackets(LazyBox<Queues>);

#[derive(Debug, Default)]
struct Queues {
    /// Smallest number first. `carried_from` counts what ever came here.
    entries: VecDeque<(u64, Entry)>,
    carried: VecDeque<Carried>,
    /// Number of `carried[0]`.
    carried_base: u64,
}

impl Queues {
    fn position(&self, number: u64) -> Option<usize> {
        self.entries
            .binary_search_by_key(&number, |(number, _)| *number)
            .ok()
    }

    /// Where the packets in a range of numbers are.
    fn positions(&self, numbers: &RangeInclusive<u64>) -> Range<usize> {
        let bound = |limit: u64| self.entries.partition_point(|(number, _)| *number < limit);
        // Acknowledgements seldom concern any.
        match self.entries.back() {
            Some((last, _)) if last >= numbers.start() => {
                bound(*numbers.start())..bound(numbers.end().saturating_add(1))
            }
            _ => 0..0,
        }
    }
}

impl SettledPackets {
    /// Adds a packet with a larger number than all before.
    pub(super) fn push(
        &mut self,
        number: u64,
        mut entry: Entry,
        carried: impl Iterator<Item = Carried>,
    ) {
        let queues = self.0.need();
        entry.carried_from = queues.carried_base + queues.carried.len() as u64;
        queues.carried.extend(carried);
        queues.entries.push_back((number, entry));
    }

    /// The smallest number.
    pub(super) fn first(&self) -> Option<u64> {
        let (number, _) = self.0.get()?.entries.front()?;
        Some(*number)
    }

    pub(super) fn get(&self, number: u64) -> Option<&Entry> {
        let queues = self.0.get()?;
        queues.position(number).map(|at| &queues.entries[at].1)
    }

    pub(super) fn get_mut(&mut self, number: u64) -> Option<&mut Entry> {
        let queues = self.0.get_mut()?;
        let at = queues.position(number)?;
        Some(&mut queues.entries[at].1)
    }

    /// The packets in a range of numbers, smallest first.
    pub(super) fn range_mut(
        &mut self,
        numbers: &RangeInclusive<u64>,
    ) -> impl Iterator<Item = (u64, &mut Entry)> {
        let queues = self.0.get_mut().into_iter();
        queues
            .flat_map(|queues| queues.entries.range_mut(queues.positions(numbers)))
            .map(|(number, entry)| (*number, entry))
    }

    /// What a packet carried: a part of a list, which is an empty one of `other` if there is none.
    pub(super) fn carried_by<'a>(
        &'a self,
        entry: &Entry,
        other: &'a VecDeque<Carried>,
    ) -> (&'a VecDeque<Carried>, Range<usize>) {
        match self.0.get() {
            Some(queues) => (&queues.carried, entry.carried_range(queues.carried_base)),
            None => (other, 0..0),
        }
    }

    /// Discards what was sent before `horizon`, or was acknowledged after all, from the oldest on.
    pub(super) fn discard(&mut self, horizon: Instant) {
        let Some(queues) = self.0.get_mut() else {
            return;
        };
        while let Some((_, entry)) = queues.entries.front() {
            if !entry.is_acked() && entry.packet.sent_at >= horizon {
                break;
            }
            let len = usize::from(entry.carried_len);
            queues.carried.drain(..len);
            queues.carried_base += len as u64;
            queues.entries.pop_front();
        }
    }

    /// True if a packet whose loss may turn out spurious is among them.
    pub(super) fn has_lost(&self) -> bool {
        let mut entries = self.0.get().into_iter().flat_map(|queues| &queues.entries);
        entries.any(|(_, entry)| entry.is_lost())
    }

    pub(super) fn clear(&mut self) {
        self.0.release();
    }

    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.0.get().map_or(0, |queues| queues.entries.len())
    }
}

impl IdleMemory for SettledPackets {
    fn release_idle_memory(&mut self) {
        let Self(queues) = self;
        if let Some(Queues {
            entries,
            carried,
            carried_base: _,
        }) = queues.get_mut()
        {
            if entries.is_empty() {
                return queues.release();
            }
            entries.shrink_to_fit();
            carried.shrink_to_fit();
        }
    }
}
