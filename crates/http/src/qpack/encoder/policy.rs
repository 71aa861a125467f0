//! Which fields deserve an entry in the dynamic table, and what deserves the risk of a blocked stream.
//!
//! The rule, measured with `examples/qpack_ratio.rs`:
//!
//! - A field that came before, among the last hundreds, is inserted.
//! - A new field is inserted at once, for most fields of a connection come again, unless
//!   - its name is one whose values change from message to message ([`varies`]), or
//!   - the newest entry of that name was never used again: the name has proven to be such a one. That also
//!     keeps guesses at a value out of the table (RFC 9204, section 7.1.2).
//! - Nothing takes more than half of the table.
//!
//! Sensitive fields never get here.

use crate::qpack::field::Field;

/// Fields that are remembered, by a part of their hash. A power of two.
const REMEMBERED: usize = 256;

/// Bytes that a reference has to save before a stream risks waiting for the encoder stream.
const MIN_SAVING: usize = 12;

/// Names in the static table whose values mostly differ between messages. Other names of this kind become
/// known by their entries, of which the first is useful for its name.
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

/// Whether so many saved bytes are worth the risk that a stream, otherwise sure, is blocked.
pub(super) const fn worth_a_risk(saved: usize) -> bool {
    saved >= MIN_SAVING
}

/// Remembers recent fields.
#[derive(Debug, Default)]
pub(super) struct Policy {
    /// Hashes, each at the place that its low bits name; empty until needed.
    recent: Vec<u32>,
}

impl Policy {
    /// Notes a field by its hash, and says whether it was noted before.
    pub(super) fn note(&mut self, hash: u64) -> bool {
        if self.recent.is_empty() {
            self.recent.resize(REMEMBERED, 0);
        }
        let place = hash as usize % REMEMBERED;
        let mark = (hash >> 32) as u32;
        std::mem::replace(&mut self.recent[place], mark) == mark
    }
}

/// Whether a field that has no entry should get one. `seen`: it was noted before. `unused`: the newest entry
/// of its name was never used again.
pub(super) fn worth_inserting(field: &Field, capacity: u64, seen: bool, unused: bool) -> bool {
    field.size() <= capacity / 2 && (seen || !(unused || varies(&field.name)))
}
