//! The task that keeps the paths of a connection as a policy says.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};

use swiftwater_net::{Connection, Endpoint, PathEvent, PathEvents};
use swiftwater_quic::{OpenPathError, SocketId};
use swiftwater_units::{Instant, PathId};
use tokio::task::JoinHandle;

use super::interfaces::InterfaceWatch;
use super::planner::{PathAction, PathPlanner};
use super::policy::PathPolicy;

/// Keeps the paths of a client's connection as a [`PathPolicy`] says, for as long as it lives: opens them as
/// the server permits, opens those again that end, and follows the interfaces of this host.
///
/// When it is dropped, the paths stay as they are.
#[derive(Debug)]
pub struct PathManager {
    task: JoinHandle<()>,
}

impl PathManager {
    /// Starts for `connection` of `endpoint`; `remotes` are further addresses of the server. Must be called
    /// inside a tokio runtime. Without multipath at either end nothing happens.
    pub fn start(
        endpoint: &Endpoint,
        connection: &Connection,
        policy: PathPolicy,
        remotes: impl IntoIterator<Item = SocketAddr>,
    ) -> Self {
        let mut addresses = vec![connection.remote_address()];
        for remote in remotes {
            if !addresses.contains(&remote) {
                addresses.push(remote);
            }
        }
        let managed = Managed {
            endpoint: endpoint.clone(),
            // Before anything happens, so that nothing is missed.
            events: connection.path_events(),
            connection: connection.clone(),
            planner: PathPlanner::new(policy, addresses),
            interfaces: InterfaceWatch::start(),
            sockets: BTreeMap::new(),
        };
        Self {
            task: tokio::spawn(managed.run()),
        }
    }
}

impl Drop for PathManager {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// What the task works on.
struct Managed {
    endpoint: Endpoint,
    connection: Connection,
    events: PathEvents,
    planner: PathPlanner,
    interfaces: InterfaceWatch,
    /// The socket of each rule, with the address that it is bound to: a path that is opened again starts
    /// there if the address is the same.
    sockets: BTreeMap<usize, (IpAddr, SocketId)>,
}

impl Managed {
    async fn run(mut self) {
        if self.connection.handshake_confirmed().await.is_err() || !self.connection.is_multipath() {
            return;
        }
        self.adopt_first();
        loop {
            self.act();
            let pause = self.pause();
            tokio::select! {
                event = self.events.next() => match event {
                    Some(event) => self.on_event(event),
                    None => return,
                },
                _ = self.interfaces.changed() => {}
                () = pause => {}
            }
        }
    }

    fn now(&self) -> Instant {
        self.connection.now()
    }

    /// Waits until the planner may have something to do.
    fn pause(&self) -> impl Future<Output = ()> + use<> {
        let now = self.now();
        let left = self
            .planner
            .next_attempt()
            .map(|at| at.saturating_since(now));
        async move {
            match left {
                Some(left) => tokio::time::sleep(left).await,
                None => std::future::pending().await,
            }
        }
    }

    /// The paths that the connection has already.
    fn adopt_first(&mut self) {
        let now = self.now();
        for path in self.connection.open_paths() {
            let Some((local, _)) = self.connection.path_addresses(path) else {
                continue;
            };
            let interfaces = self.interfaces.current();
            let rule = self.planner.adopt(now, path, local.ip(), interfaces);
            let address = self.connection.path_address();
            if let Some(rule) = rule {
                self.sockets
                    .insert(rule, (local.ip(), address.local.socket));
            }
        }
    }

    fn on_event(&mut self, event: PathEvent) {
        let now = self.now();
        match event {
            PathEvent::Available => self.planner.set_available(true),
            PathEvent::Opened { path, .. } => self.planner.on_opened(now, path),
            PathEvent::Abandoned { path, .. } => {
                self.planner.on_ended(now, path);
                // There may be room for another one.
                self.planner.set_available(true);
            }
            _ => {}
        }
    }

    /// Does what the planner says until it has nothing more to say: a path that was just opened may need
    /// its status.
    fn act(&mut self) {
        loop {
            let (now, open) = (self.now(), self.connection.open_paths());
            let actions = self.planner.plan(now, self.interfaces.current(), &open);
            if actions.is_empty() {
                return;
            }
            for action in actions {
                self.carry_out(now, action);
            }
        }
    }

    fn carry_out(&mut self, now: Instant, action: PathAction) {
        match action {
            PathAction::Open {
                rule,
                local,
                remote,
            } => match self.open(rule, local, remote) {
                Ok(path) => self.planner.on_opening(rule, path, local.ip()),
                Err(OpenPathError::Limit | OpenPathError::NoConnectionId) => {
                    self.planner.set_available(false);
                }
                Err(error) => {
                    tracing::debug!(%error, %local, %remote, "a path can't be opened");
                    self.planner.on_refused(now, rule);
                }
            },
            PathAction::Abandon { path } => {
                if let Err(error) = self.connection.abandon_path(path) {
                    tracing::debug!(%error, "a path can't be abandoned");
                }
            }
            PathAction::Prefer { path, preference } => {
                self.connection.set_path_preference(path, preference);
            }
        }
    }

    fn open(
        &mut self,
        rule: usize,
        local: SocketAddr,
        remote: SocketAddr,
    ) -> Result<PathId, OpenPathError> {
        let kept = self.sockets.get(&rule).copied();
        let kept = kept.filter(|(ip, _)| *ip == local.ip());
        let socket = match kept {
            Some((_, socket)) => socket,
            None => self.bind(rule, local).ok_or(OpenPathError::NoSuchSocket)?,
        };
        self.connection.open_path(socket, Some(remote))
    }

    /// A new socket for a rule, in the place of the one that it had.
    fn bind(&mut self, rule: usize, local: SocketAddr) -> Option<SocketId> {
        let socket = match self.endpoint.add_socket(local) {
            Ok(socket) => socket,
            Err(error) => {
                tracing::debug!(%error, "no socket for a path");
                return None;
            }
        };
        if let Some((_, old)) = self.sockets.insert(rule, (local.ip(), socket)) {
            // False for the one where connections start, which stays.
            self.endpoint.remove_socket(old);
        }
        Some(socket)
    }
}
