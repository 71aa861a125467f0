//! The paths of a client's connections.

use std::net::SocketAddr;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use swiftwater::paths::{PathManager, PathPolicy};
use swiftwater::{Connection, Endpoint, PathEvent};
use tokio::time::timeout;

use super::operations::{PathOperation, RunningOperations};

/// How long [`PathManagers::opened`] waits.
const OPENING: Duration = Duration::from_secs(2);

/// A connection, and what happens to its paths.
struct Attended {
    connection: Connection,
    _manager: PathManager,
    _operations: RunningOperations,
}

/// Keeps the paths of connections as the flags say, each from the moment at which it is attended first.
pub struct PathManagers {
    endpoint: Endpoint,
    policy: PathPolicy,
    operations: Vec<PathOperation>,
    attended: Mutex<Vec<Attended>>,
}

impl PathManagers {
    /// For connections of `endpoint`.
    pub fn new(endpoint: Endpoint, policy: PathPolicy) -> Self {
        Self {
            endpoint,
            policy,
            operations: Vec::new(),
            attended: Mutex::default(),
        }
    }

    /// Does these operations to each connection.
    #[must_use]
    pub fn operations(mut self, operations: Vec<PathOperation>) -> Self {
        self.operations = operations;
        self
    }

    /// Keeps the paths of `connection` from now on; `remotes` are further addresses of its server.
    pub fn attend(&self, connection: &Connection, remotes: impl IntoIterator<Item = SocketAddr>) {
        let mut attended = self.attended.lock().unwrap_or_else(PoisonError::into_inner);
        attended.retain(|each| each.connection.close_reason().is_none());
        let id = connection.stable_id();
        if !attended
            .iter()
            .any(|each| each.connection.stable_id() == id)
        {
            let policy = self.policy.clone();
            let manager = PathManager::start(&self.endpoint, connection, policy, remotes);
            attended.push(Attended {
                connection: connection.clone(),
                _manager: manager,
                _operations: RunningOperations::start(&self.operations, connection),
            });
        }
    }

    /// As [`PathManagers::attend`], and waits until as many paths carry data as there are to be, two seconds at
    /// most; returns how many do.
    pub async fn opened(&self, connection: &Connection) -> usize {
        let mut events = connection.path_events();
        self.attend(connection, []);
        let mut open = 1;
        let all = async {
            while open < self.policy.rules.len() {
                match events.next().await {
                    Some(PathEvent::Opened { .. }) => open += 1,
                    Some(_) => {}
                    None => return,
                }
            }
        };
        let _ = timeout(OPENING, all).await;
        open
    }
}
