//! Parameters of Cubic+: the thresholds that its paper leaves open, the switches between readings of
//! it, and extensions of ours that are off by default.

use std::time::Duration;

use swiftwater_units::Instant;

use super::CubicPlus;
use crate::clamp::clamp_or;
use crate::controller::{Controller, ControllerFactory, Env};
use crate::cubic::CubicConfig;
use swiftwater_tunable::parameters::{OrNone, ParameterValue};
use swiftwater_tunable::tunable;

/// What the delay signal `dRTT` measures. The paper's prose and its Algorithm 1 disagree.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum RttMode {
    /// The queue that has been standing: the smallest round-trip time of the last half round trip,
    /// over the smallest one known of the path. What the prose describes.
    #[default]
    Standing,
    /// Algorithm 1, line 1 to the letter: the newest round-trip time over the smallest one of the
    /// last half round trip. A standing queue is in both and cancels out.
    Literal,
}

/// What happens to a loss that looks random.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum LossFilter {
    /// The window is kept (section 3.4 of the paper).
    #[default]
    Text,
    /// While there is no queue the window is multiplied by `max(beta, 1 - dRTT/RTT_base)`
    /// (Algorithm 1, line 9), otherwise CUBIC reacts.
    Algo,
    /// No loss is taken for random.
    Off,
}

/// What a drain multiplies the window by.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum DrainRule {
    /// `beta * max(delta, 1 - dRTT/RTT_base)` (Algorithm 1, line 14).
    #[default]
    Algo,
    /// `beta`, as for a loss (section 3.3 of the paper).
    Text,
    /// Not in the paper: `RTT_base / (RTT_base + dRTT)`, which leaves just what fits the path
    /// without a queue, but not less than `beta * delta`. Makes a low `k_high` affordable, because
    /// a short queue costs a small cut.
    Bdp,
    /// The queue is never drained.
    Off,
}

/// Reads and writes each value by its name.
macro_rules! named_values {
    ($type:ident { $($value:ident => $name:literal),* }, $accepts:literal) => {
        impl ParameterValue for $type {
            fn read(text: &str) -> Option<Self> {
                match text {
                    $($name => Some(Self::$value),)*
                    _ => None,
                }
            }

            fn write(&self) -> String {
                match self {
                    $(Self::$value => $name,)*
                }
                .to_owned()
            }

            fn accepts() -> String {
                $accepts.to_owned()
            }
        }
    };
}

named_values!(RttMode { Standing => "standing", Literal => "literal" }, "standing or literal");
named_values!(LossFilter { Text => "text", Algo => "algo", Off => "off" }, "text, algo or off");
named_values!(
    DrainRule { Algo => "algo", Text => "text", Bdp => "bdp", Off => "off" },
    "algo, text, bdp or off"
);

/// Parameters of Cubic+ (*Computer Science* 2025, 52(8):335-342). Where the paper gives no value or
/// contradicts itself, [`CubicPlusConfig::paper`] is this project's reading of it, and the defaults named
/// below are its; [`CubicPlusConfig::default`] is the setting that we ship. A value outside its range is
/// moved to the nearest bound; `inf` switches a threshold off.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CubicPlusConfig {
    /// The name that users select these parameters by.
    pub name: &'static str,
    /// The CUBIC below: growth, and the reaction to what Cubic+ leaves to it.
    pub cubic: CubicConfig,
    /// What the delay signal measures. Default [`RttMode::Standing`].
    pub rtt_mode: RttMode,
    /// Weight of a new sample in `dRTT`, per ACK (alpha of Algorithm 1, line 2). Range 0.001 to 1,
    /// default 1/8, as of the smoothed round-trip time.
    pub a_rtt: f64,
    /// Weight of a round in the loss ratio (alpha of eq. 4). Range 0.001 to 1, default 1/8: one
    /// drop in a full window stays near zero.
    pub a_loss: f64,
    /// Over what time `RTT_base` is the minimum. Range 1 s to a day; default `None`, since the path
    /// is known. A finite one follows a change of route to a longer path, but takes a queue that
    /// never empties for the path.
    pub base_window: Option<Duration>,
    /// `T_low`, below which there is no queue, over `RTT_base`. Range 0 to infinity, default 0.25:
    /// the paper calls buffers up to 0.2 BDP shallow.
    pub k_low: f64,
    /// The least `T_low`. Range 0 to 10 s, default 2 ms.
    pub t_low_min: Duration,
    /// `T_high`, above which the queue is too long, over `RTT_base`. Range 0 to infinity, default
    /// 1.5: above the queue that a BBRv1 flow keeps by itself, below the 2 BDP that the paper
    /// calls deep.
    pub k_high: f64,
    /// The least `T_high`. Not in the paper: at short round-trip times a multiple of them is a few
    /// packets. Range 0 to 10 s, default 0.
    pub t_high_min: Duration,
    /// The largest `T_high`. Not in the paper: at long round-trip times a multiple of them is a
    /// delay without use. Default `None`.
    pub t_high_max: Option<Duration>,
    /// `L`: share of lost packets below which losses may be random. Range 0 to 1, default 0.02.
    pub l_ratio: f64,
    /// What becomes of a loss that looks random. Default [`LossFilter::Text`].
    pub filter: LossFilter,
    /// What a loss at a long queue multiplies the window by (Algorithm 1, line 7). Range 0.1 to
    /// 0.95, default 0.7, CUBIC's `beta`.
    pub newbeta: f64,
    /// Of this many loss events in a shallow buffer only the last one reduces the window. Range 1
    /// to 1000, default 3 (section 3.2).
    pub shallow_n: u32,
    /// How a queue is drained. Default [`DrainRule::Algo`].
    pub drain: DrainRule,
    /// Floor of the factor of line 14. Range 0.1 to 1, default 0.7: with `beta` about Reno's half.
    pub delta: f64,
    /// `T`, the time between two decisions about draining, in smoothed round-trip times. Range 0.25
    /// to 64, default 1.
    pub period_rtts: f64,
    /// After this many drains in a row the next one is left out (section 3.3). Range 0 to 1000,
    /// default 2.
    pub drain_limit: u32,
    /// Also drain in slow start, and leave it by that. Default true.
    pub drain_in_slow_start: bool,
    /// Not in the paper: let the window grow on in the round trip after a loss that was held, as if
    /// nothing had happened. Default false: a held loss stops growth for a round trip, which at
    /// one random loss per round trip is most of the time.
    pub hold_growth: bool,
    /// Not in the paper: most drains that are left out in a row. Each time that `drain_limit`
    /// drains did not help, twice as many are left out, up to this, until the queue is short
    /// again. Range 1 to 1024; the default 1 is the paper's rule.
    pub drain_backoff: u32,
    /// Not in the paper: when `drain_limit` drains did not help, take them back. Default false.
    pub drain_restore: bool,
    /// Not in the paper: distinguish a queue of our own from that of others by what a drain does to it. If
    /// all that waits is our own, the round-trip time shrinks in proportion to the window; a drain
    /// that brings less than this share of that did not help, any other one did, however many were
    /// needed. Range 0 to 1; the default 0 counts drains instead (`drain_limit`).
    pub drain_relief: f64,
    /// Not in the paper: take no loss for random that came while the delay was near the largest
    /// one seen, because a full buffer shows just that. Default false.
    pub full_queue: bool,
    /// How near, as a share of the largest delay. Range 0.1 to 1, default 0.75.
    pub full_queue_share: f64,
    /// Not in the paper: where the buffer has shown no delay by which a loss could be judged, take a
    /// loss for random only if the window's reduction didn't end the losses. Default false.
    pub recurrence: bool,
    /// Packets in flight below which each such loss is an overflow, because the share of losses says
    /// nothing where it is that of a few. Random losses of 1 % keep CUBIC at some 12 packets, so that a
    /// larger value can keep the window there as well. Range 0 to 1000, default 24.
    pub recurrence_packets: u32,
    /// Not in the paper: largest factor of a reduction at an overflow. The factor is what just empties
    /// the longest queue seen, as in H-TCP's adaptive backoff, between CUBIC's `beta` and this, for
    /// windows of 48 packets or more. Range 0.1 to 0.95; the default 0.1 leaves `beta`.
    pub shallow_beta: f64,
    /// Not in the paper: most that the window grows in a round trip, as a share of itself, past the
    /// window of the last reduction and without a queue on the path. Range 0 to 1; the default 0 leaves
    /// growth to CUBIC.
    pub spare_gain: f64,
    /// Round trips without a queue before it does. Range 0 to 100, default 2.
    pub spare_rounds: u32,
    /// Not in the paper: drain if the queue was too long at any time in the period instead of at its
    /// end, so that flows that share a queue drain it together. Default false.
    pub joint_drain: bool,
    /// Not in the paper: round trips from the start of the path before anything is drained. Range 0 to
    /// 1000, default 0.
    pub drain_age: u32,
    /// Not in the paper: after a drain grow from a plateau at the window that it left, as after slow
    /// start, instead of back to the window that made the queue. Default false.
    pub drain_plateau: bool,
    /// Not in the paper: smoothed round-trip times within which drains must empty the queue. If they
    /// don't, they are taken back, and the flow is CUBIC until the queue is nearly empty, or for up to
    /// `drain_backoff` smoothed round-trip times. Replaces `drain_limit`, `drain_restore` and
    /// `drain_relief`. Range 0 to 100; the default 0 is off.
    pub compete_rtts: f64,
}

/// The shipped setting: chosen by the study in `scenarios/cubic-plus/default-*.toml` and
/// `frontier-*.toml` so that it is better than CUBIC alone on a path, leaves CUBIC beside it what it
/// had, and completes transfers earlier.
///
/// The paper's rules starve CUBIC in shallow buffers, where each of its losses passes for random,
/// and are starved by it in deep ones, where draining makes room for others. So a loss with the
/// delay near its maximum is CUBIC's business (`full_queue`, `shallow_n`), and so is one that recurs at
/// the same flight where no delay shows the buffer (`recurrence`). With that in place, more losses may
/// be taken for random (`l_ratio`), and growth goes on after them (`hold_growth`). Flows that share a
/// queue drain it together (`joint_drain`), to just what fits the path (`drain`), from where they grow
/// slowly (`drain_plateau`); flows that have just begun don't (`drain_age`), nor does anybody beside a
/// flow that fills buffers (`compete_rtts`). Capacity that others leave is taken at once
/// (`spare_gain`).
impl Default for CubicPlusConfig {
    fn default() -> Self {
        Self {
            name: "cubic-plus",
            full_queue: true,
            full_queue_share: 0.5,
            recurrence: true,
            shallow_n: 1,
            l_ratio: 0.05,
            hold_growth: true,
            spare_gain: 0.5,
            spare_rounds: 0,
            k_high: 1.0,
            t_high_max: Some(Duration::from_millis(100)),
            drain: DrainRule::Bdp,
            drain_in_slow_start: false,
            drain_age: 10,
            drain_limit: 1000,
            drain_plateau: true,
            joint_drain: true,
            compete_rtts: 4.0,
            drain_backoff: 64,
            ..Self::paper()
        }
    }
}

/// Share of `T_high`, at most of the base round-trip time, below which the queue is nearly empty.
const NEARLY_EMPTY: f64 = 0.2;
/// The least of that, seconds.
const NEARLY_EMPTY_MIN: f64 = 0.001;
/// Share of the base round-trip time above which a queue shows that there is no spare capacity.
const SPARE_QUEUE: f64 = 0.05;
/// The least of that, seconds.
const SPARE_QUEUE_MIN: f64 = 0.0005;

/// Most that a threshold in time may be.
const LONGEST_DELAY: Duration = Duration::from_secs(10);
/// Bounds of `base_window`.
const BASE_WINDOW: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(86_400));

tunable!(CubicPlusConfig {
    "rtt_mode" => rtt_mode, "what dRTT measures: the standing queue, or Algorithm 1 to the letter";
    "filter" => filter, "what becomes of a loss that looks random";
    "drain" => drain, "what a drain multiplies the window by";
    "a_rtt" => a_rtt in 0.001..=1.0, "weight of a sample in dRTT";
    "a_loss" => a_loss in 0.001..=1.0, "weight of a round in the loss ratio";
    "base_window" => base_window in OrNone(BASE_WINDOW.0..=BASE_WINDOW.1), "over what time RTT_base is the minimum";
    "k_low" => k_low in 0.0..=f64::INFINITY, "T_low over RTT_base";
    "t_low_min" => t_low_min in Duration::ZERO..=LONGEST_DELAY, "least T_low";
    "k_high" => k_high in 0.0..=f64::INFINITY, "T_high over RTT_base";
    "t_high_min" => t_high_min in Duration::ZERO..=LONGEST_DELAY, "least T_high";
    "t_high_max" => t_high_max in OrNone(Duration::ZERO..=LONGEST_DELAY), "largest T_high";
    "l_ratio" => l_ratio in 0.0..=1.0, "L, the loss ratio below which losses may be random";
    "newbeta" => newbeta in 0.1..=0.95, "what a loss at a long queue multiplies the window by";
    "shallow_n" => shallow_n in 1_u32..=1000, "of how many losses in a shallow buffer one reduces the window";
    "delta" => delta in 0.1..=1.0, "floor of the second factor of a drain";
    "period_rtts" => period_rtts in 0.25..=64.0, "round trips between decisions about draining";
    "drain_limit" => drain_limit in 0_u32..=1000, "drains in a row before one is left out";
    "drain_in_slow_start" => drain_in_slow_start, "drain in slow start too, and leave it";
    "hold_growth" => hold_growth, "grow on after a loss that was held";
    "drain_backoff" => drain_backoff in 1_u32..=1024, "most drains left out in a row";
    "drain_restore" => drain_restore, "take drains back that did not help";
    "drain_relief" => drain_relief in 0.0..=1.0, "share of the expected relief below which a drain did not help";
    "full_queue" => full_queue, "no loss is random while the delay is near its maximum";
    "full_queue_share" => full_queue_share in 0.1..=1.0, "how near, as a share of that maximum";
    "recurrence" => recurrence, "without a delay to judge by, no loss is random that recurs at the same flight";
    "recurrence_packets" => recurrence_packets in 0_u32..=1000, "packets in flight below which each such loss is an overflow";
    "shallow_beta" => shallow_beta in 0.1..=0.95, "largest factor of a reduction that leaves no queue";
    "spare_gain" => spare_gain in 0.0..=1.0, "most growth in a round trip into capacity that others left";
    "spare_rounds" => spare_rounds in 0_u32..=100, "round trips without a queue before that";
    "joint_drain" => joint_drain, "drain if the queue was too long at any time in the period";
    "drain_age" => drain_age in 0_u32..=1000, "round trips from the start before anything is drained";
    "drain_plateau" => drain_plateau, "grow from a plateau after a drain";
    "compete_rtts" => compete_rtts in 0.0..=100.0, "smoothed RTTs within which drains must empty the queue, 0 for no test";
    ..cubic;
});

impl CubicPlusConfig {
    /// The paper's algorithm in this project's reading (`cubic-plus-paper`), whatever the default is.
    pub fn paper() -> Self {
        Self {
            name: "cubic-plus-paper",
            cubic: CubicConfig::default(),
            rtt_mode: RttMode::default(),
            a_rtt: 0.125,
            a_loss: 0.125,
            base_window: None,
            k_low: 0.25,
            t_low_min: Duration::from_millis(2),
            k_high: 1.5,
            t_high_min: Duration::ZERO,
            t_high_max: None,
            l_ratio: 0.02,
            filter: LossFilter::default(),
            newbeta: 0.7,
            shallow_n: 3,
            drain: DrainRule::default(),
            delta: 0.7,
            period_rtts: 1.0,
            drain_limit: 2,
            drain_in_slow_start: true,
            hold_growth: false,
            drain_backoff: 1,
            drain_restore: false,
            drain_relief: 0.0,
            full_queue: false,
            full_queue_share: 0.75,
            recurrence: false,
            recurrence_packets: 24,
            shallow_beta: 0.1,
            spare_gain: 0.0,
            spare_rounds: 2,
            joint_drain: false,
            drain_age: 0,
            drain_plateau: false,
            compete_rtts: 0.0,
        }
    }

    /// A controller with these parameters.
    pub fn controller(&self, env: &Env<'_>) -> CubicPlus {
        CubicPlus::new(&self.in_range(), env)
    }

    /// The same with every value inside its range.
    fn in_range(&self) -> Self {
        let mut own = *self;
        let default = Self::paper();
        let ranges = [
            (&mut own.a_rtt, default.a_rtt, 0.001, 1.0),
            (&mut own.a_loss, default.a_loss, 0.001, 1.0),
            (&mut own.k_low, default.k_low, 0.0, f64::INFINITY),
            (&mut own.k_high, default.k_high, 0.0, f64::INFINITY),
            (&mut own.l_ratio, default.l_ratio, 0.0, 1.0),
            (&mut own.newbeta, default.newbeta, 0.1, 0.95),
            (&mut own.delta, default.delta, 0.1, 1.0),
            (&mut own.period_rtts, default.period_rtts, 0.25, 64.0),
            (&mut own.drain_relief, default.drain_relief, 0.0, 1.0),
            (&mut own.shallow_beta, default.shallow_beta, 0.1, 0.95),
            (&mut own.spare_gain, default.spare_gain, 0.0, 1.0),
            (&mut own.compete_rtts, default.compete_rtts, 0.0, 100.0),
            (
                &mut own.full_queue_share,
                default.full_queue_share,
                0.1,
                1.0,
            ),
        ];
        for (value, default, low, high) in ranges {
            *value = clamp_or(*value, default, low, high);
        }
        own.t_low_min = own.t_low_min.min(LONGEST_DELAY);
        own.t_high_min = own.t_high_min.min(LONGEST_DELAY);
        own.t_high_max = own.t_high_max.map(|max| max.min(LONGEST_DELAY));
        own.base_window = self
            .base_window
            .map(|window| window.clamp(BASE_WINDOW.0, BASE_WINDOW.1));
        own.shallow_n = own.shallow_n.clamp(1, 1000);
        own.drain_limit = own.drain_limit.min(1000);
        own.drain_backoff = own.drain_backoff.clamp(1, 1024);
        own.recurrence_packets = own.recurrence_packets.min(1000);
        own.spare_rounds = own.spare_rounds.min(100);
        own.drain_age = own.drain_age.min(1000);
        own
    }

    /// `T_low` for a path of that base round-trip time, seconds.
    pub(super) fn t_low(&self, base: f64) -> f64 {
        multiple(self.k_low, base).max(self.t_low_min.as_secs_f64())
    }

    /// Delay of a queue that counts as nearly empty on a path of that base round-trip time, seconds.
    pub(super) fn nearly_empty(&self, base: f64) -> f64 {
        (NEARLY_EMPTY * self.t_high(base).min(base)).max(NEARLY_EMPTY_MIN)
    }

    /// Delay of a queue at which there is no spare capacity, on a path of that base round-trip time,
    /// seconds.
    pub(super) fn no_spare(base: f64) -> f64 {
        (SPARE_QUEUE * base).max(SPARE_QUEUE_MIN)
    }

    /// `T_high` for a path of that base round-trip time, seconds; may be infinite.
    pub(super) fn t_high(&self, base: f64) -> f64 {
        let most = self
            .t_high_max
            .map_or(f64::INFINITY, |max| max.as_secs_f64());
        multiple(self.k_high, base)
            .max(self.t_high_min.as_secs_f64())
            .min(most)
    }
}

/// `factor * value`, infinite for an infinite factor whatever the value.
fn multiple(factor: f64, value: f64) -> f64 {
    if factor.is_infinite() {
        factor
    } else {
        factor * value
    }
}

impl ControllerFactory for CubicPlusConfig {
    fn name(&self) -> &'static str {
        self.name
    }

    fn build(&self, _now: Instant, env: &mut Env<'_>) -> Box<dyn Controller> {
        Box::new(self.controller(env))
    }
}
