//! Traces that links follow: files below the folder of traces, or models.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use sha2::{Digest, Sha256};
use swiftwater_link::Trace;

use super::digest::hex;
use super::error::{Fault, Read, known_names};
use super::library::is_below;
use super::reader::Reader;

/// Prefix of `trace` for models.
const SYNTHETIC: &str = "synthetic:";

type Model = fn(u64, Duration) -> Trace;

const MODELS: [(&str, Model); 3] = [
    ("lte", Trace::synthetic_lte),
    ("wifi", Trace::synthetic_wifi),
    ("leo", Trace::synthetic_leo),
];

/// Traces of one experiment, each read once.
pub(super) struct Traces {
    folder: Option<PathBuf>,
    /// The experiment's first seed: a model gives the same trace in every repeat.
    seed: u64,
    read: BTreeMap<(String, Duration), NamedTrace>,
}

/// A trace that an experiment follows.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct UsedTrace {
    /// As scenarios name it: a path below the folder of traces, or a model.
    pub name: String,
    /// SHA-256 of the file, in hexadecimal; of a model its seed and length.
    pub identity: String,
}

/// A trace and the identity of its content.
#[derive(Clone, Debug)]
pub(super) struct NamedTrace {
    pub(super) trace: Trace,
    pub(super) identity: String,
}

impl Traces {
    pub(super) fn new(folder: Option<PathBuf>, seed: u64) -> Self {
        Self {
            folder,
            seed,
            read: BTreeMap::new(),
        }
    }

    /// The traces that were named so far, each once, by name.
    pub(super) fn used(&self) -> Vec<UsedTrace> {
        let read = self.read.iter();
        read.map(|((name, _), trace)| UsedTrace {
            name: name.clone(),
            identity: trace.identity.clone(),
        })
        .collect()
    }

    /// The trace that `key` of `link` names; a model's has the length of the run.
    pub(super) fn get(
        &mut self,
        link: &Reader<'_>,
        key: &str,
        name: &str,
        duration: Duration,
    ) -> Read<NamedTrace> {
        // Files don't depend on the length of the run.
        let model = name.strip_prefix(SYNTHETIC);
        let length = model.map_or(Duration::ZERO, |_| duration);
        let index = (name.to_owned(), length);
        if let Some(trace) = self.read.get(&index) {
            return Ok(trace.clone());
        }
        let trace = match model {
            Some(model) => self.synthetic(link, key, model, duration)?,
            None => self.file(link, key, name)?,
        };
        self.read.insert(index, trace.clone());
        Ok(trace)
    }

    fn synthetic(
        &self,
        link: &Reader<'_>,
        key: &str,
        model: &str,
        duration: Duration,
    ) -> Read<NamedTrace> {
        let Some((_, make)) = MODELS.iter().find(|(name, _)| *name == model) else {
            let known = known_names(model, MODELS.iter().map(|(name, _)| *name));
            return Err(link.fault(key, format!("models of traces: {known}")));
        };
        Ok(NamedTrace {
            trace: make(self.seed, duration),
            identity: format!("{SYNTHETIC}{model} seed {} {duration:?}", self.seed),
        })
    }

    fn file(&self, link: &Reader<'_>, key: &str, name: &str) -> Read<NamedTrace> {
        if name.is_empty() || !is_below(Path::new(name)) {
            return Err(link.fault(
                key,
                "write a path below the folder of traces, or synthetic:lte, synthetic:wifi, \
                 synthetic:leo",
            ));
        }
        let missing = || Fault::TraceMissing {
            line: link.node(key).map_or(link.line(), |node| node.line),
            trace: name.to_owned(),
            folder: self.folder.clone(),
        };
        let path = self.folder.as_ref().ok_or_else(missing)?.join(name);
        if !path.is_file() {
            return Err(missing());
        }
        let text = fs::read_to_string(&path)
            .map_err(|error| link.fault(key, format!("{}: {error}", path.display())))?;
        let trace = Trace::detect(&text)
            .map_err(|error| link.fault(key, format!("{}: {error}", path.display())))?;
        Ok(NamedTrace {
            trace,
            identity: hex(&Sha256::digest(text.as_bytes())),
        })
    }
}
