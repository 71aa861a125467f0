//! Data ranges with a state each, of which some are due at a time: what re-injectors keep of data that
//! wait for their next copy.

use std::collections::{BTreeMap, BTreeSet};

use swiftwater_quic::policy::DataRange;
use swiftwater_units::{Instant, StreamId};

/// What identifies a range: no two of a connection overlap.
type Key = (StreamId, u64);

fn key(range: &DataRange) -> Key {
    (range.stream, range.offset)
}

#[derive(Clone, Debug)]
struct Slot<T> {
    len: u32,
    value: T,
    due: Option<(Instant, u64)>,
}

/// Ranges by the time at which they are due; among equals, in the order in which that was set. A range
/// that isn't due at any time is known all the same. Each change costs O(log n).
#[derive(Clone, Debug)]
pub struct DueQueue<T> {
    ranges: BTreeMap<Key, Slot<T>>,
    line: BTreeSet<(Instant, u64, Key)>,
    tickets: u64,
}

impl<T> Default for DueQueue<T> {
    fn default() -> Self {
        Self {
            ranges: BTreeMap::new(),
            line: BTreeSet::new(),
            tickets: 0,
        }
    }
}

impl<T> DueQueue<T> {
    /// Ranges that are known.
    pub fn len(&self) -> usize {
        self.ranges.len()
    }

    /// True if none is known.
    pub fn is_empty(&self) -> bool {
        self.ranges.is_empty()
    }

    /// Ranges that are due at some time.
    pub fn waiting(&self) -> usize {
        self.line.len()
    }

    /// The state of a range.
    pub fn get(&self, range: &DataRange) -> Option<&T> {
        self.ranges.get(&key(range)).map(|slot| &slot.value)
    }

    /// The state of a range, to be changed.
    pub fn get_mut(&mut self, range: &DataRange) -> Option<&mut T> {
        self.ranges.get_mut(&key(range)).map(|slot| &mut slot.value)
    }

    /// Adds a range, which isn't due; what was known of it is replaced.
    pub fn insert(&mut self, range: &DataRange, value: T) {
        self.clear_due(range);
        let slot = Slot {
            len: range.len,
            value,
            due: None,
        };
        self.ranges.insert(key(range), slot);
    }

    /// Removes a range; returns its state, if there was one.
    pub fn remove(&mut self, range: &DataRange) -> Option<T> {
        self.clear_due(range);
        self.ranges.remove(&key(range)).map(|slot| slot.value)
    }

    /// The next number in the order of calls.
    pub fn ticket(&mut self) -> u64 {
        self.tickets += 1;
        self.tickets - 1
    }

    /// A known range is due at `at`, behind others of that time.
    pub fn set_due(&mut self, range: &DataRange, at: Instant) {
        let ticket = self.ticket();
        self.set_due_as(range, at, ticket);
    }

    /// A known range is due at `at`, among others of that time at the place of `ticket`.
    pub fn set_due_as(&mut self, range: &DataRange, at: Instant, ticket: u64) {
        self.clear_due(range);
        let key = key(range);
        if let Some(slot) = self.ranges.get_mut(&key) {
            slot.due = Some((at, ticket));
            self.line.insert((at, ticket, key));
        }
    }

    /// A range isn't due any more.
    pub fn clear_due(&mut self, range: &DataRange) {
        let key = key(range);
        if let Some((at, ticket)) = self.ranges.get_mut(&key).and_then(|slot| slot.due.take()) {
            self.line.remove(&(at, ticket, key));
        }
    }

    /// The range that is due first, and when.
    pub fn first(&self) -> Option<(DataRange, Instant)> {
        let (at, _, key) = self.line.first()?;
        Some((self.data_range(*key)?, *at))
    }

    /// When the range that is due first is due.
    pub fn next_due(&self) -> Option<Instant> {
        self.line.first().map(|(at, _, _)| *at)
    }

    /// True if no range of the same stream that is known begins before this one.
    pub fn is_first_of_stream(&self, range: &DataRange) -> bool {
        let of_stream = (range.stream, 0)..(range.stream, range.offset);
        self.ranges.range(of_stream).next().is_none()
    }

    /// Takes the range that is due first out of the line; it stays known.
    pub fn pop_first(&mut self) -> Option<DataRange> {
        let (_, _, key) = self.line.pop_first()?;
        if let Some(slot) = self.ranges.get_mut(&key) {
            slot.due = None;
        }
        self.data_range(key)
    }

    /// Ranges that are due by `now`, with the time, the longest due first.
    pub fn due_by(&self, now: Instant) -> impl Iterator<Item = (DataRange, Instant, &T)> {
        self.line
            .iter()
            .take_while(move |(at, _, _)| *at <= now)
            .filter_map(|(at, _, key)| {
                Some((self.data_range(*key)?, *at, &self.ranges.get(key)?.value))
            })
    }

    /// Ranges for which `keep` is false are not due any more.
    pub fn retain_due(&mut self, mut keep: impl FnMut(&T) -> bool) {
        let ranges = &mut self.ranges;
        self.line.retain(|(_, _, key)| {
            let Some(slot) = ranges.get_mut(key) else {
                return false;
            };
            let stays = keep(&slot.value);
            if !stays {
                slot.due = None;
            }
            stays
        });
    }

    fn data_range(&self, key: Key) -> Option<DataRange> {
        let (stream, offset) = key;
        self.ranges.get(&key).map(|slot| DataRange {
            stream,
            offset,
            len: slot.len,
        })
    }
}

impl<T: Clone> DueQueue<T> {
    /// A range became two: its first `at` bytes and the rest, both with its state and due at its time.
    /// False, and nothing happens, if it isn't known or `at` isn't inside.
    pub fn split(&mut self, range: &DataRange, at: u32) -> bool {
        let Some(slot) = self.ranges.get_mut(&key(range)) else {
            return false;
        };
        if at == 0 || at >= slot.len {
            return false;
        }
        let rest = Slot {
            len: slot.len - at,
            ..slot.clone()
        };
        slot.len = at;
        let rest_key = (range.stream, range.offset + u64::from(at));
        if let Some((time, ticket)) = rest.due {
            self.line.insert((time, ticket, rest_key));
        }
        self.ranges.insert(rest_key, rest);
        true
    }
}
