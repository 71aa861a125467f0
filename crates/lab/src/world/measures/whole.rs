//! Measures of a whole run.

use super::Column;
use super::facts::{RunFacts, mbps};
use super::group::goodputs;
use super::statistics::jain;

/// Jain's index that counts as fair.
const FAIR: f64 = 0.9;
/// Consecutive seconds that must be fair.
const LASTING: usize = 5;

pub(super) const COLUMNS: &[Column<RunFacts>] = &[
    ("goodput_mbps", |run| {
        let bytes = run.groups.iter().map(super::GroupFacts::bytes).sum();
        mbps(bytes, run.measured)
    }),
    ("jain", |run| {
        let bulk = run.groups.iter().filter(|group| group.is_bulk);
        let all: Vec<_> = bulk.flat_map(goodputs).collect();
        if all.len() < 2 { None } else { jain(&all) }
    }),
    ("convergence_s", |run| {
        let mut windows = run.fairness.windows(LASTING);
        let at = windows.position(|seconds| seconds.iter().all(|index| *index >= FAIR));
        at.map(|second| second as f64)
    }),
    ("intact", |run| {
        let intact = run.groups.iter().all(|group| group.intact);
        Some(if intact { 1.0 } else { 0.0 })
    }),
];
