//! Evaluation of the `Range` field (RFC 9110, section 14): pure functions of the field and the
//! length.
//!
//! `http-range-header` is not used: it calls a suffix that is longer than the file an error, where
//! section 14.1.2 means the whole file, and refuses overlapping ranges that section 15.3.7.2 allows to
//! be joined.

use std::ops::Range;

/// A field with more ranges than this is ignored (RFC 9110, section 14.2, on requests that ask for
/// many small ranges).
pub const MAX_RANGES: usize = 32;

/// Ranges closer than this are joined: the headers of another part would be about as long.
const JOIN_GAP: u64 = 80;

/// Result of evaluating a `Range` field for content of a given length.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Selection {
    /// The field does not apply or is malformed: the whole content is sent, with status 200.
    Whole,
    /// No range overlaps the content: status 416.
    Unsatisfiable,
    /// These ranges, none of them empty, none overlapping another: status 206. Never empty.
    Parts(Vec<Range<u64>>),
}

/// Reads the value of a `Range` field for content of `length` bytes.
///
/// Overlapping ranges, and ranges that nearly touch, are joined, which orders them by position;
/// otherwise they stay in the order of the field.
pub fn select(field: &str, length: u64) -> Selection {
    let Some((unit, set)) = field.split_once('=') else {
        return Selection::Whole;
    };
    if !unit.trim().eq_ignore_ascii_case("bytes") {
        return Selection::Whole;
    }
    let mut parts = Vec::new();
    let mut count = 0;
    for spec in set.split(',').map(trim).filter(|spec| !spec.is_empty()) {
        count += 1;
        let Some(range) = parse_spec(spec, length) else {
            return Selection::Whole;
        };
        if count > MAX_RANGES {
            return Selection::Whole;
        }
        parts.extend(range.filter(|range| !range.is_empty()));
    }
    if count == 0 {
        return Selection::Whole;
    }
    if parts.is_empty() {
        // A suffix of an empty file is satisfiable, but no Content-Range can describe it.
        let suffix = length == 0 && set.split(',').any(|spec| is_satisfiable_suffix(trim(spec)));
        return if suffix {
            Selection::Whole
        } else {
            Selection::Unsatisfiable
        };
    }
    Selection::Parts(join(parts))
}

/// One range of the set: `None` if malformed, `Some(None)` if it is beyond the end.
#[allow(
    clippy::option_option,
    reason = "malformed and absent are different answers"
)]
fn parse_spec(spec: &str, length: u64) -> Option<Option<Range<u64>>> {
    let (first, last) = spec.split_once('-')?;
    let (first, last) = (trim(first), trim(last));
    if first.is_empty() {
        let suffix = parse_position(last)?;
        return Some(Some(length.saturating_sub(suffix)..length));
    }
    let first = parse_position(first)?;
    let end = if last.is_empty() {
        length
    } else {
        let last = parse_position(last)?;
        if last < first {
            return None;
        }
        last.saturating_add(1).min(length)
    };
    Some((first < length).then_some(first..end))
}

/// A position or length. Numbers that do not fit exceed any file.
fn parse_position(digits: &str) -> Option<u64> {
    if digits.is_empty() || !digits.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    Some(digits.parse().unwrap_or(u64::MAX))
}

fn is_satisfiable_suffix(spec: &str) -> bool {
    spec.strip_prefix('-')
        .and_then(|digits| parse_position(trim(digits)))
        .is_some_and(|suffix| suffix > 0)
}

fn trim(text: &str) -> &str {
    text.trim_matches([' ', '\t'])
}

/// Joins ranges if any two overlap or nearly touch; leaves them unchanged otherwise.
fn join(parts: Vec<Range<u64>>) -> Vec<Range<u64>> {
    let mut sorted = parts.clone();
    sorted.sort_by_key(|range| range.start);
    let mut joined: Vec<Range<u64>> = Vec::with_capacity(sorted.len());
    for range in sorted {
        match joined.last_mut() {
            Some(last) if range.start < last.end.saturating_add(JOIN_GAP) => {
                last.end = last.end.max(range.end);
            }
            _ => joined.push(range),
        }
    }
    if joined.len() == parts.len() {
        parts
    } else {
        joined
    }
}
