//! The copies that were asked for, so that no datum gets a second one.
//!
//! The transport counts copies of data under repair only; of all others this is the only account. A range stays
//! known for a while after it was last seen in flight: lost data are not in flight until they are sent again.

use std::collections::BTreeMap;
use std::time::Duration;

use swiftwater_quic::policy::{OutstandingRange, Reinjection};
use swiftwater_units::{Instant, StreamId};

/// How long a range stays known that isn't in flight.
const KEPT: Duration = Duration::from_secs(10);
/// No range of a packet is longer.
const LONGEST_RANGE: u64 = 65_535;

#[derive(Clone, Copy, Debug)]
struct AskedCopy {
    end: u64,
    asked_at: Instant,
    /// Bytes that the budget was charged.
    charged: u32,
    /// When a part of it was last seen in flight.
    seen_at: Instant,
}

/// Copies that were asked for, by stream and first byte.
#[derive(Clone, Debug, Default)]
pub(super) struct AskedCopies {
    copies: BTreeMap<(StreamId, u64), AskedCopy>,
}

impl AskedCopies {
    /// Ranges that are known.
    pub(super) fn len(&self) -> usize {
        self.copies.len()
    }

    /// A copy of `range` is asked for, which the budget is charged `charged` bytes for.
    pub(super) fn add(&mut self, now: Instant, range: &OutstandingRange, charged: u32) {
        let end = range.offset + u64::from(range.len);
        let copy = self.copies.entry((range.stream, range.offset));
        let copy = copy.or_insert(AskedCopy {
            end,
            asked_at: now,
            charged,
            seen_at: now,
        });
        copy.end = copy.end.max(end);
        copy.seen_at = now;
    }

    /// True if a copy of some of the range's bytes was asked for. The range is in flight.
    pub(super) fn meets(&mut self, now: Instant, range: &OutstandingRange) -> bool {
        if self.copies.is_empty() {
            return false;
        }
        let from = range.offset.saturating_sub(LONGEST_RANGE);
        let end = range.offset + u64::from(range.len);
        let near = (range.stream, from)..(range.stream, end);
        let mut is_known = false;
        for (_, copy) in self.copies.range_mut(near) {
            if copy.end > range.offset {
                copy.seen_at = now;
                is_known = true;
            }
        }
        is_known
    }

    /// This copy, or the rest of one, will not be sent; returns when it was asked for, and the bytes
    /// that the budget gets back.
    pub(super) fn reject(&mut self, rejected: &Reinjection) -> Option<(Instant, u32)> {
        let upto = (rejected.stream, rejected.offset);
        let (&key, copy) = self.copies.range_mut(..=upto).next_back()?;
        let is_of_it = key.0 == rejected.stream && copy.end > rejected.offset;
        if !is_of_it {
            return None;
        }
        let back = copy.charged.min(rejected.len);
        let asked_at = copy.asked_at;
        copy.charged -= back;
        // What left of it before stays known.
        copy.end = rejected.offset;
        if copy.end <= key.1 {
            self.copies.remove(&key);
        }
        Some((asked_at, back))
    }

    /// Forgets what hasn't been in flight for long.
    pub(super) fn expire(&mut self, now: Instant) {
        self.copies
            .retain(|_, copy| now.saturating_since(copy.seen_at) < KEPT);
    }
}
