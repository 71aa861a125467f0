//! The TLS configuration of servers for HTTP over TCP: TLS 1.3 (RFC 8446), HTTP/2 before HTTP/1.1
//! (RFC 7301), no early data.

use std::sync::Arc;

use rustls::ServerConfig;
use rustls::crypto::aws_lc_rs;
use rustls::server::ResolvesServerCert;

/// The ALPN name of HTTP/2 (RFC 9113, section 3.2).
pub const ALPN_HTTP2: &[u8] = b"h2";

/// The ALPN name of HTTP/1.1 (RFC 7301, section 6).
pub const ALPN_HTTP11: &[u8] = b"http/1.1";

/// A configuration that shows `certificates` and offers HTTP/2 and HTTP/1.1.
///
/// Errors mean that the cryptographic library lacks TLS 1.3.
pub fn server_config(
    certificates: Arc<dyn ResolvesServerCert>,
) -> Result<ServerConfig, rustls::Error> {
    let provider = Arc::new(aws_lc_rs::default_provider());
    let mut config = ServerConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&rustls::version::TLS13])?
        .with_no_client_auth()
        .with_cert_resolver(certificates);
    config.alpn_protocols = vec![ALPN_HTTP2.to_vec(), ALPN_HTTP11.to_vec()];
    Ok(config)
}
