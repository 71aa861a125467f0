//! Comparisons of two arms under known conditions, over all origins of a network: what differed when the
//! network was like this before.

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};

/// Most comparisons that are kept.
const MOST: usize = 128;
/// Distance of conditions at which a comparison counts little: a factor 1.3 in time.
const WIDTH: f64 = 0.25;

/// The conditions as the arm in use shows them: ln(RTT in ms), level of log completion times.
pub(super) type Context = [f64; 2];

/// One comparison: of the arm in use and another one, by position.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Comparison {
    in_use: u8,
    other: u8,
    context: Context,
    difference: f64,
}

/// What the comparisons say of a difference.
#[derive(Clone, Copy, Debug)]
pub(super) struct Recalled {
    /// Log completion time of the other arm less that of the arm in use.
    pub(super) difference: f64,
    /// Comparisons behind it, by their similarity.
    pub(super) weight: f64,
}

/// The last comparisons of a network.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub(crate) struct Comparisons {
    all: VecDeque<Comparison>,
}

impl Comparisons {
    pub(super) fn add(&mut self, in_use: usize, other: usize, context: Context, difference: f64) {
        if self.all.len() >= MOST {
            self.all.pop_front();
        }
        self.all.push_back(Comparison {
            in_use: in_use as u8,
            other: other as u8,
            context,
            difference,
        });
    }

    /// The mean difference under similar conditions, weighted by a Gaussian kernel; `None` without similar
    /// ones.
    pub(super) fn recall(&self, in_use: usize, other: usize, context: Context) -> Option<Recalled> {
        let (mut sum, mut weight) = (0.0, 0.0);
        let pair = [in_use as u8, other as u8];
        for known in self.all.iter().filter(|it| [it.in_use, it.other] == pair) {
            let distance = known.context.iter().zip(context);
            let squares: f64 = distance.map(|(a, b)| (a - b) * (a - b)).sum();
            let similarity = (-squares / (2.0 * WIDTH * WIDTH)).exp();
            sum += similarity * known.difference;
            weight += similarity;
        }
        (weight > 0.5).then_some(Recalled {
            difference: sum / weight,
            weight,
        })
    }

    /// The comparisons without those that make no sense for so many arms, and not too many.
    pub(crate) fn checked(mut self, arms: usize) -> Self {
        let sound = |known: &Comparison| {
            let numbers = [known.difference, known.context[0], known.context[1]];
            let bounded = numbers.iter().all(|number| number.abs() < 100.0);
            bounded && known.in_use.max(known.other) < arms as u8
        };
        self.all.retain(sound);
        self.all.truncate(MOST);
        self
    }
}

/// A two-sided CUSUM test on normalised deviations.
#[derive(Clone, Debug, Default)]
pub(super) struct ChangeTest {
    up: f64,
    down: f64,
}

impl ChangeTest {
    /// True if the deviations add up to a change.
    pub(super) fn observe(&mut self, deviation: f64, threshold: f64) -> bool {
        // Single outliers are no change; slow drift neither.
        let step = deviation.clamp(-3.0, 3.0);
        self.up = (self.up + step - 0.75).max(0.0);
        self.down = (self.down - step - 0.75).max(0.0);
        let changed = self.up.max(self.down) > threshold;
        if changed {
            *self = Self::default();
        }
        changed
    }
}
