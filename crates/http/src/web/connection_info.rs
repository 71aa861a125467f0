//! Facts about the connection that a request was received on. Servers put them into the extensions
//! of every request; the access log, the proxy's `Forwarded` and services read it there.

use std::net::SocketAddr;
use std::sync::Arc;

use rustls::pki_types::CertificateDer;

/// Transport below HTTP.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Transport {
    /// TCP without TLS.
    Tcp,
    /// TLS over TCP.
    Tls,
    /// QUIC, which is always encrypted.
    Quic,
}

impl Transport {
    /// The scheme of URIs for this transport: `http` or `https`.
    pub fn scheme(self) -> &'static str {
        match self {
            Self::Tcp => "http",
            Self::Tls | Self::Quic => "https",
        }
    }
}

/// The connection that a request was received on, in the extensions of the request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConnectionInfo {
    /// The address of the client, as reported by the socket. With QUIC it may change between
    /// requests.
    pub peer: SocketAddr,
    /// The local address of the connection.
    pub local: SocketAddr,
    /// Transport below HTTP.
    pub protocol: Transport,
    /// The application protocol that TLS agreed on (RFC 7301), as on the wire: `h3`, `h2`,
    /// `http/1.1`. `None` without TLS, or if the client offered none.
    pub alpn: Option<Arc<[u8]>>,
    /// The server name of the client's TLS handshake (RFC 6066, section 3), if any.
    pub server_name: Option<Arc<str>>,
    /// The certificates of the client that TLS verified, its own first, then those of authorities that it sent. `None` if
    /// the server asks for none, or the client has none.
    pub client_chain: Option<Arc<[CertificateDer<'static>]>>,
}
