//! Results of a variant at some time, during the showing and at its end.

use std::time::Duration;

use serde::Serialize;
use swiftwater::quic::PathStats;
use swiftwater_media::player::LiveReport;

use super::plan::Plan;
use super::recoveries::{mean, quantile};
use super::variant::Variant;
use crate::exit::{Exit, Failure};
use crate::table;

/// The results of one recovery. Values that were not observed are `None`. Shares are from 0 to 1.
///
/// Recovery latency is the time from a data range's first retransmission to the sending of the copy
/// that arrived first, of data whose first retransmission was lost (AutoRec, section III-C);
/// weighted by bytes.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct LiveRow {
    /// The recovery policy, as named by users.
    pub recovery: String,
    /// The video, as named by users.
    pub source: String,
    /// Description of the link.
    pub link: String,
    /// Seconds from the viewer's request to this report.
    pub seconds: f64,
    /// Whether all frames arrived.
    pub complete: bool,
    /// Whether all received bytes were correct.
    pub verified: bool,
    /// Frames of the stream.
    pub frames: u64,
    /// Frames that arrived.
    pub frames_received: u64,
    /// Payload that arrived, bytes.
    pub bytes: u64,
    /// Share of the packets to the viewer that the link lost, for any reason.
    pub link_loss: Option<f64>,
    /// Share of its packets that the server declared lost, without spurious losses.
    pub loss: Option<f64>,
    /// Stream ranges that were declared lost, each counted once.
    pub lost_data: u64,
    /// Of these, the ones whose first retransmission was lost.
    pub repeated_data: u64,
    /// Mean time from sending to retransmission (`T_unit`).
    pub detection_ms: Option<f64>,
    /// Mean recovery latency.
    pub recovery_mean_ms: Option<f64>,
    /// Recovery latency that 95 % don't exceed.
    pub recovery_p95_ms: Option<f64>,
    /// Longest recovery latency.
    pub recovery_max_ms: Option<f64>,
    /// Share of lost data that needed a second loss detection.
    pub deterioration_rate: Option<f64>,
    /// Times that the picture froze.
    pub freezes: u64,
    /// Time frozen.
    pub frozen_ms: f64,
    /// Longest freeze.
    pub longest_freeze_ms: f64,
    /// Freezes per 100 s watched.
    pub freezes_per_100_s: f64,
    /// From the request to the first frame shown.
    pub startup_ms: Option<f64>,
    /// Mean time by which the picture was behind its capture.
    pub latency_ms: Option<f64>,
    /// Mean time from a frame's capture to its arrival.
    pub frame_mean_ms: Option<f64>,
    /// The same, not exceeded by 95 % of frames.
    pub frame_p95_ms: Option<f64>,
    /// The longest.
    pub frame_max_ms: Option<f64>,
    /// Bytes of replicas per byte sent for the first time.
    pub redundancy_cost: f64,
    /// Bytes of retransmissions per byte sent for the first time.
    pub retransmission_cost: f64,
    /// Replicas sent.
    pub replicas: u64,
    /// Replicas that were the first copy to arrive.
    pub replicas_useful: u64,
    /// Replicas per lost data range that the policy permits at present.
    pub redundancy_level: u32,
    /// Payload per second, from the stream's beginning to the last frame's arrival.
    pub goodput_bps: Option<f64>,
    /// The server's smoothed round-trip time.
    pub srtt_ms: Option<f64>,
    /// The failure.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// The exit code of the failure.
    #[serde(skip)]
    pub exit: Option<Exit>,
}

impl LiveRow {
    /// The present state of a variant.
    pub fn of(variant: &Variant, plan: &Plan) -> Self {
        let now = variant.now();
        let stats = variant.stats();
        let repair = &stats.repair;
        let path = stats.paths.first();
        let link = variant.link();
        let recoveries = variant.recoveries.sorted();
        let failure = variant.failure();
        let viewer = variant.viewer();
        let report = viewer.report(now);
        let freezes = report.as_ref().map(|report| report.freezes);
        let freezes = freezes.unwrap_or_default();
        let mut delays = viewer.delays().to_vec();
        delays.sort_unstable();
        let new_bytes = repair.new_bytes.get().max(1) as f64;
        let streamed = viewer.begun().zip(viewer.last_frame());
        let streamed = streamed.map(|(begun, last)| last.saturating_since(begun));
        let ms = |time: Option<Duration>| time.map(milliseconds);
        Self {
            recovery: variant.recovery.clone(),
            source: plan.schedule.source().to_owned(),
            link: plan.network.clone(),
            seconds: now.saturating_since(viewer.asked()).as_secs_f64(),
            complete: viewer.is_complete(),
            verified: viewer.frames() > 0 && viewer.differing() == 0,
            frames: plan.schedule.frames().len() as u64,
            frames_received: viewer.frames(),
            bytes: viewer.bytes(),
            link_loss: share(
                link.dropped().packets.get(),
                link.enqueued.packets.get() + link.duplicated.packets.get(),
            ),
            loss: path.and_then(path_loss),
            lost_data: repair.lost_data,
            repeated_data: repair.repeated_data,
            detection_ms: ms(repair.mean_detection_time()),
            recovery_mean_ms: ms(mean(&recoveries)),
            recovery_p95_ms: ms(quantile(&recoveries, 0.95)),
            recovery_max_ms: ms(recoveries.last().map(|longest| longest.latency)),
            deterioration_rate: repair.deterioration_rate(),
            freezes: freezes.count,
            frozen_ms: milliseconds(freezes.total),
            longest_freeze_ms: milliseconds(freezes.longest),
            freezes_per_100_s: report.map_or(0.0, |report| report.freezes_per_100_s()),
            startup_ms: ms(report.and_then(|report: LiveReport| report.start_time)),
            latency_ms: ms(report.and_then(|report| report.mean_latency)),
            frame_mean_ms: mean_of(&delays),
            frame_p95_ms: ms(p95(&delays)),
            frame_max_ms: ms(delays.last().copied()),
            redundancy_cost: repair.redundancy_cost(),
            retransmission_cost: repair.retransmitted_bytes.get() as f64 / new_bytes,
            replicas: repair.replicas_sent,
            replicas_useful: repair.replicas_useful,
            redundancy_level: stats.reinjector.redundancy_level,
            goodput_bps: streamed.map(|time| table::bits_per_second(viewer.bytes(), time)),
            srtt_ms: path.map(|path| milliseconds(path.smoothed_rtt)),
            error: failure.as_ref().map(Failure::to_string),
            exit: failure.map(|failure| failure.exit),
        }
    }

    /// Description of the received bytes.
    pub fn delivery(&self) -> &'static str {
        match (self.verified, self.complete) {
            _ if self.error.is_some() => "FAILED",
            (false, _) if self.frames_received > 0 => "DIFFERS",
            (true, true) => "all, verified",
            _ => "in part",
        }
    }
}

/// The failure of the program after all reports: incorrect bytes, or the first failure.
pub fn verdict(rows: &[LiveRow]) -> Result<(), Failure> {
    for row in rows {
        if let (Some(error), Some(exit)) = (&row.error, row.exit) {
            return Err(Failure::new(
                exit,
                format_args!("{}: {error}", row.recovery),
            ));
        }
        if row.frames_received > 0 && !row.verified {
            return Err(Failure::new(
                Exit::Differs,
                format_args!("{}: what arrived differs from what was sent", row.recovery),
            ));
        }
    }
    Ok(())
}

/// Milliseconds, for reports.
pub fn milliseconds(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1e3
}

fn share(part: u64, whole: u64) -> Option<f64> {
    (whole > 0).then(|| part as f64 / whole as f64)
}

fn mean_of(delays: &[Duration]) -> Option<f64> {
    let sum: Duration = delays.iter().sum();
    (!delays.is_empty()).then(|| milliseconds(sum) / delays.len() as f64)
}

/// The time that 95 % of `sorted` don't exceed.
fn p95(sorted: &[Duration]) -> Option<Duration> {
    let last = (sorted.len() * 95).div_ceil(100).checked_sub(1)?;
    sorted.get(last).copied()
}

/// The share of packets that were lost, spurious losses left out.
fn path_loss(path: &PathStats) -> Option<f64> {
    let lost = path.lost_packets.get();
    let lost = lost.saturating_sub(path.spurious_losses.get());
    share(lost, path.sent_packets.get())
}
