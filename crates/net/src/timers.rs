//! The timers of all connections of a worker in one queue.

use std::collections::BTreeSet;

use swiftwater_units::Instant;

/// One deadline per connection. Setting one to a later time, which nearly every packet does, costs
/// nothing: the queue keeps the earlier time and looks again when that has come.
#[derive(Debug, Default)]
pub(crate) struct TimerQueue {
    queue: BTreeSet<(Instant, usize)>,
    slots: Vec<Slot>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Slot {
    /// The deadline.
    due: Option<Instant>,
    /// Its place in the queue, never later than `due`.
    queued: Option<Instant>,
}

impl TimerQueue {
    /// Sets or clears the deadline of connection `index`.
    pub(crate) fn set(&mut self, index: usize, due: Option<Instant>) {
        if self.slots.len() <= index {
            self.slots.resize(index + 1, Slot::default());
        }
        let slot = &mut self.slots[index];
        slot.due = due;
        match (due, slot.queued) {
            (Some(due), Some(queued)) if due >= queued => {}
            (Some(due), queued) => {
                if let Some(queued) = queued {
                    self.queue.remove(&(queued, index));
                }
                self.queue.insert((due, index));
                slot.queued = Some(due);
            }
            (None, Some(queued)) => {
                self.queue.remove(&(queued, index));
                slot.queued = None;
            }
            (None, None) => {}
        }
    }

    /// A connection whose deadline is `now` or has passed; its deadline is cleared.
    pub(crate) fn pop_expired(&mut self, now: Instant) -> Option<usize> {
        while let Some(&(at, index)) = self.queue.first() {
            if at > now {
                return None;
            }
            self.queue.pop_first();
            let slot = &mut self.slots[index];
            slot.queued = None;
            match slot.due {
                Some(due) if due <= now => {
                    slot.due = None;
                    return Some(index);
                }
                Some(due) => {
                    slot.queued = Some(due);
                    self.queue.insert((due, index));
                }
                None => {}
            }
        }
        None
    }

    /// When to look again: not later than the earliest deadline, perhaps earlier.
    pub(crate) fn next(&self) -> Option<Instant> {
        self.queue.first().map(|&(at, _)| at)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Against the obvious model: a map from connection to deadline.
        #[test]
        fn agrees_with_a_map(steps in prop::collection::vec((0usize..6, prop::option::of(0u64..50), 0u64..4), 0..200)) {
            let mut queue = TimerQueue::default();
            let mut model: BTreeMap<usize, u64> = BTreeMap::new();
            let mut now = 0;
            for (index, due, passes) in steps {
                queue.set(index, due.map(Instant::from_nanos));
                match due {
                    Some(due) => model.insert(index, due),
                    None => model.remove(&index),
                };
                now += passes;
                let mut expired = Vec::new();
                while let Some(index) = queue.pop_expired(Instant::from_nanos(now)) {
                    expired.push(index);
                }
                expired.sort_unstable();
                let expected: Vec<usize> =
                    model.iter().filter(|(_, due)| **due <= now).map(|(index, _)| *index).collect();
                prop_assert_eq!(&expired, &expected);
                model.retain(|_, due| *due > now);
                let next = queue.next().map(Instant::as_nanos);
                let earliest = model.values().min().copied();
                prop_assert_eq!(next.is_some(), earliest.is_some());
                prop_assert!(next <= earliest);
            }
        }
    }
}
