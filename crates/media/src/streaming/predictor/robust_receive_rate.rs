//! Chorus' predictor with RobustMPC's caution.

use swiftwater_units::{Bandwidth, Instant};

use super::receive_rate::ReceiveRate;
use super::recent::Recent;
use super::{ChunkDelivery, ServerReport, ThroughputPredictor};

/// The prediction of [`ReceiveRate`] over one plus its mean relative over-estimation in the last five chunks. The project's
/// own: over-estimation makes players stall, and the equation of Chorus over-estimates where bandwidths fall.
/// [`RobustHarmonicMean`](super::RobustHarmonicMean) takes the largest error instead, of either sign, which costs bitrate.
///
/// The over-estimation of a chunk is the prediction by the newest report before its end, less its throughput, over its
/// throughput; zero if the prediction was lower.
#[derive(Clone, Debug, Default)]
pub struct RobustReceiveRate {
    rate: ReceiveRate,
    over_estimations: Recent,
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
            self.over_estimations
                .push(((predicted - actual) / actual).max(0.0));
        }
        self.rate.on_chunk(delivery);
    }

    fn on_report(&mut self, report: &ServerReport) {
        self.rate.on_report(report);
    }

    fn predict(&self, now: Instant) -> Option<Bandwidth> {
        let predicted = self.rate.predict(now)?;
        Some(predicted.scaled(1.0 / (1.0 + self.over_estimations.mean())))
    }
}
