//! The reinjection queue (AutoRec, section V-B): lost data that were retransmitted and are not
//! acknowledged, by the age of their newest copy.
//!
//! Each event costs O(log n), where the paper walks its queue. A data range whose copies are used up
//! leaves the line but stays known until it is recovered, so that the next retransmission doesn't
//! renew its budget. That is once the level's number of copies left, as in the paper's example (its sentence
//! has "exceeds"); a level that rises later brings no copies of such a range.

use swiftwater_quic::policy::DataRange;
use swiftwater_units::Instant;

use crate::congestion_guard::CopyLimit;
use crate::due_queue::DueQueue;

/// What is known of a data range.
#[derive(Clone, Copy, Debug, Default)]
struct Replicas {
    /// Replicas that left.
    sent: u32,
    /// A copy was asked for and hasn't left.
    requested: bool,
}

/// The queue of a connection. A data range in line is due, for the order only, when its newest copy left.
#[derive(Clone, Debug, Default)]
pub struct ReinjectionQueue {
    data: DueQueue<Replicas>,
    requested: usize,
}

impl ReinjectionQueue {
    /// An empty queue.
    pub fn new() -> Self {
        Self::default()
    }

    /// Data in line.
    pub fn len(&self) -> usize {
        self.data.waiting()
    }

    /// True if none is in line.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Data of which a copy was asked for and hasn't left.
    pub fn requested(&self) -> usize {
        self.requested
    }

    /// Data that are known: in line, with a copy on its way out, or with none left.
    pub fn known(&self) -> usize {
        self.data.len()
    }

    /// Replicas of `range` that left, if it is known.
    pub fn replicas(&self, range: &DataRange) -> Option<u32> {
        self.data.get(range).map(|replicas| replicas.sent)
    }

    /// The data range without a copy for longest, and when its newest copy left.
    pub fn head(&self) -> Option<(DataRange, Instant)> {
        self.data.first()
    }

    /// Takes the head out of the line: a copy of it is asked for. It comes back when that has left,
    /// see [`ReinjectionQueue::on_replica_sent`], or will not leave, see
    /// [`ReinjectionQueue::on_rejected`].
    pub fn take_head(&mut self) -> Option<DataRange> {
        let range = self.data.pop_first()?;
        self.request(&range);
        Some(range)
    }

    /// Takes the data range without a copy for longest that `limit` permits another, as
    /// [`ReinjectionQueue::take_head`] does, of those whose newest copy left by `until`.
    pub fn take_permitted(&mut self, until: Instant, limit: CopyLimit) -> Option<DataRange> {
        let is_permitted = |range: &DataRange, sent| {
            limit.permits(sent, false)
                || (limit.permits(sent, true) && self.data.is_first_of_stream(range))
        };
        let (range, _, _) = (self.data.due_by(until))
            .find(|(range, _, replicas)| is_permitted(range, replicas.sent))?;
        self.data.clear_due(&range);
        self.request(&range);
        Some(range)
    }

    /// A copy of `range` is asked for.
    fn request(&mut self, range: &DataRange) {
        if let Some(replicas) = self.data.get_mut(range) {
            replicas.requested = true;
            self.requested += 1;
        }
    }

    /// `range` was retransmitted: to the tail, if fewer than `level` replicas of it left.
    pub fn on_retransmitted(&mut self, range: &DataRange, now: Instant, level: u32) {
        if self.data.get(range).is_none() {
            self.data.insert(range, Replicas::default());
        }
        // The copy asked for is still to come.
        if !self.is_requested(range) {
            self.move_to_tail(range, now, level);
        }
    }

    /// A replica of `range` left: to the tail, if fewer than `level` did by now. False if the data range
    /// isn't known.
    pub fn on_replica_sent(&mut self, range: &DataRange, now: Instant, level: u32) -> bool {
        let Some(replicas) = self.data.get_mut(range) else {
            return false;
        };
        replicas.sent = replicas.sent.saturating_add(1);
        self.move_to_tail(range, now, level);
        true
    }

    /// The copy of `range` that was asked for will not leave: if it is needed `again`, to the tail, as
    /// if the newest copy had left now.
    pub fn on_rejected(&mut self, range: &DataRange, now: Instant, level: u32, again: bool) {
        if self.is_requested(range) {
            self.move_to_tail(range, now, if again { level } else { 0 });
        }
    }

    fn is_requested(&self, range: &DataRange) -> bool {
        self.data.get(range).is_some_and(|known| known.requested)
    }

    fn move_to_tail(&mut self, range: &DataRange, now: Instant, level: u32) {
        let Some(replicas) = self.data.get_mut(range) else {
            return;
        };
        if std::mem::take(&mut replicas.requested) {
            self.requested -= 1;
        }
        if replicas.sent >= level {
            self.data.clear_due(range);
        } else {
            self.data.set_due(range, now);
        }
    }

    /// `range` became two: its first `at` bytes and the rest, both with its history.
    pub fn split(&mut self, range: &DataRange, at: u32) {
        let is_requested = self.is_requested(range);
        if self.data.split(range, at) && is_requested {
            self.requested += 1;
        }
    }

    /// `range` is recovered or abandoned. True if it was known.
    pub fn remove(&mut self, range: &DataRange) -> bool {
        let Some(replicas) = self.data.remove(range) else {
            return false;
        };
        self.requested -= usize::from(replicas.requested);
        true
    }

    /// The level changed: data of which `level` replicas or more left get out of the line.
    pub fn set_level(&mut self, level: u32) {
        self.data.retain_due(|replicas| replicas.sent < level);
    }
}
