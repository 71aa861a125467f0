//! Measures of video on demand: what viewers saw, and what it cost.

use std::time::Duration;

use swiftwater_media::streaming::PredictionErrors;

use super::Column;
use super::facts::{GroupFacts, ratio};
use super::statistics::{mean, percentile};

/// Results of one viewer, of the whole session.
#[derive(Clone, Debug, Default)]
pub(in crate::world) struct StreamingViewing {
    /// Of adaptive players only, as are the following three.
    pub(in crate::world) score: Option<f64>,
    pub(in crate::world) bitrate_mbps: Option<f64>,
    /// Mean change from one chunk to the next.
    pub(in crate::world) switching_mbps: Option<f64>,
    pub(in crate::world) prediction: Option<PredictionErrors>,
    /// From the choice of a video to its first picture.
    pub(in crate::world) first_frames: Vec<Duration>,
    pub(in crate::world) stalls: u64,
    pub(in crate::world) stalled: Duration,
    pub(in crate::world) played: Duration,
    /// Of each complete request the time until the last byte of its response.
    pub(in crate::world) requests: Vec<Duration>,
    pub(in crate::world) received: u64,
    /// Bytes of videos that were left, and not played; of feeds only.
    pub(in crate::world) unplayed: Option<u64>,
    /// Buffered play time at regular intervals, from the first picture on.
    pub(in crate::world) levels: Vec<Duration>,
    /// Of each response the share of its bytes that came on another path than the server had announced last; empty
    /// without announcements.
    pub(in crate::world) share_errors: Vec<f64>,
}

/// The viewers of a group.
fn viewers(group: &GroupFacts) -> &[StreamingViewing] {
    &group.streaming
}

/// Mean over the viewers that have a value.
fn mean_of(group: &GroupFacts, value: impl Fn(&StreamingViewing) -> Option<f64>) -> Option<f64> {
    mean(&viewers(group).iter().filter_map(value).collect::<Vec<_>>())
}

fn sum_of(group: &GroupFacts, value: impl Fn(&StreamingViewing) -> f64) -> f64 {
    viewers(group).iter().map(value).sum()
}

fn first_frames(group: &GroupFacts) -> Vec<f64> {
    let all = viewers(group)
        .iter()
        .flat_map(|viewer| &viewer.first_frames);
    all.copied().map(millis).collect()
}

fn levels(group: &GroupFacts) -> Vec<f64> {
    let all = viewers(group).iter().flat_map(|viewer| &viewer.levels);
    all.copied().map(millis).collect()
}

fn share_errors(group: &GroupFacts) -> Vec<f64> {
    let all = viewers(group)
        .iter()
        .flat_map(|viewer| &viewer.share_errors);
    all.copied().collect()
}

fn requests(group: &GroupFacts) -> Vec<f64> {
    let all = viewers(group).iter().flat_map(|viewer| &viewer.requests);
    all.copied().map(millis).collect()
}

/// Of both players.
pub(super) const STREAMING: &[Column<GroupFacts>] = &[
    ("first_frame_mean_ms", |group| mean(&first_frames(group))),
    ("first_frame_p50_ms", |group| {
        percentile(first_frames(group), 0.5)
    }),
    ("first_frame_p99_ms", |group| {
        percentile(first_frames(group), 0.99)
    }),
    ("stall_ms", |group| {
        mean_of(group, |viewer| Some(millis(viewer.stalled)))
    }),
    ("stalls", |group| {
        mean_of(group, |viewer| Some(viewer.stalls as f64))
    }),
    ("rebuffer_rate", |group| {
        let played = sum_of(group, |viewer| viewer.played.as_secs_f64());
        ratio(sum_of(group, |viewer| viewer.stalled.as_secs_f64()), played)
    }),
    ("requests", |group| Some(requests(group).len() as f64)),
    ("request_p50_ms", |group| percentile(requests(group), 0.5)),
    ("request_p95_ms", |group| percentile(requests(group), 0.95)),
    ("request_p99_ms", |group| percentile(requests(group), 0.99)),
    ("request_max_ms", |group| percentile(requests(group), 1.0)),
    ("buffer_p5_ms", |group| percentile(levels(group), 0.05)),
    ("buffer_p20_ms", |group| percentile(levels(group), 0.2)),
    ("buffer_p50_ms", |group| percentile(levels(group), 0.5)),
    ("copies_share", |group| {
        let repair = &group.totals.repair;
        let all = repair.new_bytes + repair.replica_bytes + repair.retransmitted_bytes;
        ratio(repair.replica_bytes.get() as f64, all.get() as f64)
    }),
];

/// Of adaptive players.
pub(super) const ADAPTIVE: &[Column<GroupFacts>] = &[
    ("qoe", |group| mean_of(group, |viewer| viewer.score)),
    ("bitrate_mbps", |group| {
        mean_of(group, |viewer| viewer.bitrate_mbps)
    }),
    ("switching_mbps", |group| {
        mean_of(group, |viewer| viewer.switching_mbps)
    }),
    ("prediction_error", |group| {
        mean_of(group, |viewer| Some(viewer.prediction?.mean))
    }),
    ("overestimated_share", |group| {
        mean_of(group, |viewer| Some(viewer.prediction?.over_estimated))
    }),
    ("share_error_mean", |group| mean(&share_errors(group))),
    ("share_error_p50", |group| {
        percentile(share_errors(group), 0.5)
    }),
];

/// Of feeds of short videos.
pub(super) const FEED: &[Column<GroupFacts>] = &[
    ("videos_seen", |group| {
        mean_of(group, |viewer| Some(viewer.first_frames.len() as f64))
    }),
    ("unplayed_share", |group| {
        let unplayed = sum_of(group, |viewer| viewer.unplayed.unwrap_or(0) as f64);
        ratio(unplayed, sum_of(group, |viewer| viewer.received as f64))
    }),
];

fn millis(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}
