//! A comparison: one number computed from the values of the repeats.

use super::confidence::{ERROR, Interval, half_width_at};
use super::select::Values;
use crate::scenario::Compare;

/// The result of a comparison at one point.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Compared {
    /// Of the means over repeats.
    pub(super) value: f64,
    /// Residuals of the repeats, with mean zero: the value's confidence interval is that of their
    /// mean. Repeats of both sides have the same seed, so that what both have in common cancels.
    pub(super) residuals: Vec<f64>,
    /// The comparison within each repeat alone.
    pub(super) by_repeat: Vec<f64>,
    /// The repeats that have values, rising: those of `residuals` and `by_repeat`.
    pub(super) repeats: Vec<u32>,
}

impl Compared {
    /// Half the width of the 95 % confidence interval; `None` for fewer than two repeats.
    pub(super) fn margin(&self) -> Option<f64> {
        half_width_at(&self.residuals, ERROR)
    }

    /// The confidence interval that is wrong with probability `error`.
    pub(super) fn interval(&self, error: f64) -> Option<Interval> {
        let margin = half_width_at(&self.residuals, error)?;
        Some(Interval::around(self.value, margin))
    }

    /// The element of `values`, one of the two lists above, that belongs to a repeat.
    pub(super) fn of_repeat(&self, values: &[f64], repeat: u32) -> Option<f64> {
        let at = self.repeats.binary_search(&repeat).ok()?;
        values.get(at).copied()
    }
}

/// Compares the values of a point; `None` for a ratio to zero.
///
/// For ratios the residuals are linearised: the error of A/B is (a - A/B b)/B to first order.
pub(super) fn compare(how: &Compare, values: &Values) -> Option<Compared> {
    let pairs = || {
        let others = values.others.as_ref().unwrap_or(&values.own);
        values.own.iter().copied().zip(others.iter().copied())
    };
    let own = mean(&values.own);
    let other = values.others.as_deref().map_or(f64::NAN, mean);
    let ratio = own / other;
    let is_quotient = matches!(how, Compare::Ratio(_) | Compare::Change(_));
    if is_quotient && other == 0.0 {
        return None;
    }
    let repeats = values.repeats.clone();
    let ratio_residuals = || pairs().map(|(a, b)| (a - ratio * b) / other).collect();
    Some(match how {
        Compare::Value => Compared {
            value: own,
            residuals: values.own.iter().map(|a| a - own).collect(),
            by_repeat: values.own.clone(),
            repeats,
        },
        Compare::Difference(_) => Compared {
            value: own - other,
            residuals: pairs().map(|(a, b)| (a - b) - (own - other)).collect(),
            by_repeat: pairs().map(|(a, b)| a - b).collect(),
            repeats,
        },
        Compare::Ratio(_) => Compared {
            value: ratio,
            residuals: ratio_residuals(),
            by_repeat: pairs().map(|(a, b)| a / b).collect(),
            repeats,
        },
        Compare::Change(_) => Compared {
            value: ratio - 1.0,
            residuals: ratio_residuals(),
            by_repeat: pairs().map(|(a, b)| a / b - 1.0).collect(),
            repeats,
        },
    })
}

/// The mean; NaN of no values.
pub(super) fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}
