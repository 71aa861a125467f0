//! Datagrams in: coalesced packets, each opened and then processed (RFC 9000, section 12.2).
//!
//! `reception` removes packet protection.

use swiftwater_units::{Instant, PathId};
use swiftwater_wire::{PacketType, PartialHeader, ResetToken};

use crate::crypto::EncryptionLevel;
use crate::datagram_size::MIN_STATELESS_RESET;
use crate::error::{ConnectionError, TransportError};
use crate::lifecycle::Termination;
use crate::monitor::CurrentPacket;
use crate::path::{Address, Role};
use crate::reception::{OpenedPacket, Origin, ProtectedPacket, Received, Reception};
use crate::transmit::DatagramMeta;

use super::Connection;
use super::frames::Content;
use super::migration::arrival;

impl Connection {
    /// Takes a datagram that the endpoint routed here. It is decrypted in place; afterwards its
    /// bytes mean nothing.
    pub fn handle_datagram(&mut self, now: Instant, meta: &DatagramMeta, datagram: &mut [u8]) {
        self.handle_tagged_datagram(now, meta, None, datagram);
    }

    /// As [`Connection::handle_datagram`], for a datagram of which the driver knows a number, such as that which a
    /// tunnel gave it. The feedback policy is told which packets it held
    /// ([`FeedbackPolicy::on_packet_received`](crate::policy::FeedbackPolicy::on_packet_received)); nothing else
    /// depends on it.
    pub fn handle_tagged_datagram(
        &mut self,
        now: Instant,
        meta: &DatagramMeta,
        tag: Option<u64>,
        datagram: &mut [u8],
    ) {
        if let Some(feedback) = self.policies.feedback.as_deref_mut() {
            feedback.set_arriving_tag(tag);
        }
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
            && self.paths.is_reset_token(&tail)
        {
            // No packet could be opened: noise, or a stateless reset, whatever the header looks like
            // (RFC 9000, section 10.3.1).
            let reason = ConnectionError::Reset;
            self.terminate(now, Termination::Draining { reason });
        }
        while let Some(packets) = self.establishment.buffered.take_retry() {
            for mut buffered in packets {
                let received_at = buffered.received_at.unwrap_or(now);
                self.handle_packets(now, received_at, &buffered.meta, &mut buffered.packet);
            }
        }
        self.announce_path_changes(now);
        self.streams.drain_control(&mut self.control);
        self.report_data_events(now);
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
            return paths.any(|path| path.network.includes_remote(from.remote));
        }
        // A client may move once the handshake is confirmed.
        self.handshake.is_confirmed()
            && (self.identity.config.migration || self.identity.is_at_preferred_address(from))
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
        let mut dst_cid = None;
        while !rest.is_empty() {
            let Some(header) = self.reception(now).next_header(rest, &mut dst_cid) else {
                return;
            };
            let (bytes, tail) = rest.split_at_mut(header.packet_len);
            let Some((path, is_new)) = self.path_of_packet(now, &header, &from, datagram_len)
            else {
                self.monitor.dropped(now, "for no path that is open");
                rest = tail;
                continue;
            };
            let origin = Origin {
                address: &from,
                ecn: meta.ecn,
                datagram_len,
                dst_cid: header.dst_cid,
                path,
                opens_path: is_new,
                received_at,
            };
            if !self.lifecycle.is_open() {
                return self.handle_packet_after_close(now, &origin, &header, bytes);
            }
            self.handle_packet(now, meta, &origin, &header, bytes);
            if is_new
                && self
                    .paths
                    .get(path)
                    .is_some_and(|path| path.last_received.is_none())
            {
                self.path_management(now).take_back_path(path);
            }
            rest = tail;
        }
    }

    /// The path that a packet belongs to, and whether the packet opens it.
    #[inline]
    fn path_of_packet(
        &mut self,
        now: Instant,
        header: &PartialHeader,
        from: &Address,
        datagram_len: usize,
    ) -> Option<(PathId, bool)> {
        if let Some(path) = self.paths.path_of(&header.dst_cid) {
            return Some((path, false));
        }
        if header.packet_type != PacketType::OneRtt {
            return Some((self.paths.initial().id, false));
        }
        let opened = self
            .path_management(now)
            .open_path_of(from, &header.dst_cid, datagram_len)?;
        Some((opened, true))
    }

    fn handle_packet(
        &mut self,
        now: Instant,
        meta: &DatagramMeta,
        origin: &Origin<'_>,
        header: &PartialHeader,
        bytes: &mut [u8],
    ) {
        let Some(level) = protection_level(header.packet_type) else {
            return self.on_unprotected_packet(now, header, bytes);
        };
        let mut packet = ProtectedPacket {
            level,
            header,
            bytes,
        };
        let outcome = match self.reception(now).receive(meta, origin, &mut packet) {
            Ok(Received::Opened(opened)) => {
                self.on_packet(now, origin, header, &opened, packet.bytes)
            }
            Ok(Received::Buffered {
                misses_initial: true,
            }) => {
                let (mut fates, buffers) = self.fates(now);
                fates.speed_up_handshake(&mut buffers.loss);
                Ok(())
            }
            Ok(Received::Buffered { .. } | Received::Dropped) => Ok(()),
            Err(error) => Err(error),
        };
        if let Err(error) = outcome {
            self.fail(now, error);
        }
    }

    /// A packet that was opened.
    fn on_packet(
        &mut self,
        now: Instant,
        origin: &Origin<'_>,
        header: &PartialHeader,
        packet: &OpenedPacket,
        bytes: &[u8],
    ) -> Result<(), TransportError> {
        let payload = &bytes[packet.payload.clone()];
        if origin.opens_path {
            self.path_management(now).observe_opened(origin.path);
        }
        self.lifecycle.on_received(now);
        self.datagrams.on_packet(origin.path, packet.number);
        if packet.level == EncryptionLevel::OneRtt
            && let Some(feedback) = self.policies.feedback.as_deref_mut()
        {
            feedback.on_packet_received(now, origin.path, packet.number);
        }
        self.reception(now)
            .on_opened(origin, header, packet, payload);
        let content = self.on_payload(now, packet.level, origin, payload)?;
        let is_open = self.lifecycle.is_open();
        let mut reception = self.reception(now);
        let newest = reception.record(packet, origin, content.ack_eliciting);
        // A peer that has closed is followed no more.
        if is_open && packet.level == EncryptionLevel::OneRtt {
            reception.expire_early_data_keys();
            self.update_address(now, origin, header, newest, content);
        }
        Ok(())
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
        let is_in_use = origin.address.matches(&path.network.address);
        if is_in_use {
            // What the peer uses there distinguishes a deliberate change of path from a NAT rebinding.
            path.cids.last_dst_cid = origin.dst_cid;
            if newest {
                path.network.spin.on_newest(header.spin);
            }
        }
        let has_unanswered = path.network.candidates.in_role(Role::Unanswered).is_some();
        if newest && !content.only_probing && (!is_in_use || has_unanswered) {
            let packet = arrival(origin);
            self.with_migration(now, origin.path, |migration| migration.follow_peer(&packet));
        }
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
        let Some(level) = protection_level(header.packet_type) else {
            return;
        };
        let mut packet = ProtectedPacket {
            level,
            header,
            bytes,
        };
        if let Some(payload) = self.reception(now).receive_after_close(origin, &mut packet) {
            self.on_payload_after_close(now, &packet.bytes[payload]);
        }
    }

    /// What removes packet protection.
    #[inline]
    fn reception(&mut self, now: Instant) -> Reception<'_> {
        Reception {
            now,
            identity: &mut self.identity,
            handshake: &mut self.handshake,
            establishment: &mut self.establishment,
            paths: &mut self.paths,
            policies: &mut self.policies,
            monitor: &mut self.monitor,
        }
    }
}

/// The encryption level of a packet; `None` for Retry and Version Negotiation, which have no packet protection
/// (RFC 9001, section 5).
fn protection_level(packet_type: PacketType) -> Option<EncryptionLevel> {
    match packet_type {
        PacketType::Initial => Some(EncryptionLevel::Initial),
        PacketType::Handshake => Some(EncryptionLevel::Handshake),
        PacketType::ZeroRtt => Some(EncryptionLevel::ZeroRtt),
        PacketType::OneRtt => Some(EncryptionLevel::OneRtt),
        PacketType::Retry | PacketType::VersionNegotiation => None,
    }
}
