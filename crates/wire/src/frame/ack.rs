//! ACK frames (RFC 9000, section 19.3): ranges are kept as wire bytes and walked lazily.

use std::ops::RangeInclusive;

use swiftwater_units::PathId;

use crate::coding::{Reader, Writer};

/// An ACK or `PATH_ACK` frame whose ranges have been validated.
#[derive(Clone, Debug, PartialEq)]
pub struct Ack<'a> {
    /// The path of a `PATH_ACK`.
    pub path: Option<PathId>,
    /// Largest packet number acknowledged.
    pub largest: u64,
    /// `ack_delay` as coded; times `2^ack_delay_exponent` microseconds.
    pub delay: u64,
    /// First range and the additional ranges, wire bytes.
    pub(crate) first_range: u64,
    pub(crate) additional: &'a [u8],
    /// Number of additional ranges.
    pub(crate) range_count: u64,
    /// Cumulative ECN counts: ECT(0), ECT(1), CE.
    pub ecn: Option<[u64; 3]>,
}

impl<'a> Ack<'a> {
    /// The acknowledged ranges, largest first.
    pub fn ranges(&self) -> AckRanges<'a> {
        AckRanges {
            next: Some((self.largest, self.first_range)),
            left: self.range_count,
            rest: Reader::new(self.additional),
        }
    }
}

/// Iterator over the acknowledged ranges of an [`Ack`], largest first.
#[derive(Clone, Debug)]
pub struct AckRanges<'a> {
    next: Option<(u64, u64)>,
    left: u64,
    rest: Reader<'a>,
}

impl Iterator for AckRanges<'_> {
    type Item = RangeInclusive<u64>;

    fn next(&mut self) -> Option<Self::Item> {
        let (largest, length) = self.next.take()?;
        let smallest = largest.checked_sub(length)?;
        if self.left > 0 {
            self.left -= 1;
            let gap = self.rest.varint().ok()?;
            let length = self.rest.varint().ok()?;
            self.next = smallest.checked_sub(gap)?.checked_sub(2).map(|largest| (largest, length));
        }
        Some(smallest..=largest)
    }
}

/// Writes an ACK frame range by range, as many as fit.
#[derive(Debug)]
pub struct AckRangesWriter<'w, 'b> {
    #[allow(dead_code, reason = "filled in by the codec")]
    writer: &'w mut Writer<'b>,
}
