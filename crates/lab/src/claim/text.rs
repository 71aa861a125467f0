//! Formatting of numbers as in papers.

use super::confidence::Interval;
use crate::scenario::{Compare, Take, Test};

/// The format of a test's numbers.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) enum Form {
    /// `36.2`, with a unit if there is one.
    Plain(String),
    /// `+3.2`.
    Signed,
    /// `1.49x`.
    Times,
    /// `+48.8 %`.
    Percent,
}

impl Form {
    /// The format of the comparison at one point.
    pub(super) fn of_points(test: &Test) -> Self {
        match test.compare {
            Compare::Value => Self::Plain(String::new()),
            Compare::Ratio(_) => Self::Times,
            Compare::Change(_) => Self::Percent,
            Compare::Difference(_) => Self::Signed,
        }
    }

    /// The format of the result; `unit` is that of the axis that `first_...` searches.
    pub(super) fn of_result(test: &Test, unit: &str) -> Self {
        match test.take {
            Take::FirstAtLeast(_) | Take::FirstAtMost(_) => Self::Plain(unit.to_owned()),
            Take::All | Take::Min | Take::Max | Take::Mean => Self::of_points(test),
        }
    }

    /// A measured number, with half its confidence interval if known.
    pub(super) fn measured(&self, value: f64, margin: Option<f64>) -> String {
        let scale = self.scale();
        let (value, margin) = (value * scale, margin.map(|margin| margin * scale));
        if !value.is_finite() {
            return if value.is_nan() {
                "not a number".to_owned()
            } else {
                self.decorate(&value.to_string(), value)
            };
        }
        let places = match self {
            // One decimal below 100 %.
            Self::Percent if value.abs() < 99.95 => 1,
            Self::Percent => 0,
            Self::Times => decimals(value, 3)
                .min(4)
                .max(usize::from(value.abs() < 100.0) * 2),
            Self::Plain(_) | Self::Signed => decimals(value, 3),
        };
        // A small margin is shown rather than rounded to zero, unless it is only rounding error.
        let places = match margin {
            Some(margin) if margin > 1e-6 * value.abs() => {
                places.max(decimals(margin, 1)).min(places + 2)
            }
            _ => places,
        };
        let text = self.decorate(&format!("{value:.places$}"), value);
        let percent = if *self == Self::Percent { " %" } else { "" };
        match margin {
            None => text,
            Some(margin) => format!("{text} ± {margin:.places$}{percent}"),
        }
    }

    /// A measured number with an interval that is not symmetrical.
    pub(super) fn measured_within(&self, value: f64, interval: Interval) -> String {
        let [value, low, high] =
            [value, interval.low, interval.high].map(|number| self.measured(number, None));
        format!("{value} [{low}, {high}]")
    }

    /// A number from the scenario, such as the end of a band.
    pub(super) fn given(&self, value: f64) -> String {
        // Multiplying by 100 may add an artificial last digit.
        let value = value * self.scale();
        let text = format!("{value:.9}");
        let text = text.trim_end_matches('0').trim_end_matches('.');
        let text = if text.parse() == Ok(0.0) && value != 0.0 {
            value.to_string()
        } else {
            text.to_owned()
        };
        self.decorate(&text, value)
    }

    fn scale(&self) -> f64 {
        if *self == Self::Percent { 100.0 } else { 1.0 }
    }

    fn decorate(&self, number: &str, value: f64) -> String {
        let sign = if value > 0.0 { "+" } else { "" };
        match self {
            Self::Plain(unit) => format!("{number}{unit}"),
            Self::Signed => format!("{sign}{number}"),
            Self::Times => format!("{number}x"),
            Self::Percent => format!("{sign}{number} %"),
        }
    }
}

/// Decimals required for the given number of digits; at most 9.
fn decimals(value: f64, digits: i32) -> usize {
    if value == 0.0 || !value.is_finite() {
        return 0;
    }
    let before = value.abs().log10().floor() as i32 + 1;
    usize::try_from((digits - before).clamp(0, 9)).unwrap_or(0)
}
