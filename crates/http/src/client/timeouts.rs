//! Time limits of the phases of a request.

use std::fmt;
use std::future::Future;
use std::time::Duration;

use tokio::time::timeout;

use super::error::Error;

/// Time limits of the phases of a request. An exceeded limit is [`Error::Timeout`], or the failure
/// of one connection attempt.
#[derive(Clone, Copy, Debug)]
pub struct Timeouts {
    /// A lookup. Default: 5 s.
    pub resolve: Duration,
    /// TCP's handshake with one address, to a proxy as well. Default: 10 s.
    pub connect: Duration,
    /// TLS's and the proxy's handshake on one TCP connection. Default: 10 s.
    pub handshake: Duration,
    /// QUIC's handshake with one address. An attempt that TCP overtook continues until then, to
    /// find out whether QUIC works. Default: 5 s.
    pub quic: Duration,
    /// From the last content of the request that the connection accepted to the head of the
    /// response. Default: 30 s.
    pub head: Duration,
    /// Between two reads of content while the response is incomplete. Default: 30 s.
    pub body: Duration,
    /// From the start to the head of the response. Default: none.
    pub total: Option<Duration>,
}

impl Default for Timeouts {
    fn default() -> Self {
        Self {
            resolve: Duration::from_secs(5),
            connect: Duration::from_secs(10),
            handshake: Duration::from_secs(10),
            quic: Duration::from_secs(5),
            head: Duration::from_secs(30),
            body: Duration::from_secs(30),
            total: None,
        }
    }
}

/// A phase of a request with a limit in [`Timeouts`].
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum Phase {
    /// [`Timeouts::resolve`].
    Resolve,
    /// [`Timeouts::connect`].
    Connect,
    /// [`Timeouts::handshake`].
    Handshake,
    /// [`Timeouts::quic`].
    Quic,
    /// [`Timeouts::head`].
    Head,
    /// [`Timeouts::body`].
    Body,
    /// [`Timeouts::total`].
    Total,
}

impl fmt::Display for Phase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Resolve => "looking up the host",
            Self::Connect => "connecting over TCP",
            Self::Handshake => "the handshake of TLS or the proxy",
            Self::Quic => "the QUIC handshake",
            Self::Head => "waiting for the head of the response",
            Self::Body => "waiting for content of the response",
            Self::Total => "the request as a whole",
        })
    }
}

/// Runs `work` with a time limit.
pub(super) async fn within<T>(
    limit: Duration,
    phase: Phase,
    work: impl Future<Output = T>,
) -> Result<T, Error> {
    timeout(limit, work)
        .await
        .map_err(|_| Error::Timeout(phase))
}
