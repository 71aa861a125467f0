//! Times on the command line that must be more than none.

use std::time::Duration;

use swiftwater::link::parse_duration;
use thiserror::Error;

/// A time that was not understood, or is none.
#[derive(Clone, Debug, Eq, Error, PartialEq)]
#[error("{0}")]
pub struct DurationError(String);

/// Reads `30.6ms` or `1s`, and refuses zero.
pub fn parse_positive_duration(input: &str) -> Result<Duration, DurationError> {
    let duration = parse_duration(input).map_err(|error| DurationError(error.to_string()))?;
    if duration.is_zero() {
        return Err(DurationError("it must be more than no time".to_owned()));
    }
    Ok(duration)
}
