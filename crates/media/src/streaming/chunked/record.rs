//! What a session of chunked video was like.

use std::time::Duration;

use swiftwater_units::{Bandwidth, Instant};

use crate::streaming::buffer::PlaybackReport;
use crate::streaming::qoe::Qoe;

/// A chunk that was downloaded.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ChunkRecord {
    /// Number of chunks before it in the session.
    pub index: u64,
    /// Its level.
    pub level: usize,
    /// Its nominal bitrate.
    pub rate: Bandwidth,
    /// Bytes that arrived.
    pub bytes: u64,
    /// When it was requested.
    pub requested: Instant,
    /// From the request to the last byte.
    pub took: Duration,
    /// The prediction at the request, if there was one.
    pub predicted: Option<Bandwidth>,
    /// Stalls since the end of the chunk before.
    pub stall: Duration,
    /// Buffered play time after its arrival.
    pub buffered: Duration,
}

impl ChunkRecord {
    /// How much its throughput was over-estimated, over the throughput; negative if it was under-estimated, `None`
    /// without a prediction or a throughput.
    pub fn over_estimation(&self) -> Option<f64> {
        let predicted = self.predicted?.as_bps() as f64;
        if self.bytes == 0 || self.took.is_zero() {
            return None;
        }
        let actual = self.bytes as f64 * 8.0 / self.took.as_secs_f64();
        Some((predicted - actual) / actual)
    }
}

/// Results of a session.
#[derive(Clone, Debug, PartialEq)]
pub struct ChunkedReport {
    /// Start, stalls, play time.
    pub playback: PlaybackReport,
    /// The parts of the score, over all chunks downloaded and all stalls.
    pub qoe: Qoe,
    /// The score, with the weights of the configuration.
    pub score: f64,
    /// Chunks downloaded.
    pub chunks: u64,
    /// Chunks at another level than the one before.
    pub switches: u64,
    /// Requests that failed.
    pub failures: u64,
    /// Bytes of all chunks downloaded.
    pub bytes: u64,
    /// Errors of the predictions; `None` without one.
    pub prediction: Option<PredictionErrors>,
}

impl ChunkedReport {
    /// Mean nominal bitrate of the chunks downloaded, Mbit/s; 0 without chunks.
    pub fn mean_bitrate_mbps(&self) -> f64 {
        if self.chunks == 0 {
            return 0.0;
        }
        self.qoe.bitrate_mbps / self.chunks as f64
    }
}

/// Errors of the predictions of throughput, over the chunks that were requested with one.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PredictionErrors {
    /// Mean of the absolute error over the throughput.
    pub mean: f64,
    /// Share of the chunks whose throughput was below its prediction, 0 to 1.
    pub over_estimated: f64,
}

impl PredictionErrors {
    /// The errors of `records`; `None` if none has a prediction.
    pub fn of(records: &[ChunkRecord]) -> Option<Self> {
        let (mut count, mut sum, mut over) = (0_u64, 0.0, 0_u64);
        for record in records {
            let Some(error) = record.over_estimation() else {
                continue;
            };
            count += 1;
            sum += error.abs();
            over += u64::from(error > 0.0);
        }
        (count > 0).then(|| Self {
            mean: sum / count as f64,
            over_estimated: over as f64 / count as f64,
        })
    }
}
