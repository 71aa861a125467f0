//! Types of unidirectional streams (RFC 9114, section 6.2; RFC 9204, section 4.2), and the
//! incremental parser of the integers at the start of streams.

use swiftwater_wire::{Reader, VarInt};

/// The type at the start of a unidirectional stream.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum StreamType {
    /// 0x00: control stream; one in each direction.
    Control,
    /// 0x01: push stream; only servers send them.
    Push,
    /// 0x02: instructions of the QPACK encoder; at most one in each direction.
    QpackEncoder,
    /// 0x03: instructions of the QPACK decoder; at most one in each direction.
    QpackDecoder,
    /// 0x54: a stream of a WebTransport session (draft-ietf-webtrans-http3, section 4.2).
    WebTransport,
    /// Any other, which is ignored.
    Unknown(u64),
}

impl StreamType {
    /// The type of value `n`.
    pub const fn from_wire(n: u64) -> Self {
        match n {
            0x00 => Self::Control,
            0x01 => Self::Push,
            0x02 => Self::QpackEncoder,
            0x03 => Self::QpackDecoder,
            0x54 => Self::WebTransport,
            n => Self::Unknown(n),
        }
    }

    /// Its value.
    pub const fn to_wire(self) -> u64 {
        match self {
            Self::Control => 0x00,
            Self::Push => 0x01,
            Self::QpackEncoder => 0x02,
            Self::QpackDecoder => 0x03,
            Self::WebTransport => 0x54,
            Self::Unknown(n) => n,
        }
    }
}

/// A variable-length integer that arrives in pieces.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct PartialInt {
    bytes: [u8; 8],
    len: u8,
}

impl PartialInt {
    /// Consumes bytes of `data`; returns the value once it is complete, and is then ready for the
    /// next one.
    pub(crate) fn take(&mut self, data: &mut &[u8]) -> Option<u64> {
        while let Some((&byte, rest)) = data.split_first() {
            *data = rest;
            self.bytes[usize::from(self.len)] = byte;
            self.len += 1;
            if self.len == 1 << (self.bytes[0] >> 6) {
                let len = usize::from(std::mem::take(&mut self.len));
                return Reader::new(&self.bytes[..len]).varint().ok();
            }
        }
        None
    }

    /// True if a part of an integer was read.
    pub(crate) fn is_partial(&self) -> bool {
        self.len > 0
    }
}

/// Appends a variable-length integer; values beyond 62 bits are clamped.
pub(crate) fn put_int(out: &mut Vec<u8>, n: u64) {
    out.extend_from_slice(VarInt::saturating(n).encode().as_bytes());
}
