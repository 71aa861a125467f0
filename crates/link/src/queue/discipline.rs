//! Choice and parameters of the queue discipline.

use std::time::Duration;

use swiftwater_units::ByteCount;
use thiserror::Error;

use super::buffer::Limit;
use super::codel::CoDelConfig;
use super::dual_pi2::DualPi2Config;
use super::fq_codel::FqCoDelConfig;
use super::red::RedConfig;

/// The longest duration of a parameter: a day.
const MAX_TIME: Duration = Duration::from_secs(24 * 60 * 60);

/// The queue discipline of a link: which packets are dropped, marked and sent next.
///
/// `LinkConfig::buffer` limits every one of them.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[non_exhaustive]
pub enum QueueDiscipline {
    /// First in, first out; packets that don't fit are dropped. With `LinkConfig::ecn_threshold`,
    /// ECN-capable packets are marked above a step.
    #[default]
    DropTail,
    /// Random early detection (Floyd and Jacobson 1993): drops or marks arriving packets, by the
    /// average length of the queue.
    Red(RedConfig),
    /// Controlled delay (RFC 8289): drops or marks at the head, by waiting time.
    CoDel(CoDelConfig),
    /// CoDel in separate queues of flows with fair queueing (RFC 8290). A packet that doesn't fit
    /// replaces a packet of the longest queue.
    FqCoDel(FqCoDelConfig),
    /// A queue for L4S traffic and one for classic traffic (RFC 9332).
    DualPi2(DualPi2Config),
}

impl QueueDiscipline {
    /// Checks that every parameter is in its range, as far as it is independent of the buffer.
    pub fn validate(&self) -> Result<(), QueueConfigError> {
        match self {
            Self::DropTail => Ok(()),
            Self::Red(config) => config.validate(),
            Self::CoDel(config) => config.validate("codel"),
            Self::FqCoDel(config) => config.validate(),
            Self::DualPi2(config) => config.validate(),
        }
    }

    /// Checks the parameters that depend on the buffer.
    pub(crate) fn validate_with(&self, limit: Limit) -> Result<(), QueueConfigError> {
        match self {
            Self::Red(config) => config.thresholds(limit).map(drop),
            _ => Ok(()),
        }
    }
}

/// Why a [`QueueDiscipline`] is invalid.
#[derive(Clone, Debug, Error, PartialEq)]
#[non_exhaustive]
pub enum QueueConfigError {
    /// Out of range.
    #[error("{discipline}: {parameter} is {value:?}; it must be {range}")]
    Duration {
        /// The discipline.
        discipline: &'static str,
        /// Its parameter.
        parameter: &'static str,
        /// The value.
        value: Duration,
        /// Its permitted range.
        range: &'static str,
    },
    /// A share of an unlimited buffer.
    #[error("red: min and max are shares of a buffer without limit; set buffer, or give bytes")]
    RedShareOfUnlimited,
    /// The thresholds are in the wrong order.
    #[error("red: min is {min} and max {max}; max must be above min")]
    RedThresholds {
        /// The lower one.
        min: ByteCount,
        /// The upper one.
        max: ByteCount,
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
        /// Its permitted range.
        range: &'static str,
    },
}

pub(crate) fn check_time(
    discipline: &'static str,
    parameter: &'static str,
    value: Duration,
) -> Result<(), QueueConfigError> {
    let in_range = !value.is_zero() && value <= MAX_TIME;
    let range = "above zero and at most a day";
    check_duration(discipline, parameter, value, in_range, range)
}

pub(crate) fn check_duration(
    discipline: &'static str,
    parameter: &'static str,
    value: Duration,
    in_range: bool,
    range: &'static str,
) -> Result<(), QueueConfigError> {
    if in_range {
        return Ok(());
    }
    Err(QueueConfigError::Duration {
        discipline,
        parameter,
        value,
        range,
    })
}

pub(crate) fn check_range(
    discipline: &'static str,
    parameter: &'static str,
    value: impl Into<f64>,
    in_range: bool,
    range: &'static str,
) -> Result<(), QueueConfigError> {
    if in_range {
        return Ok(());
    }
    Err(QueueConfigError::Range {
        discipline,
        parameter,
        value: value.into(),
        range,
    })
}
