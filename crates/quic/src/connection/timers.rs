//! When the connection wakes, and what it does then (RFC 9000, section 10; RFC 9002, section 6.2).
//!
//! Deadlines are computed from the state that they depend on, a handful per path, so that none can
//! go stale.

use std::time::Duration;

use swiftwater_units::{Instant, PathId};

use crate::crypto::Epoch;
use crate::error::ConnectionError;
use crate::observe::Observation;
use crate::policy::Occasion;

use super::Connection;
use super::transmit::{MIN_INITIAL_SIZE, MIN_PACKET_ROOM};

/// Ack-eliciting packets sent when a probe timeout expires.
const PROBES: u8 = 2;
/// Back-off exponent at which the probe timeout stops growing.
const MAX_BACKOFF: u32 = 16;

impl Connection {
    /// When [`Connection::handle_timeout`] wants to be called, `None` for never.
    pub fn poll_timeout(&self) -> Option<Instant> {
        if !self.lifecycle.is_open() {
            return self.lifecycle.end();
        }
        let entry = self.paths.first();
        let ack = if self.handshake.is_complete() && self.address_has_room() {
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
        consider(entry.recovery.next_controller_timer());
        consider(self.idle_deadline());
        consider(self.handshake_deadline());
        consider(self.keep_alive_deadline());
        consider(self.handshake.protection_ref().previous_expires());
        consider(self.policies.reinjector.next_deadline());
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
        self.handshake.protection().expire_previous(now);
        if self.paths.first_mut().path.validation.on_timeout(now) {
            self.on_validation_failed(now);
        }
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
        if let Some((at, epoch)) = self.loss_deadline() {
            if at <= now {
                self.on_loss_timeout(now, epoch);
            }
        } else if let Some((at, epoch)) = self.pto_deadline()
            && at <= now
        {
            self.on_probe_timeout(now, epoch);
        }
        let pacing = &mut self.paths.first_mut().pacing_until;
        if due(*pacing) {
            *pacing = None;
        }
        self.drain_stream_control();
    }

    /// The earliest time at which a packet becomes lost by age, and its epoch.
    fn loss_deadline(&self) -> Option<(Instant, Epoch)> {
        Epoch::ALL
            .into_iter()
            .filter_map(|epoch| Some((self.space(epoch)?.loss_time?, epoch)))
            .min_by_key(|(at, _)| *at)
    }

    /// False while the amplification limit permits no packet: then there is nothing to wake for.
    fn address_has_room(&self) -> bool {
        self.paths.first().path.amplification.budget() >= MIN_PACKET_ROOM as u64
    }

    /// The earliest probe timeout, and the epoch to probe in (RFC 9002, appendix A.8), while no loss
    /// deadline runs.
    fn pto_deadline(&self) -> Option<(Instant, Epoch)> {
        let entry = self.paths.first();
        // A probe that can't be sent must not be timed: it would only use up the back-off (RFC
        // 9002, section 6.2.2.1).
        if entry.path.amplification.budget() < self.smallest_probe() {
            return None;
        }
        let backoff = 1_u32 << entry.recovery.pto_count().min(MAX_BACKOFF);
        let base = entry.recovery.pto_base();
        let earliest = Epoch::ALL
            .into_iter()
            .filter_map(|epoch| {
                let ledger = &self.space(epoch)?.ledger;
                // 1-RTT packets may be beyond what the peer can read yet.
                if ledger.eliciting_in_flight() == 0
                    || (epoch == Epoch::OneRtt && !self.handshake.is_confirmed())
                {
                    return None;
                }
                let delay = match epoch {
                    Epoch::OneRtt => self.peer_max_ack_delay(),
                    _ => Duration::ZERO,
                };
                Some((
                    ledger.last_eliciting_sent_at()? + (base + delay) * backoff,
                    epoch,
                ))
            })
            .min_by_key(|(at, _)| *at);
        if earliest.is_some() {
            return earliest;
        }
        // Lost handshake bytes may wait for room in a window that is full of 1-RTT packets, for
        // which no timer runs before the handshake is confirmed.
        let blocked = [Epoch::Initial, Epoch::Handshake]
            .into_iter()
            .find(|&early| self.handshake.has_pending(early) && self.space(early).is_some());
        if let Some(epoch) = blocked
            && !entry
                .recovery
                .has_window_for(entry.path.max_datagram_size.into())
        {
            return Some((self.lifecycle.last_packet_at + base * backoff, epoch));
        }
        // A client that has nothing in flight may hold the only key to the server's amplification
        // limit: it probes anyway (RFC 9002, section 6.2.2.1).
        let may_deadlock = self.identity.side.is_client() && !self.server_knows_address();
        may_deadlock.then(|| {
            let epoch = if self.handshake.protection_ref().has(Epoch::Handshake) {
                Epoch::Handshake
            } else {
                Epoch::Initial
            };
            (self.lifecycle.last_packet_at + base * backoff, epoch)
        })
    }

    /// Bytes that a probe needs: ack-eliciting Initial packets fill a datagram.
    fn smallest_probe(&self) -> u64 {
        let initial = self.space(Epoch::Initial);
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
                .space(Epoch::Handshake)
                .is_none_or(|space| space.ledger.largest_acked().is_some())
    }

    fn on_probe_timeout(&mut self, now: Instant, epoch: Epoch) {
        let recovery = &mut self.paths.first_mut().recovery;
        recovery.on_pto(now, &mut self.rng);
        let count = recovery.pto_count();
        self.monitor.observe(
            now,
            &Observation::ProbeTimeout {
                path: PathId::ZERO,
                count,
            },
        );
        // The other early space may wait for the same lost datagram: probe both at once.
        for early in [Epoch::Initial, Epoch::Handshake] {
            if epoch != early && self.handshake.protection_ref().has(early) {
                self.repeat_oldest(now, early, 1);
                if let Some(space) = self.space_mut(early)
                    && space.ledger.eliciting_in_flight() > 0
                {
                    space.probes = 1;
                }
            }
        }
        self.repeat_oldest(now, epoch, usize::from(PROBES));
        if let Some(space) = self.space_mut(epoch) {
            space.probes = PROBES;
        }
        self.paths.first_mut().path.ecn.on_probe_timeout();
    }

    fn idle_deadline(&self) -> Option<Instant> {
        self.lifecycle.idle_deadline(self.pto())
    }

    fn handshake_deadline(&self) -> Option<Instant> {
        (!self.handshake.is_complete())
            .then(|| self.lifecycle.started_at() + self.identity.config.handshake_timeout)
    }

    fn keep_alive_deadline(&self) -> Option<Instant> {
        let interval = self.identity.config.keep_alive_interval;
        // Without any time between them, PINGs would never end.
        let interval = interval.filter(|interval| !interval.is_zero())?;
        (self.handshake.is_confirmed() && !self.paths.first().space.ping)
            .then(|| self.lifecycle.last_packet_at + interval)
    }
}
