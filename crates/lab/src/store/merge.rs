//! Folders of shards become one.

use std::path::{Path, PathBuf};

use super::whole_file::{read_if_there, write_below};
use super::{Results, StoreError, names};
use crate::scenario::{Experiment, Run};

/// Joins the results of `inputs`, all of the same experiment, in `out`, which may hold results of it
/// already. A run that is in several must be the same in all of them.
pub fn merge(
    out: &Path,
    experiment: &Experiment,
    inputs: &[PathBuf],
) -> Result<Results, StoreError> {
    // All are read before anything is written.
    let inputs: Vec<Results> = inputs
        .iter()
        .map(|folder| Results::read(folder, experiment))
        .collect::<Result<_, _>>()?;
    let mut results = Results::open(out, experiment)?;
    for input in &inputs {
        if let (None, Some(origin)) = (&results.manifest().origin, &input.manifest().origin) {
            results.set_origin(origin.clone())?;
        }
        for (row, timing) in input.finished() {
            join_records(&results, input, row.run)?;
            match (results.line(row.run), input.line(row.run)) {
                (Some(there), Some(here)) if there != here => {
                    return Err(contradiction(input, "the row", row.run));
                }
                (Some(_), _) => {}
                (None, _) => results.add_row(row.clone(), timing.copied())?,
            }
        }
    }
    results.finish()?;
    Ok(results)
}

/// Copies a run's series and samples, or compares them with those that are there.
fn join_records(results: &Results, input: &Results, run: Run) -> Result<(), StoreError> {
    type Name = fn(&Path, Run) -> PathBuf;
    let kinds: [(&str, Name); 2] = [
        ("the series", names::series),
        ("the samples", names::samples),
    ];
    for (what, name) in kinds {
        let to = name(results.folder(), run);
        let Some(here) = read_if_there(&name(input.folder(), run))? else {
            continue;
        };
        match read_if_there(&to)? {
            // Files without a row may be of any run that was killed; the row's own replace them.
            Some(there) if there == here => {}
            Some(_) if results.has(run) => return Err(contradiction(input, what, run)),
            _ => write_below(&to, &here)?,
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
