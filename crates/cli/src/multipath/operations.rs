//! `--path-operation`: what is done to the paths of a connection once it has moved so much data, for
//! experiments and tests.

use std::str::FromStr;
use std::time::Duration;

use clap::Args;
use swiftwater::Connection;
use swiftwater::quic::policy::{PathPreference, PathStatus};
use swiftwater::units::PathId;
use thiserror::Error;
use tokio::task::JoinSet;
use tokio::time::sleep;

use crate::size::parse_size;

/// How often the amount of data is looked up.
const POLL: Duration = Duration::from_millis(2);

/// The flag.
#[derive(Args, Clone, Debug, Default)]
pub struct PathOperationArgs {
    /// Do something to a path once the connection has sent and received this much, for experiments and tests:
    /// abandon it, make it a backup or available again, send a PING on it, or go over to fresh connection
    /// IDs on all paths; repeatable
    #[arg(
        long,
        value_name = "SIZE,abandon|backup|available|ping|rotate[,PATH]",
        help_heading = "Paths",
        hide_short_help = true
    )]
    pub path_operation: Vec<PathOperation>,
}

/// What is done to a path, and when.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct PathOperation {
    /// UDP payload that the connection has sent and received, bytes.
    pub after: u64,
    /// What is done, as soon as the path is open.
    pub action: PathOperationAction,
}

/// What is done to a path.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum PathOperationAction {
    /// It is abandoned.
    Abandon(PathId),
    /// It is for data only while no other path works, and announced as such.
    Backup(PathId),
    /// It is used whenever the scheduler finds it best, and announced as such.
    Available(PathId),
    /// A PING is sent on it, whatever the scheduler does.
    Ping(PathId),
    /// All paths go over to fresh connection IDs.
    Rotate,
}

/// A text that states no operation.
#[derive(Clone, Debug, Eq, Error, PartialEq)]
#[error(
    "'{0}' states no operation: write 1MB,abandon,1 or 1MB,backup,1 or 1MB,available,1 or 1MB,ping,1 or \
     1MB,rotate"
)]
pub struct PathOperationError(String);

impl FromStr for PathOperation {
    type Err = PathOperationError;

    fn from_str(text: &str) -> Result<Self, PathOperationError> {
        let fail = || PathOperationError(text.chars().take(60).collect());
        let parts: Vec<_> = text.split(',').map(str::trim).collect();
        let path = |id: &str| id.parse().map(PathId::new).map_err(|_| fail());
        let (after, action) = match parts[..] {
            [after, "rotate"] => (after, PathOperationAction::Rotate),
            [after, "abandon", id] => (after, PathOperationAction::Abandon(path(id)?)),
            [after, "backup", id] => (after, PathOperationAction::Backup(path(id)?)),
            [after, "available", id] => (after, PathOperationAction::Available(path(id)?)),
            [after, "ping", id] => (after, PathOperationAction::Ping(path(id)?)),
            _ => return Err(fail()),
        };
        let after = parse_size(after).map_err(|_| fail())?;
        Ok(Self { after, action })
    }
}

impl PathOperationAction {
    fn path(self) -> Option<PathId> {
        match self {
            Self::Abandon(path) | Self::Backup(path) | Self::Available(path) | Self::Ping(path) => {
                Some(path)
            }
            Self::Rotate => None,
        }
    }

    fn carry_out(self, connection: &Connection) {
        let prefer = |path, status| {
            let cost = PathPreference::default().cost;
            connection.set_path_preference(path, PathPreference { status, cost });
        };
        match self {
            Self::Abandon(path) => {
                if let Err(error) = connection.abandon_path(path) {
                    tracing::warn!(%error, "the path was not abandoned");
                }
            }
            Self::Backup(path) => prefer(path, PathStatus::Backup),
            Self::Available(path) => prefer(path, PathStatus::Available),
            Self::Ping(path) => {
                connection.ping_path(path);
            }
            Self::Rotate => connection.rotate_connection_ids(),
        }
        tracing::info!(action = ?self, "path operation");
    }
}

/// Operations that are done when they are due, until this is dropped.
#[derive(Debug)]
pub struct RunningOperations {
    _task: JoinSet<()>,
}

impl RunningOperations {
    /// Does all of `operations` to `connection`, in the order of the amounts. Must be called inside a tokio
    /// runtime.
    pub fn start(operations: &[PathOperation], connection: &Connection) -> Self {
        let mut task = JoinSet::new();
        if !operations.is_empty() {
            let mut operations = operations.to_vec();
            operations.sort_by_key(|operation| operation.after);
            task.spawn(carry_out_all(operations, connection.clone()));
        }
        Self { _task: task }
    }
}

async fn carry_out_all(operations: Vec<PathOperation>, connection: Connection) {
    for operation in operations {
        while !is_due(&operation, &connection) {
            if connection.close_reason().is_some() {
                return;
            }
            sleep(POLL).await;
        }
        operation.action.carry_out(&connection);
    }
}

fn is_due(operation: &PathOperation, connection: &Connection) -> bool {
    let stats = connection.stats();
    let moved = stats.bytes_sent.get() + stats.bytes_received.get();
    let path = operation.action.path();
    moved >= operation.after && path.is_none_or(|path| connection.open_paths().contains(&path))
}
