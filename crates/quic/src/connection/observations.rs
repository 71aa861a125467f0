//! Observations of state that may change in many places: keys, stages of the handshake, the peer's
//! connection IDs, the controller's state, the timer of loss detection, flow control.
//!
//! Each is compared with what was reported last, after a datagram was processed and after all that can
//! be sent was sent. Without an observer nothing of this is done, apart from the time for which flow
//! control holds data back, which the statistics count.

use swiftwater_units::{Instant, PathId};
use swiftwater_wire::{ConnectionId, TransportParameters};

use crate::crypto::EncryptionLevel;
use crate::observe::{HandshakeStage, LossTimer, Observation, Owner, TimerChange};
use crate::space::SpaceId;

use super::Connection;
use super::monitor::Monitor;

/// What was reported last.
#[derive(Debug, Default)]
pub(super) struct LastReported {
    /// A bit for each encryption level with keys.
    keys: u8,
    stage: Option<HandshakeStage>,
    peer_parameters: bool,
    remote_cid: Option<ConnectionId>,
    congestion: Option<&'static str>,
    /// Decisions of the re-injector.
    pub(super) reinjector_decisions: u64,
    timer: Option<TimerState>,
}

/// The timer of loss detection while it runs.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct TimerState {
    pub(super) timer: LossTimer,
    pub(super) space: SpaceId,
    pub(super) expires_at: Instant,
}

impl Connection {
    /// Shows the observer how the connection begins.
    pub(super) fn emit_start(
        &mut self,
        now: Instant,
        versions: &[u32],
        parameters: &TransportParameters,
    ) {
        if !self.monitor.is_observed() {
            return;
        }
        self.streams.record_lives();
        let Some(original_dst_cid) =
            (self.identity.start.as_deref()).map(|start| start.original_dst_cid)
        else {
            return;
        };
        let path = self.paths.primary();
        let path_id = path.id;
        let started = Observation::Started {
            side: self.identity.side,
            path: path.link.address,
            original_dst_cid,
            local_cid: path.cids.local.first(),
            remote_cid: path.cids.remote.current(),
            version: self.handshake.version(),
            versions,
        };
        self.monitor.last_reported.need().remote_cid = Some(path.cids.remote.current());
        self.monitor.observe(now, &started);
        let ours = Observation::Parameters {
            owner: Owner::Local,
            parameters,
        };
        self.monitor.observe(now, &ours);
        let recovery = &self.paths.primary().recovery;
        let parameters = Observation::RecoveryParameters {
            path: path_id,
            controller: recovery.controller().name(),
            packet_threshold: recovery.loss_thresholds().packets,
            initial_rtt: self.identity.config.initial_rtt,
            max_datagram_size: recovery.max_datagram_size(),
            initial_window: recovery.cwnd(),
        };
        self.monitor.observe(now, &parameters);
        self.emit_keys(now);
        self.observe_metrics(now, path_id);
    }

    /// Shows the observer what has changed with the datagram that was processed.
    pub(super) fn emit_changes(&mut self, now: Instant) {
        if !self.monitor.is_observed() {
            return;
        }
        self.emit_keys(now);
        self.emit_handshake(now);
        let cid = self.paths.primary().cids.remote.current();
        if let Some(before) = self.monitor.last_reported.need().remote_cid.replace(cid)
            && before != cid
        {
            self.monitor
                .observe(now, &Observation::ConnectionIdUsed { before, cid });
        }
    }

    /// Shows the observer the state in which the connection waits: there is nothing to send.
    pub(super) fn emit_idle(&mut self, now: Instant) {
        self.note_flow(now);
        if !self.monitor.is_observed() {
            return;
        }
        self.emit_changes(now);
        self.emit_timer(now);
    }

    fn emit_keys(&mut self, now: Instant) {
        let before = self.monitor.last_reported.need().keys;
        for level in EncryptionLevel::ALL {
            let bit = 1 << level as u8;
            let (had, has) = (before & bit != 0, self.handshake.keys().has(level));
            if had == has {
                continue;
            }
            self.monitor.last_reported.need().keys ^= bit;
            let observation = if has {
                Observation::KeysInstalled { level }
            } else {
                Observation::KeysDiscarded { level }
            };
            self.monitor.observe(now, &observation);
        }
    }

    fn emit_handshake(&mut self, now: Instant) {
        let handshake = &self.handshake;
        if let Some(parameters) = handshake.peer_parameters()
            && !self.monitor.last_reported.need().peer_parameters
        {
            self.monitor.last_reported.need().peer_parameters = true;
            let theirs = Observation::Parameters {
                owner: Owner::Remote,
                parameters,
            };
            self.monitor.observe(now, &theirs);
            if let Some(protocol) = handshake.session().and_then(|session| session.alpn()) {
                self.monitor.observe(now, &Observation::Alpn { protocol });
            }
        }
        let started = handshake.keys().has(EncryptionLevel::Handshake) || handshake.is_complete();
        let stages = [
            (started, HandshakeStage::Started),
            (handshake.is_complete(), HandshakeStage::Complete),
            (handshake.is_confirmed(), HandshakeStage::Confirmed),
        ];
        for (reached, stage) in stages {
            if reached && self.monitor.last_reported.need().stage < Some(stage) {
                self.monitor.last_reported.need().stage = Some(stage);
                self.monitor
                    .observe(now, &Observation::HandshakeProgress { stage });
            }
        }
    }

    fn emit_timer(&mut self, now: Instant) {
        let timer = self.loss_timer();
        let before = std::mem::replace(&mut self.monitor.last_reported.need().timer, timer);
        if timer == before {
            return;
        }
        let (shown, change) = match (timer, before) {
            (Some(state), _) => {
                let left = state.expires_at.saturating_since(now);
                (state, TimerChange::Set(left))
            }
            (None, Some(state)) => (state, TimerChange::Cancelled),
            (None, None) => return,
        };
        if let Some(path) = self.paths.path_for(shown.space) {
            self.monitor.timer(now, path.id, shown, change);
        }
    }

    /// The timer that was reported to observers has expired.
    pub(super) fn emit_expired(&mut self, now: Instant, state: TimerState) {
        if let Some(reported) = self.monitor.last_reported.get_mut() {
            reported.timer = None;
        }
        // A probe timeout has an observation of its own.
        if state.timer != LossTimer::Probe
            && let Some(path) = self.paths.path_for(state.space)
        {
            let expired = TimerChange::Expired;
            self.monitor.timer(now, path.id, state, expired);
        }
    }

    /// Counts the time for which the peer's flow control holds data back.
    fn note_flow(&mut self, now: Instant) {
        let blocked = self.streams.is_flow_limited();
        let since = &mut self.monitor.blocked_since;
        if blocked == since.is_some() {
            return;
        }
        match since.take() {
            Some(since) => self.monitor.stats.flow_blocked += now.saturating_since(since),
            None => *since = Some(now),
        }
        self.monitor
            .observe(now, &Observation::FlowBlocked { blocked });
    }

    /// State of recovery, for observers.
    pub(super) fn observe_metrics(&mut self, now: Instant, path: PathId) {
        if !self.monitor.is_observed() {
            return;
        }
        let Some(recovery) = self.paths.get(path).map(|path| &path.recovery) else {
            return;
        };
        let rtt = recovery.rtt();
        let snapshot = recovery.controller().snapshot();
        let observation = Observation::Metrics {
            path,
            smoothed_rtt: rtt.smoothed,
            latest_rtt: rtt.latest,
            min_rtt: rtt.min,
            rtt_var: rtt.var,
            cwnd: recovery.cwnd(),
            ssthresh: snapshot.ssthresh,
            pacing_rate: recovery.pacing_rate(),
            bytes_in_flight: recovery.bytes_in_flight(),
            pto_count: recovery.pto_count(),
        };
        self.monitor.observe(now, &observation);
        let state = snapshot.state;
        let before = self.monitor.last_reported.need().congestion.replace(state);
        if before != Some(state) {
            let observation = Observation::CongestionState {
                path,
                before,
                state,
            };
            self.monitor.observe(now, &observation);
        }
    }

    /// Reports what resets of streams brought about to the re-injector and to the observer, and which
    /// streams came and went to the observer.
    pub(super) fn emit_resets(&mut self, now: Instant) {
        while let Some((id, begins)) = self.streams.poll_life() {
            let observation = if begins {
                Observation::StreamOpened { id }
            } else {
                Observation::StreamClosed { id }
            };
            self.monitor.observe(now, &observation);
        }
        while let Some(notice) = self.streams.poll_notice() {
            let reset = Observation::StreamReset {
                id: notice.id,
                cause: notice.cause,
                code: notice.code,
                final_size: notice.final_size,
                reliable_size: notice.reliable_size,
            };
            self.monitor.observe(now, &reset);
            let (mut fates, _) = self.fates(now);
            fates.report_repairs();
        }
    }
}

impl Monitor {
    fn timer(&mut self, now: Instant, path: PathId, state: TimerState, change: TimerChange) {
        let observation = Observation::LossTimer {
            path,
            timer: state.timer,
            level: state.space.level(),
            change,
        };
        self.observe(now, &observation);
    }

    /// Time for which the peer's flow control has held data back until `now`.
    pub(super) fn flow_blocked(&self, now: Instant) -> std::time::Duration {
        let running = self.blocked_since;
        self.stats.flow_blocked
            + running.map_or(std::time::Duration::ZERO, |since| {
                now.saturating_since(since)
            })
    }
}
