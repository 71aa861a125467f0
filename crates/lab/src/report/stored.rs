//! The page of results on disk.

use std::fmt::Write as _;
use std::time::Duration;

use super::data::{ReportData, RowsOrigin, needs};
use super::{ReportError, render_data};
use crate::claim::Verdict;
use crate::scenario::Experiment;
use crate::store::{Manifest, Results};

/// The page of `results`, which are those of `experiment`. Only time series and samples that
/// figures show are read.
pub fn render(
    experiment: &Experiment,
    results: &Results,
    verdicts: &[Verdict],
) -> Result<String, ReportError> {
    let needs = needs(experiment);
    let mut series = Vec::new();
    for run in needs.series.into_iter().filter(|&run| results.has(run)) {
        if let Some(recorded) = results.series(run)? {
            series.push((run, recorded));
        }
    }
    let mut samples = Vec::new();
    for run in needs.samples.into_iter().filter(|&run| results.has(run)) {
        samples.push((run, results.samples(run)?));
    }
    render_data(&ReportData {
        experiment,
        table: &results.table()?,
        series: &series,
        samples: &samples,
        verdicts,
        origin: &origin(results),
    })
}

fn origin(results: &Results) -> RowsOrigin {
    let manifest = results.manifest();
    let wall: Duration = results.timing().map(|timing| timing.wall).sum();
    let simulated: f64 = results.timing().map(|timing| timing.simulated_s).sum();
    let timed = results.timing().next().is_some();
    RowsOrigin {
        command: command(manifest),
        version: Some(manifest.program.clone()),
        commits: manifest.commits.clone(),
        wall_s: timed.then_some(wall.as_secs_f64()),
        simulated_s: timed.then_some(simulated),
    }
}

/// The command that runs the same again; `None` if it is unknown.
pub fn command(manifest: &Manifest) -> Option<String> {
    let origin = manifest.origin.as_ref()?;
    let mut out = format!("swiftwater lab run {}", quoted(&origin.scenario));
    if manifest.quick {
        out.push_str(" --quick");
    }
    for (flag, folder) in [("scenarios", &origin.scenarios), ("traces", &origin.traces)] {
        if let Some(folder) = folder {
            let _ = write!(out, " --{flag} {}", quoted(&folder.display().to_string()));
        }
    }
    for (key, value) in &origin.set {
        let _ = write!(out, " --set {}", quoted(&format!("{key}={value}")));
    }
    if let Some(repeats) = origin.repeats {
        let _ = write!(out, " --repeats {repeats}");
    }
    match origin.record {
        Some(Some(interval)) => {
            let _ = write!(out, " --record {}ms", interval.as_secs_f64() * 1e3);
        }
        Some(None) => out.push_str(" --record none"),
        None => {}
    }
    Some(out)
}

/// A word, quoted for a shell.
fn quoted(word: &str) -> String {
    let plain = |letter: char| letter.is_ascii_alphanumeric() || "-_./=,:%".contains(letter);
    if !word.is_empty() && word.chars().all(plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', "'\\''"))
    }
}
