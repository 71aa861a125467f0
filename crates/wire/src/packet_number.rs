//! Truncated packet numbers (RFC 9000, section 17.1 and appendix A).

use swiftwater_units::PacketNumber;

use crate::coding::{Reader, Writer};
use crate::error::DecodeError;

/// A packet number as it appears on the wire: its low 1 to 4 bytes.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct TruncatedPacketNumber {
    /// The low bytes as a number.
    pub value: u32,
    /// How many bytes, 1 to 4.
    pub len: usize,
}

impl TruncatedPacketNumber {
    /// The shortest encoding of `full` from which a peer that may have received nothing above
    /// `largest_acked` recovers it (appendix A.2).
    pub fn encode(full: PacketNumber, largest_acked: Option<PacketNumber>) -> Self {
        let unacked = match largest_acked {
            Some(acked) => full.get().saturating_sub(acked.get()),
            None => full.get() + 1,
        };
        // The range must be more than twice the distance: one bit more than the distance has.
        let bits = u64::BITS - unacked.leading_zeros() + 1;
        let len = (bits.div_ceil(8) as usize).clamp(1, 4);
        let mask = u64::MAX >> (64 - 8 * len);
        Self {
            value: (full.get() & mask) as u32,
            len,
        }
    }

    /// The same packet number, whose full value is `full`, in at least `len` bytes (1 to 4).
    #[must_use]
    pub fn at_least(self, len: usize, full: PacketNumber) -> Self {
        let len = self.len.max(len.clamp(1, 4));
        let mask = u64::MAX >> (64 - 8 * len);
        Self {
            value: (full.get() & mask) as u32,
            len,
        }
    }

    /// Reads `len` bytes, 1 to 4 (see [`PlainFirstByte`](crate::PlainFirstByte)).
    pub fn read(r: &mut Reader<'_>, len: usize) -> Result<Self, DecodeError> {
        if !(1..=4).contains(&len) {
            return Err(DecodeError::Invalid(
                "a packet number that is not of 1 to 4 bytes",
            ));
        }
        let value = r
            .bytes(len)?
            .iter()
            .fold(0, |value, &byte| value << 8 | u32::from(byte));
        Ok(Self { value, len })
    }

    /// Appends the bytes.
    pub fn write(self, w: &mut Writer<'_>) {
        w.bytes(&self.value.to_be_bytes()[4 - self.len..]);
    }

    /// The packet number closest to the one after `largest_received` (appendix A.3). At most 2^62 -
    /// 1, for any input.
    pub fn expand(self, largest_received: Option<PacketNumber>) -> PacketNumber {
        let expected = largest_received.map_or(0, |largest| largest.get() + 1);
        let window = 1_u64 << (8 * self.len);
        let half = window / 2;
        let candidate = (expected & !(window - 1)) | u64::from(self.value);
        let number = if candidate + half <= expected && candidate < (1 << 62) - window {
            candidate + window
        } else if candidate > expected + half && candidate >= window {
            candidate - window
        } else {
            candidate
        };
        PacketNumber::new(number)
    }
}
