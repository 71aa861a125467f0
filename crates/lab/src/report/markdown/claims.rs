//! The verdicts of an experiment as a table.

use std::fmt::Write as _;

use super::cells::{cell, head, row};
use crate::claim::{Outcome, Verdict};
use crate::report::index::Counts;
use crate::report::verdicts::{band, here, in_order, smoke_word, word};
use crate::scenario::Experiment;

/// A heading, a line of counts and a table of the verdicts, failed ones first. Text of files is
/// escaped for its cell.
pub fn markdown(experiment: &Experiment, verdicts: &[Verdict]) -> String {
    format!("{}\n{}", heading(experiment), table(experiment, verdicts))
}

/// The heading of an experiment's section.
pub(super) fn heading(experiment: &Experiment) -> String {
    let quick = if experiment.quick {
        " (quick form)"
    } else {
        ""
    };
    format!(
        "### {}: {}{quick}\n",
        cell(&experiment.name),
        cell(&experiment.title)
    )
}

/// The counts and the table.
pub(super) fn table(experiment: &Experiment, verdicts: &[Verdict]) -> String {
    if verdicts.is_empty() {
        return "No claims.\n".to_owned();
    }
    let counts = Counts::of(verdicts);
    let counts = if experiment.quick {
        counts.smoke()
    } else {
        counts.to_string()
    };
    let mut out = String::new();
    let _ = writeln!(out, "{counts}.\n");
    out.push_str(&head(&[
        "claim",
        "says",
        "published",
        "here",
        "n",
        "passes if",
        "verdict",
        "detail",
    ]));
    for verdict in in_order(verdicts) {
        out.push_str(&row(&cells(verdict, experiment.quick)));
    }
    out
}

fn cells(verdict: &Verdict, quick: bool) -> Vec<String> {
    let outcome = match verdict.outcome {
        outcome if quick => smoke_word(outcome).to_owned(),
        Outcome::Fail => format!("**{}**", word(verdict.outcome)),
        outcome => word(outcome).to_owned(),
    };
    let n = match verdict.runs {
        None => "-".to_owned(),
        Some((used, all)) if used == all => all.to_string(),
        Some((used, all)) => format!("{used} of {all}"),
    };
    let mut detail = verdict.detail.trim().to_owned();
    // What passes needs no explanation.
    if verdict.outcome != Outcome::Pass && !verdict.note.trim().is_empty() {
        if !detail.is_empty() {
            detail.push_str("; ");
        }
        detail.push_str(&verdict.note);
    }
    vec![
        cell(&verdict.id),
        cell(&verdict.says),
        or_dash(&verdict.paper),
        or_dash(&here(verdict)),
        n,
        or_dash(&band(verdict)),
        outcome,
        cell(&detail),
    ]
}

fn or_dash(text: &str) -> String {
    if text.is_empty() {
        "-".to_owned()
    } else {
        cell(text)
    }
}
