//! Durations on the command line, greater than zero.

use std::time::Duration;

use swiftwater::link::parse_duration;
use thiserror::Error;

/// A text that is not a duration, or is zero.
#[derive(Clone, Debug, Eq, Error, PartialEq)]
#[error("{0}")]
pub struct DurationError(String);

/// Reads `30.6ms` or `1s`, and rejects zero.
pub fn parse_positive_duration(input: &str) -> Result<Duration, DurationError> {
    let duration = parse_duration(input).map_err(|error| DurationError(error.to_string()))?;
    if duration.is_zero() {
        return Err(DurationError("it must be greater than zero".to_owned()));
    }
    Ok(duration)
}
