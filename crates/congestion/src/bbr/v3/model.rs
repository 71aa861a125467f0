//! What an ACK changes in the model and in the state of the machine (draft-ietf-ccwg-bbr, section
//! 5.2.3, "`UpdateModelAndState`", in its order).

use swiftwater_units::{ByteCount, Instant};

use super::policy::StartupBound;
use super::{Bbr3, State};
use crate::bbr::gain::Gain;
use crate::bbr::probe_rtt::ProbeRttStep;
use crate::controller::Env;
use crate::sample::{AckBatch, RateSample};

impl Bbr3 {
    pub(super) fn update_model(&mut self, ack: &AckBatch, env: &mut Env<'_>) {
        let sample = ack.rate.as_ref();
        self.note(ack);
        self.latest.update(sample, ack.delivered);
        let round_start = self.update_congestion_signals(ack);
        self.update_aggregation(ack);
        if round_start && let Some(sample) = sample {
            self.full_pipe.on_round(sample.rate, sample.is_app_limited);
        }
        self.check_startup_done(sample, round_start);
        self.check_drain_done(ack, env);
        self.update_cycle(ack, round_start, env);
        self.update_min_rtt(ack);
        self.check_probe_rtt(ack, round_start, env);
        self.latest.advance(sample);
        self.bound_bandwidth();
    }

    /// Takes over what the ACK shows of the path and the end of recovery.
    fn note(&mut self, ack: &AckBatch) {
        let before = if ack.newly_lost_bytes.is_zero() {
            self.delivered
        } else {
            // The losses were found after the deliveries of the same ACK had been counted.
            ack.delivered
        };
        self.latest.settle(before);
        self.inflight = ack.inflight;
        self.delivered = ack.delivered;
        self.is_app_limited = ack.app_limited || self.in_probe_rtt;
        self.pacing
            .on_first_rtt(self.sizes.initial_window, &ack.rtt);
        let after_timeout = self
            .timed_out_at
            .is_some_and(|at| ack.largest_acked_sent_at >= at);
        if after_timeout || (self.in_loss_recovery && ack.recovery_ended) {
            self.leave_recovery();
        }
    }

    /// True if the ACK began a round.
    fn update_congestion_signals(&mut self, ack: &AckBatch) -> bool {
        let sample = ack.rate.as_ref();
        let round_start = self.rounds.on_ack(sample, ack.delivered);
        if round_start {
            self.cycle.on_round();
        }
        self.ecn.on_ack(ack, round_start, self.min_rtt.get());
        if !ack.ecn.ce.is_zero() {
            self.note_marks();
        }
        if let Some(sample) = sample {
            let (cycle, limited) = (self.cycle.count(), sample.is_app_limited);
            self.max_bandwidth.on_sample(cycle, sample.rate, limited);
        }
        if self.latest.round_start() {
            self.adapt_short_term();
            self.latest.clear_congestion();
        }
        round_start
    }

    fn update_aggregation(&mut self, ack: &AckBatch) {
        if ack.acked_bytes.is_zero() {
            return;
        }
        let (in_startup, later) = self.policy.extra_acked_rounds;
        let window = if self.full_pipe.was_full() {
            later
        } else {
            in_startup
        };
        let rounds = (self.rounds.count(), window);
        let (now, acked) = (ack.now, ack.acked_bytes);
        self.aggregation
            .on_ack(now, acked, self.bandwidth, self.cwnd, rounds);
    }

    // --- Startup and Drain

    fn check_startup_done(&mut self, sample: Option<&RateSample>, round_start: bool) {
        if !self.full_pipe.was_full() {
            let lossy = self.latest.round_start()
                && self
                    .startup_losses
                    .on_round(sample.is_some_and(|sample| self.is_loss_too_high(sample)));
            if lossy {
                self.undo.note_end_of(State::Startup);
            }
            if lossy || (round_start && self.ecn.ends_startup()) {
                self.full_pipe.set_full();
                self.long_term.set(self.startup_bound());
            }
        }
        if self.state == State::Startup && self.full_pipe.was_full() {
            self.state = State::Drain;
            self.drain_from_round = self.rounds.count();
        }
    }

    fn startup_bound(&self) -> ByteCount {
        match self.policy.startup_bound {
            StartupBound::ModelOrDelivered => self.bdp(Gain::UNITY).max(self.latest.inflight()),
            StartupBound::Model => self.model_inflight(self.max_bandwidth.get(), Gain::UNITY),
        }
    }

    fn check_drain_done(&mut self, ack: &AckBatch, env: &mut Env<'_>) {
        if self.state != State::Drain {
            return;
        }
        // Where the bandwidth was overestimated, the queue never drains to the estimate.
        let is_late = self
            .policy
            .drain_rounds
            .is_some_and(|rounds| self.rounds.count() > self.drain_from_round + rounds);
        let target = self.model_inflight(self.bandwidth, Gain::UNITY);
        if is_late || ack.inflight <= target {
            self.start_down(ack.now, env);
        }
    }

    // --- propagation delay

    fn update_min_rtt(&mut self, ack: &AckBatch) {
        let rtt = ack.now.saturating_since(ack.largest_acked_sent_at);
        self.min_rtt.on_sample(ack.now, rtt);
    }

    fn check_probe_rtt(&mut self, ack: &AckBatch, round_start: bool, env: &mut Env<'_>) {
        let mut round_start = round_start;
        if self.state != State::ProbeRtt && self.min_rtt.probe_is_due() && !self.idle_restart {
            self.save_window();
            self.state = State::ProbeRtt;
            self.probe_rtt.enter();
            self.cycle.stop_probing();
            self.rounds.restart(ack.delivered);
            round_start = false;
        }
        if self.state == State::ProbeRtt {
            let at_target = ack.inflight <= self.probe_rtt_window();
            match self.probe_rtt.on_ack(ack.now, at_target, round_start) {
                ProbeRttStep::Started => self.rounds.restart(ack.delivered),
                ProbeRttStep::Done => self.leave_probe_rtt(ack.now, env),
                ProbeRttStep::Draining | ProbeRttStep::Holding => {}
            }
        }
        self.idle_restart = false;
    }

    pub(super) fn leave_probe_rtt(&mut self, now: Instant, env: &mut Env<'_>) {
        self.min_rtt.on_probe_done(now);
        self.cwnd = self.saved.restore(self.cwnd);
        self.short_term = super::ShortTerm::default();
        self.bound_bandwidth();
        if self.full_pipe.was_full() {
            // Little is in flight, so there is nothing to go down from.
            self.start_down(now, env);
            self.state = State::Cruise;
        } else {
            self.state = State::Startup;
        }
    }

    fn bound_bandwidth(&mut self) {
        let max = self.max_bandwidth.get();
        self.bandwidth = self
            .short_term
            .bandwidth
            .map_or(max, |bound| max.min(bound));
    }
}
