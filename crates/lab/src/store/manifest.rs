//! The manifest: the origin of the rows of a folder.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::whole_file::read_if_there;
use super::{StoreError, names, whole_file};
use crate::scenario::Experiment;

/// Stands for a commit that is not known.
pub const UNKNOWN_COMMIT: &str = "unknown";

/// `manifest.json`: the origin of the rows in its folder.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct Manifest {
    /// [`Experiment::name`].
    pub name: String,
    /// [`Experiment::digest`].
    pub digest: String,
    /// [`Experiment::quick`].
    pub quick: bool,
    /// Version of the program that created the folder.
    pub program: String,
    /// Commits of the builds that made the rows, in the order in which they began: one, unless the work was continued
    /// with another build, or rows of several were merged. `unknown` for a build without one, with `-dirty` at the end
    /// if its sources differed from the commit. Empty if there are no rows, or if they were made before commits were
    /// recorded.
    #[serde(default)]
    pub commits: Vec<String>,
    /// Names of the axes.
    pub axes: Vec<String>,
    /// Names of the measures.
    pub measures: Vec<String>,
    /// Number of cases.
    pub cases: usize,
    /// Runs of each case.
    pub repeats: u32,
    /// The settings to load the experiment again, if known.
    #[serde(default)]
    pub origin: Option<Origin>,
}

/// The settings of an experiment, enough to load it again.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
pub struct Origin {
    /// The requested scenario: its name or the path of its file.
    pub scenario: String,
    /// Folder of the scenarios; `None` for those in the program.
    #[serde(default)]
    pub scenarios: Option<PathBuf>,
    /// Folder of the traces, if one was given.
    #[serde(default)]
    pub traces: Option<PathBuf>,
    /// Overridden axes and keys.
    #[serde(default)]
    pub set: Vec<(String, String)>,
    /// Repeats, if given.
    #[serde(default)]
    pub repeats: Option<u32>,
    /// Interval of the recorder, if given; `Some(None)` disabled it.
    #[serde(default, with = "double_option")]
    pub record: Option<Option<Duration>>,
}

/// JSON has only one `null`: a value that was not given is omitted, a disabled one is an empty list.
mod double_option {
    use super::Duration;
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    #[allow(
        clippy::ref_option,
        clippy::option_option,
        reason = "signature required by serde"
    )]
    pub(super) fn serialize<S: Serializer>(
        value: &Option<Option<Duration>>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        let list: Option<Vec<Duration>> = value.map(|inner| inner.into_iter().collect());
        list.serialize(serializer)
    }

    #[allow(clippy::option_option, reason = "signature required by serde")]
    pub(super) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Option<Option<Duration>>, D::Error> {
        let list: Option<Vec<Duration>> = Option::deserialize(deserializer)?;
        Ok(list.map(|inner| inner.into_iter().next()))
    }
}

impl Manifest {
    /// The manifest of a new folder.
    pub(super) fn of(experiment: &Experiment, measures: Vec<String>) -> Self {
        Self {
            name: experiment.name.clone(),
            digest: experiment.digest.clone(),
            quick: experiment.quick,
            program: env!("CARGO_PKG_VERSION").to_owned(),
            commits: Vec::new(),
            axes: experiment
                .axes
                .iter()
                .map(|axis| axis.name.clone())
                .collect(),
            measures,
            cases: experiment.cases.len(),
            repeats: experiment.repeats,
            origin: None,
        }
    }

    /// Adds `commit` if it isn't there, and returns whether it was added. `has_rows` if there are rows, whose commit is
    /// unknown if none is there.
    pub(super) fn add_commit(&mut self, commit: &str, has_rows: bool) -> bool {
        if self.commits.iter().any(|known| known == commit) {
            return false;
        }
        if self.commits.is_empty() && has_rows {
            self.commits.push(UNKNOWN_COMMIT.to_owned());
        }
        if !self.commits.iter().any(|known| known == commit) {
            self.commits.push(commit.to_owned());
        }
        true
    }

    /// Reads the manifest of `folder`.
    pub fn read(folder: &Path) -> Result<Self, StoreError> {
        Self::find(folder)?.ok_or_else(|| StoreError::NoResults(folder.to_owned()))
    }

    /// Reads the manifest of `folder`; `None` if there is none.
    pub(super) fn find(folder: &Path) -> Result<Option<Self>, StoreError> {
        let path = folder.join(names::MANIFEST);
        let Some(text) = read_if_there(&path)? else {
            return Ok(None);
        };
        let manifest = serde_json::from_slice(&text).map_err(|error| StoreError::Damaged {
            path,
            line: error.line() as u64,
            expected: format!("not a manifest ({error})"),
        })?;
        Ok(Some(manifest))
    }

    pub(super) fn write(&self, folder: &Path) -> Result<(), StoreError> {
        let path = folder.join(names::MANIFEST);
        let mut text = serde_json::to_vec_pretty(self)
            .map_err(|error| StoreError::io(&path)(io::Error::from(error)))?;
        text.push(b'\n');
        whole_file::write(&path, &text)
    }

    /// Fails unless rows of `self` and of `other` may be combined in one file.
    pub(super) fn same_rows(&self, other: &Self, folder: &Path) -> Result<(), StoreError> {
        let difference = if self.name != other.name {
            format!("they are of {}, not of {}", other.name, self.name)
        } else if self.quick != other.quick {
            let form = |quick| if quick { "quick" } else { "full" };
            format!(
                "they are of the {} form, not of the {} one",
                form(other.quick),
                form(self.quick)
            )
        } else if self.digest != other.digest {
            "the scenario or its settings differ".to_owned()
        } else if self.axes != other.axes || self.cases != other.cases {
            "the axes differ".to_owned()
        } else if self.measures != other.measures {
            "the measures differ".to_owned()
        } else if self.program != other.program {
            format!(
                "they were made by version {} of this program, which is {}",
                other.program, self.program
            )
        } else {
            return Ok(());
        };
        Err(StoreError::OtherExperiment {
            folder: folder.to_owned(),
            difference,
        })
    }
}
