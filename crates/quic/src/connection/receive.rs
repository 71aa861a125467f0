//! Datagrams in: coalesced packets, header protection, decryption, duplicates (RFC 9000, section
//! 12.2; RFC 9001, section 5).

use swiftwater_units::{Instant, PacketNumber, PathId, Side};
use swiftwater_wire::{
    ConnectionId, ErrorCode, PacketType, PartialHeader, PlainFirstByte, ResetToken,
    TruncatedPacketNumber,
};

use crate::crypto::EncryptionLevel;
use crate::error::{ConnectionError, TransportError};
use crate::handshake::{Fit, OpenError, Protection};
use crate::observe::{Observation, Owner, Payload};
use crate::path::Address;
use crate::space::AckTiming;
use crate::transmit::{DatagramMeta, EcnCodepoint};

use super::Connection;
use super::transmit::MIN_INITIAL_SIZE;

/// Smallest datagram that can be a stateless reset (RFC 9000, section 10.3).
const MIN_RESET_SIZE: usize = 21;

/// Packets kept for keys that are not there yet, at most (RFC 9001, section 5.7).
const MAX_STASHED: usize = 10;

/// Bytes of these packets at most.
const MAX_STASHED_BYTES: usize = 16 << 10;

/// Packets that arrived before their keys.
#[derive(Debug, Default)]
pub(super) struct Stash {
    packets: Vec<(DatagramMeta, Vec<u8>)>,
    /// New keys arrived: try again.
    pub(super) retry: bool,
}

impl Stash {
    fn has_room(&self, len: usize) -> bool {
        let held: usize = self.packets.iter().map(|(_, packet)| packet.len()).sum();
        self.packets.len() < MAX_STASHED && held + len <= MAX_STASHED_BYTES
    }
}

/// A packet's number, and where its plaintext lies.
type Unprotected = (PacketNumber, std::ops::Range<usize>);

impl Stash {
    /// With packets that came before the connection did.
    pub(super) fn new(packets: Vec<(DatagramMeta, Vec<u8>)>) -> Self {
        Self {
            packets,
            retry: false,
        }
    }
}

/// Where a packet came from.
#[derive(Clone, Copy, Debug)]
pub(super) struct Origin<'a> {
    pub(super) address: &'a Address,
    pub(super) ecn: Option<EcnCodepoint>,
    /// Bytes of the whole datagram.
    pub(super) datagram_len: usize,
    /// The connection ID it was sent to.
    pub(super) dst_cid: ConnectionId,
}

impl Connection {
    /// Takes a datagram that the endpoint routed here. It is decrypted in place; afterwards its
    /// bytes mean nothing.
    pub fn handle_datagram(&mut self, now: Instant, meta: &DatagramMeta, datagram: &mut [u8]) {
        self.monitor.stats.datagrams_received += 1;
        self.monitor.stats.bytes_received += (datagram.len() as u64).into();
        self.monitor.in_hand = (datagram.len(), None);
        if self.ends_before(now) {
            return;
        }
        let from = meta.path();
        let known = self.on_bytes_from(&from, datagram.len());
        if !known {
            self.monitor.dropped(now, "from an unexpected address");
            return;
        }
        self.streams
            .on_rtt(now, self.paths.first().recovery.rtt().smoothed);
        // Decryption destroys the bytes that a stateless reset would end in.
        let tail = datagram.last_chunk().copied().map(ResetToken);
        let (len, opened) = (datagram.len(), self.monitor.stats.packets_received);
        self.handle_packets(now, meta, &from, datagram);
        if let Some(tail) = tail
            && len >= MIN_RESET_SIZE
            && self.monitor.stats.packets_received == opened
        {
            self.on_unopened(now, tail);
        }
        while std::mem::take(&mut self.stash.retry) {
            for (meta, mut packet) in std::mem::take(&mut self.stash.packets) {
                self.handle_packets(now, &meta, &meta.path(), &mut packet);
            }
        }
        self.drain_stream_control();
        self.emit_resets(now);
        self.emit_changes(now);
    }

    /// Counts the bytes for anti-amplification; false if nothing from there is wanted.
    fn on_bytes_from(&mut self, from: &Address, len: usize) -> bool {
        let path = &mut self.paths.first_mut().path;
        if path.on_datagram(from, len) {
            return true;
        }
        if self.identity.side.is_client() {
            // A server's address is fixed, apart from one that it prefers (RFC 9000, section 9).
            return path.knows_remote(from.remote);
        }
        // A client may move once the handshake is confirmed.
        self.handshake.is_confirmed()
            && (self.identity.config.migration || self.is_at_preferred_address(from))
    }

    fn handle_packets(
        &mut self,
        now: Instant,
        meta: &DatagramMeta,
        from: &Address,
        datagram: &mut [u8],
    ) {
        let datagram_len = datagram.len();
        let mut rest = datagram;
        let mut first_cid = None;
        while !rest.is_empty() {
            let cid_len = self.identity.cids.len();
            self.monitor.in_hand = (rest.len(), None);
            let Ok(header) = PartialHeader::parse(rest, cid_len) else {
                self.monitor.dropped(now, "malformed header");
                return;
            };
            self.monitor.in_hand = (header.packet_len, Some(header.packet_type));
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
                address: from,
                ecn: meta.ecn,
                datagram_len,
                dst_cid: header.dst_cid,
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
        packet: &mut [u8],
    ) {
        let level = match header.packet_type {
            PacketType::Initial => EncryptionLevel::Initial,
            PacketType::Handshake => EncryptionLevel::Handshake,
            PacketType::OneRtt => EncryptionLevel::OneRtt,
            PacketType::Retry => return self.on_retry(now, header, packet),
            PacketType::VersionNegotiation => {
                return self.on_version_negotiation(now, header, packet);
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
        if fit == Fit::Foreign {
            return self.monitor.dropped(now, "another version");
        }
        if level == EncryptionLevel::Initial
            && self.identity.side.is_server()
            && origin.datagram_len < MIN_INITIAL_SIZE
        {
            return self.monitor.dropped(now, "Initial in a small datagram");
        }
        if !self.can_open(level) || fit == Fit::Early {
            if level == EncryptionLevel::ZeroRtt
                && self.handshake.protection_ref().has(EncryptionLevel::OneRtt)
            {
                return self.on_early_data_refused(now);
            }
            // Keys that are gone never come back; keys that are not there yet may.
            if !self.handshake.is_complete()
                && level != EncryptionLevel::Initial
                && self.stash.has_room(packet.len())
            {
                self.stash.packets.push((*meta, packet.to_vec()));
                let size = packet.len();
                self.monitor
                    .observe(now, &Observation::PacketBuffered { level, size });
                if self.identity.side.is_client()
                    && !self
                        .handshake
                        .protection_ref()
                        .has(EncryptionLevel::Handshake)
                {
                    // The server went on, but its first packet is missing.
                    self.speed_up_handshake(now);
                }
            } else {
                self.monitor.dropped(now, "no keys");
            }
            return;
        }
        if level != EncryptionLevel::OneRtt && !self.accepts_source(header) {
            return self.monitor.dropped(now, "another source connection ID");
        }
        if self.identity.side.is_client() && !header.token.is_empty() {
            // RFC 9000, section 17.2.2.
            return self
                .monitor
                .dropped(now, "Initial of a server with a token");
        }
        let opened = match fit {
            Fit::Other => self.unprotect_other(now, header, packet),
            _ => self.unprotect(now, level, header, packet),
        };
        match opened {
            Ok(Some((number, payload))) => {
                let size = packet.len();
                if let Err(error) =
                    self.on_packet(now, level, origin, header, number, &packet[payload], size)
                {
                    self.fail(now, error);
                }
            }
            Ok(None) => {}
            Err(error) => self.fail(now, error),
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
        self.handshake.protection_ref().has(level)
            && (level != EncryptionLevel::OneRtt || self.handshake.is_complete())
    }

    /// A peer keeps its first source connection ID through the handshake (RFC 9000, section 7.2).
    fn accepts_source(&self, header: &PartialHeader) -> bool {
        self.identity
            .peer_handshake_cid
            .is_none_or(|cid| cid == header.src_cid)
    }

    /// Removes the protection of an Initial packet of another version than the current one. A client
    /// learns from it which version the server has chosen (RFC 9369, section 4.1).
    fn unprotect_other(
        &mut self,
        now: Instant,
        header: &PartialHeader,
        packet: &mut [u8],
    ) -> Result<Option<Unprotected>, TransportError> {
        self.handshake.exchange_initial(header.version);
        let opened = self.unprotect(now, EncryptionLevel::Initial, header, packet);
        if matches!(opened, Ok(Some(_))) && self.identity.side.is_client() {
            self.handshake.follow_server(header.version)?;
            // Handshake packets of that version may have come first.
            self.stash.retry = true;
        } else {
            self.handshake.exchange_initial(self.handshake.version());
        }
        opened
    }

    /// Removes protection; `None` if the packet is to be dropped. Returns its number and where its
    /// plaintext lies.
    fn unprotect(
        &mut self,
        now: Instant,
        level: EncryptionLevel,
        header: &PartialHeader,
        packet: &mut [u8],
    ) -> Result<Option<Unprotected>, TransportError> {
        if !self
            .handshake
            .protection_awake()
            .unprotect_header(level, header.pn_offset, packet)
        {
            self.monitor.dropped(now, "too short");
            return Ok(None);
        }
        let first = PlainFirstByte(packet[0]);
        let pn_len = first.packet_number_len();
        let header_len = header.pn_offset + pn_len;
        let value = packet[header.pn_offset..header_len]
            .iter()
            .fold(0, |value, &byte| (value << 8) | u32::from(byte));
        let Some(space) = self.space(level) else {
            return Ok(None);
        };
        let number = TruncatedPacketNumber { value, len: pn_len }.expand(space.received.largest());
        let is_duplicate = space.received.is_duplicate(number);
        let (head, payload) = packet.split_at_mut(header_len);
        let opened = self.handshake.protection().open(
            level,
            PathId::ZERO,
            number,
            first.key_phase(),
            head,
            payload,
        );
        let opened = match opened {
            Ok(opened) => opened,
            Err(OpenError::Inauthentic | OpenError::NoKeys) => {
                self.monitor.dropped(now, "failed authentication");
                return Ok(None);
            }
            Err(OpenError::KeyUpdate) => {
                return Err(TransportError::new(
                    ErrorCode::KEY_UPDATE_ERROR,
                    "a key update out of turn",
                ));
            }
            Err(OpenError::IntegrityLimit) => {
                return Err(TransportError::new(
                    ErrorCode::AEAD_LIMIT_REACHED,
                    "too many packets failed authentication",
                ));
            }
        };
        // Not before: whoever guesses packet numbers must learn nothing from how long an answer takes
        // (RFC 9001, section 9.5).
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
        if opened.key_updated {
            let retain = Protection::retention(self.pto());
            let generation = self.handshake.update_keys(Some((number, now + retain)));
            let initiator = Owner::Remote;
            let observation = Observation::KeyUpdated {
                generation,
                initiator,
            };
            self.monitor.observe(now, &observation);
        } else if opened.phase_confirmed {
            let retain = Protection::retention(self.pto());
            self.handshake.protection().confirm_phase(now + retain);
        }
        Ok(Some((number, header_len..header_len + opened.len)))
    }

    /// No packet of a datagram could be opened: noise, or a stateless reset, whatever the header
    /// looks like (RFC 9000, section 10.3.1).
    fn on_unopened(&mut self, now: Instant, tail: ResetToken) {
        if self.paths.first().path.remote_cids.is_reset_token(&tail) {
            self.start_draining(now, ConnectionError::Reset);
        }
    }

    /// An authenticated packet.
    #[allow(
        clippy::too_many_arguments,
        reason = "each names one property of the packet"
    )]
    fn on_packet(
        &mut self,
        now: Instant,
        level: EncryptionLevel,
        origin: &Origin<'_>,
        header: &PartialHeader,
        number: PacketNumber,
        payload: &[u8],
        size: usize,
    ) -> Result<(), TransportError> {
        self.monitor.stats.packets_received += 1.into();
        self.lifecycle.on_received(now);
        self.monitor.observe(
            now,
            &Observation::PacketReceived {
                path: PathId::ZERO,
                level,
                number,
                size,
                payload: Payload::new(payload),
            },
        );
        match (self.identity.side, level) {
            (Side::Client, EncryptionLevel::Initial)
                if self.identity.peer_handshake_cid.is_none() =>
            {
                self.identity.peer_handshake_cid = Some(header.src_cid);
                self.paths
                    .first_mut()
                    .path
                    .remote_cids
                    .set_handshake_cid(header.src_cid);
            }
            (Side::Server, EncryptionLevel::Handshake) => {
                // The client has our Handshake keys, so it received what we sent to its address.
                self.paths.first_mut().path.amplification.set_validated();
                self.discard(EncryptionLevel::Initial);
            }
            _ => {}
        }
        let content = self.on_payload(now, level, origin, payload)?;
        let newest = self.record(now, level, origin, number, content.ack_eliciting);
        if !self.lifecycle.is_open() {
            // Nobody follows a peer that has said goodbye.
            return Ok(());
        }
        if level == EncryptionLevel::OneRtt {
            self.on_first_one_rtt_packet(now);
        }
        if level == EncryptionLevel::OneRtt {
            let path = &mut self.paths.first_mut().path;
            let is_here = origin.address.matches(&path.address);
            if is_here && newest {
                path.spin.on_newest(header.spin);
            }
            if !is_here && newest && !content.only_probing {
                self.follow_peer(now, origin);
            } else {
                self.note_reached(origin);
            }
        }
        Ok(())
    }

    /// Notes the packet for acknowledgement; true if it has the largest number so far.
    fn record(
        &mut self,
        now: Instant,
        level: EncryptionLevel,
        origin: &Origin<'_>,
        number: PacketNumber,
        ack_eliciting: bool,
    ) -> bool {
        let granted = &self.policies.ack_granted;
        let (max_ack_delay, wish) = (
            granted.max_ack_delay(self.identity.config.max_ack_delay),
            granted.wish(),
        );
        let entry = self.paths.first_mut();
        let received = match level {
            EncryptionLevel::OneRtt | EncryptionLevel::ZeroRtt => &mut entry.space.received,
            early => match &mut self.early[early as usize] {
                Some(space) => &mut space.received,
                None => return false,
            },
        };
        let newest = received.largest().is_none_or(|largest| number > largest);
        let smoothed_rtt = entry.recovery.rtt().smoothed;
        let timing = match level {
            EncryptionLevel::OneRtt | EncryptionLevel::ZeroRtt => Some(AckTiming {
                policy: &mut *self.policies.ack,
                max_ack_delay,
                smoothed_rtt,
                wish,
            }),
            EncryptionLevel::Initial | EncryptionLevel::Handshake => None,
        };
        received.on_packet(now, number, ack_eliciting, origin.ecn, timing);
        newest
    }

    /// After the end only a close from the peer still counts.
    fn handle_packet_after_close(
        &mut self,
        now: Instant,
        origin: &Origin<'_>,
        header: &PartialHeader,
        packet: &mut [u8],
    ) {
        self.on_datagram_after_close();
        let level = match header.packet_type {
            PacketType::Initial => EncryptionLevel::Initial,
            PacketType::Handshake => EncryptionLevel::Handshake,
            PacketType::OneRtt => EncryptionLevel::OneRtt,
            _ => return,
        };
        let is_ours =
            level == EncryptionLevel::OneRtt || header.version == self.handshake.version();
        if is_ours
            && self.can_open(level)
            && let Ok(Some((_, payload))) = self.unprotect(now, level, header, packet)
        {
            self.on_payload_after_close(now, origin, &packet[payload]);
        }
    }
}
