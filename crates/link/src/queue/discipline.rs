//! Which discipline a link's queue follows.

use std::time::Duration;

use thiserror::Error;

use super::codel::CoDelConfig;

/// The longest time that a parameter may be: a day.
const MAX_TIME: Duration = Duration::from_secs(24 * 60 * 60);

/// How a link's queue decides which packets it drops, marks and sends next.
///
/// `LinkConfig::buffer` limits every one of them.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[non_exhaustive]
pub enum QueueDiscipline {
    /// First in, first out; what doesn't fit is dropped. With `LinkConfig::ecn_threshold`,
    /// ECN-capable packets are marked above a step.
    #[default]
    DropTail,
    /// Controlled delay (RFC 8289): drops at the head, by how long packets waited.
    CoDel(CoDelConfig),
}

impl QueueDiscipline {
    /// Checks that every parameter is in its range.
    pub fn validate(&self) -> Result<(), QueueConfigError> {
        match self {
            Self::DropTail => Ok(()),
            Self::CoDel(config) => config.validate("codel"),
        }
    }
}

/// Why a [`QueueDiscipline`] can't be.
#[derive(Clone, Debug, Error, PartialEq)]
#[non_exhaustive]
pub enum QueueConfigError {
    /// Out of range.
    #[error("{discipline}: {parameter} is {value:?}; it must be above zero and at most a day")]
    Time {
        /// The discipline.
        discipline: &'static str,
        /// Its parameter.
        parameter: &'static str,
        /// The value.
        value: Duration,
    },
    /// Out of range.
    #[error("{discipline}: {parameter} is {value}; it must be {range}")]
    Range {
        /// The discipline.
        discipline: &'static str,
        /// Its parameter.
        parameter: &'static str,
        /// The value.
        value: f64,
        /// What it may be.
        range: &'static str,
    },
}

pub(crate) fn check_time(
    discipline: &'static str,
    parameter: &'static str,
    value: Duration,
) -> Result<(), QueueConfigError> {
    if value.is_zero() || value > MAX_TIME {
        return Err(QueueConfigError::Time {
            discipline,
            parameter,
            value,
        });
    }
    Ok(())
}
