//! What observers hear of states that may change in many places: keys, stages of the handshake, the
//! peer's connection IDs, the controller's state, the timer of loss detection, flow control.
//!
//! Each is compared with what was told last, when a datagram has been taken in and when all that can
//! be sent was sent. Nothing of this happens while nobody watches, apart from the time for which flow
//! control holds data back, which the statistics count.

use swiftwater_units::{Instant, PathId};
use swiftwater_wire::{ConnectionId, TransportParameters};

use crate::crypto::EncryptionLevel;
use crate::observe::{HandshakeStage, LossTimer, LossTrigger, Observation, Owner, TimerChange};

use super::Connection;
use super::parts::Monitor;

/// What was told last.
#[derive(Debug, Default)]
pub(super) struct LastReported {
    /// A bit for each encryption level with keys.
    keys: u8,
    stage: Option<HandshakeStage>,
    peer_parameters: bool,
    remote_cid: Option<ConnectionId>,
    congestion: Option<&'static str>,
    timer: Option<(LossTimer, EncryptionLevel, Instant)>,
}

impl Connection {
    /// Tells how the connection begins.
    pub(super) fn emit_start(
        &mut self,
        now: Instant,
        versions: &[u32],
        parameters: &TransportParameters,
    ) {
        if !self.monitor.is_watched() {
            return;
        }
        self.streams.record_lives();
        let Some(original_dst_cid) =
            (self.identity.start.as_deref()).map(|start| start.original_dst_cid)
        else {
            return;
        };
        let path = &self.paths.first().path;
        let started = Observation::Started {
            side: self.identity.side,
            path: path.address,
            original_dst_cid,
            local_cid: path.local_cids.first(),
            remote_cid: path.remote_cids.current(),
            version: self.handshake.version(),
            versions,
        };
        self.monitor.last_reported.need().remote_cid = Some(path.remote_cids.current());
        self.monitor.observe(now, &started);
        let ours = Observation::Parameters {
            owner: Owner::Local,
            parameters,
        };
        self.monitor.observe(now, &ours);
        let recovery = &self.paths.first().recovery;
        let parameters = Observation::RecoveryParameters {
            path: PathId::ZERO,
            controller: recovery.controller().name(),
            packet_threshold: recovery.loss_thresholds().packets,
            initial_rtt: self.identity.config.initial_rtt,
            max_datagram_size: recovery.max_datagram_size(),
            initial_window: recovery.cwnd(),
        };
        self.monitor.observe(now, &parameters);
        self.emit_keys(now);
        self.observe_metrics(now, PathId::ZERO);
    }

    /// Tells what has changed with the datagram that was taken in.
    pub(super) fn emit_changes(&mut self, now: Instant) {
        if !self.monitor.is_watched() {
            return;
        }
        self.emit_keys(now);
        self.emit_handshake(now);
        let cid = self.paths.first().path.remote_cids.current();
        if let Some(before) = self.monitor.last_reported.need().remote_cid.replace(cid)
            && before != cid
        {
            self.monitor
                .observe(now, &Observation::ConnectionIdUsed { before, cid });
        }
    }

    /// Tells in which state the connection waits for something to happen; there is nothing to send.
    pub(super) fn emit_rest(&mut self, now: Instant) {
        self.note_flow(now);
        if !self.monitor.is_watched() {
            return;
        }
        self.emit_changes(now);
        self.emit_timer(now);
    }

    fn emit_keys(&mut self, now: Instant) {
        let before = self.monitor.last_reported.need().keys;
        for level in EncryptionLevel::ALL {
            let bit = 1 << level as u8;
            let (had, has) = (
                before & bit != 0,
                self.handshake.protection_ref().has(level),
            );
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
        let started =
            handshake.protection_ref().has(EncryptionLevel::Handshake) || handshake.is_complete();
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
        let told = std::mem::replace(&mut self.monitor.last_reported.need().timer, timer);
        if timer == told {
            return;
        }
        let (shown, change) = match (timer, told) {
            (Some((timer, level, at)), _) => {
                ((timer, level), TimerChange::Set(at.saturating_since(now)))
            }
            (None, Some((timer, level, _))) => ((timer, level), TimerChange::Cancelled),
            (None, None) => return,
        };
        self.monitor.timer(now, shown, change);
    }

    /// The timer that told observers of itself has expired.
    pub(super) fn emit_expired(&mut self, now: Instant, timer: LossTimer, level: EncryptionLevel) {
        if let Some(told) = self.monitor.last_reported.get_mut() {
            told.timer = None;
        }
        if timer != LossTimer::Probe {
            // A probe timeout has an observation of its own.
            self.monitor
                .timer(now, (timer, level), TimerChange::Expired);
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
        if !self.monitor.is_watched() {
            return;
        }
        let recovery = &self.paths.get(path).recovery;
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

    /// What showed that packet `number` of `level` is lost.
    pub(super) fn loss_trigger(&self, level: EncryptionLevel, number: u64) -> LossTrigger {
        let packets = self.paths.first().recovery.loss_thresholds().packets;
        let space = self.space(level);
        let largest = space.and_then(|space| space.ledger.largest_acked());
        if largest.is_some_and(|largest| number.saturating_add(packets) <= largest.get()) {
            LossTrigger::PacketThreshold
        } else {
            LossTrigger::TimeThreshold
        }
    }
}

impl Monitor {
    fn timer(
        &mut self,
        now: Instant,
        (timer, level): (LossTimer, EncryptionLevel),
        change: TimerChange,
    ) {
        let path = PathId::ZERO;
        self.observe(
            now,
            &Observation::LossTimer {
                path,
                timer,
                level,
                change,
            },
        );
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
