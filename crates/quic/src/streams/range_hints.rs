//! Hints of the application about ranges of a stream: priority, deadline, first frame.
//!
//! Hints are for policies (schedulers and re-injectors); the transport itself neither drops nor reorders
//! anything for them.

use std::collections::BTreeMap;
use std::ops::Range;

use swiftwater_units::{Instant, StreamId};

use super::{SendHalf, Streams};
use crate::error::WriteError;
use crate::policy::Priority;

/// Hints of an application about a range of a stream. The default has none.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
#[non_exhaustive]
pub struct RangeHints {
    /// Priority of the range, if it differs from its stream's.
    pub priority: Option<Priority>,
    /// When the receiver has no use for the range any more, if that differs from the deadline of its
    /// stream.
    pub deadline: Option<Instant>,
    /// The range belongs to the first video frame, which playback waits for.
    pub first_frame: bool,
}

impl RangeHints {
    /// The same with a priority.
    #[must_use]
    pub const fn with_priority(mut self, priority: Priority) -> Self {
        self.priority = Some(priority);
        self
    }

    /// The same with a deadline.
    #[must_use]
    pub const fn with_deadline(mut self, deadline: Instant) -> Self {
        self.deadline = Some(deadline);
        self
    }

    /// The same, as part of the first video frame.
    #[must_use]
    pub const fn as_first_frame(mut self) -> Self {
        self.first_frame = true;
        self
    }

    /// What holds for bytes of both: the more urgent priority, the earlier deadline.
    fn merged(self, other: Self) -> Self {
        let by_rank = |priority: &Priority| priority.rank();
        Self {
            priority: self
                .priority
                .into_iter()
                .chain(other.priority)
                .min_by_key(by_rank),
            deadline: self.deadline.into_iter().chain(other.deadline).min(),
            first_frame: self.first_frame || other.first_frame,
        }
    }
}

/// The hints about one stream, by range. Ranges don't overlap.
#[derive(Debug, Default)]
pub(super) struct RangeHintMap {
    /// By first byte: one past the last byte, and the hints.
    ranges: BTreeMap<u64, HintedRange>,
}

#[derive(Clone, Copy, Debug)]
struct HintedRange {
    end: u64,
    hints: RangeHints,
}

impl RangeHintMap {
    /// Replaces the hints about `range`. Default hints remove them.
    pub(super) fn set(&mut self, range: Range<u64>, hints: RangeHints) {
        if range.is_empty() {
            return;
        }
        self.remove(range.clone());
        if hints == RangeHints::default() {
            return;
        }
        let mut start = range.start;
        let before = self.ranges.range(..start).next_back();
        if let Some((&first, hinted)) = before
            && hinted.end == start
            && hinted.hints == hints
        {
            start = first;
        }
        let end = range.end;
        self.ranges.insert(start, HintedRange { end, hints });
    }

    /// Removes the hints about `range`.
    fn remove(&mut self, range: Range<u64>) {
        self.cut(range.start);
        self.cut(range.end);
        let within: Vec<u64> = self.ranges.range(range).map(|(&start, _)| start).collect();
        for start in within {
            self.ranges.remove(&start);
        }
    }

    /// Cuts the range around `at`, if there is one, in two.
    fn cut(&mut self, at: u64) {
        if let Some((_, hinted)) = self.ranges.range_mut(..at).next_back()
            && hinted.end > at
        {
            let second = *hinted;
            hinted.end = at;
            self.ranges.insert(at, second);
        }
    }

    /// Discards the hints about bytes before `offset`, which were delivered.
    pub(super) fn discard_before(&mut self, offset: u64) {
        while let Some(first) = self.ranges.first_entry()
            && first.get().end <= offset
        {
            first.remove();
        }
    }

    /// What holds for any byte of `range`.
    pub(super) fn of(&self, range: Range<u64>) -> RangeHints {
        let before = self.ranges.range(..range.start).next_back();
        let before = before.filter(|(_, hinted)| hinted.end > range.start);
        let within = self.ranges.range(range);
        before
            .into_iter()
            .chain(within)
            .fold(RangeHints::default(), |merged, (_, hinted)| {
                merged.merged(hinted.hints)
            })
    }

    /// True without any hints.
    pub(super) fn is_empty(&self) -> bool {
        self.ranges.is_empty()
    }
}

impl SendHalf {
    /// Replaces the hints about `range`.
    pub(super) fn set_range_hints(&mut self, range: Range<u64>, hints: RangeHints) {
        let range = range.start.max(self.buffer.delivered())..range.end;
        if hints != RangeHints::default() || self.range_hints.get().is_some() {
            self.range_hints.need().set(range, hints);
        }
    }
}

impl Streams {
    /// Sets hints about a range of a stream, written or to be written.
    pub(crate) fn set_range_hints(
        &mut self,
        id: StreamId,
        range: Range<u64>,
        hints: RangeHints,
    ) -> Result<(), WriteError> {
        let (key, _) = self.sending(id)?;
        if let Some(send) = self.slab[key].send.as_mut() {
            send.set_range_hints(range, hints);
        }
        Ok(())
    }

    /// The hints about a range that policies get: its own, else the priority and deadline of its
    /// stream. Without a priority if the stream is closed.
    pub(crate) fn hints_of(&self, id: StreamId, range: Range<u64>) -> RangeHints {
        let Some((_, stream)) = self.stream(id) else {
            return RangeHints::default();
        };
        let hints = stream.send.as_ref().and_then(|send| send.range_hints.get());
        let hints = hints.map_or_else(RangeHints::default, |hints| hints.of(range));
        RangeHints {
            priority: hints.priority.or(Some(stream.priority)),
            deadline: hints.deadline.or(stream.deadline),
            first_frame: hints.first_frame,
        }
    }
}
