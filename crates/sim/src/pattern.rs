//! Content that the receiver can check byte by byte, at the cost of a comparison.

use std::sync::OnceLock;

use bytes::Bytes;

/// After so many bytes the pattern repeats: a prime, so that a shift by a packet, a buffer or a
/// power of two is detected.
const PERIOD: usize = 65_521;

/// An endless sequence of bytes, different for each `id`.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Pattern {
    phase: usize,
}

impl Pattern {
    /// The pattern number `id`.
    pub fn new(id: u64) -> Self {
        // Steps of a few thousand bytes: consecutive ones differ by more than a packet.
        let phase = (u128::from(id) * 7_919 + 1) % PERIOD as u128;
        Self {
            phase: phase as usize,
        }
    }

    /// Bytes from `offset` on, at least one and at most `max` (if that isn't zero), without a copy.
    pub fn chunk(self, offset: u64, max: u64) -> Bytes {
        let start = self.position(offset);
        let len = (PERIOD - start).min(usize::try_from(max).unwrap_or(usize::MAX));
        table().slice(start..start + len)
    }

    /// Whether `data` equals the pattern from `offset` on.
    pub fn matches(self, offset: u64, data: &[u8]) -> bool {
        let (mut start, mut data) = (self.position(offset), data);
        while !data.is_empty() {
            let len = data.len().min(PERIOD - start);
            if data[..len] != table()[start..start + len] {
                return false;
            }
            (start, data) = (0, &data[len..]);
        }
        true
    }

    fn position(self, offset: u64) -> usize {
        ((offset % PERIOD as u64) as usize + self.phase) % PERIOD
    }
}

/// One period of pseudo-random bytes.
fn table() -> &'static Bytes {
    static TABLE: OnceLock<Bytes> = OnceLock::new();
    TABLE.get_or_init(|| {
        let mut state = 0x2545_f491_4f6c_dd1du64;
        let next = || {
            // xorshift64: enough to make every shift visible.
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            (state >> 32) as u8
        };
        std::iter::repeat_with(next).take(PERIOD).collect()
    })
}
