//! Parameters of BBRv1.

use std::time::Duration;

use swiftwater_units::{Bandwidth, Instant, PacketCount};

use super::{Bbr1, cycle::CycleGains};
use crate::bbr::gain::Gain;
use crate::bbr::{EXPECTED, INTERVALS, PROBE_TIMES, within};
use crate::clamp::clamp_or;
use crate::controller::{Controller, ControllerFactory, Env};
use swiftwater_tunable::parameters::OrNone;
use swiftwater_tunable::tunable;

/// Parameters of BBRv1. The default is Linux's `tcp_bbr.c`, but for `lt_bw` and
/// `recovery_counts`. A value outside its range is moved to the nearest bound.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bbr1Config {
    /// What controllers report as their name; default `bbr1`.
    pub name: &'static str,
    /// Pacing gain of Startup; Drain uses its reciprocal. Range 1.1 to 4, default 2.885 (`2/ln 2`).
    pub startup_gain: f64,
    /// Window gain of Startup and Drain. Range 1.1 to 4, default 2.885.
    pub startup_cwnd_gain: f64,
    /// Window gain of `ProbeBW`. Range 1 to 8, default 2.
    pub cwnd_gain: f64,
    /// Growth of the bandwidth per round below which the pipe counts as full. Range 1.01 to 2,
    /// default 1.25.
    pub full_pipe_threshold: f64,
    /// Rounds without such growth. Range 1 to 20, default 3.
    pub full_pipe_rounds: u32,
    /// Pacing gain of the probing phase. Range 1 to 2, default 1.25.
    pub probe_gain: f64,
    /// Pacing gain of the draining phase. Range 0.1 to 1, default 0.75.
    pub drain_gain: f64,
    /// Rounds for which a bandwidth sample counts. Range 1 to 1000, default 10.
    pub bandwidth_window: u64,
    /// Window in `ProbeRTT` as a share of the estimated bandwidth-delay product, range 0.1 to 1;
    /// `None`, the default, takes four packets.
    pub probe_rtt_gain: Option<f64>,
    /// Time without a low round-trip time after which `ProbeRTT` is due; default 10 s.
    pub probe_rtt_interval: Duration,
    /// Time that `ProbeRTT` lasts at least; default 200 ms.
    pub probe_rtt_duration: Duration,
    /// Time for which a round-trip time counts; default 10 s. Should exceed the interval where
    /// `probe_rtt_gain` is set, see [`MinRtt`](crate::blocks::MinRtt).
    pub min_rtt_window: Duration,
    /// Bandwidth that satisfies the application; default `None`. From there on the gains are
    /// `expected_probe_gain` and `expected_drain_gain`, and Startup ends at once.
    pub expected_bandwidth: Option<Bandwidth>,
    /// Most that the path is believed to carry: larger samples count as this, and from there on
    /// probing is as gentle as from `expected_bandwidth` on; default `None`. It serves as a rate
    /// limit (Startup may exceed it by its gain for a round).
    pub max_expected_bandwidth: Option<Bandwidth>,
    /// Pacing gain of the probing phase from `expected_bandwidth` on. Range 1 to 2, default 1.1.
    pub expected_probe_gain: f64,
    /// Pacing gain of the draining phase from there on. Range 0.1 to 1, default 0.9.
    pub expected_drain_gain: f64,
    /// Look for traffic policers and keep to their rate, as Linux does. Default false: flows that
    /// overfill a shared queue lose as much as a policer drops, and some are then held at a low rate
    /// for 48 rounds.
    pub lt_bw: bool,
    /// Count what loss recovery let leave as all that the path can carry, as Linux does: rounds of
    /// conserved packets in full towards a full pipe (otherwise by a quarter, unless more than an
    /// eighth was lost), and samples of a flow that the application limits otherwise. Default false.
    pub recovery_counts: bool,
    /// Packets to start with, 2 to 1000; `None`, the default, leaves it to the transport, whose own
    /// configuration wins in any case.
    pub initial_window: Option<u64>,
    /// Share by which the pacing rate stays below the estimate. Range 0 to 0.5, default 0.01.
    pub pacing_margin: f64,
}

impl Default for Bbr1Config {
    fn default() -> Self {
        Self {
            name: "bbr1",
            startup_gain: 2.885,
            startup_cwnd_gain: 2.885,
            cwnd_gain: 2.0,
            full_pipe_threshold: 1.25,
            full_pipe_rounds: 3,
            probe_gain: 1.25,
            drain_gain: 0.75,
            bandwidth_window: 10,
            probe_rtt_gain: None,
            probe_rtt_interval: Duration::from_secs(10),
            probe_rtt_duration: Duration::from_millis(200),
            min_rtt_window: Duration::from_secs(10),
            expected_bandwidth: None,
            max_expected_bandwidth: None,
            expected_probe_gain: 1.1,
            expected_drain_gain: 0.9,
            lt_bw: false,
            recovery_counts: false,
            initial_window: None,
            pacing_margin: 0.01,
        }
    }
}

impl Bbr1Config {
    /// BBRv1 tuned for live video (`bbr1-xquic`): short and shallow `ProbeRTT` (0.75 of the
    /// estimated bandwidth-delay product every 2.5 s, for 200 ms), 32 packets to start with.
    /// `expected_bandwidth` and `max_expected_bandwidth` are for the application to
    /// set.
    ///
    /// Round-trip times count for two intervals, 5 s. Were it one, the target of `ProbeRTT` would be
    /// computed from a sample that includes the queue to be drained, and the estimate could creep
    /// up; with two, a rise of the propagation delay is still measured in half the time that Linux
    /// takes.
    pub fn xquic() -> Self {
        Self {
            name: "bbr1-xquic",
            probe_rtt_gain: Some(0.75),
            probe_rtt_interval: Duration::from_millis(2_500),
            min_rtt_window: Duration::from_secs(5),
            initial_window: Some(32),
            ..Self::default()
        }
    }

    /// A controller with these parameters.
    pub fn controller(&self, now: Instant, env: &Env<'_>) -> Bbr1 {
        Bbr1::new(self.in_range(), now, env)
    }

    fn in_range(&self) -> Self {
        let default = Self::default();
        let bounded = |gain: f64, default: f64, low, high| clamp_or(gain, default, low, high);
        Self {
            startup_gain: bounded(self.startup_gain, default.startup_gain, 1.1, 4.0),
            startup_cwnd_gain: bounded(self.startup_cwnd_gain, default.startup_cwnd_gain, 1.1, 4.0),
            cwnd_gain: bounded(self.cwnd_gain, default.cwnd_gain, 1.0, 8.0),
            full_pipe_threshold: bounded(self.full_pipe_threshold, 1.25, 1.01, 2.0),
            full_pipe_rounds: self.full_pipe_rounds.clamp(1, 20),
            probe_gain: bounded(self.probe_gain, default.probe_gain, 1.0, 2.0),
            drain_gain: bounded(self.drain_gain, default.drain_gain, 0.1, 1.0),
            bandwidth_window: self.bandwidth_window.clamp(1, 1_000),
            probe_rtt_gain: self
                .probe_rtt_gain
                .map(|gain| bounded(gain, 0.75, 0.1, 1.0)),
            expected_probe_gain: bounded(self.expected_probe_gain, 1.1, 1.0, 2.0),
            expected_drain_gain: bounded(self.expected_drain_gain, 0.9, 0.1, 1.0),
            probe_rtt_interval: within(self.probe_rtt_interval, &INTERVALS),
            probe_rtt_duration: within(self.probe_rtt_duration, &PROBE_TIMES),
            min_rtt_window: within(self.min_rtt_window, &INTERVALS),
            initial_window: self.initial_window.map(|packets| packets.clamp(2, 1_000)),
            pacing_margin: bounded(self.pacing_margin, default.pacing_margin, 0.0, 0.5),
            ..*self
        }
    }

    /// The gains of the cycle at an estimate of `bandwidth`.
    pub(super) fn cycle_gains(&self, bandwidth: Bandwidth) -> CycleGains {
        let (probe, drain) = if self.meets_expectation(bandwidth) {
            (self.expected_probe_gain, self.expected_drain_gain)
        } else {
            (self.probe_gain, self.drain_gain)
        };
        CycleGains {
            probe: Gain::new(probe),
            drain: Gain::new(drain),
        }
    }

    /// True if `bandwidth` is all that the application needs, or all that there can be.
    pub(super) fn meets_expectation(&self, bandwidth: Bandwidth) -> bool {
        let reaches = |limit: Option<Bandwidth>| limit.is_some_and(|limit| bandwidth >= limit);
        reaches(self.expected_bandwidth) || self.is_at_most(bandwidth)
    }

    /// True if no larger `bandwidth` would be believed.
    pub(super) fn is_at_most(&self, bandwidth: Bandwidth) -> bool {
        self.max_expected_bandwidth
            .is_some_and(|most| bandwidth >= most)
    }
}

tunable!(Bbr1Config {
    "startup_gain" => startup_gain in 1.1..=4.0, "pacing gain of Startup";
    "startup_cwnd_gain" => startup_cwnd_gain in 1.1..=4.0, "window gain of Startup and Drain";
    "cwnd_gain" => cwnd_gain in 1.0..=8.0, "window gain of ProbeBW";
    "full_pipe_threshold" => full_pipe_threshold in 1.01..=2.0, "growth per round below which the pipe counts as full";
    "full_pipe_rounds" => full_pipe_rounds in 1_u32..=20, "rounds without such growth";
    "probe_gain" => probe_gain in 1.0..=2.0, "pacing gain of the probing phase";
    "drain_gain" => drain_gain in 0.1..=1.0, "pacing gain of the draining phase";
    "bandwidth_window" => bandwidth_window in 1_u64..=1_000, "rounds for which a bandwidth sample counts";
    "probe_rtt_gain" => probe_rtt_gain in OrNone(0.1..=1.0), "window in ProbeRTT as a share of the bandwidth-delay product; none takes 4 packets";
    "probe_rtt_interval" => probe_rtt_interval in INTERVALS, "time without a low round-trip time after which ProbeRTT is due";
    "probe_rtt_duration" => probe_rtt_duration in PROBE_TIMES, "time that ProbeRTT lasts at least";
    "min_rtt_window" => min_rtt_window in INTERVALS, "time for which a round-trip time counts; no less than probe_rtt_interval takes effect";
    "expected_bandwidth" => expected_bandwidth in OrNone(EXPECTED), "bandwidth from which on probing is gentle";
    "max_expected_bandwidth" => max_expected_bandwidth in OrNone(EXPECTED), "most that a bandwidth sample may be";
    "expected_probe_gain" => expected_probe_gain in 1.0..=2.0, "pacing gain of the probing phase from the expected bandwidth on";
    "expected_drain_gain" => expected_drain_gain in 0.1..=1.0, "pacing gain of the draining phase from there on";
    "lt_bw" => lt_bw, "look for traffic policers";
    "recovery_counts" => recovery_counts, "count what loss recovery let leave as all that the path can carry, as in Linux";
    "initial_window" => initial_window in OrNone(2_u64..=1_000), "packets to start with, unless the transport is configured; none for its default";
    "pacing_margin" => pacing_margin in 0.0..=0.5, "share by which the pacing rate stays below the estimate";
});

impl ControllerFactory for Bbr1Config {
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
