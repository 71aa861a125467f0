//! Datagrams that wait to be sent, by urgency.

use bytes::Bytes;
use swiftwater_units::{Instant, PathId};

use super::fair_queue::{FairQueue, QueuePlace};
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

    /// True if it may leave on `path`; `None` means any path.
    fn may_use(&self, path: Option<PathId>) -> bool {
        self.options.path.is_none() || self.options.path == path
    }
}

/// Datagrams that wait to be sent.
#[derive(Debug, Default)]
pub(super) struct SendQueue {
    by_urgency: [FairQueue; LEVELS],
    len: usize,
    bytes: usize,
    /// Datagrams that may leave on one path only.
    assigned: usize,
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

    /// Urgency and place of the datagram that leaves next on `path`, or next if it may leave on any.
    fn find(&self, path: Option<PathId>) -> Option<(usize, QueuePlace)> {
        let mut queues = self.by_urgency.iter().enumerate();
        queues.find_map(|(urgency, queue)| {
            let place = if self.assigned == 0 {
                queue.next()
            } else {
                queue.next_of(|queued| queued.may_use(path))
            };
            place.map(|place| (urgency, place))
        })
    }

    /// Whether a datagram that counts for `cost` has room in a queue of `capacity`: there is some left, or its group has
    /// less than its part, and what waits of its group stays within the limit.
    pub(super) fn has_room(&self, options: &DatagramOptions, cost: usize, capacity: usize) -> bool {
        let own = || self.by_urgency[usize::from(options.level())].bytes_of(options.group);
        if let Some(limit) = options.group_limit {
            let own = own();
            if own > 0 && (own + cost) as u64 > limit.get() {
                return false;
            }
        }
        if self.is_empty() || self.bytes + cost <= capacity {
            return true;
        }
        let own = own();
        let others: usize = self.by_urgency.iter().map(FairQueue::groups).sum();
        let groups = others + usize::from(own == 0);
        own + cost <= capacity / groups && self.bytes + cost <= capacity.saturating_mul(2)
    }

    /// Urgency of the datagram to send next on `path`.
    pub(super) fn first_urgency(&self, path: PathId) -> Option<u8> {
        self.find(Some(path)).map(|(urgency, _)| urgency as u8)
    }

    /// The datagram to send next on `path`.
    pub(super) fn first(&self, path: PathId) -> Option<&QueuedDatagram> {
        let (urgency, at) = self.find(Some(path))?;
        self.by_urgency[urgency].get(at)
    }

    /// Takes it out.
    pub(super) fn pop(&mut self, path: PathId) -> Option<QueuedDatagram> {
        let (urgency, at) = self.find(Some(path))?;
        let queued = self.by_urgency[urgency].take(at)?;
        self.len -= 1;
        self.bytes -= cost(&queued.data);
        self.assigned -= usize::from(queued.options.path.is_some());
        if self.len == 0 {
            self.next_deadline = None;
        }
        Some(queued)
    }

    /// Adds a datagram, last of its group and urgency.
    pub(super) fn push(&mut self, queued: QueuedDatagram) {
        self.len += 1;
        self.bytes += cost(&queued.data);
        self.assigned += usize::from(queued.options.path.is_some());
        self.next_deadline = earlier(self.next_deadline, queued.options.deadline);
        self.by_urgency[usize::from(queued.options.level())].push(queued);
    }

    /// Payload bytes that may leave on one path only, by path, one item for each datagram.
    pub(super) fn assigned(&self) -> impl Iterator<Item = (PathId, usize)> {
        let queues = self.by_urgency.iter().filter(|_| self.assigned > 0);
        let queued = queues.flat_map(FairQueue::iter);
        queued.filter_map(|queued| Some((queued.options.path?, queued.data.len())))
    }

    /// What was assigned to `path` may leave on any.
    pub(super) fn release(&mut self, path: PathId) {
        if self.assigned == 0 {
            return;
        }
        for queued in self.by_urgency.iter_mut().flat_map(FairQueue::iter_mut) {
            if queued.options.path == Some(path) {
                queued.options.path = None;
                self.assigned -= 1;
            }
        }
    }

    /// Takes out the datagrams that `keeps` is false for.
    pub(super) fn retain(
        &mut self,
        mut keeps: impl FnMut(&QueuedDatagram) -> bool,
    ) -> Vec<QueuedDatagram> {
        let mut removed = Vec::new();
        let queues = std::mem::take(self).by_urgency;
        for queued in queues.into_iter().flat_map(FairQueue::into_datagrams) {
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
