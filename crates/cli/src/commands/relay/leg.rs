//! `--leg`: one of several emulated networks of a relay.

use std::net::{IpAddr, SocketAddr};
use std::str::FromStr;

use swiftwater::link::{parse_duration, parse_probability};
use thiserror::Error;

use crate::exit::{Exit, Failure};
use crate::key_values::key_values;
use crate::link_args::{RelayLinkArgs, parse_ecn_threshold, parse_jitter, parse_reorder};

/// A `--leg`. What it does not name is as in the flags of the link.
#[derive(Clone, Debug)]
pub struct LegArg {
    /// What it is called in reports and changes; none: `leg` and its number.
    pub name: Option<String>,
    /// Where clients send to; `None` with `from`.
    pub listen: Option<SocketAddr>,
    /// Clients with this address use it, though they send to the leg before that listens.
    pub from: Option<IpAddr>,
    /// Another address of the server.
    pub to: Option<String>,
    /// Its links.
    pub link: RelayLinkArgs,
}

/// A `--leg` that could not be parsed.
#[derive(Clone, Debug, Eq, Error, PartialEq)]
#[error("{0}")]
pub struct LegArgError(String);

const KEYS: [&str; 19] = [
    "name",
    "listen",
    "from",
    "to",
    "rate",
    "up-rate",
    "rtt",
    "delay",
    "up-delay",
    "loss",
    "up-loss",
    "jitter",
    "buffer",
    "up-buffer",
    "queue",
    "reorder",
    "duplicate",
    "ecn-threshold",
    "trace",
];

impl FromStr for LegArg {
    type Err = LegArgError;

    fn from_str(input: &str) -> Result<Self, LegArgError> {
        let settings = key_values(&KEYS, input).map_err(|error| LegArgError(error.to_string()))?;
        let (mut name, mut listen, mut from, mut to) = (None, None, None, None);
        let mut link = RelayLinkArgs::default();
        for (key, value) in settings {
            let refused =
                |why: &dyn std::fmt::Display| LegArgError(format!("{key}={value}: {why}"));
            match key {
                "name" if value.is_empty() || value.contains('@') => {
                    return Err(refused(&"not a name"));
                }
                "name" => name = Some(value),
                "listen" => {
                    let address = crate::listen_address::parse(&value);
                    listen = Some(address.map_err(|error| refused(&error))?);
                }
                "from" => from = Some(value.parse().map_err(|error| refused(&error))?),
                "to" => to = Some(value),
                _ => set(&mut link, key, &value).map_err(|error| refused(&error))?,
            }
        }
        if link.rate.is_some() && link.trace.is_some() {
            return Err(LegArgError("either rate= or trace=, not both".to_owned()));
        }
        if listen.is_some() == from.is_some() {
            return Err(LegArgError("a leg has either listen= or from=".to_owned()));
        }
        if from.is_some() && to.is_some() {
            let text =
                "to= is for legs with listen=; with from= the server is that of the leg before";
            return Err(LegArgError(text.to_owned()));
        }
        Ok(Self {
            name,
            listen,
            from,
            to,
            link,
        })
    }
}

/// Sets one property of the links.
fn set(link: &mut RelayLinkArgs, key: &str, value: &str) -> Result<(), String> {
    fn read<T, E: ToString>(parsed: Result<T, E>) -> Result<Option<T>, String> {
        parsed.map(Some).map_err(|error| error.to_string())
    }
    match key {
        "rate" => link.rate = read(value.parse())?,
        "up-rate" => link.up_rate = read(value.parse())?,
        "rtt" => link.delay = read(parse_duration(value))?.map(|rtt| rtt / 2),
        "delay" => link.delay = read(parse_duration(value))?,
        "up-delay" => link.up_delay = read(parse_duration(value))?,
        "loss" => link.loss = read(value.parse())?,
        "up-loss" => link.up_loss = read(value.parse())?,
        "jitter" => link.jitter = read(parse_jitter(value))?,
        "buffer" => link.buffer = read(value.parse())?,
        "up-buffer" => link.up_buffer = read(value.parse())?,
        "queue" => link.queue = read(value.parse())?,
        "reorder" => link.reorder = read(parse_reorder(value))?,
        "duplicate" => link.duplicate = read(parse_probability(value))?,
        "ecn-threshold" => link.ecn_threshold = read(parse_ecn_threshold(value))?,
        _ => link.trace = Some(value.into()),
    }
    Ok(())
}

/// The names of all legs, each once.
pub(super) fn names(legs: &[LegArg]) -> Result<Vec<String>, Failure> {
    let mut names: Vec<String> = Vec::with_capacity(legs.len());
    for (place, leg) in legs.iter().enumerate() {
        let name = leg.name.clone();
        let name = name.unwrap_or_else(|| format!("leg{}", place + 1));
        if names.contains(&name) {
            return Err(Failure::new(
                Exit::Usage,
                format_args!("two legs are called {name}"),
            ));
        }
        names.push(name);
    }
    Ok(names)
}
