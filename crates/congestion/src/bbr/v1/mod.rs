//! BBRv1 as in Linux (`net/ipv4/tcp_bbr.c`), with the parameters of the tuning that XQUIC uses for
//! live video.
//!
//! Differences from Linux, all of them forced by QUIC or by the transport here: round-trip times
//! are measured on every packet, so there is no case without one; the pacer needs no estimate of
//! what waits below it; a retransmission timeout is persistent congestion (RFC 9002, section 7.6),
//! since a probe timeout declares nothing lost; the window is bytes.
//!
//! Two differences are choices, and a parameter each returns to Linux: samples of what loss recovery
//! held back say nothing about the path (`recovery_counts`), and heavy losses are no sign of a policer
//! (`lt_bw`).

mod config;
mod cycle;
mod policer;
mod recovery;

use std::time::Duration;

use swiftwater_tunable::parameters::{live_parameters, set_live};
use swiftwater_tunable::{Parameter, ParameterError};
use swiftwater_units::{Bandwidth, ByteCount, Instant};

pub use config::Bbr1Config;

use self::cycle::{GainCycle, PhaseView};
use self::policer::{Policer, PolicerStep, PolicerView};
use self::recovery::{Recovery, RecoveryStep};
use super::aggregation::AckAggregation;
use super::bandwidth::MaxBandwidth;
use super::full_pipe::FullPipe;
use super::gain::Gain;
use super::min_rtt::{MinRtt, Refresh};
use super::pacing::PacingRate;
use super::probe_rtt::{ProbeRtt, ProbeRttStep};
use super::rounds::Rounds;
use super::window::{SavedWindow, Sizes, bandwidth_delay_product};
use crate::controller::{Controller, EctCodepoint, Env, Pacing, Snapshot};
use crate::sample::{AckBatch, EcnBatch, EpisodeId, LossBatch, RttView, SentInfo};

/// Rounds for which an excess of acknowledged data counts (Linux's two halves hold 5 to 10).
const EXTRA_ACKED_ROUNDS: u64 = 10;
/// Time that bounds the excess, at the estimated bandwidth.
const EXTRA_ACKED_TIME: Duration = Duration::from_millis(100);
/// Bursts that may be on their way through sender and receiver besides the path's own data.
const QUANTA: u64 = 3;

/// State of the machine.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Mode {
    Startup,
    Drain,
    ProbeBw,
    ProbeRtt,
}

/// Parameters that are read whenever they matter, so that they can be changed while the controller runs.
const LIVE: &[&str] = &[
    "startup_gain",
    "startup_cwnd_gain",
    "cwnd_gain",
    "probe_gain",
    "drain_gain",
    "probe_rtt_gain",
    "expected_bandwidth",
    "max_expected_bandwidth",
    "expected_probe_gain",
    "expected_drain_gain",
];

/// The BBRv1 controller.
#[derive(Clone, Debug)]
pub struct Bbr1 {
    config: Bbr1Config,
    mode: Mode,
    cycle: GainCycle,
    bandwidth: MaxBandwidth,
    min_rtt: MinRtt,
    probe_rtt: ProbeRtt,
    full_pipe: FullPipe,
    aggregation: AckAggregation,
    pacing: PacingRate,
    rounds: Rounds,
    policer: Policer,
    recovery: Recovery,
    saved: SavedWindow,
    cwnd: ByteCount,
    sizes: Sizes,
    /// Bytes in flight when last reported.
    inflight: ByteCount,
    /// Bytes lost on the path in all.
    lost: ByteCount,
    /// The flow restarted from idle and nothing was acknowledged since.
    idle_restart: bool,
    is_app_limited: bool,
    /// Sending was held back when the last ACK came, or is since then: what leaves until that shows
    /// counts as limited by the application.
    marks: bool,
}

impl Bbr1 {
    pub(super) fn new(config: Bbr1Config, now: Instant, env: &Env<'_>) -> Self {
        let sizes = Sizes::of(env);
        let startup_gain = Gain::new(config.startup_gain);
        let threshold = Gain::new(config.full_pipe_threshold);
        let (interval, window) = (config.probe_rtt_interval, config.min_rtt_window);
        Self {
            config,
            mode: Mode::Startup,
            cycle: GainCycle::new(now),
            bandwidth: MaxBandwidth::new(config.bandwidth_window),
            min_rtt: MinRtt::new(now, interval, window, Refresh::EqualOrLower),
            probe_rtt: ProbeRtt::new(config.probe_rtt_duration),
            full_pipe: FullPipe::new(threshold, config.full_pipe_rounds),
            aggregation: AckAggregation::new(now),
            pacing: PacingRate::new(config.pacing_margin, startup_gain),
            rounds: Rounds::default(),
            policer: Policer::new(config.lt_bw),
            recovery: Recovery::default(),
            saved: SavedWindow::default(),
            cwnd: sizes.initial_window,
            sizes,
            inflight: ByteCount::ZERO,
            lost: ByteCount::ZERO,
            idle_restart: false,
            is_app_limited: true,
            marks: false,
        }
    }

    /// The bandwidth to send at.
    fn estimate(&self) -> Bandwidth {
        self.policer.rate().unwrap_or_else(|| self.bandwidth.get())
    }

    fn pacing_gain(&self) -> Gain {
        match self.mode {
            Mode::Startup => Gain::new(self.config.startup_gain),
            Mode::Drain => Gain::new(1.0 / self.config.startup_gain),
            // Probing above a policed rate would only lose packets.
            Mode::ProbeBw if self.policer.rate().is_some() => Gain::UNITY,
            Mode::ProbeBw => self
                .cycle
                .gain(&self.config.cycle_gains(self.bandwidth.get())),
            Mode::ProbeRtt => Gain::UNITY,
        }
    }

    fn cwnd_gain(&self) -> Gain {
        match self.mode {
            Mode::Startup | Mode::Drain => Gain::new(self.config.startup_cwnd_gain),
            Mode::ProbeBw => Gain::new(self.config.cwnd_gain),
            Mode::ProbeRtt => Gain::UNITY,
        }
    }

    // --- amounts in flight

    fn bdp(&self, bandwidth: Bandwidth, gain: Gain) -> ByteCount {
        bandwidth_delay_product(bandwidth, self.min_rtt.get())
            .map_or(self.sizes.initial_window, |bdp| gain.of_bytes(bdp))
    }

    /// `amount` and what end systems hold of it besides.
    fn with_quanta(&self, amount: ByteCount) -> ByteCount {
        let mut target = amount + self.quantum().times(QUANTA);
        if self.mode == Mode::ProbeBw && self.cycle.is_probing() {
            // Lets the probe exceed even a tiny bandwidth-delay product.
            target += self.sizes.packet.times(2);
        }
        target
    }

    fn target(&self, gain: Gain) -> ByteCount {
        self.with_quanta(self.bdp(self.bandwidth.get(), gain))
    }

    fn quantum(&self) -> ByteCount {
        self.pacing.send_quantum(self.sizes.packet)
    }

    fn probe_rtt_window(&self) -> ByteCount {
        let least = self.sizes.min_pipe();
        match self.config.probe_rtt_gain {
            Some(gain) => self.bdp(self.estimate(), Gain::new(gain)).max(least),
            None => least,
        }
    }

    // --- the model, in the order in which an ACK updates it

    fn update_bandwidth(&mut self, ack: &AckBatch, lost: ByteCount, env: &mut Env<'_>) -> bool {
        let Some(sample) = &ack.rate else {
            return false;
        };
        let round_start = self.rounds.on_ack(Some(sample), ack.delivered);
        if round_start {
            self.recovery.on_round(ack.delivered, self.sizes.min_pipe());
        }
        let step = self.policer.on_ack(&PolicerView {
            now: ack.now,
            delivered: ack.delivered,
            lost: self.lost,
            has_losses: !lost.is_zero(),
            is_app_limited: sample.is_app_limited,
            round_start,
            in_probe_bw: self.mode == Mode::ProbeBw,
        });
        if step == PolicerStep::Released {
            self.enter_probe_bw(ack.now, env);
        }
        let most = self.config.max_expected_bandwidth.unwrap_or(Bandwidth::MAX);
        let rate = sample.rate.min(most);
        self.bandwidth
            .on_sample(self.rounds.count(), rate, sample.is_app_limited);
        round_start
    }

    fn update_cycle(&mut self, ack: &AckBatch, lost: ByteCount) {
        if self.mode != Mode::ProbeBw {
            return;
        }
        let bandwidth = self.bandwidth.get();
        let gains = self.config.cycle_gains(bandwidth);
        // What leaves next is part of the probe, too. A probe that could find nothing need not
        // build a queue.
        let probed = ack.prior_inflight + self.quantum();
        let is_probed = probed >= self.target(gains.probe) || self.config.is_at_most(bandwidth);
        self.cycle.advance_if_due(&PhaseView {
            now: ack.now,
            min_rtt: self.min_rtt.get().unwrap_or_default(),
            has_losses: !lost.is_zero(),
            is_probed,
            is_drained: ack.prior_inflight <= self.target(Gain::UNITY),
        });
    }

    fn update_full_pipe(&mut self, ack: &AckBatch, round_start: bool) {
        if self.full_pipe.was_full() {
            return;
        }
        let bandwidth = self.bandwidth.get();
        if self.config.meets_expectation(bandwidth) {
            self.full_pipe.set_full();
        } else if round_start && let Some(sample) = &ack.rate {
            let is_app_limited = sample.is_app_limited;
            if self.recovery.sampled_conserved() && !self.config.recovery_counts {
                self.full_pipe.on_held_round(bandwidth, is_app_limited);
            } else {
                self.full_pipe.on_round(bandwidth, is_app_limited);
            }
        }
    }

    fn update_drain(&mut self, ack: &AckBatch, env: &mut Env<'_>) {
        if self.mode == Mode::Startup && self.full_pipe.was_full() {
            self.mode = Mode::Drain;
        }
        if self.mode == Mode::Drain && ack.inflight <= self.target(Gain::UNITY) {
            self.enter_probe_bw(ack.now, env);
        }
    }

    fn update_min_rtt(&mut self, ack: &AckBatch, round_start: bool, env: &mut Env<'_>) {
        let rtt = ack.now.saturating_since(ack.largest_acked_sent_at);
        self.min_rtt.on_sample(ack.now, rtt);
        if self.min_rtt.probe_is_due() && !self.idle_restart && self.mode != Mode::ProbeRtt {
            self.save_window();
            self.mode = Mode::ProbeRtt;
            self.probe_rtt.enter();
        }
        if self.mode == Mode::ProbeRtt {
            let at_target = ack.inflight <= self.probe_rtt_window();
            match self.probe_rtt.on_ack(ack.now, at_target, round_start) {
                ProbeRttStep::Started => self.rounds.restart(ack.delivered),
                ProbeRttStep::Done => self.leave_probe_rtt(ack.now, env),
                ProbeRttStep::Draining | ProbeRttStep::Holding => {}
            }
        }
        self.idle_restart = false;
    }

    // --- states

    fn enter_probe_bw(&mut self, now: Instant, env: &mut Env<'_>) {
        self.mode = Mode::ProbeBw;
        self.cycle.restart(now, env.rng);
    }

    fn leave_probe_rtt(&mut self, now: Instant, env: &mut Env<'_>) {
        self.min_rtt.on_probe_done(now);
        self.cwnd = self.saved.restore(self.cwnd);
        if self.full_pipe.was_full() {
            self.enter_probe_bw(now, env);
        } else {
            self.mode = Mode::Startup;
        }
    }

    /// True while the controller itself holds sending back: in `ProbeRTT`, and while recovery keeps
    /// the window smaller than a flow had it that the application limits otherwise.
    fn holds_back(&self) -> bool {
        let is_held_by_recovery = self.recovery.is_of_limited_flow(self.rounds.count())
            && self.saved.exceeds(self.cwnd)
            && self.cwnd < self.target_cwnd();
        self.mode == Mode::ProbeRtt || (is_held_by_recovery && !self.config.recovery_counts)
    }

    fn save_window(&mut self) {
        let is_cut = self.recovery.is_active() || self.mode == Mode::ProbeRtt;
        self.saved.save(self.cwnd, is_cut);
    }

    // --- control

    fn set_pacing_rate(&mut self) {
        let may_fall = self.full_pipe.was_full();
        self.pacing
            .set(self.estimate(), self.pacing_gain(), may_fall);
    }

    fn set_cwnd(&mut self, ack: &AckBatch, lost: ByteCount) {
        if !ack.acked_bytes.is_zero() {
            self.cwnd = self.next_cwnd(ack, lost);
        }
        if self.mode == Mode::ProbeRtt {
            self.cwnd = self.cwnd.min(self.probe_rtt_window());
        }
        self.bound_cwnd();
    }

    /// An ACK of P packets lets at most 2 P leave: losses first come off, then the window grows by
    /// what was acknowledged, up to the target.
    fn next_cwnd(&mut self, ack: &AckBatch, lost: ByteCount) -> ByteCount {
        let on_the_way = ack.inflight + ack.acked_bytes;
        let mut cwnd = self.cwnd - lost;
        match self.recovery.on_ack(ack) {
            RecoveryStep::Entered => {
                self.rounds.restart(ack.delivered);
                cwnd = on_the_way;
            }
            RecoveryStep::Ended => cwnd = self.saved.restore(cwnd),
            RecoveryStep::Nothing => {}
        }
        if self.recovery.conserves() {
            return cwnd.max(on_the_way);
        }
        let target = self.target_cwnd();
        if self.full_pipe.was_full() {
            cwnd = (cwnd + ack.acked_bytes).min(target);
        } else if cwnd < target || ack.delivered < self.sizes.initial_window {
            cwnd += ack.acked_bytes;
        }
        cwnd.max(self.sizes.min_pipe())
    }

    fn target_cwnd(&self) -> ByteCount {
        let bandwidth = self.estimate();
        let mut target = self.bdp(bandwidth, self.cwnd_gain());
        if self.full_pipe.was_full() {
            let most = ByteCount::new(bandwidth.bytes_in(EXTRA_ACKED_TIME));
            target += self.aggregation.extra().min(most);
        }
        self.with_quanta(target)
    }

    fn bound_cwnd(&mut self) {
        self.cwnd = self.sizes.bound(self.cwnd);
    }
}

impl Controller for Bbr1 {
    fn name(&self) -> &'static str {
        self.config.name
    }

    fn on_sent(&mut self, _sent: &SentInfo, _env: &mut Env<'_>) {}

    fn on_ack(&mut self, ack: &AckBatch, env: &mut Env<'_>) {
        self.sizes = Sizes::of(env);
        self.inflight = ack.inflight;
        self.marks = self.holds_back();
        self.is_app_limited = ack.app_limited || self.marks;
        self.pacing
            .on_first_rtt(self.sizes.initial_window, &ack.rtt);
        let lost = self.recovery.take_lost();

        let round_start = self.update_bandwidth(ack, lost, env);
        if ack.app_limited {
            self.recovery.on_app_limited(self.rounds.count());
        }
        if !ack.acked_bytes.is_zero() {
            let rounds = (self.rounds.count(), EXTRA_ACKED_ROUNDS);
            let bandwidth = self.estimate();
            self.aggregation
                .on_ack(ack.now, ack.acked_bytes, bandwidth, self.cwnd, rounds);
        }
        self.update_cycle(ack, lost);
        self.update_full_pipe(ack, round_start);
        self.update_drain(ack, env);
        self.update_min_rtt(ack, round_start, env);

        self.set_pacing_rate();
        self.set_cwnd(ack, lost);
        self.marks |= self.holds_back();
    }

    fn on_loss(&mut self, loss: &LossBatch<'_>, env: &mut Env<'_>) {
        self.sizes = Sizes::of(env);
        self.inflight = loss.inflight;
        self.lost += loss.lost_bytes;
        if !self.recovery.is_active() {
            self.save_window();
        }
        self.recovery.on_loss(loss.now, loss.lost_bytes);
    }

    /// BBRv1 doesn't react to marks.
    fn on_ce(&mut self, _ce: &EcnBatch, _env: &mut Env<'_>) {}

    fn on_spurious(&mut self, _episode: EpisodeId, _now: Instant, env: &mut Env<'_>) {
        self.sizes = Sizes::of(env);
        self.full_pipe.look_again();
        self.policer.reset();
        if self.recovery.is_active() {
            self.recovery.end();
            if self.mode != Mode::ProbeRtt {
                self.cwnd = self.saved.restore(self.cwnd);
            }
        }
        self.bound_cwnd();
    }

    fn on_persistent_congestion(&mut self, now: Instant, env: &mut Env<'_>) {
        self.sizes = Sizes::of(env);
        if !self.recovery.is_active() {
            self.save_window();
        }
        self.recovery.on_timeout(now);
        self.full_pipe.look_again();
        self.cwnd = self.inflight + self.sizes.packet;
        self.bound_cwnd();
    }

    fn on_idle_restart(&mut self, now: Instant, _idle: Duration, env: &mut Env<'_>) {
        if !self.is_app_limited {
            return;
        }
        self.idle_restart = true;
        self.aggregation.restart(now);
        match self.mode {
            // The queue, if there was one, is gone: the model need not change at once.
            Mode::ProbeBw => self.pacing.set(self.estimate(), Gain::UNITY, true),
            Mode::ProbeRtt if self.probe_rtt.time_is_up(now) => self.leave_probe_rtt(now, env),
            Mode::Startup | Mode::Drain | Mode::ProbeRtt => {}
        }
    }

    fn on_max_datagram_size_change(&mut self, env: &mut Env<'_>) {
        self.sizes = Sizes::of(env);
        self.bound_cwnd();
    }

    /// BBRv1 doesn't react to marks, so it must not invite them (RFC 9002, section 7.1).
    fn ecn_codepoint(&self) -> EctCodepoint {
        EctCodepoint::NotEct
    }

    fn cwnd(&self) -> ByteCount {
        self.cwnd
    }

    fn pacing(&self, rtt: &RttView) -> Pacing {
        self.pacing
            .pacing(self.sizes.initial_window, self.sizes.packet, rtt)
    }

    fn uses_app_limited_mark(&self) -> bool {
        self.marks
    }

    fn parameters(&self) -> Vec<Parameter> {
        live_parameters(&self.config, LIVE)
    }

    fn configure(&mut self, settings: &str) -> Result<(), ParameterError> {
        set_live(&mut self.config, LIVE, settings)
    }

    fn bandwidth(&self) -> Option<Bandwidth> {
        Some(self.estimate()).filter(|bandwidth| !bandwidth.is_zero())
    }

    fn snapshot(&self) -> Snapshot {
        let min_rtt = self.min_rtt.get().unwrap_or_default();
        let policed = self.policer.rate().unwrap_or_default();
        Snapshot {
            cwnd: self.cwnd,
            ssthresh: None,
            state: match self.mode {
                Mode::Startup => "startup",
                Mode::Drain => "drain",
                Mode::ProbeBw => self.cycle.name(),
                Mode::ProbeRtt => "probe_rtt",
            },
            details: vec![
                ("bandwidth_bps", self.estimate().as_bps() as f64),
                ("max_bandwidth_bps", self.bandwidth.get().as_bps() as f64),
                ("min_rtt_ms", min_rtt.as_secs_f64() * 1e3),
                ("pacing_gain", self.pacing_gain().get()),
                ("cwnd_gain", self.cwnd_gain().get()),
                ("policed_bps", policed.as_bps() as f64),
                ("extra_acked", self.aggregation.extra().get() as f64),
                ("full_pipe", f64::from(u8::from(self.full_pipe.was_full()))),
            ],
        }
    }

    fn clone_box(&self) -> Box<dyn Controller> {
        Box::new(self.clone())
    }
}
