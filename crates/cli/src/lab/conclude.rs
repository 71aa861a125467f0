//! What is done with rows: they are held against the claims, drawn, and summed up.

use std::path::PathBuf;

use serde::Serialize;
use swiftwater_lab::claim::{self, Outcome, Verdict};
use swiftwater_lab::report::{self, Counts, IndexEntry};
use swiftwater_lab::scenario::Experiment;
use swiftwater_lab::store::Results;

use super::{Format, verdicts};
use crate::exit::{Exit, Failure};

/// What came out of an experiment.
#[derive(Debug, Serialize)]
pub(super) struct Conclusion {
    pub(super) name: String,
    title: String,
    source: String,
    quick: bool,
    /// Cases times repeats.
    runs: usize,
    /// Runs that are finished.
    rows: usize,
    pub(super) folder: PathBuf,
    report: Option<PathBuf>,
    /// The page of its collection.
    pub(super) index: Option<PathBuf>,
    verdicts: Vec<Verdict>,
    /// Over all runs that are finished, whenever they were.
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

impl Conclusion {
    /// Judges the rows there are; writes verdicts and, if `draw`, the report.
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
            runs: experiment.runs().count(),
            rows: table.rows.len(),
            folder: results.folder().to_owned(),
            report,
            index: None,
            verdicts,
            simulated_s,
            busy_s,
            simulated_per_busy: (busy_s > 0.0).then(|| simulated_s / busy_s),
        })
    }

    /// For the page of its collection.
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

    /// Claims that failed.
    pub(super) fn failed(&self) -> usize {
        let failed = |verdict: &&Verdict| verdict.outcome == Outcome::Fail;
        self.verdicts.iter().filter(failed).count()
    }

    /// For people.
    pub(super) fn text(&self) -> String {
        let mut lines = vec![self.head()];
        if !self.verdicts.is_empty() {
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

/// With `--strict`, claims that failed are a failure of the command.
pub(super) fn judge<'a>(
    strict: bool,
    conclusions: impl IntoIterator<Item = &'a Conclusion>,
) -> Result<(), Failure> {
    let failed: usize = conclusions.into_iter().map(Conclusion::failed).sum();
    if strict && failed > 0 {
        let claims = if failed == 1 { "claim" } else { "claims" };
        return Err(Failure::new(
            Exit::Claims,
            format_args!("{failed} {claims} failed"),
        ));
    }
    Ok(())
}
