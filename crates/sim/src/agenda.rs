//! What happens when: a queue of tasks ordered by time, and by order of entry among equals.

use std::cmp::Ordering;
use std::collections::BinaryHeap;

use swiftwater_units::Instant;

/// Something to do at a time.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Task {
    /// A datagram may have arrived at the end of a link.
    Link(u32),
    /// A connection's timer may have expired.
    Connection { host: u32, slot: u32 },
    /// A timer that a host's application set.
    Application { host: u32, token: u64 },
    /// A datagram that a tap held back goes on.
    Release(u32),
    /// A host's application starts.
    Start { host: u32 },
}

#[derive(Debug)]
struct Entry {
    at: Instant,
    order: u64,
    task: Task,
}

impl PartialEq for Entry {
    fn eq(&self, other: &Self) -> bool {
        self.order == other.order
    }
}

impl Eq for Entry {}

impl PartialOrd for Entry {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Entry {
    /// The earliest is the greatest, as the heap hands out the greatest first.
    fn cmp(&self, other: &Self) -> Ordering {
        (other.at, other.order).cmp(&(self.at, self.order))
    }
}

/// All tasks to come.
#[derive(Debug, Default)]
pub(crate) struct Agenda {
    heap: BinaryHeap<Entry>,
    next_order: u64,
}

impl Agenda {
    pub(crate) fn push(&mut self, at: Instant, task: Task) {
        let order = self.next_order;
        self.next_order += 1;
        self.heap.push(Entry { at, order, task });
    }

    /// When the first task is due.
    pub(crate) fn next_at(&self) -> Option<Instant> {
        self.heap.peek().map(|entry| entry.at)
    }

    /// The first task, if it is due at `now` or before.
    pub(crate) fn pop_due(&mut self, now: Instant) -> Option<Task> {
        if self.next_at()? > now {
            return None;
        }
        self.heap.pop().map(|entry| entry.task)
    }
}
