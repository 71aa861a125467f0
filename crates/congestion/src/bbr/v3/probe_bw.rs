//! The cycle of `ProbeBW`: down, cruise, refill, up (draft-ietf-ccwg-bbr, section 5.3.3).

use std::time::Duration;

use swiftwater_units::{ByteCount, Instant};

use super::policy::ProbeUpExit;
use super::{Bbr3, ShortTerm, State};
use crate::bbr::gain::Gain;
use crate::bbr::random_below;
use crate::controller::Env;
use crate::sample::AckBatch;

/// What the ACKs of this time say about the last probe (`BBR.ack_phase`).
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum AckPhase {
    /// Nothing.
    Idle,
    /// They are of packets sent while the pipe was refilled.
    Refilling,
    /// A probe has begun; its packets are not acknowledged yet.
    Starting,
    /// They are of packets of the probe.
    Feedback,
    /// The probe has ended; some of its packets are still to be acknowledged.
    Stopping,
}

/// Position in the cycle.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Cycle {
    /// Cycles whose samples are complete: the clock of the bandwidth filter.
    count: u64,
    started_at: Instant,
    /// Time from the start of the cycle to its probe.
    wait: Duration,
    /// Rounds since the last probe, from a random 0 or 1.
    rounds: u64,
    ack_phase: AckPhase,
    /// Losses found now are of packets sent to probe, and no answer was given to this probe yet
    /// (`is_bw_probe_sample`).
    is_probe_sample: bool,
    /// The last probe met too many losses.
    was_too_high: bool,
    /// The last probe stopped short of a level that had met too many losses.
    was_precautionary: bool,
}

impl Cycle {
    pub(super) fn new(now: Instant) -> Self {
        Self {
            count: 0,
            started_at: now,
            wait: Duration::ZERO,
            rounds: 0,
            ack_phase: AckPhase::Idle,
            is_probe_sample: false,
            was_too_high: false,
            was_precautionary: false,
        }
    }

    pub(super) fn count(&self) -> u64 {
        self.count
    }

    pub(super) fn on_round(&mut self) {
        self.rounds = self.rounds.saturating_add(1);
    }

    pub(super) fn is_probe_sample(&self) -> bool {
        self.is_probe_sample
    }

    /// The running probe put too much in flight; reported once per probe.
    pub(super) fn on_too_high(&mut self) {
        self.was_too_high = true;
        self.is_probe_sample = false;
    }

    /// Whatever probe there was, it is over.
    pub(super) fn stop_probing(&mut self) {
        self.ack_phase = AckPhase::Stopping;
    }

    fn has_elapsed(&self, now: Instant, interval: Duration) -> bool {
        now > self.started_at + interval
    }
}

impl Bbr3 {
    /// `UpdateProbeBWCyclePhase`.
    pub(super) fn update_cycle(&mut self, ack: &AckBatch, round_start: bool, env: &mut Env<'_>) {
        if !self.full_pipe.was_full() || self.adapt_long_term(ack, round_start, env) {
            return;
        }
        let state = self.state;
        match state {
            State::Down | State::Cruise if self.is_time_to_probe(ack.now) => self.start_refill(),
            State::Down if self.is_time_to_cruise(ack) => self.state = State::Cruise,
            State::Refill if round_start => {
                self.cycle.is_probe_sample = true;
                self.start_up(ack);
            }
            State::Up if self.is_time_to_go_down(ack) => {
                self.cycle.was_too_high = false;
                self.start_down(ack.now, env);
            }
            _ => {}
        }
    }

    /// Follows the feedback to probes, and moves the long-term bound up where it was safe. True if
    /// it decided on a state.
    fn adapt_long_term(&mut self, ack: &AckBatch, round_start: bool, env: &mut Env<'_>) -> bool {
        let is_app_limited = ack.rate.is_none_or(|sample| sample.is_app_limited);
        if round_start && self.cycle.ack_phase == AckPhase::Starting {
            self.cycle.ack_phase = AckPhase::Feedback;
        } else if round_start && self.cycle.ack_phase == AckPhase::Stopping {
            self.cycle.is_probe_sample = false;
            self.cycle.ack_phase = AckPhase::Idle;
            if self.state.is_probe_bw() {
                if !is_app_limited {
                    self.cycle.count = self.cycle.count.saturating_add(1);
                }
                if self.cycle.was_precautionary && !self.cycle.was_too_high {
                    // The level once too high was safe this time: fill it for a whole round.
                    self.start_refill();
                    return true;
                }
            }
        }
        let Some(sample) = &ack.rate else {
            return false;
        };
        if self.is_too_high(sample) {
            return self.answer_marks(ack.now, sample, env);
        }
        self.long_term.on_safe(sample.tx_in_flight);
        if self.state == State::Up && self.fills_long_term(ack) {
            self.long_term.on_filled(ack.acked_bytes, self.sizes.packet);
            if round_start {
                self.long_term.grow_faster(self.cwnd, self.sizes.packet);
            }
        }
        false
    }

    /// True if the window is the long-term bound and is used up.
    fn fills_long_term(&self, ack: &AckBatch) -> bool {
        let bound = self.long_term.inflight();
        ack.cwnd_limited_in_round && bound.is_some_and(|bound| self.cwnd >= bound)
    }

    // --- states

    pub(super) fn start_down(&mut self, now: Instant, env: &mut Env<'_>) {
        self.latest.reset();
        self.long_term.stop_growing();
        self.cycle.rounds = random_below(env.rng, 2);
        self.cycle.wait = self.config.probe_wait + self.random_wait(env);
        self.cycle.started_at = now;
        self.cycle.ack_phase = AckPhase::Stopping;
        self.rounds.restart(self.delivered);
        self.state = State::Down;
    }

    fn random_wait(&self, env: &mut Env<'_>) -> Duration {
        let most = u64::try_from(self.config.probe_wait_random.as_nanos()).unwrap_or(u64::MAX);
        Duration::from_nanos(random_below(env.rng, most))
    }

    pub(super) fn start_refill(&mut self) {
        self.short_term = ShortTerm::default();
        self.long_term.begin_refill();
        self.cycle.was_precautionary = false;
        self.cycle.ack_phase = AckPhase::Refilling;
        self.rounds.restart(self.delivered);
        self.state = State::Refill;
    }

    fn start_up(&mut self, ack: &AckBatch) {
        self.cycle.ack_phase = AckPhase::Starting;
        if self.policy.probe_up_exit == ProbeUpExit::Queue {
            self.cycle.started_at = ack.now;
        }
        self.rounds.restart(self.delivered);
        self.look_for_plateau(ack);
        self.state = State::Up;
        self.long_term.grow_faster(self.cwnd, self.sizes.packet);
    }

    fn look_for_plateau(&mut self, ack: &AckBatch) {
        let rate = ack.rate.map(|sample| sample.rate).unwrap_or_default();
        self.full_pipe.look_again_from(rate);
    }

    // --- conditions

    fn is_time_to_probe(&self, now: Instant) -> bool {
        // A Reno flow with our share of the path would lose a packet as often as it has packets in
        // flight: probing more rarely than that leaves it alone.
        let reno_rounds = self.target_inflight().get() / self.sizes.packet.get().max(1);
        self.cycle.has_elapsed(now, self.cycle.wait)
            || self.cycle.rounds >= reno_rounds.min(self.config.probe_rounds)
    }

    fn is_time_to_cruise(&self, ack: &AckBatch) -> bool {
        let has_headroom = self
            .inflight_with_headroom()
            .is_none_or(|target| ack.inflight <= target);
        has_headroom && ack.inflight <= self.model_inflight(self.max_bandwidth.get(), Gain::UNITY)
    }

    fn is_time_to_go_down(&mut self, ack: &AckBatch) -> bool {
        let bound = self.long_term.inflight();
        if self.cycle.was_too_high && bound.is_some_and(|bound| ack.inflight >= bound) {
            self.cycle.was_precautionary = true;
            return true;
        }
        match self.policy.probe_up_exit {
            ProbeUpExit::Plateau if self.fills_long_term(ack) => {
                // The bound, not the path, limits the rate: there is no plateau to be seen.
                self.look_for_plateau(ack);
                false
            }
            ProbeUpExit::Plateau => self.full_pipe.is_full_now(),
            ProbeUpExit::Queue => {
                let gain = Gain::new(self.config.probe_up_gain);
                let target = self.model_inflight(self.max_bandwidth.get(), gain);
                let round_trip = self.min_rtt.get().unwrap_or_default();
                self.cycle.has_elapsed(ack.now, round_trip) && ack.prior_inflight >= target
            }
        }
    }

    /// The long-term bound less what is left to others; `None` without a bound.
    pub(super) fn inflight_with_headroom(&self) -> Option<ByteCount> {
        let headroom = Gain::new(self.config.headroom);
        self.long_term
            .with_headroom(headroom, self.sizes.packet, self.sizes.min_pipe())
    }
}
