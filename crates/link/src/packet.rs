//! Packets of a link.

use std::net::{IpAddr, SocketAddr};

/// The content of a packet, as far as a link processes it.
///
/// Implemented for `Vec<u8>`; a simulator may implement it for pooled buffers or for bare metadata.
pub trait Payload {
    /// Length in bytes, without the headers of `LinkConfig::per_packet_overhead`. It must not
    /// change while the link holds the payload.
    fn len(&self) -> usize;

    /// True for an empty payload.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Flips the bits of `mask` (never zero) in byte `at` (always below the length).
    fn corrupt(&mut self, at: usize, mask: u8);

    /// The flow of the payload, for disciplines that separate flows: equal for payloads of the same
    /// flow, [`flow_key`] of its addresses for instance. Default: all are one flow.
    fn flow(&self) -> u64 {
        0
    }

    /// A second copy of the payload.
    #[must_use]
    fn duplicate(&self) -> Self;
}

impl Payload for Vec<u8> {
    fn len(&self) -> usize {
        self.len()
    }

    fn corrupt(&mut self, at: usize, mask: u8) {
        if let Some(byte) = self.get_mut(at) {
            *byte ^= mask;
        }
    }

    fn duplicate(&self) -> Self {
        self.clone()
    }
}

/// A number for the flow between two addresses, the same in every run and on every platform. Each
/// direction is a separate flow.
pub fn flow_key(source: SocketAddr, destination: SocketAddr) -> u64 {
    [source, destination].into_iter().fold(0, |key, address| {
        let ip = match address.ip() {
            IpAddr::V4(ip) => u128::from(u32::from(ip)),
            IpAddr::V6(ip) => u128::from(ip),
        };
        let words = [(ip >> 64) as u64, ip as u64, u64::from(address.port())];
        words.into_iter().fold(key, |key, word| mix(key ^ word))
    })
}

/// One step of a mixing function: every bit of the result depends on every bit of `word` (the
/// finaliser of SplitMix64; Steele, Lea, Flood 2014).
pub(crate) const fn mix(word: u64) -> u64 {
    let word = word.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    word ^ (word >> 31)
}

/// The ECN field of the IP header (RFC 3168, section 5).
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
pub enum Ecn {
    /// Not ECN-capable (Not-ECT).
    #[default]
    NotEct,
    /// ECN-capable, ECT(0).
    Ect0,
    /// ECN-capable, ECT(1), for low-latency traffic (RFC 9331).
    Ect1,
    /// Congestion experienced (CE).
    Ce,
}

impl Ecn {
    /// True unless Not-ECT.
    pub const fn is_capable(self) -> bool {
        !matches!(self, Self::NotEct)
    }

    /// The two bits on the wire.
    pub const fn bits(self) -> u8 {
        match self {
            Self::NotEct => 0b00,
            Self::Ect1 => 0b01,
            Self::Ect0 => 0b10,
            Self::Ce => 0b11,
        }
    }

    /// The codepoint of the two low bits of `bits`; the others are ignored.
    pub const fn from_bits(bits: u8) -> Self {
        match bits & 0b11 {
            0b00 => Self::NotEct,
            0b01 => Self::Ect1,
            0b10 => Self::Ect0,
            _ => Self::Ce,
        }
    }
}

/// One datagram on a link.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Packet<P> {
    /// The datagram's content.
    pub payload: P,
    /// Its ECN codepoint, which the link may change to [`Ecn::Ce`].
    pub ecn: Ecn,
}

impl<P> Packet<P> {
    /// A packet that is not ECN-capable.
    pub const fn new(payload: P) -> Self {
        Self {
            payload,
            ecn: Ecn::NotEct,
        }
    }

    /// A packet with the ECN codepoint `ecn`.
    pub const fn with_ecn(payload: P, ecn: Ecn) -> Self {
        Self { payload, ecn }
    }
}
