//! The application's handle of an endpoint.

use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use swiftwater_quic::{
    ClientConfig, ConnectError, Connection as Core, ConnectionHandle, Endpoint as EndpointCore,
    EndpointConfig, ServerConfig,
};

use crate::connection::{Connecting, Connection};
use crate::endpoint_shared::{EndpointShared, EndpointState};
use crate::error::BindError;
use crate::shared::{Handle, Shared};
use crate::socket::{Socket, SocketBuffers};
use crate::worker::Worker;

/// What an endpoint is made from.
#[derive(Clone, Debug)]
pub struct EndpointOptions {
    /// Connection IDs, tokens and limits.
    pub endpoint: EndpointConfig,
    /// How to accept connections; `None` (default) accepts none.
    pub server: Option<Arc<ServerConfig>>,
    /// Seed of all random choices of the transport. It must be unpredictable: take it from the
    /// system's generator.
    pub seed: [u8; 32],
    /// Incoming connections, handshakes in progress included, that may wait for
    /// [`Endpoint::accept`]; default 4096. Beyond it new ones are refused.
    pub accept_backlog: usize,
    /// Kernel buffer for received datagrams to ask for, bytes; default 4 MiB. The system may give
    /// less.
    pub receive_buffer: usize,
    /// Kernel buffer for datagrams to send to ask for, bytes; default 2 MiB. The system may give
    /// less.
    pub send_buffer: usize,
}

impl EndpointOptions {
    /// Defaults, for a client.
    pub fn new(endpoint: EndpointConfig, seed: [u8; 32]) -> Self {
        Self {
            endpoint,
            server: None,
            seed,
            accept_backlog: 4096,
            receive_buffer: 4 << 20,
            send_buffer: 2 << 20,
        }
    }

    /// The same, accepting connections.
    #[must_use]
    pub fn server(mut self, config: ServerConfig) -> Self {
        self.server = Some(Arc::new(config));
        self
    }
}

/// What an endpoint has done so far, and has now.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
#[non_exhaustive]
pub struct EndpointStats {
    /// Connections that are not gone, the closing ones included.
    pub connections: usize,
    /// Incoming connections that wait for [`Endpoint::accept`].
    pub waiting: usize,
    /// First packets of clients that were refused because too many waited. A client may send more
    /// than one.
    pub overflows: u64,
    /// Datagrams received.
    pub datagrams_received: u64,
    /// Datagrams sent.
    pub datagrams_sent: u64,
    /// System calls that sent them; fewer thanks to segmentation offload.
    pub sends: u64,
    /// Errors while receiving, none of which ends the endpoint.
    pub receive_errors: u64,
    /// Datagrams or batches that the system refused to send; they count as lost.
    pub send_errors: u64,
    /// Times that the endpoint's task ran.
    pub wakeups: u64,
    /// Routing: Retry, Version Negotiation, resets, refusals, drops.
    pub routing: swiftwater_quic::EndpointStats,
}

/// A UDP socket with any number of QUIC connections, as client, as server or both.
///
/// Clones are handles of the same endpoint. One task per endpoint does all its I/O; it ends when the
/// last handle is dropped and the last connection is over.
pub struct Endpoint {
    shared: Arc<EndpointShared>,
}

impl Endpoint {
    /// Binds a UDP socket and starts the task that serves it. `[::]` takes IPv4 and IPv6. Must be
    /// called inside a tokio runtime.
    ///
    /// # Panics
    ///
    /// If the runtime was built without I/O or time.
    pub fn bind(address: SocketAddr, options: EndpointOptions) -> Result<Self, BindError> {
        let buffers = SocketBuffers {
            send: options.send_buffer,
            receive: options.receive_buffer,
        };
        let socket = Socket::bind(address, buffers)?;
        let core = EndpointCore::new(options.endpoint, options.server, options.seed);
        let shared = EndpointShared::new(core, &socket, options.accept_backlog);
        let shared = Arc::new(shared);
        let worker = Worker::new(Arc::clone(&shared), socket);
        tokio::runtime::Handle::try_current()
            .map_err(|error| BindError::NoRuntime(error.to_string()))?
            .spawn(worker);
        Ok(Self::handle(shared))
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

    fn handle(shared: Arc<EndpointShared>) -> Self {
        shared.handles.fetch_add(1, Ordering::Relaxed);
        Self { shared }
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
        if !self.shared.family.reaches(remote) {
            return Err(ConnectError::InvalidAddress(remote));
        }
        let now = self.shared.clock.now();
        let mut state = self.shared.lock();
        if state.closing.is_some() || state.dead {
            return Err(ConnectError::Closing);
        }
        let (handle, connection) =
            state
                .core
                .connect_with_token(now, config, remote, server_name, token)?;
        Ok(self.add(&mut state, handle, connection))
    }

    fn add(
        &self,
        state: &mut EndpointState,
        handle: ConnectionHandle,
        connection: Core,
    ) -> Connecting {
        state.connections += 1;
        let endpoint = Arc::clone(&self.shared);
        let shared = Shared::new(handle.index(), Box::new(connection), endpoint);
        let connecting = Connecting::new(Handle::new(Arc::clone(&shared)));
        // Still under the endpoint's lock, so that a `close` after it finds the connection.
        self.shared
            .inbox
            .post(|news| news.added.push((handle, shared)));
        connecting
    }

    /// Waits for an incoming connection whose handshake is complete; `None` once the endpoint is
    /// closed. Connections whose handshake fails don't appear here.
    pub async fn accept(&self) -> Option<Connection> {
        loop {
            let ticket = self.shared.incoming.notified();
            {
                let mut state = self.shared.lock();
                if let Some(connection) = state.accept.pop_front() {
                    return Some(connection);
                }
                if state.closing.is_some() || state.dead {
                    return None;
                }
            }
            ticket.await;
        }
    }

    /// Accepts with this configuration from now on, or no longer with `None`. Existing connections
    /// are not affected.
    pub fn set_server_config(&self, config: Option<ServerConfig>) {
        let mut state = self.shared.lock();
        if state.closing.is_none() {
            state.core.set_server_config(config.map(Arc::new));
        }
    }

    /// Closes all connections with this code (below 2^62) and reason, and admits no new ones. Peers
    /// are told in the background; [`Endpoint::wait_idle`] waits for it.
    ///
    /// To let running work end first, call `set_server_config(None)`, wait for the connections'
    /// tasks, and close then.
    pub fn close(&self, code: u64, reason: &[u8]) {
        let waiting = {
            let mut state = self.shared.lock();
            if state.closing.is_some() {
                return;
            }
            state.closing = Some((code, reason.to_vec()));
            state.core.set_server_config(None);
            std::mem::take(&mut state.accept)
        };
        // The worker closes everything with the code; what nobody accepted must not close with
        // another one before.
        self.shared.inbox.post(|news| {
            news.state_changed = true;
            news.discarded.extend(waiting);
        });
        self.shared.incoming.notify_waiters();
    }

    /// Waits until no connection is left: all are closed and their closing time (three probe
    /// timeouts, in which late packets are answered) is over.
    pub async fn wait_idle(&self) {
        loop {
            let ticket = self.shared.idle.notified();
            {
                let state = self.shared.lock();
                if state.connections == 0 || state.dead {
                    return;
                }
            }
            ticket.await;
        }
    }

    /// The address the socket is bound to.
    pub fn local_addr(&self) -> SocketAddr {
        self.shared.local
    }

    /// Counters up to now.
    pub fn stats(&self) -> EndpointStats {
        let counters = &self.shared.counters;
        let get = |counter: &std::sync::atomic::AtomicU64| counter.load(Ordering::Relaxed);
        let state = self.shared.lock();
        let routing = state.core.stats();
        EndpointStats {
            connections: state.connections,
            waiting: state.accept.len(),
            overflows: routing.turned_away,
            datagrams_received: get(&counters.datagrams_received),
            datagrams_sent: get(&counters.datagrams_sent),
            sends: get(&counters.sends),
            receive_errors: get(&counters.receive_errors),
            send_errors: get(&counters.send_errors),
            wakeups: get(&counters.wakeups),
            routing,
        }
    }
}

impl Clone for Endpoint {
    fn clone(&self) -> Self {
        Self::handle(Arc::clone(&self.shared))
    }
}

impl Drop for Endpoint {
    fn drop(&mut self) {
        if self.shared.handles.fetch_sub(1, Ordering::AcqRel) != 1 {
            return;
        }
        let waiting = {
            let mut state = self.shared.lock();
            state.released = true;
            state.core.set_server_config(None);
            std::mem::take(&mut state.accept)
        };
        // Nobody can accept them any more: they close.
        drop(waiting);
        self.shared.inbox.post(|news| news.state_changed = true);
    }
}

impl fmt::Debug for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Endpoint")
            .field("local", &self.shared.local)
            .finish_non_exhaustive()
    }
}
