//! The judgement of a measured number by a band.

use super::confidence::Interval;
use super::verdict::Outcome;
use crate::scenario::Band;

/// The outcome for `value` with its confidence interval: inside or outside only if the whole interval is.
/// A value that isn't a number fails.
pub(super) fn judge(band: Band, value: f64, interval: Option<Interval>) -> Outcome {
    if !value.is_finite() {
        return Outcome::Fail;
    }
    let Some(Interval { low, high }) = interval else {
        return Outcome::Open;
    };
    if band.holds(low) && band.holds(high) {
        Outcome::Pass
    } else if band.min.is_some_and(|min| high < min) || band.max.is_some_and(|max| low > max) {
        Outcome::Fail
    } else {
        Outcome::Open
    }
}

/// Distance of a value inside the band; negative outside.
pub(super) fn slack(band: Band, value: f64) -> f64 {
    if value.is_nan() {
        return f64::NEG_INFINITY;
    }
    let below = band.min.map_or(f64::INFINITY, |min| value - min);
    let above = band.max.map_or(f64::INFINITY, |max| max - value);
    below.min(above)
}
