//! Several paths in one connection (RFC 10069; text of draft-ietf-quic-multipath-21).
//!
//! Here is what a connection has only if multipath was negotiated: which path identifiers there may be
//! (`path_ids`), the status that both ends announce (`path_records`), the end of paths (`closing`), the path
//! that carries acknowledgements (`ack_path`), coupled congestion control (`coupled_control`), and what depends
//! on the version of the extension (`version`). The paths themselves, and the connection IDs of those that may
//! be opened, are in `path::PathSet`; `connection::multipath` has the calls of the application
//! and the frames.

mod ack_path;
mod closing;
mod coupled_control;
mod path_ids;
mod path_records;
mod version;

pub(crate) use self::closing::Closing;
pub(crate) use self::version::{
    AckRoute, abandon_code, agreed, has_blocked_frames, violation_code,
};

use swiftwater_wire::{MultipathVersion, TransportParameters};

use crate::config::MultipathConfig;
use crate::idle_memory::IdleMemory;
use crate::stats::PathStats;

use self::ack_path::AckPath;
use self::coupled_control::CoupledControl;
use self::path_ids::PathIds;
use self::path_records::PathRecords;

/// Paths that are over whose statistics are kept.
const MAX_ENDED: usize = 16;

/// Limits of the peer that hold on each path (RFC 9000, section 18.2).
#[derive(Clone, Copy, Debug)]
pub(crate) struct PeerLimits {
    /// `active_connection_id_limit`.
    pub(crate) active_connection_ids: u64,
    /// `max_udp_payload_size`, bytes.
    pub(crate) udp_payload_size: u64,
}

/// The state of multipath of one connection.
#[derive(Debug)]
pub(crate) struct Multipath {
    pub(crate) version: MultipathVersion,
    pub(crate) ids: PathIds,
    pub(crate) records: PathRecords,
    pub(crate) ack_path: AckPath,
    pub(crate) coupled_control: CoupledControl,
    /// What each path starts from.
    pub(crate) peer_limits: PeerLimits,
    /// The application knows that another path can be opened.
    pub(crate) has_reported_available: bool,
    /// The last paths that are over.
    pub(crate) ended: Vec<PathStats>,
}

impl Multipath {
    /// Both ends have declared `initial_max_path_id` of `version`; `peer` are all of the peer's parameters.
    pub(crate) fn new(
        config: &MultipathConfig,
        version: MultipathVersion,
        remote_max: u32,
        peer: &TransportParameters,
    ) -> Self {
        Self {
            version,
            ids: PathIds::new(version, config.initial_max_path_id(), remote_max),
            records: PathRecords::default(),
            ack_path: AckPath::default(),
            coupled_control: CoupledControl::new(config.coupling),
            peer_limits: PeerLimits {
                active_connection_ids: peer.active_connection_id_limit,
                udp_payload_size: peer.max_udp_payload_size,
            },
            has_reported_available: false,
            ended: Vec::new(),
        }
    }

    /// Which paths carry acknowledgements.
    pub(crate) fn ack_route(&self) -> AckRoute {
        AckRoute::new(self.version, &self.ack_path)
    }

    /// A path is over: keeps what it did, and forgets the oldest of too many.
    pub(crate) fn keep_ended(&mut self, path: PathStats) {
        if self.ended.len() == MAX_ENDED {
            self.ended.remove(0);
        }
        self.ended.push(path);
    }
}

impl IdleMemory for Multipath {
    fn release_idle_memory(&mut self) {
        let Self {
            version: _,
            ids: _,
            records,
            ack_path: _,
            coupled_control: _,
            peer_limits: _,
            has_reported_available: _,
            ended,
        } = self;
        ended.shrink_to_fit();
        records.release_idle_memory();
    }
}
