//! Parameters that all window-based, loss-based controllers share. Each configuration holds a
//! [`LossBasedConfig`] beside the parameters of its own.

use std::ops::RangeInclusive;

use crate::controller::Env;
use crate::hystart::{HyStartConfig, SlowStart};
use crate::loss_based::{Curve, LossBased};
use swiftwater_tunable::tunable;

/// Slow start, pacing and recovery of a loss-based controller. A value outside its range is moved
/// to the nearest bound.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LossBasedConfig {
    /// HyStart++ for the first slow start; `None` for the standard one. Default: with the constants
    /// of RFC 9406.
    pub hystart: Option<HyStartConfig>,
    /// Pacing gains.
    pub pacing: PacingGains,
    /// Limit what is sent in the recovery period by Proportional Rate Reduction (RFC 9937), so that
    /// the flight shrinks to the reduced window step by step. Default false: the window is the
    /// reduced one at once, as in RFC 9002, appendix B.
    pub prr: bool,
}

impl Default for LossBasedConfig {
    fn default() -> Self {
        Self {
            hystart: Some(HyStartConfig::default()),
            pacing: PacingGains::default(),
            prr: false,
        }
    }
}

tunable!(LossBasedConfig {
    "hystart" => hystart, "HyStart++ in the first slow start";
    "pacing_gain_slow_start" => pacing.slow_start in GAINS, "pacing rate over cwnd/smoothed_rtt in slow start";
    "pacing_gain" => pacing.avoidance in GAINS, "pacing rate over cwnd/smoothed_rtt later";
    "prr" => prr, "Proportional Rate Reduction in the recovery period";
});

/// Range of pacing gains.
const GAINS: RangeInclusive<f64> = 1.0..=16.0;

tunable!(PacingGains {
    "pacing_gain_slow_start" => slow_start in GAINS, "pacing rate over cwnd/smoothed_rtt in slow start";
    "pacing_gain" => avoidance in GAINS, "pacing rate over cwnd/smoothed_rtt later";
});

impl LossBasedConfig {
    /// A controller with these parameters that grows along `curve`.
    pub fn controller<C: Curve>(&self, curve: C, env: &Env<'_>) -> LossBased<C> {
        let slow_start = SlowStart::first(self.hystart);
        LossBased::new(curve, slow_start, self.pacing.in_range(), env).with_prr(self.prr)
    }
}

/// Pacing gains of a window-based algorithm: the `N` of RFC 9002, section 7.7.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PacingGains {
    /// In slow start. Range 1 to 16, default 2.
    pub slow_start: f64,
    /// In congestion avoidance and recovery. Range 1 to 16, default 1.25.
    pub avoidance: f64,
}

impl Default for PacingGains {
    fn default() -> Self {
        Self {
            slow_start: 2.0,
            avoidance: 1.25,
        }
    }
}

impl PacingGains {
    /// The same with both gains inside their range.
    fn in_range(self) -> Self {
        let default = Self::default();
        Self {
            slow_start: clamp_or(self.slow_start, default.slow_start, 1.0, 16.0),
            avoidance: clamp_or(self.avoidance, default.avoidance, 1.0, 16.0),
        }
    }
}

/// `value` moved into `low..=high`, or `default` if it isn't a number.
pub(crate) fn clamp_or(value: f64, default: f64, low: f64, high: f64) -> f64 {
    if value.is_nan() {
        default
    } else {
        value.clamp(low, high)
    }
}
