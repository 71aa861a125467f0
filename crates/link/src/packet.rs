//! What a link carries.

/// The content of a packet, as far as a link must handle it.
///
/// Implemented for `Vec<u8>`; a simulator may implement it for pooled buffers or for bare metadata.
pub trait Payload {
    /// Length in bytes, without the headers that `LinkConfig::per_packet_overhead` stands for. It
    /// must not change while the link holds the payload.
    fn len(&self) -> usize;

    /// True for a payload of no bytes.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Flips the bits of `mask` (never zero) in byte `at` (always below the length).
    fn corrupt(&mut self, at: usize, mask: u8);

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

/// The ECN field of the IP header (RFC 3168, section 5).
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
pub enum Ecn {
    /// The sender doesn't take part.
    #[default]
    NotEct,
    /// ECN-capable, the usual codepoint.
    Ect0,
    /// ECN-capable, the codepoint of low-latency traffic (RFC 9331).
    Ect1,
    /// Congestion was experienced.
    Ce,
}

impl Ecn {
    /// True unless the sender doesn't take part.
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
    /// A packet whose sender doesn't use ECN.
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
