//! The bytes of one direction of a connection between two offsets: those sent and not acknowledged, or
//! those that arrived and were not read.

use std::collections::VecDeque;
use std::ops::Range;

/// Bytes by their offset in the stream.
#[derive(Clone, Debug, Default)]
pub struct ByteQueue {
    start: u64,
    bytes: VecDeque<u8>,
}

impl ByteQueue {
    /// An empty queue at the start of the stream.
    pub fn new() -> Self {
        Self::default()
    }

    /// Offset of the first byte that is kept.
    pub fn start(&self) -> u64 {
        self.start
    }

    /// End of the bytes that are kept.
    pub fn end(&self) -> u64 {
        self.start + self.bytes.len() as u64
    }

    /// Appends bytes.
    pub fn push(&mut self, bytes: &[u8]) {
        self.bytes.extend(bytes);
    }

    /// Stores bytes at an offset, over what is there; bytes before the start are ignored. A gap is filled
    /// with zeros until its bytes come.
    pub fn insert(&mut self, offset: u64, bytes: &[u8]) {
        let skipped = self.start.saturating_sub(offset);
        let Some(bytes) = bytes
            .get(skipped as usize..)
            .filter(|rest| !rest.is_empty())
        else {
            return;
        };
        let at = (offset.max(self.start) - self.start) as usize;
        if self.bytes.len() < at + bytes.len() {
            self.bytes.resize(at + bytes.len(), 0);
        }
        for (place, byte) in self.bytes.range_mut(at..).zip(bytes) {
            *place = *byte;
        }
    }

    /// Appends the bytes of `range` to `out`, as far as they are kept.
    pub fn copy(&self, range: Range<u64>, out: &mut Vec<u8>) {
        let end = range.end.min(self.end());
        let start = range.start.clamp(self.start, end.max(self.start));
        if start >= end {
            return;
        }
        let at = |offset: u64| (offset - self.start) as usize;
        let (front, back) = self.bytes.as_slices();
        let (from, to) = (at(start), at(end));
        if from < front.len() {
            out.extend_from_slice(&front[from..to.min(front.len())]);
        }
        if to > front.len() {
            let from = from.max(front.len()) - front.len();
            out.extend_from_slice(&back[from..to - front.len()]);
        }
    }

    /// Drops the bytes before `offset`.
    pub fn advance(&mut self, offset: u64) {
        let offset = offset.clamp(self.start, self.end());
        self.bytes.drain(..(offset - self.start) as usize);
        self.start = offset;
    }
}
