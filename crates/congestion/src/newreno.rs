//! NewReno as RFC 9002 specifies it (sections 7.3 to 7.8, appendix B).

use std::ops::RangeInclusive;

use swiftwater_units::{ByteCount, Instant};

use crate::clamp::clamp_or;
use crate::controller::{Controller, ControllerFactory, Env};
use crate::loss_based::{Curve, LossBased};
use crate::loss_based_config::LossBasedConfig;
use crate::sample::AckBatch;
use crate::slow_start::SlowStartExit;
use swiftwater_tunable::{Parameter, ParameterError, Tunable, tunable};

/// The NewReno controller.
pub type NewReno = LossBased<RenoCurve>;

/// Range of the factor of a reduction.
const BETA: RangeInclusive<f64> = 0.1..=0.95;

/// Parameters of NewReno. The default is that of RFC 9002. A value outside its range is moved to
/// the nearest bound.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct NewRenoConfig {
    /// What a congestion event multiplies the window by (`kLossReductionFactor`). Range 0.1 to
    /// 0.95, default 0.5.
    pub beta: f64,
    /// Slow start, pacing and recovery. Default: without HyStart++.
    pub base: LossBasedConfig,
}

impl Default for NewRenoConfig {
    fn default() -> Self {
        Self {
            beta: 0.5,
            base: LossBasedConfig {
                hystart: SlowStartExit::Loss,
                ..LossBasedConfig::default()
            },
        }
    }
}

tunable!(NewRenoConfig {
    "beta" => beta in BETA, "what a congestion event multiplies the window by";
    ..base;
});

impl NewRenoConfig {
    /// A controller with these parameters.
    pub fn controller(&self, env: &Env<'_>) -> NewReno {
        let curve = RenoCurve::new(self.beta);
        self.base.controller(curve, env)
    }
}

impl ControllerFactory for NewRenoConfig {
    fn name(&self) -> &'static str {
        RenoCurve::NAME
    }

    fn build(&self, _now: Instant, env: &mut Env<'_>) -> Box<dyn Controller> {
        Box::new(self.controller(env))
    }
}

tunable!(RenoCurve {
    "beta" => beta in BETA, "what a congestion event multiplies the window by";
});

/// Additive increase: one datagram for each window of bytes acknowledged.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RenoCurve {
    beta: f64,
    /// Growth that is due but doesn't make a whole byte yet, in units of 1/window bytes.
    remainder: u64,
}

impl RenoCurve {
    /// A curve whose reductions multiply the window by `beta`.
    pub fn new(beta: f64) -> Self {
        Self {
            beta: clamp_or(beta, 0.5, 0.1, 0.95),
            remainder: 0,
        }
    }
}

impl Curve for RenoCurve {
    const NAME: &'static str = "newreno";

    fn beta(&self) -> f64 {
        self.beta
    }

    fn grow(
        &mut self,
        cwnd: ByteCount,
        acked: ByteCount,
        scale: f64,
        _ack: &AckBatch,
        env: &Env<'_>,
    ) -> ByteCount {
        let window = cwnd.get().max(1);
        let acked = acked.scaled(scale).get();
        let earned = acked.saturating_mul(env.max_datagram_size.get());
        let due = self.remainder.saturating_add(earned);
        self.remainder = due % window;
        cwnd + ByteCount::new(due / window)
    }

    fn on_reduction(&mut self, _cwnd: ByteCount) {
        self.remainder = 0;
    }

    fn on_slow_start_exit(&mut self, _cwnd: ByteCount) {
        self.remainder = 0;
    }

    fn reset(&mut self) {
        self.remainder = 0;
    }

    fn pause(&mut self, _now: Instant) {}

    fn on_max_datagram_size_change(&mut self, _env: &Env<'_>) {}

    fn details(&self) -> Vec<(&'static str, f64)> {
        Vec::new()
    }

    fn parameters(&self) -> Vec<Parameter> {
        Tunable::parameters(self)
    }

    fn set_parameter(&mut self, name: &str, value: &str) -> Result<(), ParameterError> {
        self.set(name, value)
    }
}
