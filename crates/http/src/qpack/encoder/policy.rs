//! Heuristics of the encoder: which fields are inserted into the dynamic table, and when a reference
//! may block a stream.
//!
//! The rule, measured with `examples/qpack_ratio.rs`:
//!
//! - A field that occurred before, among the last few hundred, is inserted.
//! - A new field is inserted at once, because most fields of a connection recur, unless
//!   - its name is one whose values change from message to message ([`varies`]), or
//!   - the newest entry of that name was never used again, so its values are taken to vary. That also
//!     keeps an attacker's guesses at a value out of the table (RFC 9204, section 7.1.2).
//! - No entry takes more than half of the table.
//!
//! Sensitive fields are excluded before.

use crate::qpack::field::FieldLine;

/// Capacity of the history of fields, by a part of their hash. A power of two.
const REMEMBERED: usize = 256;

/// Bytes that a reference must save before it may block a stream.
const MIN_SAVING: usize = 12;

/// Names in the static table whose values mostly differ between messages. Other names of this kind are
/// detected by their unused entries, of which the first is useful for its name.
fn varies(name: &[u8]) -> bool {
    matches!(
        name,
        b":path"
            | b"age"
            | b"authorization"
            | b"content-disposition"
            | b"content-length"
            | b"date"
            | b"etag"
            | b"forwarded"
            | b"if-modified-since"
            | b"if-none-match"
            | b"if-range"
            | b"last-modified"
            | b"link"
            | b"location"
            | b"range"
            | b"set-cookie"
            | b"x-forwarded-for"
    )
}

/// Whether so many saved bytes justify the risk of blocking a stream that is not at risk yet.
pub(super) const fn worth_a_risk(saved: usize) -> bool {
    saved >= MIN_SAVING
}

/// History of recent fields.
#[derive(Debug, Default)]
pub(super) struct Policy {
    /// Hashes, each at the index given by its low bits; empty until needed.
    recent: Vec<u32>,
}

impl Policy {
    /// Records a field by its hash; true if it was in the history before.
    pub(super) fn note(&mut self, hash: u64) -> bool {
        if self.recent.is_empty() {
            self.recent.resize(REMEMBERED, 0);
        }
        let place = hash as usize % REMEMBERED;
        let mark = (hash >> 32) as u32;
        std::mem::replace(&mut self.recent[place], mark) == mark
    }
}

/// Whether a field without an entry should be inserted. `seen`: it is in the history. `unused`: the newest
/// entry of its name was never used again.
pub(super) fn worth_inserting(
    field: &FieldLine<'_>,
    capacity: u64,
    seen: bool,
    unused: bool,
) -> bool {
    field.size() <= capacity / 2 && (seen || !(unused || varies(field.name)))
}
