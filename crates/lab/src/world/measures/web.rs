//! Measures of browsing users: how long requests took, and what choosing their protocols cost.

use swiftwater_select::{EventKind, Transport};

use super::Column;
use super::facts::{GroupFacts, ratio};
use super::statistics::{mean, percentile};
use super::visit::{Visit, Visited};

fn times(group: &GroupFacts) -> Vec<f64> {
    group.web.as_ref().map_or_else(Vec::new, Visit::times)
}

fn share(group: &GroupFacts, which: fn(&Visited) -> bool) -> Option<f64> {
    let requests = &group.web.as_ref()?.requests;
    let count = requests.iter().filter(|request| which(request)).count();
    ratio(count as f64, requests.len() as f64)
}

fn count_of(group: &GroupFacts, which: fn(&EventKind) -> bool) -> Option<f64> {
    let events = &group.web.as_ref()?.events;
    Some(events.iter().filter(|(_, kind)| which(kind)).count() as f64)
}

fn per_request(group: &GroupFacts, count: Option<f64>) -> Option<f64> {
    ratio(count?, group.web.as_ref()?.requests.len() as f64)
}

/// Changes of the mean completion time at switches.
fn changes(group: &GroupFacts) -> Vec<f64> {
    let visit = group.web.as_ref();
    let switches = visit.map_or_else(Vec::new, Visit::switches);
    switches.into_iter().flatten().collect()
}

/// Of browsing users.
pub(super) const WEB: &[Column<GroupFacts>] = &[
    ("requests", |group| Some(times(group).len() as f64)),
    ("failed", |group| {
        let requests = &group.web.as_ref()?.requests;
        Some(requests.iter().filter(|request| request.failed).count() as f64)
    }),
    ("rct_mean_ms", |group| mean(&times(group))),
    ("rct_p50_ms", |group| percentile(times(group), 0.5)),
    ("rct_sd_ms", |group| {
        let times = times(group);
        let mean = mean(&times)?;
        let squares = times.iter().map(|time| (time - mean).powi(2));
        Some((squares.sum::<f64>() / times.len() as f64).sqrt())
    }),
    ("rct_p99_ms", |group| percentile(times(group), 0.99)),
    ("probe_share", |group| share(group, |it| it.is_probe)),
    ("less_loaded_share", |group| {
        let stats = &group.web.as_ref()?.stats;
        let less_loaded = stats.with_reason("less_loaded");
        ratio(less_loaded as f64, stats.requests as f64)
    }),
    ("hedged_share", |group| share(group, |it| it.hedged)),
    ("quic_share", |group| {
        share(group, |it| it.transport == Transport::Quic)
    }),
    ("experiment_share", |group| {
        let started = |kind: &EventKind| matches!(kind, EventKind::ExperimentStarted { .. });
        per_request(group, count_of(group, started))
    }),
    ("switches", |group| {
        Some(group.web.as_ref()?.switches().len() as f64)
    }),
    ("switch_share", |group| {
        let switches = group.web.as_ref()?.switches().len();
        per_request(group, Some(switches as f64))
    }),
    ("switch_gain_share", |group| {
        let changes = changes(group);
        let gains = changes.iter().filter(|change| **change < 0.0).count();
        ratio(gains as f64, changes.len() as f64)
    }),
    ("rollbacks", |group| {
        Some(group.web.as_ref()?.stats.rollbacks as f64)
    }),
    ("failovers", |group| {
        Some(group.web.as_ref()?.stats.failovers as f64)
    }),
    ("blocks", |group| {
        Some(group.web.as_ref()?.stats.blocks as f64)
    }),
];
