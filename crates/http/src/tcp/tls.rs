//! The TLS configuration of servers for HTTP over TCP: TLS 1.3 (RFC 8446), TLS 1.2 (RFC 5246) on
//! request, HTTP/2 before HTTP/1.1 (RFC 7301), no early data.

use std::sync::Arc;

use rustls::crypto::aws_lc_rs;
use rustls::server::danger::ClientCertVerifier;
use rustls::server::{NoClientAuth, NoServerSessionStorage, ResolvesServerCert};
use rustls::version::{TLS12, TLS13};
use rustls::{ServerConfig, SupportedProtocolVersion};

/// The ALPN name of HTTP/2 (RFC 9113, section 3.2).
pub const ALPN_HTTP2: &[u8] = b"h2";

/// The ALPN name of HTTP/1.1 (RFC 7301, section 6).
pub const ALPN_HTTP11: &[u8] = b"http/1.1";

/// The oldest accepted version of TLS.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum MinTls {
    /// TLS 1.2 (RFC 5246) in addition to TLS 1.3, with suites that have forward secrecy and
    /// authenticate what they encrypt, as HTTP/2 requires (RFC 9113, section 9.2.2). No other suites
    /// are offered.
    Tls12,
    /// TLS 1.3 (RFC 8446) alone.
    #[default]
    Tls13,
}

/// The accepted versions, the preferred first.
static FROM_TLS12: [&SupportedProtocolVersion; 2] = [&TLS13, &TLS12];

impl MinTls {
    fn versions(self) -> &'static [&'static SupportedProtocolVersion] {
        match self {
            Self::Tls12 => &FROM_TLS12,
            Self::Tls13 => &FROM_TLS12[..1],
        }
    }
}

/// A configuration that uses `certificates` and offers HTTP/2 and HTTP/1.1, over TLS 1.3 alone.
///
/// Errors mean that the cryptographic library lacks TLS 1.3.
pub fn server_config(
    certificates: Arc<dyn ResolvesServerCert>,
) -> Result<ServerConfig, rustls::Error> {
    server_config_from(certificates, MinTls::Tls13)
}

/// The same for clients of version `oldest` or newer.
pub fn server_config_from(
    certificates: Arc<dyn ResolvesServerCert>,
    oldest: MinTls,
) -> Result<ServerConfig, rustls::Error> {
    build(certificates, oldest, Arc::new(NoClientAuth))
}

/// The same, and asks clients for a certificate, which `clients` checks, such as
/// [`ClientAuthorities`](swiftwater_tls::ClientAuthorities). Services find it in
/// [`ConnectionInfo::client_chain`](crate::web::connection_info::ConnectionInfo::client_chain).
///
/// Sessions are not resumed: that would keep a certificate alive that has expired or was revoked since.
pub fn server_config_with_clients(
    certificates: Arc<dyn ResolvesServerCert>,
    oldest: MinTls,
    clients: Arc<dyn ClientCertVerifier>,
) -> Result<ServerConfig, rustls::Error> {
    let mut config = build(certificates, oldest, clients)?;
    config.session_storage = Arc::new(NoServerSessionStorage {});
    config.send_tls13_tickets = 0;
    Ok(config)
}

fn build(
    certificates: Arc<dyn ResolvesServerCert>,
    oldest: MinTls,
    clients: Arc<dyn ClientCertVerifier>,
) -> Result<ServerConfig, rustls::Error> {
    let provider = Arc::new(aws_lc_rs::default_provider());
    let mut config = ServerConfig::builder_with_provider(provider)
        .with_protocol_versions(oldest.versions())?
        .with_client_cert_verifier(clients)
        .with_cert_resolver(certificates);
    config.alpn_protocols = vec![ALPN_HTTP2.to_vec(), ALPN_HTTP11.to_vec()];
    Ok(config)
}
