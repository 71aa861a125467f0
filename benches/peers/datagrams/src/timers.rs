//! Which connection has to be woken next.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::time::Instant;

/// Deadlines of connections, by number.
///
/// A deadline that moves later, as nearly all do, costs nothing: the connection is woken at the earlier time and
/// says again when.
#[derive(Debug, Default)]
pub struct Timers {
    queue: BinaryHeap<Reverse<(Instant, usize)>>,
    /// The earliest time in the queue, by connection.
    queued: Vec<Option<Instant>>,
}

impl Timers {
    /// Sets the deadline of a connection, or clears it.
    pub fn set(&mut self, connection: usize, deadline: Option<Instant>) {
        let Some(deadline) = deadline else {
            return;
        };
        if self.queued.len() <= connection {
            self.queued.resize(connection + 1, None);
        }
        let queued = &mut self.queued[connection];
        if queued.is_none_or(|earlier| deadline < earlier) {
            *queued = Some(deadline);
            self.queue.push(Reverse((deadline, connection)));
        }
    }

    /// The time to wake up at the latest.
    pub fn next(&self) -> Option<Instant> {
        self.queue.peek().map(|Reverse((deadline, _))| *deadline)
    }

    /// Removes a connection whose deadline may have passed; it must be set again.
    pub fn expired(&mut self, now: Instant) -> Option<usize> {
        while let Some(Reverse((deadline, connection))) = self.queue.peek().copied() {
            if deadline > now {
                return None;
            }
            self.queue.pop();
            let queued = &mut self.queued[connection];
            // Otherwise superseded by an earlier deadline, which has been taken out.
            if *queued == Some(deadline) {
                *queued = None;
                return Some(connection);
            }
        }
        None
    }
}
