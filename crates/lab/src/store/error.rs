//! Errors of a folder of results.

use std::io;
use std::path::{Path, PathBuf};

use thiserror::Error;

/// A folder of results that can't be used, or a file of it that can't be read or written.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum StoreError {
    /// An error of the system.
    #[error("{}: {source}", .path.display())]
    Io {
        /// The file or folder.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// Another process works in the folder.
    #[error("{}: another process is writing results here; wait for it, or choose another --out", .0.display())]
    InUse(PathBuf),
    /// There are no results in the folder.
    #[error("{}: no results here (there is no manifest.json)", .0.display())]
    NoResults(PathBuf),
    /// The folder holds rows of another experiment.
    #[error("{}: holds results of another experiment: {difference}; --fresh moves them and starts again, another --out keeps both", .folder.display())]
    OtherExperiment {
        /// The folder.
        folder: PathBuf,
        /// The difference.
        difference: String,
    },
    /// A file is damaged.
    #[error("{}:{line}: {expected}; --fresh moves these results and starts again", .path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// The line, from 1.
        line: u64,
        /// The expected content.
        expected: String,
    },
    /// Two folders hold different results of the same run.
    #[error("{}: {what} of case {case}, repeat {repeat} is not the same as in the other folders", .folder.display())]
    Contradiction {
        /// The folder that was read later.
        folder: PathBuf,
        /// The differing part: the row, the series or the samples.
        what: &'static str,
        /// The run's case.
        case: usize,
        /// The run's repeat.
        repeat: u32,
    },
    /// A run returned more or fewer values than it has measures: a bug in the laboratory.
    #[error("a run brought {got} values for {expected} measures")]
    Measures {
        /// Number of values.
        got: usize,
        /// Expected number.
        expected: usize,
    },
}

impl StoreError {
    /// For `map_err`: adds the path to the system's error.
    pub(super) fn io(path: &Path) -> impl Fn(io::Error) -> Self + '_ {
        move |source| Self::Io {
            path: path.to_owned(),
            source,
        }
    }

    /// For `map_err`: converts an error of the CSV library to one of a file.
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
