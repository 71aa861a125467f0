//! The index page of the experiments of a collection.

use std::fmt::{self, Write as _};

use super::html::{document, escape};
use crate::claim::{Outcome, Verdict};
use crate::scenario::Experiment;

/// Number of claims per outcome.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Counts {
    /// Failed.
    pub failed: usize,
    /// Open: the interval crosses a bound of the band, or there is none.
    pub open: usize,
    /// Without data.
    pub no_data: usize,
    /// Not testable.
    pub not_testable: usize,
    /// Passed.
    pub passed: usize,
}

impl Counts {
    /// Counts verdicts.
    pub fn of(verdicts: &[Verdict]) -> Self {
        let count = |outcome| verdicts.iter().filter(|v| v.outcome == outcome).count();
        Self {
            failed: count(Outcome::Fail),
            open: count(Outcome::Open),
            no_data: count(Outcome::NoData),
            not_testable: count(Outcome::NotTestable),
            passed: count(Outcome::Pass),
        }
    }

    /// Sum of two.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        Self {
            failed: self.failed + other.failed,
            open: self.open + other.open,
            no_data: self.no_data + other.no_data,
            not_testable: self.not_testable + other.not_testable,
            passed: self.passed + other.passed,
        }
    }
}

impl Counts {
    /// Counts of a short form, which are not results about the paper: `smoke run: 14 claims inside
    /// their bands, 2 outside, 3 open, 5 without data, 1 not testable; its verdicts are not results`.
    pub fn smoke(&self) -> String {
        format!(
            "smoke run: {} claims inside their bands, {} outside, {} open, {} without data, {} not testable; \
             its verdicts are not results",
            self.passed, self.failed, self.open, self.no_data, self.not_testable
        )
    }
}

impl fmt::Display for Counts {
    /// `2 failed, 3 open, 1 without data, 0 not testable, 14 passed`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} failed, {} open, {} without data, {} not testable, {} passed",
            self.failed, self.open, self.no_data, self.not_testable, self.passed
        )
    }
}

/// An entry of the list.
#[derive(Clone, Debug, PartialEq)]
pub struct IndexEntry {
    /// [`Experiment::name`].
    pub name: String,
    /// Its title.
    pub title: String,
    /// Its source.
    pub source: String,
    /// True if rows are of the short form.
    pub quick: bool,
    /// Existing rows.
    pub rows: usize,
    /// Expected rows.
    pub expected: usize,
    /// Its counts of verdicts.
    pub counts: Counts,
    /// Path of its page, relative to the index: `e3/report.html`.
    pub link: String,
}

impl IndexEntry {
    /// The entry of an experiment with so many rows.
    pub fn new(
        experiment: &Experiment,
        rows: usize,
        verdicts: &[Verdict],
        link: impl Into<String>,
    ) -> Self {
        Self {
            name: experiment.name.clone(),
            title: experiment.title.clone(),
            source: experiment.source.clone(),
            quick: experiment.quick,
            rows,
            expected: experiment.runs().count(),
            counts: Counts::of(verdicts),
            link: link.into(),
        }
    }
}

/// Introductory note for results of a short form.
pub(super) const SMOKE: &str = "Shorter runs, fewer repeats or fewer cases than the full experiment: \
    they show that everything runs, not whether the claims hold. A claim has no data here if the short \
    form leaves out its cases. Without --quick the experiment is run in full.";

/// The page: experiments in the order given, with counts of verdicts and links.
pub fn index(entries: &[IndexEntry]) -> String {
    let total = entries
        .iter()
        .fold(Counts::default(), |sum, entry| sum.and(entry.counts));
    let is_smoke = !entries.is_empty() && entries.iter().all(|entry| entry.quick);
    let (summary, failed, passed) = if is_smoke {
        (total.smoke(), "Outside", "Inside")
    } else {
        (total.to_string(), "Failed", "Passed")
    };
    let mut body = format!(
        "<h1>Experiments</h1>\n<p>{}: {summary}.</p>\n",
        entries.len()
    );
    if entries.iter().any(|entry| entry.quick) {
        let _ = writeln!(
            body,
            "<p class=\"banner\"><b>Smoke run:</b> verdicts of the short form (quick) are not results. {SMOKE}</p>"
        );
    }
    let _ = write!(
        body,
        "<div class=\"scroll\"><table>\n<thead><tr><th>Experiment</th><th>Title</th><th>Source</th>\
         <th>Rows</th><th>{failed}</th><th>Open</th><th>No data</th><th>Not testable</th><th>{passed}</th></tr>\
         </thead>\n<tbody>\n",
    );
    for entry in entries {
        body.push_str(&row(entry));
    }
    body.push_str("</tbody>\n</table></div>\n");
    document("Experiments", "", &body)
}

fn row(entry: &IndexEntry) -> String {
    let counts = entry.counts;
    let class = match counts {
        _ if entry.quick => "smoke",
        Counts { failed: 1.., .. } => "fail",
        Counts { open: 1.., .. } => "open",
        Counts { no_data: 1.., .. } => "no-data",
        _ => "pass",
    };
    // Names have no URI scheme, so that a link stays within the folder of results.
    let link = if entry.link.contains(':') {
        "#"
    } else {
        &entry.link
    };
    let quick = if entry.quick { " (quick)" } else { "" };
    let mut out = format!(
        "<tr class=\"{class}\"><td><a href=\"{}\">{}</a></td><td>{}{quick}</td><td>{}</td>\
         <td class=\"number\">{} of {}</td>",
        escape(link),
        escape(&entry.name),
        escape(&entry.title),
        escape(&entry.source),
        entry.rows,
        entry.expected
    );
    let numbers = [
        counts.failed,
        counts.open,
        counts.no_data,
        counts.not_testable,
        counts.passed,
    ];
    for (place, number) in numbers.into_iter().enumerate() {
        let verdict = if place == 0 { " verdict" } else { "" };
        let _ = write!(out, "<td class=\"number{verdict}\">{number}</td>");
    }
    out.push_str("</tr>\n");
    out
}
