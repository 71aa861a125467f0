//! What a connection does at its deadlines, without input (RFC 9000, section 10; RFC 9002, section 6.2).

use swiftwater_units::Instant;

use crate::deadlines::Deadlines;
use crate::error::ConnectionError;
use crate::establishment::PROBES;
use crate::lifecycle::{STOPPED_DRIVER, Termination};
use crate::multipath::Multipath;
use crate::observe::{LossTimer, Observation};
use crate::space::SpaceId;

use super::Connection;

impl Connection {
    fn deadlines(&self) -> Deadlines<'_> {
        Deadlines {
            side: self.identity.side,
            config: &self.identity.config,
            handshake: &self.handshake,
            paths: &self.paths,
            ack_route: (self.multipath.as_deref()).map(Multipath::ack_route),
            streams: &self.streams,
            lifecycle: &self.lifecycle,
            max_ack_delay: self.peer_max_ack_delay(),
        }
    }

    /// When [`Connection::handle_timeout`] is to be called, `None` for never.
    pub fn poll_timeout(&self) -> Option<Instant> {
        if !self.lifecycle.is_open() {
            return self.lifecycle.end();
        }
        let deadlines = self.deadlines();
        let mut next = deadlines.of_paths(self.handshake.may_send_one_rtt());
        let mut consider = |deadline: Option<Instant>| {
            if let Some(at) = deadline {
                next = Some(next.map_or(at, |next: Instant| next.min(at)));
            }
        };
        consider(deadlines.idle());
        consider(deadlines.handshake());
        consider(deadlines.keep_alive());
        consider(deadlines.path_keep_alive().map(|(at, _)| at));
        consider(deadlines.silence());
        consider(self.handshake.keys().previous_expires());
        consider(self.handshake.keys().early_expires());
        consider(self.policies.reinjector_deadline());
        consider(self.policies.feedback_deadline(&self.handshake));
        consider(self.streams.next_expiry());
        consider(self.streams.next_grant());
        consider(self.control.next_repetition());
        consider(self.datagrams.next_expiry());
        if let Some(multipath) = &self.multipath {
            consider(multipath.records.next_closing_step());
            consider(self.next_abandonment().map(|(at, _)| at));
            consider(self.paths.next_cid_expiry());
        }
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
        if due(self.deadlines().handshake()) {
            let reason = ConnectionError::HandshakeTimedOut;
            return self.terminate(now, Termination::Silent { reason });
        }
        if due(self.deadlines().idle()) {
            let reason = ConnectionError::TimedOut;
            return self.terminate(now, Termination::Silent { reason });
        }
        let timer = self.deadlines().loss_timer().map(|timer| timer.expires_at);
        self.lifecycle.detect_stopped_driver(now, timer);
        self.handshake.keys_mut().expire_previous(now);
        self.on_path_timeouts(now);
        if !self.lifecycle.is_open() {
            return;
        }
        while let Some((id, number)) = self.paths.overdue_mtu_probe(now) {
            self.abandon_mtu_probe(now, id, number);
            // Without other packets nothing shows whether it was too large.
            self.datagrams.on_largest_packets();
        }
        if due(self.deadlines().keep_alive()) {
            self.ping();
        }
        while let Some((at, path)) = self.deadlines().path_keep_alive()
            && at <= now
        {
            self.ping_path(path);
        }
        if due(self.deadlines().silence()) {
            let awaits_data = self.streams.is_awaiting_data();
            let progress = self.streams.progress();
            self.lifecycle.liveness.on_silence(progress, awaits_data);
            if awaits_data {
                self.ping();
            }
        }
        for path in self.paths.iter_mut() {
            let rng = &mut self.identity.random.generator;
            path.recovery.on_controller_timer(now, rng);
        }
        self.policies
            .on_timeout(now, &self.paths, &self.streams, &mut self.monitor);
        if due(self.policies.feedback_deadline(&self.handshake)) {
            let (handshake, monitor) = (&self.handshake, &mut self.monitor);
            self.policies
                .poll_feedback(now, handshake, &self.paths, monitor);
        }
        self.on_recovery_timeouts(now);
        if self.multipath.is_some() {
            self.on_closing_timeouts(now);
            self.abandon_silent_paths(now);
            self.connection_ids().forget_retired(now);
        }
        self.paths.on_pacing_timeout(now);
        self.streams.expire(now);
        self.streams.grant_by(now);
        self.control.repeat_by(now);
        self.datagrams.expire(now);
        self.streams.drain_control(&mut self.control);
        self.report_data_events(now);
    }

    /// The loss timer or the probe timer, whichever runs, of each path.
    fn on_recovery_timeouts(&mut self, now: Instant) {
        let mut left = self.paths.iter().count();
        while left > 0
            && let Some(state) = self.deadlines().loss_timer()
            && state.expires_at <= now
        {
            left -= 1;
            self.monitor.report_expired(now, state, &self.paths);
            match state.timer {
                LossTimer::TimeThreshold => self.on_loss_timeout(now, state.space),
                LossTimer::Probe => self.on_probe_timeout(now, state.space),
            }
        }
    }

    /// There is nothing to send: counts the time of flow control, and shows the observer the state in
    /// which the connection waits.
    pub(super) fn report_idle(&mut self, now: Instant) {
        let blocked = self.streams.is_flow_limited();
        self.monitor.note_flow_control(now, blocked);
        if self.monitor.is_observed() {
            let timer = self.deadlines().loss_timer();
            let (handshake, paths) = (&self.handshake, &self.paths);
            self.monitor.report_changes(now, handshake, paths);
            self.monitor.report_timer(now, timer, paths);
        }
    }

    /// Ends the connection if its time was over before a packet came; true if it is over. Such a
    /// packet is too late even if the driver called [`Connection::handle_timeout`] too late.
    pub(super) fn ends_before(&mut self, now: Instant) -> bool {
        if now.saturating_since(self.lifecycle.last_packet_at) < STOPPED_DRIVER {
            return false;
        }
        let over = |deadline: Option<Instant>| deadline.is_some_and(|at| at < now);
        let reason = if !self.lifecycle.is_open() {
            return false;
        } else if over(self.deadlines().handshake()) {
            ConnectionError::HandshakeTimedOut
        } else if over(self.deadlines().idle()) {
            ConnectionError::TimedOut
        } else {
            let timer = self.deadlines().loss_timer().map(|timer| timer.expires_at);
            self.lifecycle.detect_stopped_driver(now, timer);
            return false;
        };
        self.terminate(now, Termination::Silent { reason });
        true
    }

    pub(super) fn on_probe_timeout(&mut self, now: Instant, id: SpaceId) {
        let rng = &mut self.identity.random.generator;
        let Some(path) = self.paths.path_for_mut(id) else {
            return;
        };
        path.recovery.on_pto(now, rng);
        path.network.ecn.on_probe_timeout();
        let (path, count) = (path.id, path.recovery.pto_count());
        let observation = Observation::ProbeTimeout {
            path,
            level: id.level(),
            count,
        };
        self.monitor.observe(now, &observation);
        if let Some(multipath) = self.multipath.as_deref_mut().filter(|_| count == 1) {
            multipath.records.of(path).first_pto = Some(now);
        }
        if !id.is_data() {
            let copies = self.identity.config.handshake_pto_copies;
            self.establishment.speedup.request_copies(copies);
        }
        let repeats_early_data = self.handshake.may_send_early_data();
        let (mut fates, buffers) = self.fates(now);
        fates.probe_handshake_spaces(id, &mut buffers.loss);
        if repeats_early_data {
            // They left in the same datagrams.
            fates.repeat_oldest(SpaceId::Data(path), usize::from(PROBES), &mut buffers.loss);
        }
        // A path that falls silent holds up all that waits for its data, while others can carry them.
        let has_other = (fates.paths.open()).any(|other| other.id != path && other.carries_data());
        let repeated = if has_other {
            usize::MAX
        } else {
            usize::from(PROBES)
        };
        fates.repeat_oldest(id, repeated, &mut buffers.loss);
        if id.is_data() {
            self.streams.suspend_path(path, has_other);
            if has_other {
                self.datagrams.discard_path(path);
            }
            self.control.repeat_limits();
        }
        if let Some(space) = self.paths.space_mut(id) {
            space.probes = PROBES;
        }
        if let Some(path) = self.paths.get_mut(path) {
            self.monitor.report_ecn(now, path);
        }
    }
}
