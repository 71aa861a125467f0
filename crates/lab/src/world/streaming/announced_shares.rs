//! How the shares of the paths that the server announced compare with how a response came.

use std::collections::BTreeMap;

use swiftwater_media::streaming::predictor::{PathBytes, ServerReport};
use swiftwater_units::PathId;

/// The newest announcement, and what the complete responses were like.
#[derive(Debug, Default)]
pub(super) struct AnnouncedShares {
    /// By path, between 0 and 1.
    newest: BTreeMap<PathId, f64>,
    errors: Vec<f64>,
}

impl AnnouncedShares {
    pub(super) fn on_report(&mut self, report: &ServerReport) {
        let paths = report.paths.iter();
        self.newest = paths.map(|each| (each.path, each.share)).collect();
    }

    /// A response is complete, of which these bytes came on each path.
    pub(super) fn on_complete(&mut self, paths: &[PathBytes]) {
        let all: u64 = paths.iter().map(|each| each.bytes).sum();
        if self.newest.is_empty() || all == 0 {
            return;
        }
        let bytes = |path| {
            let mut of_path = paths.iter().filter(|each| each.path == path);
            of_path.next().map_or(0, |each| each.bytes)
        };
        // What is too much for some paths is missing for others.
        let excess = self.newest.iter().map(|(path, announced)| {
            let came = bytes(*path) as f64 / all as f64;
            (announced - came).max(0.0)
        });
        self.errors.push(excess.sum());
    }

    /// For each complete response the share of its bytes that came on another path than announced.
    pub(super) fn errors(&self) -> &[f64] {
        &self.errors
    }
}
