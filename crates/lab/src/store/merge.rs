//! Joins the folders of shards.

use std::path::{Path, PathBuf};

use super::whole_file::{read_if_there, write_below};
use super::{Results, StoreError, UNKNOWN_COMMIT, names};
use crate::scenario::{Experiment, Run};

/// The path of a run's series or samples in a folder.
type Name = fn(&Path, Run) -> PathBuf;

const RECORDS: [(&str, Name); 2] = [
    ("the series", names::series),
    ("the samples", names::samples),
];

/// Joins the results of `inputs`, all of the same experiment, in `out`, which may already hold
/// results of it. A run that is in several must be identical in all of them; otherwise nothing is
/// joined.
pub fn merge(
    out: &Path,
    experiment: &Experiment,
    inputs: &[PathBuf],
) -> Result<Results, StoreError> {
    // All are read and compared before anything is written.
    let inputs: Vec<Results> = inputs
        .iter()
        .map(|folder| Results::read(folder, experiment))
        .collect::<Result<_, _>>()?;
    for (index, input) in inputs.iter().enumerate() {
        for earlier in &inputs[..index] {
            compare(earlier, input)?;
        }
    }
    let mut results = Results::open(out, experiment)?;
    for input in &inputs {
        compare(&results, input)?;
    }
    for input in &inputs {
        if let (None, Some(origin)) = (&results.manifest().origin, &input.manifest().origin) {
            results.set_origin(origin.clone())?;
        }
        if input.finished().any(|(row, _)| !results.has(row.run)) {
            results.add_commits(&commits(input))?;
        }
        for (row, timing) in input.finished() {
            copy_records(&results, input, row.run)?;
            if !results.has(row.run) {
                results.add_row(row.clone(), timing.copied())?;
            }
        }
    }
    results.finish()?;
    Ok(results)
}

/// The commits of the rows of a folder that has some.
fn commits(input: &Results) -> Vec<String> {
    match input.manifest().commits.as_slice() {
        [] => vec![UNKNOWN_COMMIT.to_owned()],
        commits => commits.to_vec(),
    }
}

/// Fails if a run that is in both differs.
fn compare(earlier: &Results, input: &Results) -> Result<(), StoreError> {
    for (row, _) in input.finished() {
        let run = row.run;
        let Some(line) = earlier.line(run) else {
            continue;
        };
        if input.line(run).is_some_and(|here| here != line) {
            return Err(contradiction(input, "the row", run));
        }
        for (what, name) in RECORDS {
            let there = read_if_there(&name(earlier.folder(), run))?;
            let here = read_if_there(&name(input.folder(), run))?;
            if matches!((there, here), (Some(there), Some(here)) if there != here) {
                return Err(contradiction(input, what, run));
            }
        }
    }
    Ok(())
}

/// Copies a run's series and samples. Existing files without a row may be of a killed process; they
/// are replaced.
fn copy_records(results: &Results, input: &Results, run: Run) -> Result<(), StoreError> {
    for (_, name) in RECORDS {
        let to = name(results.folder(), run);
        if results.has(run) && to.exists() {
            continue;
        }
        if let Some(here) = read_if_there(&name(input.folder(), run))? {
            write_below(&to, &here)?;
        }
    }
    Ok(())
}

fn contradiction(input: &Results, what: &'static str, run: Run) -> StoreError {
    StoreError::Contradiction {
        folder: input.folder().to_owned(),
        what,
        case: run.case,
        repeat: run.repeat,
    }
}
