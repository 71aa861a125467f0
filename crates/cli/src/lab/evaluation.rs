//! Evaluation of rows: claims, report and summary.

use std::path::PathBuf;

use serde::Serialize;
use swiftwater_lab::claim::{self, Outcome, Verdict};
use swiftwater_lab::report::{self, Counts, IndexEntry, MeasuredTable};
use swiftwater_lab::scenario::Experiment;
use swiftwater_lab::store::Results;

use super::{Format, verdicts};
use crate::exit::{Exit, Failure};

/// Result of an experiment.
#[derive(Debug, Serialize)]
pub(super) struct Evaluation {
    pub(super) name: String,
    title: String,
    source: String,
    quick: bool,
    /// The experiment is the unmodified long form of the scenario, which includes everything that
    /// claims need.
    #[serde(skip)]
    is_whole: bool,
    /// Cases times repeats.
    runs: usize,
    /// Runs that are finished.
    rows: usize,
    pub(super) folder: PathBuf,
    report: Option<PathBuf>,
    /// The page of its collection.
    pub(super) index: Option<PathBuf>,
    /// Commits of the builds that made the rows.
    commits: Vec<String>,
    verdicts: Vec<Verdict>,
    tables: Vec<MeasuredTable>,
    /// Over all finished runs, of this and earlier commands.
    simulated_s: f64,
    busy_s: f64,
    simulated_per_busy: Option<f64>,
}

/// Whether the program can write `format`.
pub(super) fn check_format(format: Format) -> Result<(), Failure> {
    if format == Format::Parquet && !cfg!(feature = "parquet") {
        let text = "this program was built without Parquet; build it with --features parquet";
        return Err(Failure::new(Exit::Usage, text));
    }
    Ok(())
}

impl Evaluation {
    /// Evaluates the existing rows; writes verdicts and, if `draw`, the report.
    pub(super) fn of(
        experiment: &Experiment,
        results: &Results,
        draw: bool,
        format: Format,
    ) -> Result<Self, Failure> {
        let table = results.table()?;
        let verdicts = claim::evaluate(experiment, &table);
        results.write_verdicts(&verdicts)?;
        let report = if draw {
            let page = report::render(experiment, results, &verdicts)?;
            Some(results.write_report(&page)?)
        } else {
            None
        };
        write_format(results, format)?;
        let simulated_s: f64 = results.timing().map(|timing| timing.simulated_s).sum();
        let busy_s: f64 = results
            .timing()
            .map(|timing| timing.wall.as_secs_f64())
            .sum();
        Ok(Self {
            name: experiment.name.clone(),
            title: experiment.title.clone(),
            source: experiment.source.clone(),
            quick: experiment.quick,
            is_whole: !experiment.quick && !has_settings(results),
            runs: experiment.runs().count(),
            rows: table.rows.len(),
            folder: results.folder().to_owned(),
            report,
            index: None,
            commits: results.manifest().commits.clone(),
            verdicts,
            tables: report::measured_tables(experiment, &table),
            simulated_s,
            busy_s,
            simulated_per_busy: (busy_s > 0.0).then(|| simulated_s / busy_s),
        })
    }

    /// The entry on the page of its collection.
    pub(super) fn entry(&self, link: String) -> IndexEntry {
        IndexEntry {
            name: self.name.clone(),
            title: self.title.clone(),
            source: self.source.clone(),
            quick: self.quick,
            rows: self.rows,
            expected: self.runs,
            counts: Counts::of(&self.verdicts),
            link,
        }
    }

    /// Whether this was the short form, whose verdicts are not results.
    pub(super) fn is_smoke(&self) -> bool {
        self.quick
    }

    /// Number of claims per outcome.
    pub(super) fn counts(&self) -> Counts {
        Counts::of(&self.verdicts)
    }

    /// Claims that failed.
    pub(super) fn failed(&self) -> usize {
        let failed = |verdict: &&Verdict| verdict.outcome == Outcome::Fail;
        self.verdicts.iter().filter(failed).count()
    }

    /// Claims that are open.
    pub(super) fn open(&self) -> usize {
        let open = |verdict: &&Verdict| verdict.outcome == Outcome::Open;
        self.verdicts.iter().filter(open).count()
    }

    /// Claims without data that should have them.
    pub(super) fn without_data(&self) -> usize {
        let lacks = |verdict: &&Verdict| verdict.outcome == Outcome::NoData;
        self.verdicts
            .iter()
            .filter(|_| self.is_whole)
            .filter(lacks)
            .count()
    }

    /// Human-readable summary.
    pub(super) fn text(&self) -> String {
        let mut lines = vec![self.head()];
        if !self.verdicts.is_empty() && self.quick {
            lines.push(Counts::of(&self.verdicts).smoke());
            lines.extend(verdicts::smoke_table(&self.verdicts));
        } else if !self.verdicts.is_empty() {
            lines.push(verdicts::table(&self.verdicts));
        }
        let place = self.report.as_ref().unwrap_or(&self.folder);
        let what = if self.report.is_some() {
            "report"
        } else {
            "rows"
        };
        lines.push(format!("{what}: {}", place.display()));
        lines.join("\n")
    }

    fn head(&self) -> String {
        let quick = if self.quick { " (quick)" } else { "" };
        let speed = match self.simulated_per_busy {
            Some(speed) => format!(", {speed:.1} simulated s per second of a core"),
            None => String::new(),
        };
        format!(
            "{}{quick}: {}\n{} of {} runs{speed}",
            self.name, self.title, self.rows, self.runs
        )
    }
}

fn has_settings(results: &Results) -> bool {
    let origin = results.manifest().origin.as_ref();
    origin.is_some_and(|origin| !origin.set.is_empty())
}

#[cfg(feature = "parquet")]
fn write_format(results: &Results, format: Format) -> Result<(), Failure> {
    if format == Format::Parquet {
        results.write_parquet()?;
    }
    Ok(())
}

#[cfg(not(feature = "parquet"))]
fn write_format(_: &Results, format: Format) -> Result<(), Failure> {
    check_format(format)
}

/// With `--strict`, claims that failed or are open fail the command, and so do claims without data in a complete
/// run; `is_part` if the command covered a part of the runs only.
pub(super) fn judge<'a>(
    strict: bool,
    is_part: bool,
    conclusions: impl IntoIterator<Item = &'a Evaluation>,
) -> Result<(), Failure> {
    if !strict {
        return Ok(());
    }
    let (mut failed, mut open, mut without) = (0, 0, 0);
    for conclusion in conclusions {
        failed += conclusion.failed();
        open += conclusion.open();
        if !is_part {
            without += conclusion.without_data();
        }
    }
    let counts = [
        (failed, "failed"),
        (open, "open"),
        (without, "without data"),
    ];
    let counts = counts.into_iter().filter(|&(count, _)| count > 0);
    let words: Vec<String> = counts
        .enumerate()
        .map(|(nth, (count, word))| match (nth, count) {
            (0, 1) => format!("1 claim {word}"),
            (0, count) => format!("{count} claims {word}"),
            (_, count) => format!("{count} {word}"),
        })
        .collect();
    if words.is_empty() {
        return Ok(());
    }
    Err(Failure::new(Exit::Claims, words.join(", ")))
}
