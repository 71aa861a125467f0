//! Checks of headers, before keys matter and before they are used (RFC 9000, sections 7.2, 12.2, 14.1 and
//! 17.2.2; RFC 9287, section 3).

use swiftwater_units::Side;
use swiftwater_wire::{ConnectionId, PacketType, PartialHeader};

use crate::crypto::EncryptionLevel;
use crate::datagram_size::MIN_INITIAL_SIZE;
use crate::handshake::Fit;
use crate::monitor::CurrentPacket;

use super::{Origin, Reception};

impl Reception<'_> {
    /// Reads the header of the first packet in `bytes`, what is left of a datagram; `None` if all of it is
    /// dropped. `dst_cid` is the destination of the datagram's packets so far.
    #[inline]
    pub(crate) fn next_header(
        &mut self,
        bytes: &[u8],
        dst_cid: &mut Option<ConnectionId>,
    ) -> Option<PartialHeader> {
        self.monitor.current_packet = CurrentPacket {
            size: bytes.len(),
            packet_type: None,
        };
        let Ok(header) = PartialHeader::parse(bytes, self.identity.cids.len()) else {
            self.monitor.dropped(self.now, "malformed header");
            return None;
        };
        self.monitor.current_packet = CurrentPacket {
            size: header.packet_len,
            packet_type: Some(header.packet_type),
        };
        if !self.accepts_quic_bit(&header) {
            self.monitor.dropped(self.now, "the QUIC bit is 0");
            return None;
        }
        if *dst_cid.get_or_insert(header.dst_cid) != header.dst_cid {
            self.monitor
                .dropped(self.now, "coalesced packets with different connection IDs");
            return None;
        }
        Some(header)
    }

    /// The QUIC bit may be 0 if this end permitted it (RFC 9287, section 3), and in Version Negotiation.
    fn accepts_quic_bit(&self, header: &PartialHeader) -> bool {
        header.quic_bit
            || self.identity.grease
            || header.packet_type == PacketType::VersionNegotiation
    }

    /// What a header must satisfy before keys matter; `Err` says why the packet is dropped.
    pub(super) fn check_header(
        &self,
        level: EncryptionLevel,
        fit: Fit,
        origin: &Origin<'_>,
    ) -> Result<(), &'static str> {
        if fit == Fit::Foreign {
            return Err("another version");
        }
        let is_small = origin.datagram_len < MIN_INITIAL_SIZE;
        match (level, self.identity.side) {
            (EncryptionLevel::Initial, Side::Server) if is_small => {
                Err("Initial in a small datagram")
            }
            _ => Ok(()),
        }
    }

    /// A peer keeps its first source connection ID through the handshake (RFC 9000, section 7.2), and
    /// a server sends no token (section 17.2.2).
    pub(super) fn check_source(
        &self,
        level: EncryptionLevel,
        header: &PartialHeader,
    ) -> Result<(), &'static str> {
        let known = self.identity.peer_handshake_cid;
        let is_other = known.is_some_and(|cid| cid != header.src_cid);
        if level != EncryptionLevel::OneRtt && is_other {
            return Err("another source connection ID");
        }
        if self.identity.side.is_client() && !header.token.is_empty() {
            return Err("Initial of a server with a token");
        }
        Ok(())
    }
}
