//! CUBIC (RFC 9438): the window follows a cubic function of the time since the last reduction, and
//! never falls behind what Reno would reach. Where other implementations differ, they can be
//! approached by parameters: `hystart=ns3,reno_friendly=off,early_growth=on` is ns-3's.
//!
//! Windows are bytes held as `f64`; the RFC's constant `C` is in segments and is scaled by the
//! maximum datagram size where it is used.

use std::ops::RangeInclusive;
use std::time::Duration;

use swiftwater_units::{ByteCount, Instant};

use crate::clamp::clamp_or;
use crate::controller::{Controller, ControllerFactory, Env};
use crate::growth::{ActiveClock, MAX_WINDOW};
use crate::loss_based::{Curve, LossBased};
use crate::loss_based_config::LossBasedConfig;
use crate::sample::AckBatch;
use swiftwater_tunable::{Parameter, ParameterError, Tunable, tunable};

/// The CUBIC controller.
pub type Cubic = LossBased<CubicCurve>;

/// Range of `beta_cubic`.
const BETA: RangeInclusive<f64> = 0.1..=0.95;
/// Range of `C`, segments per second cubed.
const C: RangeInclusive<f64> = 0.01..=100.0;

/// Least growth scale that the cubic function is bent by: below, it is flat for hours.
const LEAST_SCALE: f64 = 0.01;

/// Least growth before the first reduction, of what is acknowledged ([`CubicConfig::early_growth`]).
const EARLY_GROWTH: f64 = 0.05;

/// Parameters of CUBIC. The default is RFC 9438 with HyStart++. A value outside its range is moved
/// to the nearest bound.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CubicConfig {
    /// What a congestion event multiplies the window by (`beta_cubic`). Range 0.1 to 0.95, default
    /// 0.7.
    pub beta: f64,
    /// How fast the cubic function bends (`C`), segments per second cubed. Range 0.01 to 100,
    /// default 0.4.
    pub c: f64,
    /// Leave room for new flows when two reductions follow without the old maximum being reached
    /// (RFC 9438, section 4.7). Default true.
    pub fast_convergence: bool,
    /// Never fall behind what Reno would reach (RFC 9438, section 4.3). Default true. Off for
    /// comparison with implementations that lack it, such as ns-3's.
    pub reno_friendly: bool,
    /// Not in the RFC: grow by at least 5 % per round trip from the end of slow start to the first
    /// reduction, as in Linux and ns-3, which end slow start early. Default false.
    pub early_growth: bool,
    /// Slow start, pacing and recovery.
    pub base: LossBasedConfig,
}

impl Default for CubicConfig {
    fn default() -> Self {
        Self {
            beta: 0.7,
            c: 0.4,
            fast_convergence: true,
            reno_friendly: true,
            early_growth: false,
            base: LossBasedConfig::default(),
        }
    }
}

tunable!(CubicConfig {
    "beta" => beta in BETA, "what a congestion event multiplies the window by";
    "c" => c in C, "how fast the cubic function bends, segments per second cubed";
    "fast_convergence" => fast_convergence, "leave room for new flows";
    "reno_friendly" => reno_friendly, "never fall behind Reno";
    "early_growth" => early_growth, "grow by at least 5 % per round trip before the first reduction";
    ..base;
});

impl CubicConfig {
    /// A controller with these parameters.
    pub fn controller(&self, env: &Env<'_>) -> Cubic {
        let curve = CubicCurve::new(self.beta, self.c, self.fast_convergence)
            .with_reno_friendly(self.reno_friendly)
            .with_early_growth(self.early_growth);
        self.base.controller(curve, env)
    }
}

impl ControllerFactory for CubicConfig {
    fn name(&self) -> &'static str {
        CubicCurve::NAME
    }

    fn build(&self, _now: Instant, env: &mut Env<'_>) -> Box<dyn Controller> {
        Box::new(self.controller(env))
    }
}

/// The cubic function of one stage: `W(t) = C * (t - K)^3 + origin`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CubicFunction {
    /// `C` in bytes per second cubed.
    c: f64,
    /// Seconds until the function reaches its origin.
    k: f64,
    /// Window of the plateau, bytes.
    origin: f64,
}

impl CubicFunction {
    /// The function that starts at `start` bytes and has its plateau at `w_max`, or at `start` if
    /// that is not below `w_max`. `c` is in segments of `mds` bytes.
    pub fn new(start: f64, w_max: f64, c: f64, mds: f64) -> Self {
        let c = c * mds;
        let distance = (w_max - start).max(0.0);
        Self {
            c,
            k: (distance / c).cbrt(),
            origin: w_max.max(start),
        }
    }

    /// Window at `t` after the start of the stage, bytes.
    pub fn at(&self, t: Duration) -> f64 {
        self.c * (t.as_secs_f64() - self.k).powi(3) + self.origin
    }

    /// `K`, seconds.
    pub fn k(&self) -> f64 {
        self.k
    }

    /// The function with `factor` times the constant that has the same window at `t` and the same
    /// plateau.
    #[must_use]
    fn bent_at(self, t: Duration, factor: f64) -> Self {
        let t = t.as_secs_f64();
        Self {
            c: self.c * factor,
            k: t - (t - self.k) / factor.cbrt(),
            origin: self.origin,
        }
    }
}

/// The window that Reno would have, were it to lose with CUBIC's `beta` (RFC 9438, section 4.3).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RenoEstimate {
    window: f64,
}

impl RenoEstimate {
    /// An estimate that starts at `window` bytes.
    pub fn starting_at(window: f64) -> Self {
        Self { window }
    }

    /// `acked` bytes were acknowledged while the window was `cwnd`. The increase is the one that
    /// makes up for `beta`, until the estimate is back at `cwnd_prior`, and Reno's own from there.
    pub fn on_acked(&mut self, acked: f64, cwnd: f64, mds: f64, beta: f64, cwnd_prior: f64) {
        let alpha = if self.window >= cwnd_prior {
            1.0
        } else {
            3.0 * (1.0 - beta) / (1.0 + beta)
        };
        self.window = (self.window + alpha * mds * acked / cwnd).min(MAX_WINDOW.get() as f64);
    }

    /// The estimate (`W_est`), bytes.
    pub fn window(&self) -> f64 {
        self.window
    }
}

/// One stage of congestion avoidance.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Epoch {
    /// Time since the stage began in which the window was used.
    clock: ActiveClock,
    /// Window at the start (`cwnd_epoch`), bytes.
    start: f64,
    function: CubicFunction,
    reno: RenoEstimate,
}

tunable!(CubicCurve {
    "beta" => beta in BETA, "what a congestion event multiplies the window by";
    "c" => c in C, "how fast the cubic function bends, from the next stage on";
    "fast_convergence" => fast_convergence, "leave room for new flows";
    "reno_friendly" => reno_friendly, "never fall behind Reno";
    "early_growth" => early_growth, "grow by at least 5 % per round trip before the first reduction";
});

/// Growth of CUBIC in congestion avoidance.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CubicCurve {
    beta: f64,
    c: f64,
    fast_convergence: bool,
    reno_friendly: bool,
    early_growth: bool,
    /// The window was reduced since the start or the last reset.
    reduced: bool,
    /// The growth scale that the function of the stage is bent for.
    bent_for: f32,
    /// Plateau to return to; `None` makes the next stage start on its plateau (RFC 9438, sections
    /// 4.8 and 4.10).
    w_max: Option<f64>,
    /// Window before the last reduction, or at the end of the first slow start.
    cwnd_prior: f64,
    /// `None` until the first ACK that may grow the window.
    epoch: Option<Epoch>,
    /// The part of the window that is less than a byte.
    fraction: f64,
}

impl CubicCurve {
    /// A curve with these constants of RFC 9438; see [`CubicConfig`] for their ranges.
    pub fn new(beta: f64, c: f64, fast_convergence: bool) -> Self {
        Self {
            beta: clamp_or(beta, 0.7, 0.1, 0.95),
            c: clamp_or(c, 0.4, 0.01, 100.0),
            fast_convergence,
            reno_friendly: true,
            early_growth: false,
            reduced: false,
            bent_for: 1.0,
            w_max: None,
            cwnd_prior: 0.0,
            epoch: None,
            fraction: 0.0,
        }
    }

    /// The same with or without the Reno-friendly region; see [`CubicConfig::reno_friendly`].
    #[must_use]
    pub fn with_reno_friendly(mut self, on: bool) -> Self {
        self.reno_friendly = on;
        self
    }

    /// The same with or without growth before the first reduction; see [`CubicConfig::early_growth`].
    #[must_use]
    pub fn with_early_growth(mut self, on: bool) -> Self {
        self.early_growth = on;
        self
    }

    /// `W_max` in bytes; `None` before the first reduction and after a reset.
    pub fn w_max(&self) -> Option<f64> {
        self.w_max
    }

    /// `K` of the running stage in seconds.
    pub fn k(&self) -> Option<f64> {
        self.epoch.map(|epoch| epoch.function.k())
    }

    fn begin_epoch(&mut self, cwnd: f64, mds: f64, now: Instant) -> Epoch {
        let w_max = *self.w_max.get_or_insert(cwnd);
        self.bent_for = 1.0;
        Epoch {
            clock: ActiveClock::started_at(now),
            start: cwnd,
            function: CubicFunction::new(cwnd, w_max, self.c, mds),
            reno: RenoEstimate::starting_at(cwnd),
        }
    }

    /// Bends the function for the growth scale that holds at `t`: with it go the square root of the
    /// window of a Reno flow and, `C` being in proportion to its square, the fourth root of that of a
    /// CUBIC flow.
    fn bend(&mut self, function: &mut CubicFunction, scale: f64, t: Duration) {
        let scale = scale.max(LEAST_SCALE) as f32;
        let change = f64::from(scale / self.bent_for);
        if (change - 1.0).abs() > 1e-3 {
            *function = function.bent_at(t, change * change);
            self.bent_for = scale;
        }
    }
}

/// The maximum datagram size as a number to compute with.
fn segment(env: &Env<'_>) -> f64 {
    env.max_datagram_size.get().max(1) as f64
}

impl Curve for CubicCurve {
    const NAME: &'static str = "cubic";

    fn beta(&self) -> f64 {
        self.beta
    }

    fn grow(
        &mut self,
        cwnd: ByteCount,
        acked: ByteCount,
        scale: f64,
        ack: &AckBatch,
        env: &Env<'_>,
    ) -> ByteCount {
        let mds = segment(env);
        let window = (cwnd.get() as f64 + self.fraction).max(1.0);
        let acked = acked.get() as f64;
        let mut epoch = match self.epoch {
            Some(epoch) => epoch,
            None => self.begin_epoch(window, mds, ack.now),
        };
        epoch.clock.advance(ack.now);
        let t = epoch.clock.elapsed();
        self.bend(&mut epoch.function, scale, t);
        let reno_acked = acked * scale;
        epoch
            .reno
            .on_acked(reno_acked, window, mds, self.beta, self.cwnd_prior);
        self.epoch = Some(epoch);

        let behind_reno = self.reno_friendly && epoch.function.at(t) < epoch.reno.window();
        let next = if behind_reno {
            epoch.reno.window().max(window)
        } else {
            let ahead = t.saturating_add(ack.rtt.known_smoothed().unwrap_or_default());
            let target = epoch.function.at(ahead).clamp(window, 1.5 * window);
            (window + (target - window) * acked / window).min(target)
        };
        let next = if self.early_growth && !self.reduced {
            next.max(window + EARLY_GROWTH * reno_acked)
        } else {
            next
        };
        self.fraction = next.fract();
        ByteCount::new(next as u64).max(cwnd)
    }

    fn on_reduction(&mut self, cwnd: ByteCount) {
        let cwnd = cwnd.get() as f64;
        let below_last = self.w_max.is_some_and(|w_max| cwnd < w_max);
        let room = if self.fast_convergence && below_last {
            f64::midpoint(1.0, self.beta)
        } else {
            1.0
        };
        self.w_max = Some(cwnd * room);
        self.reduced = true;
        self.cwnd_prior = cwnd;
        self.epoch = None;
        self.fraction = 0.0;
    }

    fn on_slow_start_exit(&mut self, cwnd: ByteCount) {
        self.w_max = None;
        self.cwnd_prior = cwnd.get() as f64;
        self.epoch = None;
        self.fraction = 0.0;
    }

    fn reset(&mut self) {
        *self = Self::new(self.beta, self.c, self.fast_convergence)
            .with_reno_friendly(self.reno_friendly)
            .with_early_growth(self.early_growth);
    }

    fn pause(&mut self, now: Instant) {
        if let Some(epoch) = &mut self.epoch {
            epoch.clock.skip_to(now);
        }
    }

    fn on_max_datagram_size_change(&mut self, env: &Env<'_>) {
        if let (Some(epoch), Some(w_max)) = (&mut self.epoch, self.w_max) {
            epoch.function = CubicFunction::new(epoch.start, w_max, self.c, segment(env));
            self.bent_for = 1.0;
        }
    }

    fn details(&self) -> Vec<(&'static str, f64)> {
        let mut details = vec![
            ("w_max", self.w_max.unwrap_or_default()),
            ("cwnd_prior", self.cwnd_prior),
        ];
        if let Some(epoch) = &self.epoch {
            details.push(("k", epoch.function.k()));
            details.push(("t", epoch.clock.elapsed().as_secs_f64()));
            details.push(("w_est", epoch.reno.window()));
        }
        details
    }

    fn parameters(&self) -> Vec<Parameter> {
        Tunable::parameters(self)
    }

    fn set_parameter(&mut self, name: &str, value: &str) -> Result<(), ParameterError> {
        self.set(name, value)
    }
}
