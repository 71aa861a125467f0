//! The QUIC client: connects with default settings and a race over addresses.

use std::fmt;
use std::future::{Future, poll_fn};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::pin::Pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use rustls::crypto::aws_lc_rs;
use rustls_platform_verifier::Verifier;
use swiftwater_net::{Connecting, Connection, DatagramCarrier, Endpoint};
use swiftwater_policies::tecc::MAX_PAYLOAD_BESIDE_REPORT;
use swiftwater_quic::{ClientConfig, ConnectionError};
use swiftwater_tls::pki_types::CertificateDer;
use swiftwater_tls::{ClientTls, MemorySessionStore, SessionStore};

use crate::builder::Builder;
use crate::error::{BuildError, ClientError};

/// Connects to servers from one UDP socket.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use swiftwater::{Client, Profile};
///
/// let client = Client::builder()
///     .profile(Profile::Live)
///     .alpn(["hq-interop"])
///     .congestion("cubic")
///     .build()?;
/// // let connection = client.connect("example.com:443").await?;
/// # client.close().await;
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Client {
    endpoint: Endpoint,
    config: ClientConfig,
}

/// Time after which another address is attempted concurrently (RFC 8305, section 5).
const STAGGER: Duration = Duration::from_millis(250);

/// The outcome of the first attempt that has one; `None` if `time_limit` expires.
async fn first(
    attempts: &mut Vec<Connecting>,
    time_limit: Option<Duration>,
) -> Option<Result<Connection, ConnectionError>> {
    let any = poll_fn(|cx| {
        for n in 0..attempts.len() {
            if let Poll::Ready(outcome) = Pin::new(&mut attempts[n]).poll(cx) {
                drop(attempts.swap_remove(n));
                return Poll::Ready(outcome);
            }
        }
        Poll::Pending
    });
    match time_limit {
        Some(time_limit) => tokio::time::timeout(time_limit, any).await.ok(),
        None => Some(any.await),
    }
}

/// The addresses of a `host:port`, and the host.
async fn resolve(address: &str) -> Result<(Vec<SocketAddr>, String), ClientError> {
    let malformed = || ClientError::Address(address.to_owned());
    let (host, port) = address.rsplit_once(':').ok_or_else(malformed)?;
    let port: u16 = port.parse().map_err(|_| malformed())?;
    let host = host
        .strip_prefix('[')
        .and_then(|host| host.strip_suffix(']'))
        .unwrap_or(host);
    if host.is_empty() {
        return Err(malformed());
    }
    let addresses = match host.parse::<IpAddr>() {
        Ok(ip) => vec![(ip, port).into()],
        Err(_) => tokio::net::lookup_host((host, port))
            .await
            .map_err(|source| ClientError::Resolve {
                host: host.to_owned(),
                source,
            })?
            .collect(),
    };
    Ok((addresses, host.to_owned()))
}

/// The trusted certificates.
#[derive(Clone, Debug)]
enum Trust {
    /// Those of the platform's authorities, and these.
    PlatformAnd(Vec<CertificateDer<'static>>),
    Only(Vec<CertificateDer<'static>>),
    Anyone,
}

/// Builds a [`Client`].
pub type ClientBuilder = Builder<ClientSide>;

/// Settings of a [`ClientBuilder`] in addition to those of both roles: trust, and the local
/// address.
#[derive(Clone, Debug)]
pub struct ClientSide {
    trust: Trust,
    bind: Option<SocketAddr>,
    carrier: Option<Carrier>,
    sessions: Option<Arc<dyn SessionStore>>,
    early_data: bool,
    identity: Option<Identity>,
}

/// The certificate of a client and its key, PEM.
#[derive(Clone)]
struct Identity {
    chain: Arc<[u8]>,
    key: Arc<[u8]>,
}

impl fmt::Debug for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Identity").finish_non_exhaustive()
    }
}

/// What carries the datagrams in the place of a socket.
#[derive(Clone)]
struct Carrier(Arc<dyn DatagramCarrier>);

impl fmt::Debug for Carrier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Carrier")
    }
}

impl Client {
    /// A client that trusts the platform's authorities, with the profile
    /// [`Profile::Web`](crate::Profile::Web).
    pub fn builder() -> ClientBuilder {
        Builder::new(ClientSide {
            trust: Trust::PlatformAnd(Vec::new()),
            bind: None,
            carrier: None,
            sessions: Some(Arc::new(MemorySessionStore::default())),
            early_data: false,
            identity: None,
        })
    }

    /// Connects to `address`, a `host:port` whose host is a name or an IP address (IPv6 in brackets),
    /// whose certificate must be valid for that host. If it has several addresses, a slow one doesn't
    /// delay the others.
    pub async fn connect(&self, address: &str) -> Result<Connection, ClientError> {
        let (addresses, host) = resolve(address).await?;
        self.connect_any(addresses, &host).await
    }

    /// As [`Client::connect`], but returns at once if there is a session for that server that permits
    /// early data (0-RTT), enabled by [`ClientBuilder::early_data`]. Then the first data are sent without
    /// waiting for the server.
    ///
    /// **An attacker can record early data and replay them.** Send only idempotent requests, such as a
    /// GET, until [`Connection::early_data`] returns, when the handshake is complete. It also returns
    /// whether the server accepted them; if not, data written to streams are sent again automatically.
    pub async fn connect_early(&self, address: &str) -> Result<Connection, ClientError> {
        let (addresses, host) = resolve(address).await?;
        self.attempt(addresses, &host, true).await
    }

    /// Connects to the first of `addresses` that answers, whose certificate must be valid for
    /// `server_name`. Starts with the first address and adds another when one fails or takes 250 ms
    /// (RFC 8305).
    pub async fn connect_any(
        &self,
        addresses: Vec<SocketAddr>,
        server_name: &str,
    ) -> Result<Connection, ClientError> {
        self.attempt(addresses, server_name, false).await
    }

    /// Connects to the first address that answers, or if `early` to the first one that need not
    /// answer.
    async fn attempt(
        &self,
        addresses: Vec<SocketAddr>,
        server_name: &str,
        early: bool,
    ) -> Result<Connection, ClientError> {
        let mut addresses = addresses.into_iter();
        let mut attempts = Vec::new();
        let mut failure = ClientError::NoAddress(server_name.to_owned());
        loop {
            match addresses.next() {
                Some(address) => match self.endpoint.connect(&self.config, address, server_name) {
                    Ok(attempt) if early => match attempt.into_early() {
                        Ok(connection) => return Ok(connection),
                        Err(attempt) => attempts.push(attempt),
                    },
                    Ok(attempt) => attempts.push(attempt),
                    Err(error) => {
                        failure = error.into();
                        continue;
                    }
                },
                None if attempts.is_empty() => return Err(failure),
                None => {}
            }
            let time_limit = (addresses.len() > 0).then_some(STAGGER);
            match first(&mut attempts, time_limit).await {
                Some(Ok(connection)) => return Ok(connection),
                // Any other reason is more specific than a timeout.
                Some(Err(ConnectionError::HandshakeTimedOut))
                    if matches!(failure, ClientError::Connection(_)) => {}
                Some(Err(error)) => failure = error.into(),
                None => {}
            }
        }
    }

    /// Connects to the server at `address`, whose certificate must be valid for `server_name`.
    pub async fn connect_to(
        &self,
        address: SocketAddr,
        server_name: &str,
    ) -> Result<Connection, ClientError> {
        let connecting = self.endpoint.connect(&self.config, address, server_name)?;
        Ok(connecting.await?)
    }

    /// The underlying endpoint, for all other operations.
    pub fn endpoint(&self) -> &Endpoint {
        &self.endpoint
    }

    /// The configuration of the client's connections.
    pub fn config(&self) -> &ClientConfig {
        &self.config
    }

    /// Closes all connections with code 0 and waits until CONNECTION_CLOSE was sent to the peers.
    pub async fn close(&self) {
        self.endpoint.close(0, b"");
        self.endpoint.wait_idle().await;
    }
}

impl ClientBuilder {
    /// Trusts this certificate in addition, as an authority and as itself.
    #[must_use]
    pub fn trust(mut self, certificate: CertificateDer<'static>) -> Self {
        match &mut self.side.trust {
            Trust::PlatformAnd(extra) | Trust::Only(extra) => extra.push(certificate),
            Trust::Anyone => {}
        }
        self
    }

    /// Trusts these certificates instead of those of the platform.
    #[must_use]
    pub fn trust_only(
        mut self,
        certificates: impl IntoIterator<Item = CertificateDer<'static>>,
    ) -> Self {
        self.side.trust = Trust::Only(certificates.into_iter().collect());
        self
    }

    /// Trusts **any** server, and thereby any attacker on the path. For tests, and for experiments
    /// on private networks.
    #[must_use]
    pub fn dangerous_accept_any_certificate(mut self) -> Self {
        self.side.trust = Trust::Anyone;
        self
    }

    /// Presents the certificates of this PEM text, the client's own first, to servers that ask for one, and signs with that
    /// key ([`ClientTls::identity`]).
    #[must_use]
    pub fn identity_pem(mut self, chain: impl AsRef<[u8]>, key: impl AsRef<[u8]>) -> Self {
        self.side.identity = Some(Identity {
            chain: chain.as_ref().into(),
            key: key.as_ref().into(),
        });
        self
    }

    /// Uses this local address instead of one chosen by the system.
    #[must_use]
    pub fn bind(mut self, address: SocketAddr) -> Self {
        self.side.bind = Some(address);
        self
    }

    /// Lets `carrier` carry the datagrams in the place of a UDP socket: connections go through a proxy, for
    /// example. [`ClientBuilder::bind`] has no effect then.
    #[must_use]
    pub fn carrier(mut self, carrier: Arc<dyn DatagramCarrier>) -> Self {
        self.side.carrier = Some(Carrier(carrier));
        self
    }

    /// Passes to the server what a tunnel with TECC reports, through which the connections go; see
    /// [`ServerBuilder::tecc`](crate::ServerBuilder::tecc). It needs a [carrier](ClientBuilder::carrier) that gives the
    /// connections the reports. Servers are asked for packets small enough that reports share packets with them between
    /// proxy and client ([`max_udp_payload_size`](swiftwater_quic::TransportConfig::max_udp_payload_size) of at most
    /// [`MAX_PAYLOAD_BESIDE_REPORT`]).
    #[must_use]
    pub fn tecc(self) -> Self {
        let limited = self.transport(|transport| {
            let limit = &mut transport.max_udp_payload_size;
            *limit = (*limit).min(MAX_PAYLOAD_BESIDE_REPORT);
        });
        limited.feedback("tecc-client")
    }

    /// Stores sessions and address validation tokens in `store` for the next connection to the same
    /// server; by default each client has one in memory for 256 servers. With `None` every handshake
    /// is a full one.
    #[must_use]
    pub fn sessions(mut self, store: Option<Arc<dyn SessionStore>>) -> Self {
        self.side.sessions = store;
        self
    }

    /// Permits [`Client::connect_early`] to send early data (0-RTT); default false.
    #[must_use]
    pub fn early_data(mut self, offer: bool) -> Self {
        self.side.early_data = offer;
        self
    }

    /// The same trust, identity, cipher suites and key log for TLS 1.3 and 1.2 over TCP: for an HTTP client with
    /// QUIC and TCP. The caller sets ALPN names; sessions are not stored.
    pub fn tls_over_tcp(&self) -> Result<rustls::ClientConfig, BuildError> {
        Ok(self.client_tls()?.over_tcp()?)
    }

    /// Trust, identity, suites, ALPN and key log.
    fn client_tls(&self) -> Result<ClientTls, BuildError> {
        let tls = match &self.side.trust {
            Trust::PlatformAnd(extra) => {
                let provider = Arc::new(aws_lc_rs::default_provider());
                let verifier = Verifier::new_with_extra_roots(extra.iter().cloned(), provider);
                let verifier = Arc::new(verifier.map_err(BuildError::Platform)?);
                ClientTls::with_verifier_and(verifier, extra.iter().cloned())?
            }
            Trust::Only(roots) => ClientTls::with_roots(roots.iter().cloned())?,
            Trust::Anyone => ClientTls::dangerous_without_verification()?,
        };
        let mut tls = tls
            .with_cipher_suites(&self.settings.suites)?
            .alpn(self.settings.alpn.iter().cloned());
        if let Some(identity) = &self.side.identity {
            tls = tls.identity_from_pem(&identity.chain, &identity.key)?;
        }
        if self.settings.key_log {
            tls = tls.key_log_file();
        }
        Ok(tls)
    }

    pub(crate) fn offers_early_data(&self) -> bool {
        self.side.early_data
    }

    /// Binds the socket. Must be called inside a tokio runtime.
    pub fn build(self) -> Result<Client, BuildError> {
        let mut tls = self.client_tls()?;
        if let Some(store) = self.side.sessions {
            tls = tls.sessions(store).early_data(self.side.early_data);
        }
        let config = ClientConfig {
            crypto: Arc::new(tls),
            transport: self.settings.transport()?,
        };
        let options = self.settings.endpoint()?;
        let endpoint = match (self.side.carrier, self.side.bind) {
            (Some(Carrier(carrier)), _) => Endpoint::over(carrier, &options)?,
            (None, Some(address)) => Endpoint::bind(address, options)?,
            // Some systems have no IPv6.
            (None, None) => Endpoint::bind((Ipv6Addr::UNSPECIFIED, 0).into(), options.clone())
                .or_else(|_| Endpoint::bind((Ipv4Addr::UNSPECIFIED, 0).into(), options))?,
        };
        Ok(Client { endpoint, config })
    }
}
