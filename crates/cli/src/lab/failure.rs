//! Failures of the laboratory, with exit codes.

use swiftwater_lab::report::ReportError;
use swiftwater_lab::run::ExecuteError;
use swiftwater_lab::scenario::ScenarioError;
use swiftwater_lab::store::StoreError;

use crate::exit::{Exit, Failure, plain_io_error};

impl From<ScenarioError> for Failure {
    fn from(error: ScenarioError) -> Self {
        let exit = match &error {
            ScenarioError::Setting { .. } => Exit::Usage,
            ScenarioError::TraceMissing { .. } | ScenarioError::Unreadable { .. } => {
                Exit::LocalFile
            }
            _ => Exit::Scenario,
        };
        let text = match &error {
            ScenarioError::Unreadable { path, why } => {
                let why = why.split(" (os error").next().unwrap_or_default();
                format!("{path}: {why}")
            }
            _ => error.to_string(),
        };
        Self::new(exit, text)
    }
}

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Self {
        match &error {
            StoreError::Io { path, source } => {
                let text = format!("{}: {}", path.display(), plain_io_error(source));
                Self::new(Exit::LocalFile, text)
            }
            _ => Self::new(Exit::LocalFile, error),
        }
    }
}

impl From<ExecuteError> for Failure {
    fn from(error: ExecuteError) -> Self {
        match error {
            ExecuteError::Store(error) => error.into(),
            ExecuteError::Shard(..) | ExecuteError::Only(..) => Self::new(Exit::Usage, error),
            ExecuteError::Thread(error) => Self::from(error).context("cannot start a thread"),
        }
    }
}

impl From<ReportError> for Failure {
    fn from(error: ReportError) -> Self {
        Self::new(Exit::Failure, error).context("the report")
    }
}
