//! TLS configuration of clients: trust anchors, ALPN, cipher suites, session resumption.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use rustls::client::danger::ServerCertVerifier;
use rustls::client::{ClientSessionStore, Resumption, WebPkiServerVerifier};
use rustls::crypto::CryptoProvider;
use rustls::quic::ClientConnection;
use rustls::sign::{CertifiedKey, SingleCertAndKey};
use rustls::time_provider::TimeProvider;
use rustls::{ClientConfig, KeyLog, KeyLogFile, RootCertStore, SupportedProtocolVersion};
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use swiftwater_quic::crypto::{ClientCrypto, Primitives, Session, SessionError};

use crate::checks::check_version;
use crate::cipher_suite::{self, CipherSuite};
use crate::client_sessions::ConnectionSessions;
use crate::config_error::ConfigError;
use crate::rustls_keys::{RustlsPrimitives, rustls_version};
use crate::rustls_session::RustlsSession;
use crate::secret_tap::SecretTap;
use crate::sessions::{ServerId, SessionStore};
use crate::trusted_leaf::TrustedLeaf;
use crate::verifier::NoVerification;

/// TLS 1.3 for clients.
///
/// The server's certificate is verified unless [`ClientTls::dangerous_without_verification`] is used.
/// Without [`ClientTls::sessions`] every handshake is a full one, and tickets are not looked into once the handshake is
/// confirmed; without [`ClientTls::identity`] servers that ask
/// for a certificate get none.
///
/// ```
/// # fn main() -> Result<(), swiftwater_tls::ConfigError> {
/// use swiftwater_tls::{ClientTls, DevCertificate};
///
/// let certificate = DevCertificate::generate(["localhost"])?;
/// let client = ClientTls::with_roots([certificate.certificate_der()])?
///     .alpn(["hq-interop"])
///     .key_log_file();
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct ClientTls {
    config: Arc<ClientConfig>,
    /// `None` if it is part of a rustls configuration, which doesn't expose it.
    verifier: Option<Arc<dyn ServerCertVerifier>>,
    primitives: Arc<RustlsPrimitives>,
    suites: Vec<CipherSuite>,
    sessions: Option<Arc<dyn SessionStore>>,
}

impl ClientTls {
    /// Trusts certificates that lead to one of `roots`, and the roots themselves, and nothing else: a server
    /// may present a certificate that is byte for byte a root, whether it is self-signed, an authority's or
    /// neither, if its names and its validity match.
    pub fn with_roots(
        roots: impl IntoIterator<Item = CertificateDer<'static>>,
    ) -> Result<Self, ConfigError> {
        let provider = cipher_suite::provider(&CipherSuite::ALL)?;
        let roots: Vec<_> = roots.into_iter().collect();
        let mut store = RootCertStore::empty();
        for root in &roots {
            store.add(root.clone())?;
        }
        let verifier =
            WebPkiServerVerifier::builder_with_provider(Arc::new(store), provider).build()?;
        Self::with_verifier_and(verifier, roots)
    }

    /// Trusts the certificates that `verifier` accepts, for example the platform's own verifier.
    pub fn with_verifier(verifier: Arc<dyn ServerCertVerifier>) -> Result<Self, ConfigError> {
        let config = config(&verifier, &CipherSuite::ALL)?;
        Ok(Self::wrap(config, Some(verifier)))
    }

    /// Trusts the certificates that `verifier` accepts, and these certificates themselves, as
    /// [`ClientTls::with_roots`] does.
    pub fn with_verifier_and(
        verifier: Arc<dyn ServerCertVerifier>,
        trusted: impl IntoIterator<Item = CertificateDer<'static>>,
    ) -> Result<Self, ConfigError> {
        let trusted = trusted.into_iter().collect();
        Self::with_verifier(Arc::new(TrustedLeaf::new(verifier, trusted)))
    }

    /// Trusts **any** certificate: an attacker on the path can read and change everything. For
    /// tests, and for experiments on private networks.
    pub fn dangerous_without_verification() -> Result<Self, ConfigError> {
        let provider = cipher_suite::provider(&CipherSuite::ALL)?;
        Self::with_verifier(Arc::new(NoVerification(provider)))
    }

    /// Uses a rustls configuration as it is, except that its session store is left out and early data
    /// are switched off: [`ClientTls::sessions`] has its own, which stores more than rustls's.
    ///
    /// The configuration must support TLS 1.3 with a suite that supports QUIC, otherwise sessions fail to
    /// start. Its provider must implement the nonces of multipath QUIC if that extension is used; both
    /// providers of rustls do. The keys of later key phases, and those derived again after they were
    /// released, come from this crate's own provider.
    pub fn from_rustls(mut config: ClientConfig) -> Self {
        config.resumption = Resumption::disabled();
        config.enable_early_data = false;
        Self::wrap(config, None)
    }

    fn wrap(config: ClientConfig, verifier: Option<Arc<dyn ServerCertVerifier>>) -> Self {
        Self {
            config: Arc::new(config),
            verifier,
            primitives: Arc::new(RustlsPrimitives::new()),
            suites: CipherSuite::ALL.to_vec(),
            sessions: None,
        }
    }

    /// Offers these application protocols, in order of preference (ALPN). A server that supports
    /// none of them closes the connection with `no_application_protocol`.
    #[must_use]
    pub fn alpn(mut self, protocols: impl IntoIterator<Item = impl Into<Vec<u8>>>) -> Self {
        Arc::make_mut(&mut self.config).alpn_protocols =
            protocols.into_iter().map(Into::into).collect();
        self
    }

    /// Resumes sessions with known servers, and keeps new sessions and address validation tokens in
    /// `store`.
    ///
    /// An idle connection that has received tickets takes less memory, and stores no others that come later.
    ///
    /// A resumed handshake has no certificates: the server proves that it holds the session. Sessions
    /// of a configuration with another verifier are not used, and none are stored for a server that
    /// was not verified.
    #[must_use]
    pub fn sessions(mut self, store: Arc<dyn SessionStore>) -> Self {
        self.sessions = Some(store);
        self
    }

    /// Offers early data (0-RTT) when a session is resumed that permits it; default off. No effect
    /// without [`ClientTls::sessions`].
    #[must_use]
    pub fn early_data(mut self, offer: bool) -> Self {
        Arc::make_mut(&mut self.config).enable_early_data = offer;
        self
    }

    /// Presents `chain`, the client's own certificate first, to servers that ask for one, and signs with its private
    /// `key` (RFC 8446, section 4.4.2). Anyone whom the client connects to may ask; only over TLS 1.2 others on the
    /// path see it.
    pub fn identity(
        mut self,
        chain: Vec<CertificateDer<'static>>,
        key: PrivateKeyDer<'static>,
    ) -> Result<Self, ConfigError> {
        if chain.is_empty() {
            return Err(ConfigError::NoCertificate);
        }
        let provider = cipher_suite::provider(&CipherSuite::ALL)?;
        let certified = CertifiedKey::from_der(chain, key, &provider)?;
        Arc::make_mut(&mut self.config).client_auth_cert_resolver =
            Arc::new(SingleCertAndKey::from(certified));
        Ok(self)
    }

    /// As [`ClientTls::identity`], from PEM: all certificates of `chain` in their order, and the first private key of
    /// `key`. The two may be the same text.
    pub fn identity_from_pem(self, chain: &[u8], key: &[u8]) -> Result<Self, ConfigError> {
        let chain = CertificateDer::pem_slice_iter(chain)
            .collect::<Result<Vec<_>, _>>()
            .map_err(ConfigError::Pem)?;
        let key = PrivateKeyDer::from_pem_slice(key).map_err(ConfigError::Pem)?;
        self.identity(chain, key)
    }

    /// Appends the secrets of every connection to the file named by the environment variable
    /// `SSLKEYLOGFILE`, for Wireshark and similar tools; without the variable nothing is written.
    #[must_use]
    pub fn key_log_file(mut self) -> Self {
        Arc::make_mut(&mut self.config).key_log = Arc::new(KeyLogFile::new());
        self
    }

    /// Offers exactly these cipher suites, in order of preference. The default is
    /// [`CipherSuite::ALL`].
    pub fn with_cipher_suites(mut self, suites: &[CipherSuite]) -> Result<Self, ConfigError> {
        let verifier = self
            .verifier
            .as_ref()
            .ok_or(ConfigError::FixedCipherSuites)?;
        let mut config = config(verifier, suites)?;
        config
            .alpn_protocols
            .clone_from(&self.config.alpn_protocols);
        config.key_log = Arc::clone(&self.config.key_log);
        config.time_provider = Arc::clone(&self.config.time_provider);
        config.client_auth_cert_resolver = Arc::clone(&self.config.client_auth_cert_resolver);
        config.enable_early_data = self.config.enable_early_data;
        self.config = Arc::new(config);
        self.suites = suites.to_vec();
        Ok(self)
    }

    /// The same trust, identity, suites and key log for TLS over TCP, without ALPN names, which the caller
    /// sets, and without resumption. Verification is rustls's.
    ///
    /// It offers TLS 1.3, and 1.2 with the same ciphers and ephemeral keys (RFC 9325, section 4.2) for
    /// older servers. A configuration from [`ClientTls::from_rustls`] keeps its versions.
    pub fn over_tcp(&self) -> Result<ClientConfig, ConfigError> {
        let mut config = ClientConfig::clone(&self.config);
        if let Some(verifier) = &self.verifier {
            let provider = cipher_suite::provider_over_tcp(&self.suites)?;
            let versions = [&rustls::version::TLS13, &rustls::version::TLS12];
            let both = versioned(verifier, provider, &versions)?;
            let old = std::mem::replace(&mut config, both);
            config.key_log = old.key_log;
            config.time_provider = old.time_provider;
            config.client_auth_cert_resolver = old.client_auth_cert_resolver;
        }
        config.alpn_protocols.clear();
        config.enable_early_data = false;
        Ok(config)
    }

    /// Checks the validity of certificates at this time after the Unix epoch instead of the
    /// system's clock: simulations must not depend on the day on which they run.
    #[must_use]
    pub fn at_unix_time(mut self, since_epoch: Duration) -> Self {
        Arc::make_mut(&mut self.config).time_provider =
            Arc::new(FixedTime(UnixTime::since_unix_epoch(since_epoch)));
        self
    }
}

impl fmt::Debug for ClientTls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClientTls")
            .field("alpn", &self.config.alpn_protocols)
            .finish_non_exhaustive()
    }
}

impl ClientCrypto for ClientTls {
    fn start_session(
        &self,
        version: u32,
        server_name: &str,
        parameters: &[u8],
    ) -> Result<Box<dyn Session>, SessionError> {
        check_version(version)?;
        let name = ServerName::try_from(server_name.to_owned())
            .map_err(|_| SessionError(format!("{server_name:?} is not a server name")))?;
        let mut config = ClientConfig::clone(&self.config);
        let tap = Arc::new(SecretTap::new(config.key_log));
        config.key_log = Arc::clone(&tap) as Arc<dyn KeyLog>;
        let sessions = self.sessions.as_ref().map(|store| {
            let server = server_id(version, server_name);
            let offered = config.alpn_protocols.clone();
            Arc::new(ConnectionSessions::new(Arc::clone(store), server, offered))
        });
        if let Some(sessions) = &sessions {
            let store: Arc<dyn ClientSessionStore> = Arc::clone(sessions) as _;
            config.resumption = Resumption::store(store);
        }
        let connection = ClientConnection::new(
            Arc::new(config),
            rustls_version(version),
            name,
            parameters.to_vec(),
        )
        .map_err(|error| SessionError(error.to_string()))?;
        let name = server_name.to_owned();
        let session = RustlsSession::client(connection, version, name, tap, sessions);
        Ok(Box::new(session))
    }

    fn take_token(&self, version: u32, server_name: &str) -> Option<Vec<u8>> {
        let store = self.sessions.as_ref()?;
        store.take_token(&server_id(version, server_name))
    }

    fn primitives(&self) -> Arc<dyn Primitives> {
        Arc::clone(&self.primitives) as Arc<dyn Primitives>
    }
}

fn server_id(version: u32, server_name: &str) -> ServerId {
    ServerId {
        name: server_name.to_owned(),
        version,
    }
}

fn config(
    verifier: &Arc<dyn ServerCertVerifier>,
    suites: &[CipherSuite],
) -> Result<ClientConfig, ConfigError> {
    let provider = cipher_suite::provider(suites)?;
    versioned(verifier, provider, &[&rustls::version::TLS13])
}

fn versioned(
    verifier: &Arc<dyn ServerCertVerifier>,
    provider: Arc<CryptoProvider>,
    versions: &[&'static SupportedProtocolVersion],
) -> Result<ClientConfig, ConfigError> {
    let mut config = ClientConfig::builder_with_provider(provider)
        .with_protocol_versions(versions)?
        .dangerous()
        .with_custom_certificate_verifier(Arc::clone(verifier))
        .with_no_client_auth();
    config.resumption = Resumption::disabled();
    Ok(config)
}

/// A clock with a fixed time.
#[derive(Debug)]
struct FixedTime(UnixTime);

impl TimeProvider for FixedTime {
    fn current_time(&self) -> Option<UnixTime> {
        Some(self.0)
    }
}
