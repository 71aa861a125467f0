//! Retry and Version Negotiation as a client sees them (RFC 9000, sections 6 and 17.2.5; RFC
//! 9368).

use swiftwater_units::Instant;
use swiftwater_wire::{PacketType, PartialHeader};

use crate::cid::random_cid;
use crate::endpoint::FIRST_DST_CID_LEN;
use crate::error::{ConnectionError, TransportError};
use crate::handshake::Restart;
use crate::observe::Observation;
use crate::space::SpaceId;

use super::Connection;
use crate::identity::Start;

impl Connection {
    /// What a client knows of the start, before anything from the server has arrived that counts.
    fn before_first_packet(&self) -> Option<&Start> {
        let identity = &self.identity;
        let is_first = identity.side.is_client() && identity.peer_handshake_cid.is_none();
        let start = identity.start.as_deref().filter(|_| is_first);
        start.filter(|start| start.retry_src_cid.is_none())
    }

    /// A packet without packet protection: a Retry or a Version Negotiation packet.
    pub(super) fn on_unprotected_packet(
        &mut self,
        now: Instant,
        header: &PartialHeader,
        packet: &[u8],
    ) {
        if header.packet_type == PacketType::Retry {
            self.on_retry(now, header, packet);
        } else {
            self.on_version_negotiation(now, header, packet);
        }
    }

    /// A Retry: go on with its token and its source connection ID, once.
    fn on_retry(&mut self, now: Instant, header: &PartialHeader, packet: &[u8]) {
        let used = self.paths.initial().cids.remote.current();
        let start = self.before_first_packet();
        let original_dst_cid = start.map(|start| start.original_dst_cid);
        let is_good = original_dst_cid.is_some_and(|original_dst_cid| {
            header.version == self.handshake.version()
                && header.src_cid != used
                && !header.token.is_empty()
                && (self.handshake).retry_is_authentic(&original_dst_cid, packet)
        });
        if !is_good {
            return self.monitor.dropped(now, "unexpected or inauthentic Retry");
        }
        let (size, src_cid) = (packet.len(), header.src_cid);
        self.monitor
            .observe(now, &Observation::Retry { size, src_cid });
        if let Some(start) = &mut self.identity.start {
            start.retry_src_cid = Some(header.src_cid);
            start.token = packet[header.token.clone()].to_vec();
        }
        self.lifecycle.on_received(now);
        self.handshake.restart(header.src_cid);
        let path = self.paths.initial_mut();
        path.cids.remote.set_handshake_cid(header.src_cid);
        self.abandon_first_flight();
        self.repeat_early_data(now);
    }

    /// What was sent will not be acknowledged. Packet numbers go on (section 17.2.5.3).
    fn abandon_first_flight(&mut self) {
        let numbers = &mut self.workspace.buffers.need().loss.rising;
        if let Some(detection) = self.paths.loss_detection(SpaceId::Initial) {
            let bytes = detection.space.ledger.abandon(numbers);
            numbers.clear();
            detection.recovery.on_discard(bytes);
            detection.recovery.reset_pto_count();
            detection.space.loss_time = None;
            detection.space.probes = 0;
        }
    }

    /// A Version Negotiation packet: begin again in another version, or give up (RFC 9368, section 2.1),
    /// unless it is a forgery that lists our version.
    fn on_version_negotiation(&mut self, now: Instant, header: &PartialHeader, packet: &[u8]) {
        let is_first = self.before_first_packet().is_some();
        let path = self.paths.initial();
        let answers_us = is_first
            && header.src_cid == path.cids.remote.current()
            && header.dst_cid == path.cids.local.first();
        let restart = if answers_us {
            let offered: Vec<u32> = header.supported_versions(packet).collect();
            let restart = self.handshake.on_version_negotiation(&offered);
            if restart != Restart::Ignored {
                let versions = &offered;
                self.monitor
                    .observe(now, &Observation::VersionsOffered { versions });
            }
            restart
        } else {
            Restart::Ignored
        };
        match restart {
            Restart::Ignored => self.monitor.dropped(now, "unexpected Version Negotiation"),
            Restart::Impossible => self.close_silently(now, ConnectionError::VersionMismatch),
            Restart::With(version) => {
                self.monitor
                    .observe(now, &Observation::VersionTried { version });
                if let Err(error) = self.begin_again(now, version) {
                    self.fail(now, error);
                }
            }
        }
    }

    /// Sends a first flight of `version` to a server that doesn't speak the first one. To the server it
    /// is a new connection, hence another random destination and no token: tokens belong to a version
    /// (RFC 9369, section 5).
    fn begin_again(&mut self, now: Instant, version: u32) -> Result<(), TransportError> {
        self.lifecycle.on_received(now);
        self.abandon_first_flight();
        let first_dst = random_cid(&mut self.identity.random.generator, FIRST_DST_CID_LEN);
        if let Some(start) = &mut self.identity.start {
            start.original_dst_cid = first_dst;
            start.token = Vec::new();
        }
        let path = self.paths.initial_mut();
        path.cids.remote.set_handshake_cid(first_dst);
        self.handshake.restart_in(version, first_dst)?;
        self.withdraw_early_data(now);
        Ok(())
    }
}
