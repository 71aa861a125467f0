//! What all networking commands share: transport settings from flags, TLS, sockets, connecting, and
//! failures in words. The only module that builds configurations of the stack.

use std::io::ErrorKind;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use clap::{Args, ValueEnum};
use swiftwater_net::{BindError, EndpointOptions};
use swiftwater_quic::wire::ErrorCode;
use swiftwater_quic::{ConnectError, EndpointConfig, TransportError};
use swiftwater_tls::pki_types::CertificateDer;
use swiftwater_tls::rustls;
use swiftwater_tls::{CipherSuite, ClientTls, EndpointSecrets, ServerTls};
use tokio::net::lookup_host;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

pub use swiftwater_net::{Connection, Endpoint, RecvStream, SendStream};
pub use swiftwater_quic::{
    ClientConfig, ConnectionError, ConnectionStats, ReadError, RetryPolicy, ServerConfig,
    TransportConfig, WriteError,
};

use crate::exit::{Exit, Failure, plain_io_error};

/// How long the next address of a host waits while the one before hasn't answered (RFC 8305,
/// section 5).
const NEXT_ADDRESS: Duration = Duration::from_millis(250);

/// Settings of the transport, as flags.
#[derive(Args, Clone, Debug, Default)]
pub struct Tuning {
    /// Congestion controller of this end (cubic, newreno)
    #[arg(long, value_name = "NAME", value_parser = parse_controller, help_heading = "Transport")]
    pub cc: Option<String>,

    /// Cipher suites to allow
    #[arg(long, value_enum, default_value_t, value_name = "SUITE", help_heading = "Transport")]
    pub suite: Suite,
}

/// Which cipher suites are allowed.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq, ValueEnum)]
pub enum Suite {
    /// All of TLS 1.3, in our order of preference
    #[default]
    Any,
    /// AES-128-GCM only
    Aes128,
    /// AES-256-GCM only
    Aes256,
    /// ChaCha20-Poly1305 only
    Chacha20,
}

impl Suite {
    fn list(self) -> &'static [CipherSuite] {
        match self {
            Self::Any => &CipherSuite::ALL,
            Self::Aes128 => &[CipherSuite::Aes128Gcm],
            Self::Aes256 => &[CipherSuite::Aes256Gcm],
            Self::Chacha20 => &[CipherSuite::ChaCha20Poly1305],
        }
    }
}

/// Checks the name of a congestion controller.
pub fn parse_controller(name: &str) -> Result<String, swiftwater_congestion::UnknownController> {
    swiftwater_congestion::by_name(name)?;
    Ok(name.to_ascii_lowercase())
}

impl Tuning {
    /// The transport's configuration with these settings.
    pub fn transport(&self) -> Result<TransportConfig, Failure> {
        let mut config = TransportConfig::default();
        if let Some(name) = &self.cc {
            config.controller = swiftwater_congestion::by_name(name)
                .map_err(|error| Failure::new(Exit::Usage, error))?;
        }
        Ok(config)
    }
}

/// Whom a client trusts.
#[derive(Clone, Debug)]
pub enum Trust {
    /// What the operating system trusts.
    Platform,
    /// These certificates and what they signed, nothing else.
    Roots(Vec<CertificateDer<'static>>),
    /// Anybody. For experiments.
    Anybody,
}

/// A client's configuration.
pub fn client_config(
    trust: &Trust,
    alpn: &[u8],
    suite: Suite,
    transport: TransportConfig,
) -> Result<ClientConfig, Failure> {
    let tls = match trust {
        Trust::Platform => platform_tls()?,
        Trust::Roots(roots) => ClientTls::with_roots(roots.iter().cloned()).map_err(tls_failure)?,
        Trust::Anybody => ClientTls::dangerous_without_verification().map_err(tls_failure)?,
    };
    let tls = if suite == Suite::Any {
        tls
    } else {
        tls.with_cipher_suites(suite.list()).map_err(tls_failure)?
    };
    let crypto = Arc::new(tls.alpn([alpn]).key_log_file());
    Ok(ClientConfig { crypto, transport: Arc::new(transport) })
}

/// A server's configuration.
pub fn server_config(
    tls: ServerTls,
    alpn: &[u8],
    suite: Suite,
    transport: TransportConfig,
    retry: RetryPolicy,
) -> Result<ServerConfig, Failure> {
    let tls = if suite == Suite::Any {
        tls
    } else {
        tls.with_cipher_suites(suite.list()).map_err(tls_failure)?
    };
    let crypto = Arc::new(tls.alpn([alpn]).key_log_file());
    Ok(ServerConfig {
        crypto,
        transport: Arc::new(transport),
        retry,
        retry_token_lifetime: Duration::from_secs(15),
        address_token_lifetime: Duration::from_secs(14 * 24 * 60 * 60),
    })
}

/// Trust as the operating system has it configured.
fn platform_tls() -> Result<ClientTls, Failure> {
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let verifier = rustls_platform_verifier::Verifier::new(provider).map_err(|error| {
        Failure::new(
            Exit::Certificate,
            format_args!("cannot use the system's certificates ({error}): give --ca FILE"),
        )
    })?;
    ClientTls::with_verifier(Arc::new(verifier)).map_err(tls_failure)
}

fn tls_failure(error: swiftwater_tls::ConfigError) -> Failure {
    Failure::new(Exit::Certificate, error)
}

/// Binds a server's socket.
pub fn listen(address: SocketAddr, config: ServerConfig) -> Result<Endpoint, Failure> {
    let options = EndpointOptions::new(endpoint_config(), random_seed()?).server(config);
    Endpoint::bind(address, options).map_err(|error| bind_failure(&error))
}

/// Binds a client's socket.
fn client_endpoint(family: IpAddr) -> Result<Endpoint, Failure> {
    let any: IpAddr = match family {
        IpAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
        IpAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
    };
    let options = EndpointOptions::new(endpoint_config(), random_seed()?);
    Endpoint::bind((any, 0).into(), options).map_err(|error| bind_failure(&error))
}

fn endpoint_config() -> EndpointConfig {
    EndpointConfig::new(Arc::new(EndpointSecrets::random()))
}

/// An unpredictable seed from the system's generator.
fn random_seed() -> Result<[u8; 32], Failure> {
    let mut seed = [0; 32];
    rustls::crypto::aws_lc_rs::default_provider()
        .secure_random
        .fill(&mut seed)
        .map_err(|_| Failure::new(Exit::Failure, "the system gives no random numbers"))?;
    Ok(seed)
}

/// A failure to bind, with what to do about it.
pub fn bind_failure(error: &BindError) -> Failure {
    let BindError::Address { address, source, .. } = error else {
        return Failure::new(Exit::Failure, error);
    };
    let why = match source.kind() {
        ErrorKind::AddrInUse => "the port is taken by another program".to_owned(),
        ErrorKind::PermissionDenied => {
            "permission denied (ports below 1024 often need privileges)".to_owned()
        }
        ErrorKind::AddrNotAvailable => "this machine has no such address".to_owned(),
        _ => plain_io_error(source),
    };
    Failure::new(Exit::Listen, format_args!("cannot listen on UDP {address}: {why}"))
}

/// Connects to hosts by name. Keeps one socket per address family, made when needed.
#[derive(Debug)]
pub struct Dialer {
    config: ClientConfig,
    v4: Option<Endpoint>,
    v6: Option<Endpoint>,
}

impl Dialer {
    /// Connections with this configuration.
    pub fn new(config: ClientConfig) -> Self {
        Self { config, v4: None, v6: None }
    }

    /// Connects to the first address of `host` that answers. Addresses are tried in the resolver's
    /// order, each 250 ms after the one before, without giving that up.
    pub async fn connect(&mut self, host: &str, port: u16) -> Result<Connection, Failure> {
        let target = format!("{host}:{port}");
        let addresses = resolve(host, port).await?;
        let mut attempts = JoinSet::new();
        for (index, address) in addresses.into_iter().enumerate() {
            let endpoint = match self.endpoint(address) {
                Ok(endpoint) => endpoint.clone(),
                // A machine without IPv6 can't bind to it; the other addresses may do.
                Err(failure) => {
                    attempts.spawn(async move { Err(failure) });
                    continue;
                }
            };
            let (config, host, target) = (self.config.clone(), host.to_owned(), target.clone());
            attempts.spawn(async move {
                sleep(NEXT_ADDRESS * index as u32).await;
                let connecting = endpoint
                    .connect(&config, address, &host)
                    .map_err(|error| connect_failure(&error, &target))?;
                connecting.await.map_err(|error| connection_failure(&error, &target))
            });
        }
        let mut first_failure = None;
        while let Some(attempt) = attempts.join_next().await {
            match attempt {
                Ok(Ok(connection)) => return Ok(connection),
                // A certificate that isn't trusted says more than an address that is silent.
                Ok(Err(failure)) if failure.exit == Exit::Certificate => return Err(failure),
                Ok(Err(failure)) => {
                    first_failure.get_or_insert(failure);
                }
                Err(error) => return Err(Failure::new(Exit::Failure, error)),
            }
        }
        Err(first_failure.unwrap_or_else(|| unknown_host(host, "it has no address")))
    }

    /// The socket for `address`'s family.
    fn endpoint(&mut self, address: SocketAddr) -> Result<&Endpoint, Failure> {
        let slot = if address.is_ipv4() { &mut self.v4 } else { &mut self.v6 };
        match slot {
            Some(endpoint) => Ok(endpoint),
            None => Ok(slot.insert(client_endpoint(address.ip())?)),
        }
    }

    /// Closes all connections and waits until the servers had a chance to hear of it.
    pub async fn close(self) {
        for endpoint in [self.v4, self.v6].into_iter().flatten() {
            endpoint.close(0, b"done");
            // The closing time protects against stray packets; nobody needs to sit through a long
            // one at the end of a program.
            let _ = timeout(Duration::from_secs(1), endpoint.wait_idle()).await;
        }
    }
}

async fn resolve(host: &str, port: u16) -> Result<Vec<SocketAddr>, Failure> {
    let mut addresses = Vec::new();
    let found = lookup_host((host, port))
        .await
        .map_err(|error| unknown_host(host, &plain_io_error(&error)))?;
    for address in found {
        if !addresses.contains(&address) {
            addresses.push(address);
        }
    }
    Ok(addresses)
}

fn unknown_host(host: &str, why: &str) -> Failure {
    // Resolvers' words differ and say little beyond this.
    tracing::debug!(host, why, "name resolution failed");
    Failure::new(Exit::UnknownHost, format_args!("unknown host '{host}': the name has no address"))
}

fn connect_failure(error: &ConnectError, target: &str) -> Failure {
    Failure::new(Exit::Connection, format_args!("cannot connect to {target}: {error}"))
}

/// Why a connection to `target` failed or was lost, with what to do about it.
pub fn connection_failure(error: &ConnectionError, target: &str) -> Failure {
    let (exit, text) = match error {
        ConnectionError::HandshakeTimedOut => (
            Exit::Connection,
            format!(
                "no answer from {target}: no QUIC server is there, or UDP is blocked on the way"
            ),
        ),
        ConnectionError::TimedOut => {
            (Exit::Connection, format!("connection to {target} lost: nothing heard for too long"))
        }
        ConnectionError::Transport(error) if is_tls(error) => {
            let hint = "trust its certificate with --ca FILE, or skip the check with --insecure";
            (
                Exit::Certificate,
                format!("bad certificate of {target}: {} ({hint})", error.reason),
            )
        }
        ConnectionError::PeerTransport(error) if error.code == NO_APPLICATION_PROTOCOL => (
            Exit::Certificate,
            format!("{target} does not speak the protocol asked for (ALPN)"),
        ),
        ConnectionError::PeerTransport(error) if is_tls(error) => {
            (Exit::Certificate, format!("{target} refused the TLS handshake: {error}"))
        }
        ConnectionError::PeerTransport(error) if error.code == ErrorCode::CONNECTION_REFUSED => {
            (Exit::Connection, format!("{target} refuses connections now"))
        }
        other => (Exit::Connection, format!("connection to {target} lost: {other}")),
    };
    Failure::new(exit, text)
}

/// The alert `no_application_protocol` (RFC 7301, section 3.2) as an error code of QUIC.
const NO_APPLICATION_PROTOCOL: ErrorCode = ErrorCode::crypto(120);

fn is_tls(error: &TransportError) -> bool {
    (0x100..=0x1ff).contains(&error.code.0)
}
