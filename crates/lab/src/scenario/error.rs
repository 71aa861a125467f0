//! Errors of a scenario, with file and line.

use std::path::PathBuf;

use thiserror::Error;

/// Why a scenario can't be loaded.
#[derive(Clone, Debug, Error, PartialEq)]
#[non_exhaustive]
pub enum ScenarioError {
    /// An error in the file.
    #[error("{file}:{line}: {what}: {expected}")]
    Invalid {
        /// The file, as named by its library.
        file: String,
        /// The line, from 1.
        line: usize,
        /// The error.
        what: String,
        /// The expected content.
        expected: String,
    },
    /// A trace that is not included in the program is missing. Other scenarios may run.
    #[error("{file}:{line}: trace `{trace}`: {}", missing(.folder.as_ref()))]
    TraceMissing {
        /// The file, as named by its library.
        file: String,
        /// The line, from 1.
        line: usize,
        /// The trace, relative to the folder of traces.
        trace: String,
        /// The folder of traces, if one was named.
        folder: Option<PathBuf>,
    },
    /// No scenario has that name.
    #[error("no scenario `{name}`: {expected}")]
    Unknown {
        /// The requested name.
        name: String,
        /// Available names.
        expected: String,
    },
    /// A file or folder that can't be read.
    #[error("{path}: can't be read: {why}")]
    Unreadable {
        /// The path.
        path: String,
        /// The error of the system.
        why: String,
    },
    /// An invalid setting of [`LoadOptions`](super::LoadOptions), by itself or in this file.
    #[error("{setting}: {expected}")]
    Setting {
        /// As written on the command line, with its flag.
        setting: String,
        /// The expected value.
        expected: String,
    },
}

fn missing(folder: Option<&PathBuf>) -> String {
    let how = "name the folder of traces with --traces or SWIFTWATER_TRACES; docs/lab.md, section Traces, \
               says where they come from";
    match folder {
        None => format!("not part of the program: {how}"),
        Some(folder) => format!("not in {}: {how}", folder.display()),
    }
}

/// The same before the file's name is known.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Fault {
    Wrong {
        line: usize,
        what: String,
        expected: String,
    },
    TraceMissing {
        line: usize,
        trace: String,
        folder: Option<PathBuf>,
    },
    Setting {
        setting: String,
        expected: String,
    },
}

/// The result of reading a part of a file.
pub(super) type Read<T> = Result<T, Fault>;

impl Fault {
    pub(super) fn new(line: usize, what: impl Into<String>, expected: impl Into<String>) -> Self {
        Self::Wrong {
            line,
            what: what.into(),
            expected: expected.into(),
        }
    }

    pub(super) fn in_file(self, file: &str) -> ScenarioError {
        let file = file.to_owned();
        match self {
            Self::Wrong {
                line,
                what,
                expected,
            } => ScenarioError::Invalid {
                file,
                line,
                what,
                expected,
            },
            Self::TraceMissing {
                line,
                trace,
                folder,
            } => ScenarioError::TraceMissing {
                file,
                line,
                trace,
                folder,
            },
            Self::Setting { setting, expected } => ScenarioError::Setting { setting, expected },
        }
    }
}

/// "did you mean", if one of `known` is similar to `found` or the only one with that prefix, and
/// otherwise all of them.
pub(super) fn known_names<'a>(found: &str, known: impl IntoIterator<Item = &'a str>) -> String {
    let known: Vec<&str> = known.into_iter().collect();
    let close = known
        .iter()
        .map(|name| (strsim::damerau_levenshtein(found, name), *name))
        .min()
        .filter(|(distance, name)| *distance <= name.len().div_ceil(6).min(3))
        .map(|(_, name)| name);
    let mut longer = known
        .iter()
        .filter(|name| found.len() >= 3 && name.starts_with(found));
    let only = longer.next().filter(|_| longer.next().is_none()).copied();
    match close.or(only) {
        Some(name) => format!("did you mean `{name}`?"),
        None if known.is_empty() => "there are none".to_owned(),
        None if known.len() > 40 => format!("known are {}, ...", known[..40].join(", ")),
        None => format!("known are {}", known.join(", ")),
    }
}
