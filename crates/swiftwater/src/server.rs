//! The QUIC server: accepts connections with default settings.

use std::fmt;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use swiftwater_http::tcp::Certificates;
use swiftwater_net::{Acceptor, Connection, Endpoint};
use swiftwater_quic::units::ByteCount;
use swiftwater_quic::{
    AcceptPolicy, ConnectionIdGenerator, EarlyData, RetryPolicy, ServerConfig, UsedTokens,
};
use swiftwater_tls::rustls::server::ResolvesServerCert;
use swiftwater_tls::rustls::server::danger::ClientCertVerifier;
use swiftwater_tls::{DevCertificate, EndpointSecrets, ServerTls, Tickets};

use crate::builder::Builder;
use crate::error::BuildError;
use crate::settings::Settings;

/// Accepts connections on one UDP socket.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use swiftwater::{DevCertificate, Server};
///
/// let certificate = DevCertificate::generate(["localhost"])?;
/// let server = Server::builder()
///     .dev_certificate(&certificate)
///     .alpn(["hq-interop"])
///     .bind("127.0.0.1:0".parse()?)?;
/// # server.close().await;
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Server {
    endpoint: Endpoint,
}

#[derive(Clone, Debug)]
enum Identity {
    None,
    Tls(ServerTls),
    Pem { chain: Vec<u8>, key: Vec<u8> },
    Files { chain: PathBuf, key: PathBuf },
    Dev(Box<DevCertificate>),
    Resolver(Arc<dyn ResolvesServerCert>),
}

/// Builds a [`Server`].
pub type ServerBuilder = Builder<ServerSide>;

/// Settings of a [`ServerBuilder`] in addition to those of both roles: certificate, limits, workers.
#[derive(Clone)]
pub struct ServerSide {
    identity: Identity,
    clients: Option<Arc<dyn ClientCertVerifier>>,
    retry: RetryPolicy,
    max_connections: Option<usize>,
    share_by_address: bool,
    used_tokens: Arc<UsedTokens>,
    tickets: Tickets,
    early_data: EarlyData,
    half_rtt: bool,
    workers: usize,
    preferred: Vec<SocketAddr>,
    further: Vec<SocketAddr>,
    cids: Option<Arc<dyn ConnectionIdGenerator>>,
    secrets: Option<Arc<EndpointSecrets>>,
    accept: Option<Arc<dyn AcceptPolicy>>,
}

impl fmt::Debug for ServerSide {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ServerSide")
            .field("identity", &self.identity)
            .field("workers", &self.workers)
            .finish_non_exhaustive()
    }
}

impl Server {
    /// A server with the profile [`Profile::Web`](crate::Profile::Web). It needs a certificate.
    pub fn builder() -> ServerBuilder {
        Builder::new(ServerSide {
            identity: Identity::None,
            clients: None,
            retry: RetryPolicy::Above(1000),
            max_connections: None,
            share_by_address: true,
            used_tokens: Arc::default(),
            tickets: Tickets::SingleUse { capacity: 4096 },
            early_data: EarlyData::Reject,
            half_rtt: false,
            workers: 1,
            preferred: Vec::new(),
            further: Vec::new(),
            cids: None,
            secrets: None,
            accept: None,
        })
    }

    /// Waits for a client whose handshake is complete; `None` once the server is closed.
    pub async fn accept(&self) -> Option<Connection> {
        self.endpoint.accept().await
    }

    /// An acceptor for each [worker](ServerBuilder::workers), for servers with many handshakes: accepting on a
    /// worker's own thread wakes no other thread. See [`Endpoint::acceptors`].
    pub fn acceptors(&self) -> Vec<Acceptor> {
        self.endpoint.acceptors()
    }

    /// The address the server listens on.
    pub fn local_addr(&self) -> SocketAddr {
        self.endpoint.local_addr()
    }

    /// The underlying endpoint, for all other operations.
    pub fn endpoint(&self) -> &Endpoint {
        &self.endpoint
    }

    /// Closes all connections with code 0 and waits until CONNECTION_CLOSE was sent to the peers.
    pub async fn close(&self) {
        self.endpoint.close(0, b"");
        self.endpoint.wait_idle().await;
    }
}

impl ServerBuilder {
    /// Cooperates with tunnels that repair losses near the client and report on their rate and queue (TECC, NSDI 2024):
    /// the congestion controller `follow-external`, the loss judge and the feedback policy `tecc`. Clients have
    /// [`ClientBuilder::tecc`](crate::ClientBuilder::tecc); towards all others it is CUBIC with the loss detection of
    /// RFC 9002.
    #[must_use]
    pub fn tecc(self) -> Self {
        self.congestion("follow-external")
            .loss_judge("tecc")
            .feedback("tecc")
    }

    /// Uses the certificates of this PEM file, the server's own first, and the key of that one.
    #[must_use]
    pub fn certificate_files(mut self, chain: impl AsRef<Path>, key: impl AsRef<Path>) -> Self {
        self.side.identity = Identity::Files {
            chain: chain.as_ref().to_owned(),
            key: key.as_ref().to_owned(),
        };
        self
    }

    /// Uses the certificates of this PEM text, the server's own first, and that key.
    #[must_use]
    pub fn certificate_pem(mut self, chain: impl Into<Vec<u8>>, key: impl Into<Vec<u8>>) -> Self {
        self.side.identity = Identity::Pem {
            chain: chain.into(),
            key: key.into(),
        };
        self
    }

    /// Uses a self-signed certificate, which clients must be configured to trust.
    #[must_use]
    pub fn dev_certificate(mut self, certificate: &DevCertificate) -> Self {
        self.side.identity = Identity::Dev(Box::new(certificate.clone()));
        self
    }

    /// Uses the certificate that `resolver` chooses for each handshake, by the client's server name or
    /// after a renewal.
    #[must_use]
    pub fn certificate_resolver(mut self, resolver: Arc<dyn ResolvesServerCert>) -> Self {
        self.side.identity = Identity::Resolver(resolver);
        self
    }

    /// Asks clients for a certificate, which `verifier` checks, such as
    /// [`ClientAuthorities`](swiftwater_tls::ClientAuthorities): see
    /// [`ServerTls::client_certificates`]. [`Connection::peer_certificates`] has the client's; HTTP services find it in
    /// [`ConnectionInfo`](swiftwater_http::web::connection_info::ConnectionInfo). Sessions are not resumed then. Not
    /// with [`ServerBuilder::tls`], whose configuration decides itself.
    #[must_use]
    pub fn client_certificates(mut self, verifier: Arc<dyn ClientCertVerifier>) -> Self {
        self.side.clients = Some(verifier);
        self
    }

    /// The resolver of the certificate of each handshake, for QUIC and TCP.
    pub(crate) fn certificates(&self) -> Result<Arc<dyn ResolvesServerCert>, BuildError> {
        let certificates = match &self.side.identity {
            Identity::None => return Err(BuildError::NoCertificate),
            Identity::Tls(_) => return Err(BuildError::TlsForQuicOnly),
            Identity::Resolver(resolver) => return Ok(Arc::clone(resolver)),
            Identity::Pem { chain, key } => Certificates::from_pem(chain, key),
            Identity::Files { chain, key } => {
                Certificates::from_pem(&read(chain.clone())?, &read(key.clone())?)
            }
            Identity::Dev(certificate) => Certificates::from_pem(
                certificate.certificate_pem().as_bytes(),
                certificate.private_key_pem().as_bytes(),
            ),
        };
        Ok(Arc::new(certificates?))
    }

    /// What checks the certificates of clients, if they are asked for.
    pub(crate) fn clients(&self) -> Option<Arc<dyn ClientCertVerifier>> {
        self.side.clients.clone()
    }

    /// Uses a TLS configuration of the caller, which then sets ALPN, cipher suites, tickets and key
    /// log.
    #[must_use]
    pub fn tls(mut self, tls: ServerTls) -> Self {
        self.side.identity = Identity::Tls(tls);
        self
    }

    /// When clients' addresses are validated by Retry; default while more than 1000 handshakes are
    /// in progress.
    #[must_use]
    pub fn retry(mut self, policy: RetryPolicy) -> Self {
        self.side.retry = policy;
        self
    }

    /// Which tickets clients get to resume their sessions with; default 4096 single-use ones, two
    /// for each connection. [`Tickets`] describes the choice.
    #[must_use]
    pub fn tickets(mut self, tickets: Tickets) -> Self {
        self.side.tickets = tickets;
        self
    }

    /// How to treat early data (0-RTT) of clients; default [`EarlyData::Reject`]. They are accepted
    /// with [`Tickets::SingleUse`] only. Then [`Server::accept`] returns such connections before
    /// the end of the handshake: see [`Connection::is_handshaking`].
    #[must_use]
    pub fn early_data(mut self, policy: EarlyData) -> Self {
        self.side.early_data = policy;
        self
    }

    /// Lets [`Server::accept`] return every connection as soon as the client's first flight was
    /// received, so that the server's first data are sent with its handshake (0.5-RTT); default
    /// false. At that time nothing about the client is verified, not even its address.
    #[must_use]
    pub fn half_rtt(mut self, permit: bool) -> Self {
        self.side.half_rtt = permit;
        self
    }

    /// Limits the number of connections.
    #[must_use]
    pub fn max_connections(mut self, limit: usize) -> Self {
        self.side.max_connections = Some(limit);
        self
    }

    /// Limits the connections of a client's network to the number that are free
    /// ([`EndpointConfig::share_by_address`](swiftwater_quic::EndpointConfig::share_by_address)); default
    /// true. False for servers that see all clients behind one address, such as a proxy's.
    #[must_use]
    pub fn share_by_address(mut self, share: bool) -> Self {
        self.side.share_by_address = share;
        self
    }

    /// Memory for the record of address validation tokens that clients have used, so that each validates
    /// an address once; default 2 MiB, allocated when the first one is used
    /// ([`EndpointConfig::used_tokens`](swiftwater_quic::EndpointConfig::used_tokens)). Servers that are
    /// bound by clones of the builder share the record.
    #[must_use]
    pub fn token_memory(mut self, memory: ByteCount) -> Self {
        self.side.used_tokens = Arc::new(UsedTokens::new(memory));
        self
    }

    /// Number of workers, each with its own socket, thread and connections; 0 means one per
    /// processor. Default 1, which runs on the caller's runtime. For loads beyond one processor;
    /// see [`Endpoint::bind`].
    #[must_use]
    pub fn workers(mut self, workers: usize) -> Self {
        self.side.workers = workers;
        self
    }

    /// Listens on this address, too: clients may connect there, and open further paths to it.
    #[must_use]
    pub fn also_listen(mut self, address: SocketAddr) -> Self {
        self.side.further.push(address);
        self
    }

    /// Listens on this address, too, and sends it to clients as preferred address (RFC 9000,
    /// section 9.6): for servers behind a shared address. Once per family; with port 0 the system
    /// chooses.
    #[must_use]
    pub fn preferred_address(mut self, address: SocketAddr) -> Self {
        self.side.preferred.push(address);
        self
    }

    /// The generator of connection IDs, such as [`QuicLbCids`](swiftwater_quic::QuicLbCids) for a
    /// load balancer; default random ones.
    #[must_use]
    pub fn connection_ids(mut self, generator: impl ConnectionIdGenerator + 'static) -> Self {
        self.side.cids = Some(Arc::new(generator));
        self
    }

    /// The secrets of address validation and stateless reset tokens; default new ones. Servers that
    /// share an address, or restart at it, share them.
    #[must_use]
    pub fn secrets(mut self, secrets: EndpointSecrets) -> Self {
        self.side.secrets = Some(Arc::new(secrets));
        self
    }

    /// The admission policy of incoming connections: whether to accept each, and with which
    /// transport configuration. A function from [`Incoming`](swiftwater_quic::Incoming) to
    /// [`AcceptDecision`](swiftwater_quic::AcceptDecision) does.
    #[must_use]
    pub fn accept_policy(mut self, policy: impl AcceptPolicy + 'static) -> Self {
        self.side.accept = Some(Arc::new(policy));
        self
    }

    /// Binds the socket and starts to accept. `[::]` accepts IPv4 and IPv6. Must be called inside a
    /// tokio runtime.
    pub fn bind(self, address: SocketAddr) -> Result<Server, BuildError> {
        let config = ServerConfig {
            retry: self.side.retry,
            accept: self.side.accept.clone(),
            early_data: self.side.early_data,
            half_rtt: self.side.half_rtt,
            ..ServerConfig::new(
                Arc::new(server_tls(&self.side, &self.settings)?),
                self.settings.transport()?,
            )
        };
        let mut options = self.settings.endpoint()?.server(config);
        options.workers = self.side.workers;
        options.preferred = self.side.preferred;
        options.endpoint.cids = self.side.cids;
        if let Some(secrets) = self.side.secrets {
            options.endpoint.key = secrets;
        }
        options.endpoint.share_by_address = self.side.share_by_address;
        options.endpoint.used_tokens = self.side.used_tokens;
        if let Some(limit) = self.side.max_connections {
            options.endpoint.max_connections = limit;
        }
        let endpoint = Endpoint::bind(address, options)?;
        for address in self.side.further {
            endpoint.add_socket(address)?;
        }
        Ok(Server { endpoint })
    }
}

fn server_tls(side: &ServerSide, settings: &Settings) -> Result<ServerTls, BuildError> {
    let tls = match side.identity.clone() {
        Identity::None => return Err(BuildError::NoCertificate),
        Identity::Tls(tls) => return Ok(tls),
        Identity::Pem { chain, key } => ServerTls::from_pem(&chain, &key)?,
        Identity::Files { chain, key } => ServerTls::from_pem(&read(chain)?, &read(key)?)?,
        Identity::Dev(certificate) => ServerTls::from_dev_certificate(&certificate)?,
        Identity::Resolver(resolver) => ServerTls::from_resolver(resolver)?,
    };
    let tls = match &side.clients {
        Some(verifier) => tls.client_certificates(Arc::clone(verifier))?,
        None => tls,
    };
    let tls = tls
        .with_cipher_suites(&settings.suites)?
        .alpn(settings.alpn.iter().cloned())
        .tickets(side.tickets)?
        .early_data(side.early_data == EarlyData::Accept);
    Ok(if settings.key_log {
        tls.key_log_file()
    } else {
        tls
    })
}

fn read(path: PathBuf) -> Result<Vec<u8>, BuildError> {
    std::fs::read(&path).map_err(|source| BuildError::File { path, source })
}
