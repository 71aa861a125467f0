//! Results of a strategy at a job.

use std::time::Duration;

use serde::Serialize;
use swiftwater::units::Instant;

use super::plan::{Job, Plan, Strategy};
use super::variant::Variant;
use crate::exit::{Exit, Failure};

/// What the application saw, and what it took. Times are in milliseconds.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct MultipathRow {
    /// How the networks were used.
    pub strategy: Strategy,
    /// What was sent.
    pub job: Job,
    /// Bytes that arrived, in order.
    pub bytes: u64,
    /// Whether all arrived as it was sent.
    pub sha256_ok: bool,
    /// From the request to the last byte; null if it did not arrive in time.
    pub completion_ms: Option<f64>,
    /// Longest time between two arrivals: of bytes of a download, of complete frames of a video. Before the first
    /// one none is counted; one that lasts at the end is.
    pub longest_gap_ms: Option<f64>,
    /// Times that the picture froze, with 200 ms of video in the player's buffer; null for a download.
    pub freezes: Option<u64>,
    /// The server's paths.
    pub paths: Vec<UsedPath>,
    /// When the longest gap began and ended, seconds.
    #[serde(skip)]
    pub gap: Option<(f64, f64)>,
    /// Time frozen.
    #[serde(skip)]
    pub frozen_ms: Option<f64>,
    /// The failure.
    #[serde(skip)]
    pub failure: Option<Failure>,
}

/// A path of a row.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct UsedPath {
    /// Bytes that the server sent there, in packets that count in flight.
    pub bytes_sent: u64,
    /// Of the stream bytes among them, copies of what was still in flight, here or on another path.
    pub copies: u64,
    /// The server's smoothed round-trip time.
    pub srtt_ms: f64,
}

impl MultipathRow {
    /// The state at `now`, since the start of the jobs.
    pub(super) fn of(variant: &Variant, plan: &Plan, now: Instant) -> Self {
        let used = variant.paths().into_iter().map(|path| UsedPath {
            bytes_sent: path.bytes_sent,
            copies: path.copies,
            srtt_ms: path.srtt_ms,
        });
        let paths = used.collect();
        let receipt = variant.receipt();
        let gap = receipt.gap_by(now);
        let ms = |time: Duration| time.as_secs_f64() * 1e3;
        let seconds = |at: Instant| at.saturating_since(Instant::ZERO).as_secs_f64();
        Self {
            strategy: variant.strategy,
            job: variant.job,
            bytes: receipt.bytes() as u64,
            sha256_ok: receipt.is_intact(variant.content(plan)),
            completion_ms: receipt.completed().map(|at| seconds(at) * 1e3),
            longest_gap_ms: gap.map(|(from, to)| ms(to.saturating_since(from))),
            freezes: receipt.freezes(now),
            paths,
            gap: gap.map(|(from, to)| (seconds(from), seconds(to))),
            frozen_ms: receipt.frozen(now).map(ms),
            failure: variant.failure(),
        }
    }

    /// Name of strategy and job.
    pub fn name(&self) -> String {
        format!("{}, {}", self.strategy.title(), self.job.title())
    }
}

/// The failure of the program after all reports: something that arrived in full differs, or multipath did not
/// complete its job. That the other strategies may be too late is what the demo shows.
pub fn verdict(rows: &[MultipathRow]) -> Result<(), Failure> {
    for row in rows {
        let name = row.name();
        if row.completion_ms.is_some() && !row.sha256_ok {
            let text = format_args!("{name}: what arrived differs from what was sent");
            return Err(Failure::new(Exit::Differs, text));
        }
        if row.strategy != Strategy::Multipath {
            continue;
        }
        if let Some(failure) = &row.failure {
            return Err(Failure::new(
                failure.exit,
                format_args!("{name}: {failure}"),
            ));
        }
        if row.completion_ms.is_none() {
            let text = format_args!("{name}: not complete in time");
            return Err(Failure::new(Exit::Connection, text));
        }
    }
    Ok(())
}
