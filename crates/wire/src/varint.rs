//! Variable-length integers (RFC 9000, section 16).

use thiserror::Error;

/// An integer of 0 to 2^62 - 1, coded in 1, 2, 4 or 8 bytes.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct VarInt(u64);

/// The value does not fit in 62 bits.
#[derive(Clone, Copy, Debug, Eq, Error, PartialEq)]
#[error("{0} does not fit in a variable-length integer (62 bits)")]
pub struct VarIntBoundsExceeded(pub u64);

impl VarInt {
    /// The largest value, 2^62 - 1.
    pub const MAX: Self = Self((1 << 62) - 1);

    /// A value that always fits.
    pub const fn from_u32(n: u32) -> Self {
        Self(n as u64)
    }

    /// `n` if it fits.
    pub const fn new(n: u64) -> Result<Self, VarIntBoundsExceeded> {
        if n > Self::MAX.0 {
            Err(VarIntBoundsExceeded(n))
        } else {
            Ok(Self(n))
        }
    }

    /// `n`, or the largest value.
    pub const fn saturating(n: u64) -> Self {
        if n > Self::MAX.0 { Self::MAX } else { Self(n) }
    }

    /// The value.
    pub const fn get(self) -> u64 {
        self.0
    }

    /// Bytes of the shortest encoding: 1, 2, 4 or 8.
    pub const fn size(self) -> usize {
        match self.0 {
            0..0x40 => 1,
            0x40..0x4000 => 2,
            0x4000..0x4000_0000 => 4,
            _ => 8,
        }
    }

    /// The shortest encoding.
    pub const fn encode(self) -> EncodedVarInt {
        let size = self.size();
        let start = 8 - size;
        let mut bytes = self.0.to_be_bytes();
        bytes[start] |= (size.trailing_zeros() as u8) << 6;
        EncodedVarInt { bytes, start }
    }
}

/// The encoding of a [`VarInt`], for those who write into growing buffers; [`Writer`](crate::Writer) needs none.
#[derive(Clone, Copy, Debug)]
pub struct EncodedVarInt {
    /// Right-aligned.
    bytes: [u8; 8],
    start: usize,
}

impl EncodedVarInt {
    /// Its 1, 2, 4 or 8 bytes.
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes[self.start..]
    }
}

impl From<u32> for VarInt {
    fn from(n: u32) -> Self {
        Self::from_u32(n)
    }
}

impl TryFrom<u64> for VarInt {
    type Error = VarIntBoundsExceeded;
    fn try_from(n: u64) -> Result<Self, Self::Error> {
        Self::new(n)
    }
}
