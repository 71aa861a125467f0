//! The encoder's dynamic table: look-up, references and eviction by the rules (RFC 9204, section
//! 2.1.1).
//!
//! Entries are found by hash and then compared, so that the maps hold no strings. The hash has fixed keys:
//! the same fields give the same bytes in every run. If two fields have the same hash, the older is no
//! longer found, which only costs bytes.

use std::hash::BuildHasher;

use rustc_hash::{FxBuildHasher, FxHashMap};

use crate::qpack::field::FieldLine;
use crate::qpack::table::{Entry, Table};

/// Draining part of a full table: the oldest entries, one part in so many of the capacity, get no new
/// references, so that they can be evicted soon (section 2.1.1.1).
const DRAINING_SHARE: u64 = 16;
/// Lower bound of the draining part in small tables, bytes, about one or two entries: with less, the
/// oldest entry would be referred to until nothing can be inserted any more.
const MIN_DRAINING: u64 = 96;

/// Hashes of a field.
#[derive(Clone, Copy, Debug)]
pub(super) struct Hashes {
    pub(super) name: u64,
    /// Of name and value.
    pub(super) field: u64,
}

impl Hashes {
    pub(super) fn of(name: &[u8], value: &[u8]) -> Self {
        Self {
            name: FxBuildHasher.hash_one(name),
            field: FxBuildHasher.hash_one((name, value)),
        }
    }
}

/// Record of an entry.
#[derive(Clone, Debug)]
struct Note {
    hashes: Hashes,
    /// References in sections that are not acknowledged.
    references: u32,
    /// Whether its field occurred again after it was inserted.
    used: bool,
}

#[derive(Debug)]
pub(super) struct Entries {
    table: Table<Note>,
    /// Newest entry by hash of name and value, and by hash of the name.
    by_field: FxHashMap<u64, u64>,
    by_name: FxHashMap<u64, u64>,
    /// Insertions that the peer has acknowledged: the Known Received Count.
    known: u64,
    /// The oldest entry that may be referred to, and the bytes of those before it.
    draining_end: u64,
    draining_size: u64,
}

impl Default for Entries {
    fn default() -> Self {
        Self {
            table: Table::new(),
            by_field: FxHashMap::default(),
            by_name: FxHashMap::default(),
            known: 0,
            draining_end: 0,
            draining_size: 0,
        }
    }
}

impl Entries {
    pub(super) const fn inserted(&self) -> u64 {
        self.table.inserted()
    }

    pub(super) const fn known(&self) -> u64 {
        self.known
    }

    pub(super) const fn set_known(&mut self, known: u64) {
        self.known = known;
    }

    /// 0 until the first insertion.
    pub(super) const fn capacity(&self) -> u64 {
        self.table.capacity()
    }

    pub(super) fn contains(&self, absolute: u64) -> bool {
        self.table.get(absolute).is_some()
    }

    /// Whether an entry is in the draining part, so that it gets no new references.
    pub(super) const fn draining(&self, absolute: u64) -> bool {
        absolute < self.draining_end
    }

    /// The newest entry with the field's name and value.
    pub(super) fn find(&self, field: &FieldLine<'_>, hashes: Hashes) -> Option<u64> {
        let &absolute = self.by_field.get(&hashes.field)?;
        let entry = self.table.get(absolute)?;
        (*entry.name == *field.name && *entry.value == *field.value).then_some(absolute)
    }

    /// The newest entry with this name.
    pub(super) fn find_name(&self, name: &[u8], hashes: Hashes) -> Option<u64> {
        let &absolute = self.by_name.get(&hashes.name)?;
        let entry = self.table.get(absolute)?;
        (entry.name == name).then_some(absolute)
    }

    /// Whether the newest entry with this name exists and its field never occurred again.
    pub(super) fn newest_of_name_unused(&self, name: &[u8], hashes: Hashes) -> bool {
        self.find_name(name, hashes)
            .and_then(|absolute| self.table.get(absolute))
            .is_some_and(|entry| !entry.note.used)
    }

    pub(super) fn mark_used(&mut self, absolute: u64) {
        if let Some(entry) = self.table.get_mut(absolute) {
            entry.note.used = true;
        }
    }

    /// Counts a reference.
    pub(super) fn retain(&mut self, absolute: u64) {
        if let Some(entry) = self.table.get_mut(absolute) {
            entry.note.references += 1;
        }
    }

    /// Ends references.
    pub(super) fn release(&mut self, references: &[u64]) {
        for &absolute in references {
            if let Some(entry) = self.table.get_mut(absolute) {
                entry.note.references -= 1;
            }
        }
    }

    /// Evicts entries until one of `size` fits in a table of `capacity`; evicts nothing and returns `false`
    /// if the rules forbid one of these evictions.
    pub(super) fn make_room(&mut self, size: u64, capacity: u64) -> bool {
        if size > capacity {
            return false;
        }
        let mut excess = (self.table.size() + size).saturating_sub(capacity);
        let mut evictions = 0;
        for (absolute, entry) in (self.table.oldest()..).zip(self.table.iter()) {
            if excess == 0 {
                break;
            }
            if absolute >= self.known || entry.note.references > 0 {
                return false;
            }
            excess = excess.saturating_sub(entry.size());
            evictions += 1;
        }
        self.table.set_capacity(capacity);
        for _ in 0..evictions {
            self.evict();
        }
        true
    }

    fn evict(&mut self) {
        let absolute = self.table.oldest();
        let Some(entry) = self.table.evict() else {
            return;
        };
        let Hashes { name, field } = entry.note.hashes;
        discard(&mut self.by_field, field, absolute);
        discard(&mut self.by_name, name, absolute);
        if absolute < self.draining_end {
            self.draining_size -= entry.size();
        } else {
            self.draining_end = absolute + 1;
        }
    }

    /// Adds the newest entry; the caller has made room. Returns its absolute index.
    pub(super) fn push(&mut self, field: &FieldLine<'_>, hashes: Hashes) -> u64 {
        let absolute = self.table.push(Entry {
            name: own(field.name),
            value: own(&field.value),
            note: Note {
                hashes,
                references: 0,
                used: false,
            },
        });
        self.by_field.insert(hashes.field, absolute);
        self.by_name.insert(hashes.name, absolute);
        self.drain();
        absolute
    }

    /// Advances the end of the draining part to its required size.
    fn drain(&mut self) {
        let capacity = self.table.capacity();
        let wanted = (capacity / DRAINING_SHARE).max(MIN_DRAINING.min(capacity / 4));
        let free = capacity - self.table.size();
        while free + self.draining_size < wanted
            && self.draining_end + 1 < self.table.inserted()
            && let Some(entry) = self.table.get(self.draining_end)
        {
            self.draining_size += entry.size();
            self.draining_end += 1;
        }
    }
}

fn own(bytes: &[u8]) -> bytes::Bytes {
    bytes::Bytes::copy_from_slice(bytes)
}

fn discard(map: &mut FxHashMap<u64, u64>, hash: u64, absolute: u64) {
    if map.get(&hash) == Some(&absolute) {
        map.remove(&hash);
    }
}
