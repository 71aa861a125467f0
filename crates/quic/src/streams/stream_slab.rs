//! The state of streams, under small dense keys that are used again.
//!
//! Streams are large and short-lived: here one is dropped in place, without being moved out first.

use std::ops::{Index, IndexMut};

use crate::idle_memory::IdleMemory;

/// No free entry follows.
const NONE: u32 = u32::MAX;

#[derive(Debug)]
enum SlabEntry<T> {
    Taken(T),
    /// Names the next free entry.
    Free(u32),
}

/// Values by key. The key that was given back last is the next one given.
#[derive(Debug)]
pub(super) struct StreamSlab<T> {
    entries: Vec<SlabEntry<T>>,
    free: u32,
    len: usize,
}

impl<T> Default for StreamSlab<T> {
    fn default() -> Self {
        Self {
            entries: Vec::new(),
            free: NONE,
            len: 0,
        }
    }
}

impl<T> StreamSlab<T> {
    /// How many values there are.
    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// All keys that may have a value.
    pub(super) fn keys(&self) -> impl Iterator<Item = u32> + use<T> {
        0..self.entries.len() as u32
    }

    pub(super) fn get(&self, key: u32) -> Option<&T> {
        match self.entries.get(key as usize)? {
            SlabEntry::Taken(value) => Some(value),
            SlabEntry::Free(_) => None,
        }
    }

    pub(super) fn get_mut(&mut self, key: u32) -> Option<&mut T> {
        match self.entries.get_mut(key as usize)? {
            SlabEntry::Taken(value) => Some(value),
            SlabEntry::Free(_) => None,
        }
    }

    /// Keeps `value`; returns its key.
    #[inline]
    pub(super) fn insert(&mut self, value: T) -> u32 {
        self.len += 1;
        if let Some(entry) = self.entries.get_mut(self.free as usize)
            && let SlabEntry::Free(next) = *entry
        {
            *entry = SlabEntry::Taken(value);
            return std::mem::replace(&mut self.free, next);
        }
        if self.entries.len() == self.entries.capacity() {
            // By half: what doubling leaves unused is more than most streams hold.
            self.entries.reserve_exact(1 + self.entries.len() / 2);
        }
        self.entries.push(SlabEntry::Taken(value));
        self.entries.len() as u32 - 1
    }

    /// Drops the value of `key`, if there is one.
    pub(super) fn remove(&mut self, key: u32) {
        if let Some(entry @ SlabEntry::Taken(_)) = self.entries.get_mut(key as usize) {
            *entry = SlabEntry::Free(std::mem::replace(&mut self.free, key));
            self.len -= 1;
        }
    }
}

impl<T> IdleMemory for StreamSlab<T> {
    /// Keys of present values stay.
    fn release_idle_memory(&mut self) {
        let Self {
            entries,
            free,
            len: _,
        } = self;
        while let Some(SlabEntry::Free(_)) = entries.last() {
            entries.pop();
        }
        entries.shrink_to_fit();
        *free = NONE;
        for (key, entry) in entries.iter_mut().enumerate().rev() {
            if let SlabEntry::Free(next) = entry {
                *next = std::mem::replace(free, key as u32);
            }
        }
    }
}

impl<T> Index<u32> for StreamSlab<T> {
    type Output = T;

    /// The value of `key`, which must have one.
    fn index(&self, key: u32) -> &T {
        self.get(key).expect("a key in use")
    }
}

impl<T> IndexMut<u32> for StreamSlab<T> {
    fn index_mut(&mut self, key: u32) -> &mut T {
        self.get_mut(key).expect("a key in use")
    }
}
