//! Measures of the paths of a group of flows, where links are in parallel.

use std::time::Duration;

use swiftwater_sim::SocketTotals;

use super::facts::{GroupFacts, ratio};
use super::statistics::TimeMeter;
use crate::scenario::FlowSpec;

/// What the senders of a group did on one path.
#[derive(Debug, Default)]
pub(in crate::world) struct PathFacts {
    /// In the measured time.
    pub(in crate::world) totals: SocketTotals,
    pub(in crate::world) rtt: TimeMeter,
}

/// A measure of a path.
type Column = (&'static str, fn(&GroupFacts, &PathFacts) -> Option<f64>);

/// The path's name follows these.
const COLUMNS: [Column; 3] = [
    ("sent_share_", |group, path| {
        let all = group.paths.iter().map(|path| path.totals.bytes_sent.get());
        let all: u64 = all.sum();
        ratio(path.totals.bytes_sent.get() as f64, all as f64)
    }),
    ("copies_share_", |_, path| {
        let totals = &path.totals;
        ratio(totals.copies.get() as f64, totals.bytes_sent.get() as f64)
    }),
    ("rtt_mean_ms_", |_, path| path.rtt.mean_ms()),
];

/// The names of the measures of a flow in its group.
pub(super) fn names(flow: &FlowSpec) -> Vec<String> {
    let Some(paths) = &flow.paths else {
        return Vec::new();
    };
    let mut names = vec!["longest_gap_ms".to_owned()];
    for path in &paths.names {
        names.extend(COLUMNS.iter().map(|(name, _)| format!("{name}{path}")));
    }
    names
}

/// Their values.
pub(super) fn values(flow: &FlowSpec, group: &GroupFacts) -> Vec<Option<f64>> {
    let Some(paths) = &flow.paths else {
        return Vec::new();
    };
    let none = PathFacts::default();
    let mut values = vec![group.longest_gap.map(millis)];
    for index in 0..paths.names.len() {
        let path = group.paths.get(index).unwrap_or(&none);
        values.extend(COLUMNS.iter().map(|(_, value)| value(group, path)));
    }
    values
}

fn millis(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}
