//! One connection: the parts, and who hears what (RFC 9000, 9001, 9002).
//!
//! The connection owns the parts and routes facts between them; it decides nothing that a part can
//! decide. Receiving is `receive` (packets) → `frames` (dispatch) → `acks` (fates); `repair`
//! is the re-injector's ear and mouth; sending is
//! `transmit` (`choose` → `fill` → `seal`); `timers` and `lifecycle` say when it wakes and how it
//! ends; `migration` follows a peer to a new address and moves to one ourselves, `mtu` looks for the
//! largest datagrams that a path carries, `handshake_speedup` speeds the handshake up; `watch` tells observers what
//! has changed; `rest` gives memory back; `application` is what users call.

mod acks;
mod application;
mod events;
mod frame_counts;
mod frames;
mod handshake_speedup;
mod idle_memory;
mod lifecycle;
mod migration;
mod mtu;
mod observations;
mod parts;
mod random;
mod receive;
mod repair;
mod retry;
mod setup;
mod stats;
mod timers;
mod transmit;
mod zero_rtt;

pub use application::{RecvStream, SendStream};
pub use events::{EndpointEvent, Event, StreamEvent};
pub use frame_counts::FrameCounts;
pub use stats::{ConnectionStats, PathStats};
pub use zero_rtt::EarlyDataOutcome;

pub(crate) use frame_counts::FrameCounter;
pub(crate) use setup::ConnectionSetup;

use rand_core::Rng;
use swiftwater_units::{Instant, PathId};
use swiftwater_wire::ErrorCode;

use crate::control::{Control, ControlKey, ControlValue};
use crate::crypto::EncryptionLevel;
use crate::datagrams::Datagrams;
use crate::error::TransportError;
use crate::handshake::{Handshake, Progress};
use crate::lazy_box::LazyBox;
use crate::observe::Observation;
use crate::path::{
    AckedDatagramSize, Amplification, CandidatePaths, Ecn, LocalCids, Mtu, Path, PathResponseLimit,
    RemoteCids, Spin, Validation,
};
use crate::recovery::PathRecovery;
use crate::space::Space;
use crate::streams::Streams;

use self::handshake_speedup::HandshakeSpeedup;
use self::lifecycle::Lifecycle;
use self::parts::{Identity, Monitor, Outbox, PathEntry, Paths, Policies, Scratch, Start};
use self::random::{Generator, RandomBits};
use self::receive::Stash;
use self::zero_rtt::EarlyData;

/// A QUIC connection, sans-I/O. See the crate documentation for the driving contract.
#[derive(Debug)]
pub struct Connection {
    identity: Identity,
    handshake: Handshake,
    /// Initial and Handshake spaces, while they exist.
    early: [Option<Box<Space>>; 2],
    paths: Paths,
    streams: Streams,
    control: Control,
    datagrams: Datagrams,
    early_data: EarlyData,
    policies: Policies,
    lifecycle: Lifecycle,
    outbox: Outbox,
    monitor: Monitor,
    stash: Stash,
    handshake_speedup: HandshakeSpeedup,
    scratch: LazyBox<Scratch>,
    /// Frames sent; `None` while the writer of frames has it.
    frames_sent: Option<Box<FrameCounter>>,
    random_bits: RandomBits,
    rng: Generator,
}

impl Connection {
    /// A connection as the endpoint set it up; a client's first flight is ready to be sent.
    pub(crate) fn new(now: Instant, setup: ConnectionSetup) -> Self {
        let mut rng = Generator::new(setup.rng);
        let config = setup.transport;
        let side = setup.side;
        let (versions, parameters) = (setup.opening.versions.clone(), setup.opening.parameters);
        let handshake = Handshake::new(
            side,
            setup.version,
            setup.opening,
            setup.session,
            setup.primitives,
            (setup.initial_keys_cid, setup.initial_keys),
        );
        let mtu = Mtu::new(
            &config,
            config.initial_max_datagram_size,
            setup.address.remote.ip(),
        );
        let recovery = PathRecovery::new(now, PathId::ZERO, &config, mtu.current(), &mut rng);
        let mut local_cids = LocalCids::new(setup.local_cid);
        if let Some(cid) = setup.preferred_cid {
            local_cids.issue_preferred(cid);
        }
        let path = Path {
            id: PathId::ZERO,
            address: setup.address,
            // A client chose the address itself.
            amplification: if side.is_client() || setup.address_validated {
                Amplification::validated()
            } else {
                Amplification::unvalidated()
            },
            validation: Validation::default(),
            path_response_limit: PathResponseLimit::default(),
            spin: Spin::new(side, config.spin_bit),
            ecn: Ecn::new(config.ecn, recovery.controller().ecn_codepoint()),
            responses: std::collections::VecDeque::new(),
            candidates: CandidatePaths::default(),
            local_cids,
            remote_cids: RemoteCids::new(setup.remote_cid, config.active_connection_id_limit),
            reached_by: setup.local_cid,
            owes_fresh_cid: false,
            registered_tokens: Vec::new(),
            mtu,
            acked_datagram_size: AckedDatagramSize::default(),
        };
        let mut connection = Self {
            handshake,
            early: [(); 2].map(|()| Some(Box::new(Space::new()))),
            paths: Paths::new(PathEntry {
                path,
                recovery,
                space: Space::new(),
                pacing_until: None,
            }),
            streams: Streams::new(side, &config),
            control: Control::default(),
            datagrams: Datagrams::new(config.datagram_queue.get(), config.max_datagram_frame_size),
            early_data: EarlyData::default(),
            policies: Policies::new(&config),
            lifecycle: Lifecycle::new(now),
            outbox: Outbox::default(),
            monitor: Monitor::new(
                config
                    .observer
                    .as_ref()
                    .and_then(|make| make.observer(side)),
            ),
            stash: Stash::new(setup.early_packets),
            handshake_speedup: HandshakeSpeedup::new(&config),
            scratch: LazyBox::default(),
            frames_sent: Some(Box::default()),
            identity: Identity {
                side,
                config,
                key: setup.key,
                cids: setup.cids,
                peer_handshake_cid: side.is_server().then_some(setup.remote_cid),
                first_remote: setup.address.remote,
                first_home: setup.preferred_cid.map(|_| setup.address.local),
                start: Some(Box::new(Start {
                    original_dst_cid: setup.original_dst_cid,
                    retry_src_cid: setup.retry_src_cid,
                    token: setup.token,
                    address_token_lifetime: setup.address_token_lifetime,
                    half_rtt: setup.half_rtt,
                })),
                grease: setup.grease,
            },
            random_bits: RandomBits::default(),
            rng,
        };
        connection.emit_start(now, &versions, &parameters);
        if side.is_client() {
            match connection.handshake.start() {
                Ok(progress) if progress.early_keys => connection.offer_early_data(),
                Ok(_) => {}
                Err(error) => connection.fail(now, error),
            }
        }
        connection
    }

    /// The encryption levels in which packets may be sent, in the order of the packets of a datagram: most of the time
    /// there is one.
    fn levels_in_use(&self) -> &'static [EncryptionLevel] {
        if self.handshake.is_confirmed() {
            &[EncryptionLevel::OneRtt]
        } else {
            &EncryptionLevel::ALL
        }
    }

    /// The encryption levels that have a packet-number space of their own, while they have it.
    fn spaces_in_use(&self) -> &'static [EncryptionLevel] {
        if self.handshake.is_confirmed() {
            &[EncryptionLevel::OneRtt]
        } else {
            &EncryptionLevel::SPACES
        }
    }

    /// The space of `level`; 1-RTT is path 0's.
    fn space(&self, level: EncryptionLevel) -> Option<&Space> {
        match level {
            EncryptionLevel::OneRtt | EncryptionLevel::ZeroRtt => Some(&self.paths.first().space),
            early => self.early[early as usize].as_deref(),
        }
    }

    /// The next packet of `level` gets this number. Only before its first one.
    #[cfg(test)]
    pub(crate) fn start_numbers_at(
        &mut self,
        level: EncryptionLevel,
        number: swiftwater_units::PacketNumber,
    ) {
        if let Some(space) = self.space_mut(level) {
            space.ledger.start_at(number);
        }
    }

    fn space_mut(&mut self, level: EncryptionLevel) -> Option<&mut Space> {
        match level {
            EncryptionLevel::OneRtt | EncryptionLevel::ZeroRtt => {
                Some(&mut self.paths.first_mut().space)
            }
            early => self.early[early as usize].as_deref_mut(),
        }
    }

    /// Acts on what a step of the handshake brought about.
    fn on_progress(&mut self, now: Instant, progress: Progress) -> Result<(), TransportError> {
        if let Some(version) = self.handshake.take_settled_version() {
            let original = self.handshake.original_version();
            self.monitor
                .observe(now, &Observation::VersionChosen { original, version });
        }
        if progress.new_keys && self.identity.side.is_server() {
            self.on_server_keys(now, progress.early_keys)?;
        }
        if progress.completed {
            self.on_handshake_complete(now)?;
        }
        if progress.new_keys || progress.completed {
            self.stash.retry = true;
        }
        Ok(())
    }

    fn on_handshake_complete(&mut self, now: Instant) -> Result<(), TransportError> {
        if !self.conclude_early_data(now)? {
            return Ok(());
        }
        self.use_peer_parameters()?;
        if let Some(rate) = self.identity.config.receive_rate {
            // The first sample comes with the very datagram that completes the handshake. Credit for
            // the assumed round trip would be many times too much.
            let rtt = self.paths.first().recovery.rtt().smoothed;
            self.streams.on_rtt(now, rtt);
            self.streams.set_receive_rate(now, Some(rate));
        }
        self.sync_mtu(now);
        self.monitor.stats.handshake_duration = Some(now - self.lifecycle.started_at());
        self.outbox.events.push_back(Event::Connected);
        if self.identity.side.is_server() {
            self.control
                .set(ControlKey::HandshakeDone, ControlValue::Unit);
            let start = self.identity.start.as_deref();
            if let Some(lifetime) = start.and_then(|start| start.address_token_lifetime)
                && !lifetime.is_zero()
            {
                let ip = self.paths.first().path.address.remote.ip();
                let token = crate::endpoint::issue_address_token(
                    &*self.identity.key,
                    &mut self.rng,
                    now,
                    self.handshake.version(),
                    ip,
                );
                self.control
                    .set(ControlKey::NewToken, ControlValue::Token(token));
            }
            self.on_handshake_confirmed(now);
        }
        self.issue_cids();
        Ok(())
    }

    fn on_handshake_confirmed(&mut self, now: Instant) {
        if self.handshake.is_confirmed() {
            return;
        }
        self.handshake.confirm();
        self.monitor.stats.confirmed_after = Some(now - self.lifecycle.started_at());
        self.discard(EncryptionLevel::Initial);
        self.discard(EncryptionLevel::Handshake);
        self.identity.start = None;
        self.outbox
            .endpoint_events
            .push_back(EndpointEvent::HandshakeDone);
        self.outbox.events.push_back(Event::Confirmed);
        self.probe_preferred_address(now);
    }

    /// Checks the peer's transport parameters (RFC 9000, section 7.3) and puts them to use.
    fn apply_peer_parameters(&mut self) -> Result<(), TransportError> {
        let (Some(peer), Some(start)) = (self.handshake.peer_parameters(), &self.identity.start)
        else {
            return Ok(());
        };
        let bad = |reason: &str| {
            Err(TransportError::new(
                ErrorCode::TRANSPORT_PARAMETER_ERROR,
                reason.to_owned(),
            ))
        };
        if peer.initial_source_connection_id.is_none()
            || peer.initial_source_connection_id != self.identity.peer_handshake_cid
        {
            return bad("initial_source_connection_id is not the one that was used");
        }
        if self.identity.side.is_client() {
            if peer.original_destination_connection_id != Some(start.original_dst_cid) {
                return bad("original_destination_connection_id is not the one that was used");
            }
            if peer.retry_source_connection_id != start.retry_src_cid {
                return bad("retry_source_connection_id is not the one that was used");
            }
            let uses_cids = self
                .identity
                .peer_handshake_cid
                .is_some_and(|cid| !cid.is_empty());
            if peer.preferred_address.is_some() && !uses_cids {
                // RFC 9000, section 18.2.
                return bad("preferred_address from a server without connection IDs");
            }
        }
        self.streams.set_peer_parameters(peer);
        self.datagrams.set_peer_limit(peer.max_datagram_frame_size);
        self.policies.ack_asked.set_peer_min(peer.min_ack_delay);
        self.lifecycle.set_idle_timeout(
            self.identity.config.max_idle_timeout,
            Some(peer.max_idle_timeout),
        );
        let entry = self.paths.first_mut();
        entry
            .path
            .local_cids
            .set_limit(peer.active_connection_id_limit);
        if let Some(token) = peer.stateless_reset_token {
            entry.path.remote_cids.set_handshake_token(token);
        }
        if let Some(preferred) = &peer.preferred_address {
            let (cid, token) = (preferred.cid, preferred.reset_token);
            entry.path.remote_cids.add_preferred(cid, token);
        }
        entry.path.mtu.set_peer_limit(peer.max_udp_payload_size);
        self.sync_reset_tokens();
        Ok(())
    }

    /// Issues connection IDs until the peer has as many as it stores.
    fn issue_cids(&mut self) {
        let identity = &self.identity;
        if !identity.cids.is_unlinkable() {
            return;
        }
        let cids = &mut self.paths.first_mut().path.local_cids;
        while cids.wants_more() {
            let cid = identity.cids.generate(&mut self.rng);
            let issued = cids.issue(cid);
            let value = ControlValue::ConnectionId {
                cid,
                reset_token: identity.key.reset_token(&cid),
                retire_prior_to: issued.retire_prior_to,
            };
            self.control.set(
                ControlKey::NewConnectionId(PathId::ZERO, issued.sequence),
                value,
            );
            self.outbox
                .endpoint_events
                .push_back(EndpointEvent::CidIssued(cid));
        }
    }

    /// Forgets the keys and the space of an early encryption level (RFC 9001, section 4.9).
    fn discard(&mut self, level: EncryptionLevel) {
        let Some(mut space) = self.early[level as usize].take() else {
            return;
        };
        self.handshake.discard(level);
        let numbers = &mut self.scratch.need().numbers;
        let bytes = space.ledger.abandon(numbers);
        numbers.clear();
        let recovery = &mut self.paths.first_mut().recovery;
        recovery.on_discard(bytes);
        recovery.reset_pto_count();
    }

    /// Moves what `Streams` wants delivered into `Control`.
    fn drain_stream_control(&mut self) {
        while let Some((key, value)) = self.streams.poll_control() {
            match value {
                Some(value) => self.control.set(key, value),
                None => self.control.cancel(key),
            }
        }
    }

    /// Eight unpredictable bytes.
    fn random_8(&mut self) -> [u8; 8] {
        let mut data = [0; 8];
        self.rng.fill_bytes(&mut data);
        data
    }
}
