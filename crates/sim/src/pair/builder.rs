//! Configuration of a pair.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use swiftwater_link::LinkConfig;
use swiftwater_quic::crypto::{ClientCrypto, ServerCrypto};
use swiftwater_quic::{ClientConfig, EndpointConfig, RetryPolicy, ServerConfig, TransportConfig};
use swiftwater_units::Side;

use super::driver::Driver;
use super::transfers::Transfers;
use super::{End, Pair};
use crate::cipher::Cipher;
use crate::error::SimError;
use crate::host::HostConfig;
use crate::log::LogDetail;
use crate::network::Network;

/// Packet protection of both ends.
type Crypto = (Arc<dyn ClientCrypto>, Arc<dyn ServerCrypto>);

type Adjust<T> = Box<dyn FnOnce(&mut T)>;

/// Builds a [`Pair`]. Default: the null cipher, ideal links of 10 ms each way, seed 1, and transport
/// defaults except datagrams with a fixed size of 1200 bytes, because most tests count packets.
pub struct PairBuilder {
    seed: u64,
    cipher: Cipher,
    crypto: Option<Crypto>,
    to_server: LinkConfig,
    to_client: LinkConfig,
    client: TransportConfig,
    server: TransportConfig,
    server_adjust: Vec<Adjust<ServerConfig>>,
    endpoint_adjust: [Vec<Adjust<EndpointConfig>>; 2],
    retry: RetryPolicy,
    log: Option<LogDetail>,
    time_limit: Duration,
    max_segments: usize,
}

impl Default for PairBuilder {
    fn default() -> Self {
        let link = LinkConfig::default().delay(Duration::from_millis(10));
        Self {
            seed: 1,
            cipher: Cipher::Null,
            crypto: None,
            to_server: link.clone(),
            to_client: link,
            client: steady(),
            server: steady(),
            server_adjust: Vec::new(),
            endpoint_adjust: [Vec::new(), Vec::new()],
            retry: RetryPolicy::Never,
            log: None,
            time_limit: Duration::from_secs(300),
            max_segments: 10,
        }
    }
}

impl std::fmt::Debug for PairBuilder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PairBuilder")
            .field("seed", &self.seed)
            .field("cipher", &self.cipher)
            .field("to_server", &self.to_server)
            .field("to_client", &self.to_client)
            .finish_non_exhaustive()
    }
}

impl PairBuilder {
    /// Seed of all randomness.
    #[must_use]
    pub fn seed(mut self, seed: u64) -> Self {
        self.seed = seed;
        self
    }

    /// Packet protection.
    #[must_use]
    pub fn cipher(mut self, cipher: Cipher) -> Self {
        self.cipher = cipher;
        self
    }

    /// Packet protection supplied by the caller. Pairs that share it also share sessions, so that a
    /// later pair can resume them.
    #[must_use]
    pub fn crypto(mut self, client: Arc<dyn ClientCrypto>, server: Arc<dyn ServerCrypto>) -> Self {
        self.crypto = Some((client, server));
        self
    }

    /// The same link in both directions.
    #[must_use]
    pub fn link(self, link: LinkConfig) -> Self {
        self.links(link.clone(), link)
    }

    /// The links to the server and to the client.
    #[must_use]
    pub fn links(mut self, to_server: LinkConfig, to_client: LinkConfig) -> Self {
        self.to_server = to_server;
        self.to_client = to_client;
        self
    }

    /// Changes the client's transport configuration.
    #[must_use]
    pub fn client_config(mut self, change: impl FnOnce(&mut TransportConfig)) -> Self {
        change(&mut self.client);
        self
    }

    /// Changes the server's transport configuration.
    #[must_use]
    pub fn server_config(mut self, change: impl FnOnce(&mut TransportConfig)) -> Self {
        change(&mut self.server);
        self
    }

    /// Changes both transport configurations.
    #[must_use]
    pub fn both_configs(mut self, change: impl Fn(&mut TransportConfig)) -> Self {
        change(&mut self.client);
        change(&mut self.server);
        self
    }

    /// Changes settings of the server other than its transport configuration, such as token
    /// lifetimes.
    #[must_use]
    pub fn server_settings(mut self, change: impl FnOnce(&mut ServerConfig) + 'static) -> Self {
        self.server_adjust.push(Box::new(change));
        self
    }

    /// Changes the configuration of a side's endpoint.
    #[must_use]
    pub fn endpoint(
        mut self,
        side: Side,
        change: impl FnOnce(&mut EndpointConfig) + 'static,
    ) -> Self {
        self.endpoint_adjust[side as usize].push(Box::new(change));
        self
    }

    /// When the server validates addresses by Retry; default never.
    #[must_use]
    pub fn retry(mut self, retry: RetryPolicy) -> Self {
        self.retry = retry;
        self
    }

    /// Enables the packet log.
    #[must_use]
    pub fn log(mut self, detail: LogDetail) -> Self {
        self.log = Some(detail);
        self
    }

    /// Virtual time after which waiting methods return; default 300 s.
    #[must_use]
    pub fn time_limit(mut self, time_limit: Duration) -> Self {
        self.time_limit = time_limit;
        self
    }

    /// Most datagrams in a batch; default 10.
    #[must_use]
    pub fn max_segments(mut self, max_segments: usize) -> Self {
        self.max_segments = max_segments;
        self
    }

    /// Builds the pair, at time zero and without a connection.
    pub fn build(self) -> Result<Pair, SimError> {
        let (client_crypto, server_crypto) = match self.crypto {
            Some(crypto) => crypto,
            None => self.cipher.crypto()?,
        };
        let client_config = ClientConfig {
            crypto: client_crypto,
            transport: Arc::new(self.client),
        };
        let mut server_config = ServerConfig {
            retry: self.retry,
            ..ServerConfig::new(server_crypto, Arc::new(self.server))
        };
        for change in self.server_adjust {
            change(&mut server_config);
        }

        let mut network = Network::new(self.seed);
        if let Some(detail) = self.log {
            network.start_log(detail);
        }
        let [client_adjust, server_adjust] = self.endpoint_adjust;
        let sides = [
            (client_adjust, None),
            (server_adjust, Some(Arc::new(server_config))),
        ];
        let [client, server] = sides.map(|(changes, server)| {
            let mut endpoint = network.next_endpoint_config();
            for change in changes {
                change(&mut endpoint);
            }
            network.add_host(HostConfig {
                endpoint: Some(endpoint),
                server,
                max_segments: self.max_segments,
                keep_drained: true,
            })
        });
        let (client_node, server_node) = (network.node(client), network.node(server));
        let up = network.add_link(client_node, server_node, self.to_server)?;
        let down = network.add_link(server_node, client_node, self.to_client)?;
        let client_interface = network.add_interface(client, CLIENT.into(), up, down)?;
        let server_interface = network.add_interface(server, SERVER.into(), down, up)?;

        let board = Rc::new(RefCell::new(Transfers::default()));
        network.install(client, Driver::new(Side::Client, Rc::clone(&board)));
        network.install(server, Driver::new(Side::Server, Rc::clone(&board)));
        Ok(Pair {
            network,
            client: End::new(client, client_interface, up),
            server: End::new(server, server_interface, down),
            client_config,
            board,
            time_limit: self.time_limit,
        })
    }
}

/// Transport defaults with datagrams of one size.
fn steady() -> TransportConfig {
    TransportConfig {
        mtu_discovery: None,
        ..TransportConfig::default()
    }
}

/// Addresses of documentation networks (RFC 5737).
const CLIENT: ([u8; 4], u16) = ([192, 0, 2, 1], 49_152);
const SERVER: ([u8; 4], u16) = ([198, 51, 100, 1], 443);
