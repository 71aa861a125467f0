//! Values of flags that only `lab` has.

use std::fmt;
use std::num::NonZeroUsize;
use std::str::FromStr;
use std::time::Duration;

use clap::ValueEnum;
use thiserror::Error;

use crate::duration::parse_positive_duration;

/// A value that could not be parsed.
#[derive(Clone, Debug, Eq, Error, PartialEq)]
#[error("{0}")]
pub struct SettingError(String);

/// `--shard`: one of several parts of the runs.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Shard {
    /// Which part, from 1.
    pub part: u32,
    /// How many parts there are.
    pub parts: u32,
}

impl FromStr for Shard {
    type Err = SettingError;

    fn from_str(input: &str) -> Result<Self, SettingError> {
        let parsed = input.split_once('/').and_then(|(part, parts)| {
            let shard = Self {
                part: part.trim().parse().ok()?,
                parts: parts.trim().parse().ok()?,
            };
            (1..=shard.parts).contains(&shard.part).then_some(shard)
        });
        parsed.ok_or_else(|| SettingError("write i/n with i from 1 to n: 2/4".to_owned()))
    }
}

impl fmt::Display for Shard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.part, self.parts)
    }
}

/// `--jobs`: number of concurrent runs.
pub(super) fn parse_jobs(input: &str) -> Result<NonZeroUsize, SettingError> {
    let parsed = input.trim().parse();
    parsed.map_err(|_| SettingError("write how many runs at a time, 1 or more".to_owned()))
}

/// `--only`: one run.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Only {
    /// Its case.
    pub case: usize,
    /// Its repeat.
    pub repeat: u32,
}

impl FromStr for Only {
    type Err = SettingError;

    fn from_str(input: &str) -> Result<Self, SettingError> {
        let parsed = input.split_once('-').and_then(|(case, repeat)| {
            Some(Self {
                case: case.trim().parse().ok()?,
                repeat: repeat.trim().parse().ok()?,
            })
        });
        parsed.ok_or_else(|| {
            SettingError("write the numbers of case and repeat, as in rows.csv: 12-0".to_owned())
        })
    }
}

/// `--set`: an axis or a key of a scenario, and its new values.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Setting {
    /// The axis or key.
    pub key: String,
    /// Its value or values.
    pub value: String,
}

impl FromStr for Setting {
    type Err = SettingError;

    fn from_str(input: &str) -> Result<Self, SettingError> {
        match input.split_once('=') {
            Some((key, value)) if !key.trim().is_empty() => Ok(Self {
                key: key.trim().to_owned(),
                value: value.trim().to_owned(),
            }),
            _ => Err(SettingError(
                "write axis=value,value or key=value: buffer=1bdp,2bdp".to_owned(),
            )),
        }
    }
}

/// `--record`: the interval of the recorder.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct RecordInterval(pub Option<Duration>);

impl FromStr for RecordInterval {
    type Err = SettingError;

    fn from_str(input: &str) -> Result<Self, SettingError> {
        if input.trim() == "none" {
            return Ok(Self(None));
        }
        parse_positive_duration(input)
            .map(|interval| Self(Some(interval)))
            .map_err(|error| SettingError(format!("{error}; or write none")))
    }
}

/// `--format`: the format of rows.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq, ValueEnum)]
pub enum Format {
    /// rows.csv
    #[default]
    Csv,
    /// rows.parquet beside rows.csv
    Parquet,
}
