//! What all networking commands share: transport settings from flags, TLS, sockets, connecting, and
//! failures in words.

use std::fmt::Write;
use std::io::{self, ErrorKind};
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::{Args, ValueEnum};
use swiftwater::congestion::{self, UnknownController};
use swiftwater::policies::{self, UnknownPolicies};
use swiftwater::quic::wire::ErrorCode;
use swiftwater::quic::{AckFrequencyConfig, MtuDiscovery, TransportError};
use swiftwater::{
    BindError, BuildError, Builder, CertificateDer, CipherSuite, Client, ClientBuilder,
    ClientError, Connection, ConnectionError, Profile, Server, ServerBuilder, TransportConfig,
    VERSION_1, VERSION_2,
};
use thiserror::Error;
use tokio::net::lookup_host;
use tokio::time::timeout;

use crate::cli::DEFAULT_LISTEN;
use crate::duration::parse_positive_duration;
use crate::exit::{Exit, Failure, plain_io_error};
use crate::identity::Identity;
use crate::tls_alert::{NO_APPLICATION_PROTOCOL, alert_of, describe, is_about_certificates};

/// How long the end of a program waits for its farewells to be sent. (The closing time, in which late
/// packets are answered, may be longer; nobody needs to sit through it.)
const FAREWELL: Duration = Duration::from_millis(500);

/// Settings of the transport, as flags.
#[derive(Args, Clone, Debug, Default)]
pub struct Tuning {
    /// Those of every command.
    #[command(flatten)]
    pub basics: Basics,

    /// How this end repairs losses.
    #[arg(
        long,
        global = true,
        help_heading = "Transport",
        value_name = "POLICY",
        value_parser = parse_recovery,
        help = recovery_help("How this end repairs losses")
    )]
    pub recovery: Option<String>,
}

/// Settings of the transport but for the recovery of losses, of which some commands show several.
#[derive(Args, Clone, Debug, Default)]
pub struct Basics {
    /// Congestion controller of this end, such as cubic or bbr2; 'lab controllers' lists them
    /// [default: the profile's]
    #[arg(
        long,
        global = true,
        help_heading = "Transport",
        value_name = "NAME",
        value_parser = parse_controller
    )]
    pub cc: Option<String>,

    /// Settings for a kind of traffic: web, live, interactive, bulk [default: web; live for live
    /// video]
    #[arg(long, global = true, help_heading = "Transport", value_name = "NAME")]
    pub profile: Option<Profile>,

    /// Cipher suites to allow
    #[arg(
        long,
        global = true,
        help_heading = "Transport",
        value_enum,
        default_value_t,
        value_name = "SUITE"
    )]
    pub suite: Suite,

    /// UDP payload of full packets in bytes at first; raise it only where the path carries it
    /// [default: 1200]
    #[arg(
        long,
        global = true,
        help_heading = "Transport",
        value_name = "BYTES",
        value_parser = clap::value_parser!(u16).range(1200..=65_507)
    )]
    pub mtu: Option<u16>,

    /// Versions of QUIC to speak, best first; a client begins in the first, and a server goes on in the
    /// first that the client speaks too [default: 1,2]
    #[arg(
        long,
        global = true,
        help_heading = "Transport",
        value_enum,
        value_delimiter = ',',
        value_name = "VERSIONS"
    )]
    pub quic_version: Vec<QuicVersion>,

    /// Version that a client begins in; it moves to a better one if the server agrees [default: the
    /// first of --quic-version]
    #[arg(
        long,
        global = true,
        help_heading = "Transport",
        value_enum,
        value_name = "VERSION"
    )]
    pub first_version: Option<QuicVersion>,

    /// Largest UDP payload in bytes that is looked for on the path [default: 1472, which fills
    /// Ethernet frames]
    #[arg(
        long,
        global = true,
        help_heading = "Transport",
        value_name = "BYTES",
        conflicts_with = "no_mtu_discovery",
        value_parser = clap::value_parser!(u16).range(1200..=65_527)
    )]
    pub max_datagram_size: Option<u16>,

    /// Don't look for larger packets that the path carries
    #[arg(long, global = true, help_heading = "Transport")]
    pub no_mtu_discovery: bool,

    /// Round-trip time assumed until one is measured, such as 100ms [default: the profile's]
    #[arg(
        long,
        global = true,
        help_heading = "Transport",
        value_name = "TIME",
        value_parser = parse_positive_duration
    )]
    pub initial_rtt: Option<Duration>,

    /// Wait so long for the answer to a first packet before repeating it [default: three times the
    /// assumed round-trip time; the profile live: 500ms]
    #[arg(
        long,
        global = true,
        help_heading = "Transport",
        value_name = "TIME",
        value_parser = parse_positive_duration
    )]
    pub initial_pto: Option<Duration>,

    /// Factor by which each further wait for an answer is longer, 1 to 8 [default: 2]
    #[arg(
        long,
        global = true,
        help_heading = "Transport",
        value_name = "FACTOR",
        value_parser = parse_backoff
    )]
    pub pto_backoff: Option<f64>,

    /// Packets of 1200 bytes that may be under way at first [default: the profile's, which for web
    /// is 10]
    #[arg(
        long,
        global = true,
        help_heading = "Transport",
        value_name = "PACKETS",
        value_parser = clap::value_parser!(u64).range(2..=10_000)
    )]
    pub initial_window: Option<u64>,

    /// Ask the peer for one acknowledgement in so many packets, and soon after losses; without it,
    /// for every other packet
    #[arg(
        long,
        global = true,
        help_heading = "Transport",
        value_name = "PACKETS",
        value_parser = clap::value_parser!(u64).range(1..=1000)
    )]
    pub ack_frequency: Option<u64>,

    /// Log every connection to a file of its own in this directory (qlog, .sqlog); made if missing
    #[arg(
        long,
        global = true,
        help_heading = "Transport",
        value_name = "DIR",
        env = "QLOGDIR",
        hide_env_values = true
    )]
    pub qlog: Option<PathBuf>,

    /// Update this end's keys after so many packets; to try how peers cope
    #[arg(
        long,
        global = true,
        hide = true,
        help_heading = "Transport",
        value_name = "PACKETS",
        value_parser = clap::value_parser!(u64).range(1..)
    )]
    pub key_update_every: Option<u64>,
}

impl Basics {
    /// Applies what concerns single settings of the transport.
    fn apply(&self, transport: &mut TransportConfig) {
        if let Some(mtu) = self.mtu {
            transport.initial_max_datagram_size = mtu;
        }
        if let Some(upper_bound) = self.max_datagram_size {
            transport.mtu_discovery = Some(MtuDiscovery {
                upper_bound,
                ..MtuDiscovery::default()
            });
        }
        if self.no_mtu_discovery {
            transport.mtu_discovery = None;
        }
        if let Some(rtt) = self.initial_rtt {
            transport.initial_rtt = rtt;
            // A profile's timeout goes with its own round-trip time.
            transport.initial_pto = None;
        }
        if let Some(pto) = self.initial_pto {
            transport.initial_pto = Some(pto);
        }
        if let Some(factor) = self.pto_backoff {
            transport.pto_backoff = factor;
        }
        if let Some(packets) = self.initial_window {
            transport.initial_window = Some((packets * 1200).into());
        }
        if let Some(packets) = self.ack_frequency {
            transport.ack_frequency = Some(AckFrequencyConfig {
                ack_eliciting_threshold: packets - 1,
                ..AckFrequencyConfig::default()
            });
        }
        if let Some(packets) = self.key_update_every {
            // Beyond the default the keys would wear out.
            transport.key_update_interval = transport.key_update_interval.min(packets);
        }
    }
}

/// A version of QUIC.
#[derive(Clone, Copy, Debug, Eq, PartialEq, ValueEnum)]
pub enum QuicVersion {
    /// RFC 9000
    #[value(name = "1", alias = "v1")]
    One,
    /// RFC 9369
    #[value(name = "2", alias = "v2")]
    Two,
}

impl QuicVersion {
    /// The number in packets.
    pub fn number(self) -> u32 {
        match self {
            Self::One => VERSION_1,
            Self::Two => VERSION_2,
        }
    }
}

/// Which cipher suites are allowed.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq, ValueEnum)]
pub enum Suite {
    /// All of TLS 1.3
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

/// A factor that a timeout can't grow by.
#[derive(Clone, Copy, Debug, Eq, Error, PartialEq)]
#[error("it must be a number from 1 to 8, such as 1.5")]
pub struct BackoffError;

/// Reads the factor of the probe timeout's back-off.
pub fn parse_backoff(input: &str) -> Result<f64, BackoffError> {
    let factor: f64 = input.parse().map_err(|_| BackoffError)?;
    if (1.0..=8.0).contains(&factor) {
        Ok(factor)
    } else {
        Err(BackoffError)
    }
}

/// Checks the name of a congestion controller.
pub fn parse_controller(name: &str) -> Result<String, UnknownController> {
    congestion::by_name(name)?;
    Ok(name.to_ascii_lowercase())
}

/// Checks the specification of a recovery policy.
pub fn parse_recovery(specification: &str) -> Result<String, UnknownPolicies> {
    policies::by_name(specification)?;
    Ok(specification.to_ascii_lowercase())
}

/// A line of help that ends with the names of the recovery policies and the default.
pub fn recovery_help(what: &str) -> String {
    format!(
        "{} [default: the profile's, which for web and bulk is arq, plain retransmission]",
        with_recoveries(what)
    )
}

/// `what`, followed by the names of the recovery policies.
pub fn with_recoveries(what: &str) -> String {
    let mut help = what.to_owned();
    let mut separator = ": ";
    for name in policies::names() {
        // Writing to a string never fails.
        let _ = write!(help, "{separator}{name}");
        separator = ", ";
    }
    help
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

/// A client with these settings, to be built. Must be built inside the runtime that it runs in.
pub fn client(trust: &Trust, alpn: &[u8], tuning: &Tuning) -> ClientBuilder {
    let builder = Client::builder()
        .profile(tuning.basics.profile.unwrap_or_default())
        .transport(|transport| tuning.basics.apply(transport))
        .cipher_suites(tuning.basics.suite.list())
        .alpn([alpn])
        // What is measured are whole handshakes.
        .sessions(None)
        .key_log();
    let builder = chosen(builder, tuning);
    match trust {
        Trust::Platform => builder,
        Trust::Roots(roots) => builder.trust_only(roots.iter().cloned()),
        Trust::Anybody => builder.dangerous_accept_any_certificate(),
    }
}

/// A server with these settings, to be bound.
pub fn server(identity: &Identity, alpn: &[u8], tuning: &Tuning) -> ServerBuilder {
    let builder = Server::builder()
        .certificate_pem(identity.chain.clone(), identity.key.clone())
        .profile(tuning.basics.profile.unwrap_or_default())
        .transport(|transport| tuning.basics.apply(transport))
        .cipher_suites(tuning.basics.suite.list())
        .alpn([alpn])
        .key_log();
    chosen(builder, tuning)
}

/// What is chosen only if a flag says so.
fn chosen<Side>(mut builder: Builder<Side>, tuning: &Tuning) -> Builder<Side> {
    if let Some(name) = &tuning.basics.cc {
        builder = builder.congestion(name);
    }
    if let Some(name) = &tuning.recovery {
        builder = builder.recovery(name);
    }
    let versions = &tuning.basics.quic_version;
    if !versions.is_empty() {
        builder = builder.versions(versions.iter().map(|version| version.number()));
    }
    if let Some(first) = tuning.basics.first_version {
        builder = builder.first_version(first.number());
    }
    if let Some(directory) = &tuning.basics.qlog {
        builder = builder.qlog(directory);
    }
    builder
}

/// Binds a server. A machine without IPv6 can't bind the default address; then all IPv4 addresses
/// are meant.
pub fn listen(server: &ServerBuilder, address: SocketAddr) -> Result<Server, Failure> {
    match server.clone().bind(address) {
        Ok(server) => Ok(server),
        Err(BuildError::Bind(BindError::Address { source, .. }))
            if source.kind() != ErrorKind::AddrInUse && DEFAULT_LISTEN.parse() == Ok(address) =>
        {
            let all = SocketAddr::from((Ipv4Addr::UNSPECIFIED, address.port()));
            server
                .clone()
                .bind(all)
                .map_err(|error| build_failure(&error))
        }
        Err(error) => Err(build_failure(&error)),
    }
}

/// Waits, for a moment, until the peers of a closed server could hear of it.
pub async fn farewell(server: &Server) {
    server.endpoint().close(0, b"server is shutting down");
    // Late is late: the peers find out by their idle timeouts.
    let _ = timeout(FAREWELL, server.endpoint().wait_idle()).await;
}

/// Why a client or server could not be made, with what to do about it.
pub fn build_failure(error: &BuildError) -> Failure {
    let exit = match error {
        BuildError::Bind(error) => return bind_failure(error),
        BuildError::Tls(_) | BuildError::NoCertificate => Exit::Certificate,
        BuildError::File { .. } => Exit::LocalFile,
        BuildError::Platform(_) => {
            let hint = "trust the server with --ca FILE";
            return Failure::new(Exit::Certificate, format_args!("{error} ({hint})"));
        }
        BuildError::Qlog { path, source } => return qlog_failure(path, source),
        BuildError::Congestion(_) | BuildError::Recovery(_) | BuildError::Version(_) => Exit::Usage,
        _ => Exit::Failure,
    };
    Failure::new(exit, error)
}

/// The directory for logs is of no use.
pub fn qlog_failure(directory: &Path, error: &io::Error) -> Failure {
    let why = plain_io_error(error);
    Failure::new(
        Exit::LocalFile,
        format_args!("cannot write qlog to {}: {why}", directory.display()),
    )
}

/// A failure to bind, with what to do about it.
pub fn bind_failure(error: &BindError) -> Failure {
    let BindError::Address { address, source } = error else {
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
    Failure::new(
        Exit::Listen,
        format_args!("cannot listen on UDP {address}: {why}"),
    )
}

/// Connects `client` to the first address of `host` that answers.
pub async fn connect(client: &Client, host: &str, port: u16) -> Result<Connection, Failure> {
    let addresses = resolve(host, port).await?;
    let connected = client.connect_any(addresses, host).await;
    connected.map_err(|error| client_failure(&error, &target(host, port)))
}

/// As [`connect`], but doesn't wait for a server that was connected to before and takes early data.
pub async fn connect_early(client: &Client, host: &str, port: u16) -> Result<Connection, Failure> {
    let connected = client.connect_early(&target(host, port)).await;
    connected.map_err(|error| client_failure(&error, &target(host, port)))
}

/// `host:port`, with brackets where they are needed.
fn target(host: &str, port: u16) -> String {
    if host.contains(':') {
        format!("[{host}]:{port}")
    } else {
        format!("{host}:{port}")
    }
}

/// How a client parts from its servers.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Parting {
    /// Code 0: it has what it wanted.
    Done,
    /// Code 1: it gives up.
    GivingUp,
}

/// Closes a client's connections and waits, for a moment, until the servers could hear of it.
pub async fn hang_up(client: &Client, parting: Parting) {
    match parting {
        Parting::Done => client.endpoint().close(0, b"done"),
        Parting::GivingUp => client.endpoint().close(1, b"interrupted"),
    }
    // As in `farewell`.
    let _ = timeout(FAREWELL, client.endpoint().wait_idle()).await;
}

/// The addresses of `host`, in the resolver's order.
pub async fn resolve(host: &str, port: u16) -> Result<Vec<SocketAddr>, Failure> {
    let mut addresses = Vec::new();
    let found = lookup_host((host, port))
        .await
        .map_err(|error| lookup_failure(host, &error))?;
    for address in found {
        if !addresses.contains(&address) {
            addresses.push(address);
        }
    }
    if addresses.is_empty() {
        return Err(no_address(host));
    }
    Ok(addresses)
}

/// What resolvers say of a name that has no address (`EAI_NONAME`, `EAI_NODATA` and the like): glibc,
/// glibc, musl, BSD and macOS, Windows. There is nothing but words to tell it from other errors.
const NO_SUCH_NAME: [&str; 5] = [
    "not known",
    "No address associated",
    "does not resolve",
    "nodename nor servname",
    "No such host",
];

/// Why a name could not be looked up: it has no address, or nobody could be asked.
pub fn lookup_failure(host: &str, error: &io::Error) -> Failure {
    let text = plain_io_error(error);
    if NO_SUCH_NAME.iter().any(|words| text.contains(words)) {
        return no_address(host);
    }
    let said = text.rsplit(": ").next().unwrap_or(&text);
    Failure::new(
        Exit::UnknownHost,
        format_args!("cannot look up host '{host}' now: {said}; is the network up?"),
    )
}

fn no_address(host: &str) -> Failure {
    Failure::new(
        Exit::UnknownHost,
        format_args!("unknown host '{host}': the name has no address"),
    )
}

/// Why no connection came about, with what to do about it.
pub fn client_failure(error: &ClientError, target: &str) -> Failure {
    match error {
        ClientError::Connection(error) => connection_failure(error, target),
        other => Failure::new(
            Exit::Connection,
            format_args!("cannot connect to {target}: {other}"),
        ),
    }
}

/// Why a connection to `target` failed or was lost, with what to do about it.
pub fn connection_failure(error: &ConnectionError, target: &str) -> Failure {
    if let ConnectionError::Transport(error) | ConnectionError::PeerTransport(error) = error
        && error.code == ErrorCode::crypto(NO_APPLICATION_PROTOCOL)
    {
        return Failure::new(
            Exit::Certificate,
            format_args!("{target} does not speak the protocol asked for (ALPN)"),
        );
    }
    let (exit, text) = match error {
        ConnectionError::HandshakeTimedOut => (
            Exit::Connection,
            format!(
                "no answer from {target}: no QUIC server is there, or UDP is blocked on the way"
            ),
        ),
        ConnectionError::TimedOut => (
            Exit::Connection,
            format!("connection to {target} lost: nothing heard for too long"),
        ),
        ConnectionError::Transport(error) if alert_of(error.code).is_some() => {
            (Exit::Certificate, tls_text(error, target))
        }
        ConnectionError::PeerTransport(error) if alert_of(error.code).is_some() => {
            let alert = alert_of(error.code).map_or_else(String::new, describe);
            let said = if error.reason.is_empty() {
                alert
            } else {
                format!("{} ({alert})", error.reason)
            };
            (
                Exit::Certificate,
                format!("{target} refused the TLS handshake: {said}"),
            )
        }
        ConnectionError::PeerTransport(error) if error.code == ErrorCode::CONNECTION_REFUSED => (
            Exit::Connection,
            format!("{target} refuses connections now"),
        ),
        other => (
            Exit::Connection,
            format!("connection to {target} lost: {other}"),
        ),
    };
    Failure::new(exit, text)
}

/// What our end of TLS found wrong.
fn tls_text(error: &TransportError, target: &str) -> String {
    let reason = &error.reason;
    match alert_of(error.code) {
        Some(alert) if is_about_certificates(alert) => format!(
            "bad certificate of {target}: {reason} (trust its certificate with --ca FILE, or skip \
             the check with --insecure)"
        ),
        alert => {
            let alert = alert.map_or_else(String::new, describe);
            format!("TLS with {target} failed: {reason} ({alert})")
        }
    }
}
