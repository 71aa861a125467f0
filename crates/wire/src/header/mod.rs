//! Packet headers: the invariant part (RFC 8999), those of version 1 (RFC 9000, section 17), and those
//! of version 2 (RFC 9369), which differ in the numbers of their types only.
//!
//! Headers are read as they arrive, still under header protection, and written before it is
//! applied. Header protection itself (RFC 9001, section 5.4) is applied by the owner of the keys.

mod encode;
mod parse;
mod version;

pub use encode::{Header, HeaderLayout, write_retry, write_version_negotiation};
pub use parse::{InvariantHeader, PartialHeader, has_short_header};
pub use version::{VERSION_1, VERSION_2, are_compatible, is_known, is_reserved};

/// Bytes of the integrity tag that ends a Retry packet (RFC 9001, section 5.8).
pub const RETRY_TAG_LEN: usize = 16;

const LONG: u8 = 0x80;
const FIXED: u8 = 0x40;
const SPIN: u8 = 0x20;
const KEY_PHASE: u8 = 0x04;

/// The kinds of packets of versions 1 and 2.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub enum PacketType {
    /// First handshake packets, with a token (section 17.2.2).
    Initial,
    /// Early data (section 17.2.3).
    ZeroRtt,
    /// Later handshake packets (section 17.2.4).
    Handshake,
    /// The server requests a token (section 17.2.5).
    Retry,
    /// The server doesn't support the version (section 17.2.1).
    VersionNegotiation,
    /// Everything after the handshake, with a short header (section 17.3).
    OneRtt,
}

impl PacketType {
    /// The two type bits of a long header of `version` in place, or `None` for packets without them.
    const fn long_bits(self, version: u32) -> Option<u8> {
        let number = match self {
            Self::Initial => 0,
            Self::ZeroRtt => 1,
            Self::Handshake => 2,
            Self::Retry => 3,
            Self::VersionNegotiation | Self::OneRtt => return None,
        };
        Some(((number + version::type_offset(version)) % 4) << 4)
    }

    /// The type of a long header of `version`, not 0, with this first byte.
    const fn from_long(version: u32, first: u8) -> Self {
        match (((first & 0x30) >> 4) + 4 - version::type_offset(version)) % 4 {
            0 => Self::Initial,
            1 => Self::ZeroRtt,
            2 => Self::Handshake,
            _ => Self::Retry,
        }
    }
}

/// A packet's first byte after header protection has been removed.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct PlainFirstByte(pub u8);

impl PlainFirstByte {
    /// True for a long header.
    pub const fn is_long(self) -> bool {
        self.0 & LONG != 0
    }

    /// Bytes of the packet number, 1 to 4.
    pub const fn packet_number_len(self) -> usize {
        (self.0 & 0x03) as usize + 1
    }

    /// The reserved bits; anything but 0 is a `PROTOCOL_VIOLATION` once the packet has been
    /// authenticated.
    pub const fn reserved_bits(self) -> u8 {
        if self.is_long() {
            (self.0 & 0x0c) >> 2
        } else {
            (self.0 & 0x18) >> 3
        }
    }

    /// The key phase of a short header; false for a long one, which has none.
    pub const fn key_phase(self) -> bool {
        !self.is_long() && self.0 & KEY_PHASE != 0
    }

    /// The spin bit of a short header (not protected); false for a long one, which has none.
    pub const fn spin(self) -> bool {
        !self.is_long() && self.0 & SPIN != 0
    }
}
