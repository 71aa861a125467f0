//! Why a selection can't be configured.

use swiftwater_select::{Arm, ConfigError};
use thiserror::Error;

/// Why a client with [`Select`](super::Select) can't be built.
#[derive(Clone, Debug, Error, PartialEq)]
#[non_exhaustive]
pub enum SelectError {
    /// Arms or parameters are wrong.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// An arm names a congestion controller or recovery policy that doesn't exist.
    #[error("the arm {arm}: {problem}")]
    UnknownPart {
        /// The arm.
        arm: Arm,
        /// What doesn't exist, and what does.
        problem: String,
    },
}
