//! Decodes packet headers.

use std::ops::Range;

use super::{FIXED, LONG, PacketType, RETRY_TAG_LEN, SPIN, VERSION_1, is_known};
use crate::coding::Reader;
use crate::connection_id::ConnectionId;
use crate::error::DecodeError;

/// The invariant header of every version (RFC 8999): enough to route a datagram and to answer with
/// Version Negotiation.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct InvariantHeader<'a> {
    /// True for a long header.
    pub is_long: bool,
    /// The version of a long header; 0 for Version Negotiation.
    pub version: Option<u32>,
    /// Destination Connection ID: up to 255 bytes in a long header, `local_cid_len` in a short one.
    pub dst_cid: &'a [u8],
    /// Source Connection ID of a long header, up to 255 bytes.
    pub src_cid: Option<&'a [u8]>,
}

impl<'a> InvariantHeader<'a> {
    /// Reads the header at the start of `datagram`. A short header doesn't include the length of
    /// its connection ID, so the endpoint that chose it supplies `local_cid_len`.
    pub fn parse(datagram: &'a [u8], local_cid_len: usize) -> Result<Self, DecodeError> {
        let mut r = Reader::new(datagram);
        if r.u8()? & LONG == 0 {
            let dst_cid = r.bytes(local_cid_len)?;
            return Ok(Self {
                is_long: false,
                version: None,
                dst_cid,
                src_cid: None,
            });
        }
        let version = Some(r.u32()?);
        let dst_cid = short_prefixed(&mut r)?;
        let src_cid = Some(short_prefixed(&mut r)?);
        Ok(Self {
            is_long: true,
            version,
            dst_cid,
            src_cid,
        })
    }
}

/// Whether `datagram` is a packet with a short header, if it is QUIC of any version (RFC 8999, section 5.2).
pub fn has_short_header(datagram: &[u8]) -> bool {
    datagram.first().is_some_and(|first| first & LONG == 0)
}

/// Bytes with a length prefix of one byte.
fn short_prefixed<'a>(r: &mut Reader<'a>) -> Result<&'a [u8], DecodeError> {
    let len = r.u8()?;
    r.bytes(usize::from(len))
}

fn read_cid(r: &mut Reader<'_>) -> Result<ConnectionId, DecodeError> {
    ConnectionId::new(short_prefixed(r)?).ok_or(DecodeError::Invalid(
        "a connection ID of more than 20 bytes",
    ))
}

/// The header of one packet of version 1 or 2, or of Version Negotiation, up to its packet number and
/// still under header protection.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct PartialHeader {
    /// Kind of packet.
    pub packet_type: PacketType,
    /// Version of a long header, 0 for Version Negotiation; [`VERSION_1`] for a short header, which
    /// has no version.
    pub version: u32,
    /// The QUIC bit, once called the fixed bit. Senders may set it to 0 only if the receiver permits
    /// it (RFC 9287); in Version Negotiation it is unused.
    pub quic_bit: bool,
    /// The latency spin bit of a short header, which is not protected; false for a long one.
    pub spin: bool,
    /// Destination Connection ID.
    pub dst_cid: ConnectionId,
    /// Source Connection ID; empty for a short header.
    pub src_cid: ConnectionId,
    /// Position of the token of an Initial or Retry in the packet; empty otherwise. That of a Retry
    /// is never empty.
    pub token: Range<usize>,
    /// Start of the packet number. For Retry and Version Negotiation, which have none: end of the
    /// connection IDs.
    pub pn_offset: usize,
    /// Bytes of this packet with its header: another may follow it in the datagram. At least
    /// `pn_offset` and at most what was parsed.
    pub packet_len: usize,
}

impl PartialHeader {
    /// Reads the header at the start of `packet`, which other packets may follow. The version of a
    /// long header must be 1, 2 or 0 (see [`InvariantHeader`] for others); `local_cid_len` is the
    /// length of the connection ID of a short one.
    pub fn parse(packet: &[u8], local_cid_len: usize) -> Result<Self, DecodeError> {
        let mut r = Reader::new(packet);
        let first = r.u8()?;
        if first & LONG == 0 {
            let dst_cid = ConnectionId::new(r.bytes(local_cid_len)?).ok_or(
                DecodeError::Invalid("a connection ID of more than 20 bytes"),
            )?;
            let pn_offset = packet.len() - r.remaining();
            return Ok(Self {
                packet_type: PacketType::OneRtt,
                version: VERSION_1,
                quic_bit: first & FIXED != 0,
                spin: first & SPIN != 0,
                dst_cid,
                src_cid: ConnectionId::EMPTY,
                token: 0..0,
                pn_offset,
                packet_len: packet.len(),
            });
        }
        let version = r.u32()?;
        if version != 0 && !is_known(version) {
            return Err(DecodeError::Invalid("a version other than 1 and 2"));
        }
        let (dst_cid, src_cid) = (read_cid(&mut r)?, read_cid(&mut r)?);
        let mut header = Self {
            packet_type: match version {
                0 => PacketType::VersionNegotiation,
                version => PacketType::from_long(version, first),
            },
            version,
            quic_bit: first & FIXED != 0,
            spin: false,
            dst_cid,
            src_cid,
            token: 0..0,
            pn_offset: packet.len() - r.remaining(),
            packet_len: packet.len(),
        };
        match header.packet_type {
            PacketType::VersionNegotiation => check_versions(r.rest())?,
            PacketType::Retry => header.token = retry_token(packet.len(), r.remaining())?,
            _ => header.read_length(&mut r, packet.len())?,
        }
        Ok(header)
    }

    /// The token of an Initial, and the Length.
    fn read_length(&mut self, r: &mut Reader<'_>, packet_len: usize) -> Result<(), DecodeError> {
        if self.packet_type == PacketType::Initial {
            let token = r.length_prefixed()?;
            let end = packet_len - r.remaining();
            self.token = end - token.len()..end;
        }
        let length = r.varint()?;
        if length > r.remaining() as u64 {
            return Err(DecodeError::UnexpectedEnd);
        }
        self.pn_offset = packet_len - r.remaining();
        self.packet_len = self.pn_offset + length as usize;
        Ok(())
    }

    /// The versions that a Version Negotiation packet offers; nothing for other packets. `packet`
    /// is the parsed packet.
    pub fn supported_versions<'a>(&self, packet: &'a [u8]) -> impl Iterator<Item = u32> + use<'a> {
        let list = match self.packet_type {
            PacketType::VersionNegotiation => packet.get(self.pn_offset..self.packet_len),
            _ => None,
        };
        let (versions, _) = list.unwrap_or_default().as_chunks::<4>();
        versions.iter().map(|&version| u32::from_be_bytes(version))
    }

    /// The integrity tag of a Retry packet; `None` for other packets. `packet` is the parsed
    /// packet.
    pub fn retry_tag<'a>(&self, packet: &'a [u8]) -> Option<&'a [u8; RETRY_TAG_LEN]> {
        match self.packet_type {
            PacketType::Retry => packet.get(..self.packet_len)?.last_chunk(),
            _ => None,
        }
    }
}

fn check_versions(list: &[u8]) -> Result<(), DecodeError> {
    if list.is_empty() || !list.len().is_multiple_of(4) {
        return Err(DecodeError::Invalid(
            "a version list that is empty or truncated",
        ));
    }
    Ok(())
}

/// Position of the token: between the connection IDs and the tag. A client must discard a Retry
/// with an empty one (RFC 9000, section 17.2.5.2).
fn retry_token(packet_len: usize, remaining: usize) -> Result<Range<usize>, DecodeError> {
    match remaining.checked_sub(RETRY_TAG_LEN) {
        None => Err(DecodeError::UnexpectedEnd),
        Some(0) => Err(DecodeError::Invalid("an empty token in Retry")),
        Some(_) => Ok(packet_len - remaining..packet_len - RETRY_TAG_LEN),
    }
}
