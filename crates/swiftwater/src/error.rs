//! Errors of building and connecting.

use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;

use swiftwater_congestion::UnknownController;
use swiftwater_http::tcp::CertificateError;
use swiftwater_net::BindError;
use swiftwater_policies::UnknownPolicies;
use swiftwater_quic::{ConnectError, ConnectionError};
use swiftwater_tls::ConfigError;
use thiserror::Error;

/// A client or server could not be made.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum BuildError {
    /// The socket could not be had.
    #[error(transparent)]
    Bind(#[from] BindError),
    /// Certificates or keys are unusable.
    #[error(transparent)]
    Tls(#[from] ConfigError),
    /// A certificate or key could not be read.
    #[error("cannot read {}: {source}", path.display())]
    File {
        /// Which file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The platform's trust store could not be used.
    #[error("the platform's certificates cannot be used: {0}")]
    Platform(rustls::Error),
    /// There is no such congestion controller.
    #[error(transparent)]
    Congestion(#[from] UnknownController),
    /// There are no such policies of loss recovery.
    #[error(transparent)]
    Recovery(#[from] UnknownPolicies),
    /// A version of QUIC that this library doesn't speak.
    #[error("QUIC version {0:#x} is not supported")]
    Version(u32),
    /// The directory for logs can't be made, or is none.
    #[error("cannot write qlog to {}: {source}", path.display())]
    Qlog {
        /// Which directory.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// A server was given no certificate.
    #[error("a server needs a certificate")]
    NoCertificate,
    /// A web server's certificate is unusable.
    #[error(transparent)]
    Certificate(#[from] CertificateError),
    /// A web server was given TLS for QUIC, which leaves its TCP side without a certificate.
    #[error("a web server needs its certificate itself, for TLS over TCP, too")]
    TlsForQuicOnly,
    /// TLS over TCP can't be configured.
    #[error("TLS over TCP: {0}")]
    TlsOverTcp(rustls::Error),
    /// The TCP port beside the UDP port could not be had.
    #[error("cannot listen on TCP {address}: {source}")]
    Tcp {
        /// Which address and port.
        address: SocketAddr,
        /// What the system said.
        source: io::Error,
    },
    /// An HTTP client can't be made like that.
    #[error(transparent)]
    HttpClient(#[from] swiftwater_http::client::BuildError),
    /// A proxy that the environment names can't be used.
    #[error(transparent)]
    Proxy(#[from] swiftwater_http::client::ProxyError),
}

/// A client could not connect.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ClientError {
    /// The address is not of the form `host:port`.
    #[error("`{0}` is not of the form host:port")]
    Address(String),
    /// The host is unknown, or the resolver can't be asked.
    #[error("cannot resolve {host}: {source}")]
    Resolve {
        /// The host.
        host: String,
        /// What the resolver said.
        source: io::Error,
    },
    /// The host has no address that this client's socket reaches.
    #[error("{0} has no address that can be reached from here")]
    NoAddress(String),
    /// The attempt could not be started.
    #[error(transparent)]
    Connect(#[from] ConnectError),
    /// The handshake failed.
    #[error(transparent)]
    Connection(#[from] ConnectionError),
}
