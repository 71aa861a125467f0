//! Copies that wait to be sent: a queue for each target and rank.
//!
//! What a path may carry, and when, depends on nothing else. To find the next copy for a packet, or how many bytes wait
//! for whom, takes time in proportion to the different targets and ranks, not to the copies.

use std::collections::VecDeque;

use swiftwater_units::{ByteCount, PathId};

use crate::policy::{CopyDemand, PathChoice, Rank, Reinjection};

/// Copies that may wait; a re-injector that asks for more is ahead of what can leave.
const MAX_COPIES: usize = 4096;

/// The queue is full.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct QueueFull;

/// A copy's place in the order in which copies of all kinds were asked for.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(crate) struct Turn(u64);

/// Copies of one target and rank, oldest first.
#[derive(Debug)]
struct Class {
    target: PathChoice,
    rank: Rank,
    copies: VecDeque<(Turn, Reinjection)>,
    bytes: u64,
}

impl Class {
    fn suits(&self, copy: &Reinjection) -> bool {
        self.target == copy.target && self.rank == copy.rank
    }

    fn first(&self) -> Option<(Turn, Reinjection)> {
        self.copies.front().copied()
    }
}

/// See the module's documentation.
#[derive(Debug, Default)]
pub(crate) struct CopyQueue {
    /// Those without copies are used again for other targets.
    classes: Vec<Class>,
    next_turn: u64,
}

/// A copy that waits, where it was found.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WaitingCopy {
    class: usize,
    /// When it was asked for, among all.
    pub(crate) turn: Turn,
    /// What was asked for.
    pub(crate) copy: Reinjection,
}

impl CopyQueue {
    /// True if no copy waits.
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.occupied().next().is_none()
    }

    fn len(&self) -> usize {
        self.classes.iter().map(|class| class.copies.len()).sum()
    }

    /// Appends a copy.
    pub(crate) fn push(&mut self, copy: Reinjection) -> Result<(), QueueFull> {
        if self.len() >= MAX_COPIES {
            return Err(QueueFull);
        }
        let turn = self.next_turn();
        self.next_turn += 1;
        let known = self.classes.iter().position(|class| class.suits(&copy));
        let at = known.unwrap_or_else(|| self.new_class(&copy));
        let class = &mut self.classes[at];
        class.copies.push_back((turn, copy));
        class.bytes += u64::from(copy.len);
        Ok(())
    }

    fn new_class(&mut self, copy: &Reinjection) -> usize {
        let (target, rank) = (copy.target, copy.rank);
        if let Some(at) = self.classes.iter().position(|it| it.copies.is_empty()) {
            let class = &mut self.classes[at];
            (class.target, class.rank) = (target, rank);
            return at;
        }
        self.classes.push(Class {
            target,
            rank,
            copies: VecDeque::new(),
            bytes: 0,
        });
        self.classes.len() - 1
    }

    /// The turn of the copy that is asked for next.
    pub(crate) fn next_turn(&self) -> Turn {
        Turn(self.next_turn)
    }

    /// The oldest copy that may leave on `path` and whose rank is admitted.
    pub(crate) fn next(&self, path: PathId, admits: impl Fn(Rank) -> bool) -> Option<WaitingCopy> {
        let candidates = self.classes.iter().enumerate().filter_map(|(class, it)| {
            let (turn, copy) = it.first()?;
            Some(WaitingCopy { class, turn, copy })
        });
        candidates
            .filter(|it| it.copy.target.permits(path) && admits(it.copy.rank))
            .min_by_key(|it| it.turn)
    }

    /// Removes a copy that [`next`](Self::next) found, unless the queue changed since.
    pub(crate) fn remove(&mut self, found: &WaitingCopy) {
        let Some(class) = self.classes.get_mut(found.class) else {
            return;
        };
        if class.first().is_some_and(|(turn, _)| turn == found.turn)
            && let Some((_, copy)) = class.copies.pop_front()
        {
            class.bytes -= u64::from(copy.len);
        }
    }

    /// Moves a copy behind all others.
    pub(crate) fn defer(&mut self, found: &WaitingCopy) {
        self.remove(found);
        // There is room: one was removed.
        let _ = self.push(found.copy);
    }

    /// Replaces a copy with the `rest` of it, in the same place.
    pub(crate) fn shorten(&mut self, found: &WaitingCopy, rest: Reinjection) {
        if let Some(class) = self.classes.get_mut(found.class)
            && let Some((_, copy)) = (class.copies.front_mut()).filter(|it| it.0 == found.turn)
        {
            class.bytes = class.bytes - u64::from(copy.len) + u64::from(rest.len);
            *copy = rest;
        }
    }

    /// True if a copy waits that may leave on `path`.
    pub(crate) fn has_copy_for(&self, path: PathId) -> bool {
        self.occupied().any(|class| class.target.permits(path))
    }

    /// Puts what waits, by target and rank, in the place of what `demand` holds.
    pub(crate) fn demand(&self, demand: &mut Vec<CopyDemand>) {
        demand.clear();
        demand.extend(self.occupied().map(|class| {
            CopyDemand::new(class.target, ByteCount::new(class.bytes)).rank(class.rank)
        }));
    }

    fn occupied(&self) -> impl Iterator<Item = &Class> {
        (self.classes.iter()).filter(|class| !class.copies.is_empty())
    }

    /// Discards all copies.
    pub(crate) fn clear(&mut self) {
        self.classes.clear();
    }

    /// Returns the memory that nothing needs.
    pub(crate) fn shrink_to_fit(&mut self) {
        self.classes.retain(|class| !class.copies.is_empty());
        for class in &mut self.classes {
            class.copies.shrink_to_fit();
        }
        self.classes.shrink_to_fit();
    }
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;
    use swiftwater_units::{Dir, Side, StreamId};

    use super::*;

    #[derive(Clone, Copy, Debug)]
    enum Step {
        Push(PathChoice, Rank, u32),
        Remove(PathId, Rank),
        Defer(PathId, Rank),
        Shorten(PathId, Rank),
    }

    fn path() -> impl Strategy<Value = PathId> {
        (0_u32..3).prop_map(PathId::new)
    }

    fn rank() -> impl Strategy<Value = Rank> {
        prop_oneof![
            Just(Rank::First),
            Just(Rank::BeforeNewData),
            Just(Rank::AfterNewData)
        ]
    }

    fn target() -> impl Strategy<Value = PathChoice> {
        prop_oneof![
            Just(PathChoice::Any),
            path().prop_map(PathChoice::Not),
            path().prop_map(PathChoice::On)
        ]
    }

    fn step() -> impl Strategy<Value = Step> {
        prop_oneof![
            3 => (target(), rank(), 2_u32..2000)
                .prop_map(|(target, rank, len)| Step::Push(target, rank, len)),
            1 => (path(), rank()).prop_map(|(path, rank)| Step::Remove(path, rank)),
            1 => (path(), rank()).prop_map(|(path, rank)| Step::Defer(path, rank)),
            1 => (path(), rank()).prop_map(|(path, rank)| Step::Shorten(path, rank)),
        ]
    }

    /// The next copy of a plain queue.
    fn next_of(model: &VecDeque<Reinjection>, path: PathId, rank: Rank) -> Option<usize> {
        (model.iter()).position(|copy| copy.target.permits(path) && copy.rank == rank)
    }

    proptest! {
        /// The queue hands out the same copies as one plain queue that is searched from its front.
        #[test]
        fn equals_a_plain_queue(steps in vec(step(), 0..200)) {
            let mut queue = CopyQueue::default();
            let mut model: VecDeque<Reinjection> = VecDeque::new();
            for (offset, step) in steps.into_iter().enumerate() {
                match step {
                    Step::Push(target, rank, len) => {
                        let copy = Reinjection::new(StreamId::new(Side::Client, Dir::Bi, 0), offset as u64, len)
                            .target(target)
                            .rank(rank);
                        queue.push(copy).unwrap();
                        model.push_back(copy);
                    }
                    Step::Remove(path, rank) | Step::Defer(path, rank) | Step::Shorten(path, rank) => {
                        let found = queue.next(path, |it| it == rank);
                        let expected = next_of(&model, path, rank);
                        prop_assert_eq!(found.map(|it| it.copy), expected.map(|at| model[at]));
                        let (Some(found), Some(at)) = (found, expected) else { continue };
                        match step {
                            Step::Shorten(..) if found.copy.len == 1 => {}
                            Step::Shorten(..) => {
                                let rest = Reinjection { offset: found.copy.offset + 1, len: found.copy.len - 1, ..found.copy };
                                queue.shorten(&found, rest);
                                model[at] = rest;
                            }
                            Step::Defer(..) => {
                                queue.defer(&found);
                                model.remove(at);
                                model.push_back(found.copy);
                            }
                            _ => {
                                queue.remove(&found);
                                model.remove(at);
                            }
                        }
                    }
                }
                let mut demand = Vec::new();
                queue.demand(&mut demand);
                for choice in &demand {
                    let same = model.iter().filter(|copy| copy.target == choice.target && copy.rank == choice.rank);
                    prop_assert_eq!(choice.bytes.get(), same.map(|copy| u64::from(copy.len)).sum::<u64>());
                }
                let bytes: u64 = demand.iter().map(|choice| choice.bytes.get()).sum();
                prop_assert_eq!(bytes, model.iter().map(|copy| u64::from(copy.len)).sum::<u64>());
                for id in (0..3).map(PathId::new) {
                    let waits = model.iter().any(|copy| copy.target.permits(id));
                    prop_assert_eq!(queue.has_copy_for(id), waits);
                }
                prop_assert_eq!(queue.is_empty(), model.is_empty());
            }
        }
    }

    #[test]
    fn a_full_queue_refuses_and_frees_up() {
        let mut queue = CopyQueue::default();
        let copy = Reinjection::new(StreamId::new(Side::Client, Dir::Bi, 0), 0, 1);
        for _ in 0..MAX_COPIES {
            queue.push(copy).unwrap();
        }
        assert_eq!(queue.push(copy), Err(QueueFull));
        let any = PathId::new(0);
        let found = queue.next(any, |_| true).unwrap();
        queue.remove(&found);
        // What was found before is gone.
        queue.remove(&found);
        assert_eq!(queue.push(copy), Ok(()));
        assert_eq!(queue.push(copy), Err(QueueFull));
        queue.clear();
        assert!(queue.is_empty() && !queue.has_copy_for(any));
    }
}
