//! Chorus' predictor: from what the client receives on each path, and the shares that the server has
//! decided.

use std::collections::BTreeMap;

use swiftwater_units::{Bandwidth, Instant, PathId};

use super::harmonic::HarmonicMean;
use super::recent::Recent;
use super::{ChunkDelivery, ServerReport, ThroughputPredictor, bandwidth, of_shares};

/// "Recv Rate" (Chorus, equation 5): `min(R_f / α, R_s / (1 - α))`, and at least the larger `R`; for
/// any number of paths.
///
/// `R` of a path is the harmonic mean, over the last five chunks of which bytes arrived on it, of
/// these bytes over the time of the whole chunk. Without a fresh report, and if a path is to get a
/// share that nothing arrived on so far, the prediction is that of [`HarmonicMean`].
#[derive(Clone, Debug, Default)]
pub struct ReceiveRate {
    chunks: HarmonicMean,
    paths: BTreeMap<PathId, Recent>,
    report: Option<ServerReport>,
}

impl ReceiveRate {
    /// A predictor without history.
    pub fn new() -> Self {
        Self::default()
    }

    /// The prediction by the newest report, however old, in bit/s.
    pub(super) fn newest(&self) -> Option<f64> {
        let mean = self.chunks.mean()?;
        let by_shares = |report: &ServerReport| self.by_shares(report.received);
        Some(self.report.as_ref().and_then(by_shares).unwrap_or(mean))
    }

    /// Equation 5 in bit/s, if its inputs are there.
    fn by_shares(&self, now: Instant) -> Option<f64> {
        let report = self
            .report
            .as_ref()
            .filter(|report| !report.is_stale(now))?;
        let used = report.paths.iter().filter(|path| path.share > 0.0);
        let rates = used.map(|path| {
            let rate = self.paths.get(&path.path)?.harmonic_mean()?;
            Some((rate, path.share))
        });
        let rates: Vec<(f64, f64)> = rates.collect::<Option<_>>()?;
        let reported = report.paths.iter();
        let known = reported.filter_map(|path| self.paths.get(&path.path)?.harmonic_mean());
        let floor = known.fold(0.0, f64::max);
        Some(of_shares(rates)?.max(floor))
    }
}

impl ThroughputPredictor for ReceiveRate {
    fn on_chunk(&mut self, delivery: &ChunkDelivery) {
        self.chunks.on_chunk(delivery);
        for path in &delivery.paths {
            if let Some(rate) = delivery.rate_of(path.bytes) {
                self.paths.entry(path.path).or_default().push(rate);
            }
        }
    }

    fn on_report(&mut self, report: &ServerReport) {
        self.report = Some(report.clone());
    }

    fn predict(&self, now: Instant) -> Option<Bandwidth> {
        let mean = self.chunks.mean()?;
        Some(bandwidth(self.by_shares(now).unwrap_or(mean)))
    }
}
