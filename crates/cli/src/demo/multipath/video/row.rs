//! Results of a strategy at the video story.

use serde::Serialize;

use super::strategy::VideoStrategy;
use crate::demo::multipath::plan::Job;
use crate::exit::{Exit, Failure};

/// What the viewer saw, and what it took. Times are in milliseconds.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct VideoRow {
    /// How the networks were used.
    pub strategy: VideoStrategy,
    /// What was sent: always [`Job::Video`].
    pub job: Job,
    /// The score of Chorus' evaluation: Mbit/s summed over segments, less 16 for each second of stall and 1 for each Mbit/s of
    /// change.
    pub qoe: f64,
    /// Mean bitrate of the segments, Mbit/s.
    pub bitrate_mbps: f64,
    /// Time that playback stalled, the wait for the first picture not included.
    pub stall_ms: f64,
    /// Times that it stalled.
    pub stalls: u64,
    /// From the first request for a segment to the first picture; null if there was none.
    pub first_frame_ms: Option<f64>,
    /// 99th percentile of the time from the request for a segment to its last byte; null without one.
    pub chunk_p99_ms: Option<f64>,
    /// Segments that arrived.
    pub segments: u64,
    /// Of the stream bytes that the server sent, copies of what was still in flight, 0 to 1.
    pub copies_share: f64,
    /// Whether every segment arrived as it was served.
    pub sha256_ok: bool,
    /// Bytes that the server sent on each path, in packets that count in flight.
    pub sent_by_path: Vec<u64>,
    /// The failure.
    #[serde(skip)]
    pub failure: Option<Failure>,
}

/// What the server had sent at a time.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Sample {
    /// Seconds since the start.
    pub at: f64,
    /// Bytes on each network, Wi-Fi first.
    pub sent: [u64; 2],
    /// Bytes of copies on both.
    pub copies: u64,
}

/// Results with what the page shows.
#[derive(Clone, Debug)]
pub struct Watched {
    /// The results.
    pub row: VideoRow,
    /// Seconds, seconds of play time that are buffered.
    pub buffer: Vec<(f64, f64)>,
    /// Seconds at which segments were requested, their bitrates in Mbit/s.
    pub bitrates: Vec<(f64, f64)>,
    /// What the server had sent, in the order of time.
    pub samples: Vec<Sample>,
}

/// The failure of the program after all reports: a segment differs, or none arrived over two paths. What the single path
/// can't do is what the demo shows.
pub fn verdict(rows: &[Watched]) -> Result<(), Failure> {
    for row in rows.iter().map(|watched| &watched.row) {
        let name = row.strategy.title();
        if !row.sha256_ok && row.segments > 0 {
            let text = format_args!("{name}: a segment differs from what was served");
            return Err(Failure::new(Exit::Differs, text));
        }
        if row.strategy == VideoStrategy::SinglePath {
            continue;
        }
        if let Some(failure) = &row.failure {
            return Err(Failure::new(
                failure.exit,
                format_args!("{name}: {failure}"),
            ));
        }
        if row.segments == 0 {
            let text = format_args!("{name}: no segment arrived");
            return Err(Failure::new(Exit::Connection, text));
        }
    }
    Ok(())
}
