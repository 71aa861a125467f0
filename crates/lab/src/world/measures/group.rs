//! Measures of a group of flows.

use std::time::Duration;

use swiftwater_sim::apps::Viewing;

use super::Column;
use super::facts::{GroupFacts, mbps, ratio};
use super::statistics::{jain, mean, percentile, variation};

/// Below this a transfer is small, bytes.
const SMALL: u64 = 100_000;
/// Above this a transfer is large, bytes.
const LARGE: u64 = 1_000_000;
/// A player that starts within this time counts as fast.
const FAST: Duration = Duration::from_secs(1);

/// Of every group.
pub(super) const EVERY: &[Column<GroupFacts>] = &[
    ("goodput_mbps", |group| group.goodput_mbps()),
    ("share", |group| group.share),
    ("retransmitted_share", |group| {
        let totals = &group.totals;
        ratio(
            totals.stream_bytes_retransmitted.get() as f64,
            totals.stream_bytes_sent.get() as f64,
        )
    }),
    ("lost_share", |group| {
        let totals = &group.totals;
        ratio(
            totals.packets_lost.get() as f64,
            totals.packets_sent.get() as f64,
        )
    }),
    ("rtt_mean_ms", |group| group.rtt.mean_ms()),
    ("rtt_p95_ms", |group| group.rtt.quantile_ms(0.95)),
    ("rtt_min_ms", |group| group.totals.min_rtt.map(millis)),
    ("bin_min_mbps", |group| {
        mbps(*group.bins.iter().min()?, group.bin)
    }),
    ("bin_cv", |group| {
        let bytes: Vec<_> = group.bins.iter().map(|bytes| *bytes as f64).collect();
        variation(&bytes)
    }),
    ("spurious_losses", |group| {
        Some(group.totals.spurious_losses.get() as f64)
    }),
];

/// Of groups of several members.
pub(super) const SEVERAL: &[Column<GroupFacts>] = &[("jain", |group| jain(&goodputs(group)))];

/// Of transfers.
pub(super) const TRANSFERS: &[Column<GroupFacts>] = &[
    ("started", |group| Some(group.transfers.len() as f64)),
    ("completed", |group| {
        Some(durations(group, |_| true).len() as f64)
    }),
    ("fct_mean_ms", |group| mean(&durations(group, |_| true))),
    ("fct_p50_ms", |group| {
        percentile(durations(group, |_| true), 0.5)
    }),
    ("fct_p95_ms", |group| {
        percentile(durations(group, |_| true), 0.95)
    }),
    ("fct_p99_ms", |group| {
        percentile(durations(group, |_| true), 0.99)
    }),
    ("slowdown_mean", |group| {
        let completed = group.transfers.iter().filter_map(|transfer| {
            let duration = transfer.duration?.as_secs_f64();
            ratio(duration, transfer.ideal.as_secs_f64())
        });
        mean(&completed.collect::<Vec<_>>())
    }),
    ("fct_small_mean_ms", |group| {
        mean(&durations(group, |size| size < SMALL))
    }),
    ("fct_large_mean_ms", |group| {
        mean(&durations(group, |size| size > LARGE))
    }),
];

/// Of viewers.
pub(super) const LIVE: &[Column<GroupFacts>] = &[
    ("viewers", |group| Some(group.viewers.len() as f64)),
    ("start_mean_ms", |group| mean(&starts(group))),
    ("start_p95_ms", |group| percentile(starts(group), 0.95)),
    ("started_within_1s", |group| {
        let fast = millis(FAST);
        let count = starts(group).iter().filter(|start| **start <= fast).count();
        ratio(count as f64, group.viewers.len() as f64)
    }),
    ("stalls_per_100s", |group| {
        let stalls: usize = stalls(group).iter().map(|(count, _)| count).sum();
        ratio(stalls as f64 * 100.0, viewed(group))
    }),
    ("stalled_share", |group| {
        let stalled = stalls(group).iter().filter(|(count, _)| *count > 0).count();
        ratio(stalled as f64, group.viewers.len() as f64)
    }),
    ("stall_time_share", |group| {
        let time: Duration = stalls(group).iter().map(|(_, time)| time).sum();
        ratio(time.as_secs_f64(), viewed(group))
    }),
];

/// Mbit/s of each member that was active.
pub(super) fn goodputs(group: &GroupFacts) -> Vec<f64> {
    let members = group.members.iter();
    members
        .filter_map(|member| mbps(member.bytes, member.active))
        .collect()
}

fn millis(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

/// Completion times of transfers of the chosen sizes, milliseconds.
fn durations(group: &GroupFacts, choose: fn(u64) -> bool) -> Vec<f64> {
    let chosen = group.transfers.iter().filter(|each| choose(each.size));
    chosen
        .filter_map(|each| each.duration)
        .map(millis)
        .collect()
}

/// Start-up delays of the players that started, milliseconds.
fn starts(group: &GroupFacts) -> Vec<f64> {
    let viewers = group.viewers.iter();
    viewers
        .filter_map(Viewing::start_time)
        .map(millis)
        .collect()
}

/// For each viewer the number of stalls and their total duration.
fn stalls(group: &GroupFacts) -> Vec<(usize, Duration)> {
    let viewers = group.viewers.iter().map(|viewer| {
        let counted = viewer.pauses.iter();
        let counted: Vec<_> = counted.filter(|each| **each >= group.stall_after).collect();
        (counted.len(), counted.into_iter().sum())
    });
    viewers.collect()
}

/// Seconds since the players started, of all viewers.
fn viewed(group: &GroupFacts) -> f64 {
    let viewed: Duration = group.viewers.iter().map(|viewer| viewer.viewed).sum();
    viewed.as_secs_f64()
}
