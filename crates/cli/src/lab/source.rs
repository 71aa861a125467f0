//! Locations of scenarios and traces.

use std::path::PathBuf;

use clap::Args;
use swiftwater_lab::scenario::{Experiment, Library, LoadOptions};
use swiftwater_lab::store::{Manifest, Origin};

use crate::exit::Failure;

/// Locations of scenarios and traces.
#[derive(Args, Clone, Debug, Default)]
pub struct SourceArgs {
    /// Folder of scenarios, instead of those included in the program
    #[arg(long, value_name = "DIR")]
    pub scenarios: Option<PathBuf>,

    /// Folder of traces that are not included in the program
    #[arg(long, value_name = "DIR", env = "SWIFTWATER_TRACES")]
    pub traces: Option<PathBuf>,
}

impl SourceArgs {
    pub(super) fn scenarios(&self) -> Library {
        match &self.scenarios {
            Some(folder) => Library::folder(folder),
            None => Library::embedded(),
        }
    }

    /// The scenarios named by `what`, each once, in that order.
    pub(super) fn select(&self, what: &[String]) -> Result<Vec<String>, Failure> {
        let library = self.scenarios();
        let mut names: Vec<String> = Vec::new();
        for what in what {
            for name in library.select(what)? {
                if !names.contains(&name) {
                    names.push(name);
                }
            }
        }
        Ok(names)
    }

    /// The full or the short form, unmodified.
    pub(super) fn options(&self, quick: bool) -> LoadOptions {
        LoadOptions {
            quick,
            traces: self.traces.clone(),
            ..LoadOptions::default()
        }
    }

    /// Loads the experiment of existing results with the settings with which they were started;
    /// flags of this command take precedence.
    pub(super) fn experiment_of(&self, manifest: &Manifest) -> Result<Experiment, Failure> {
        let origin = manifest.origin.clone().unwrap_or_else(|| Origin {
            scenario: manifest.name.clone(),
            ..Origin::default()
        });
        let source = Self {
            scenarios: self.scenarios.clone().or(origin.scenarios),
            traces: self.traces.clone().or(origin.traces),
        };
        let options = LoadOptions {
            set: origin.set,
            repeats: origin.repeats,
            record: origin.record,
            ..source.options(manifest.quick)
        };
        Ok(source.scenarios().load(&origin.scenario, &options)?)
    }
}
