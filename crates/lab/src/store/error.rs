//! What can go wrong with a folder of results.

use std::io;
use std::path::{Path, PathBuf};

use thiserror::Error;

/// A folder of results that can't be used, or a file of it that can't be read or written.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum StoreError {
    /// The system refused.
    #[error("{}: {source}", .path.display())]
    Io {
        /// Which file or folder.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// Another process works in the folder.
    #[error("{}: another process is writing results here; wait for it, or choose another --out", .0.display())]
    InUse(PathBuf),
    /// There are no results in the folder.
    #[error("{}: no results here (there is no manifest.json)", .0.display())]
    NoResults(PathBuf),
    /// The folder holds rows of another experiment.
    #[error("{}: holds results of another experiment: {difference}; --fresh puts them aside and starts anew, another --out keeps both", .folder.display())]
    OtherExperiment {
        /// The folder.
        folder: PathBuf,
        /// What is not the same.
        difference: String,
    },
    /// A file does not hold what was written.
    #[error("{}:{line}: {expected}; --fresh puts these results aside and starts anew", .path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// Where, from 1.
        line: u64,
        /// What should be there.
        expected: String,
    },
    /// Two folders hold different results of the same run.
    #[error("{}: {what} of case {case}, repeat {repeat} is not the same as in the other folders", .folder.display())]
    Contradiction {
        /// The folder that was read later.
        folder: PathBuf,
        /// What differs: the row, the series or the samples.
        what: &'static str,
        /// The run's case.
        case: usize,
        /// The run's repeat.
        repeat: u32,
    },
    /// A run brought more or fewer values than it has measures: a bug in the laboratory.
    #[error("a run brought {got} values for {expected} measures")]
    Measures {
        /// How many there were.
        got: usize,
        /// How many there should be.
        expected: usize,
    },
}

impl StoreError {
    /// For `map_err`: the system's error with the path it is about.
    pub(super) fn io(path: &Path) -> impl Fn(io::Error) -> Self + '_ {
        move |source| Self::Io {
            path: path.to_owned(),
            source,
        }
    }

    /// For `map_err`: what the CSV library says, as an error of a file.
    pub(super) fn csv(path: &Path) -> impl Fn(csv::Error) -> Self + '_ {
        move |error| {
            let line = error.position().map_or(1, csv::Position::line);
            match error.into_kind() {
                csv::ErrorKind::Io(source) => Self::Io {
                    path: path.to_owned(),
                    source,
                },
                csv::ErrorKind::Deserialize { err, .. } => Self::Damaged {
                    path: path.to_owned(),
                    line,
                    expected: err.to_string(),
                },
                other => Self::Damaged {
                    path: path.to_owned(),
                    line,
                    expected: format!("not readable as CSV ({other:?})"),
                },
            }
        }
    }
}
