//! Parameters that all window-based, loss-based controllers share. Each configuration holds a
//! [`LossBasedConfig`] beside the parameters of its own.

use crate::controller::Env;
use crate::loss_based::{Curve, LossBased};
use crate::pacing_gains::{GAINS, PacingGains};
use crate::slow_start::{SlowStart, SlowStartExit};
use swiftwater_tunable::tunable;

/// Slow start, pacing and recovery of a loss-based controller. A value outside its range is moved
/// to the nearest bound.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct LossBasedConfig {
    /// What ends the first slow start, other than a congestion event. Default: HyStart++ with the
    /// constants of RFC 9406, see [`HyStartConfig::default`](crate::HyStartConfig::default).
    pub hystart: SlowStartExit,
    /// Pacing gains.
    pub pacing: PacingGains,
    /// Limit what is sent in the recovery period by Proportional Rate Reduction (RFC 9937), so that
    /// the flight shrinks to the reduced window step by step. Default false: the window is the
    /// reduced one at once, as in RFC 9002, appendix B.
    pub prr: bool,
}

tunable!(LossBasedConfig {
    "hystart" => hystart, "HyStart++, or the older HyStart, in the first slow start";
    "pacing_gain_slow_start" => pacing.slow_start in GAINS, "pacing rate over cwnd/smoothed_rtt in slow start";
    "pacing_gain" => pacing.avoidance in GAINS, "pacing rate over cwnd/smoothed_rtt later";
    "prr" => prr, "Proportional Rate Reduction in the recovery period";
});

impl LossBasedConfig {
    /// A controller with these parameters that grows along `curve`.
    pub fn controller<C: Curve>(&self, curve: C, env: &Env<'_>) -> LossBased<C> {
        let slow_start = SlowStart::first(self.hystart);
        LossBased::new(curve, slow_start, self.pacing.in_range(), env).with_prr(self.prr)
    }
}
