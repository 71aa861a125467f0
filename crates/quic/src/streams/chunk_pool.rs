//! Memory for written data that streams share: chunks, and lists of them.

use std::collections::VecDeque;

use super::send_buffer::Segment;
use super::spare_buffers::SpareBuffers;
use crate::idle_memory::IdleMemory;

/// Largest chunk that small writes are gathered in, bytes.
pub(super) const MAX_CHUNK: usize = 64 * 1024;

/// Smallest such chunk.
pub(super) const MIN_CHUNK: usize = 1024;

/// Largest chunk below full size that is kept for the next write.
const MAX_SPARE_CHUNK: usize = 4096;

/// Bytes of such chunks that are kept: those of the messages that one batch of acknowledgements frees.
const MAX_SPARE_BYTES: usize = 32 * 1024;

/// Lists of segments that are kept, and how many fit into one that isn't left to its stream.
const SPARE_LISTS: usize = 32;
const MAX_LIST: usize = 4;

/// Chunks taken after which the highest number in use at once counts anew: 256 MiB of data. A flow that
/// meets its peak again, be it only when a task was late, has done so by then.
const PERIOD: u32 = 4096;

/// Chunks that were emptied and wait for the next write of any stream. Of those of full size as
/// many are kept as were lately in use at once, so that a flow whose acknowledgements come in bursts
/// allocates nothing, and one that has become small holds little; of smaller ones those of a
/// few messages, for streams that send no more than one.
#[derive(Debug, Default)]
pub(super) struct ChunkPool {
    free: Vec<Vec<u8>>,
    small: SpareBuffers<MAX_SPARE_CHUNK, MAX_SPARE_BYTES>,
    /// Lists of segments of buffers that ran empty.
    lists: Vec<VecDeque<(u64, Segment)>>,
    in_use: u32,
    /// The most that were in use at once in this period, and in the one before.
    peak: u32,
    last_peak: u32,
    /// Chunks to be taken before the next period begins.
    left: u32,
}

impl ChunkPool {
    /// An empty chunk of `size` bytes.
    pub(super) fn take(&mut self, size: usize) -> Vec<u8> {
        if size <= MAX_SPARE_CHUNK {
            return self.take_small(size);
        }
        // Of those of full size one does as well, if that isn't a waste.
        if size < MAX_CHUNK && self.free.is_empty() {
            return Vec::with_capacity(size);
        }
        self.in_use += 1;
        self.peak = self.peak.max(self.in_use);
        if let Some(left) = self.left.checked_sub(1) {
            self.left = left;
        } else {
            self.left = PERIOD;
            self.last_peak = std::mem::replace(&mut self.peak, self.in_use);
        }
        self.free
            .pop()
            .unwrap_or_else(|| Vec::with_capacity(MAX_CHUNK))
    }

    /// A small chunk: of those that are large enough the one that was given last.
    fn take_small(&mut self, size: usize) -> Vec<u8> {
        if let Some(chunk) = self.small.take_at_least(size) {
            return chunk;
        }
        // One of those that are too small makes room for this one when it is returned.
        drop(self.small.take());
        Vec::with_capacity(size)
    }

    /// A chunk that is not needed any more.
    pub(super) fn give(&mut self, mut chunk: Vec<u8>) {
        chunk.clear();
        let size = chunk.capacity();
        if size < MAX_CHUNK {
            self.small.give(chunk);
            return;
        }
        self.in_use = self.in_use.saturating_sub(1);
        let lately = self.peak.max(self.last_peak);
        self.free
            .truncate(lately.saturating_sub(self.in_use + 1) as usize);
        self.free.push(chunk);
    }

    /// An empty list of segments.
    pub(super) fn take_list(&mut self) -> VecDeque<(u64, Segment)> {
        // Most streams never hold more than one.
        self.lists
            .pop()
            .unwrap_or_else(|| VecDeque::with_capacity(1))
    }

    /// Takes the memory of an empty list, if it isn't a long one, which its stream will need again.
    pub(super) fn give_list(&mut self, list: &mut VecDeque<(u64, Segment)>) {
        if self.lists.len() < SPARE_LISTS && (1..=MAX_LIST).contains(&list.capacity()) {
            self.lists.push(std::mem::take(list));
        }
    }
}

impl IdleMemory for ChunkPool {
    fn release_idle_memory(&mut self) {
        let Self {
            free,
            small,
            lists,
            in_use,
            peak,
            last_peak,
            left,
        } = self;
        *free = Vec::new();
        small.release_idle_memory();
        *lists = Vec::new();
        *peak = *in_use;
        *last_peak = 0;
        *left = 0;
    }
}
