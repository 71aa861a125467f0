//! The settings of an endpoint.

use std::net::SocketAddr;
use std::sync::Arc;

use swiftwater_quic::{EndpointConfig, ServerConfig};

use crate::faults::SocketFaults;

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
    /// [`Endpoint::accept`](crate::Endpoint::accept); default 4096. Beyond it new ones are refused. Each of several workers
    /// has its share.
    pub accept_backlog: usize,
    /// Kernel buffer for received datagrams to ask for, bytes; default 4 MiB. The system may give
    /// less.
    pub receive_buffer: usize,
    /// Kernel buffer for datagrams to send to ask for, bytes; default 2 MiB. The system may give
    /// less.
    pub send_buffer: usize,
    /// Workers that serve the address, each with a socket, a thread and connections of its own; 0
    /// takes as many as there are processors. Default 1, which runs on the caller's runtime. See
    /// [`Endpoint::bind`](crate::Endpoint::bind).
    pub workers: usize,
    /// Addresses to bind as well, one per family at most, where clients are asked to go after the
    /// handshake (RFC 9000, section 9.6); default none. Port 0 takes any.
    pub preferred: Vec<SocketAddr>,
    /// Makes system calls fail, for tests.
    #[doc(hidden)]
    pub faults: Option<Arc<dyn SocketFaults>>,
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
            workers: 1,
            preferred: Vec::new(),
            faults: None,
        }
    }

    /// The same, accepting connections.
    #[must_use]
    pub fn server(mut self, config: ServerConfig) -> Self {
        self.server = Some(Arc::new(config));
        self
    }

    /// The same with one more [preferred address](EndpointOptions::preferred).
    #[must_use]
    pub fn preferred(mut self, address: SocketAddr) -> Self {
        self.preferred.push(address);
        self
    }

    /// The same with this many [`EndpointOptions::workers`].
    #[must_use]
    pub fn workers(mut self, workers: usize) -> Self {
        self.workers = workers;
        self
    }
}
