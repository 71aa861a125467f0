//! Predictors from the sender's estimates of its paths.

use std::collections::BTreeMap;

use swiftwater_units::{Bandwidth, Instant, PathId};

use super::harmonic::HarmonicMean;
use super::recent::Recent;
use super::{ChunkDelivery, ServerReport, ThroughputPredictor, bandwidth, of_shares};

/// "Send Rate" of the Chorus paper: the minimum of the sender's bandwidth over share, of the last
/// report. Without a fresh report the prediction is that of [`HarmonicMean`].
#[derive(Clone, Debug, Default)]
pub struct SendRate {
    chunks: HarmonicMean,
    report: Option<ServerReport>,
}

impl SendRate {
    /// A predictor without history.
    pub fn new() -> Self {
        Self::default()
    }

    fn fresh(&self, now: Instant) -> Option<&ServerReport> {
        self.report.as_ref().filter(|report| !report.is_stale(now))
    }
}

impl ThroughputPredictor for SendRate {
    fn on_chunk(&mut self, delivery: &ChunkDelivery) {
        self.chunks.on_chunk(delivery);
    }

    fn on_report(&mut self, report: &ServerReport) {
        self.report = Some(report.clone());
    }

    fn predict(&self, now: Instant) -> Option<Bandwidth> {
        let paths = self.fresh(now).map(|report| report.paths.iter());
        let by_shares = paths
            .and_then(|paths| of_shares(paths.map(|path| (path.rate.as_bps() as f64, path.share))));
        by_shares.or(self.chunks.mean()).map(bandwidth)
    }
}

/// "Send Rate HM" of the Chorus paper: as [`SendRate`], with the harmonic mean of the sender's
/// bandwidths at the end of each of the last five chunks.
///
/// Paths without such a value count with the bandwidth of the last report.
#[derive(Clone, Debug, Default)]
pub struct SendRateHarmonicMean {
    last: SendRate,
    paths: BTreeMap<PathId, Recent>,
}

impl SendRateHarmonicMean {
    /// A predictor without history.
    pub fn new() -> Self {
        Self::default()
    }
}

impl ThroughputPredictor for SendRateHarmonicMean {
    fn on_chunk(&mut self, delivery: &ChunkDelivery) {
        self.last.on_chunk(delivery);
        let reported = self.last.report.iter().flat_map(|report| &report.paths);
        for path in reported.filter(|path| !path.rate.is_zero()) {
            let rate = path.rate.as_bps() as f64;
            self.paths.entry(path.path).or_default().push(rate);
        }
    }

    fn on_report(&mut self, report: &ServerReport) {
        self.last.on_report(report);
    }

    fn predict(&self, now: Instant) -> Option<Bandwidth> {
        let rate = |path: PathId, last: Bandwidth| {
            let mean = self.paths.get(&path).and_then(Recent::harmonic_mean);
            mean.unwrap_or(last.as_bps() as f64)
        };
        let paths = self.last.fresh(now).map(|report| report.paths.iter());
        let by_shares = paths.and_then(|paths| {
            of_shares(paths.map(|path| (rate(path.path, path.rate), path.share)))
        });
        by_shares.or(self.last.chunks.mean()).map(bandwidth)
    }
}
