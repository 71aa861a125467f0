//! The bytes that are sent: one pseudo-random block, again and again.

use std::sync::LazyLock;

use crc32fast::Hasher;

/// Bytes of the block.
pub const BLOCK: usize = 1 << 20;

static PAYLOAD: LazyLock<Vec<u8>> = LazyLock::new(|| {
    // xorshift64 (Marsaglia, 2003): any numbers do that don't compress.
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut block = Vec::with_capacity(BLOCK);
    while block.len() < BLOCK {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        block.extend_from_slice(&state.to_le_bytes());
    }
    block
});

/// The block.
pub fn block() -> &'static [u8] {
    &PAYLOAD
}

/// The payload from `offset` on, `max` bytes at most, as far as it is contiguous.
pub fn slice(offset: u64, max: u64) -> &'static [u8] {
    let rest = &block()[(offset % BLOCK as u64) as usize..];
    &rest[..rest.len().min(usize::try_from(max).unwrap_or(usize::MAX))]
}

/// The checksum of the first `bytes` of payload.
pub fn checksum(bytes: u64) -> u32 {
    let mut hasher = Hasher::new();
    let mut offset = 0;
    while offset < bytes {
        let piece = slice(offset, bytes - offset);
        hasher.update(piece);
        offset += piece.len() as u64;
    }
    hasher.finalize()
}
