//! Puts the bytes of a stream back in order.
//!
//! Bytes live in a ring that starts at the reader's offset, each at its final place as soon as it
//! arrives, so overlaps and duplicates cost nothing but the check. The ring grows by doubling up to
//! the room that flow control grants and is never larger than that. Flow control and final sizes
//! are checked by the caller.

use std::ops::Range;

use super::spare_buffers::SpareBuffers;
use crate::idle_memory::IdleMemory;
use crate::ranges::RangeSet;

/// Smallest ring that is allocated, bytes, where the window permits it.
const MIN_RING: usize = 512;

/// A ring is trimmed when it is larger than what it holds by more than this factor.
const TRIM_RATIO: usize = 4;

/// Largest ring that is kept for another stream when it was read empty.
const MAX_SPARE: usize = 4096;

/// Bytes of such rings that are kept: those of the streams that one batch of datagrams brings, each with a
/// message or so.
const MAX_SPARES: usize = 64 * 1024;

/// Gaps that are always tolerated in a stream.
const MIN_GAP_LIMIT: u64 = 1024;

/// Bytes of window for each further gap: with pieces of half a KiB or more the limit can't be
/// reached, and the ranges take at most 1/64 of the window's memory.
const WINDOW_PER_GAP: u64 = 1024;

/// The received pieces of a stream are too scattered to keep track of.
///
/// The bytes can't be dropped quietly, because the packet that brought them is acknowledged and
/// the peer would never send them again; so the connection has to end.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct TooManyGaps;

/// Small rings in which nothing is left, for the streams that get data next: an empty one holds none.
pub(super) type SpareRings = SpareBuffers<MAX_SPARE, MAX_SPARES>;

/// The received and unread bytes of one stream.
#[derive(Debug, Default)]
pub(super) struct Assembler {
    ring: Vec<u8>,
    /// Where in the ring the byte at `read` is.
    head: usize,
    /// Bytes that the reader took.
    read: u64,
    /// Where what arrived without a gap ends.
    arrived: u64,
    /// What is in the ring behind a gap, as stream offsets beyond `arrived`.
    beyond: RangeSet,
}

impl Assembler {
    /// Takes in `data`, which starts at `offset`. The caller has checked that it ends at or before
    /// `limit`, the offset that flow control permits.
    pub(super) fn insert(
        &mut self,
        offset: u64,
        data: &[u8],
        limit: u64,
    ) -> Result<(), TooManyGaps> {
        let end = offset + data.len() as u64;
        let start = offset.max(self.read);
        if start >= end {
            return Ok(());
        }
        let data = &data[(start - offset) as usize..];
        let room = limit.max(end) - self.read;
        self.grow((end - self.read) as usize, room as usize);
        let distance = |at: u64| (at - self.read) as usize;
        if self.beyond.is_empty() {
            // Nothing that is new can overlap.
            let start = start.max(self.arrived.min(end));
            let new = &data[data.len() - (end - start) as usize..];
            copy_in(&mut self.ring, self.head, distance(start), new);
        } else {
            for gap in self.beyond.gaps_in(start.max(self.arrived)..end) {
                let piece = &data[(gap.start - start) as usize..(gap.end - start) as usize];
                copy_in(&mut self.ring, self.head, distance(gap.start), piece);
            }
        }
        self.note(start..end);
        let gap_limit = MIN_GAP_LIMIT.max(room / WINDOW_PER_GAP);
        let pieces = self.beyond.len() as u64 + u64::from(self.readable() > 0);
        if pieces > gap_limit {
            Err(TooManyGaps)
        } else {
            Ok(())
        }
    }

    /// The bytes of `range`, which doesn't end before `read`, are in the ring.
    fn note(&mut self, range: Range<u64>) {
        if range.start > self.arrived {
            self.beyond.insert(range);
            return;
        }
        self.arrived = self.arrived.max(range.end);
        while let Some(next) = self
            .beyond
            .first()
            .filter(|next| next.start <= self.arrived)
        {
            self.arrived = self.arrived.max(next.end);
            self.beyond.pop_first();
        }
    }

    /// Bytes that the reader took.
    pub(super) fn offset(&self) -> u64 {
        self.read
    }

    /// Bytes that can be read now.
    pub(super) fn readable(&self) -> u64 {
        self.arrived - self.read
    }

    /// True if nothing is buffered, not even behind a gap.
    pub(super) fn is_empty(&self) -> bool {
        self.arrived == self.read && self.beyond.is_empty()
    }

    /// Where the last of the bytes that are buffered ends.
    fn end(&self) -> u64 {
        self.beyond.last().map_or(self.arrived, |last| last.end)
    }

    /// Bytes allocated.
    pub(super) fn capacity(&self) -> usize {
        self.ring.len()
    }

    /// The next bytes, as many as lie in one piece; more may follow after [`Assembler::consume`].
    pub(super) fn peek(&self) -> &[u8] {
        let len = self.readable() as usize;
        let end = (self.head + len).min(self.ring.len());
        &self.ring[self.head..end]
    }

    /// The reader is done with the next `n` bytes; at most [`Assembler::readable`] count.
    pub(super) fn consume(&mut self, n: u64) {
        let n = n.min(self.readable());
        self.read += n;
        if self.is_empty() {
            // Start over at the front, so that the next bytes lie in one piece.
            self.head = 0;
        } else {
            self.head = wrap(self.head, n as usize, self.ring.len());
        }
    }

    /// Copies as much as fits into `buf` and consumes it; returns the bytes copied.
    pub(super) fn read(&mut self, buf: &mut [u8]) -> usize {
        let mut copied = 0;
        while copied < buf.len() {
            let piece = self.peek();
            let n = piece.len().min(buf.len() - copied);
            if n == 0 {
                break;
            }
            buf[copied..copied + n].copy_from_slice(&piece[..n]);
            self.consume(n as u64);
            copied += n;
        }
        copied
    }

    /// Drops what is buffered from stream offset `end` on, and memory that isn't needed then.
    pub(super) fn truncate(&mut self, end: u64) {
        self.arrived = self.arrived.min(end.max(self.read));
        self.beyond.remove(end..u64::MAX);
        self.trim();
    }

    /// Gives back the memory; what was buffered is gone.
    pub(super) fn release(&mut self) {
        self.ring = Vec::new();
        self.arrived = self.read;
        self.beyond = RangeSet::new();
        self.head = 0;
    }

    /// Gives back memory if most of it isn't needed for what is buffered.
    pub(super) fn trim(&mut self) {
        if self.is_empty() {
            self.release();
            return;
        }
        let used = (self.end() - self.read) as usize;
        if self.ring.len() / TRIM_RATIO > used.max(MIN_RING) {
            self.move_to(used);
        }
    }

    /// Takes a ring of `spares` if it has none, and if `limit`, the offset that flow control permits, lets it
    /// be so large.
    pub(super) fn borrow(&mut self, spares: &mut SpareRings, limit: u64) {
        if !self.ring.is_empty() {
            return;
        }
        let room = limit.saturating_sub(self.read);
        if let Some(ring) = spares.take().filter(|ring| ring.len() as u64 <= room) {
            self.ring = ring;
            self.head = 0;
        }
    }

    /// Gives a small ring away in which nothing is left.
    pub(super) fn give_back(&mut self, spares: &mut SpareRings) {
        if self.is_empty() && self.ring.len() <= MAX_SPARE {
            spares.give(std::mem::take(&mut self.ring));
            self.head = 0;
        }
    }

    /// Makes the ring hold at least `needed` bytes, and not more than `room` of them.
    fn grow(&mut self, needed: usize, room: usize) {
        if needed <= self.ring.len() {
            return;
        }
        let size = needed
            .max(self.ring.len().saturating_mul(2))
            .max(MIN_RING)
            .min(room);
        self.move_to(size);
    }

    /// Moves what is buffered to a ring of `size` bytes, which is enough for it.
    fn move_to(&mut self, size: usize) {
        let mut ring = vec![0; size];
        if !self.is_empty() {
            let (wrapped, first) = self.ring.split_at(self.head);
            let split = first.len().min(size);
            let rest = wrapped.len().min(size - split);
            ring[..split].copy_from_slice(&first[..split]);
            ring[split..split + rest].copy_from_slice(&wrapped[..rest]);
        }
        self.ring = ring;
        self.head = 0;
    }
}

impl IdleMemory for Assembler {
    fn release_idle_memory(&mut self) {
        self.trim();
        let Self {
            ring: _,
            head: _,
            read: _,
            arrived: _,
            beyond,
        } = self;
        beyond.shrink();
    }
}

/// Copies `data` to `distance` bytes behind `head`. The ring is large enough for both.
fn copy_in(ring: &mut [u8], head: usize, distance: usize, data: &[u8]) {
    let at = wrap(head, distance, ring.len());
    let first = data.len().min(ring.len() - at);
    ring[at..at + first].copy_from_slice(&data[..first]);
    if first < data.len() {
        ring[..data.len() - first].copy_from_slice(&data[first..]);
    }
}

/// The position `distance`, at most `size`, behind `at` in a ring of `size` bytes.
fn wrap(at: usize, distance: usize, size: usize) -> usize {
    let sum = at + distance;
    if sum >= size { sum - size } else { sum }
}
