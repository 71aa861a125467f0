//! One connection: the parts, and who hears what (RFC 9000, 9001, 9002).
//!
//! The connection owns the parts and routes facts between them; it decides nothing that a part can
//! decide. Receiving is `receive` (packets) → `frames` (dispatch) → `acks` (fates); sending is
//! `repair` is the re-injector's ear and mouth;
//! `transmit` (`choose` → `fill` → `seal`); `timers` and `lifecycle` say when it wakes and how it
//! ends; `migration` follows a peer to a new address; `application` is what users call.

mod acks;
mod application;
mod events;
mod frames;
mod lifecycle;
mod migration;
mod parts;
mod receive;
mod repair;
mod retry;
mod setup;
mod stats;
mod timers;
mod transmit;

pub use application::{RecvStream, SendStream};
pub use events::{EndpointEvent, Event, StreamEvent};
pub use stats::{ConnectionStats, PathStats};

pub(crate) use setup::ConnectionSetup;

use rand_chacha::ChaCha20Rng;
use rand_core::Rng;
use swiftwater_units::{Instant, PathId};
use swiftwater_wire::ErrorCode;

use crate::control::{Control, ControlKey, ControlValue};
use crate::crypto::Epoch;
use crate::datagrams::Datagrams;
use crate::error::TransportError;
use crate::handshake::{Handshake, Progress};
use crate::observe::Observation;
use crate::path::{Address, Amplification, Ecn, LocalCids, Path, RemoteCids, Validation};
use crate::recovery::PathRecovery;
use crate::space::Space;
use crate::streams::Streams;

use self::lifecycle::Lifecycle;
use self::parts::{Identity, Monitor, Outbox, PathEntry, Paths, Policies, Scratch};
use self::receive::Stash;

/// A QUIC connection, sans-I/O. See the crate documentation for the driving contract.
#[derive(Debug)]
pub struct Connection {
    identity: Identity,
    handshake: Handshake,
    /// Initial and Handshake spaces, while they exist.
    early: [Option<Space>; 2],
    paths: Paths,
    streams: Streams,
    control: Control,
    datagrams: Datagrams,
    policies: Policies,
    lifecycle: Lifecycle,
    outbox: Outbox,
    monitor: Monitor,
    stash: Stash,
    scratch: Scratch,
    rng: ChaCha20Rng,
}

impl Connection {
    /// A connection as the endpoint set it up; a client's first flight is ready to be sent.
    pub(crate) fn new(now: Instant, setup: ConnectionSetup) -> Self {
        let mut rng = setup.rng;
        let config = setup.transport;
        let side = setup.side;
        let handshake = Handshake::new(
            side,
            setup.version,
            setup.session,
            setup.primitives,
            &setup.initial_keys_cid,
        );
        let max_datagram_size = config.initial_max_datagram_size.max(1200);
        let recovery = PathRecovery::new(now, PathId::ZERO, &config, max_datagram_size, &mut rng);
        let path = Path {
            id: PathId::ZERO,
            address: Address {
                remote: setup.remote,
                local_ip: setup.local_ip,
            },
            // A client chose the address itself.
            amplification: if side.is_client() || setup.address_validated {
                Amplification::validated()
            } else {
                Amplification::unvalidated()
            },
            validation: Validation::default(),
            ecn: Ecn::new(config.ecn, recovery.controller().ecn_codepoint()),
            responses: std::collections::VecDeque::new(),
            previous: None,
            local_cids: LocalCids::new(setup.local_cid),
            remote_cids: RemoteCids::new(setup.remote_cid, config.active_connection_id_limit),
            registered_token: None,
            max_datagram_size,
        };
        let mut connection = Self {
            handshake,
            early: [Some(Space::new()), Some(Space::new())],
            paths: Paths::new(PathEntry {
                path,
                recovery,
                space: Space::new(),
                pacing_until: None,
            }),
            streams: Streams::new(side, &config),
            control: Control::default(),
            datagrams: Datagrams::new(config.datagram_queue.get(), config.max_datagram_frame_size),
            policies: Policies::new(&config),
            lifecycle: Lifecycle::new(now),
            outbox: Outbox::default(),
            monitor: Monitor::new(
                config
                    .observer
                    .as_ref()
                    .and_then(|make| make.observer(side)),
            ),
            stash: Stash::default(),
            scratch: Scratch::default(),
            identity: Identity {
                side,
                version: setup.version,
                config,
                key: setup.key,
                cid_len: setup.cid_len,
                original_dst_cid: setup.original_dst_cid,
                retry_src_cid: setup.retry_src_cid,
                peer_handshake_cid: side.is_server().then_some(setup.remote_cid),
                token: setup.token,
                address_token_lifetime: setup.address_token_lifetime,
            },
            rng,
        };
        if side.is_client() {
            match connection.handshake.start() {
                Ok(_) => {}
                Err(error) => connection.fail(now, error),
            }
        }
        connection
    }

    /// The space of `epoch`; 1-RTT is path 0's.
    fn space(&self, epoch: Epoch) -> Option<&Space> {
        match epoch {
            Epoch::OneRtt => Some(&self.paths.first().space),
            early => self.early[early as usize].as_ref(),
        }
    }

    fn space_mut(&mut self, epoch: Epoch) -> Option<&mut Space> {
        match epoch {
            Epoch::OneRtt => Some(&mut self.paths.first_mut().space),
            early => self.early[early as usize].as_mut(),
        }
    }

    /// Acts on what a step of the handshake brought about.
    fn on_progress(&mut self, now: Instant, progress: Progress) -> Result<(), TransportError> {
        if progress.completed {
            self.on_handshake_complete(now)?;
        }
        if progress.new_keys || progress.completed {
            self.stash.retry = true;
        }
        Ok(())
    }

    fn on_handshake_complete(&mut self, now: Instant) -> Result<(), TransportError> {
        self.apply_peer_parameters()?;
        self.monitor.stats.handshake_duration = Some(now - self.lifecycle.started_at());
        self.outbox.events.push_back(Event::Connected);
        if self.identity.side.is_server() {
            self.control
                .set(ControlKey::HandshakeDone, ControlValue::Unit);
            if let Some(lifetime) = self.identity.address_token_lifetime
                && !lifetime.is_zero()
            {
                let ip = self.paths.first().path.address.remote.ip();
                let token = crate::endpoint::issue_address_token(
                    &*self.identity.key,
                    &mut self.rng,
                    now,
                    ip,
                );
                self.control
                    .set(ControlKey::NewToken, ControlValue::Token(token));
            }
            self.on_handshake_confirmed();
        }
        self.issue_cids();
        Ok(())
    }

    fn on_handshake_confirmed(&mut self) {
        if self.handshake.is_confirmed() {
            return;
        }
        self.handshake.confirm();
        self.discard(Epoch::Initial);
        self.discard(Epoch::Handshake);
        self.stash.clear();
        self.outbox
            .endpoint_events
            .push_back(EndpointEvent::HandshakeDone);
        self.outbox.events.push_back(Event::Confirmed);
    }

    /// Checks the peer's transport parameters (RFC 9000, section 7.3) and puts them to use.
    fn apply_peer_parameters(&mut self) -> Result<(), TransportError> {
        let Some(peer) = self.handshake.peer_parameters() else {
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
            if peer.original_destination_connection_id != Some(self.identity.original_dst_cid) {
                return bad("original_destination_connection_id is not the one that was used");
            }
            if peer.retry_source_connection_id != self.identity.retry_src_cid {
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
        let peer_max = u16::try_from(peer.max_udp_payload_size).unwrap_or(u16::MAX);
        if entry.path.max_datagram_size > peer_max {
            entry.path.max_datagram_size = peer_max.max(1200);
            let size = entry.path.max_datagram_size;
            entry.recovery.on_max_datagram_size(size, &mut self.rng);
        }
        self.sync_reset_token();
        Ok(())
    }

    /// Issues connection IDs until the peer has as many as it stores.
    fn issue_cids(&mut self) {
        let identity = &self.identity;
        let cids = &mut self.paths.first_mut().path.local_cids;
        while cids.wants_more() {
            let cid = parts::random_cid(&mut self.rng, identity.cid_len);
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

    /// Forgets the keys and the space of an early epoch (RFC 9001, section 4.9).
    fn discard(&mut self, epoch: Epoch) {
        let Some(mut space) = self.early[epoch as usize].take() else {
            return;
        };
        self.handshake.discard(epoch);
        let bytes = space.ledger.abandon(&mut self.scratch.numbers);
        self.scratch.numbers.clear();
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

    fn observe_metrics(&mut self, now: Instant, path: PathId) {
        if !self.monitor.is_watched() {
            return;
        }
        let recovery = &self.paths.get(path).recovery;
        let rtt = recovery.rtt();
        let observation = Observation::Metrics {
            path,
            smoothed_rtt: rtt.smoothed,
            latest_rtt: rtt.latest,
            min_rtt: rtt.min,
            cwnd: recovery.cwnd(),
            bytes_in_flight: recovery.bytes_in_flight(),
            pto_count: recovery.pto_count(),
        };
        self.monitor.observe(now, &observation);
    }
}
