//! ACK frames (RFC 9000, section 19.3): ranges are kept in encoded form and decoded lazily.

use std::ops::RangeInclusive;

use swiftwater_units::PathId;

use super::encode::varint_size;
use super::multipath::PathFrame;
use super::types;
use crate::coding::{Reader, Writer};
use crate::error::DecodeError;
use crate::multipath_version::MultipathVersion;
use crate::varint::VarInt;

const UNDERFLOW: DecodeError = DecodeError::Invalid("an ACK range below packet number 0");

/// An ACK or `PATH_ACK` frame whose ranges have been validated.
#[derive(Clone, Debug, PartialEq)]
pub struct Ack<'a> {
    /// The path of a `PATH_ACK`.
    pub path: Option<PathId>,
    /// Largest packet number acknowledged.
    pub largest: u64,
    /// `ack_delay` as coded; times `2^ack_delay_exponent` microseconds.
    pub delay: u64,
    /// First range and the additional ranges, encoded.
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

    /// Decodes the fields after the type (and the path) and walks every range once, so that
    /// [`Ack::ranges`] cannot fail later.
    pub(super) fn read(
        r: &mut Reader<'a>,
        path: Option<PathId>,
        with_ecn: bool,
    ) -> Result<Self, DecodeError> {
        let largest = r.varint()?;
        let delay = r.varint()?;
        let range_count = r.varint()?;
        let first_range = r.varint()?;
        let mut smallest = largest.checked_sub(first_range).ok_or(UNDERFLOW)?;
        // A range takes at least two bytes: an impossible count is rejected at once.
        if range_count > r.remaining() as u64 / 2 {
            return Err(DecodeError::UnexpectedEnd);
        }
        let start = r.rest();
        for _ in 0..range_count {
            let gap = r.varint()?;
            let length = r.varint()?;
            smallest = smallest
                .checked_sub(gap + 2)
                .and_then(|largest| largest.checked_sub(length))
                .ok_or(UNDERFLOW)?;
        }
        let additional = &start[..start.len() - r.remaining()];
        let ecn = if with_ecn {
            Some([r.varint()?, r.varint()?, r.varint()?])
        } else {
            None
        };
        Ok(Self {
            path,
            largest,
            delay,
            first_range,
            additional,
            range_count,
            ecn,
        })
    }

    pub(super) fn frame_type(&self, version: MultipathVersion) -> u64 {
        frame_type(version, self.path.is_some(), self.ecn.is_some())
    }

    pub(super) fn size(&self, version: MultipathVersion) -> usize {
        fixed_size(
            (version, self.path),
            self.largest,
            self.first_range,
            self.delay,
            self.ecn,
        ) + varint_size(self.range_count)
            + self.additional.len()
    }

    pub(super) fn encode(&self, version: MultipathVersion, w: &mut Writer<'_>) {
        w.varint(self.frame_type(version));
        if let Some(path) = self.path {
            w.varint(u64::from(path.get()));
        }
        w.varint(self.largest);
        w.varint(self.delay);
        w.varint(self.range_count);
        w.varint(self.first_range);
        w.bytes(self.additional);
        for count in self.ecn.into_iter().flatten() {
            w.varint(count);
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
            self.next = smallest
                .checked_sub(gap + 2)
                .map(|largest| (largest, length));
        }
        Some(smallest..=largest)
    }
}

const fn frame_type(version: MultipathVersion, path: bool, ecn: bool) -> u64 {
    match (path, ecn) {
        (false, false) => types::ACK,
        (false, true) => types::ACK_ECN,
        (true, false) => PathFrame::Ack.type_in(version),
        (true, true) => PathFrame::AckEcn.type_in(version),
    }
}

/// Bytes of everything except the count and the additional ranges.
fn fixed_size(
    (version, path): (MultipathVersion, Option<PathId>),
    largest: u64,
    first_range: u64,
    delay: u64,
    ecn: Option<[u64; 3]>,
) -> usize {
    // The types of ACK take one byte.
    let path = path.map(|path| {
        let frame_type = PathFrame::Ack.type_in(version);
        varint_size(frame_type) + varint_size(u64::from(path.get()))
    });
    path.unwrap_or(1)
        + varint_size(largest)
        + varint_size(delay)
        + varint_size(first_range)
        + ecn.into_iter().flatten().map(varint_size).sum::<usize>()
}

/// Writes an ACK (a `PATH_ACK` if `path` is set) with as many of `ranges` as `max_size` bytes and
/// the writer's space allow, and returns their number; the ranges at the end, which are the oldest,
/// are left out. `None`, with nothing written, if `ranges` is empty or the first does not fit.
///
/// `ranges` come largest first, with a gap of at least one packet number; they are iterated twice.
/// `version` decides on the type of a `PATH_ACK`. `delay` is in units of `2^ack_delay_exponent` microseconds. `delay` and the ECN counts (ECT(0),
/// ECT(1), CE) are capped at 2^62 - 1.
pub fn write_ack(
    w: &mut Writer<'_>,
    (version, path): (MultipathVersion, Option<PathId>),
    ranges: impl Iterator<Item = RangeInclusive<u64>> + Clone,
    delay: u64,
    ecn: Option<[u64; 3]>,
    max_size: usize,
) -> Option<u64> {
    let room = max_size.min(w.remaining());
    let delay = VarInt::saturating(delay).get();
    let ecn = ecn.map(|counts| counts.map(|count| VarInt::saturating(count).get()));
    let mut older = ranges;
    let (smallest, largest) = older.next()?.into_inner();
    let first_range = largest - smallest;

    let fixed = fixed_size((version, path), largest, first_range, delay, ecn);
    let additional = count_fitting(older.clone(), smallest, room.checked_sub(fixed)?)?;

    w.varint(frame_type(version, path.is_some(), ecn.is_some()));
    if let Some(path) = path {
        w.varint(u64::from(path.get()));
    }
    w.varint(largest);
    w.varint(delay);
    w.varint(additional);
    w.varint(first_range);
    for (gap, length) in gaps(older, smallest).take(additional as usize) {
        w.varint(gap);
        w.varint(length);
    }
    for count in ecn.into_iter().flatten() {
        w.varint(count);
    }
    Some(additional + 1)
}

/// How many ranges after the first fit in `room` together with their count; `None` if a count of
/// zero does not fit.
fn count_fitting(
    older: impl Iterator<Item = RangeInclusive<u64>>,
    smallest: u64,
    room: usize,
) -> Option<u64> {
    let mut count = 0;
    let mut size = 0;
    if room < varint_size(count) {
        return None;
    }
    for (gap, length) in gaps(older, smallest) {
        size += varint_size(gap) + varint_size(length);
        if size + varint_size(count + 1) > room {
            break;
        }
        count += 1;
    }
    Some(count)
}

/// The coded (gap, length) pairs of the ranges that follow one that starts at `smallest`. Ends at
/// a range that is out of order, which would be a bug of the caller.
fn gaps(
    older: impl Iterator<Item = RangeInclusive<u64>>,
    mut smallest: u64,
) -> impl Iterator<Item = (u64, u64)> {
    older.map_while(move |range| {
        let gap = smallest
            .checked_sub(*range.end())
            .and_then(|gap| gap.checked_sub(2));
        debug_assert!(gap.is_some(), "ACK range {range:?} is out of order");
        smallest = *range.start();
        gap.map(|gap| (gap, range.end() - range.start()))
    })
}
