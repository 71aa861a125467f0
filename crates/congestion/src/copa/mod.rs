//! Copa: delay-based control with a target rate of `1/(delta * dq)` packets per second, where `dq`
//! is the time packets stand in the queue.
//!
//! V. Arun and H. Balakrishnan, "Copa: Practical Delay-Based Congestion Control for the Internet",
//! NSDI 2018 (copy with errata at web.mit.edu/copa). Sections cited are the paper's. `delays` has
//! the round-trip times, `velocity` the step size, `mode` the competition with buffer-filling
//! flows.
//!
//! Added to the paper: the velocity of one direction isn't used for the other
//! ([`CopaConfig::turn_at_once`]). And, because the paper says nothing there: a loss ends slow start (without a cut);
//! growth keeps the rules that hold for all algorithms ([`AckBatch::window_used`],
//! [`FlightPeak::cap`]); velocity never moves the window by more than its own size in a round trip;
//! persistent congestion leads to the minimum window and a fresh start. As nothing answers CE, the
//! packets aren't sent ECN-capable.

mod delays;
mod mode;
mod velocity;

use std::time::Duration;

use swiftwater_tunable::parameters::{live_parameters, set_live};
use swiftwater_tunable::{Parameter, ParameterError};
use swiftwater_units::{Bandwidth, ByteCount, Instant};

use self::delays::{Delays, scaled};
use self::mode::Mode;
use self::velocity::Velocity;
use crate::clamp::clamp_or;
use crate::controller::{Controller, ControllerFactory, EctCodepoint, Env, Pacing, Snapshot};
use crate::growth::{FlightPeak, MAX_WINDOW};
use crate::sample::{AckBatch, EcnBatch, EpisodeId, LossBatch, RttView, SentInfo};
use swiftwater_tunable::tunable;

/// Parameters of Copa. The default is the paper's; deployments in QUIC stacks use a `delta` of 0.04
/// (TQUIC) or 0.05 (XQUIC), that is a queue and a throughput under rivalry some ten times as large.
/// A value outside its range is moved to the nearest bound.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CopaConfig {
    /// How much a packet of queue weighs against throughput: a lone flow keeps about `1/delta`
    /// packets in the queue. Range 0.001 to 10, default 0.5. Competitive mode only lowers it.
    pub delta: f64,
    /// Switch to competitive mode where others fill the queue. Default true.
    pub competitive: bool,
    /// Over what time `RTTmin` is the least round-trip time. Range 100 ms to 10 min, default 10 s.
    pub min_rtt_window: Duration,
    /// Over how many smoothed round-trip times `RTTstanding` is the least. Range 0.05 to 4, default
    /// 0.5.
    pub standing_window: f64,
    /// Over how many smoothed round-trip times `RTTmax` is the greatest. Range 1 to 100, default 4.
    pub max_rtt_window: f64,
    /// Share of `RTTmax - RTTmin` below which the queue counts as nearly empty. Range 0.01 to 1,
    /// default 0.1, as in the paper. Where that share is less than the time of a packet, several
    /// Copa flows can take each other for buffer-filling ones; 0.2 keeps them from it.
    pub empty_threshold: f64,
    /// Smoothed round-trip times without a nearly empty queue before competitive mode. Range 1 to
    /// 100, default 5.
    pub mode_rtts: f64,
    /// How often a direction must repeat from one round trip to the next before velocity doubles.
    /// Range 1 to 100, default 3.
    pub velocity_rounds: u32,
    /// Go back to velocity 1 as soon as the window has to move against its direction. The paper
    /// waits for the end of the round trip, in which a high velocity can take most of the window:
    /// a lone flow then swings between a full queue and a half-used link. (As in mvfst.) Default
    /// true.
    pub turn_at_once: bool,
    /// Pacing rate over `cwnd/RTTstanding`. Range 1 to 16, default 2.
    pub pacing_gain: f64,
}

impl Default for CopaConfig {
    fn default() -> Self {
        Self {
            delta: 0.5,
            competitive: true,
            min_rtt_window: Duration::from_secs(10),
            standing_window: 0.5,
            max_rtt_window: 4.0,
            empty_threshold: 0.1,
            mode_rtts: 5.0,
            velocity_rounds: 3,
            turn_at_once: true,
            pacing_gain: 2.0,
        }
    }
}

tunable!(CopaConfig {
    "delta" => delta in 0.001..=10.0, "weight of queueing delay; a lone flow queues about 1/delta packets";
    "competitive" => competitive, "competitive mode where others fill the queue";
    "min_rtt_window" => min_rtt_window in Duration::from_millis(100)..=Duration::from_secs(600), "time over which RTTmin is the least";
    "standing_window" => standing_window in 0.05..=4.0, "smoothed RTTs over which RTTstanding is the least";
    "max_rtt_window" => max_rtt_window in 1.0..=100.0, "smoothed RTTs over which RTTmax is the greatest";
    "empty_threshold" => empty_threshold in 0.01..=1.0, "share of RTTmax - RTTmin below which the queue is nearly empty";
    "mode_rtts" => mode_rtts in 1.0..=100.0, "smoothed RTTs without a nearly empty queue before competitive mode";
    "velocity_rounds" => velocity_rounds in 1_u32..=100, "repetitions of a direction before velocity doubles";
    "turn_at_once" => turn_at_once, "no velocity against the direction it was built up for";
    "pacing_gain" => pacing_gain in 1.0..=16.0, "pacing rate over cwnd/RTTstanding";
});

impl CopaConfig {
    /// A controller with these parameters.
    pub fn controller(&self, env: &Env<'_>) -> Copa {
        Copa::new(self.in_range(), env)
    }

    fn in_range(self) -> Self {
        let default = Self::default();
        let (shortest, longest) = (Duration::from_millis(100), Duration::from_secs(600));
        Self {
            delta: clamp_or(self.delta, default.delta, 0.001, 10.0),
            competitive: self.competitive,
            min_rtt_window: self.min_rtt_window.clamp(shortest, longest),
            standing_window: clamp_or(self.standing_window, default.standing_window, 0.05, 4.0),
            max_rtt_window: clamp_or(self.max_rtt_window, default.max_rtt_window, 1.0, 100.0),
            empty_threshold: clamp_or(self.empty_threshold, default.empty_threshold, 0.01, 1.0),
            mode_rtts: clamp_or(self.mode_rtts, default.mode_rtts, 1.0, 100.0),
            velocity_rounds: self.velocity_rounds.clamp(1, 100),
            turn_at_once: self.turn_at_once,
            pacing_gain: clamp_or(self.pacing_gain, default.pacing_gain, 1.0, 16.0),
        }
    }
}

impl ControllerFactory for CopaConfig {
    fn name(&self) -> &'static str {
        "copa"
    }

    fn build(&self, _now: Instant, env: &mut Env<'_>) -> Box<dyn Controller> {
        Box::new(self.controller(env))
    }
}

/// Parameters that are read whenever they matter, so that they can be changed while the controller runs.
const LIVE: &[&str] = &[
    "delta",
    "competitive",
    "mode_rtts",
    "velocity_rounds",
    "turn_at_once",
    "pacing_gain",
];

/// The Copa controller.
#[derive(Clone, Debug)]
pub struct Copa {
    config: CopaConfig,
    /// Bytes; the steps of one ACK are far below a byte for large windows.
    window: f64,
    /// The window that the path started with, to notice that it was never touched.
    start_window: ByteCount,
    /// The maximum datagram size.
    packet: ByteCount,
    slow_start: bool,
    delays: Delays,
    velocity: Velocity,
    mode: Mode,
    peak: FlightPeak,
}

impl Copa {
    fn new(config: CopaConfig, env: &Env<'_>) -> Self {
        let start_window = env.initial_window.max(env.minimum_window).min(MAX_WINDOW);
        let window = start_window.get() as f64;
        Self {
            config,
            window,
            start_window,
            packet: env.max_datagram_size,
            slow_start: true,
            delays: Delays::new(config),
            velocity: Velocity::new(window),
            mode: Mode::new(config.delta),
            peak: FlightPeak::default(),
        }
    }

    /// True while the rate is at or below the target: `cwnd/RTTstanding <= 1/(delta * dq)`.
    fn is_below_target(&self, env: &Env<'_>) -> bool {
        let Some(standing) = self.delays.standing() else {
            return true;
        };
        let packets = self.window / segment(env);
        let queueing = self.delays.queueing().as_secs_f64();
        packets * self.mode.delta() * queueing <= standing.as_secs_f64()
    }

    /// Moves the window to `window`, at most up to `cap`, never below the minimum.
    fn move_to(&mut self, window: f64, cap: ByteCount, env: &Env<'_>) {
        let floor = env.minimum_window.min(MAX_WINDOW).get() as f64;
        let cap = (cap.get() as f64).max(self.window);
        self.window = window.min(cap).max(floor);
    }

    fn leave_slow_start(&mut self) {
        self.slow_start = false;
        self.velocity = Velocity::new(self.window);
    }

    /// One step of the window (section 2.1).
    fn step(&mut self, ack: &AckBatch, env: &Env<'_>) {
        let acked = ack.acked_bytes.get() as f64;
        let (below, used) = (self.is_below_target(env), ack.window_used());
        let cap = self.peak.cap(self.slow_start);
        if self.slow_start {
            if below {
                if used {
                    self.move_to(self.window + acked, cap, env);
                }
                return;
            }
            self.leave_slow_start();
        }
        let mds = segment(env);
        let delta = self.mode.delta();
        if self.config.turn_at_once {
            self.velocity.turn(below);
        }
        let v = self.velocity.limited(delta, self.window / mds);
        let change = v * mds * acked / (delta * self.window);
        if !below {
            self.move_to(self.window - change, cap, env);
        } else if used {
            self.move_to(self.window + change, cap, env);
        }
    }
}

/// The maximum datagram size as a number to compute with.
fn segment(env: &Env<'_>) -> f64 {
    env.max_datagram_size.get().max(1) as f64
}

impl Controller for Copa {
    fn name(&self) -> &'static str {
        "copa"
    }

    fn on_sent(&mut self, _sent: &SentInfo, _env: &mut Env<'_>) {}

    fn on_ack(&mut self, ack: &AckBatch, env: &mut Env<'_>) {
        self.peak.observe(ack);
        self.delays.observe(ack.now, &ack.rtt);
        if self.config.competitive
            && let Some(smoothed) = ack.rtt.known_smoothed()
        {
            let window = scaled(smoothed, self.config.mode_rtts);
            let nearly_empty = self.delays.is_nearly_empty();
            self.mode.observe(ack.now, nearly_empty, window);
        }
        if ack.round.start {
            self.mode.on_round(ack.window_used());
            self.velocity
                .on_round(self.window, self.config.velocity_rounds);
        }
        if !ack.acked_bytes.is_zero() {
            self.step(ack, env);
        }
    }

    fn on_loss(&mut self, loss: &LossBatch<'_>, _env: &mut Env<'_>) {
        if loss.new_episode {
            if self.slow_start {
                self.leave_slow_start();
            }
            self.mode.on_congestion();
        }
    }

    fn on_ce(&mut self, _ce: &EcnBatch, _env: &mut Env<'_>) {}

    fn on_spurious(&mut self, _episode: EpisodeId, _now: Instant, _env: &mut Env<'_>) {}

    fn on_persistent_congestion(&mut self, _now: Instant, env: &mut Env<'_>) {
        let (start_window, peak) = (self.start_window, self.peak);
        *self = Self {
            start_window,
            peak,
            ..Self::new(self.config, env)
        };
        self.window = env.minimum_window.min(MAX_WINDOW).get() as f64;
        self.velocity = Velocity::new(self.window);
    }

    fn on_idle_restart(&mut self, _now: Instant, _idle: Duration, _env: &mut Env<'_>) {
        self.mode.on_idle();
    }

    fn on_max_datagram_size_change(&mut self, env: &mut Env<'_>) {
        self.packet = env.max_datagram_size;
        // RFC 9002, section 7.2: a window that is still the initial one follows the new size.
        if self.slow_start && self.cwnd() == self.start_window {
            let window = env.initial_window.max(env.minimum_window).min(MAX_WINDOW);
            self.start_window = window;
            self.window = window.get() as f64;
        }
        let floor = env.minimum_window.min(MAX_WINDOW).get() as f64;
        self.window = self.window.max(floor);
    }

    fn cwnd(&self) -> ByteCount {
        ByteCount::new(self.window as u64)
    }

    fn ecn_codepoint(&self) -> EctCodepoint {
        EctCodepoint::NotEct
    }

    fn pacing(&self, rtt: &RttView) -> Pacing {
        let gain = self.config.pacing_gain;
        let standing = self.delays.standing().filter(|standing| {
            // Before the first sample there is only the transport's assumption.
            rtt.has_sample && !standing.is_zero()
        });
        Pacing {
            rate: standing.map(|standing| {
                let window = self.cwnd().scaled(gain).get();
                Bandwidth::from_transfer(window, standing).max(Bandwidth::from_bps(8))
            }),
            gain,
            // Packets that leave together wait for each other at the bottleneck, which would pass
            // for a standing queue.
            quantum: Some(self.packet),
        }
    }

    fn parameters(&self) -> Vec<Parameter> {
        live_parameters(&self.config, LIVE)
    }

    fn configure(&mut self, settings: &str) -> Result<(), ParameterError> {
        let before = self.config.delta;
        set_live(&mut self.config, LIVE, settings)?;
        if self.config.delta.to_bits() != before.to_bits() {
            self.mode = Mode::new(self.config.delta);
        }
        Ok(())
    }

    fn snapshot(&self) -> Snapshot {
        let seconds = |time: Option<Duration>| time.unwrap_or_default().as_secs_f64();
        Snapshot {
            cwnd: self.cwnd(),
            ssthresh: None,
            state: match (self.slow_start, self.mode.is_competitive()) {
                (true, _) => "slow_start",
                (false, false) => "default",
                (false, true) => "competitive",
            },
            details: vec![
                ("delta", self.mode.delta()),
                ("velocity", self.velocity.get()),
                ("rtt_min", seconds(self.delays.min())),
                ("rtt_standing", seconds(self.delays.standing())),
                ("queueing_delay", self.delays.queueing().as_secs_f64()),
            ],
        }
    }

    fn clone_box(&self) -> Box<dyn Controller> {
        Box::new(self.clone())
    }
}
