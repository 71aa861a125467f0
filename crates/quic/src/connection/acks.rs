//! Acknowledgements and losses: facts from the ledger, to recovery and to the owners of what the
//! packets carried (RFC 9002, sections 5 to 7).

use std::time::Duration;

use swiftwater_congestion::{EcnCounts, LossCause};
use swiftwater_units::{Instant, PacketNumber, PathId};
use swiftwater_wire::ErrorCode;
use swiftwater_wire::frame::Ack;

use crate::control::{ControlKey, ControlValue};
use crate::crypto::EncryptionLevel;
use crate::error::TransportError;
use crate::frame_writer::{Carried, Fate};
use crate::observe::Observation;
use crate::policy::Occasion;
use crate::recovery::LostRecord;
use crate::space::AckOutcome;
use crate::streams::{Carrier, StreamRun, Verdict};

use super::Connection;

/// Lost packets are remembered for this many PTOs, in case their loss turns out spurious.
const REMEMBER_LOST_PTOS: u32 = 3;

impl Connection {
    /// An ACK frame arrived in `level`.
    pub(super) fn on_ack(
        &mut self,
        now: Instant,
        level: EncryptionLevel,
        ack: &Ack<'_>,
    ) -> Result<(), TransportError> {
        if ack.path.is_some() {
            return Err(TransportError::new(
                ErrorCode::PROTOCOL_VIOLATION,
                "multipath was not negotiated",
            ));
        }
        let mut outcome = std::mem::take(&mut self.scratch.need().outcome);
        let Some(space) = self.space_mut(level) else {
            return Ok(());
        };
        let previous_largest = space.ledger.largest_acked();
        let largest = PacketNumber::new(ack.largest);
        space.ledger.on_ack(largest, ack.ranges(), &mut outcome);
        if outcome.bogus {
            self.scratch.need().outcome = outcome;
            return Err(TransportError::new(
                ErrorCode::PROTOCOL_VIOLATION,
                "acknowledged a packet that was never sent",
            ));
        }
        if let Some((newly_largest, sent_at)) = outcome.largest {
            // Only the largest acknowledged packet gives an honest sample (RFC 9002, section 5.1).
            let awake = sent_at >= self.lifecycle.awake_since;
            if newly_largest == largest && outcome.ack_eliciting && awake {
                let ack_delay = self.ack_delay(level, ack.delay);
                self.paths
                    .first_mut()
                    .recovery
                    .on_rtt_sample(now, sent_at, ack_delay);
            }
            let path = &mut self.paths.first_mut().path;
            // Counts in reordered ACKs look like falling ones: only a new largest tells.
            let ecn = if previous_largest.is_none_or(|previous| largest > previous) {
                path.ecn.on_ack(level, outcome.ecn_marked, ack.ecn)
            } else {
                EcnCounts::default()
            };
            if level == EncryptionLevel::OneRtt {
                self.handshake.protection().on_acked(newly_largest);
            }
            self.settle(now, level, &outcome, ecn);
            // A client's Initial ACK doesn't prove that the server knows its address (RFC 9002,
            // section 6.2.1).
            if self.identity.side.is_server() || level != EncryptionLevel::Initial {
                self.paths.first_mut().recovery.reset_pto_count();
            }
        }
        self.scratch.need().outcome = outcome;
        if level == EncryptionLevel::OneRtt {
            self.ask_for_ack_frequency(now);
        }
        self.emit_ecn(now);
        self.observe_metrics(now, PathId::ZERO);
        self.consult_reinjector(now, Occasion::Ack);
        Ok(())
    }

    /// Tells the peer how often it should acknowledge, when that has changed with the path.
    fn ask_for_ack_frequency(&mut self, now: Instant) {
        let entry = self.paths.first();
        let rtt = entry.recovery.rtt();
        if !rtt.has_sample || !self.handshake.is_confirmed() {
            return;
        }
        let window = entry.recovery.cwnd().get() / u64::from(entry.path.mtu.current());
        let smoothed_rtt = rtt.smoothed;
        let config = self.identity.config.ack_frequency.as_ref();
        let asked = &mut self.policies.ack_asked;
        if let Some(wish) = asked.poll(config, now, smoothed_rtt, window) {
            self.control
                .set(ControlKey::AckFrequency, ControlValue::Frequency(wish));
        }
    }

    /// The peer's `ack_delay` in time, as far as it counts (RFC 9002, section 5.3).
    fn ack_delay(&self, level: EncryptionLevel, coded: u64) -> Duration {
        if level == EncryptionLevel::Initial {
            return Duration::ZERO;
        }
        let terms = self.handshake.peer_terms();
        let exponent = terms.map_or(3, |terms| terms.ack_delay_exponent);
        let micros = coded.saturating_mul(1 << exponent);
        let delay = Duration::from_micros(micros);
        if self.handshake.is_confirmed() {
            delay.min(self.peer_max_ack_delay())
        } else {
            delay
        }
    }

    /// Detects what the ACK shows to be lost, tells recovery, then every owner.
    fn settle(
        &mut self,
        now: Instant,
        level: EncryptionLevel,
        outcome: &AckOutcome,
        ecn: EcnCounts,
    ) {
        let mut lost = std::mem::take(&mut self.scratch.need().lost);
        let mut numbers = std::mem::take(&mut self.scratch.need().numbers);
        lost.clear();
        numbers.clear();
        let persistent = self.detect_lost(now, level, &mut numbers, &mut lost);
        self.set_aside_mtu_probes(now, level, &mut lost);
        let recovery = &mut self.paths.first_mut().recovery;
        let episode =
            recovery.on_ack_batch(now, &outcome.acked, &lost, persistent, ecn, &mut self.rng);
        let cwnd = recovery.cwnd();
        let least = self.identity.config.unsent_window;
        self.streams
            .follow_congestion_window(least.get(), cwnd.get());
        if let (Some(episode), Some(space)) = (episode, self.space_mut(level)) {
            space.ledger.set_episode(&numbers, episode);
        }
        self.follow_mtu(now, level, Some(outcome), &lost);
        self.replay_acks(now, level, outcome);
        self.replay_losses(now, level, &numbers, &lost);
        if level == EncryptionLevel::OneRtt {
            self.emit_outcomes(now, &outcome.acked, &lost);
        }
        self.emit_repairs(now);
        let horizon = now - self.pto() * REMEMBER_LOST_PTOS;
        if let Some(space) = self.space_mut(level) {
            space.ledger.forget(horizon);
        }
        self.scratch.need().lost = lost;
        self.scratch.need().numbers = numbers;
    }

    /// Tells observers what validation has found out about ECN.
    pub(super) fn emit_ecn(&mut self, now: Instant) {
        let path = &mut self.paths.first_mut().path;
        if let Some(state) = path.ecn.take_news() {
            let path = path.id;
            self.monitor
                .observe(now, &Observation::EcnUpdated { path, state });
        }
    }

    /// Runs loss detection on the ledger of `level`; true if it shows persistent congestion.
    fn detect_lost(
        &mut self,
        now: Instant,
        level: EncryptionLevel,
        numbers: &mut Vec<PacketNumber>,
        lost: &mut Vec<LostRecord>,
    ) -> bool {
        let recovery = &self.paths.first().recovery;
        let thresholds = recovery.loss_thresholds();
        let first_sample = recovery.first_rtt_sample_at();
        let period = recovery.persistent_congestion_duration(self.peer_max_ack_delay());
        let Some(space) = self.space_mut(level) else {
            return false;
        };
        space.loss_time = space.ledger.detect_lost(now, thresholds, numbers, lost);
        first_sample.is_some_and(|since| space.ledger.is_persistent(numbers, since, period))
    }

    /// The loss timer of `level` expired.
    pub(super) fn on_loss_timeout(&mut self, now: Instant, level: EncryptionLevel) {
        let mut lost = std::mem::take(&mut self.scratch.need().lost);
        let mut numbers = std::mem::take(&mut self.scratch.need().numbers);
        lost.clear();
        numbers.clear();
        let persistent = self.detect_lost(now, level, &mut numbers, &mut lost);
        self.set_aside_mtu_probes(now, level, &mut lost);
        let recovery = &mut self.paths.first_mut().recovery;
        let episode = recovery.on_losses(now, &lost, LossCause::Time, persistent, &mut self.rng);
        if let (Some(episode), Some(space)) = (episode, self.space_mut(level)) {
            space.ledger.set_episode(&numbers, episode);
        }
        self.follow_mtu(now, level, None, &lost);
        self.replay_losses(now, level, &numbers, &lost);
        if level == EncryptionLevel::OneRtt {
            self.emit_outcomes(now, &[], &lost);
        }
        self.emit_repairs(now);
        self.scratch.need().lost = lost;
        self.scratch.need().numbers = numbers;
        self.observe_metrics(now, PathId::ZERO);
    }

    /// Tells the owners of what newly acknowledged packets carried. While data is under repair, in
    /// the order in which the packets left: of several copies the first that arrived counts.
    fn replay_acks(&mut self, now: Instant, level: EncryptionLevel, outcome: &AckOutcome) {
        let mut run = None;
        if self.streams.has_no_repairs() {
            for &number in &outcome.numbers {
                self.replay_into(&mut run, now, level, number, Fate::Acked);
            }
        } else {
            let mut rising = std::mem::take(&mut self.scratch.need().rising);
            rising.extend_from_slice(&outcome.numbers);
            rising.sort_unstable();
            for number in rising.drain(..) {
                self.replay_into(&mut run, now, level, number, Fate::Acked);
            }
            self.scratch.need().rising = rising;
        }
        self.streams.on_run_fate(run);
    }

    fn replay_losses(
        &mut self,
        now: Instant,
        level: EncryptionLevel,
        numbers: &[PacketNumber],
        lost: &[LostRecord],
    ) {
        if numbers.is_empty() {
            return;
        }
        for &number in numbers {
            self.replay(now, level, number, Fate::Lost);
        }
        for &LostRecord { number, size, .. } in lost {
            if !self.monitor.is_watched() {
                break;
            }
            let (path, size) = (PathId::ZERO, usize::from(size));
            let trigger = self.loss_trigger(level, number.get());
            self.monitor.observe(
                now,
                &Observation::PacketLost {
                    path,
                    level,
                    number,
                    size,
                    trigger,
                },
            );
        }
        self.consult_reinjector(now, Occasion::LossRetransmitted);
    }

    /// Tells the owners of what packet `number` carried its fate.
    pub(super) fn replay(
        &mut self,
        now: Instant,
        level: EncryptionLevel,
        number: PacketNumber,
        fate: Fate,
    ) {
        let mut run = None;
        self.replay_into(&mut run, now, level, number, fate);
        self.streams.on_run_fate(run);
    }

    /// The same, but that the stream bytes it carried may wait in `run` for those of the next packet.
    fn replay_into(
        &mut self,
        run: &mut Option<StreamRun>,
        now: Instant,
        level: EncryptionLevel,
        number: PacketNumber,
        fate: Fate,
    ) {
        let space = match level {
            EncryptionLevel::OneRtt | EncryptionLevel::ZeroRtt => {
                Some(&mut self.paths.first_mut().space)
            }
            early => self.early[early as usize].as_deref_mut(),
        };
        let Some(space) = space else { return };
        let Some(packet) = space.ledger.packet(number) else {
            return;
        };
        let verdict = Verdict {
            now,
            carrier: Carrier {
                path: PathId::ZERO,
                number,
                sent_at: packet.sent_at,
            },
            fate,
            newest_only: self.policies.reinjector.watches_newest(),
        };
        let received = &mut space.received;
        for carried in space.ledger.carried_by(number) {
            match carried {
                Carried::Ack { largest, .. } => {
                    if fate == Fate::Acked {
                        received.on_ack_acked(largest);
                    }
                }
                Carried::Crypto { offset, len } => {
                    self.handshake.on_frame_fate(level, offset, len, fate);
                }
                Carried::Stream {
                    id,
                    offset,
                    len,
                    fin,
                    ..
                } => {
                    let range = offset..offset + u64::from(len);
                    self.streams.gather_fate(run, &verdict, id, range, fin);
                }
                Carried::Control { key, version } => {
                    self.streams.on_run_fate(run.take());
                    if self.control.on_frame_fate(key, version, fate) {
                        match key {
                            ControlKey::AckFrequency => self.policies.ack_asked.on_acked(),
                            key => self.streams.on_control_acked(key),
                        }
                    }
                }
            }
        }
    }

    /// Sends again what the oldest packets in flight of `level` carried, without taking them for
    /// lost: a probe that repeats is worth more than a PING (RFC 9002, section 6.2.4).
    pub(super) fn repeat_oldest(&mut self, now: Instant, level: EncryptionLevel, packets: usize) {
        let mut numbers = std::mem::take(&mut self.scratch.need().numbers);
        numbers.clear();
        if let Some(space) = self.space(level) {
            numbers.extend(space.ledger.oldest_outstanding().take(packets));
        }
        for &number in &numbers {
            self.replay(now, level, number, Fate::Probed);
        }
        self.emit_repairs(now);
        self.scratch.need().numbers = numbers;
    }
}
