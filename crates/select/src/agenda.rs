//! What is due when.

use std::collections::{BTreeMap, BTreeSet};

use swiftwater_units::Instant;

/// Things with a time at which each is due. Every operation takes time logarithmic in their number.
#[derive(Clone, Debug)]
pub struct Agenda<K> {
    times: BTreeMap<K, Instant>,
    /// The same by time.
    order: BTreeSet<(Instant, K)>,
}

impl<K> Default for Agenda<K> {
    fn default() -> Self {
        Self {
            times: BTreeMap::new(),
            order: BTreeSet::new(),
        }
    }
}

impl<K: Copy + Ord> Agenda<K> {
    /// `key` is due at `at`, and at no other time; never, if there is none.
    pub fn set(&mut self, key: K, at: Option<Instant>) {
        let before = match at {
            Some(at) => self.times.insert(key, at),
            None => self.times.remove(&key),
        };
        if before == at {
            return;
        }
        if let Some(before) = before {
            self.order.remove(&(before, key));
        }
        if let Some(at) = at {
            self.order.insert((at, key));
        }
    }

    /// When something is due next.
    pub fn next(&self) -> Option<Instant> {
        self.order.first().map(|(at, _)| *at)
    }

    /// Takes the first of what is due at `now`; `None` if nothing is.
    pub fn take_due(&mut self, now: Instant) -> Option<K> {
        let (at, key) = *self.order.first()?;
        if at > now {
            return None;
        }
        self.set(key, None);
        Some(key)
    }

    /// Removes all keys for which `keep` is false. Looks at all.
    pub fn retain(&mut self, mut keep: impl FnMut(&K) -> bool) {
        self.times.retain(|key, _| keep(key));
        self.order.retain(|(_, key)| self.times.contains_key(key));
    }

    /// Number of things.
    pub fn len(&self) -> usize {
        self.times.len()
    }

    /// True if nothing is ever due.
    pub fn is_empty(&self) -> bool {
        self.times.is_empty()
    }
}
