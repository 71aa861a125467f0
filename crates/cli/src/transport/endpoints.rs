//! Creates, binds, connects and closes clients and servers as the flags specify.

use std::io::ErrorKind;
use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use swiftwater::{
    BindError, BuildError, Builder, CertificateDer, Client, ClientBuilder, Connection, Server,
    ServerBuilder,
};
use tokio::net::lookup_host;
use tokio::time::timeout;

use super::Tuning;
use super::failures::{build_failure, client_failure, lookup_failure, no_address};
use crate::cli::DEFAULT_LISTEN;
use crate::exit::Failure;
use crate::identity::Identity;

/// How long the end of a program waits until CONNECTION_CLOSE is sent. (The closing state, in which
/// late packets are answered, may last longer; there is no need to wait for it.)
const FAREWELL: Duration = Duration::from_millis(500);

/// The certificates that a client trusts.
#[derive(Clone, Debug)]
pub enum Trust {
    /// Those of the operating system.
    Platform,
    /// These certificates and those they signed, nothing else.
    Roots(Vec<CertificateDer<'static>>),
    /// Any certificate. For experiments.
    Anybody,
}

/// A builder of a client with these settings. Must be built inside the runtime that it runs in.
pub fn client(trust: &Trust, alpn: &[u8], tuning: &Tuning) -> ClientBuilder {
    let builder = Client::builder()
        .profile(tuning.basics.profile.unwrap_or_default())
        .transport(|transport| tuning.basics.apply(transport))
        .cipher_suites(tuning.basics.suite.list())
        .alpn([alpn])
        // Whole handshakes are to be measured.
        .sessions(None)
        .key_log();
    let builder = chosen(builder, tuning);
    match trust {
        Trust::Platform => builder,
        Trust::Roots(roots) => builder.trust_only(roots.iter().cloned()),
        Trust::Anybody => builder.dangerous_accept_any_certificate(),
    }
}

/// A builder of a server with these settings; it offers the protocols of `alpn`, in order of
/// preference.
pub fn server(identity: &Identity, alpn: &[&[u8]], tuning: &Tuning) -> ServerBuilder {
    let builder = Server::builder()
        .certificate_pem(identity.chain.clone(), identity.key.clone())
        .profile(tuning.basics.profile.unwrap_or_default())
        .transport(|transport| tuning.basics.apply(transport))
        .cipher_suites(tuning.basics.suite.list())
        .alpn(alpn.iter().copied())
        .key_log();
    chosen(builder, tuning)
}

/// Settings that are only applied if a flag is given.
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

/// Binds a server. On a machine without IPv6 the default address is replaced by all IPv4 addresses.
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

/// Waits, with a time limit, until CONNECTION_CLOSE was sent to the peers of a closed server.
pub async fn farewell(server: &Server) {
    server.endpoint().close(0, b"server is shutting down");
    // If it is late, the peers detect the end by their idle timeouts.
    let _ = timeout(FAREWELL, server.endpoint().wait_idle()).await;
}

/// Connects `client` to the first address of `host` that answers.
pub async fn connect(client: &Client, host: &str, port: u16) -> Result<Connection, Failure> {
    let addresses = resolve(host, port).await?;
    let connected = client.connect_any(addresses, host).await;
    connected.map_err(|error| client_failure(&error, &target(host, port)))
}

/// As [`connect`], but doesn't wait for the handshake with a server that accepts early data.
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

/// How a client closes its connections.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum CloseReason {
    /// Code 0: complete.
    Done,
    /// Code 1: aborted.
    GivingUp,
}

/// Closes a client's connections and waits, with a time limit, until CONNECTION_CLOSE was sent.
pub async fn hang_up(client: &Client, parting: CloseReason) {
    match parting {
        CloseReason::Done => client.endpoint().close(0, b"done"),
        CloseReason::GivingUp => client.endpoint().close(1, b"interrupted"),
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
