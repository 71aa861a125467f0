//! How many claims have which verdict.

use super::cells::{cell, head, row};
use super::documented::Documented;
use crate::claim::{Outcome, Verdict};

/// The outcomes in the order of the columns; with a lowered bar only the last three occur.
const OUTCOMES: [Outcome; 5] = [
    Outcome::NoData,
    Outcome::NotTestable,
    Outcome::Fail,
    Outcome::Open,
    Outcome::Pass,
];

/// A row for each experiment and one for all; claims whose bar is lowered are counted separately.
pub(super) fn table(experiments: &[&Documented]) -> String {
    let mut out = head(&[
        "experiment",
        "no data",
        "not testable",
        "FAIL",
        "open",
        "pass",
        "lowered bar: FAIL",
        "open",
        "pass",
    ]);
    let mut total = [0; 8];
    for documented in experiments {
        let counts = counts(&documented.verdicts);
        for (sum, count) in total.iter_mut().zip(counts) {
            *sum += count;
        }
        let quick = if documented.experiment.quick {
            " (quick form)"
        } else {
            ""
        };
        let name = format!("{}{quick}", documented.experiment.name);
        out.push_str(&line(&name, counts));
    }
    if experiments.len() > 1 {
        out.push_str(&line("all", total));
    }
    out
}

fn line(name: &str, counts: [usize; 8]) -> String {
    let counts = counts.iter().map(usize::to_string);
    let cells: Vec<String> = std::iter::once(cell(name)).chain(counts).collect();
    row(&cells)
}

fn counts(verdicts: &[Verdict]) -> [usize; 8] {
    let mut counts = [0; 8];
    for verdict in verdicts {
        let place = OUTCOMES.iter().position(|&known| known == verdict.outcome);
        let place = place.unwrap_or_default();
        let is_lowered = !verdict.lowered.is_empty() && place >= 2;
        counts[place + if is_lowered { 3 } else { 0 }] += 1;
    }
    counts
}
