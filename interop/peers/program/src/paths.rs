//! The arguments of programs whose library supports several paths in a connection (RFC 10069).

use std::net::IpAddr;
use std::str::FromStr;
use std::time::Duration;

use clap::Args;
use thiserror::Error;

/// Several paths in a connection.
#[derive(Args, Clone, Debug, Default)]
pub struct PathArguments {
    /// Support several paths, so many at once.
    #[arg(long)]
    pub max_paths: Option<u32>,
    /// Client: open another path from this local address; repeatable.
    #[arg(long, requires = "max_paths")]
    pub path: Vec<IpAddr>,
    /// Do something to a path once so much was sent and received: `BYTES,abandon,PATH`,
    /// `BYTES,backup,PATH` or `BYTES,available,PATH`; repeatable, in the order of the amounts.
    #[arg(long, requires = "max_paths")]
    pub path_operation: Vec<Operation>,
    /// Send a PING on each path ten times a second.
    #[arg(long, requires = "max_paths")]
    pub probe_paths: bool,
    /// Replace connection IDs as often as this, milliseconds.
    #[arg(long, value_parser = milliseconds)]
    pub cid_lifetime: Option<Duration>,
}

/// What is done to a path, and when.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Operation {
    /// Bytes that the connection has sent and received.
    pub after: u64,
    /// The path.
    pub path: u32,
    /// What is done to it.
    pub action: Action,
}

/// What is done to a path.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Action {
    /// It is abandoned.
    Abandon,
    /// It becomes a backup.
    Backup,
    /// It becomes available.
    Available,
}

/// A text that states no operation.
#[derive(Clone, Copy, Debug, Error)]
#[error("expected BYTES,abandon|backup|available,PATH")]
pub struct OperationError;

impl FromStr for Operation {
    type Err = OperationError;

    fn from_str(text: &str) -> Result<Self, OperationError> {
        let [after, action, path] = text.split(',').collect::<Vec<_>>()[..] else {
            return Err(OperationError);
        };
        let action = match action {
            "abandon" => Action::Abandon,
            "backup" => Action::Backup,
            "available" => Action::Available,
            _ => return Err(OperationError),
        };
        Ok(Self {
            after: after.parse().map_err(|_| OperationError)?,
            path: path.parse().map_err(|_| OperationError)?,
            action,
        })
    }
}

fn milliseconds(text: &str) -> Result<Duration, std::num::ParseIntError> {
    text.parse().map(Duration::from_millis)
}
