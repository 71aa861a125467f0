//! Datagrams that wait to be sent, by urgency.

use std::collections::VecDeque;

use bytes::Bytes;
use swiftwater_units::Instant;

use super::{DatagramOptions, cost};
use crate::policy::Priority;

/// Levels of urgency.
const LEVELS: usize = Priority::MAX_URGENCY as usize + 1;

/// One datagram that waits to be sent.
#[derive(Debug)]
pub(super) struct QueuedDatagram {
    pub(super) data: Bytes,
    pub(super) options: DatagramOptions,
}

impl QueuedDatagram {
    /// True if its deadline has come by `now`.
    pub(super) fn is_expired(&self, now: Instant) -> bool {
        self.options
            .deadline
            .is_some_and(|deadline| deadline <= now)
    }
}

/// Datagrams that wait to be sent.
#[derive(Debug, Default)]
pub(super) struct SendQueue {
    by_urgency: [VecDeque<QueuedDatagram>; LEVELS],
    len: usize,
    bytes: usize,
    /// No deadline is earlier. It may be that of a datagram that was sent since.
    next_deadline: Option<Instant>,
}

impl SendQueue {
    /// Datagrams.
    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// What they count for.
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    pub(super) fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// A time before which none expires.
    pub(super) fn next_deadline(&self) -> Option<Instant> {
        self.next_deadline
    }

    /// Urgency of the first datagram.
    pub(super) fn first_urgency(&self) -> Option<u8> {
        let at = self.by_urgency.iter().position(|queue| !queue.is_empty());
        at.map(|urgency| urgency as u8)
    }

    /// The datagram to send next.
    pub(super) fn first(&self) -> Option<&QueuedDatagram> {
        self.by_urgency.iter().find_map(VecDeque::front)
    }

    /// Takes it out.
    pub(super) fn pop(&mut self) -> Option<QueuedDatagram> {
        let queued = self.by_urgency.iter_mut().find_map(VecDeque::pop_front)?;
        self.len -= 1;
        self.bytes -= cost(&queued.data);
        if self.len == 0 {
            self.next_deadline = None;
        }
        Some(queued)
    }

    /// Adds a datagram, last of its urgency.
    pub(super) fn push(&mut self, queued: QueuedDatagram) {
        self.len += 1;
        self.bytes += cost(&queued.data);
        self.next_deadline = earlier(self.next_deadline, queued.options.deadline);
        self.by_urgency[usize::from(queued.options.level())].push_back(queued);
    }

    /// Takes out the datagrams that `keeps` is false for.
    pub(super) fn retain(
        &mut self,
        mut keeps: impl FnMut(&QueuedDatagram) -> bool,
    ) -> Vec<QueuedDatagram> {
        let mut removed = Vec::new();
        let queues = std::mem::take(self).by_urgency;
        for queued in queues.into_iter().flatten() {
            if keeps(&queued) {
                self.push(queued);
            } else {
                removed.push(queued);
            }
        }
        removed
    }
}

fn earlier(a: Option<Instant>, b: Option<Instant>) -> Option<Instant> {
    a.into_iter().chain(b).min()
}
