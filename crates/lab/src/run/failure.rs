//! Runs without a row.

use std::fmt;

use thiserror::Error;

use crate::scenario::{Experiment, Run};
use crate::world::RunError;

/// A failed run. The others continue, and it is run again when the experiment is run again.
#[derive(Debug)]
pub struct RunFailure {
    /// The run.
    pub run: Run,
    /// Each axis with its label.
    pub labels: Vec<(String, String)>,
    /// The problem.
    pub problem: Problem,
}

/// Why a run failed.
#[derive(Debug, Error)]
pub enum Problem {
    /// The network could not be built.
    #[error(transparent)]
    Refused(#[from] RunError),
    /// It panicked, which is a bug of the simulator or of a controller.
    #[error("panicked: {0}")]
    Panicked(String),
    /// It returned another number of values than it has measures, which is a bug of the laboratory.
    #[error("brought {got} values for {expected} measures")]
    Measures {
        /// Number of values.
        got: usize,
        /// Expected number.
        expected: usize,
    },
}

impl RunFailure {
    pub(super) fn new(experiment: &Experiment, run: Run, problem: Problem) -> Self {
        let names = experiment.axes.iter().map(|axis| axis.name.clone());
        let labels = experiment.cases[run.case].labels.iter().cloned();
        Self {
            run,
            labels: names.zip(labels).collect(),
            problem,
        }
    }
}

impl fmt::Display for RunFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Run { case, repeat, seed } = self.run;
        write!(f, "case {case} (")?;
        for (axis, label) in &self.labels {
            write!(f, "{axis}={label}, ")?;
        }
        write!(f, "seed {seed}), repeat {repeat}: {}", self.problem)
    }
}

impl std::error::Error for RunFailure {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&self.problem)
    }
}

/// The message of a panic.
pub(super) fn panic_message(payload: &(dyn std::any::Any + Send)) -> String {
    let text = payload
        .downcast_ref::<&str>()
        .copied()
        .or_else(|| payload.downcast_ref::<String>().map(String::as_str));
    text.unwrap_or("without a message").to_owned()
}
