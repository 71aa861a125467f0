//! What Retry and Version Negotiation make of a client's first flight (RFC 9000, sections 6 and 17.2.5; RFC
//! 9368).

use swiftwater_units::Instant;
use swiftwater_wire::{ConnectionId, PacketType, PartialHeader};

use crate::cid::{FIRST_DST_CID_LEN, random_cid};
use crate::error::TransportError;
use crate::handshake::{Handshake, Restart};
use crate::identity::{Identity, Start};
use crate::lifecycle::Lifecycle;
use crate::monitor::Monitor;
use crate::observe::Observation;
use crate::path::PathSet;
use crate::space::SpaceId;

/// What a packet without packet protection amounts to.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum ServerAnswer {
    /// It is dropped, which is counted and observed already.
    Dropped,
    /// A Retry: the first flight is sent again with its token. The server has dropped early data, too.
    Retry,
    /// A first flight of another version is sent. Early data are of no use there.
    OtherVersion,
    /// The server supports none of this end's versions.
    NoCommonVersion,
}

/// The parts of a connection that its first flight depends on.
pub(crate) struct FirstFlight<'a> {
    pub(crate) now: Instant,
    pub(crate) identity: &'a mut Identity,
    pub(crate) handshake: &'a mut Handshake,
    pub(crate) paths: &'a mut PathSet,
    pub(crate) lifecycle: &'a mut Lifecycle,
    pub(crate) monitor: &'a mut Monitor,
}

impl FirstFlight<'_> {
    /// A Retry or a Version Negotiation packet arrived.
    ///
    /// # Errors
    ///
    /// No TLS session can be started in the version that is to be tried next.
    pub(crate) fn on_answer(
        &mut self,
        header: &PartialHeader,
        packet: &[u8],
    ) -> Result<ServerAnswer, TransportError> {
        if header.packet_type == PacketType::Retry {
            Ok(self.on_retry(header, packet))
        } else {
            self.on_version_negotiation(header, packet)
        }
    }

    /// How a client started, while no authenticated packet and no Retry of the server has arrived.
    fn before_first_packet(&self) -> Option<&Start> {
        let identity = &*self.identity;
        let is_first = identity.side.is_client() && identity.peer_handshake_cid.is_none();
        let start = identity.start.as_deref().filter(|_| is_first);
        start.filter(|start| start.retry_src_cid.is_none())
    }

    /// A Retry: go on with its token and its source connection ID, once.
    fn on_retry(&mut self, header: &PartialHeader, packet: &[u8]) -> ServerAnswer {
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
            return self.dropped("unexpected or inauthentic Retry");
        }
        let (size, src_cid) = (packet.len(), header.src_cid);
        self.monitor
            .observe(self.now, &Observation::Retry { size, src_cid });
        if let Some(start) = &mut self.identity.start {
            start.retry_src_cid = Some(src_cid);
            start.token = packet[header.token.clone()].to_vec();
        }
        self.lifecycle.on_received(self.now);
        self.handshake.restart(src_cid);
        self.set_destination(src_cid);
        self.abandon();
        ServerAnswer::Retry
    }

    /// A Version Negotiation packet: restart in another version, or close (RFC 9368, section 2.1),
    /// unless it is a forgery that lists the version in use.
    fn on_version_negotiation(
        &mut self,
        header: &PartialHeader,
        packet: &[u8],
    ) -> Result<ServerAnswer, TransportError> {
        let is_first = self.before_first_packet().is_some();
        let path = self.paths.initial();
        let answers_this_end = is_first
            && header.src_cid == path.cids.remote.current()
            && header.dst_cid == path.cids.local.first();
        let restart = if answers_this_end {
            let offered: Vec<u32> = header.supported_versions(packet).collect();
            let restart = self.handshake.on_version_negotiation(&offered);
            if restart != Restart::Ignored {
                let versions = &offered;
                self.monitor
                    .observe(self.now, &Observation::VersionsOffered { versions });
            }
            restart
        } else {
            Restart::Ignored
        };
        match restart {
            Restart::Ignored => Ok(self.dropped("unexpected Version Negotiation")),
            Restart::Impossible => Ok(ServerAnswer::NoCommonVersion),
            Restart::With(version) => {
                self.monitor
                    .observe(self.now, &Observation::VersionTried { version });
                self.restart_in_version(version)?;
                Ok(ServerAnswer::OtherVersion)
            }
        }
    }

    /// Sends a first flight of `version` to a server that doesn't support the first one. To the server it
    /// is a new connection, hence another random destination and no token: tokens belong to a version
    /// (RFC 9369, section 5).
    fn restart_in_version(&mut self, version: u32) -> Result<(), TransportError> {
        self.lifecycle.on_received(self.now);
        self.abandon();
        let first_dst = random_cid(&mut self.identity.random.generator, FIRST_DST_CID_LEN);
        if let Some(start) = &mut self.identity.start {
            start.original_dst_cid = first_dst;
            start.token = Vec::new();
        }
        self.set_destination(first_dst);
        self.handshake.restart_in(version, first_dst)
    }

    /// What was sent will not be acknowledged. Packet numbers go on (RFC 9000, section 17.2.5.3).
    fn abandon(&mut self) {
        if !self.paths.abandon(SpaceId::Initial, &mut Vec::new()) {
            return;
        }
        self.paths.initial_mut().recovery.reset_pto_count();
        if let Some(space) = self.paths.space_mut(SpaceId::Initial) {
            space.loss_time = None;
            space.probes = 0;
        }
    }

    fn set_destination(&mut self, cid: ConnectionId) {
        self.paths.initial_mut().cids.remote.set_handshake_cid(cid);
    }

    fn dropped(&mut self, reason: &'static str) -> ServerAnswer {
        self.monitor.dropped(self.now, reason);
        ServerAnswer::Dropped
    }
}
