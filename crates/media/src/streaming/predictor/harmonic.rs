//! Predictors from the throughput of whole chunks.

use swiftwater_units::{Bandwidth, Instant};

use super::recent::Recent;
use super::{ChunkDelivery, ThroughputPredictor, bandwidth};

/// Harmonic mean of the throughput of the last five chunks (FESTIVE, CoNEXT 2012).
#[derive(Clone, Debug, Default)]
pub struct HarmonicMean {
    throughput: Recent,
}

impl HarmonicMean {
    /// A predictor without history.
    pub fn new() -> Self {
        Self::default()
    }

    /// The mean in bit/s.
    pub(super) fn mean(&self) -> Option<f64> {
        self.throughput.harmonic_mean()
    }
}

impl ThroughputPredictor for HarmonicMean {
    fn on_chunk(&mut self, delivery: &ChunkDelivery) {
        if let Some(throughput) = delivery.throughput() {
            self.throughput.push(throughput);
        }
    }

    fn predict(&self, _now: Instant) -> Option<Bandwidth> {
        self.mean().map(bandwidth)
    }
}

/// The harmonic mean over one plus its largest relative error in the last five chunks: the lower
/// bound that RobustMPC uses (Yin et al., SIGCOMM 2015).
///
/// The error of a chunk is that of the harmonic mean before it, over its throughput.
#[derive(Clone, Debug, Default)]
pub struct RobustHarmonicMean {
    mean: HarmonicMean,
    errors: Recent,
}

impl RobustHarmonicMean {
    /// A predictor without history.
    pub fn new() -> Self {
        Self::default()
    }
}

impl ThroughputPredictor for RobustHarmonicMean {
    fn on_chunk(&mut self, delivery: &ChunkDelivery) {
        if let (Some(predicted), Some(actual)) = (self.mean.mean(), delivery.throughput()) {
            self.errors.push((predicted - actual).abs() / actual);
        }
        self.mean.on_chunk(delivery);
    }

    fn predict(&self, _now: Instant) -> Option<Bandwidth> {
        let mean = self.mean.mean()?;
        Some(bandwidth(mean / (1.0 + self.errors.largest())))
    }
}
