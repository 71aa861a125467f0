//! The last few values of a measure.

use std::collections::VecDeque;

use super::WINDOW;

/// The last [`WINDOW`] values.
#[derive(Clone, Debug, Default)]
pub(super) struct Recent {
    values: VecDeque<f64>,
}

impl Recent {
    pub(super) fn push(&mut self, value: f64) {
        if self.values.len() == WINDOW {
            self.values.pop_front();
        }
        self.values.push_back(value);
    }

    /// Harmonic mean of values above zero; `None` without values.
    pub(super) fn harmonic_mean(&self) -> Option<f64> {
        let inverse: f64 = self.values.iter().map(|value| 1.0 / value).sum();
        (!self.values.is_empty()).then(|| self.values.len() as f64 / inverse)
    }

    /// Mean; 0 without values.
    pub(super) fn mean(&self) -> f64 {
        let sum: f64 = self.values.iter().sum();
        sum / self.values.len().max(1) as f64
    }

    /// The largest value; 0 without values.
    pub(super) fn largest(&self) -> f64 {
        self.values.iter().copied().fold(0.0, f64::max)
    }
}
