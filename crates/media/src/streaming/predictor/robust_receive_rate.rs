//! Chorus' predictor with RobustMPC's caution.

use swiftwater_units::{Bandwidth, Instant};

use super::receive_rate::ReceiveRate;
use super::recent::Recent;
use super::{ChunkDelivery, ServerReport, ThroughputPredictor};

/// The prediction of [`ReceiveRate`] over one plus its largest relative error in the last five chunks: what
/// [`RobustHarmonicMean`](super::RobustHarmonicMean) does with a harmonic mean. The project's own: over-estimation makes
/// players stall, and the equation of Chorus over-estimates where bandwidths fall.
///
/// The error of a chunk is that of the prediction by the newest report before its end, over its throughput.
#[derive(Clone, Debug, Default)]
pub struct RobustReceiveRate {
    rate: ReceiveRate,
    errors: Recent,
}

impl RobustReceiveRate {
    /// A predictor without history.
    pub fn new() -> Self {
        Self::default()
    }
}

impl ThroughputPredictor for RobustReceiveRate {
    fn on_chunk(&mut self, delivery: &ChunkDelivery) {
        if let (Some(predicted), Some(actual)) = (self.rate.newest(), delivery.throughput()) {
            self.errors.push((predicted - actual).abs() / actual);
        }
        self.rate.on_chunk(delivery);
    }

    fn on_report(&mut self, report: &ServerReport) {
        self.rate.on_report(report);
    }

    fn predict(&self, now: Instant) -> Option<Bandwidth> {
        let predicted = self.rate.predict(now)?;
        Some(predicted.scaled(1.0 / (1.0 + self.errors.largest())))
    }
}
