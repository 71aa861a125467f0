//! `--path`: one of several paths of a simulation.

use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use swiftwater::link::{Buffer, EcnThreshold, Jitter, LossModel, QueueDiscipline, Rate};
use swiftwater_sim::DumbbellPath;
use thiserror::Error;

use crate::duration::parse_positive_duration;
use crate::exit::Failure;
use crate::key_values::key_values;
use crate::link_args::{parse_ecn_threshold, parse_jitter, read_trace};

/// A `--path`; what it does not name is as in the flags of the bottleneck.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PathArg {
    /// Rate.
    pub rate: Option<Rate>,
    /// Follows the rates of this trace file instead.
    pub trace: Option<PathBuf>,
    /// Round-trip time without queues.
    pub rtt: Option<Duration>,
    /// Size of the queue.
    pub buffer: Option<Buffer>,
    /// Queue discipline.
    pub queue: Option<QueueDiscipline>,
    /// Random loss.
    pub loss: Option<LossModel>,
    /// Random delay.
    pub jitter: Option<Jitter>,
    /// Queue above which packets are marked.
    pub ecn_threshold: Option<EcnThreshold>,
}

/// A `--path` that could not be parsed.
#[derive(Clone, Debug, Eq, Error, PartialEq)]
#[error("{0}")]
pub struct PathArgError(String);

const KEYS: [&str; 8] = [
    "rate",
    "trace",
    "rtt",
    "buffer",
    "queue",
    "loss",
    "jitter",
    "ecn-threshold",
];

impl FromStr for PathArg {
    type Err = PathArgError;

    fn from_str(input: &str) -> Result<Self, PathArgError> {
        let mut path = Self::default();
        let settings = key_values(&KEYS, input);
        for (key, value) in settings.map_err(|error| PathArgError(error.to_string()))? {
            path.set(key, &value)
                .map_err(|why| PathArgError(format!("{key}={value}: {why}")))?;
        }
        if path.rate.is_some() && path.trace.is_some() {
            return Err(PathArgError("either rate= or trace=, not both".to_owned()));
        }
        Ok(path)
    }
}

impl PathArg {
    fn set(&mut self, key: &str, value: &str) -> Result<(), String> {
        fn read<T, E: ToString>(parsed: Result<T, E>) -> Result<Option<T>, String> {
            parsed.map(Some).map_err(|error| error.to_string())
        }
        match key {
            "rate" => self.rate = read(value.parse())?,
            "trace" => self.trace = Some(value.into()),
            "rtt" => self.rtt = read(parse_positive_duration(value))?,
            "buffer" => self.buffer = read(value.parse())?,
            "queue" => self.queue = read(value.parse())?,
            "loss" => self.loss = read(value.parse())?,
            "jitter" => self.jitter = read(parse_jitter(value))?,
            _ => self.ecn_threshold = read(parse_ecn_threshold(value))?,
        }
        Ok(())
    }

    /// The path, with the rest of its properties from `default`.
    pub(super) fn resolve(&self, default: &DumbbellPath) -> Result<DumbbellPath, Failure> {
        let rate = match (&self.trace, &self.rate) {
            (Some(file), _) => Rate::Trace(read_trace(file)?),
            (None, Some(rate)) => rate.clone(),
            (None, None) => default.rate.clone(),
        };
        Ok(DumbbellPath {
            rate,
            rtt: self.rtt.unwrap_or(default.rtt),
            buffer: self.buffer.unwrap_or(default.buffer),
            queue: self.queue.unwrap_or(default.queue),
            loss: self.loss.unwrap_or(default.loss),
            jitter: self.jitter.unwrap_or(default.jitter),
            ecn_threshold: self.ecn_threshold.or(default.ecn_threshold),
        })
    }
}
