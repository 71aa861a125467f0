//! TLS configuration of servers: certificate, ALPN, tickets, early data.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use rustls::crypto::aws_lc_rs::Ticketer;
use rustls::quic::ServerConnection;
use rustls::server::danger::ClientCertVerifier;
use rustls::server::{NoClientAuth, NoServerSessionStorage, ProducesTickets, ResolvesServerCert};
use rustls::sign::{CertifiedKey, SingleCertAndKey};
use rustls::{KeyLog, KeyLogFile, ServerConfig};
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, PrivateKeyDer};
use swiftwater_quic::crypto::{Hello, Primitives, ServerCrypto, Session, SessionError};

use crate::checks::check_version;
use crate::cipher_suite::{self, CipherSuite};
use crate::client_hello;
use crate::config_error::ConfigError;
use crate::dev_cert::DevCertificate;
use crate::rustls_keys::{RustlsPrimitives, rustls_version};
use crate::rustls_session::RustlsSession;
use crate::secret_tap::SecretTap;
use crate::tickets::{Binding, BoundSessions, BoundTicketer, SingleUse, Tickets};

/// TLS 1.3 for servers. Without [`ServerTls::tickets`] every handshake is a full one, and without
/// [`ServerTls::client_certificates`] clients are not asked who they are.
#[derive(Clone)]
pub struct ServerTls {
    config: Arc<ServerConfig>,
    /// False if the configuration was supplied by the caller and can't be built again.
    ours: bool,
    /// Checks the certificates that clients are asked for, if they are.
    clients: Option<Arc<dyn ClientCertVerifier>>,
    suites: Vec<CipherSuite>,
    primitives: Arc<RustlsPrimitives>,
    resumption: Option<Resumption>,
    early_data: bool,
    /// The last configuration, with the binding of its tickets. Transport settings rarely change,
    /// so nearly all connections share one.
    bound: Arc<Mutex<Bound>>,
}

/// A configuration, with the binding of its tickets.
type Bound = Option<(Binding, Arc<ServerConfig>)>;

/// Tickets of the configuration.
#[derive(Clone)]
enum Resumption {
    SingleUse(Arc<SingleUse>),
    Stateless(Arc<dyn ProducesTickets>),
}

/// Tickets sent to a client in each connection: one for the next connection, one for a concurrent
/// one.
const TICKETS_SENT: usize = 2;

impl ServerTls {
    /// Uses `chain`, the end-entity certificate first, and signs with its private `key`.
    pub fn new(
        chain: Vec<CertificateDer<'static>>,
        key: PrivateKeyDer<'static>,
    ) -> Result<Self, ConfigError> {
        if chain.is_empty() {
            return Err(ConfigError::NoCertificate);
        }
        let provider = cipher_suite::provider(&CipherSuite::ALL)?;
        let certified = CertifiedKey::from_der(chain, key, &provider)?;
        Self::from_resolver(Arc::new(SingleCertAndKey::from(certified)))
    }

    /// Uses the certificate that `resolver` chooses for each handshake, by the client's server name or
    /// by time. Handshakes for which it has none fail.
    pub fn from_resolver(resolver: Arc<dyn ResolvesServerCert>) -> Result<Self, ConfigError> {
        Ok(Self::wrap(config(resolver, &CipherSuite::ALL, None)?, true))
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

    /// Uses a development certificate.
    pub fn from_dev_certificate(certificate: &DevCertificate) -> Result<Self, ConfigError> {
        Self::new(
            vec![certificate.certificate_der()],
            certificate.private_key_der(),
        )
    }

    /// Uses a rustls configuration as it is, except that its session storage and ticketer are left
    /// out and early data are switched off: [`ServerTls::tickets`] has its own. The requirements of
    /// [`ClientTls::from_rustls`](crate::ClientTls::from_rustls) apply.
    pub fn from_rustls(mut config: ServerConfig) -> Self {
        disable_resumption(&mut config);
        Self::wrap(config, false)
    }

    fn wrap(config: ServerConfig, ours: bool) -> Self {
        Self {
            config: Arc::new(config),
            ours,
            clients: None,
            suites: CipherSuite::ALL.to_vec(),
            primitives: Arc::new(RustlsPrimitives::new()),
            resumption: None,
            early_data: false,
            bound: Arc::default(),
        }
    }

    /// Accepts these application protocols, in order of preference: the first one that the client
    /// also offers is chosen, and a client that offers none of them is rejected with
    /// `no_application_protocol`.
    #[must_use]
    pub fn alpn(mut self, protocols: impl IntoIterator<Item = impl Into<Vec<u8>>>) -> Self {
        Arc::make_mut(&mut self.config).alpn_protocols =
            protocols.into_iter().map(Into::into).collect();
        self.bound = Arc::default();
        self
    }

    /// Issues tickets, so that clients can resume their sessions. Clones share the issued tickets.
    pub fn tickets(mut self, tickets: Tickets) -> Result<Self, ConfigError> {
        self.resumption = match tickets {
            Tickets::Off => None,
            Tickets::SingleUse { capacity } => {
                Some(Resumption::SingleUse(Arc::new(SingleUse::new(capacity))))
            }
            Tickets::Stateless => Some(Resumption::Stateless(Ticketer::new()?)),
        };
        self.bound = Arc::default();
        Ok(self)
    }

    /// Permits early data (0-RTT) on resumption with a [`Tickets::SingleUse`] ticket; default off.
    /// The transport must accept them too
    /// ([`ServerConfig::early_data`](swiftwater_quic::ServerConfig::early_data)).
    #[must_use]
    pub fn early_data(mut self, accept: bool) -> Self {
        self.early_data = accept;
        self.bound = Arc::default();
        self
    }

    /// The configuration for connections with the transport parameters `parameters`.
    fn config_for(&self, version: u32, parameters: &[u8]) -> Arc<ServerConfig> {
        let resumption = match &self.resumption {
            Some(resumption) if self.clients.is_none() => resumption,
            _ => return Arc::clone(&self.config),
        };
        let binding = Binding::new(version, parameters);
        let mut bound = self.bound.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((of, config)) = &*bound
            && *of == binding
        {
            return Arc::clone(config);
        }
        let mut config = ServerConfig::clone(&self.config);
        config.send_tls13_tickets = TICKETS_SENT;
        match resumption {
            Resumption::SingleUse(sessions) => {
                if self.early_data && binding.has_limits() {
                    // The value that QUIC requires: flow control is the limit (RFC 9001, section
                    // 4.6.1).
                    config.max_early_data_size = u32::MAX;
                }
                config.session_storage = Arc::new(BoundSessions {
                    sessions: Arc::clone(sessions),
                    binding: binding.clone(),
                });
            }
            Resumption::Stateless(ticketer) => {
                config.ticketer = Arc::new(BoundTicketer {
                    ticketer: Arc::clone(ticketer),
                    binding: binding.clone(),
                });
            }
        }
        let config = Arc::new(config);
        *bound = Some((binding, Arc::clone(&config)));
        config
    }

    /// Appends the secrets of every connection to the file named by the environment variable
    /// `SSLKEYLOGFILE`; without the variable nothing is written.
    #[must_use]
    pub fn key_log_file(mut self) -> Self {
        Arc::make_mut(&mut self.config).key_log = Arc::new(KeyLogFile::new());
        self.bound = Arc::default();
        self
    }

    /// Accepts exactly these cipher suites; among the common ones the client's order decides. The
    /// default is [`CipherSuite::ALL`].
    pub fn with_cipher_suites(mut self, suites: &[CipherSuite]) -> Result<Self, ConfigError> {
        if !self.ours {
            return Err(ConfigError::FixedCipherSuites);
        }
        self.rebuild(suites)?;
        Ok(self)
    }

    /// Asks clients for a certificate, which `verifier` checks, such as
    /// [`ClientAuthorities`](crate::ClientAuthorities);
    /// [`peer_certificates`](swiftwater_quic::crypto::Session::peer_certificates) has the chain then. Whether clients may
    /// have none is up to `verifier`.
    ///
    /// Sessions are not resumed then, whatever [`ServerTls::tickets`] says: a ticket would keep a certificate alive that
    /// has expired or was revoked since.
    pub fn client_certificates(
        mut self,
        verifier: Arc<dyn ClientCertVerifier>,
    ) -> Result<Self, ConfigError> {
        if !self.ours {
            return Err(ConfigError::FixedClientCertificates);
        }
        self.clients = Some(verifier);
        let suites = self.suites.clone();
        self.rebuild(&suites)?;
        Ok(self)
    }

    /// Builds the configuration again, with `suites` and the present verifier of clients.
    fn rebuild(&mut self, suites: &[CipherSuite]) -> Result<(), ConfigError> {
        let resolver = Arc::clone(&self.config.cert_resolver);
        let mut config = config(resolver, suites, self.clients.clone())?;
        config
            .alpn_protocols
            .clone_from(&self.config.alpn_protocols);
        config.key_log = Arc::clone(&self.config.key_log);
        self.config = Arc::new(config);
        self.suites = suites.to_vec();
        self.bound = Arc::default();
        Ok(())
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
        let mut config = ServerConfig::clone(&self.config_for(version, parameters));
        let tap = Arc::new(SecretTap::new(config.key_log));
        config.key_log = Arc::clone(&tap) as Arc<dyn KeyLog>;
        let connection = ServerConnection::new(
            Arc::new(config),
            rustls_version(version),
            parameters.to_vec(),
        )
        .map_err(|error| SessionError(error.to_string()))?;
        Ok(Box::new(RustlsSession::server(connection, tap, version)))
    }

    fn hello<'a>(&self, bytes: &'a [u8]) -> Hello<'a> {
        client_hello::look(bytes)
    }

    fn primitives(&self) -> Arc<dyn Primitives> {
        Arc::clone(&self.primitives) as Arc<dyn Primitives>
    }
}

fn config(
    resolver: Arc<dyn ResolvesServerCert>,
    suites: &[CipherSuite],
    clients: Option<Arc<dyn ClientCertVerifier>>,
) -> Result<ServerConfig, ConfigError> {
    let mut config = ServerConfig::builder_with_provider(cipher_suite::provider(suites)?)
        .with_protocol_versions(&[&rustls::version::TLS13])?
        .with_client_cert_verifier(clients.unwrap_or_else(|| Arc::new(NoClientAuth)))
        .with_cert_resolver(resolver);
    disable_resumption(&mut config);
    Ok(config)
}

fn disable_resumption(config: &mut ServerConfig) {
    config.session_storage = Arc::new(NoServerSessionStorage {});
    config.ticketer = Arc::new(NoTickets);
    config.send_tls13_tickets = 0;
    config.max_early_data_size = 0;
}

/// A ticketer that seals nothing.
#[derive(Debug)]
struct NoTickets;

impl ProducesTickets for NoTickets {
    fn enabled(&self) -> bool {
        false
    }

    fn lifetime(&self) -> u32 {
        0
    }

    fn encrypt(&self, _: &[u8]) -> Option<Vec<u8>> {
        None
    }

    fn decrypt(&self, _: &[u8]) -> Option<Vec<u8>> {
        None
    }
}
