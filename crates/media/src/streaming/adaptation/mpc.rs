//! Model predictive control by exhaustive search.

use super::{Adaptation, Situation};
use crate::streaming::qoe::QoeWeights;
use crate::streaming::video::Chunk;

/// Longest horizon, in chunks: the search is exponential in it.
pub const MAX_HORIZON: usize = 6;

/// Model predictive control (Yin et al., SIGCOMM 2015), with the objective of Chorus' evaluation
/// (MobiCom 2024): of all sequences of levels over the horizon it takes the first level of the one
/// that maximises `Σ R - μ max(D - L, 0) - λ |R - R_prev|`, with the download time `D` of the chunk
/// at the predicted throughput and the buffer `L' = max(L - D, 0) + chunk`.
///
/// Fed with the prediction of [`RobustHarmonicMean`](crate::streaming::predictor::RobustHarmonicMean)
/// this is RobustMPC. Of equally good sequences it takes the one that is lowest first. The buffer is
/// not limited to its maximum in the model, as in the published objective.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Mpc {
    horizon: usize,
    weights: QoeWeights,
}

impl Mpc {
    /// A controller with a horizon of `horizon` chunks, limited to 1 to [`MAX_HORIZON`].
    pub fn new(horizon: usize, weights: QoeWeights) -> Self {
        Self {
            horizon: horizon.clamp(1, MAX_HORIZON),
            weights,
        }
    }
}

impl Default for Mpc {
    /// A horizon of 5 chunks, μ = 16, λ = 1.
    fn default() -> Self {
        Self::new(5, QoeWeights::default())
    }
}

impl Adaptation for Mpc {
    fn lookahead(&self) -> usize {
        self.horizon
    }

    fn choose(&mut self, situation: &Situation<'_>) -> usize {
        let Some(predicted) = situation.predicted.filter(|rate| !rate.is_zero()) else {
            return 0;
        };
        let rates = situation.ladder.renditions().iter();
        let search = Search {
            rates_mbps: rates
                .map(|rendition| rendition.rate.as_mbps_f64())
                .collect(),
            bits_per_s: predicted.as_bps() as f64,
            weights: self.weights,
        };
        let ahead = situation.upcoming.len().min(self.horizon);
        let previous = situation.previous.map(|level| {
            let level = level.min(situation.ladder.top());
            search.rates_mbps[level]
        });
        let buffered = situation.buffered.as_secs_f64();
        search
            .best(&situation.upcoming[..ahead], buffered, previous)
            .0
    }
}

/// What doesn't change within one search.
struct Search {
    rates_mbps: Vec<f64>,
    bits_per_s: f64,
    weights: QoeWeights,
}

impl Search {
    /// The first level and the value of the best sequence of levels for `chunks`, from `buffered`
    /// seconds on; level 0 and value 0 without chunks.
    fn best(&self, chunks: &[&Chunk], buffered: f64, previous: Option<f64>) -> (usize, f64) {
        let Some((chunk, rest)) = chunks.split_first() else {
            return (0, 0.0);
        };
        let mut best = (0, f64::NEG_INFINITY);
        for (level, rate) in self.rates_mbps.iter().enumerate() {
            let download = chunk.bytes_at(level) as f64 * 8.0 / self.bits_per_s;
            let stall = (download - buffered).max(0.0);
            let change = previous.map_or(0.0, |previous| (rate - previous).abs());
            let own = rate - self.weights.stall * stall - self.weights.switching * change;
            let left = (buffered - download).max(0.0) + chunk.duration.as_secs_f64();
            let value = own + self.best(rest, left, Some(*rate)).1;
            if value > best.1 {
                best = (level, value);
            }
        }
        best
    }
}
