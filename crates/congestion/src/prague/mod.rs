//! Prague: the scalable congestion control of L4S. It sends ECT(1), measures which share of its
//! packets the bottleneck marks, and gives way in proportion.
//!
//! draft-briscoe-iccrg-prague-congestion-control-04; requirements of RFC 9331, section 4. `alpha`
//! has the measurement, `curve` the growth, `classic` the recognition of classic queues; slow
//! start, loss and undo are those of [`LossBased`].
//!
//! Not here: growth by CUBIC's curve, the scaling of segment size at very small windows, and the
//! alternation of the pacing rate within a round trip, which the draft also describes.

mod alpha;
mod classic;
mod curve;

use std::time::Duration;

use swiftwater_units::{Bandwidth, ByteCount, Instant};

use self::alpha::{Alpha, Period};
use self::classic::ClassicQueue;
pub use self::curve::PragueCurve;
use crate::clamp::clamp_or;
use crate::controller::{Controller, ControllerFactory, EctCodepoint, Env, Pacing, Snapshot};
use crate::loss_based::{Curve, LossBased};
use crate::loss_based_config::LossBasedConfig;
use crate::pacing_gains::PacingGains;
use crate::sample::{AckBatch, EcnBatch, EpisodeId, LossBatch, RttView, SentInfo};
use swiftwater_tunable::parameters::{live_parameters, set_live};
use swiftwater_tunable::{Parameter, ParameterError, tunable};

/// Longest burst in time, 1/4096 s as in the Linux reference; one packet at least.
const BURST_TIME: Duration = Duration::from_nanos(1_000_000_000 / 4_096);

/// Parameters of Prague. A value outside its range is moved to the nearest bound.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PragueConfig {
    /// Weight of a new measurement in `alpha`. Range 0.001 to 1, default 1/16.
    pub gain: f64,
    /// Round-trip time that shorter paths behave as if they had. Range 0 to 1 s, default 25 ms; 0
    /// leaves each path its own.
    pub rtt_target: Duration,
    /// Round trips of congestion avoidance before the flow takes on `rtt_target`: short flows may
    /// use that they are near. Range 0 to 100000, default 500, as in the Linux reference.
    pub rtt_transition: u32,
    /// What a loss multiplies the window by, and a mark if the queue is a classic one. Range 0.1 to
    /// 0.95, default 0.5.
    pub loss_beta: f64,
    /// Answer marks like losses if the bottleneck looks like a classic AQM. Default true.
    pub classic_fallback: bool,
    /// Standing queueing delay in spite of marks that makes a bottleneck look like one. Range 100
    /// us to 1 s, default 2 ms: between the 1 ms at which L4S queues mark and the 5 ms of CoDel.
    pub classic_depth: Duration,
    /// Slow start, pacing and recovery. Default: pacing gains 2 in slow start and 1 later, since
    /// bursts would be marked. (Marks come long before HyStart++ acts, where there are any.)
    pub base: LossBasedConfig,
}

impl Default for PragueConfig {
    fn default() -> Self {
        Self {
            gain: 1.0 / 16.0,
            rtt_target: Duration::from_millis(25),
            rtt_transition: 500,
            loss_beta: 0.5,
            classic_fallback: true,
            classic_depth: Duration::from_millis(2),
            base: LossBasedConfig {
                pacing: PacingGains {
                    slow_start: 2.0,
                    avoidance: 1.0,
                },
                ..LossBasedConfig::default()
            },
        }
    }
}

tunable!(PragueConfig {
    "gain" => gain in 0.001..=1.0, "weight of a new measurement in alpha";
    "rtt_target" => rtt_target in Duration::ZERO..=Duration::from_secs(1), "round-trip time that shorter paths behave as if they had";
    "rtt_transition" => rtt_transition in 0_u32..=100_000, "round trips of congestion avoidance before rtt_target applies";
    "loss_beta" => loss_beta in 0.1..=0.95, "what a loss multiplies the window by";
    "classic_fallback" => classic_fallback, "answer marks of a classic AQM like losses";
    "classic_depth" => classic_depth in Duration::from_micros(100)..=Duration::from_secs(1), "standing queueing delay in spite of marks that means a classic AQM";
    ..base;
});

impl PragueConfig {
    /// A controller with these parameters.
    pub fn controller(&self, env: &Env<'_>) -> Prague {
        Prague::new(self.in_range(), env)
    }

    fn in_range(self) -> Self {
        let default = Self::default();
        let (shallow, deep) = (Duration::from_micros(100), Duration::from_secs(1));
        Self {
            gain: clamp_or(self.gain, default.gain, 0.001, 1.0),
            rtt_target: self.rtt_target.min(Duration::from_secs(1)),
            rtt_transition: self.rtt_transition.min(100_000),
            loss_beta: clamp_or(self.loss_beta, default.loss_beta, 0.1, 0.95),
            classic_fallback: self.classic_fallback,
            classic_depth: self.classic_depth.clamp(shallow, deep),
            base: self.base,
        }
    }
}

impl ControllerFactory for PragueConfig {
    fn name(&self) -> &'static str {
        PragueCurve::NAME
    }

    fn build(&self, _now: Instant, env: &mut Env<'_>) -> Box<dyn Controller> {
        Box::new(self.controller(env))
    }
}

/// Parameters that are read whenever they matter, so that they can be changed while the controller runs.
const LIVE: &[&str] = &["classic_fallback"];

/// The Prague controller.
#[derive(Clone, Debug)]
pub struct Prague {
    config: PragueConfig,
    base: LossBased<PragueCurve>,
    alpha: Alpha,
    classic: ClassicQueue,
    /// Packets sent after this meet the window as the last loss left it; marks don't hold up
    /// growth.
    lost_at: Option<Instant>,
    /// When a mark last reduced the window.
    reduced_at: Option<Instant>,
    round: u64,
    /// The maximum datagram size.
    packet: ByteCount,
}

impl Prague {
    fn new(config: PragueConfig, env: &Env<'_>) -> Self {
        Self {
            config,
            base: config.base.controller(PragueCurve::new(&config), env),
            alpha: Alpha::new(config.gain),
            classic: ClassicQueue::default(),
            lost_at: None,
            reduced_at: None,
            round: 0,
            packet: env.max_datagram_size,
        }
    }

    /// The round-trip time that the flow behaves as if it had, if that is longer than its own.
    fn virtual_rtt(&self, rtt: &RttView) -> Option<Duration> {
        self.base
            .curve()
            .virtual_rtt(rtt.known_smoothed()?, self.round)
    }

    /// True if marks may reduce the window: once per round trip, or virtual round trip.
    fn may_reduce(&self, ce: &EcnBatch) -> bool {
        // Packets sent before the window was last set to another one say nothing about this one.
        if !self.alpha.measures(ce.largest_acked_sent_at) {
            return false;
        }
        self.virtual_rtt(&ce.rtt).map_or(ce.new_episode, |period| {
            self.reduced_at
                .is_none_or(|at| ce.now.saturating_since(at) >= period)
        })
    }

    fn sent_after_loss(&self, sent_at: Instant) -> bool {
        self.lost_at.is_none_or(|lost_at| sent_at > lost_at)
    }

    /// A period of measurement ended: is the queue a classic one?
    fn judge_queue(&mut self, period: &Period, rtt: &RttView) {
        let has_marks = period.share().is_some_and(|share| share > 0.0);
        let (true, Some(least), Some(smoothed)) =
            (has_marks, period.least_rtt, rtt.known_smoothed())
        else {
            return;
        };
        // What the path carries in a round trip is about the window.
        let window = self.base.cwnd().get().max(1) as f64;
        let packets = classic::PACKETS * self.packet.get() as f64 / window;
        let packets = Duration::try_from_secs_f64(smoothed.as_secs_f64() * packets);
        let depth = self
            .config
            .classic_depth
            .max(packets.unwrap_or(Duration::MAX));
        self.classic.observe(least.saturating_sub(rtt.min), depth);
    }

    fn is_classic(&self) -> bool {
        self.config.classic_fallback && self.classic.is_classic()
    }

    /// The part of what `ack` acknowledges that may grow the window: what wasn't marked.
    fn unmarked(ack: &AckBatch) -> ByteCount {
        let packets = ack.acked_packets.get().max(1) as f64;
        let marked = ack.ecn.ce.get() as f64;
        ack.acked_bytes.scaled((1.0 - marked / packets).max(0.0))
    }
}

impl Controller for Prague {
    fn name(&self) -> &'static str {
        PragueCurve::NAME
    }

    fn on_sent(&mut self, sent: &SentInfo, env: &mut Env<'_>) {
        self.base.on_sent(sent, env);
    }

    fn on_ack(&mut self, ack: &AckBatch, env: &mut Env<'_>) {
        self.round = ack.round.count;
        let length = self.virtual_rtt(&ack.rtt);
        if let Some(period) = self.alpha.on_ack(ack, length) {
            self.judge_queue(&period, &ack.rtt);
        }
        let in_slow_start = self.base.in_slow_start();
        let unmarked = AckBatch {
            acked_bytes: Self::unmarked(ack),
            sent_after_recovery_start: if self.is_classic() {
                ack.sent_after_recovery_start
            } else {
                self.sent_after_loss(ack.largest_acked_sent_at)
            },
            ..*ack
        };
        self.base.on_ack(&unmarked, env);
        if in_slow_start && !self.base.in_slow_start() {
            self.alpha.restart(ack.now);
        }
    }

    fn on_loss(&mut self, loss: &LossBatch<'_>, env: &mut Env<'_>) {
        // An episode that marks opened may hide a loss, so the transport's flag isn't enough.
        if loss.new_episode || self.sent_after_loss(loss.largest_lost_sent_at) {
            let beta = self.base.curve().beta();
            if loss.new_episode {
                self.base.reduce_for_loss(beta, loss, env);
            } else {
                self.base.reduce(beta, None, env);
            }
            self.lost_at = Some(loss.now);
            self.alpha.restart(loss.now);
        }
    }

    fn on_ce(&mut self, ce: &EcnBatch, env: &mut Env<'_>) {
        self.alpha.on_mark();
        if !self.may_reduce(ce) {
            return;
        }
        let in_slow_start = self.base.in_slow_start();
        let factor = if self.is_classic() {
            self.config.loss_beta
        } else {
            1.0 - self.alpha.get() / 2.0
        };
        self.base.reduce(factor, None, env);
        self.reduced_at = Some(ce.now);
        if in_slow_start {
            self.alpha.restart(ce.now);
        }
    }

    fn on_spurious(&mut self, episode: EpisodeId, now: Instant, env: &mut Env<'_>) {
        self.base.on_spurious(episode, now, env);
        self.lost_at = None;
    }

    fn on_persistent_congestion(&mut self, now: Instant, env: &mut Env<'_>) {
        self.base.on_persistent_congestion(now, env);
        self.alpha = Alpha::new(self.config.gain);
        self.alpha.restart(now);
        self.classic = ClassicQueue::default();
        self.lost_at = None;
        self.reduced_at = None;
    }

    fn on_idle_restart(&mut self, now: Instant, idle: Duration, env: &mut Env<'_>) {
        self.base.on_idle_restart(now, idle, env);
    }

    fn on_max_datagram_size_change(&mut self, env: &mut Env<'_>) {
        self.packet = env.max_datagram_size;
        self.base.on_max_datagram_size_change(env);
    }

    fn cwnd(&self) -> ByteCount {
        self.base.cwnd()
    }

    fn ecn_codepoint(&self) -> EctCodepoint {
        EctCodepoint::Ect1
    }

    fn pacing(&self, rtt: &RttView) -> Pacing {
        let pacing = self.base.pacing(rtt);
        let window = self.cwnd().scaled(pacing.gain).get();
        let rate = Bandwidth::from_transfer(window, rtt.smoothed);
        let burst = ByteCount::new(rate.bytes_in(BURST_TIME));
        Pacing {
            quantum: Some(burst.max(self.packet)),
            ..pacing
        }
    }

    fn set_growth_scale(&mut self, scale: f64) {
        self.base.set_growth_scale(scale);
    }

    fn can_be_coupled(&self) -> bool {
        true
    }

    fn parameters(&self) -> Vec<Parameter> {
        live_parameters(&self.config, LIVE)
    }

    fn configure(&mut self, settings: &str) -> Result<(), ParameterError> {
        set_live(&mut self.config, LIVE, settings)
    }

    fn snapshot(&self) -> Snapshot {
        let mut snapshot = self.base.snapshot();
        snapshot.details.push(("alpha", self.alpha.shown()));
        let classic = f64::from(u8::from(self.is_classic()));
        snapshot.details.push(("classic", classic));
        snapshot
    }

    fn clone_box(&self) -> Box<dyn Controller> {
        Box::new(self.clone())
    }
}
