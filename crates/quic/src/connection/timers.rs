//! When the connection acts without input, and what it does then (RFC 9000, section 10; RFC 9002, section
//! 6.2).
//!
//! Deadlines are computed from the state that they depend on, a handful per path, so that none can
//! be stale.

use std::time::Duration;

use swiftwater_units::Instant;

use crate::crypto::EncryptionLevel;
use crate::datagram_size::{MIN_INITIAL_SIZE, MIN_PACKET_ROOM};
use crate::error::ConnectionError;
use crate::observe::{LossTimer, Observation};
use crate::path::PathState;
use crate::space::{Space, SpaceId};

use super::Connection;
use super::observations::TimerState;

/// Ack-eliciting packets sent when a probe timeout expires.
pub(super) const PROBES: u8 = 2;

/// PINGs within an idle timeout while flow control holds everything back: one or two may get lost.
const BLOCKED_PINGS: u32 = 3;

/// A driver this late was not running: the process was stopped, or the machine.
const STOPPED: Duration = Duration::from_secs(1);

impl Connection {
    /// When [`Connection::handle_timeout`] is to be called, `None` for never.
    pub fn poll_timeout(&self) -> Option<Instant> {
        if !self.lifecycle.is_open() {
            return self.lifecycle.end();
        }
        let loss = self.loss_deadline();
        // An array to search would be moved about; this is asked after every packet.
        let mut next = None;
        let mut consider = |deadline: Option<Instant>| {
            if let Some(at) = deadline {
                next = Some(next.map_or(at, |next: Instant| next.min(at)));
            }
        };
        consider(loss.map(|(at, _)| at));
        if loss.is_none() {
            consider(self.pto_deadline().map(|(at, _)| at));
        }
        let acknowledges = self.may_send_one_rtt();
        for path in self.paths.iter() {
            // While the anti-amplification limit permits no packet, an ACK can't be timed.
            if acknowledges && path.link.amplification.budget() >= MIN_PACKET_ROOM as u64 {
                consider(path.space.received.ack_deadline());
            }
            consider(path.deadline());
        }
        consider(self.idle_deadline());
        consider(self.handshake_deadline());
        consider(self.keep_alive_deadline());
        consider(self.silence_deadline());
        consider(self.handshake.keys().previous_expires());
        consider(self.handshake.keys().early_expires());
        consider(self.policies.reinjector_deadline());
        consider(self.streams.next_expiry());
        consider(self.streams.next_grant());
        next
    }

    /// Acts on every deadline that has come.
    pub fn handle_timeout(&mut self, now: Instant) {
        let due = |deadline: Option<Instant>| deadline.is_some_and(|at| at <= now);
        if due(self.lifecycle.end()) {
            return self.drain();
        }
        if !self.lifecycle.is_open() {
            return;
        }
        if due(self.handshake_deadline()) {
            return self.close_silently(now, ConnectionError::HandshakeTimedOut);
        }
        if due(self.idle_deadline()) {
            return self.close_silently(now, ConnectionError::TimedOut);
        }
        self.detect_stopped_driver(now);
        self.handshake.keys_mut().expire_previous(now);
        self.on_path_timeouts(now);
        if !self.lifecycle.is_open() {
            return;
        }
        self.on_mtu_timeout(now);
        if due(self.keep_alive_deadline()) {
            self.ping();
        }
        if due(self.silence_deadline()) {
            self.on_silence();
        }
        for path in self.paths.iter_mut() {
            let rng = &mut self.identity.random.generator;
            path.recovery.on_controller_timer(now, rng);
        }
        self.policies
            .on_timeout(now, &self.paths, &mut self.monitor);
        self.on_recovery_timeout(now);
        for path in self.paths.iter_mut() {
            if due(path.pacing_until) {
                path.pacing_until = None;
            }
        }
        self.streams.expire(now);
        self.streams.grant_by(now);
        self.drain_stream_control();
        self.emit_resets(now);
    }

    /// The loss timer or the probe timer, whichever runs. A loss deadline replaces the probe timeout (RFC
    /// 9002, section 6.2.1).
    fn on_recovery_timeout(&mut self, now: Instant) {
        let Some(state) = self.loss_timer().filter(|state| state.expires_at <= now) else {
            return;
        };
        self.emit_expired(now, state);
        match state.timer {
            LossTimer::TimeThreshold => self.on_loss_timeout(now, state.space),
            LossTimer::Probe => self.on_probe_timeout(now, state.space),
        }
    }

    /// Ends the connection if its time was over before a packet came; true if it is over. Such a
    /// packet is too late even if the driver didn't call [`Connection::handle_timeout`] in time.
    pub(super) fn ends_before(&mut self, now: Instant) -> bool {
        if now.saturating_since(self.lifecycle.last_packet_at) < STOPPED {
            return false;
        }
        let over = |deadline: Option<Instant>| deadline.is_some_and(|at| at < now);
        if !self.lifecycle.is_open() {
            return false;
        } else if over(self.handshake_deadline()) {
            self.close_silently(now, ConnectionError::HandshakeTimedOut);
        } else if over(self.idle_deadline()) {
            self.close_silently(now, ConnectionError::TimedOut);
        } else {
            self.detect_stopped_driver(now);
            return false;
        }
        true
    }

    /// Takes note if the driver did not run for a while: packets sent before say nothing about the
    /// path's round-trip time, since their acknowledgements waited to be read.
    fn detect_stopped_driver(&mut self, now: Instant) {
        let deadline = self.loss_deadline().or_else(|| self.pto_deadline());
        if deadline.is_some_and(|(at, _)| at + STOPPED <= now) {
            self.lifecycle.running_since = now;
        }
    }

    /// The timer of loss detection, if it runs: which, for which packets, until when (RFC 9002, appendix
    /// A.8).
    pub(super) fn loss_timer(&self) -> Option<TimerState> {
        let state = |timer| {
            move |(expires_at, space)| TimerState {
                timer,
                space,
                expires_at,
            }
        };
        let loss = self.loss_deadline().map(state(LossTimer::TimeThreshold));
        loss.or_else(|| self.pto_deadline().map(state(LossTimer::Probe)))
    }

    /// The earliest time at which a packet becomes lost by age, and its space.
    fn loss_deadline(&self) -> Option<(Instant, SpaceId)> {
        self.paths
            .spaces()
            .filter_map(|(id, space)| Some((space.loss_time?, id)))
            .min_by_key(|(at, _)| *at)
    }

    /// The earliest probe timeout, and the space to probe in (RFC 9002, appendix A.8), while no loss
    /// deadline runs.
    fn pto_deadline(&self) -> Option<(Instant, SpaceId)> {
        let in_flight = self
            .paths
            .spaces()
            .filter_map(|(id, space)| Some((self.pto_of(id, space)?, id)))
            .min_by_key(|(at, _)| *at);
        if in_flight.is_some() || self.handshake.is_confirmed() {
            return in_flight;
        }
        let path = self.paths.path_for(SpaceId::Initial)?;
        if !self.may_probe(path) {
            return None;
        }
        let id = self.unprompted_probe(path)?;
        let timeout = path.recovery.probe_timeout(Duration::ZERO);
        Some((self.lifecycle.last_packet_at + timeout, id))
    }

    /// When the probe timeout of a space expires, if it runs.
    fn pto_of(&self, id: SpaceId, space: &Space) -> Option<Instant> {
        // 1-RTT packets may be beyond what the peer can read yet.
        let may_be_unreadable = id.is_data() && !self.handshake.is_confirmed();
        if space.ledger.eliciting_in_flight() == 0 || may_be_unreadable {
            return None;
        }
        let path = self
            .paths
            .path_for(id)
            .filter(|path| self.may_probe(path))?;
        let delay = match id {
            SpaceId::Data(_) => self.peer_max_ack_delay(),
            SpaceId::Initial | SpaceId::Handshake => Duration::ZERO,
        };
        Some(space.ledger.last_eliciting_sent_at()? + path.recovery.probe_timeout(delay))
    }

    /// False while the anti-amplification limit permits no probe: a probe that can't be sent must not be
    /// timed, it would only use up the back-off (RFC 9002, section 6.2.2.1).
    fn may_probe(&self, path: &PathState) -> bool {
        let initial = self.paths.space(SpaceId::Initial);
        // Ack-eliciting Initial packets fill a datagram.
        let needed = match initial {
            Some(space) if space.ledger.eliciting_in_flight() > 0 => MIN_INITIAL_SIZE,
            _ => MIN_PACKET_ROOM,
        };
        path.link.amplification.budget() >= needed as u64
    }

    /// The space to probe in though nothing is in flight that a probe timeout runs for.
    fn unprompted_probe(&self, path: &PathState) -> Option<SpaceId> {
        // Lost handshake bytes may wait for room in a window that is full of 1-RTT packets, for
        // which no timer runs before the handshake is confirmed.
        let blocked = [SpaceId::Initial, SpaceId::Handshake]
            .into_iter()
            .find(|id| self.handshake.has_pending(id.level()) && self.paths.space(*id).is_some());
        let size = path.link.mtu.current().into();
        if let Some(id) = blocked
            && !path.recovery.has_window_for(size)
        {
            return Some(id);
        }
        // A client that has nothing in flight may hold the only key to the server's
        // anti-amplification limit: it probes anyway (RFC 9002, section 6.2.2.1).
        if self.identity.side.is_server() || self.address_is_validated_by_server() {
            return None;
        }
        Some(if self.handshake.keys().has(EncryptionLevel::Handshake) {
            SpaceId::Handshake
        } else {
            SpaceId::Initial
        })
    }

    /// True once the server has shown that it validated our address: it acknowledged a Handshake
    /// packet or confirmed the handshake.
    fn address_is_validated_by_server(&self) -> bool {
        self.handshake.is_confirmed()
            || (self.paths.space(SpaceId::Handshake))
                .is_none_or(|space| space.ledger.largest_acked().is_some())
    }

    fn on_probe_timeout(&mut self, now: Instant, id: SpaceId) {
        let rng = &mut self.identity.random.generator;
        let Some(path) = self.paths.path_for_mut(id) else {
            return;
        };
        path.recovery.on_pto(now, rng);
        path.link.ecn.on_probe_timeout();
        let (path, count) = (path.id, path.recovery.pto_count());
        let observation = Observation::ProbeTimeout {
            path,
            level: id.level(),
            count,
        };
        self.monitor.observe(now, &observation);
        if !id.is_data() {
            self.request_handshake_copies();
        }
        self.probe_handshake_spaces(now, id);
        let repeats_early_data = self.can_seal(EncryptionLevel::ZeroRtt);
        let (mut fates, buffers) = self.fates(now);
        if repeats_early_data {
            // They left in the same datagrams.
            fates.repeat_oldest(SpaceId::Data(path), usize::from(PROBES), &mut buffers.loss);
        }
        fates.repeat_oldest(id, usize::from(PROBES), &mut buffers.loss);
        if let Some(space) = self.paths.space_mut(id) {
            space.probes = PROBES;
        }
        self.emit_ecn(now, path);
    }

    /// The probe timeout of space `expired` came: another space of the handshake may wait for the same
    /// lost datagram.
    fn probe_handshake_spaces(&mut self, now: Instant, expired: SpaceId) {
        for id in [SpaceId::Initial, SpaceId::Handshake] {
            if id == expired || !self.handshake.keys().has(id.level()) {
                continue;
            }
            let (mut fates, buffers) = self.fates(now);
            fates.repeat_oldest(id, 1, &mut buffers.loss);
            if let Some(space) = self.paths.space_mut(id)
                && space.ledger.eliciting_in_flight() > 0
            {
                space.probes = 1;
            }
        }
    }

    fn idle_deadline(&self) -> Option<Instant> {
        self.lifecycle.idle_deadline(self.longest_pto())
    }

    fn handshake_deadline(&self) -> Option<Instant> {
        (!self.handshake.is_complete())
            .then(|| self.lifecycle.started_at() + self.identity.config.handshake_timeout)
    }

    /// When a PING is sent if nothing else is: as often as the application asks, and often enough while
    /// flow control holds back what it wrote (RFC 9000, section 4.1).
    fn keep_alive_deadline(&self) -> Option<Instant> {
        let configured = self.identity.config.keep_alive_interval;
        let requested = self.lifecycle.keep_alive();
        // Without any time between them, PINGs would never end.
        let wanted = configured.into_iter().chain(requested);
        let wanted = wanted.filter(|interval| !interval.is_zero()).min();
        let blocked = self
            .lifecycle
            .idle_timeout()
            .filter(|_| self.streams.is_flow_limited())
            .map(|timeout| (timeout / BLOCKED_PINGS).max(self.longest_pto()));
        let interval = match (wanted, blocked) {
            (Some(wanted), Some(blocked)) => wanted.min(blocked),
            (wanted, blocked) => wanted.or(blocked)?,
        };
        let is_pending = self.paths.iter().any(|path| path.space.ping);
        (self.handshake.is_confirmed() && !is_pending)
            .then(|| self.lifecycle.last_packet_at + interval)
    }
}
