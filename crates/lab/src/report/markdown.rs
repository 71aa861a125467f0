//! Verdicts as Markdown, for documents.

use std::fmt::Write as _;

use super::index::Counts;
use super::verdicts::{band, here, in_order, smoke_word, word};
use crate::claim::Verdict;
use crate::scenario::Experiment;

/// A heading, a line of counts and a table of the verdicts, failed ones first. Text of files is
/// escaped for its cell.
pub fn markdown(experiment: &Experiment, verdicts: &[Verdict]) -> String {
    let mut out = String::new();
    let quick = if experiment.quick {
        " (quick form)"
    } else {
        ""
    };
    let _ = writeln!(
        out,
        "### {}: {}{quick}\n",
        cell(&experiment.name),
        cell(&experiment.title)
    );
    if verdicts.is_empty() {
        out.push_str("No claims.\n");
        return out;
    }
    let counts = Counts::of(verdicts);
    let counts = if experiment.quick {
        counts.smoke()
    } else {
        counts.to_string()
    };
    let _ = writeln!(out, "{counts}.\n");
    out.push_str("| claim | statement | paper | here | passes | verdict | detail | note |\n");
    out.push_str("|---|---|---|---|---|---|---|---|\n");
    for verdict in in_order(verdicts) {
        let outcome = if experiment.quick {
            smoke_word(verdict.outcome)
        } else {
            word(verdict.outcome)
        };
        let (here, band) = (here(verdict), band(verdict));
        let cells = [
            verdict.id.as_str(),
            &verdict.says,
            &verdict.paper,
            &here,
            &band,
            outcome,
            &verdict.detail,
            &verdict.note,
        ];
        let cells: Vec<String> = cells.into_iter().map(cell).collect();
        let _ = writeln!(out, "| {} |", cells.join(" | "));
    }
    out
}

/// Text on one line, escaped so that it neither ends the cell nor starts a tag.
fn cell(text: &str) -> String {
    let words: Vec<&str> = text.split_whitespace().collect();
    words
        .join(" ")
        .replace('\\', "\\\\")
        .replace('|', "\\|")
        .replace('<', "&lt;")
}
