//! Confidence intervals over repeats.

use serde::Serialize;
use statrs::distribution::{ContinuousCDF, StudentsT};

/// The chance that a 95 % confidence interval does not contain the mean.
pub(super) const ERROR: f64 = 0.05;

/// Half the width of the 95 % confidence interval of the mean of `values`, by Student's t
/// distribution with one degree of freedom less than there are values. `None` for fewer than two
/// values, or if one isn't finite.
pub fn half_width(values: &[f64]) -> Option<f64> {
    half_width_at(values, ERROR)
}

/// The same for an interval that does not contain the mean with probability `error`.
pub(super) fn half_width_at(values: &[f64], error: f64) -> Option<f64> {
    let count = values.len() as f64;
    if values.len() < 2 || values.iter().any(|value| !value.is_finite()) {
        return None;
    }
    let mean = values.iter().sum::<f64>() / count;
    let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    let deviation = (squares / (count - 1.0)).sqrt();
    let t = StudentsT::new(0.0, 1.0, count - 1.0).ok()?;
    Some(t.inverse_cdf(1.0 - error / 2.0) * deviation / count.sqrt())
        .filter(|width| width.is_finite())
}

/// A confidence interval.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Interval {
    /// Its lower end.
    pub low: f64,
    /// Its upper end.
    pub high: f64,
}

impl Interval {
    /// The interval of `half_width` on both sides of `value`.
    pub(super) fn around(value: f64, half_width: f64) -> Self {
        Self {
            low: value - half_width,
            high: value + half_width,
        }
    }
}
