//! Datagrams of one urgency that wait to be sent: in the order in which they were queued within a group, and in turns
//! between groups, so that one that sends without end does not keep the others waiting.
//!
//! A deficit round robin (Shreedhar and Varghese): a turn is a quantum of bytes, and what its last datagram takes beyond
//! that is taken off the next one.

use std::collections::VecDeque;

use super::cost;
use super::send_queue::QueuedDatagram;

/// Bytes of one turn: a datagram or two of full size.
const QUANTUM: i64 = 2048;

/// Queues that are kept for the next groups, so that one that has a datagram now and then needs no allocation.
const MAX_SPARE: usize = 8;

/// Datagrams of one urgency.
#[derive(Debug, Default)]
pub(super) struct FairQueue {
    /// Groups that have datagrams; the first one has the turn, and bytes left.
    groups: VecDeque<Group>,
    spare: Vec<VecDeque<QueuedDatagram>>,
}

#[derive(Debug)]
struct Group {
    id: u64,
    waiting: VecDeque<QueuedDatagram>,
    /// What they count for.
    bytes: usize,
    /// Bytes that it may still send in its turn; negative after a long datagram.
    left: i64,
}

/// Where a datagram is: the place of its group in the order of turns, and its own in the group.
#[derive(Clone, Copy, Debug)]
pub(super) struct QueuePlace {
    group: usize,
    at: usize,
}

impl FairQueue {
    /// Groups that have datagrams.
    pub(super) fn groups(&self) -> usize {
        self.groups.len()
    }

    /// What the datagrams of group `id` count for.
    pub(super) fn bytes_of(&self, id: u64) -> usize {
        self.position(id).map_or(0, |at| self.groups[at].bytes)
    }

    /// The place of the datagram that leaves next.
    pub(super) fn next(&self) -> Option<QueuePlace> {
        (!self.groups.is_empty()).then_some(QueuePlace { group: 0, at: 0 })
    }

    /// The place of the datagram that leaves next of those that `may_leave`.
    pub(super) fn next_of(
        &self,
        may_leave: impl Fn(&QueuedDatagram) -> bool,
    ) -> Option<QueuePlace> {
        let mut groups = self.groups.iter().enumerate();
        groups.find_map(|(place, group)| {
            let at = group.waiting.iter().position(&may_leave)?;
            Some(QueuePlace { group: place, at })
        })
    }

    pub(super) fn get(&self, place: QueuePlace) -> Option<&QueuedDatagram> {
        self.groups.get(place.group)?.waiting.get(place.at)
    }

    /// Takes a datagram out, and passes the turn on if its group has used it up.
    pub(super) fn take(&mut self, place: QueuePlace) -> Option<QueuedDatagram> {
        let group = self.groups.get_mut(place.group)?;
        let queued = group.waiting.remove(place.at)?;
        let size = cost(&queued.data);
        group.bytes -= size;
        group.left -= i64::try_from(size).unwrap_or(i64::MAX);
        if group.waiting.is_empty()
            && let Some(group) = self.groups.remove(place.group)
            && self.spare.len() < MAX_SPARE
        {
            self.spare.push(group.waiting);
        }
        while let Some(first) = self.groups.front_mut()
            && first.left <= 0
        {
            first.left += QUANTUM;
            self.groups.rotate_left(1);
        }
        Some(queued)
    }

    /// Adds a datagram, last of its group; a group that had none is last in the order of turns.
    pub(super) fn push(&mut self, queued: QueuedDatagram) {
        let (id, size) = (queued.options.group, cost(&queued.data));
        if let Some(at) = self.position(id) {
            let group = &mut self.groups[at];
            group.bytes += size;
            group.waiting.push_back(queued);
            return;
        }
        let mut waiting = self.spare.pop().unwrap_or_default();
        waiting.push_back(queued);
        self.groups.push_back(Group {
            id,
            waiting,
            bytes: size,
            left: QUANTUM,
        });
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &QueuedDatagram> {
        self.groups.iter().flat_map(|group| &group.waiting)
    }

    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = &mut QueuedDatagram> {
        let groups = self.groups.iter_mut();
        groups.flat_map(|group| &mut group.waiting)
    }

    /// All of them, group by group.
    pub(super) fn into_datagrams(self) -> impl Iterator<Item = QueuedDatagram> {
        self.groups.into_iter().flat_map(|group| group.waiting)
    }

    fn position(&self, id: u64) -> Option<usize> {
        // Mostly there are few, and runs are of one group.
        match self.groups.back() {
            Some(last) if last.id == id => Some(self.groups.len() - 1),
            _ => self.groups.iter().position(|group| group.id == id),
        }
    }
}
