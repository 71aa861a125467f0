//! The bytes of one stream that were written and are not yet all acknowledged.
//!
//! Keeps apart what was never sent, what was lost and what was acknowledged, so that a copy of any
//! range can be sent at any time: the first acknowledgement of any copy counts, and the loss of a
//! copy queues only what was not acknowledged. Flow control is up to the caller.

use std::collections::VecDeque;
use std::ops::Range;

use bytes::Bytes;

use super::chunk_pool::{ChunkPool, MAX_CHUNK, MIN_CHUNK};
use crate::idle_memory::IdleMemory;
use crate::ranges::RangeSet;

/// `Bytes` shorter than this are copied: the bookkeeping of a segment would cost more.
const MIN_SHARED: usize = 1024;

/// Bytes that were written at once, or one after the other.
#[derive(Debug)]
pub(super) enum Segment {
    /// Copied from the application; the last one of a stream is filled up by later writes.
    Owned(Vec<u8>),
    /// Lent by the application.
    Shared(Bytes),
}

impl Segment {
    fn as_slice(&self) -> &[u8] {
        match self {
            Self::Owned(chunk) => chunk,
            Self::Shared(bytes) => bytes,
        }
    }
}

/// A frame to write: `len` bytes from `offset`, and whether the stream ends with them.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct Piece {
    pub(super) offset: u64,
    pub(super) len: usize,
    pub(super) fin: bool,
}

/// Where the FIN bit is.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum FinState {
    /// The application goes on writing.
    Open,
    /// To be sent, for the first time or again.
    Pending,
    InFlight,
    Acked,
}

/// The bytes written to one stream that must be kept.
#[derive(Debug)]
pub(super) struct SendBuffer {
    /// Stream offset and content, in order, without gaps.
    segments: VecDeque<(u64, Segment)>,
    /// Probably the index of the segment that holds the byte at `sent`: where the next copy begins.
    sent_at: usize,
    /// Everything before it is acknowledged and freed.
    base: u64,
    /// Everything from here on was never sent.
    sent: u64,
    /// Everything written ends here.
    end: u64,
    /// Acknowledged beyond `base`.
    acked: RangeSet,
    /// To be sent again; disjoint from `acked`, below `sent`.
    lost: RangeSet,
    lost_len: u64,
    fin: FinState,
    /// Bytes from here on need not arrive: the stream was reset but for those before.
    keep: u64,
}

impl SendBuffer {
    pub(super) fn new() -> Self {
        Self {
            segments: VecDeque::new(),
            sent_at: 0,
            base: 0,
            sent: 0,
            end: 0,
            acked: RangeSet::new(),
            lost: RangeSet::new(),
            lost_len: 0,
            fin: FinState::Open,
            keep: u64::MAX,
        }
    }

    /// Bytes written in all.
    pub(super) fn end(&self) -> u64 {
        self.end
    }

    /// Bytes sent at least once.
    pub(super) fn sent(&self) -> u64 {
        self.sent
    }

    /// Bytes from the start that were acknowledged without a gap.
    pub(super) fn delivered(&self) -> u64 {
        self.base
    }

    /// Bytes kept, because they or bytes before them are not acknowledged.
    pub(super) fn held(&self) -> u64 {
        self.kept().saturating_sub(self.base)
    }

    /// Bytes from the start that must arrive.
    pub(super) fn kept(&self) -> u64 {
        self.keep.min(self.end)
    }

    /// Bytes never sent.
    pub(super) fn unsent(&self) -> u64 {
        self.end - self.sent
    }

    /// Bytes to be sent again.
    pub(super) fn lost(&self) -> u64 {
        self.lost_len
    }

    /// True if bytes of `range` wait to be sent again.
    pub(super) fn has_lost(&self, range: Range<u64>) -> bool {
        self.lost_len > 0 && self.lost.overlap(range) > 0
    }

    /// True if [`SendBuffer::finish`] was called.
    pub(super) fn is_finished(&self) -> bool {
        self.fin != FinState::Open
    }

    /// True if everything including the FIN was acknowledged.
    pub(super) fn is_complete(&self) -> bool {
        self.fin == FinState::Acked && self.base == self.end
    }

    /// True if everything that must arrive was acknowledged, the end apart.
    pub(super) fn is_delivered(&self) -> bool {
        self.base >= self.kept()
    }

    /// True if a frame waits that needs no credit: lost bytes or a bare FIN.
    pub(super) fn has_retransmission(&self) -> bool {
        self.lost_len > 0 || (self.fin == FinState::Pending && self.sent == self.end)
    }

    /// Appends a copy of `data`.
    pub(super) fn write(&mut self, data: &[u8], pool: &mut ChunkPool) {
        self.write_piece(data, 0, pool);
    }

    /// Appends a copy of `data`, which `following` bytes follow at once.
    pub(super) fn write_piece(&mut self, mut data: &[u8], following: usize, pool: &mut ChunkPool) {
        while !data.is_empty() {
            let chunk = match self.segments.back_mut() {
                Some((_, Segment::Owned(chunk))) if chunk.len() < chunk.capacity() => chunk,
                _ => {
                    // Grow with what the stream holds, so that a short stream stays small.
                    let wanted = (data.len() + following).max(self.held() as usize);
                    let size = wanted.clamp(MIN_CHUNK, MAX_CHUNK).next_power_of_two();
                    let chunk = pool.take(size);
                    self.append(self.end, Segment::Owned(chunk), pool);
                    continue;
                }
            };
            let n = data.len().min(chunk.capacity() - chunk.len());
            chunk.extend_from_slice(&data[..n]);
            self.end += n as u64;
            data = &data[n..];
        }
    }

    /// Appends `data`, without a copy if it is long enough for that to pay.
    pub(super) fn push(&mut self, data: Bytes, pool: &mut ChunkPool) {
        if data.len() < MIN_SHARED {
            self.write(&data, pool);
            return;
        }
        let start = self.end;
        self.end += data.len() as u64;
        self.append(start, Segment::Shared(data), pool);
    }

    fn append(&mut self, start: u64, segment: Segment, pool: &mut ChunkPool) {
        if self.segments.capacity() == 0 {
            self.segments = pool.take_list();
        }
        self.segments.push_back((start, segment));
    }

    /// Nothing more will be written.
    pub(super) fn finish(&mut self) {
        if self.fin == FinState::Open {
            self.fin = FinState::Pending;
        }
    }

    /// The next frame that needs no credit, with at most `max` bytes of data.
    pub(super) fn next_retransmission(&self, max: usize) -> Option<Piece> {
        match self.lost.first() {
            Some(first) => Some(self.piece(first, max)),
            None => self
                .has_retransmission()
                .then(|| self.piece(self.end..self.end, max)),
        }
    }

    /// The next frame of new data, with at most `max` bytes of data.
    pub(super) fn next_new(&self, max: usize) -> Option<Piece> {
        (self.unsent() > 0).then(|| self.piece(self.sent..self.end, max))
    }

    /// The first part of `range` that can be sent as a copy, with at most `max` bytes of data:
    /// what was sent and isn't acknowledged. An empty range at the final size stands for the FIN.
    pub(super) fn next_copy(&self, range: Range<u64>, max: usize) -> Option<Piece> {
        let unacked = self.acked.gaps_in(self.needed(range.clone())).next();
        if let Some(unacked) = unacked {
            return Some(self.piece(unacked, max));
        }
        let at_end = range.contains(&self.end) || range.end == self.end;
        let bare_fin = self.fin == FinState::InFlight && at_end && self.sent == self.end;
        bare_fin.then(|| self.piece(self.end..self.end, max))
    }

    fn piece(&self, range: Range<u64>, max: usize) -> Piece {
        let len = usize::try_from(range.end - range.start).map_or(max, |len| len.min(max));
        let end = range.start + len as u64;
        Piece {
            offset: range.start,
            len,
            fin: self.is_finished() && end == self.end,
        }
    }

    /// `piece` is being sent.
    pub(super) fn on_sent(&mut self, piece: Piece) {
        let end = piece.offset + piece.len as u64;
        self.discard_lost(piece.offset..end);
        self.sent = self.sent.max(end);
        let starts_by_now = |(start, _): &(u64, Segment)| *start <= self.sent;
        while self
            .segments
            .get(self.sent_at + 1)
            .is_some_and(starts_by_now)
        {
            self.sent_at += 1;
        }
        if piece.fin && self.fin == FinState::Pending {
            self.fin = FinState::InFlight;
        }
    }

    /// Index of the segment that holds the byte at `offset`.
    fn segment_of(&self, offset: u64) -> usize {
        let starts_by_then = |at| {
            let segment: Option<&(u64, Segment)> = self.segments.get(at);
            segment.is_some_and(|(start, _)| *start <= offset)
        };
        if starts_by_then(self.sent_at) && !starts_by_then(self.sent_at + 1) {
            return self.sent_at;
        }
        self.segments
            .partition_point(|(start, _)| *start <= offset)
            .saturating_sub(1)
    }

    /// Copies `out.len()` bytes from stream offset `offset` on, which must be held, to `out`.
    pub(super) fn copy(&self, offset: u64, mut out: &mut [u8]) {
        let mut at = self.segment_of(offset);
        let mut offset = offset;
        while !out.is_empty() {
            let (start, segment) = &self.segments[at];
            let bytes = &segment.as_slice()[(offset - start) as usize..];
            let n = bytes.len().min(out.len());
            let (now, later) = out.split_at_mut(n);
            now.copy_from_slice(&bytes[..n]);
            out = later;
            offset += n as u64;
            at += 1;
        }
    }

    /// A copy of `range`, with the FIN if `fin`, was acknowledged.
    pub(super) fn on_acked(&mut self, range: Range<u64>, fin: bool, pool: &mut ChunkPool) {
        if fin && self.is_finished() {
            self.fin = FinState::Acked;
        }
        let range = self.needed(range);
        if range.is_empty() {
            return;
        }
        self.discard_lost(range.clone());
        if range.start > self.base {
            self.acked.insert(range);
            return;
        }
        self.base = range.end;
        while let Some(first) = self.acked.first().filter(|first| first.start <= self.base) {
            self.base = self.base.max(first.end);
            self.acked.pop_first();
        }
        self.free(pool);
    }

    /// The parts of `range` that were sent and are not acknowledged.
    pub(super) fn unacked(&self, range: Range<u64>) -> impl Iterator<Item = Range<u64>> + '_ {
        self.acked.gaps_in(self.needed(range))
    }

    /// The part of `range` that was sent and matters still.
    fn needed(&self, range: Range<u64>) -> Range<u64> {
        range.start.max(self.base)..range.end.min(self.sent).min(self.keep)
    }

    /// A copy of `range`, with the FIN if `fin`, was lost.
    pub(super) fn on_lost(&mut self, range: Range<u64>, fin: bool) {
        if fin && self.fin == FinState::InFlight {
            self.fin = FinState::Pending;
        }
        let range = self.needed(range);
        for gap in self.acked.gaps_in(range) {
            self.lost_len += gap.end - gap.start - self.lost.overlap(gap.clone());
            self.lost.insert(gap);
        }
    }

    /// Nothing that is held was ever sent.
    pub(super) fn discard_sent(&mut self) {
        self.sent = self.base;
        self.acked.clear();
        self.lost.clear();
        self.lost_len = 0;
        if self.fin == FinState::InFlight {
            self.fin = FinState::Pending;
        }
    }

    fn discard_lost(&mut self, range: Range<u64>) {
        if self.lost_len > 0 {
            self.lost_len -= self.lost.overlap(range.clone());
            self.lost.remove(range);
        }
    }

    /// Drops the segments that end at or before `base`.
    fn free(&mut self, pool: &mut ChunkPool) {
        loop {
            let Some((start, segment)) = self.segments.front_mut() else {
                pool.give_list(&mut self.segments);
                return;
            };
            if *start + segment.as_slice().len() as u64 > self.base {
                return;
            }
            if let Segment::Owned(chunk) = segment {
                pool.give(std::mem::take(chunk));
            }
            self.segments.pop_front();
            self.sent_at = self.sent_at.saturating_sub(1);
        }
    }

    /// Only the first `keep` bytes must still arrive, no more than before. What was not sent beyond
    /// them never will be, and [`SendBuffer::end`] is the final size from now on, which the frame of the
    /// reset carries instead of a FIN.
    pub(super) fn keep_only(&mut self, keep: u64, pool: &mut ChunkPool) {
        self.keep = self.keep.min(keep).min(self.end);
        self.end = self.sent.max(self.keep);
        self.fin = FinState::Open;
        self.discard_lost(self.keep..u64::MAX);
        self.acked.remove(self.keep..u64::MAX);
        while let Some((start, segment)) = self.segments.back_mut() {
            let len = self.keep.saturating_sub(*start) as usize;
            if len > 0 {
                match segment {
                    Segment::Owned(chunk) => chunk.truncate(len),
                    Segment::Shared(bytes) => bytes.truncate(len),
                }
                break;
            }
            if let Some((_, Segment::Owned(chunk))) = self.segments.pop_back() {
                pool.give(chunk);
            }
        }
    }

    /// Drops everything; the memory goes back to `pool`.
    pub(super) fn discard(&mut self, pool: &mut ChunkPool) {
        for (_, segment) in self.segments.drain(..) {
            if let Segment::Owned(chunk) = segment {
                pool.give(chunk);
            }
        }
        *self = Self {
            end: self.sent,
            base: self.sent,
            sent: self.sent,
            ..Self::new()
        };
    }
}

impl IdleMemory for SendBuffer {
    fn release_idle_memory(&mut self) {
        let Self {
            segments,
            sent_at: _,
            base: _,
            sent: _,
            end: _,
            acked,
            lost,
            lost_len: _,
            fin: _,
            keep: _,
        } = self;
        segments.shrink_to_fit();
        acked.shrink();
        lost.shrink();
    }
}
