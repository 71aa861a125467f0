//! Measures of the recovery of lost data of a group of flows.

use std::time::Duration;

use swiftwater_quic::RepairStats;

use super::Column;
use super::facts::{GroupFacts, ratio};
use super::statistics::TimeMeter;

/// Observations of a run in addition to totals.
#[derive(Debug, Default)]
pub(in crate::world) struct RepairFacts {
    /// Recovery latencies of data whose first retransmission was lost, weighted by bytes.
    pub(in crate::world) latencies: TimeMeter,
    /// The longest of them.
    pub(in crate::world) longest: Option<Duration>,
    /// Redundancy level, mean over the time of all connections.
    pub(in crate::world) level_mean: Option<f64>,
    /// The largest share of replica bytes in new bytes in 10 s.
    pub(in crate::world) budget_max: Option<f64>,
}

/// Of every group that sends over QUIC.
pub(super) const REPAIR: &[Column<GroupFacts>] = &[
    ("recovery_latency_ms", |group| {
        group.totals.repair.mean_recovery_latency().map(millis)
    }),
    ("recovery_latency_p95_ms", |group| {
        group.repair.latencies.quantile_ms(0.95)
    }),
    ("recovery_latency_max_ms", |group| {
        group.repair.longest.map(millis)
    }),
    ("rdr", |group| group.totals.repair.deterioration_rate()),
    ("rdr_by_time", |group| {
        let stats = &group.totals.repair;
        let lost = stats.recovered_bytes.saturating_sub(stats.spurious_bytes);
        ratio(stats.late_bytes.get() as f64, lost.get() as f64)
    }),
    ("redundancy_cost", |group| {
        let stats = &group.totals.repair;
        let (replicas, new) = (stats.replica_bytes, stats.new_bytes);
        ratio(replicas.get() as f64, new.get() as f64)
    }),
    ("detection_time_ms", |group| {
        group.totals.repair.mean_detection_time().map(millis)
    }),
    ("f_over_t", |group| {
        let stats = &group.totals.repair;
        let latency = stats.mean_recovery_latency()?;
        ratio(
            latency.as_secs_f64(),
            stats.mean_detection_time()?.as_secs_f64(),
        )
    }),
    ("replicas_per_loss", |group| {
        let stats = &group.totals.repair;
        ratio(stats.replicas_sent as f64, stats.lost_data as f64)
    }),
    ("replicas_useful_share", |group| {
        useful(&group.totals.repair)
    }),
    ("spurious_share", |group| {
        let stats = &group.totals.repair;
        let (spurious, lost) = (stats.spurious_bytes, stats.lost_bytes);
        ratio(spurious.get() as f64, lost.get() as f64)
    }),
    ("redundancy_level_mean", |group| group.repair.level_mean),
    ("budget_max_10s", |group| group.repair.budget_max),
];

/// Of the replicas whose fate is determined.
fn useful(stats: &RepairStats) -> Option<f64> {
    let settled = stats.replicas_useful + stats.replicas_wasted;
    ratio(stats.replicas_useful as f64, settled as f64)
}

fn millis(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}
