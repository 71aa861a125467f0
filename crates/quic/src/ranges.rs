//! A set of integers kept as disjoint ranges.

use std::collections::VecDeque;
use std::ops::Range;

/// A set of `u64` as sorted, disjoint, non-adjacent half-open ranges. Insertions at either end cost
/// O(1), elsewhere O(log n) plus a move of the tail; memory is 16 bytes a range and is reused.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct RangeSet {
    ranges: VecDeque<Range<u64>>,
}

impl RangeSet {
    /// The empty set.
    pub const fn new() -> Self {
        Self {
            ranges: VecDeque::new(),
        }
    }

    /// True if nothing is in the set.
    pub fn is_empty(&self) -> bool {
        self.ranges.is_empty()
    }

    /// Number of disjoint ranges.
    pub fn len(&self) -> usize {
        self.ranges.len()
    }

    /// The ranges, smallest first; the iterator is double-ended.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = Range<u64>> + Clone + '_ {
        self.ranges.iter().cloned()
    }

    /// The smallest range.
    pub fn first(&self) -> Option<Range<u64>> {
        self.ranges.front().cloned()
    }

    /// The largest range.
    pub fn last(&self) -> Option<Range<u64>> {
        self.ranges.back().cloned()
    }

    /// The largest member.
    pub fn max(&self) -> Option<u64> {
        self.ranges.back().map(|range| range.end - 1)
    }

    /// Index of the first range that ends at or after `n`.
    fn first_ending_at_or_after(&self, n: u64) -> usize {
        match self.ranges.back() {
            // Most insertions extend or follow the last range.
            Some(last) if last.end < n => self.ranges.len(),
            Some(last) if last.start <= n => self.ranges.len() - 1,
            _ => self.ranges.partition_point(|range| range.end < n),
        }
    }

    /// Gives back memory that the present ranges don't need.
    pub(crate) fn shrink(&mut self) {
        self.ranges.shrink_to_fit();
    }

    /// Index of the first range that ends after `n`.
    fn first_ending_after(&self, n: u64) -> usize {
        // Most questions are about either end.
        match (self.ranges.front(), self.ranges.back()) {
            (Some(first), _) if first.end > n => 0,
            (_, Some(last)) if last.end <= n => self.ranges.len(),
            (_, Some(last)) if last.start <= n => self.ranges.len() - 1,
            _ => self.ranges.partition_point(|range| range.end <= n),
        }
    }

    /// True if `n` is in the set.
    pub fn contains(&self, n: u64) -> bool {
        let at = self.first_ending_after(n);
        self.ranges.get(at).is_some_and(|range| range.start <= n)
    }

    /// True if all of `range` is in the set.
    pub fn covers(&self, range: &Range<u64>) -> bool {
        let at = self.first_ending_after(range.start);
        range.is_empty()
            || self
                .ranges
                .get(at)
                .is_some_and(|have| have.start <= range.start && range.end <= have.end)
    }

    /// Adds one value; false if it was there.
    #[inline]
    pub fn insert_one(&mut self, n: u64) -> bool {
        if let Some(last) = self.ranges.back_mut()
            && last.end == n
        {
            last.end += 1;
            return true;
        }
        if self.contains(n) {
            return false;
        }
        self.insert(n..n + 1);
        true
    }

    /// Adds every value of `range`.
    pub fn insert(&mut self, range: Range<u64>) {
        if range.is_empty() {
            return;
        }
        if let Some(last) = self.ranges.back_mut()
            && last.end == range.start
        {
            last.end = range.end;
            return;
        }
        if self.ranges.capacity() == 0 {
            // Most sets never have more than one.
            self.ranges.reserve_exact(1);
        }
        let at = self.first_ending_at_or_after(range.start);
        let Some(first) = self.ranges.get_mut(at) else {
            self.ranges.push_back(range);
            return;
        };
        if first.start > range.end {
            self.ranges.insert(at, range);
            return;
        }
        first.start = first.start.min(range.start);
        let mut end = first.end.max(range.end);
        let swallowed = self
            .ranges
            .range(at + 1..)
            .take_while(|next| next.start <= range.end)
            .count();
        if swallowed > 0 {
            end = end.max(self.ranges[at + swallowed].end);
            self.ranges.drain(at + 1..=at + swallowed);
        }
        self.ranges[at].end = end;
    }

    /// Takes every value of `range` out.
    pub fn remove(&mut self, range: Range<u64>) {
        if range.is_empty() {
            return;
        }
        let mut from = self.first_ending_after(range.start);
        let Some(first) = self
            .ranges
            .get_mut(from)
            .filter(|first| first.start < range.end)
        else {
            return;
        };
        if first.start < range.start {
            let end = first.end;
            first.end = range.start;
            from += 1;
            if end > range.end {
                self.ranges.insert(from, range.end..end);
                return;
            }
        }
        let covered = self
            .ranges
            .range(from..)
            .take_while(|have| have.end <= range.end)
            .count();
        self.ranges.drain(from..from + covered);
        if let Some(last) = self.ranges.get_mut(from) {
            last.start = last.start.max(range.end);
        }
    }

    /// How many values of `range` are in the set.
    pub fn overlap(&self, range: Range<u64>) -> u64 {
        if range.is_empty() {
            return 0;
        }
        let from = self.first_ending_after(range.start);
        self.ranges
            .range(from..)
            .take_while(|have| have.start < range.end)
            .map(|have| have.end.min(range.end) - have.start.max(range.start))
            .sum()
    }

    /// Removes and returns the smallest range.
    pub fn pop_first(&mut self) -> Option<Range<u64>> {
        self.ranges.pop_front()
    }

    /// Removes and returns up to `max` values from the front of the smallest range.
    pub fn take_first(&mut self, max: u64) -> Option<Range<u64>> {
        let first = self.ranges.front_mut()?;
        if first.end - first.start <= max {
            return self.ranges.pop_front();
        }
        let taken = first.start..first.start + max;
        first.start = taken.end;
        Some(taken)
    }

    /// The parts of `range` that are not in the set, smallest first.
    pub fn gaps_in(&self, range: Range<u64>) -> impl Iterator<Item = Range<u64>> + '_ {
        let mut from = range.start;
        let mut at = self.first_ending_after(range.start);
        std::iter::from_fn(move || {
            while from < range.end {
                let (gap_end, next) = match self.ranges.get(at) {
                    Some(have) if have.start < range.end => (have.start, have.end),
                    _ => (range.end, range.end),
                };
                let gap = from..gap_end;
                from = next;
                at += 1;
                if !gap.is_empty() {
                    return Some(gap);
                }
            }
            None
        })
    }

    /// Discards everything.
    pub fn clear(&mut self) {
        self.ranges.clear();
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    /// Values are small, so that ranges meet in every way.
    const MAX: u64 = 40;

    #[derive(Clone, Debug)]
    enum Op {
        Insert(Range<u64>),
        InsertOne(u64),
        Remove(Range<u64>),
        TakeFirst(u64),
        PopFirst,
    }

    fn range() -> impl Strategy<Value = Range<u64>> {
        (0..MAX, 0..8u64).prop_map(|(start, len)| start..(start + len).min(MAX))
    }

    fn op() -> impl Strategy<Value = Op> {
        prop_oneof![
            4 => range().prop_map(Op::Insert),
            4 => (0..MAX).prop_map(Op::InsertOne),
            3 => range().prop_map(Op::Remove),
            1 => (1..5u64).prop_map(Op::TakeFirst),
            1 => Just(Op::PopFirst),
        ]
    }

    /// The ranges that `model` makes.
    fn ranges_of(model: &BTreeSet<u64>) -> Vec<Range<u64>> {
        let mut ranges: Vec<Range<u64>> = Vec::new();
        for &n in model {
            match ranges.last_mut() {
                Some(last) if last.end == n => last.end += 1,
                _ => ranges.push(n..n + 1),
            }
        }
        ranges
    }

    fn apply(set: &mut RangeSet, model: &mut BTreeSet<u64>, op: Op) {
        match op {
            Op::Insert(range) => {
                set.insert(range.clone());
                model.extend(range);
            }
            Op::InsertOne(n) => assert_eq!(set.insert_one(n), model.insert(n)),
            Op::Remove(range) => {
                set.remove(range.clone());
                model.retain(|n| !range.contains(n));
            }
            Op::TakeFirst(max) => {
                let first = ranges_of(model).first().cloned();
                let expected = first.map(|first| first.start..first.end.min(first.start + max));
                assert_eq!(set.take_first(max), expected);
                model.retain(|n| !expected.clone().is_some_and(|taken| taken.contains(n)));
            }
            Op::PopFirst => {
                let first = ranges_of(model).first().cloned();
                assert_eq!(set.pop_first(), first);
                model.retain(|n| !first.clone().is_some_and(|taken| taken.contains(n)));
            }
        }
    }

    proptest! {
        #[test]
        fn agrees_with_a_set_of_integers(
            ops in proptest::collection::vec(op(), 1..60),
            probe in range(),
        ) {
            let (mut set, mut model) = (RangeSet::new(), BTreeSet::new());
            for op in ops {
                apply(&mut set, &mut model, op);
                let ranges = ranges_of(&model);
                prop_assert_eq!(set.iter().collect::<Vec<_>>(), ranges.clone());
                prop_assert_eq!(set.len(), ranges.len());
                prop_assert_eq!(set.is_empty(), model.is_empty());
                prop_assert_eq!(set.first(), ranges.first().cloned());
                prop_assert_eq!(set.last(), ranges.last().cloned());
                prop_assert_eq!(set.max(), model.last().copied());
                for n in 0..=MAX {
                    prop_assert_eq!(set.contains(n), model.contains(&n));
                }
                let inside = model.iter().filter(|n| probe.contains(n)).count();
                prop_assert_eq!(set.overlap(probe.clone()), inside as u64);
                let missing: BTreeSet<u64> = probe.clone().filter(|n| !model.contains(n)).collect();
                prop_assert_eq!(set.covers(&probe), missing.is_empty());
                let gaps: Vec<_> = set.gaps_in(probe.clone()).collect();
                prop_assert_eq!(gaps, ranges_of(&missing));
            }
            set.clear();
            prop_assert!(set.is_empty());
        }
    }

    #[test]
    fn empty_and_inverted_ranges_change_nothing() {
        let mut set = RangeSet::new();
        set.insert(3..9);
        #[allow(clippy::reversed_empty_ranges, reason = "they are what is tested")]
        for range in [5..5, 7..4, 20..20] {
            set.insert(range.clone());
            set.remove(range.clone());
            assert_eq!(set.overlap(range.clone()), 0);
            assert_eq!(set.gaps_in(range).count(), 0);
        }
        assert!(set.iter().eq(std::iter::once(3..9)));
    }
}
