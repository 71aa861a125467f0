//! Accepting, with few decisions to make.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use swiftwater_net::{Connection, Endpoint};
use swiftwater_quic::{RetryPolicy, ServerConfig};
use swiftwater_tls::{DevCertificate, ServerTls};

use crate::builder::Builder;
use crate::error::BuildError;
use crate::settings::{Settings, endpoint_options};

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
}

/// Makes a [`Server`].
pub type ServerBuilder = Builder<ServerSide>;

/// What a [`ServerBuilder`] knows besides the settings of both sides: who it is, and whom it admits.
#[derive(Clone, Debug)]
pub struct ServerSide {
    identity: Identity,
    retry: RetryPolicy,
    max_connections: Option<usize>,
}

impl Server {
    /// A server with the profile [`Profile::Web`](crate::Profile::Web). It needs a certificate.
    pub fn builder() -> ServerBuilder {
        Builder::new(ServerSide {
            identity: Identity::None,
            retry: RetryPolicy::Above(1000),
            max_connections: None,
        })
    }

    /// Waits for a client whose handshake is complete; `None` once the server is closed.
    pub async fn accept(&self) -> Option<Connection> {
        self.endpoint.accept().await
    }

    /// The address the server listens on.
    pub fn local_addr(&self) -> SocketAddr {
        self.endpoint.local_addr()
    }

    /// The endpoint below, for everything else.
    pub fn endpoint(&self) -> &Endpoint {
        &self.endpoint
    }

    /// Closes all connections with code 0 and waits until the peers could hear of it.
    pub async fn close(&self) {
        self.endpoint.close(0, b"");
        self.endpoint.wait_idle().await;
    }
}

impl ServerBuilder {
    /// Shows the certificates of this PEM file, the server's own first, and signs with the key of
    /// that one.
    #[must_use]
    pub fn certificate_files(mut self, chain: impl AsRef<Path>, key: impl AsRef<Path>) -> Self {
        self.side.identity = Identity::Files {
            chain: chain.as_ref().to_owned(),
            key: key.as_ref().to_owned(),
        };
        self
    }

    /// Shows the certificates of this PEM text, the server's own first, and signs with that key.
    #[must_use]
    pub fn certificate_pem(mut self, chain: impl Into<Vec<u8>>, key: impl Into<Vec<u8>>) -> Self {
        self.side.identity = Identity::Pem {
            chain: chain.into(),
            key: key.into(),
        };
        self
    }

    /// Shows a self-signed certificate, which clients must be told to trust.
    #[must_use]
    pub fn dev_certificate(mut self, certificate: &DevCertificate) -> Self {
        self.side.identity = Identity::Dev(Box::new(certificate.clone()));
        self
    }

    /// Uses TLS as configured elsewhere; ALPN, cipher suites and key log are then set there.
    #[must_use]
    pub fn tls(mut self, tls: ServerTls) -> Self {
        self.side.identity = Identity::Tls(tls);
        self
    }

    /// When clients must prove their address first; default while more than 1000 handshakes are in
    /// progress.
    #[must_use]
    pub fn retry(mut self, policy: RetryPolicy) -> Self {
        self.side.retry = policy;
        self
    }

    /// Refuses connections beyond this number.
    #[must_use]
    pub fn max_connections(mut self, limit: usize) -> Self {
        self.side.max_connections = Some(limit);
        self
    }

    /// Binds the socket and starts to accept. `[::]` takes IPv4 and IPv6. Must be called inside a
    /// tokio runtime.
    pub fn bind(self, address: SocketAddr) -> Result<Server, BuildError> {
        let config = ServerConfig {
            crypto: Arc::new(server_tls(self.side.identity, &self.settings)?),
            transport: self.settings.transport()?,
            retry: self.side.retry,
            retry_token_lifetime: Duration::from_secs(15),
            address_token_lifetime: Duration::from_secs(14 * 24 * 60 * 60),
        };
        let mut options = endpoint_options().server(config);
        if let Some(limit) = self.side.max_connections {
            options.endpoint.max_connections = limit;
        }
        let endpoint = Endpoint::bind(address, options)?;
        Ok(Server { endpoint })
    }
}

fn server_tls(identity: Identity, settings: &Settings) -> Result<ServerTls, BuildError> {
    let tls = match identity {
        Identity::None => return Err(BuildError::NoCertificate),
        Identity::Tls(tls) => return Ok(tls),
        Identity::Pem { chain, key } => ServerTls::from_pem(&chain, &key)?,
        Identity::Files { chain, key } => ServerTls::from_pem(&read(chain)?, &read(key)?)?,
        Identity::Dev(certificate) => ServerTls::from_dev_certificate(&certificate)?,
    };
    let tls = tls
        .with_cipher_suites(&settings.suites)?
        .alpn(settings.alpn.iter().cloned());
    Ok(if settings.key_log {
        tls.key_log_file()
    } else {
        tls
    })
}

fn read(path: PathBuf) -> Result<Vec<u8>, BuildError> {
    std::fs::read(&path).map_err(|source| BuildError::File { path, source })
}
