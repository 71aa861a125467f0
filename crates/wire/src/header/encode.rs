//! Encodes packet headers.

use super::{FIXED, KEY_PHASE, LONG, PacketType, SPIN};
use crate::coding::Writer;
use crate::connection_id::ConnectionId;
use crate::packet_number::TruncatedPacketNumber;
use crate::varint::VarInt;

/// Bytes reserved for the Length of a long header, which is only known with the payload.
const LENGTH_SIZE: usize = 2;

/// A header to write, without its packet number.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Header<'a> {
    /// Initial packet.
    Initial {
        /// Destination Connection ID.
        dst: ConnectionId,
        /// Source Connection ID.
        src: ConnectionId,
        /// From Retry or `NEW_TOKEN`; otherwise empty, and always from a server.
        token: &'a [u8],
    },
    /// Handshake packet.
    Handshake {
        /// Destination Connection ID.
        dst: ConnectionId,
        /// Source Connection ID.
        src: ConnectionId,
    },
    /// 0-RTT packet.
    ZeroRtt {
        /// Destination Connection ID.
        dst: ConnectionId,
        /// Source Connection ID.
        src: ConnectionId,
    },
    /// 1-RTT packet, with a short header.
    OneRtt {
        /// Destination Connection ID.
        dst: ConnectionId,
        /// The latency spin bit.
        spin: bool,
        /// The key phase bit.
        key_phase: bool,
    },
}

impl Header<'_> {
    /// The kind of packet.
    pub const fn packet_type(&self) -> PacketType {
        match self {
            Self::Initial { .. } => PacketType::Initial,
            Self::Handshake { .. } => PacketType::Handshake,
            Self::ZeroRtt { .. } => PacketType::ZeroRtt,
            Self::OneRtt { .. } => PacketType::OneRtt,
        }
    }

    /// Bytes that [`Header::encode`] writes with a packet number of `pn_len` bytes.
    pub const fn size(&self, pn_len: usize) -> usize {
        match self {
            Self::Initial { dst, src, token } => {
                let token_size = VarInt::saturating(token.len() as u64).size() + token.len();
                long_size(dst, src) + token_size + LENGTH_SIZE + pn_len
            }
            Self::Handshake { dst, src } | Self::ZeroRtt { dst, src } => {
                long_size(dst, src) + LENGTH_SIZE + pn_len
            }
            Self::OneRtt { dst, .. } => 1 + dst.len() + pn_len,
        }
    }

    /// Appends the header and the packet number, unprotected, with reserved bits 0 and the QUIC bit 1
    /// ([`HeaderLayout::clear_quic_bit`] changes that). A long header's Length is written by [`HeaderLayout::patch_length`].
    /// `version`, one of those that [`is_known`](super::is_known), is only used by long headers. The space must have been checked
    /// with [`Header::size`].
    pub fn encode(
        &self,
        version: u32,
        pn: TruncatedPacketNumber,
        w: &mut Writer<'_>,
    ) -> HeaderLayout {
        let start = w.written();
        let pn_bits = (pn.len - 1) as u8;
        let mut length_offset = None;
        match *self {
            Self::OneRtt {
                dst,
                spin,
                key_phase,
            } => {
                let spin = if spin { SPIN } else { 0 };
                let key_phase = if key_phase { KEY_PHASE } else { 0 };
                w.u8(FIXED | spin | key_phase | pn_bits);
                w.bytes(dst.as_bytes());
            }
            Self::Initial { dst, src, .. }
            | Self::Handshake { dst, src }
            | Self::ZeroRtt { dst, src } => {
                let kind = self.packet_type().long_bits(version).unwrap_or(0);
                let first = LONG | FIXED | kind | pn_bits;
                write_long(w, first, version, dst.as_bytes(), src.as_bytes());
                if let Self::Initial { token, .. } = self {
                    w.length_prefixed(token);
                }
                length_offset = Some(w.written() - start);
                w.varint_2(0);
            }
        }
        let pn_offset = w.written() - start;
        pn.write(w);
        HeaderLayout {
            start,
            pn_offset,
            header_len: w.written() - start,
            length_offset,
        }
    }
}

/// Positions of the parts of a written header.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct HeaderLayout {
    /// Start of the packet in the writer; the other fields are relative to it.
    pub start: usize,
    /// Start of the packet number.
    pub pn_offset: usize,
    /// Bytes of the header with the packet number.
    pub header_len: usize,
    /// Position of the two bytes of the Length; `None` for a short header.
    pub length_offset: Option<usize>,
}

impl HeaderLayout {
    /// Sets the QUIC bit to 0, which only a peer with the `grease_quic_bit` parameter accepts (RFC
    /// 9287). `packet` starts with the packet's first byte and is not protected yet.
    pub fn clear_quic_bit(&self, packet: &mut [u8]) {
        if let Some(first) = packet.first_mut() {
            *first &= !FIXED;
        }
    }

    /// Sets the Length of a long header; a short one has none. `packet` starts with the packet's
    /// first byte; `pn_and_payload_len` is the bytes from `pn_offset` to the packet's end with the
    /// authentication tag, below 2^14.
    pub fn patch_length(&self, packet: &mut [u8], pn_and_payload_len: usize) {
        let Some(offset) = self.length_offset else {
            return;
        };
        debug_assert!(
            pn_and_payload_len < 0x4000,
            "Length {pn_and_payload_len} needs 4 bytes"
        );
        Writer::new(&mut packet[offset..]).varint_2(pn_and_payload_len as u16);
    }
}

const fn long_size(dst: &ConnectionId, src: &ConnectionId) -> usize {
    1 + 4 + 1 + dst.len() + 1 + src.len()
}

/// The invariant part of a long header.
fn write_long(w: &mut Writer<'_>, first: u8, version: u32, dst: &[u8], src: &[u8]) {
    debug_assert!(
        dst.len() <= 255 && src.len() <= 255,
        "a connection ID of more than 255 bytes"
    );
    w.u8(first);
    w.u32(version);
    w.u8(dst.len() as u8);
    w.bytes(dst);
    w.u8(src.len() as u8);
    w.bytes(src);
}

/// Appends a Version Negotiation packet that offers `versions`. `dst` and `src` are the Source and
/// Destination Connection ID of the packet that it answers, up to 255 bytes each; `random` fills
/// the unused bits. Takes `7 + dst + src + 4 * versions` bytes.
pub fn write_version_negotiation(
    w: &mut Writer<'_>,
    random: u8,
    dst: &[u8],
    src: &[u8],
    versions: &[u32],
) {
    // The bit that is fixed in version 1 is set too, so that the packet is recognised as QUIC where
    // other protocols share the port.
    write_long(w, LONG | FIXED | random, 0, dst, src);
    for &version in versions {
        w.u32(version);
    }
}

/// Appends a Retry packet without its integrity tag, for which the caller appends
/// [`RETRY_TAG_LEN`](super::RETRY_TAG_LEN) bytes. `token` must not be empty; the low four bits of
/// `random` fill the unused bits. Takes `7 + dst + src + token` bytes.
pub fn write_retry(
    w: &mut Writer<'_>,
    version: u32,
    dst: ConnectionId,
    src: ConnectionId,
    token: &[u8],
    random: u8,
) {
    let kind = PacketType::Retry.long_bits(version).unwrap_or(0);
    let first = LONG | FIXED | kind | (random & 0x0f);
    write_long(w, first, version, dst.as_bytes(), src.as_bytes());
    w.bytes(token);
}
