//! The dynamic table (RFC 9204, section 3.2): entries by absolute index, first in, first out.
//!
//! The encoder decides which entries may be evicted; the table only tracks their number and size.

use std::collections::VecDeque;

use bytes::Bytes;

use super::field;

/// An entry, with a value attached by the table's owner.
#[derive(Clone, Debug)]
pub(super) struct Entry<T> {
    pub(super) name: Bytes,
    pub(super) value: Bytes,
    pub(super) note: T,
}

impl<T> Entry<T> {
    /// Its size (section 3.2.1), bytes.
    pub(super) fn size(&self) -> u64 {
        field::size(&self.name, &self.value)
    }
}

/// The entries. An absolute index is the number of insertions before the entry's own.
#[derive(Debug)]
pub(super) struct Table<T> {
    entries: VecDeque<Entry<T>>,
    inserted: u64,
    size: u64,
    capacity: u64,
}

impl<T> Table<T> {
    /// An empty table of capacity 0, as at the start of a connection.
    pub(super) const fn new() -> Self {
        Self {
            entries: VecDeque::new(),
            inserted: 0,
            size: 0,
            capacity: 0,
        }
    }

    /// Insertions so far, duplicates included: the Insert Count.
    pub(super) const fn inserted(&self) -> u64 {
        self.inserted
    }

    /// Absolute index of the oldest entry, or of the next one if there is none.
    pub(super) fn oldest(&self) -> u64 {
        self.inserted - self.entries.len() as u64
    }

    pub(super) const fn size(&self) -> u64 {
        self.size
    }

    pub(super) const fn capacity(&self) -> u64 {
        self.capacity
    }

    /// Entries from the oldest on.
    pub(super) fn iter(&self) -> impl Iterator<Item = &Entry<T>> {
        self.entries.iter()
    }

    pub(super) fn get(&self, absolute: u64) -> Option<&Entry<T>> {
        let place = absolute.checked_sub(self.oldest())?;
        self.entries.get(usize::try_from(place).ok()?)
    }

    pub(super) fn get_mut(&mut self, absolute: u64) -> Option<&mut Entry<T>> {
        let place = absolute.checked_sub(self.oldest())?;
        self.entries.get_mut(usize::try_from(place).ok()?)
    }

    /// Changes the capacity. The caller evicts until [`Self::overfull`] returns false.
    pub(super) const fn set_capacity(&mut self, capacity: u64) {
        self.capacity = capacity;
    }

    /// Whether entries must be evicted before `more` bytes fit.
    pub(super) const fn overfull(&self, more: u64) -> bool {
        self.size.saturating_add(more) > self.capacity
    }

    /// Drops the oldest entry.
    pub(super) fn evict(&mut self) -> Option<Entry<T>> {
        let entry = self.entries.pop_front()?;
        self.size -= entry.size();
        Some(entry)
    }

    /// Adds an entry; the caller has made room. Returns its absolute index.
    pub(super) fn push(&mut self, entry: Entry<T>) -> u64 {
        debug_assert!(!self.overfull(entry.size()));
        self.size += entry.size();
        self.entries.push_back(entry);
        self.inserted += 1;
        self.inserted - 1
    }
}
