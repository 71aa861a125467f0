//! Errors of building and connecting.

use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;

use swiftwater_congestion::UnknownEntry;
use swiftwater_http::tcp::CertificateError;
use swiftwater_net::BindError;
use swiftwater_quic::{ConnectError, ConnectionError};
use swiftwater_tls::ConfigError;
use thiserror::Error;

/// Why a client or server could not be created.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum BuildError {
    /// The socket could not be bound.
    #[error(transparent)]
    Bind(#[from] BindError),
    /// Certificates or keys are unusable.
    #[error(transparent)]
    Tls(#[from] ConfigError),
    /// A certificate or key could not be read.
    #[error("cannot read {}: {source}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// The error of the system.
        source: io::Error,
    },
    /// The platform's trust store could not be used.
    #[error("the platform's certificates cannot be used: {0}")]
    Platform(rustls::Error),
    /// There is no such congestion controller.
    #[error(transparent)]
    Congestion(UnknownEntry),
    /// There are no such policies of loss recovery.
    #[error(transparent)]
    Recovery(UnknownEntry),
    /// There is no such scheduler.
    #[error(transparent)]
    Scheduler(UnknownEntry),
    /// There is no such loss judge.
    #[error(transparent)]
    LossJudge(UnknownEntry),
    /// There is no such feedback policy.
    #[error(transparent)]
    Feedback(UnknownEntry),
    /// A QUIC version that this library doesn't support.
    #[error("QUIC version {0:#x} is not supported")]
    Version(u32),
    /// The directory for logs can't be created, or is not a directory.
    #[error("cannot write qlog to {}: {source}", path.display())]
    Qlog {
        /// The directory.
        path: PathBuf,
        /// The error of the system.
        source: io::Error,
    },
    /// A server was given no certificate.
    #[error("a server needs a certificate")]
    NoCertificate,
    /// A web server's certificate is unusable.
    #[error(transparent)]
    Certificate(#[from] CertificateError),
    /// A web server got TLS for QUIC only, so that its TCP side has no certificate.
    #[error("a web server needs its certificate itself, for TLS over TCP, too")]
    TlsForQuicOnly,
    /// TLS over TCP can't be configured.
    #[error("TLS over TCP: {0}")]
    TlsOverTcp(rustls::Error),
    /// The TCP port with the number of the UDP port could not be bound.
    #[error("cannot listen on TCP {address}: {source}")]
    Tcp {
        /// The address and port.
        address: SocketAddr,
        /// The error of the system.
        source: io::Error,
    },
    /// An HTTP client can't be built with these settings.
    #[error(transparent)]
    HttpClient(#[from] swiftwater_http::client::BuildError),
    /// A proxy in the environment can't be used.
    #[error(transparent)]
    Proxy(#[from] swiftwater_http::client::ProxyAddressError),
}

/// Why a client could not connect.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ClientError {
    /// The address is not of the form `host:port`.
    #[error("`{0}` is not of the form host:port")]
    Address(String),
    /// The host is unknown, or the resolver failed.
    #[error("cannot resolve {host}: {source}")]
    Resolve {
        /// The host.
        host: String,
        /// The resolver's error.
        source: io::Error,
    },
    /// The host has no address of a family that this client's socket supports.
    #[error("{0} has no address that can be reached from here")]
    NoAddress(String),
    /// The attempt could not be started.
    #[error(transparent)]
    Connect(#[from] ConnectError),
    /// The handshake failed.
    #[error(transparent)]
    Connection(#[from] ConnectionError),
}
