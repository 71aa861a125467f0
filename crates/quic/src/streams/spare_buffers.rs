//! Buffers that are not in use and wait for the next stream that needs one, up to a number of bytes.

use crate::idle_memory::IdleMemory;

/// Spare buffers of at most `MAX_BUFFER` bytes each and `MAX_BYTES` together, by capacity.
#[derive(Debug, Default)]
pub(super) struct SpareBuffers<const MAX_BUFFER: usize, const MAX_BYTES: usize> {
    buffers: Vec<Vec<u8>>,
    bytes: usize,
}

impl<const MAX_BUFFER: usize, const MAX_BYTES: usize> SpareBuffers<MAX_BUFFER, MAX_BYTES> {
    /// The buffer that was given last, which is probably still in the processor's caches.
    pub(super) fn take(&mut self) -> Option<Vec<u8>> {
        let buffer = self.buffers.pop()?;
        self.bytes -= buffer.capacity();
        Some(buffer)
    }

    /// Of the buffers of at least `size` bytes the one that was given last.
    pub(super) fn take_at_least(&mut self, size: usize) -> Option<Vec<u8>> {
        let fits = |buffer: &Vec<u8>| buffer.capacity() >= size;
        let at = self.buffers.iter().rposition(fits)?;
        let buffer = self.buffers.swap_remove(at);
        self.bytes -= buffer.capacity();
        Some(buffer)
    }

    /// Keeps `buffer` if there is room for it; else it is freed.
    pub(super) fn give(&mut self, buffer: Vec<u8>) {
        let size = buffer.capacity();
        if (1..=MAX_BUFFER).contains(&size) && self.bytes + size <= MAX_BYTES {
            self.bytes += size;
            self.buffers.push(buffer);
        }
    }
}

impl<const MAX_BUFFER: usize, const MAX_BYTES: usize> IdleMemory
    for SpareBuffers<MAX_BUFFER, MAX_BYTES>
{
    fn release_idle_memory(&mut self) {
        let Self { buffers, bytes } = self;
        *buffers = Vec::new();
        *bytes = 0;
    }
}
