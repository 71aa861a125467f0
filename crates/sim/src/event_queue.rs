//! The event queue of the simulation: tasks ordered by time, and by insertion among equal times.

use std::cmp::Ordering;
use std::collections::BinaryHeap;
use std::collections::binary_heap::PeekMut;

use swiftwater_units::Instant;

/// A scheduled task.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Task {
    /// A datagram may have arrived at the end of a link.
    Link(u32),
    /// A connection's timer may have expired.
    Connection { host: u32, slot: u32 },
    /// A TCP connection's timer may have expired.
    Tcp { host: u32, slot: u32 },
    /// A timer that a host's application set.
    Application { host: u32, token: u64 },
    /// A datagram that a tap delayed is sent.
    Release(u32),
    /// A host opens paths that ended before.
    Paths { host: u32 },
    /// A host's application starts.
    Start { host: u32 },
}

/// A task under its key: the time in nanoseconds above the order of entry. One number, because
/// comparing keys takes most of the queue's time.
#[derive(Debug)]
struct Entry {
    key: u128,
    task: Task,
}

impl Entry {
    fn at(&self) -> Instant {
        Instant::from_nanos((self.key >> 64) as u64)
    }
}

impl PartialEq for Entry {
    fn eq(&self, other: &Self) -> bool {
        self.key == other.key
    }
}

impl Eq for Entry {}

impl PartialOrd for Entry {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Entry {
    /// Reversed order: the heap returns the greatest first.
    fn cmp(&self, other: &Self) -> Ordering {
        other.key.cmp(&self.key)
    }
}

/// All scheduled tasks.
#[derive(Debug, Default)]
pub(crate) struct EventQueue {
    heap: BinaryHeap<Entry>,
    next_order: u64,
}

impl EventQueue {
    pub(crate) fn push(&mut self, at: Instant, task: Task) {
        let key = u128::from(at.as_nanos()) << 64 | u128::from(self.next_order);
        self.next_order += 1;
        self.heap.push(Entry { key, task });
    }

    /// Time of the first task.
    pub(crate) fn next_at(&self) -> Option<Instant> {
        self.heap.peek().map(Entry::at)
    }

    /// The first task, if it is due at `now` or before.
    pub(crate) fn pop_due(&mut self, now: Instant) -> Option<Task> {
        let first = self.heap.peek_mut()?;
        (first.at() <= now).then(|| PeekMut::pop(first).task)
    }
}
