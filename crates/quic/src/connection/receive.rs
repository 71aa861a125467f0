//! Datagrams in: coalesced packets, header protection, decryption, duplicates (RFC 9000, section
//! 12.2; RFC 9001, section 5).

use std::ops::Range;

use swiftwater_units::{Instant, PacketNumber, PathId, Side};
use swiftwater_wire::{
    ConnectionId, ErrorCode, PacketType, PartialHeader, PlainFirstByte, ResetToken,
    TruncatedPacketNumber,
};

use crate::crypto::EncryptionLevel;
use crate::datagram_size::{MIN_INITIAL_SIZE, MIN_STATELESS_RESET};
use crate::error::{ConnectionError, TransportError};
use crate::handshake::{Fit, KeyMarks, OpenError, Opened, PacketName, Protection, UpdateCause};
use crate::observe::{Observation, Owner, Payload};
use crate::path::{Address, PathState};
use crate::space::{AckTiming, SpaceId};
use crate::transmit::{DatagramMeta, EcnCodepoint};

use super::Connection;
use super::frames::Content;
use crate::monitor::CurrentPacket;

/// Where and when a packet came from.
#[derive(Clone, Copy, Debug)]
pub(super) struct Origin<'a> {
    pub(super) address: &'a Address,
    pub(super) ecn: Option<EcnCodepoint>,
    /// Bytes of the whole datagram.
    pub(super) datagram_len: usize,
    /// The connection ID it was sent to.
    pub(super) dst_cid: ConnectionId,
    /// The path that this connection ID belongs to.
    pub(super) path: PathId,
    /// When its datagram arrived: before now if it had to wait for its keys.
    pub(super) received_at: Instant,
}

/// A packet whose protection is in place.
struct ProtectedPacket<'p> {
    level: EncryptionLevel,
    header: &'p PartialHeader,
    bytes: &'p mut [u8],
}

/// A packet that was opened: it is authentic, and no duplicate.
#[derive(Clone, Debug)]
struct OpenedPacket {
    level: EncryptionLevel,
    number: PacketNumber,
    /// Where its plaintext lies.
    payload: Range<usize>,
    /// Bytes of the whole packet.
    size: usize,
}

impl Connection {
    /// Takes a datagram that the endpoint routed here. It is decrypted in place; afterwards its
    /// bytes mean nothing.
    pub fn handle_datagram(&mut self, now: Instant, meta: &DatagramMeta, datagram: &mut [u8]) {
        self.monitor.stats.datagrams_received += 1;
        self.monitor.stats.bytes_received += (datagram.len() as u64).into();
        self.monitor.current_packet = CurrentPacket {
            size: datagram.len(),
            packet_type: None,
        };
        if self.ends_before(now) {
            return;
        }
        let from = meta.path();
        if !self.on_bytes_from(&from, datagram.len()) {
            self.monitor.dropped(now, "from an unexpected address");
            return;
        }
        self.streams.on_rtt(now, self.paths.longest_rtt());
        // Decryption destroys the bytes that a stateless reset would end in.
        let tail = datagram.last_chunk().copied().map(ResetToken);
        let (len, opened) = (datagram.len(), self.monitor.stats.packets_received);
        self.handle_packets(now, now, meta, datagram);
        if let Some(tail) = tail
            && len >= MIN_STATELESS_RESET
            && self.monitor.stats.packets_received == opened
        {
            self.on_unopened(now, tail);
        }
        while let Some(packets) = self.establishment.buffered.take_retry() {
            for mut buffered in packets {
                let received_at = buffered.received_at.unwrap_or(now);
                self.handle_packets(now, received_at, &buffered.meta, &mut buffered.packet);
            }
        }
        self.streams.drain_control(&mut self.control);
        self.report_resets(now);
        let (handshake, paths) = (&self.handshake, &self.paths);
        self.monitor.report_changes(now, handshake, paths);
    }

    /// Counts the bytes for the anti-amplification limit; false if datagrams from there are not
    /// accepted.
    fn on_bytes_from(&mut self, from: &Address, len: usize) -> bool {
        if self.paths.on_datagram(from, len) {
            return true;
        }
        if self.identity.side.is_client() {
            // A server's address is fixed, apart from one that it prefers (RFC 9000, section 9).
            let mut paths = self.paths.iter();
            return paths.any(|path| path.link.includes_remote(from.remote));
        }
        // A client may move once the handshake is confirmed.
        self.handshake.is_confirmed()
            && (self.identity.config.migration || self.is_at_preferred_address(from))
    }

    fn handle_packets(
        &mut self,
        now: Instant,
        received_at: Instant,
        meta: &DatagramMeta,
        datagram: &mut [u8],
    ) {
        let (datagram_len, from) = (datagram.len(), meta.path());
        let mut rest = datagram;
        let mut first_cid = None;
        while !rest.is_empty() {
            let cid_len = self.identity.cids.len();
            self.monitor.current_packet = CurrentPacket {
                size: rest.len(),
                packet_type: None,
            };
            let Ok(header) = PartialHeader::parse(rest, cid_len) else {
                self.monitor.dropped(now, "malformed header");
                return;
            };
            self.monitor.current_packet = CurrentPacket {
                size: header.packet_len,
                packet_type: Some(header.packet_type),
            };
            if !self.accepts_quic_bit(&header) {
                self.monitor.dropped(now, "the QUIC bit is 0");
                return;
            }
            if *first_cid.get_or_insert(header.dst_cid) != header.dst_cid {
                self.monitor
                    .dropped(now, "coalesced packets with different connection IDs");
                return;
            }
            let (packet, tail) = rest.split_at_mut(header.packet_len);
            let origin = Origin {
                address: &from,
                ecn: meta.ecn,
                datagram_len,
                dst_cid: header.dst_cid,
                path: self.paths.path_of(&header.dst_cid),
                received_at,
            };
            if self.lifecycle.is_open() {
                self.handle_packet(now, meta, &origin, &header, packet);
            } else {
                self.handle_packet_after_close(now, &origin, &header, packet);
                return;
            }
            rest = tail;
        }
    }

    fn handle_packet(
        &mut self,
        now: Instant,
        meta: &DatagramMeta,
        origin: &Origin<'_>,
        header: &PartialHeader,
        bytes: &mut [u8],
    ) {
        let level = match header.packet_type {
            PacketType::Initial => EncryptionLevel::Initial,
            PacketType::Handshake => EncryptionLevel::Handshake,
            PacketType::OneRtt => EncryptionLevel::OneRtt,
            PacketType::Retry => return self.on_retry(now, header, bytes),
            PacketType::VersionNegotiation => {
                return self.on_version_negotiation(now, header, bytes);
            }
            PacketType::ZeroRtt if self.identity.side.is_client() => {
                return self.monitor.dropped(now, "early data of a server");
            }
            PacketType::ZeroRtt => EncryptionLevel::ZeroRtt,
        };
        let fit = match level {
            EncryptionLevel::OneRtt => Fit::Current,
            level => self.handshake.fit(level, header.version),
        };
        if let Err(reason) = self.check_header(level, fit, origin) {
            return self.monitor.dropped(now, reason);
        }
        if !self.can_open(level) || fit == Fit::NotYet {
            return self.on_packet_without_keys(now, meta, level, bytes);
        }
        if let Err(reason) = self.check_source(level, header) {
            return self.monitor.dropped(now, reason);
        }
        let mut packet = ProtectedPacket {
            level,
            header,
            bytes,
        };
        let opened = match fit {
            Fit::Other => self.open_other_version(now, origin, &mut packet),
            _ => self.open_packet(now, origin, &mut packet),
        };
        let outcome = match opened {
            Ok(Some(opened)) => self.on_packet(now, origin, header, &opened, packet.bytes),
            Ok(None) => Ok(()),
            Err(error) => Err(error),
        };
        if let Err(error) = outcome {
            self.fail(now, error);
        }
    }

    /// What a header must satisfy before keys matter; `Err` says why the packet is dropped.
    fn check_header(
        &self,
        level: EncryptionLevel,
        fit: Fit,
        origin: &Origin<'_>,
    ) -> Result<(), &'static str> {
        if fit == Fit::Foreign {
            return Err("another version");
        }
        let is_small = origin.datagram_len < MIN_INITIAL_SIZE;
        if level == EncryptionLevel::Initial && self.identity.side.is_server() && is_small {
            return Err("Initial in a small datagram");
        }
        Ok(())
    }

    /// A peer keeps its first source connection ID through the handshake (RFC 9000, section 7.2), and
    /// a server sends no token (section 17.2.2).
    fn check_source(
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

    /// There are no keys for a packet: keys that are discarded never come back, those that are not
    /// there yet may come.
    fn on_packet_without_keys(
        &mut self,
        now: Instant,
        meta: &DatagramMeta,
        level: EncryptionLevel,
        bytes: &[u8],
    ) {
        let keys = self.handshake.keys();
        if level == EncryptionLevel::ZeroRtt && keys.has(EncryptionLevel::OneRtt) {
            return self.on_early_data_refused(now);
        }
        let may_come = !self.handshake.is_complete() && level != EncryptionLevel::Initial;
        if !may_come || !self.establishment.buffered.keep(now, meta, bytes) {
            return self.monitor.dropped(now, "no keys");
        }
        let size = bytes.len();
        self.monitor
            .observe(now, &Observation::PacketBuffered { level, size });
        let has_handshake_keys = self.handshake.keys().has(EncryptionLevel::Handshake);
        if self.identity.side.is_client() && !has_handshake_keys {
            // The server went on, but its first packet is missing.
            let (mut fates, buffers) = self.fates(now);
            fates.speed_up_handshake(&mut buffers.loss);
        }
    }

    /// The QUIC bit may be 0 if we said so (RFC 9287, section 3), and in Version Negotiation.
    fn accepts_quic_bit(&self, header: &PartialHeader) -> bool {
        header.quic_bit
            || self.identity.grease
            || header.packet_type == PacketType::VersionNegotiation
    }

    /// True if there are keys and it is time to use them: a server must not open 1-RTT packets
    /// before the handshake is complete (RFC 9001, section 5.7).
    fn can_open(&self, level: EncryptionLevel) -> bool {
        self.handshake.keys().has(level)
            && (level != EncryptionLevel::OneRtt || self.handshake.is_complete())
    }

    /// Opens an Initial packet of another version than the current one. A client finds out from it which
    /// version the server has chosen (RFC 9369, section 4.1).
    fn open_other_version(
        &mut self,
        now: Instant,
        origin: &Origin<'_>,
        packet: &mut ProtectedPacket<'_>,
    ) -> Result<Option<OpenedPacket>, TransportError> {
        let version = packet.header.version;
        self.handshake.exchange_initial(version);
        let opened = self.open_packet(now, origin, packet);
        if matches!(opened, Ok(Some(_))) && self.identity.side.is_client() {
            self.handshake.follow_server(version)?;
            // Handshake packets of that version may have come first.
            self.establishment.buffered.on_new_keys();
        } else {
            self.handshake.exchange_initial(self.handshake.version());
        }
        opened
    }

    /// Removes the protection of a packet; `None` if it is to be dropped.
    fn open_packet(
        &mut self,
        now: Instant,
        origin: &Origin<'_>,
        packet: &mut ProtectedPacket<'_>,
    ) -> Result<Option<OpenedPacket>, TransportError> {
        let (level, pn_offset) = (packet.level, packet.header.pn_offset);
        let id = SpaceId::of(level, origin.path);
        let (Ok(mut keys), Some(path)) =
            (self.handshake.active_keys(), self.paths.get(origin.path))
        else {
            return Err(keys_unavailable());
        };
        if !keys.unprotect_header(level, pn_offset, packet.bytes) {
            self.monitor.dropped(now, "too short");
            return Ok(None);
        }
        let first = PlainFirstByte(packet.bytes[0]);
        let pn_len = first.packet_number_len();
        let header_len = pn_offset + pn_len;
        let truncated = packet.bytes[pn_offset..header_len].iter();
        let value = truncated.fold(0, |value, &byte| (value << 8) | u32::from(byte));
        let truncated = TruncatedPacketNumber { value, len: pn_len };
        let mut marks = path.key_marks;
        let Some(space) = self.paths.space(id) else {
            return Ok(None);
        };
        let number = truncated.expand(space.received.largest());
        let is_duplicate = space.received.is_duplicate(number);
        let name = PacketName {
            level,
            path: origin.path,
            number,
        };
        let (header, payload) = packet.bytes.split_at_mut(header_len);
        let opened = keys.open(name, &mut marks, first.key_phase(), header, payload);
        let Some(opened) = self.check_opened(now, opened)? else {
            return Ok(None);
        };
        // Not before: an attacker that guesses packet numbers must not be able to tell from the time
        // that an answer takes (RFC 9001, section 9.5).
        if is_duplicate {
            self.monitor.dropped(now, "duplicate");
            return Ok(None);
        }
        if first.reserved_bits() != 0 {
            return Err(TransportError::new(
                ErrorCode::PROTOCOL_VIOLATION,
                "reserved header bits are set",
            ));
        }
        self.on_key_phase(now, name, opened, marks)?;
        Ok(Some(OpenedPacket {
            level,
            number,
            payload: header_len..header_len + opened.len,
            size: packet.bytes.len(),
        }))
    }

    /// Counts what failed authentication; `None` if the packet is to be dropped.
    fn check_opened(
        &mut self,
        now: Instant,
        opened: Result<Opened, OpenError>,
    ) -> Result<Option<Opened>, TransportError> {
        match opened {
            Ok(opened) => Ok(Some(opened)),
            Err(OpenError::Inauthentic | OpenError::NoKeys) => {
                self.monitor.dropped(now, "failed authentication");
                Ok(None)
            }
            Err(OpenError::KeyUpdate) => Err(TransportError::new(
                ErrorCode::KEY_UPDATE_ERROR,
                "a key update out of turn",
            )),
            Err(OpenError::IntegrityLimit) => Err(TransportError::new(
                ErrorCode::AEAD_LIMIT_REACHED,
                "too many packets failed authentication",
            )),
        }
    }

    /// Notes what an opened packet says about the key phase: `marks` are the new ones of its path.
    fn on_key_phase(
        &mut self,
        now: Instant,
        name: PacketName,
        opened: Opened,
        mut marks: KeyMarks,
    ) -> Result<(), TransportError> {
        if opened.key_updated {
            let keep_until = now + Protection::retention(self.longest_recent_pto());
            let cause = UpdateCause::Remote {
                number: name.number,
                marks: &mut marks,
                keep_until,
            };
            let generation = self.handshake.update_keys(cause);
            let generation = generation.map_err(|_| keys_unavailable())?;
            let initiator = Owner::Remote;
            let observation = Observation::KeyUpdated {
                generation,
                initiator,
            };
            self.monitor.observe(now, &observation);
        } else if opened.phase_confirmed {
            let keep_until = now + Protection::retention(self.longest_recent_pto());
            self.handshake.keys_mut().confirm_phase(keep_until);
        }
        if let (EncryptionLevel::OneRtt, Some(path)) = (name.level, self.paths.get_mut(name.path)) {
            path.key_marks = marks;
        }
        Ok(())
    }

    /// No packet of a datagram could be opened: noise, or a stateless reset, whatever the header
    /// looks like (RFC 9000, section 10.3.1).
    fn on_unopened(&mut self, now: Instant, tail: ResetToken) {
        let is_reset = |path: &PathState| path.cids.remote.is_reset_token(&tail);
        if self.paths.iter().any(is_reset) {
            self.start_draining(now, ConnectionError::Reset);
        }
    }

    /// An authenticated packet.
    fn on_packet(
        &mut self,
        now: Instant,
        origin: &Origin<'_>,
        header: &PartialHeader,
        packet: &OpenedPacket,
        bytes: &[u8],
    ) -> Result<(), TransportError> {
        let payload = &bytes[packet.payload.clone()];
        self.monitor.stats.packets_received += 1.into();
        self.lifecycle.on_received(now);
        self.datagrams.on_packet(origin.path, packet.number);
        if let Some(path) = self.paths.get_mut(origin.path) {
            path.last_received = Some(now);
        }
        let observation = Observation::PacketReceived {
            path: origin.path,
            level: packet.level,
            number: packet.number,
            size: packet.size,
            payload: Payload::new(payload),
        };
        self.monitor.observe(now, &observation);
        self.on_handshake_packet(packet.level, header);
        let content = self.on_payload(now, packet.level, origin, payload)?;
        let newest = self.record(packet, origin, content.ack_eliciting);
        // A peer that has closed is followed no more.
        if self.lifecycle.is_open() && packet.level == EncryptionLevel::OneRtt {
            self.on_first_one_rtt_packet(now);
            self.update_address(now, origin, header, newest, content);
        }
        Ok(())
    }

    /// What the first packets of the handshake prove.
    fn on_handshake_packet(&mut self, level: EncryptionLevel, header: &PartialHeader) {
        let identity = &mut self.identity;
        match (identity.side, level) {
            (Side::Client, EncryptionLevel::Initial) if identity.peer_handshake_cid.is_none() => {
                identity.peer_handshake_cid = Some(header.src_cid);
                let path = self.paths.primary_mut();
                path.cids.remote.set_handshake_cid(header.src_cid);
            }
            (Side::Server, EncryptionLevel::Handshake) => {
                // The client has our Handshake keys, so it received what we sent to its address.
                self.paths.primary_mut().link.amplification.set_validated();
                self.discard(EncryptionLevel::Initial);
            }
            _ => {}
        }
    }

    /// A 1-RTT packet came: from the address in use, or from another one that the peer probes or has
    /// moved to (RFC 9000, section 9.3).
    fn update_address(
        &mut self,
        now: Instant,
        origin: &Origin<'_>,
        header: &PartialHeader,
        newest: bool,
        content: Content,
    ) {
        let Some(path) = self.paths.get_mut(origin.path) else {
            return;
        };
        let is_in_use = origin.address.matches(&path.link.address);
        if is_in_use && newest {
            path.link.spin.on_newest(header.spin);
        }
        if !is_in_use && newest && !content.only_probing {
            self.follow_peer(now, origin);
        } else {
            self.note_reached(origin, newest && !content.only_probing);
        }
    }

    /// Notes the packet for acknowledgement; true if it has the largest number so far.
    fn record(&mut self, packet: &OpenedPacket, origin: &Origin<'_>, ack_eliciting: bool) -> bool {
        let granted = &self.policies.ack_granted;
        let max_ack_delay = granted.max_ack_delay(self.identity.config.max_ack_delay);
        let wish = granted.wish();
        let id = SpaceId::of(packet.level, origin.path);
        let Some(path) = self.paths.path_for(id) else {
            return false;
        };
        let smoothed_rtt = path.recovery.rtt().smoothed;
        let timing = id.is_data().then_some(AckTiming {
            policy: &mut *self.policies.ack,
            max_ack_delay,
            smoothed_rtt,
            wish,
        });
        let Some(space) = self.paths.space_mut(id) else {
            return false;
        };
        let received = &mut space.received;
        let number = packet.number;
        let newest = received.largest().is_none_or(|largest| number > largest);
        received.on_packet(
            origin.received_at,
            number,
            ack_eliciting,
            origin.ecn,
            timing,
        );
        newest
    }

    /// After the end only a close from the peer still counts.
    fn handle_packet_after_close(
        &mut self,
        now: Instant,
        origin: &Origin<'_>,
        header: &PartialHeader,
        bytes: &mut [u8],
    ) {
        self.lifecycle.on_received_after_close();
        let level = match header.packet_type {
            PacketType::Initial => EncryptionLevel::Initial,
            PacketType::Handshake => EncryptionLevel::Handshake,
            PacketType::OneRtt => EncryptionLevel::OneRtt,
            _ => return,
        };
        let is_ours =
            level == EncryptionLevel::OneRtt || header.version == self.handshake.version();
        if !is_ours || !self.can_open(level) {
            return;
        }
        let mut packet = ProtectedPacket {
            level,
            header,
            bytes,
        };
        if let Ok(Some(opened)) = self.open_packet(now, origin, &mut packet) {
            self.on_payload_after_close(now, &packet.bytes[opened.payload]);
        }
    }
}

/// Keys that were given up can't be derived again: nothing can be sent or received any more.
pub(super) fn keys_unavailable() -> TransportError {
    TransportError::new(
        ErrorCode::INTERNAL_ERROR,
        "the TLS session does not derive the keys again",
    )
}
