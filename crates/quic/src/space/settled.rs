//! Lost packets and skipped numbers whose end is not final yet, after they left the queue of sent packets: a late
//! acknowledgement proves a loss spurious, one of a skipped number is a violation (RFC 9000, section 21.4).
//!
//! They are few among many: the queue of sent packets must not keep all that was sent after them.

use std::collections::VecDeque;
use std::ops::RangeInclusive;

use swiftwater_units::Instant;

use super::ledger::Entry;
use crate::frame_writer::Carried;
use crate::idle_memory::IdleMemory;

/// Settled packets by number, and what they carried.
#[derive(Debug, Default)]
pub(super) struct SettledPackets {
    /// Smallest number first. `carried_from` counts what ever came here.
    entries: VecDeque<(u64, Entry)>,
    carried: VecDeque<Carried>,
    /// Number of `carried[0]`.
    carried_base: u64,
}

impl SettledPackets {
    /// Adds a packet with a larger number than all before.
    pub(super) fn push(
        &mut self,
        number: u64,
        mut entry: Entry,
        carried: impl Iterator<Item = Carried>,
    ) {
        entry.carried_from = self.carried_base + self.carried.len() as u64;
        self.carried.extend(carried);
        self.entries.push_back((number, entry));
    }

    /// The smallest number.
    pub(super) fn first(&self) -> Option<u64> {
        self.entries.front().map(|(number, _)| *number)
    }

    fn position(&self, number: u64) -> Option<usize> {
        self.entries
            .binary_search_by_key(&number, |(number, _)| *number)
            .ok()
    }

    pub(super) fn get(&self, number: u64) -> Option<&Entry> {
        self.position(number).map(|at| &self.entries[at].1)
    }

    pub(super) fn get_mut(&mut self, number: u64) -> Option<&mut Entry> {
        self.position(number).map(|at| &mut self.entries[at].1)
    }

    /// The packets in a range of numbers, smallest first.
    pub(super) fn range_mut(
        &mut self,
        numbers: &RangeInclusive<u64>,
    ) -> impl Iterator<Item = (u64, &mut Entry)> {
        let bound = |limit: u64| self.entries.partition_point(|(number, _)| *number < limit);
        // Acknowledgements seldom concern any.
        let range = match self.entries.back() {
            Some((last, _)) if last >= numbers.start() => {
                bound(*numbers.start())..bound(numbers.end().saturating_add(1))
            }
            _ => 0..0,
        };
        self.entries
            .range_mut(range)
            .map(|(number, entry)| (*number, entry))
    }

    /// What a packet carried.
    pub(super) fn carried_by(&self, entry: &Entry) -> impl Iterator<Item = Carried> + '_ {
        let from = (entry.carried_from - self.carried_base) as usize;
        let range = from..from + usize::from(entry.carried_len);
        self.carried.range(range).copied()
    }

    /// Forgets what was sent before `horizon`, or was acknowledged after all, from the oldest on.
    pub(super) fn forget(&mut self, horizon: Instant) {
        while let Some((_, entry)) = self.entries.front() {
            if !entry.is_acked() && entry.packet.sent_at >= horizon {
                break;
            }
            let len = usize::from(entry.carried_len);
            self.carried.drain(..len);
            self.carried_base += len as u64;
            self.entries.pop_front();
        }
    }

    /// True if a packet whose loss may turn out spurious is among them.
    pub(super) fn has_lost(&self) -> bool {
        self.entries.iter().any(|(_, entry)| entry.is_lost())
    }

    pub(super) fn clear(&mut self) {
        *self = Self::default();
    }

    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }
}

impl IdleMemory for SettledPackets {
    fn release_idle_memory(&mut self) {
        let Self {
            entries,
            carried,
            carried_base: _,
        } = self;
        entries.shrink_to_fit();
        carried.shrink_to_fit();
    }
}
