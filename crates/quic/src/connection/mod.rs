//! One connection: owner of its parts, and router of facts between them (RFC 9000, 9001, 9002).
//!
//! It decides nothing that a part can decide. Its submodules are the entry points: `receive` for coalesced
//! packets, `frames` for the dispatch of frames to their owners, `acks` for ACK frames and the loss timer,
//! `transmit` for sending, `timers` and `lifecycle` for deadlines and the end, `migration` for changes of
//! address, `multipath` and `path_closing` for further paths, `application` for calls of the application.
//! They borrow its parts for the contexts that do the work, which lie beside this module: `reception`
//! (packet protection), `transmission` (building packets), `fates` (what became of sent packets),
//! `migration` and `establishment`.

mod acks;
mod application;
mod feedback;
mod frames;
mod handshake_progress;
mod idle_memory;
mod lifecycle;
mod migration;
mod mtu;
mod multipath;
mod path_closing;
mod rate_control;
mod receive;
mod retry;
mod timers;
mod transmit;
mod zero_rtt;

use swiftwater_units::{Instant, PathId};
use swiftwater_wire::TransportParameters;

use crate::connection_setup::ConnectionSetup;
use crate::control::Control;
use crate::datagrams::Datagrams;
use crate::fates::Fates;
use crate::handshake::Handshake;
use crate::multipath::Multipath;
use crate::path::{Amplification, LocalCids, NewPath, PathSet, PathState, RemoteCids};
use crate::streams::Streams;
use crate::transmission::Transmission;
#[cfg(test)]
use crate::{crypto::EncryptionLevel, space::SpaceId};

use crate::buffers::{Buffers, Workspace};
use crate::establishment::Establishment;
use crate::identity::{HandshakeAddress, Identity, Start};
use crate::lifecycle::Lifecycle;
use crate::monitor::{Beginning, Monitor};
use crate::outbox::Outbox;
use crate::policy::PathPhase;
use crate::policy_host::PolicyHost;
use crate::random::Random;

/// The path of the handshake (draft-ietf-quic-multipath-21: path ID 0).
const INITIAL_PATH: PathId = PathId::ZERO;

/// A QUIC connection, sans-I/O. See the crate documentation for the driving contract.
#[derive(Debug)]
pub struct Connection {
    identity: Identity,
    handshake: Handshake,
    establishment: Establishment,
    paths: PathSet,
    /// `None` unless both ends have declared it.
    multipath: Option<Box<Multipath>>,
    streams: Streams,
    control: Control,
    datagrams: Datagrams,
    policies: PolicyHost,
    lifecycle: Lifecycle,
    outbox: Outbox,
    monitor: Monitor,
    workspace: Box<Workspace>,
}

impl Connection {
    /// A connection as the endpoint set it up; a client's first flight is ready to be sent.
    pub(crate) fn new(now: Instant, setup: ConnectionSetup) -> Self {
        let mut random = Random::new(setup.rng.clone());
        let path = initial_path(now, &setup, &mut random);
        let (config, side) = (setup.transport, setup.side);
        let (versions, parameters) = (setup.opening.versions.clone(), setup.opening.parameters);
        let observer = config.observer.as_ref();
        let observer = observer.and_then(|make| make.observer(side));
        let mut connection = Self {
            handshake: Handshake::new(
                side,
                setup.version,
                setup.opening,
                setup.session,
                setup.primitives,
                (setup.initial_keys_cid, setup.initial_keys),
            ),
            establishment: Establishment::new(&config, setup.early_packets),
            paths: PathSet::new(path),
            multipath: None,
            streams: Streams::new(side, &config),
            control: Control::default(),
            datagrams: Datagrams::new(
                config.datagram_queue.get(),
                config.max_datagram_frame_size,
                config.starvation_share,
            ),
            policies: PolicyHost::new(&config),
            lifecycle: Lifecycle::new(now),
            outbox: Outbox::default(),
            monitor: Monitor::new(observer),
            workspace: Box::default(),
            identity: Identity {
                side,
                config,
                key: setup.key,
                cids: setup.cids,
                random,
                peer_handshake_cid: side.is_server().then_some(setup.remote_cid),
                handshake_address: HandshakeAddress::of(
                    side,
                    &setup.address,
                    setup.preferred_cid.is_some(),
                ),
                token_ip: (setup.issues_tokens).then(|| setup.address.remote.ip()),
                start: Some(Box::new(Start {
                    original_dst_cid: setup.original_dst_cid,
                    retry_src_cid: setup.retry_src_cid,
                    token: setup.token,
                    half_rtt: setup.half_rtt,
                })),
                grease: setup.grease,
            },
        };
        connection.report_start(now, &versions, &parameters);
        if side.is_client() {
            connection.start_handshake(now);
        }
        connection
    }

    /// Shows the observer how the connection begins.
    fn report_start(&mut self, now: Instant, versions: &[u32], parameters: &TransportParameters) {
        if !self.monitor.is_observed() {
            return;
        }
        self.streams.record_lifetimes();
        let beginning = Beginning {
            identity: &self.identity,
            handshake: &self.handshake,
            path: self.paths.initial(),
            versions,
            parameters,
        };
        self.monitor.report_start(now, &beginning);
    }

    /// The next packet of `level` gets this number. Only before its first one.
    #[cfg(test)]
    pub(crate) fn start_numbers_at(
        &mut self,
        level: EncryptionLevel,
        number: swiftwater_units::PacketNumber,
    ) {
        let id = SpaceId::of(level, self.paths.initial().id);
        if let Some(space) = self.paths.space_mut(id) {
            space.ledger.start_at(number);
        }
    }

    /// Reports fates of datagrams, streams that begin and end, and resets, if there are any.
    fn report_data_events(&mut self, now: Instant) {
        if self.streams.has_reports() || self.datagrams.has_reports() {
            let (mut fates, _) = self.fates(now);
            fates.report_data_events();
        }
    }

    /// The owners of what packets carry, and the buffers beside them.
    fn fates(&mut self, now: Instant) -> (Fates<'_>, &mut Buffers) {
        let fates = Fates {
            now,
            paths: &mut self.paths,
            handshake: &mut self.handshake,
            streams: &mut self.streams,
            control: &mut self.control,
            datagrams: &mut self.datagrams,
            policies: &mut self.policies,
            monitor: &mut self.monitor,
            speedup: &mut self.establishment.speedup,
            is_open: self.lifecycle.is_open(),
        };
        (fates, self.workspace.buffers.need())
    }

    /// What builds packets on a path, and what they are recorded in meanwhile; `None` if the path is not open.
    fn transmission(
        &mut self,
        now: Instant,
        path: PathId,
    ) -> Option<(Transmission<'_>, &mut Workspace)> {
        let max_ack_delay = self.peer_max_ack_delay();
        let multipath = self.multipath.as_deref();
        // Some peers do not regard a maximum of 0 as support of the extension.
        let has_paths = |it: &&Multipath| it.ids.common_max() > PathId::ZERO;
        let ack_route = multipath.filter(has_paths).map(Multipath::ack_route);
        let multipath_version = multipath.map_or_else(Default::default, |it| it.version);
        let (path, handshake_spaces, others) = self.paths.for_transmission(path)?;
        let transmission = Transmission {
            now,
            identity: &mut self.identity,
            handshake: &mut self.handshake,
            handshake_spaces,
            path,
            others,
            ack_route,
            multipath_version,
            streams: &mut self.streams,
            control: &mut self.control,
            datagrams: &mut self.datagrams,
            policies: &mut self.policies,
            lifecycle: &mut self.lifecycle,
            monitor: &mut self.monitor,
            max_ack_delay,
        };
        Some((transmission, &mut self.workspace))
    }
}

/// The path of the handshake.
fn initial_path(now: Instant, setup: &ConnectionSetup, random: &mut Random) -> PathState {
    let (config, side) = (&setup.transport, setup.side);
    let mut local_cids = LocalCids::new(setup.local_cid);
    if let Some(cid) = setup.preferred_cid {
        local_cids.issue_preferred(cid);
    }
    let new = NewPath {
        id: INITIAL_PATH,
        side,
        config,
        address: setup.address,
        // A client chose the address itself.
        amplification: if side.is_client() || setup.address_validated {
            Amplification::validated()
        } else {
            Amplification::unvalidated()
        },
        local_cids,
        remote_cids: RemoteCids::new(setup.remote_cid, config.active_connection_id_limit),
        phase: PathPhase::Active,
    };
    PathState::new(now, new, &mut random.generator)
}
