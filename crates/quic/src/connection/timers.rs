//! When the connection wakes, and what it does then (RFC 9000, section 10; RFC 9002, section 6.2).
//!
//! Deadlines are computed from the state that they depend on, a handful per path, so that none can
//! go stale.

use std::time::Duration;

use swiftwater_units::{Instant, PathId};

use crate::crypto::EncryptionLevel;
use crate::error::ConnectionError;
use crate::observe::{LossTimer, Observation};
use crate::policy::Occasion;

use super::Connection;
use super::transmit::{MIN_INITIAL_SIZE, MIN_PACKET_ROOM};

/// Ack-eliciting packets sent when a probe timeout expires.
pub(super) const PROBES: u8 = 2;

/// PINGs within an idle timeout while flow control holds everything back: one or two may get lost.
const BLOCKED_PINGS: u32 = 3;

/// A driver this late was not running: the process was stopped, or the machine.
const OVERSLEPT: Duration = Duration::from_secs(1);

impl Connection {
    /// When [`Connection::handle_timeout`] wants to be called, `None` for never.
    pub fn poll_timeout(&self) -> Option<Instant> {
        if !self.lifecycle.is_open() {
            return self.lifecycle.end();
        }
        let entry = self.paths.first();
        let ack = if self.may_send_one_rtt() && self.address_has_room() {
            entry.space.received.ack_deadline()
        } else {
            None
        };
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
        consider(ack);
        consider(entry.pacing_until);
        consider(entry.path.validation.timeout());
        consider(entry.path.mtu.timeout());
        consider(entry.path.candidates.timeout());
        consider(entry.recovery.next_controller_timer());
        consider(self.idle_deadline());
        consider(self.handshake_deadline());
        consider(self.keep_alive_deadline());
        consider(self.handshake.protection_ref().previous_expires());
        consider(self.handshake.protection_ref().early_expires());
        consider(self.policies.reinjector.next_deadline());
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
            return self.vanish(now, ConnectionError::HandshakeTimedOut);
        }
        if due(self.idle_deadline()) {
            return self.vanish(now, ConnectionError::TimedOut);
        }
        self.notice_sleep(now);
        self.handshake.protection().expire_previous(now);
        self.on_path_timeouts(now);
        if !self.lifecycle.is_open() {
            return;
        }
        self.on_mtu_timeout(now);
        if due(self.keep_alive_deadline()) {
            self.ping();
        }
        if due(self.paths.first().recovery.next_controller_timer()) {
            self.paths
                .first_mut()
                .recovery
                .on_controller_timer(now, &mut self.rng);
        }
        if due(self.policies.reinjector.next_deadline()) {
            self.consult_reinjector(now, Occasion::Timer);
        }
        // A loss deadline replaces the probe timeout while it runs (RFC 9002, section 6.2.1).
        if let Some((at, level)) = self.loss_deadline() {
            if at <= now {
                self.emit_expired(now, LossTimer::TimeThreshold, level);
                self.on_loss_timeout(now, level);
            }
        } else if let Some((at, level)) = self.pto_deadline()
            && at <= now
        {
            self.emit_expired(now, LossTimer::Probe, level);
            self.on_probe_timeout(now, level);
        }
        let pacing = &mut self.paths.first_mut().pacing_until;
        if due(*pacing) {
            *pacing = None;
        }
        self.streams.expire(now);
        self.streams.grant_by(now);
        self.drain_stream_control();
        self.emit_resets(now);
    }

    /// Ends the connection if its time was over before a packet came; true if it is over. Such a
    /// packet is too late even if the driver didn't call [`Connection::handle_timeout`] in time.
    pub(super) fn ends_before(&mut self, now: Instant) -> bool {
        if now.saturating_since(self.lifecycle.last_packet_at) < OVERSLEPT {
            return false;
        }
        let over = |deadline: Option<Instant>| deadline.is_some_and(|at| at < now);
        if !self.lifecycle.is_open() {
            return false;
        } else if over(self.handshake_deadline()) {
            self.vanish(now, ConnectionError::HandshakeTimedOut);
        } else if over(self.idle_deadline()) {
            self.vanish(now, ConnectionError::TimedOut);
        } else {
            self.notice_sleep(now);
            return false;
        }
        true
    }

    /// Takes note if the driver did not run for a while: packets sent before tell nothing about the
    /// path's round-trip time, since their acknowledgements lay about.
    fn notice_sleep(&mut self, now: Instant) {
        let overdue = |deadline: Option<(Instant, EncryptionLevel)>| {
            deadline.is_some_and(|(at, _)| at + OVERSLEPT <= now)
        };
        if overdue(self.loss_deadline().or_else(|| self.pto_deadline())) {
            self.lifecycle.awake_since = now;
        }
    }

    /// The timer of loss detection, if it runs: what it waits for, for which packets, until when (RFC
    /// 9002, appendix A.8).
    pub(super) fn loss_timer(&self) -> Option<(LossTimer, EncryptionLevel, Instant)> {
        let loss = self.loss_deadline();
        let loss = loss.map(|(at, level)| (LossTimer::TimeThreshold, level, at));
        let probe = || {
            let (at, level) = self.pto_deadline()?;
            Some((LossTimer::Probe, level, at))
        };
        loss.or_else(probe)
    }

    /// The earliest time at which a packet becomes lost by age, and its encryption level.
    fn loss_deadline(&self) -> Option<(Instant, EncryptionLevel)> {
        self.spaces_in_use()
            .iter()
            .filter_map(|&level| Some((self.space(level)?.loss_time?, level)))
            .min_by_key(|(at, _)| *at)
    }

    /// False while the amplification limit permits no packet: then there is nothing to wake for.
    fn address_has_room(&self) -> bool {
        self.paths.first().path.amplification.budget() >= MIN_PACKET_ROOM as u64
    }

    /// The earliest probe timeout, and the encryption level to probe in (RFC 9002, appendix A.8), while no loss
    /// deadline runs.
    fn pto_deadline(&self) -> Option<(Instant, EncryptionLevel)> {
        let entry = self.paths.first();
        // A probe that can't be sent must not be timed: it would only use up the back-off (RFC
        // 9002, section 6.2.2.1).
        if entry.path.amplification.budget() < self.smallest_probe() {
            return None;
        }
        let timeout = |max_ack_delay| entry.recovery.probe_timeout(max_ack_delay);
        let earliest = self
            .spaces_in_use()
            .iter()
            .filter_map(|&level| {
                let ledger = &self.space(level)?.ledger;
                // 1-RTT packets may be beyond what the peer can read yet.
                if ledger.eliciting_in_flight() == 0
                    || (level == EncryptionLevel::OneRtt && !self.handshake.is_confirmed())
                {
                    return None;
                }
                let delay = match level {
                    EncryptionLevel::OneRtt => self.peer_max_ack_delay(),
                    _ => Duration::ZERO,
                };
                Some((ledger.last_eliciting_sent_at()? + timeout(delay), level))
            })
            .min_by_key(|(at, _)| *at);
        if earliest.is_some() {
            return earliest;
        }
        // Lost handshake bytes may wait for room in a window that is full of 1-RTT packets, for
        // which no timer runs before the handshake is confirmed.
        let blocked = [EncryptionLevel::Initial, EncryptionLevel::Handshake]
            .into_iter()
            .find(|&early| self.handshake.has_pending(early) && self.space(early).is_some());
        if let Some(level) = blocked
            && !entry
                .recovery
                .has_window_for(entry.path.mtu.current().into())
        {
            return Some((
                self.lifecycle.last_packet_at + timeout(Duration::ZERO),
                level,
            ));
        }
        // A client that has nothing in flight may hold the only key to the server's amplification
        // limit: it probes anyway (RFC 9002, section 6.2.2.1).
        let may_deadlock = self.identity.side.is_client() && !self.server_knows_address();
        may_deadlock.then(|| {
            let level = if self
                .handshake
                .protection_ref()
                .has(EncryptionLevel::Handshake)
            {
                EncryptionLevel::Handshake
            } else {
                EncryptionLevel::Initial
            };
            (
                self.lifecycle.last_packet_at + timeout(Duration::ZERO),
                level,
            )
        })
    }

    /// Bytes that a probe needs: ack-eliciting Initial packets fill a datagram.
    fn smallest_probe(&self) -> u64 {
        let initial = self.space(EncryptionLevel::Initial);
        if initial.is_some_and(|space| space.ledger.eliciting_in_flight() > 0) {
            MIN_INITIAL_SIZE as u64
        } else {
            MIN_PACKET_ROOM as u64
        }
    }

    /// True once the server has shown that it validated our address: it acknowledged a Handshake
    /// packet or confirmed the handshake.
    fn server_knows_address(&self) -> bool {
        self.handshake.is_confirmed()
            || self
                .space(EncryptionLevel::Handshake)
                .is_none_or(|space| space.ledger.largest_acked().is_some())
    }

    fn on_probe_timeout(&mut self, now: Instant, level: EncryptionLevel) {
        let recovery = &mut self.paths.first_mut().recovery;
        recovery.on_pto(now, &mut self.rng);
        let count = recovery.pto_count();
        self.monitor.observe(
            now,
            &Observation::ProbeTimeout {
                path: PathId::ZERO,
                level,
                count,
            },
        );
        if level != EncryptionLevel::OneRtt {
            self.ask_for_copies();
        }
        // The other early space may wait for the same lost datagram: probe both at once.
        for early in [EncryptionLevel::Initial, EncryptionLevel::Handshake] {
            if level != early && self.handshake.protection_ref().has(early) {
                self.repeat_oldest(now, early, 1);
                if let Some(space) = self.space_mut(early)
                    && space.ledger.eliciting_in_flight() > 0
                {
                    space.probes = 1;
                }
            }
        }
        // Early data left in the same datagrams.
        if self.can_seal(EncryptionLevel::ZeroRtt) {
            self.repeat_oldest(now, EncryptionLevel::ZeroRtt, usize::from(PROBES));
        }
        self.repeat_oldest(now, level, usize::from(PROBES));
        if let Some(space) = self.space_mut(level) {
            space.probes = PROBES;
        }
        self.paths.first_mut().path.ecn.on_probe_timeout();
        self.emit_ecn(now);
    }

    fn idle_deadline(&self) -> Option<Instant> {
        self.lifecycle.idle_deadline(self.pto())
    }

    fn handshake_deadline(&self) -> Option<Instant> {
        (!self.handshake.is_complete())
            .then(|| self.lifecycle.started_at() + self.identity.config.handshake_timeout)
    }

    /// When a PING is sent for want of anything else: as often as the application wants, and often
    /// enough while flow control holds back what it wrote (RFC 9000, section 4.1).
    fn keep_alive_deadline(&self) -> Option<Instant> {
        let configured = self.identity.config.keep_alive_interval;
        let asked = self.lifecycle.keep_alive();
        // Without any time between them, PINGs would never end.
        let wanted = configured.into_iter().chain(asked);
        let wanted = wanted.filter(|interval| !interval.is_zero()).min();
        let blocked = self
            .lifecycle
            .idle_timeout()
            .filter(|_| self.streams.is_flow_limited())
            .map(|timeout| (timeout / BLOCKED_PINGS).max(self.pto()));
        let interval = match (wanted, blocked) {
            (Some(wanted), Some(blocked)) => wanted.min(blocked),
            (wanted, blocked) => wanted.or(blocked)?,
        };
        (self.handshake.is_confirmed() && !self.paths.first().space.ping)
            .then(|| self.lifecycle.last_packet_at + interval)
    }
}
