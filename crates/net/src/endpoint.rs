//! The application's handle of an endpoint.

use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use swiftwater_quic::{
    ClientConfig, ConnectError, Connection as Core, ConnectionHandle, EndpointConfig, LocalAddress,
    ServerConfig, SocketId,
};

use crate::acceptor::Acceptor;
use crate::carrier::DatagramCarrier;
use crate::connection::{Connecting, Connection};
use crate::connection_shared::{ConnectionRef, ConnectionShared};
use crate::endpoint_options::EndpointOptions;
use crate::endpoint_shared::{EndpointShared, EndpointState};
use crate::endpoint_stats::EndpointStats;
use crate::error::BindError;
use crate::worker_pool::{Accepted, WorkerPool};

/// A UDP address with any number of QUIC connections, as client, as server or both.
///
/// Clones are handles of the same endpoint. It ends when the last handle is dropped and the last
/// connection is over.
pub struct Endpoint {
    pool: Arc<WorkerPool>,
}

impl Endpoint {
    /// Binds UDP sockets and starts to serve them. `[::]` takes IPv4 and IPv6. Must be called inside
    /// a tokio runtime.
    ///
    /// A single worker is a task of that runtime. Several have a thread each, with an event queue of
    /// its own: tasks of one runtime would share a queue that one thread at a time asks. The system
    /// spreads clients over the sockets by their addresses. A connection stays with the worker that
    /// accepted it: when its packets arrive at another one, because the client moved, they are
    /// handed over. Servers gain from it when one processor can't serve all their connections;
    /// connections that are opened here are spread too, but most of their packets arrive at the
    /// wrong worker, so that endpoints which only connect should have one.
    ///
    /// # Panics
    ///
    /// If the runtime was built without I/O or time.
    #[allow(
        clippy::needless_pass_by_value,
        reason = "options are made for one endpoint"
    )]
    pub fn bind(address: SocketAddr, options: EndpointOptions) -> Result<Self, BindError> {
        let pool = Arc::new(WorkerPool::start(address, &options)?);
        Ok(Self::handle(pool))
    }

    /// Binds an endpoint that only connects.
    pub fn client(
        address: SocketAddr,
        config: EndpointConfig,
        seed: [u8; 32],
    ) -> Result<Self, BindError> {
        Self::bind(address, EndpointOptions::new(config, seed))
    }

    /// Binds an endpoint that accepts connections.
    pub fn server(
        address: SocketAddr,
        config: EndpointConfig,
        seed: [u8; 32],
        server: ServerConfig,
    ) -> Result<Self, BindError> {
        Self::bind(address, EndpointOptions::new(config, seed).server(server))
    }

    /// An endpoint whose datagrams `carrier` carries in the place of a UDP socket. It has one worker, a task of the
    /// caller's runtime; the options for sockets have no effect. Must be called inside a tokio runtime.
    pub fn over(
        carrier: Arc<dyn DatagramCarrier>,
        options: &EndpointOptions,
    ) -> Result<Self, BindError> {
        let pool = Arc::new(WorkerPool::over(carrier, options)?);
        Ok(Self::handle(pool))
    }

    /// The carrier over which new connections start; `None` if they start from a UDP socket of the system.
    pub fn carrier(&self) -> Option<Arc<dyn DatagramCarrier>> {
        self.pool.first().lock().sockets.carrier().cloned()
    }

    fn handle(pool: Arc<WorkerPool>) -> Self {
        pool.handles.fetch_add(1, Ordering::Relaxed);
        Self { pool }
    }

    /// Starts a connection to `remote`, which must prove to be `server_name`.
    pub fn connect(
        &self,
        config: &ClientConfig,
        remote: SocketAddr,
        server_name: &str,
    ) -> Result<Connecting, ConnectError> {
        self.connect_with_token(config, remote, server_name, Vec::new())
    }

    /// Like [`Endpoint::connect`], with a token from [`Connection::take_tokens`] of an earlier
    /// connection to the same server. Use each token once.
    pub fn connect_with_token(
        &self,
        config: &ClientConfig,
        remote: SocketAddr,
        server_name: &str,
        token: Vec<u8>,
    ) -> Result<Connecting, ConnectError> {
        let worker = self.pool.next();
        let now = worker.clock.now();
        let mut state = worker.lock();
        if !state.sockets.reaches(remote) {
            return Err(ConnectError::InvalidAddress(remote));
        }
        if state.closing.is_some() || state.dead {
            return Err(ConnectError::Closing);
        }
        let (handle, connection) =
            state
                .core
                .connect_with_token(now, config, remote, server_name, token)?;
        Ok(add(worker, &mut state, handle, connection))
    }

    /// Waits for an incoming connection whose handshake is complete; `None` once the endpoint is
    /// closed. Connections whose handshake fails don't appear here.
    ///
    /// A connection with early data that are accepted comes earlier, as do all if the server may send
    /// before the handshake is complete ([`ServerConfig::half_rtt`]): see
    /// [`Connection::is_handshaking`].
    pub async fn accept(&self) -> Option<Connection> {
        loop {
            let ticket = self.pool.signals().incoming.notified();
            match self.pool.take_accepted() {
                Accepted::Connection(connection) => return Some(connection),
                Accepted::None => {}
                Accepted::Never => return None,
            }
            ticket.await;
        }
    }

    /// An acceptor for each worker. With several workers, a task for each of them on the runtime of its worker
    /// ([`Acceptor::runtime`]) saves what [`Endpoint::accept`] costs: two wake-ups across threads for each connection.
    /// What takes connections from both takes each once.
    pub fn acceptors(&self) -> Vec<Acceptor> {
        let workers = self.pool.workers().iter();
        workers
            .map(|worker| Acceptor::new(Arc::clone(worker)))
            .collect()
    }

    /// Accepts with this configuration from now on, or no longer with `None`. Existing connections
    /// are not affected.
    pub fn set_server_config(&self, config: Option<ServerConfig>) {
        let config = config.map(Arc::new);
        for worker in self.pool.workers() {
            let mut state = worker.lock();
            if state.closing.is_none() {
                state.core.set_server_config(config.clone());
            }
        }
    }

    /// Closes all connections with this code (below 2^62) and reason, and admits no new ones. Peers
    /// are notified in the background; [`Endpoint::wait_idle`] waits for it.
    ///
    /// To let running work end first, call `set_server_config(None)`, wait for the connections'
    /// tasks, and close then.
    pub fn close(&self, code: u64, reason: &[u8]) {
        for worker in self.pool.workers() {
            let waiting = {
                let mut state = worker.lock();
                if state.closing.is_some() {
                    continue;
                }
                state.closing = Some((code, reason.to_vec()));
                state.core.set_server_config(None);
                std::mem::take(&mut state.accept)
            };
            // The worker closes everything with the code; what was not accepted must not close with
            // another one before.
            worker.inbox.post(|messages| {
                messages.state_changed = true;
                messages.discarded.extend(waiting);
            });
            worker.wake_acceptors();
        }
    }

    /// Waits until no connection is left: all are closed and their closing time (three probe
    /// timeouts, in which late packets are answered) is over.
    pub async fn wait_idle(&self) {
        loop {
            let ticket = self.pool.signals().idle.notified();
            let is_idle = |worker: &Arc<EndpointShared>| {
                let state = worker.lock();
                state.connections == 0 || state.dead
            };
            if self.pool.workers().iter().all(is_idle) {
                return;
            }
            ticket.await;
        }
    }

    /// The address of the socket that new connections start from: the first one, or that of the last
    /// [`Endpoint::rebind`].
    pub fn local_addr(&self) -> SocketAddr {
        self.pool.first().lock().sockets.local()
    }

    /// The address that one of the endpoint's sockets is bound to; `None` if there is no such socket.
    pub fn socket_addr(&self, socket: SocketId) -> Option<SocketAddr> {
        self.pool.first().lock().sockets.address(socket)
    }

    /// Binds one more UDP socket. Connections can go there with [`Connection::migrate`]; an endpoint
    /// that accepts connections accepts them there, too.
    pub fn add_socket(&self, address: SocketAddr) -> Result<SocketId, BindError> {
        self.pool.add_socket(address)
    }

    /// Binds another UDP socket, moves all connections that were opened here to it at once, and
    /// starts new ones from there. For hosts that have lost their old address; where it still works,
    /// [`Connection::migrate`] moves one connection at a time without a risk.
    ///
    /// A connection that can't move ([`MigrateError`](swiftwater_quic::MigrateError)) stays at its
    /// old socket, which remains open; see [`Endpoint::remove_socket`].
    pub fn rebind(&self, address: SocketAddr) -> Result<SocketId, BindError> {
        let socket = self.pool.add_socket(address)?;
        for worker in self.pool.workers() {
            let mut state = worker.lock();
            state.sockets.set_current(socket);
            state.core.set_local_address(LocalAddress::any(socket));
            worker.inbox.post(|messages| messages.rebind = Some(socket));
        }
        Ok(socket)
    }

    /// Closes a socket; what connections still send there is lost. False if there is no such socket,
    /// or if new connections start there.
    pub fn remove_socket(&self, socket: SocketId) -> bool {
        let mut removed = false;
        for worker in self.pool.workers() {
            removed |= worker.lock().sockets.remove(socket);
            if removed {
                worker
                    .inbox
                    .post(|messages| messages.closed_sockets.push(socket));
            }
        }
        removed
    }

    /// Counters up to now, of all workers together.
    pub fn stats(&self) -> EndpointStats {
        let mut sum = EndpointStats::default();
        for stats in self.worker_stats() {
            sum += stats;
        }
        sum
    }

    /// Counters up to now, worker by worker.
    pub fn worker_stats(&self) -> Vec<EndpointStats> {
        let workers = self.pool.workers().iter();
        workers.map(|worker| EndpointStats::of(worker)).collect()
    }
}

fn add(
    worker: &Arc<EndpointShared>,
    state: &mut EndpointState,
    handle: ConnectionHandle,
    connection: Core,
) -> Connecting {
    state.connections += 1;
    let shared = ConnectionShared::new(handle.index(), Box::new(connection), worker.clone());
    let connecting = Connecting::new(ConnectionRef::new(Arc::clone(&shared)));
    // Still under the endpoint's lock, so that a `close` after it finds the connection.
    worker
        .inbox
        .post(|messages| messages.added.push((handle, shared)));
    connecting
}

impl Clone for Endpoint {
    fn clone(&self) -> Self {
        Self::handle(Arc::clone(&self.pool))
    }
}

impl Drop for Endpoint {
    fn drop(&mut self) {
        if self.pool.handles.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.pool.release();
        }
    }
}

impl fmt::Debug for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Endpoint")
            .field("local", &self.local_addr())
            .finish_non_exhaustive()
    }
}
