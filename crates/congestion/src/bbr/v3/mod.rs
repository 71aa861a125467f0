//! BBRv3 as in draft-ietf-ccwg-bbr-06, and BBRv2: one machine, two sets of parameters and, where
//! the logic differs, of policies.
//!
//! This file has the state and takes the transport's calls; `model` updates the model with each
//! ACK, `probe_bw` runs the cycle of probing, `losses` answers losses and takes answers back,
//! `control` turns the model into rate and window.
//!
//! Differences from the draft, all of them forced by QUIC or by the transport here: a
//! retransmission timeout is persistent congestion (RFC 9002, section 7.6), since a probe timeout
//! declares nothing lost; state is saved once per loss episode instead of once per round with
//! losses, so that what an episode did can be distinguished from what later ones did; and a mark counts as a
//! loss where the draft leaves the answer open.

mod bounds;
mod config;
mod control;
mod ecn;
mod latest;
mod losses;
mod model;
mod policy;
mod probe_bw;
mod startup;
mod state;
mod undo;

use std::time::Duration;

use swiftwater_tunable::parameters::{live_parameters, set_live};
use swiftwater_tunable::{Parameter, ParameterError};
use swiftwater_units::{Bandwidth, ByteCount, Instant};

pub use config::Bbr3Config;
pub use ecn::EcnConfig;
pub use policy::Bbr3Version;

use self::bounds::{LongTerm, ShortTerm};
use self::ecn::Ecn;
use self::latest::LatestSignals;
use self::policy::Policy;
use self::probe_bw::Cycle;
use self::startup::StartupLosses;
use self::state::State;
use self::undo::Undo;
use super::aggregation::AckAggregation;
use super::bandwidth::MaxBandwidth;
use super::full_pipe::FullPipe;
use super::gain::Gain;
use super::min_rtt::MinRtt;
use super::pacing::PacingRate;
use super::probe_rtt::ProbeRtt;
use super::rounds::Rounds;
use super::window::{SavedWindow, Sizes};
use crate::controller::{Controller, Env, Pacing, Snapshot};
use crate::sample::{AckBatch, EcnBatch, EpisodeId, LossBatch, RttView, SentInfo};

/// Cycles, besides the running one, for which a bandwidth sample counts.
const BANDWIDTH_CYCLES: u64 = 1;

/// Parameters that are read whenever they matter, so that they can be changed while the controller runs.
const LIVE: &[&str] = &[
    "startup_gain",
    "startup_cwnd_gain",
    "drain_gain",
    "probe_up_gain",
    "probe_down_gain",
    "cwnd_gain",
    "probe_up_cwnd_gain",
    "loss_threshold",
    "beta",
    "headroom",
    "probe_wait",
    "probe_wait_random",
    "probe_rounds",
    "probe_rtt_gain",
];

/// The BBRv3 controller, and with other parameters that of BBRv2.
#[derive(Clone, Debug)]
pub struct Bbr3 {
    config: Bbr3Config,
    policy: Policy,
    state: State,
    cycle: Cycle,
    drain_from_round: u64,
    max_bandwidth: MaxBandwidth,
    /// The largest bandwidth within the short-term bound.
    bandwidth: Bandwidth,
    min_rtt: MinRtt,
    probe_rtt: ProbeRtt,
    full_pipe: FullPipe,
    aggregation: AckAggregation,
    pacing: PacingRate,
    rounds: Rounds,
    latest: LatestSignals,
    short_term: ShortTerm,
    long_term: LongTerm,
    startup_losses: StartupLosses,
    ecn: Ecn,
    undo: Undo,
    saved: SavedWindow,
    cwnd: ByteCount,
    sizes: Sizes,
    /// Bytes in flight when last reported.
    inflight: ByteCount,
    /// Totals of the path.
    delivered: ByteCount,
    lost: ByteCount,
    in_loss_recovery: bool,
    /// When everything in flight was declared lost, until a later packet is acknowledged.
    timed_out_at: Option<Instant>,
    /// The flow restarted from idle and nothing was acknowledged since.
    idle_restart: bool,
    is_app_limited: bool,
    /// The flow was in `ProbeRTT` when the last ACK came, or is since then.
    in_probe_rtt: bool,
}

impl Bbr3 {
    fn new(config: &Bbr3Config, now: Instant, env: &Env<'_>) -> Self {
        let config = config.in_range();
        let (sizes, policy) = (Sizes::of(env), config.version.policy());
        let startup_gain = Gain::new(config.startup_gain);
        let threshold = Gain::new(config.full_pipe_threshold);
        let (interval, window) = (config.probe_rtt_interval, config.min_rtt_window);
        Self {
            config,
            policy,
            state: State::Startup,
            cycle: Cycle::new(now),
            drain_from_round: 0,
            max_bandwidth: MaxBandwidth::new(BANDWIDTH_CYCLES),
            bandwidth: Bandwidth::ZERO,
            min_rtt: MinRtt::new(now, interval, window, policy.min_rtt_refresh),
            probe_rtt: ProbeRtt::new(config.probe_rtt_duration),
            full_pipe: FullPipe::new(threshold, config.full_pipe_rounds),
            aggregation: AckAggregation::new(now),
            pacing: PacingRate::new(config.pacing_margin, startup_gain),
            rounds: Rounds::default(),
            latest: LatestSignals::new(),
            short_term: ShortTerm::default(),
            long_term: LongTerm::default(),
            startup_losses: StartupLosses::new(policy.startup_loss_unit, config.startup_losses),
            ecn: Ecn::new(config.ecn),
            undo: Undo::default(),
            saved: SavedWindow::default(),
            cwnd: sizes.initial_window,
            sizes,
            inflight: ByteCount::ZERO,
            delivered: ByteCount::ZERO,
            lost: ByteCount::ZERO,
            in_loss_recovery: false,
            timed_out_at: None,
            idle_restart: false,
            is_app_limited: true,
            in_probe_rtt: false,
        }
    }

    fn details(&self) -> Vec<(&'static str, f64)> {
        let bytes = |amount: ByteCount| amount.get() as f64;
        let min_rtt = self.min_rtt.get().unwrap_or_default();
        let mut details = vec![
            ("bandwidth_bps", self.bandwidth.as_bps() as f64),
            (
                "max_bandwidth_bps",
                self.max_bandwidth.get().as_bps() as f64,
            ),
            ("min_rtt_ms", min_rtt.as_secs_f64() * 1e3),
            ("pacing_gain", self.state.pacing_gain(&self.config).get()),
            ("cwnd_gain", self.state.cwnd_gain(&self.config).get()),
            ("extra_acked", bytes(self.aggregation.extra())),
            ("full_pipe", f64::from(u8::from(self.full_pipe.was_full()))),
            ("ecn_alpha", self.ecn.alpha()),
        ];
        // A bound that isn't set has no entry.
        let bounds = [
            ("inflight_shortterm", self.short_term.inflight.map(bytes)),
            ("inflight_longterm", self.long_term.inflight().map(bytes)),
            (
                "bw_shortterm_bps",
                self.short_term.bandwidth.map(|rate| rate.as_bps() as f64),
            ),
        ];
        details.extend(
            bounds
                .iter()
                .filter_map(|(name, value)| Some((*name, (*value)?))),
        );
        details
    }
}

impl Controller for Bbr3 {
    fn name(&self) -> &'static str {
        self.config.name
    }

    fn on_sent(&mut self, _sent: &SentInfo, _env: &mut Env<'_>) {}

    fn on_ack(&mut self, ack: &AckBatch, env: &mut Env<'_>) {
        self.sizes = Sizes::of(env);
        self.in_probe_rtt = self.state == State::ProbeRtt;
        self.update_model(ack, env);
        self.in_probe_rtt |= self.state == State::ProbeRtt;
        self.update_control(ack);
    }

    fn on_loss(&mut self, loss: &LossBatch<'_>, env: &mut Env<'_>) {
        self.sizes = Sizes::of(env);
        self.handle_losses(loss, env);
    }

    /// Marks are taken from the ACK that reports them, which follows.
    fn on_ce(&mut self, _ce: &EcnBatch, _env: &mut Env<'_>) {}

    fn on_spurious(&mut self, episode: EpisodeId, _now: Instant, env: &mut Env<'_>) {
        self.sizes = Sizes::of(env);
        self.handle_spurious(episode);
    }

    fn on_persistent_congestion(&mut self, now: Instant, env: &mut Env<'_>) {
        self.sizes = Sizes::of(env);
        self.handle_timeout(now);
    }

    fn on_idle_restart(&mut self, now: Instant, _idle: Duration, env: &mut Env<'_>) {
        if !self.is_app_limited {
            return;
        }
        self.idle_restart = true;
        self.aggregation.restart(now);
        if self.state.is_probe_bw() {
            // The queue, if there was one, is gone: the model need not change at once.
            self.set_pacing_rate(Gain::UNITY);
        } else if self.state == State::ProbeRtt && self.probe_rtt.time_is_up(now) {
            self.leave_probe_rtt(now, env);
        }
    }

    fn on_max_datagram_size_change(&mut self, env: &mut Env<'_>) {
        self.sizes = Sizes::of(env);
        self.cwnd = self.sizes.bound(self.cwnd);
    }

    fn cwnd(&self) -> ByteCount {
        self.cwnd
    }

    fn pacing(&self, rtt: &RttView) -> Pacing {
        self.pacing
            .pacing(self.sizes.initial_window, self.sizes.packet, rtt)
    }

    /// Also after the ACK that ends `ProbeRTT` (draft-ietf-ccwg-bbr, section 5.3.4.3: the mark is set
    /// before it is decided whether the stay is over). The mark of the ACK before would lapse before
    /// packets sent since then are acknowledged, and the next sample would show `ProbeRTT`'s rate.
    fn uses_app_limited_mark(&self) -> bool {
        self.in_probe_rtt
    }

    fn parameters(&self) -> Vec<Parameter> {
        live_parameters(&self.config, LIVE)
    }

    fn configure(&mut self, settings: &str) -> Result<(), ParameterError> {
        set_live(&mut self.config, LIVE, settings)
    }

    fn bandwidth(&self) -> Option<Bandwidth> {
        Some(self.bandwidth).filter(|bandwidth| !bandwidth.is_zero())
    }

    fn snapshot(&self) -> Snapshot {
        Snapshot {
            cwnd: self.cwnd,
            ssthresh: None,
            state: self.state.name(),
            details: self.details(),
        }
    }

    fn clone_box(&self) -> Box<dyn Controller> {
        Box::new(self.clone())
    }
}
