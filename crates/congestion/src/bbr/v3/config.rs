//! Parameters of BBRv3 and BBRv2.

use std::time::Duration;

use swiftwater_units::{Instant, PacketCount};

use super::policy::Bbr3Version;
use super::{Bbr3, ecn::EcnConfig};
use crate::bbr::{INTERVALS, PROBE_TIMES, within};
use crate::clamp::clamp_or;
use crate::controller::{Controller, ControllerFactory, Env};
use swiftwater_tunable::parameters::OrNone;
use swiftwater_tunable::tunable;

/// Parameters of BBRv3 and, see [`Bbr3Config::v2alpha`], of BBRv2. The default is
/// draft-ietf-ccwg-bbr-06. A value outside its range is moved to the nearest bound.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bbr3Config {
    /// What controllers report as their name; default `bbr3`.
    pub name: &'static str,
    /// Which version's logic to follow where constants don't decide; default the draft's.
    pub version: Bbr3Version,
    /// Pacing gain of Startup. Range 1.1 to 4, default 2.77 (`4 ln 2`).
    pub startup_gain: f64,
    /// Window gain of Startup and Drain. Range 1.1 to 4, default 2.
    pub startup_cwnd_gain: f64,
    /// Pacing gain of Drain. Range 0.1 to 1, default 0.5.
    pub drain_gain: f64,
    /// Pacing gain of `ProbeBW_UP`. Range 1 to 2, default 1.25.
    pub probe_up_gain: f64,
    /// Pacing gain of `ProbeBW_DOWN`. Range 0.1 to 1, default 0.9.
    pub probe_down_gain: f64,
    /// Window gain of `ProbeBW`. Range 1 to 8, default 2.
    pub cwnd_gain: f64,
    /// Window gain of `ProbeBW_UP`. Range 1 to 8, default 2.25.
    pub probe_up_cwnd_gain: f64,
    /// Growth of the delivery rate per round below which the pipe counts as full. Range 1.01 to 2,
    /// default 1.25.
    pub full_pipe_threshold: f64,
    /// Rounds without such growth. Range 1 to 20, default 3.
    pub full_pipe_rounds: u32,
    /// Losses in a round that end Startup if they exceed the threshold as well. Range 1 to 1000,
    /// default 6 runs of lost packets.
    pub startup_losses: u64,
    /// Share of what is in flight that may be lost in a round. Range 0.001 to 0.5, default 0.02.
    pub loss_threshold: f64,
    /// What is kept of a bound, at least, in answer to losses. Range 0.1 to 0.95, default 0.7.
    pub beta: f64,
    /// Share of the long-term bound that is left to others. Range 0 to 0.9, default 0.15.
    pub headroom: f64,
    /// Time between probes for bandwidth, at least; default 2 s.
    pub probe_wait: Duration,
    /// Time that is added to it at random, at most; default 1 s.
    pub probe_wait_random: Duration,
    /// Rounds between probes, at most. Range 1 to 10000, default 63.
    pub probe_rounds: u64,
    /// Window in `ProbeRTT` as a share of the estimated bandwidth-delay product. Range 0.1 to 1,
    /// default 0.5.
    pub probe_rtt_gain: f64,
    /// Time without a lower round-trip time after which `ProbeRTT` is due; default 5 s.
    pub probe_rtt_interval: Duration,
    /// Time that `ProbeRTT` lasts at least; default 200 ms.
    pub probe_rtt_duration: Duration,
    /// Time for which a round-trip time counts; default 10 s.
    pub min_rtt_window: Duration,
    /// Answer to CE marks.
    pub ecn: EcnConfig,
    /// Packets to start with, 2 to 1000; `None`, the default, leaves it to the transport, whose own
    /// configuration wins in any case.
    pub initial_window: Option<u64>,
    /// Share by which the pacing rate stays below the estimate. Range 0 to 0.5, default 0.01.
    pub pacing_margin: f64,
}

impl Default for Bbr3Config {
    fn default() -> Self {
        Self {
            name: "bbr3",
            version: Bbr3Version::Draft,
            startup_gain: 2.77,
            startup_cwnd_gain: 2.0,
            drain_gain: 0.5,
            probe_up_gain: 1.25,
            probe_down_gain: 0.9,
            cwnd_gain: 2.0,
            probe_up_cwnd_gain: 2.25,
            full_pipe_threshold: 1.25,
            full_pipe_rounds: 3,
            startup_losses: 6,
            loss_threshold: 0.02,
            beta: 0.7,
            headroom: 0.15,
            probe_wait: Duration::from_secs(2),
            probe_wait_random: Duration::from_secs(1),
            probe_rounds: 63,
            probe_rtt_gain: 0.5,
            probe_rtt_interval: Duration::from_secs(5),
            probe_rtt_duration: Duration::from_millis(200),
            min_rtt_window: Duration::from_secs(10),
            ecn: EcnConfig::default(),
            initial_window: None,
            pacing_margin: 0.01,
        }
    }
}

impl Bbr3Config {
    /// BBRv2 (`bbr2`), with the constants of the `v2alpha` branch.
    pub fn v2alpha() -> Self {
        Self {
            name: "bbr2",
            version: Bbr3Version::V2Alpha,
            startup_gain: 2.885,
            startup_cwnd_gain: 2.885,
            drain_gain: 1.0 / 2.885,
            probe_down_gain: 0.75,
            probe_up_cwnd_gain: 2.0,
            startup_losses: 8,
            ..Self::default()
        }
    }

    /// A controller with these parameters.
    pub fn controller(&self, now: Instant, env: &Env<'_>) -> Bbr3 {
        Bbr3::new(self, now, env)
    }

    pub(super) fn in_range(&self) -> Self {
        let default = Self::default();
        Self {
            startup_gain: clamp_or(self.startup_gain, default.startup_gain, 1.1, 4.0),
            startup_cwnd_gain: clamp_or(self.startup_cwnd_gain, 2.0, 1.1, 4.0),
            drain_gain: clamp_or(self.drain_gain, default.drain_gain, 0.1, 1.0),
            probe_up_gain: clamp_or(self.probe_up_gain, default.probe_up_gain, 1.0, 2.0),
            probe_down_gain: clamp_or(self.probe_down_gain, 0.9, 0.1, 1.0),
            cwnd_gain: clamp_or(self.cwnd_gain, default.cwnd_gain, 1.0, 8.0),
            probe_up_cwnd_gain: clamp_or(self.probe_up_cwnd_gain, 2.25, 1.0, 8.0),
            full_pipe_threshold: clamp_or(self.full_pipe_threshold, 1.25, 1.01, 2.0),
            full_pipe_rounds: self.full_pipe_rounds.clamp(1, 20),
            startup_losses: self.startup_losses.clamp(1, 1_000),
            loss_threshold: clamp_or(self.loss_threshold, 0.02, 0.001, 0.5),
            beta: clamp_or(self.beta, default.beta, 0.1, 0.95),
            headroom: clamp_or(self.headroom, default.headroom, 0.0, 0.9),
            probe_rounds: self.probe_rounds.clamp(1, 10_000),
            probe_rtt_gain: clamp_or(self.probe_rtt_gain, default.probe_rtt_gain, 0.1, 1.0),
            ecn: self.ecn.in_range(),
            probe_rtt_interval: within(self.probe_rtt_interval, &INTERVALS),
            probe_rtt_duration: within(self.probe_rtt_duration, &PROBE_TIMES),
            min_rtt_window: within(self.min_rtt_window, &INTERVALS),
            probe_wait: within(self.probe_wait, &INTERVALS),
            initial_window: self.initial_window.map(|packets| packets.clamp(2, 1_000)),
            pacing_margin: clamp_or(self.pacing_margin, default.pacing_margin, 0.0, 0.5),
            ..*self
        }
    }
}

tunable!(Bbr3Config {
    "startup_gain" => startup_gain in 1.1..=4.0, "pacing gain of Startup";
    "startup_cwnd_gain" => startup_cwnd_gain in 1.1..=4.0, "window gain of Startup and Drain";
    "drain_gain" => drain_gain in 0.1..=1.0, "pacing gain of Drain";
    "probe_up_gain" => probe_up_gain in 1.0..=2.0, "pacing gain of ProbeBW_UP";
    "probe_down_gain" => probe_down_gain in 0.1..=1.0, "pacing gain of ProbeBW_DOWN";
    "cwnd_gain" => cwnd_gain in 1.0..=8.0, "window gain of ProbeBW";
    "probe_up_cwnd_gain" => probe_up_cwnd_gain in 1.0..=8.0, "window gain of ProbeBW_UP";
    "full_pipe_threshold" => full_pipe_threshold in 1.01..=2.0, "growth per round below which the pipe counts as full";
    "full_pipe_rounds" => full_pipe_rounds in 1_u32..=20, "rounds without such growth";
    "startup_losses" => startup_losses in 1_u64..=1_000, "losses in a round that end Startup if they exceed the threshold as well";
    "loss_threshold" => loss_threshold in 0.001..=0.5, "share of what is in flight that may be lost in a round";
    "beta" => beta in 0.1..=0.95, "what is kept of a bound, at least, in answer to losses";
    "headroom" => headroom in 0.0..=0.9, "share of the long-term bound that is left to others";
    "probe_wait" => probe_wait in INTERVALS, "time between probes for bandwidth, at least";
    "probe_wait_random" => probe_wait_random in Duration::ZERO..=*INTERVALS.end(), "time that is added to it at random, at most";
    "probe_rounds" => probe_rounds in 1_u64..=10_000, "rounds between probes, at most";
    "probe_rtt_gain" => probe_rtt_gain in 0.1..=1.0, "window in ProbeRTT as a share of the bandwidth-delay product";
    "probe_rtt_interval" => probe_rtt_interval in INTERVALS, "time without a lower round-trip time after which ProbeRTT is due";
    "probe_rtt_duration" => probe_rtt_duration in PROBE_TIMES, "time that ProbeRTT lasts at least";
    "min_rtt_window" => min_rtt_window in INTERVALS, "time for which a round-trip time counts";
    "ecn_max_rtt" => ecn.max_rtt, "round-trip time up to which marks are answered by their share; beyond, a mark counts as a loss";
    "ecn_alpha_gain" => ecn.alpha_gain in 0.001..=1.0, "weight of a round in the share of marks";
    "ecn_factor" => ecn.factor in 0.0..=1.0, "part of the share of marks by which the window is cut";
    "ecn_threshold" => ecn.threshold in 0.01..=1.0, "share of marks in a round above which too much is in flight";
    "initial_window" => initial_window in OrNone(2_u64..=1_000), "packets to start with, unless the transport is configured; none for its default";
    "pacing_margin" => pacing_margin in 0.0..=0.5, "share by which the pacing rate stays below the estimate";
});

impl ControllerFactory for Bbr3Config {
    fn name(&self) -> &'static str {
        self.name
    }

    fn initial_window(&self) -> Option<PacketCount> {
        self.in_range().initial_window.map(PacketCount::new)
    }

    fn build(&self, now: Instant, env: &mut Env<'_>) -> Box<dyn Controller> {
        Box::new(self.controller(now, env))
    }
}
