//! Division of a frame into packets, and their content.

use crate::protection::block_code::repair_len;

/// A frame of some size divided into packets of equal size (the last may be shorter).
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Cut {
    size: u32,
    packets: u32,
    packet_len: u32,
}

impl Cut {
    /// As few packets as possible of at most `payload_size` bytes (at least 1) for a frame of `size`
    /// bytes; a frame of 0 bytes counts as one of 1.
    pub fn new(size: u32, payload_size: u32) -> Self {
        let size = size.max(1);
        let packet_len = size.div_ceil(size.div_ceil(payload_size.max(1)));
        Self {
            size,
            packets: size.div_ceil(packet_len),
            packet_len,
        }
    }

    /// The division of a frame of `size` bytes into `packets`, as in a header; `None` if it is
    /// impossible.
    pub fn from_counts(size: u32, packets: u32) -> Option<Self> {
        if packets == 0 || packets > size {
            return None;
        }
        let cut = Self {
            size,
            packets,
            packet_len: size.div_ceil(packets),
        };
        (size.div_ceil(cut.packet_len) == packets).then_some(cut)
    }

    /// Bytes of the frame.
    pub const fn size(&self) -> u32 {
        self.size
    }

    /// Number of packets.
    pub const fn packets(&self) -> u32 {
        self.packets
    }

    /// Bytes of each packet except the last.
    pub const fn packet_len(&self) -> u32 {
        self.packet_len
    }

    /// Offset of packet `number` in the frame.
    pub const fn offset(&self, number: u32) -> u64 {
        number as u64 * self.packet_len as u64
    }

    /// Bytes of packet `number`; 0 if there is none.
    pub fn len(&self, number: u32) -> u32 {
        let left = u64::from(self.size).saturating_sub(self.offset(number));
        left.min(u64::from(self.packet_len)) as u32
    }

    /// Bytes of a repair packet.
    pub fn repair_len(&self) -> usize {
        repair_len(self.packet_len as usize)
    }

    /// The pattern that packet `number` of frame `frame` carries.
    pub(super) fn pattern(&self, frame: u64, number: u32) -> Vec<u8> {
        let start = self.offset(number);
        let end = start + u64::from(self.len(number));
        let mut bytes = Vec::with_capacity((end - start) as usize + 8);
        let mut at = start - start % 8;
        while at < end {
            let word = word(frame, at / 8).to_le_bytes();
            let skip = start.saturating_sub(at) as usize;
            bytes.extend_from_slice(&word[skip..]);
            at += 8;
        }
        bytes.truncate((end - start) as usize);
        bytes
    }
}

/// Eight bytes of a frame's pattern (the mixing function of SplitMix64).
fn word(frame: u64, number: u64) -> u64 {
    let word = (frame << 32).wrapping_add(number);
    let word = word.wrapping_mul(0x9e37_79b9_7f4a_7c15).wrapping_add(1);
    let word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    word ^ (word >> 27)
}
