//! Measures of sessions in addition to those of live video.

use std::time::Duration;

use swiftwater_media::apps::Latencies;

use super::Column;
use super::facts::{GroupFacts, ratio};

/// Statistics of the sender of a session, of the whole run.
#[derive(Clone, Copy, Debug)]
pub(in crate::world) struct SessionFacts {
    pub(in crate::world) packets: u64,
    pub(in crate::world) lost: u64,
    pub(in crate::world) spurious: u64,
    pub(in crate::world) lost_data: u64,
    pub(in crate::world) replicas: u64,
    pub(in crate::world) recovery: Latencies,
    /// Recovery deterioration rate, by each data range's own detection time.
    pub(in crate::world) deterioration: f64,
    /// Mean detection time; `None` without losses.
    pub(in crate::world) detection: Option<Duration>,
    /// Frames that were never complete.
    pub(in crate::world) frames_never: u64,
}

/// Of sessions.
pub(super) const SESSION: &[Column<GroupFacts>] = &[
    ("lost_share", |group| {
        let session = group.session?;
        ratio(session.lost as f64, session.packets as f64)
    }),
    ("spurious_losses", |group| {
        Some(group.session?.spurious as f64)
    }),
    ("recovery_latency_ms", |group| recovery(group, |of| of.mean)),
    ("recovery_latency_p95_ms", |group| {
        recovery(group, |of| of.p95)
    }),
    ("recovery_latency_max_ms", |group| {
        recovery(group, |of| of.max)
    }),
    ("rdr_by_time", |group| {
        let session = group.session?;
        (session.lost_data > 0).then_some(session.deterioration)
    }),
    ("detection_time_ms", |group| {
        group.session?.detection.map(millis)
    }),
    ("f_over_t", |group| {
        let latency = recovery(group, |of| of.mean)?;
        ratio(latency, millis(group.session?.detection?))
    }),
    ("replicas_per_loss", |group| {
        let session = group.session?;
        ratio(session.replicas as f64, session.lost_data as f64)
    }),
    ("frames_never", |group| {
        Some(group.session?.frames_never as f64)
    }),
];

/// One of the recovery latencies in milliseconds; `None` if there is none.
fn recovery(group: &GroupFacts, which: fn(Latencies) -> Duration) -> Option<f64> {
    let latencies = group.session?.recovery;
    (latencies.count > 0).then(|| millis(which(latencies)))
}

fn millis(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}
