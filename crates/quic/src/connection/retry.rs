//! Retry and Version Negotiation as a client sees them (RFC 9000, sections 6 and 17.2.5).

use swiftwater_units::Instant;
use swiftwater_wire::PartialHeader;

use crate::crypto::Epoch;
use crate::error::ConnectionError;

use super::Connection;

impl Connection {
    /// True before anything but a Retry arrived from the server.
    fn awaits_first_packet(&self) -> bool {
        self.identity.side.is_client() && self.identity.peer_handshake_cid.is_none()
    }

    /// A Retry: go on with its token and its source connection ID, once.
    pub(super) fn on_retry(&mut self, now: Instant, header: &PartialHeader, packet: &[u8]) {
        let used = self.paths.first().path.remote_cids.current();
        if !self.awaits_first_packet()
            || self.identity.retry_src_cid.is_some()
            || header.version != self.identity.version
            || header.src_cid == used
            || header.token.is_empty()
            || !self
                .handshake
                .retry_is_authentic(&self.identity.original_dst_cid, packet)
        {
            return self.monitor.dropped(now, "unexpected or inauthentic Retry");
        }
        self.identity.retry_src_cid = Some(header.src_cid);
        self.identity.token = packet[header.token.clone()].to_vec();
        self.lifecycle.on_received(now);
        self.handshake.restart(&header.src_cid);
        let entry = self.paths.first_mut();
        entry.path.remote_cids.set_handshake_cid(header.src_cid);
        if let Some(space) = &mut self.early[Epoch::Initial as usize] {
            // Packet numbers go on (section 17.2.5.3); what was sent will not be acknowledged.
            let bytes = space.ledger.abandon(&mut self.scratch.numbers);
            self.scratch.numbers.clear();
            entry.recovery.on_discard(bytes);
            entry.recovery.reset_pto_count();
            space.loss_time = None;
            space.probes = 0;
        }
    }

    /// A Version Negotiation packet: the end, unless it is a forgery that lists our version.
    pub(super) fn on_version_negotiation(
        &mut self,
        now: Instant,
        header: &PartialHeader,
        packet: &[u8],
    ) {
        let version = self.identity.version;
        let path = &self.paths.first().path;
        if !self.awaits_first_packet()
            || self.identity.retry_src_cid.is_some()
            || header.src_cid != path.remote_cids.current()
            || header
                .supported_versions(packet)
                .any(|offered| offered == version)
        {
            return self.monitor.dropped(now, "unexpected Version Negotiation");
        }
        self.vanish(now, ConnectionError::VersionMismatch);
    }
}
