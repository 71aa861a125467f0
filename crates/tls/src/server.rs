//! The server's side of TLS: its certificate and what it accepts.

use std::fmt;
use std::sync::Arc;

use rustls::quic::{ServerConnection, Version};
use rustls::server::{NoServerSessionStorage, ResolvesServerCert};
use rustls::sign::{CertifiedKey, SingleCertAndKey};
use rustls::{KeyLogFile, ServerConfig};
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, PrivateKeyDer};
use swiftwater_quic::crypto::{Primitives, ServerCrypto, Session, SessionError};

use crate::checks::check_version;
use crate::cipher_suite::{self, CipherSuite};
use crate::config_error::ConfigError;
use crate::dev_cert::DevCertificate;
use crate::rustls_keys::RustlsPrimitives;
use crate::rustls_session::RustlsSession;

/// TLS 1.3 for servers. Resumption and 0-RTT are off: no tickets are sent.
#[derive(Clone)]
pub struct ServerTls {
    config: Arc<ServerConfig>,
    /// False if the configuration came from outside and can't be made again.
    ours: bool,
    primitives: Arc<RustlsPrimitives>,
}

impl ServerTls {
    /// Shows `chain`, the end-entity certificate first, and signs with its private `key`.
    pub fn new(
        chain: Vec<CertificateDer<'static>>,
        key: PrivateKeyDer<'static>,
    ) -> Result<Self, ConfigError> {
        if chain.is_empty() {
            return Err(ConfigError::NoCertificate);
        }
        let provider = cipher_suite::provider(&CipherSuite::ALL)?;
        let certified = CertifiedKey::from_der(chain, key, &provider)?;
        let resolver: Arc<dyn ResolvesServerCert> = Arc::new(SingleCertAndKey::from(certified));
        Ok(Self::wrap(config(resolver, &CipherSuite::ALL)?, true))
    }

    /// As [`ServerTls::new`], from PEM: all certificates of `chain` in their order, and the first
    /// private key of `key`. The two may be the same text.
    pub fn from_pem(chain: &[u8], key: &[u8]) -> Result<Self, ConfigError> {
        let chain = CertificateDer::pem_slice_iter(chain)
            .collect::<Result<Vec<_>, _>>()
            .map_err(ConfigError::Pem)?;
        let key = PrivateKeyDer::from_pem_slice(key).map_err(ConfigError::Pem)?;
        Self::new(chain, key)
    }

    /// Shows a development certificate.
    pub fn from_dev_certificate(certificate: &DevCertificate) -> Result<Self, ConfigError> {
        Self::new(
            vec![certificate.certificate_der()],
            certificate.private_key_der(),
        )
    }

    /// Uses a rustls configuration as it is, except that resumption and early data are switched off.
    /// What is said at [`ClientTls::from_rustls`](crate::ClientTls::from_rustls) holds here too.
    pub fn from_rustls(mut config: ServerConfig) -> Self {
        disable_resumption(&mut config);
        Self::wrap(config, false)
    }

    fn wrap(config: ServerConfig, ours: bool) -> Self {
        Self {
            config: Arc::new(config),
            ours,
            primitives: Arc::new(RustlsPrimitives::new()),
        }
    }

    /// Accepts these application protocols, the best first: the first one that the client offers
    /// too is taken, and a client that offers none of them is refused with
    /// `no_application_protocol`.
    #[must_use]
    pub fn alpn(mut self, protocols: impl IntoIterator<Item = impl Into<Vec<u8>>>) -> Self {
        Arc::make_mut(&mut self.config).alpn_protocols =
            protocols.into_iter().map(Into::into).collect();
        self
    }

    /// Appends the secrets of every connection to the file named by the environment variable
    /// `SSLKEYLOGFILE`; without the variable nothing is written.
    #[must_use]
    pub fn key_log_file(mut self) -> Self {
        Arc::make_mut(&mut self.config).key_log = Arc::new(KeyLogFile::new());
        self
    }

    /// Accepts exactly these cipher suites; among those that both sides have, the client's order
    /// decides. The default is [`CipherSuite::ALL`].
    pub fn with_cipher_suites(mut self, suites: &[CipherSuite]) -> Result<Self, ConfigError> {
        if !self.ours {
            return Err(ConfigError::FixedCipherSuites);
        }
        let mut config = config(Arc::clone(&self.config.cert_resolver), suites)?;
        config
            .alpn_protocols
            .clone_from(&self.config.alpn_protocols);
        config.key_log = Arc::clone(&self.config.key_log);
        self.config = Arc::new(config);
        Ok(self)
    }
}

impl fmt::Debug for ServerTls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ServerTls")
            .field("alpn", &self.config.alpn_protocols)
            .finish_non_exhaustive()
    }
}

impl ServerCrypto for ServerTls {
    fn start_session(
        &self,
        version: u32,
        parameters: &[u8],
    ) -> Result<Box<dyn Session>, SessionError> {
        check_version(version)?;
        let config = Arc::clone(&self.config);
        let connection = ServerConnection::new(config, Version::V1, parameters.to_vec())
            .map_err(|error| SessionError(error.to_string()))?;
        Ok(Box::new(RustlsSession::new(connection.into(), None)))
    }

    fn primitives(&self) -> Arc<dyn Primitives> {
        Arc::clone(&self.primitives) as Arc<dyn Primitives>
    }
}

fn config(
    resolver: Arc<dyn ResolvesServerCert>,
    suites: &[CipherSuite],
) -> Result<ServerConfig, ConfigError> {
    let mut config = ServerConfig::builder_with_provider(cipher_suite::provider(suites)?)
        .with_protocol_versions(&[&rustls::version::TLS13])?
        .with_no_client_auth()
        .with_cert_resolver(resolver);
    disable_resumption(&mut config);
    Ok(config)
}

fn disable_resumption(config: &mut ServerConfig) {
    config.session_storage = Arc::new(NoServerSessionStorage {});
    config.send_tls13_tickets = 0;
    config.max_early_data_size = 0;
}
