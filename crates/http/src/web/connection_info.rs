//! What is known of the connection that a request came by. Servers put it into the extensions of
//! every request; the access log, the proxy's `Forwarded` and services read it there.

use std::net::SocketAddr;
use std::sync::Arc;

/// How bytes travel below HTTP.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Transport {
    /// TCP without protection.
    Tcp,
    /// TLS over TCP.
    Tls,
    /// QUIC, which is always protected.
    Quic,
}

impl Transport {
    /// The scheme of URIs that are reached this way: `http` or `https`.
    pub fn scheme(self) -> &'static str {
        match self {
            Self::Tcp => "http",
            Self::Tls | Self::Quic => "https",
        }
    }
}

/// The connection that a request came by, in the extensions of the request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConnectionInfo {
    /// The address of the client, as the socket says. With QUIC it may change between requests.
    pub peer: SocketAddr,
    /// The address that the client reached.
    pub local: SocketAddr,
    /// How bytes travel below HTTP.
    pub protocol: Transport,
    /// The application protocol that TLS agreed on (RFC 7301), as on the wire: `h3`, `h2`,
    /// `http/1.1`. None without TLS, or when the client named none.
    pub alpn: Option<Arc<[u8]>>,
    /// The name that the client asked TLS for (RFC 6066, section 3), if any.
    pub server_name: Option<Arc<str>>,
}
