//! The largest or smallest of the values seen within a sliding window: bandwidth over rounds,
//! round-trip times over seconds.
//!
//! Exact, and holds no more than the values that can still become the extremum. Each value is
//! entered and removed once, so the cost is constant per value on average.

use std::collections::VecDeque;

/// Which of two values a [`Windowed`] keeps.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Keep {
    Largest,
    Smallest,
}

/// The extremum of the values whose position is inside the window. Positions (times, rounds) never
/// fall.
#[derive(Clone, Debug, PartialEq)]
pub struct Windowed<P, V> {
    keep: Keep,
    /// Candidates by rising position; each is better than all behind it.
    candidates: VecDeque<(P, V)>,
}

impl<P: Copy + Ord, V: Copy + PartialOrd> Windowed<P, V> {
    /// Keeps the largest value.
    pub fn largest() -> Self {
        Self::new(Keep::Largest)
    }

    /// Keeps the smallest value.
    pub fn smallest() -> Self {
        Self::new(Keep::Smallest)
    }

    fn new(keep: Keep) -> Self {
        Self {
            keep,
            candidates: VecDeque::new(),
        }
    }

    /// Enters a value at `position`, not before any entered so far. Of equal values the newest
    /// counts, so that a value seen again stays for another window.
    pub fn enter(&mut self, position: P, value: V) {
        let keep = self.keep;
        let yields = |old: V| match keep {
            Keep::Largest => old <= value,
            Keep::Smallest => old >= value,
        };
        while self.candidates.back().is_some_and(|&(_, old)| yields(old)) {
            self.candidates.pop_back();
        }
        self.candidates.push_back((position, value));
    }

    /// Discards everything from before `position`, except the newest value: a window never is empty
    /// just because nothing was measured.
    pub fn discard_before(&mut self, position: P) {
        while self.candidates.len() > 1 && self.candidates.front().is_some_and(|c| c.0 < position) {
            self.candidates.pop_front();
        }
    }

    /// The extremum; `None` if nothing was entered.
    pub fn get(&self) -> Option<V> {
        self.candidates.front().map(|&(_, value)| value)
    }

    /// Where the extremum was entered.
    pub fn position(&self) -> Option<P> {
        self.candidates.front().map(|&(position, _)| position)
    }

    /// The value entered last, and where. It is always kept.
    pub fn newest(&self) -> Option<(P, V)> {
        self.candidates.back().copied()
    }

    /// Discards everything.
    pub fn clear(&mut self) {
        self.candidates.clear();
    }
}
