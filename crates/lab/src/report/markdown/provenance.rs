//! Where rows come from.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use super::cells::{cell, head, row};
use super::documented::Documented;

/// Digits of the digests of traces.
const DIGITS: usize = 12;

/// Commits, runs, repeats and seeds of each experiment, those that were not run, and the traces.
pub(super) fn provenance(experiments: &[&Documented], not_run: &[&str]) -> String {
    let mut out = String::new();
    let mut commits: Vec<String> = Vec::new();
    for documented in experiments {
        let text = documented.commits();
        if !commits.contains(&text) {
            commits.push(text);
        }
    }
    if let [commit] = commits.as_slice() {
        let _ = writeln!(out, "Commit of the build that made the rows: {commit}.\n");
    }
    let several = commits.len() > 1;
    let mut headings = vec!["experiment", "runs", "cases", "repeats", "seeds"];
    if several {
        headings.push("commit");
    }
    out.push_str(&head(&headings));
    for documented in experiments {
        let experiment = &documented.experiment;
        let quick = if experiment.quick {
            " (quick form)"
        } else {
            ""
        };
        let settings = documented.settings.iter();
        let settings: Vec<String> = settings
            .map(|(key, value)| format!(", with {key}={value}"))
            .collect();
        let mut cells = vec![
            cell(&format!("{}{quick}{}", experiment.name, settings.concat())),
            documented.runs(),
            experiment.cases.len().to_string(),
            documented.repeats(),
            documented.seeds(),
        ];
        if several {
            cells.push(documented.commits());
        }
        out.push_str(&row(&cells));
    }
    if experiments
        .iter()
        .any(|documented| documented.commits.len() > 1)
    {
        out.push_str("\nWhere several commits are named, rows of all of them are in one table.\n");
    }
    if commits.iter().any(|commit| commit.contains("-dirty")) {
        out.push_str("\n`-dirty`: the sources had changes that are in no commit.\n");
    }
    if !not_run.is_empty() {
        let _ = writeln!(out, "\nNot run: {}.", not_run.join(", "));
    }
    out.push_str(&traces(experiments));
    out
}

/// The traces of all experiments, with the start of the SHA-256 of files.
fn traces(experiments: &[&Documented]) -> String {
    let mut traces: BTreeMap<&str, &str> = BTreeMap::new();
    for documented in experiments {
        let used = documented.experiment.traces.iter();
        traces.extend(used.map(|trace| (trace.name.as_str(), trace.identity.as_str())));
    }
    if traces.is_empty() {
        return String::new();
    }
    let traces: Vec<String> = traces
        .into_iter()
        .map(|(name, identity)| {
            let is_digest = identity.chars().all(|letter| letter.is_ascii_hexdigit());
            match identity.get(..DIGITS).filter(|_| is_digest) {
                Some(start) => format!("{} ({start})", cell(name)),
                None => cell(name),
            }
        })
        .collect();
    format!(
        "\nTraces, with the first {DIGITS} digits of their SHA-256: {}.\n",
        traces.join(", ")
    )
}
