//! Observations of state that may change in many places: keys, stages of the handshake, the peer's
//! connection IDs, the controller's state, the timer of loss detection, flow control.
//!
//! Each is compared with what was reported last, after a datagram was processed and after all that can
//! be sent was sent. Without an observer nothing of this is done, apart from the time for which flow
//! control holds data back, which the statistics count.

use std::time::Duration;

use swiftwater_units::{Instant, PathId};
use swiftwater_wire::{ConnectionId, TransportParameters};

use crate::crypto::EncryptionLevel;
use crate::handshake::Handshake;
use crate::identity::Identity;
use crate::observe::{HandshakeStage, LossTimer, Observation, Owner, TimerChange};
use crate::path::{PathSet, PathState};
use crate::space::SpaceId;

use super::Monitor;

/// What was reported last.
#[derive(Debug, Default)]
pub(crate) struct LastReported {
    /// A bit for each encryption level with keys.
    keys: u8,
    stage: Option<HandshakeStage>,
    peer_parameters: bool,
    remote_cid: Option<ConnectionId>,
    congestion: Option<&'static str>,
    /// Decisions of the re-injector.
    pub(crate) reinjector_decisions: u64,
    timer: Option<TimerState>,
}

/// The timer of loss detection while it runs.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct TimerState {
    pub(crate) timer: LossTimer,
    pub(crate) space: SpaceId,
    pub(crate) expires_at: Instant,
}

/// How a connection begins.
pub(crate) struct Beginning<'a> {
    pub(crate) identity: &'a Identity,
    pub(crate) handshake: &'a Handshake,
    pub(crate) path: &'a PathState,
    pub(crate) versions: &'a [u32],
    pub(crate) parameters: &'a TransportParameters,
}

impl Monitor {
    /// Shows the observer how the connection begins.
    pub(crate) fn report_start(&mut self, now: Instant, beginning: &Beginning<'_>) {
        let &Beginning {
            identity,
            handshake,
            path,
            versions,
            parameters,
        } = beginning;
        let Some(start) = identity.start.as_deref().filter(|_| self.is_observed()) else {
            return;
        };
        let remote_cid = path.cids.remote.current();
        let started = Observation::Started {
            side: identity.side,
            path: path.network.address,
            original_dst_cid: start.original_dst_cid,
            local_cid: path.cids.local.first(),
            remote_cid,
            version: handshake.version(),
            versions,
        };
        self.last_reported.need().remote_cid = Some(remote_cid);
        self.observe(now, &started);
        let local = Observation::Parameters {
            owner: Owner::Local,
            parameters,
        };
        self.observe(now, &local);
        let recovery = &path.recovery;
        let parameters = Observation::RecoveryParameters {
            path: path.id,
            controller: recovery.controller().name(),
            packet_threshold: recovery.loss_thresholds().packets,
            initial_rtt: identity.config.initial_rtt,
            max_datagram_size: recovery.max_datagram_size(),
            initial_window: recovery.cwnd(),
        };
        self.observe(now, &parameters);
        self.report_keys(now, handshake);
        self.report_metrics(now, path);
    }

    /// Shows the observer what has changed with the datagram that was processed.
    pub(crate) fn report_changes(&mut self, now: Instant, handshake: &Handshake, paths: &PathSet) {
        if !self.is_observed() {
            return;
        }
        self.report_keys(now, handshake);
        self.report_handshake(now, handshake);
        let cid = paths.primary().cids.remote.current();
        if let Some(before) = self.last_reported.need().remote_cid.replace(cid)
            && before != cid
        {
            self.observe(now, &Observation::ConnectionIdUsed { before, cid });
        }
    }

    fn report_keys(&mut self, now: Instant, handshake: &Handshake) {
        let before = self.last_reported.need().keys;
        for level in EncryptionLevel::ALL {
            let bit = 1 << level as u8;
            let (had, has) = (before & bit != 0, handshake.keys().has(level));
            if had == has {
                continue;
            }
            self.last_reported.need().keys ^= bit;
            let observation = if has {
                Observation::KeysInstalled { level }
            } else {
                Observation::KeysDiscarded { level }
            };
            self.observe(now, &observation);
        }
    }

    fn report_handshake(&mut self, now: Instant, handshake: &Handshake) {
        if let Some(parameters) = handshake.peer_parameters()
            && !std::mem::replace(&mut self.last_reported.need().peer_parameters, true)
        {
            let remote = Observation::Parameters {
                owner: Owner::Remote,
                parameters,
            };
            self.observe(now, &remote);
            if let Some(protocol) = handshake.session().and_then(|session| session.alpn()) {
                self.observe(now, &Observation::Alpn { protocol });
            }
        }
        let started = handshake.keys().has(EncryptionLevel::Handshake) || handshake.is_complete();
        let stages = [
            (started, HandshakeStage::Started),
            (handshake.is_complete(), HandshakeStage::Complete),
            (handshake.is_confirmed(), HandshakeStage::Confirmed),
        ];
        for (reached, stage) in stages {
            if reached && self.last_reported.need().stage < Some(stage) {
                self.last_reported.need().stage = Some(stage);
                self.observe(now, &Observation::HandshakeProgress { stage });
            }
        }
    }

    /// Shows the observer how the timer of loss detection now runs, if it does.
    pub(crate) fn report_timer(
        &mut self,
        now: Instant,
        timer: Option<TimerState>,
        paths: &PathSet,
    ) {
        let before = std::mem::replace(&mut self.last_reported.need().timer, timer);
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
        self.report_timer_change(now, paths, shown, change);
    }

    /// The timer that was reported has expired.
    pub(crate) fn report_expired(&mut self, now: Instant, state: TimerState, paths: &PathSet) {
        if let Some(reported) = self.last_reported.get_mut() {
            reported.timer = None;
        }
        // A probe timeout has an observation of its own.
        if state.timer != LossTimer::Probe {
            self.report_timer_change(now, paths, state, TimerChange::Expired);
        }
    }

    fn report_timer_change(
        &mut self,
        now: Instant,
        paths: &PathSet,
        state: TimerState,
        change: TimerChange,
    ) {
        let Some(path) = paths.path_for(state.space) else {
            return;
        };
        let observation = Observation::LossTimer {
            path: path.id,
            timer: state.timer,
            level: state.space.level(),
            change,
        };
        self.observe(now, &observation);
    }

    /// Counts the time for which the peer's flow control holds data back.
    pub(crate) fn note_flow_control(&mut self, now: Instant, blocked: bool) {
        let since = &mut self.blocked_since;
        if blocked == since.is_some() {
            return;
        }
        match since.take() {
            Some(since) => self.stats.flow_blocked += now.saturating_since(since),
            None => *since = Some(now),
        }
        self.observe(now, &Observation::FlowBlocked { blocked });
    }

    /// Time for which the peer's flow control has held data back until `now`.
    pub(crate) fn flow_blocked(&self, now: Instant) -> Duration {
        let running = self.blocked_since;
        let running = running.map_or(Duration::ZERO, |since| now.saturating_since(since));
        self.stats.flow_blocked + running
    }

    /// Shows the observer the state of a path's recovery.
    pub(crate) fn report_metrics(&mut self, now: Instant, path: &PathState) {
        if !self.is_observed() {
            return;
        }
        let (id, recovery) = (path.id, &path.recovery);
        let rtt = recovery.rtt();
        let snapshot = recovery.controller().snapshot();
        let observation = Observation::Metrics {
            path: id,
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
        self.observe(now, &observation);
        self.report_congestion_state(now, id, snapshot.state);
    }

    fn report_congestion_state(&mut self, now: Instant, path: PathId, state: &'static str) {
        let before = self.last_reported.need().congestion.replace(state);
        if before != Some(state) {
            let observation = Observation::CongestionState {
                path,
                before,
                state,
            };
            self.observe(now, &observation);
        }
    }

    /// Shows the observer what validation has found out about ECN.
    pub(crate) fn report_ecn(&mut self, now: Instant, path: &mut PathState) {
        if let Some(state) = path.network.ecn.take_change() {
            let path = path.id;
            self.observe(now, &Observation::EcnUpdated { path, state });
        }
    }
}
