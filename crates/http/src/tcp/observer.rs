//! Report of a server about each closed connection, for logs and counters.

use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

/// How a connection ended.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Outcome {
    /// Normally.
    Orderly,
    /// The TLS handshake failed, for this reason.
    HandshakeFailed(String),
    /// The TLS handshake took too long.
    HandshakeTimeout,
    /// The socket or the syntax of HTTP failed, or a limit was exceeded, for this reason.
    Broken(String),
}

/// A closed connection.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct ConnectionEnd {
    /// The address of the client.
    pub peer: SocketAddr,
    /// The application protocol that TLS agreed on (RFC 7301), as on the wire; `None` without TLS,
    /// if the client offered none, and if the handshake failed.
    pub alpn: Option<Arc<[u8]>>,
    /// Requests whose head arrived.
    pub requests: u64,
    /// Bytes sent on the socket, those of TLS included.
    pub bytes_sent: u64,
    /// Bytes received from the socket, those of TLS included.
    pub bytes_received: u64,
    /// From the acceptance to the end.
    pub elapsed: Duration,
    /// How it ended.
    pub outcome: Outcome,
}

/// Receiver of the reports.
#[derive(Clone)]
pub(super) struct Observer(pub(super) Arc<dyn Fn(&ConnectionEnd) + Send + Sync>);

impl fmt::Debug for Observer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Observer")
    }
}
