//! What `play` prints.

use serde::Serialize;
use swiftwater::units::{Bandwidth, Instant};
use swiftwater_media::streaming::{ChunkRecord, ChunkedEvent, ChunkedPlayer};

use super::observer::SessionObserver;
use crate::exit::Failure;
use crate::output;
use crate::table;

/// Prints segments and events as they come, as text or JSON.
pub(super) struct Reporter {
    json: bool,
    /// Segments printed so far.
    segments: usize,
}

#[derive(Serialize)]
struct SegmentRow {
    event: &'static str,
    segment: u64,
    level: usize,
    bitrate_mbps: f64,
    bytes: u64,
    requested_ms: f64,
    took_ms: f64,
    throughput_mbps: f64,
    predicted_mbps: Option<f64>,
    stall_ms: f64,
    buffer_ms: f64,
}

#[derive(Serialize)]
struct EventRow {
    event: &'static str,
    at_ms: f64,
}

#[derive(Serialize)]
struct FailureRow<'a> {
    event: &'static str,
    error: &'a str,
}

/// The results.
#[derive(Serialize)]
struct ResultRow {
    event: &'static str,
    protocol: &'static str,
    adaptation: &'static str,
    predictor: &'static str,
    qoe: f64,
    bitrate_mbps: f64,
    segments: u64,
    switches: u64,
    stall_ms: f64,
    stalls: u64,
    first_frame_ms: Option<f64>,
    played_ms: f64,
    bytes: u64,
    failed_requests: u64,
    chunk_p50_ms: Option<f64>,
    chunk_p99_ms: Option<f64>,
}

/// How a session was set up, for its results.
#[derive(Clone, Copy, Debug)]
pub(super) struct Setting {
    pub(super) protocol: &'static str,
    pub(super) adaptation: &'static str,
    pub(super) predictor: &'static str,
}

fn millis(time: std::time::Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

impl Reporter {
    pub(super) fn new(json: bool) -> Self {
        Self { json, segments: 0 }
    }

    fn segment(&self, record: &ChunkRecord) -> Result<(), Failure> {
        let row = SegmentRow {
            event: "segment",
            segment: record.index,
            level: record.level,
            bitrate_mbps: record.rate.as_mbps_f64(),
            bytes: record.bytes,
            requested_ms: record.requested.as_secs_f64() * 1e3,
            took_ms: millis(record.took),
            throughput_mbps: table::bits_per_second(record.bytes, record.took) / 1e6,
            predicted_mbps: record.predicted.map(Bandwidth::as_mbps_f64),
            stall_ms: millis(record.stall),
            buffer_ms: millis(record.buffered),
        };
        if self.json {
            return output::json(&row);
        }
        let end = (row.requested_ms + row.took_ms) / 1e3;
        output::line(&format!(
            "{end:>8.2} s  segment {:<4} {:>7.2} Mbit/s  {:>9}  in {:>7.0} ms ({:.1} Mbit/s)  buffer {:>5.1} s",
            row.segment,
            row.bitrate_mbps,
            table::bytes(row.bytes),
            row.took_ms,
            row.throughput_mbps,
            row.buffer_ms / 1e3,
        ))
    }

    /// Prints the results.
    pub(super) fn results(&self, player: &ChunkedPlayer, setting: Setting) -> Result<(), Failure> {
        let report = player.report();
        let mut times: Vec<f64> = player
            .records()
            .iter()
            .map(|record| millis(record.took))
            .collect();
        times.sort_by(f64::total_cmp);
        let row = ResultRow {
            event: "result",
            protocol: setting.protocol,
            adaptation: setting.adaptation,
            predictor: setting.predictor,
            qoe: report.score,
            bitrate_mbps: report.mean_bitrate_mbps(),
            segments: report.chunks,
            switches: report.switches,
            stall_ms: millis(report.playback.stalls.total),
            stalls: report.playback.stalls.count,
            first_frame_ms: report.playback.start_time.map(millis),
            played_ms: millis(report.playback.played),
            bytes: report.bytes,
            failed_requests: report.failures,
            chunk_p50_ms: quantile(&times, 0.5),
            chunk_p99_ms: quantile(&times, 0.99),
        };
        if self.json {
            return output::json(&row);
        }
        let first = row.first_frame_ms;
        let first = first.map_or_else(|| "never".to_owned(), |ms| format!("after {ms:.0} ms"));
        output::line(&format!(
            "{} segments over {}, {} in all: {:.2} Mbit/s in the mean, {} changes; first picture {first}, {} stalls of {:.2} s \
             together, {:.1} s played; score {:.1}",
            row.segments,
            row.protocol,
            table::bytes(row.bytes),
            row.bitrate_mbps,
            row.switches,
            row.stalls,
            row.stall_ms / 1e3,
            row.played_ms / 1e3,
            row.qoe,
        ))
    }
}

impl SessionObserver for Reporter {
    /// Prints what happened in the player.
    fn on_time(&mut self, _now: Instant, player: &mut ChunkedPlayer) -> Result<(), Failure> {
        while let Some((at, event)) = player.poll_event() {
            let name = match event {
                ChunkedEvent::FirstFrame => "first_frame",
                ChunkedEvent::Stalled => "stalled",
                ChunkedEvent::Resumed => "resumed",
                ChunkedEvent::Abandoned { .. } => "abandoned",
                ChunkedEvent::Finished => "finished",
                // Shown by the segments, or by `failure`.
                _ => continue,
            };
            let at_ms = at.as_secs_f64() * 1e3;
            if self.json {
                output::json(&EventRow { event: name, at_ms })?;
            } else {
                let what = name.replace('_', " ");
                output::line(&format!("{:>8.2} s  {what}", at_ms / 1e3))?;
            }
        }
        Ok(())
    }

    /// Prints a request that failed and is repeated, or was the last.
    fn on_failure(&mut self, failure: &Failure) -> Result<(), Failure> {
        if self.json {
            let error = failure.message();
            return output::json(&FailureRow {
                event: "failed",
                error,
            });
        }
        output::note(&format!("note: {failure}"));
        Ok(())
    }

    /// Prints the segments that are new.
    fn on_segment(&mut self, player: &ChunkedPlayer) -> Result<(), Failure> {
        let records = player.records();
        for record in records.get(self.segments..).unwrap_or_default() {
            self.segment(record)?;
        }
        self.segments = records.len();
        Ok(())
    }
}

/// The value of rank ⌈share × n⌉; `None` without values, which are sorted.
pub(crate) fn quantile(sorted: &[f64], share: f64) -> Option<f64> {
    let rank = (share * sorted.len() as f64).ceil() as usize;
    sorted.get(rank.max(1) - 1).copied()
}
