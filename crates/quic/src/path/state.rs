//! One path as an owner: its network addresses and their state, the connection IDs of both
//! directions, its application data packet number space, and its loss recovery and congestion
//! control (RFC 9000, sections 5.1, 8, 9 and 12.3; RFC 9002).
//!
//! It never touches streams: it returns facts, which the connection hands to the owners of what was
//! sent.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use rand_core::Rng;
use swiftwater_congestion::LossCause;
use swiftwater_units::{ByteCount, Instant, PacketNumber, PathId, Side};
use swiftwater_wire::ResetToken;

use crate::config::TransportConfig;
use crate::crypto::EncryptionLevel;
use crate::handshake::{Handshake, KeyPhaseNumbers};
use crate::idle_memory::IdleMemory;
use crate::policy::{PathPhase, PathPreference, PathStatus, PathView};
use crate::recovery::{LostRecord, PathRecovery};
use crate::space::Space;

use super::{
    AckedDatagramSize, Address, Amplification, CandidatePaths, Ecn, LocalCids, Mtu, MtuState,
    NetworkPath, PathCids, PathResponses, RemoteCids, Spin, Validation,
};

/// Longest packet number on the wire, bytes (RFC 9000, section 17.1).
const MAX_PACKET_NUMBER_LEN: usize = 4;

/// Bytes of a long header without its connection IDs: first byte, version, two lengths, length,
/// packet number.
const LONG_HEADER: usize = 1 + 4 + 2 + 2 + MAX_PACKET_NUMBER_LEN;

/// Bytes of a short header to a connection ID of `cid_len` bytes.
const fn short_header(cid_len: usize) -> usize {
    1 + cid_len + MAX_PACKET_NUMBER_LEN
}

/// Bytes that the cipher suites of TLS 1.3 add; assumed while there are no keys yet.
const USUAL_TAG_LEN: usize = 16;

/// The datagram size of a path has changed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct MtuChange {
    /// Bytes of a full datagram until now.
    pub(crate) before: u16,
    /// Bytes of a full datagram from now on.
    pub(crate) size: u16,
    pub(crate) state: MtuState,
}

/// A path.
#[derive(Debug)]
pub(crate) struct PathState {
    pub(crate) id: PathId,
    pub(crate) network: NetworkPath,
    pub(crate) cids: PathCids,
    pub(crate) space: Space,
    /// Packet numbers of `space` that delimit the key phase.
    pub(crate) key_phase_numbers: KeyPhaseNumbers,
    pub(crate) recovery: PathRecovery,
    /// The pacer or the scheduler holds data back until then.
    pub(crate) pacing_until: Option<Instant>,
    /// When the last packet was received on the path; `None` before the first.
    pub(crate) last_received: Option<Instant>,
    /// Bytes received in authenticated packets.
    pub(crate) received_bytes: ByteCount,
    /// What the application prefers, for schedulers.
    pub(crate) preference: PathPreference,
    /// What the peer announced.
    pub(crate) peer_status: PathStatus,
    /// How far the path has come, as far as it does not depend on the validation of an address that it
    /// moved to.
    pub(crate) phase: PathPhase,
    /// Whether policies were last told that the path may carry data.
    pub(crate) is_announced_usable: bool,
}

/// What a path starts from.
pub(crate) struct NewPath<'a> {
    pub(crate) id: PathId,
    pub(crate) side: Side,
    pub(crate) config: &'a Arc<TransportConfig>,
    pub(crate) address: Address,
    pub(crate) amplification: Amplification,
    pub(crate) local_cids: LocalCids,
    pub(crate) remote_cids: RemoteCids,
    pub(crate) phase: PathPhase,
}

impl PathState {
    /// A path on which nothing was sent or received.
    pub(crate) fn new(now: Instant, new: NewPath<'_>, rng: &mut dyn Rng) -> Self {
        let NewPath { id, config, .. } = new;
        let mtu = Mtu::new(
            config,
            config.initial_max_datagram_size,
            new.address.remote.ip(),
        );
        let recovery = PathRecovery::new(now, id, config, mtu.current(), rng);
        let is_usable = new.phase == PathPhase::Active && new.amplification.is_validated();
        Self {
            id,
            network: NetworkPath {
                address: new.address,
                amplification: new.amplification,
                validation: Validation::default(),
                ecn: Ecn::new(config.ecn, recovery.controller().ecn_codepoint()),
                spin: Spin::new(new.side, config.spin_bit),
                responses: PathResponses::default(),
                candidates: CandidatePaths::default(),
                mtu,
                acked_datagram_size: AckedDatagramSize::default(),
            },
            cids: PathCids {
                last_dst_cid: new.local_cids.first(),
                local: new.local_cids,
                remote: new.remote_cids,
                needs_fresh_remote: false,
            },
            space: Space::new(),
            key_phase_numbers: KeyPhaseNumbers::default(),
            recovery,
            pacing_until: None,
            last_received: None,
            received_bytes: ByteCount::ZERO,
            preference: PathPreference::default(),
            peer_status: PathStatus::default(),
            phase: new.phase,
            is_announced_usable: is_usable,
        }
    }

    /// True once either end has abandoned the path.
    pub(crate) fn is_closing(&self) -> bool {
        self.phase == PathPhase::Closing
    }

    /// True if data may be sent on the path: it is open, and the peer's address is validated.
    pub(crate) fn carries_data(&self) -> bool {
        self.phase == PathPhase::Active && self.network.amplification.is_validated()
    }

    /// True if either end announced that the path is only a backup.
    pub(crate) fn is_backup(&self) -> bool {
        let statuses = [self.preference.status, self.peer_status];
        statuses.contains(&PathStatus::Backup)
    }

    /// When something was last received or acknowledged on the path, or an ack-eliciting packet sent.
    pub(crate) fn last_activity(&self) -> Instant {
        let sent = self.space.ledger.last_eliciting_sent_at();
        let others = self.last_received.max(sent);
        let awaited_since = self.recovery.awaited_since();
        others.map_or(awaited_since, |at| at.max(awaited_since))
    }

    /// The probe timeout of 1-RTT packets, without back-off (RFC 9002, section 6.2.1).
    pub(crate) fn pto(&self, max_ack_delay: Duration) -> Duration {
        self.recovery.pto_base() + max_ack_delay
    }

    /// Bytes for frames in a full packet with application data, whatever its packet number.
    pub(crate) fn data_room(&self, handshake: &Handshake) -> usize {
        let remote = self.cids.remote.current().len();
        let (level, header) = if handshake.may_send_early_data() {
            let local = self.cids.local.first().len();
            (EncryptionLevel::ZeroRtt, LONG_HEADER + remote + local)
        } else {
            (EncryptionLevel::OneRtt, short_header(remote))
        };
        self.room_beside(header, handshake, level)
    }

    fn room_beside(&self, header: usize, handshake: &Handshake, level: EncryptionLevel) -> usize {
        let tag_len = handshake.keys().tag_len(level).max(USUAL_TAG_LEN);
        usize::from(self.network.mtu.current()).saturating_sub(header + tag_len)
    }

    /// When something is to be done on this path, loss detection and acknowledgements left out.
    pub(crate) fn deadline(&self) -> Option<Instant> {
        if self.is_closing() {
            return None;
        }
        let deadlines = [
            self.pacing_until,
            self.network.validation.timeout(),
            self.network.mtu.timeout(),
            self.network.candidates.timeout(),
            self.recovery.next_controller_timer(),
        ];
        deadlines.into_iter().flatten().min()
    }

    /// The size of the MTU probe to send now, with `waiting` bytes of data to send and `room` bytes to build
    /// it in; `None` for none.
    pub(crate) fn mtu_probe_to_send(
        &mut self,
        now: Instant,
        waiting: u64,
        room: usize,
    ) -> Option<u16> {
        let network = &mut self.network;
        let current = network.mtu.current();
        if waiting < u64::from(current)
            || self.space.probes > 0
            || !network.amplification.is_validated()
            || network.validation.is_running()
        {
            return None;
        }
        let size = network.mtu.probe_to_send(now)?;
        let len = usize::from(size);
        // With room for a full packet after it: a lost probe alone must not close the window.
        let may_go = len <= room
            && self.recovery.has_room_for(len + usize::from(current))
            && self.recovery.pacing_release(now) <= now;
        may_go.then_some(size)
    }

    /// An MTU probe counts as lost: it leaves flight, and is no sign of congestion. `None` if its fate is
    /// known.
    pub(crate) fn abandon_mtu_probe(
        &mut self,
        now: Instant,
        number: PacketNumber,
        rng: &mut dyn Rng,
    ) -> Option<LostRecord> {
        let record = self.space.ledger.abandon_one(number)?;
        self.recovery
            .on_losses(now, &[record], LossCause::Abandoned, false, rng);
        Some(record)
    }

    /// Puts the datagram size to use if it has changed.
    pub(crate) fn sync_mtu(&mut self, rng: &mut dyn Rng) -> Option<MtuChange> {
        let (size, state) = (self.network.mtu.current(), self.network.mtu.state());
        let before = self.recovery.max_datagram_size();
        if size == before {
            return None;
        }
        self.recovery.on_max_datagram_size(size, rng);
        Some(MtuChange {
            before,
            size,
            state,
        })
    }

    /// The peer's stateless reset tokens in use, with the addresses that they are valid from.
    pub(crate) fn reset_tokens(&self) -> impl Iterator<Item = (SocketAddr, ResetToken)> + Clone {
        let (network, current) = (&self.network, self.cids.remote.token());
        let current = current.map(|token| (network.address.remote, token));
        let candidates = network.candidates.iter().filter_map(|candidate| {
            let token = candidate.cid.and_then(|cid| cid.token)?;
            Some((candidate.address.remote, token))
        });
        current.into_iter().chain(candidates)
    }

    /// What policies see of the path.
    pub(crate) fn view(&self, now: Instant) -> PathView {
        let recovery = &self.recovery;
        let (rtt, totals) = (recovery.rtt(), recovery.stats());
        let sent = totals.sent_packets.get();
        let lost = totals.lost_packets.saturating_sub(totals.spurious_packets);
        let is_answered = rtt.has_sample && recovery.bytes_in_flight().is_zero();
        let last_acked = is_answered.then(|| recovery.awaited_since());
        PathView {
            phase: if self.phase == PathPhase::Active && !self.carries_data() {
                PathPhase::Validating
            } else {
                self.phase
            },
            has_rtt_sample: rtt.has_sample,
            smoothed_rtt: rtt.smoothed,
            min_rtt: rtt.min,
            rtt_var: rtt.var,
            latest_rtt: rtt.latest,
            cwnd: recovery.cwnd(),
            bytes_in_flight: recovery.bytes_in_flight(),
            pacing_release: self.pacing_until.unwrap_or(now),
            pacing_rate: recovery.pacing_rate(),
            delivery_rate: recovery.delivery_rate(),
            loss_rate: lost.get() as f64 / sent.max(1) as f64,
            pto_count: recovery.pto_count(),
            mtu: self.network.mtu.current(),
            last_received: self.last_received,
            last_confirmed: self.last_received.max(last_acked),
            local_status: self.preference.status,
            peer_status: self.peer_status,
            cost: self.preference.cost,
            ..PathView::builder(self.id).build()
        }
    }
}

impl IdleMemory for PathState {
    fn release_idle_memory(&mut self) {
        let Self {
            id: _,
            network,
            cids,
            space,
            key_phase_numbers: _,
            recovery,
            pacing_until: _,
            last_received: _,
            received_bytes: _,
            preference: _,
            peer_status: _,
            phase: _,
            is_announced_usable: _,
        } = self;
        network.release_idle_memory();
        cids.release_idle_memory();
        space.release_idle_memory();
        recovery.release_idle_memory();
    }
}
