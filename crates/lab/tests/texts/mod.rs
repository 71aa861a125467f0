//! Scenarios as texts.

#![allow(dead_code, reason = "not every test needs every part")]

use swiftwater_lab::scenario::{Experiment, Library, LoadOptions, ScenarioError};

/// A scenario of one link and one flow, with `blocks` after `[run]` and `link` inside the link.
pub(crate) fn dumbbell(blocks: &str, link: &str) -> String {
    format!(
        "title = \"t\"\n[run]\nduration = \"5s\"\nrtt = \"30ms\"\n{blocks}\n\
         [[link]]\nrate = \"20mbit\"\n{link}\n\
         [[flow]]\napp = \"bulk\"\ncc = \"cubic\"\n"
    )
}

/// Loads a text that must be valid.
pub(crate) fn load(text: &str) -> Experiment {
    load_with(text, &LoadOptions::default()).expect("valid")
}

/// Loads a text as the file `s.toml` in a library that has the sizes of the project.
pub(crate) fn load_with(text: &str, options: &LoadOptions) -> Result<Experiment, ScenarioError> {
    let folder = tempfile::tempdir().expect("temporary folder");
    let path = folder.path().join("s.toml");
    std::fs::write(&path, text).expect("file");
    Library::embedded().load(&path.display().to_string(), options)
}
