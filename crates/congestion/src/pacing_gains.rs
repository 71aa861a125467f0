//! Pacing gains of window-based controllers (RFC 9002, section 7.7).

use std::ops::RangeInclusive;

use swiftwater_tunable::tunable;

use crate::clamp::clamp_or;

/// Range of pacing gains.
pub(crate) const GAINS: RangeInclusive<f64> = 1.0..=16.0;

tunable!(PacingGains {
    "pacing_gain_slow_start" => slow_start in GAINS, "pacing rate over cwnd/smoothed_rtt in slow start";
    "pacing_gain" => avoidance in GAINS, "pacing rate over cwnd/smoothed_rtt later";
});

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
    pub(crate) fn in_range(self) -> Self {
        let default = Self::default();
        Self {
            slow_start: clamp_or(self.slow_start, default.slow_start, 1.0, 16.0),
            avoidance: clamp_or(self.avoidance, default.avoidance, 1.0, 16.0),
        }
    }
}
