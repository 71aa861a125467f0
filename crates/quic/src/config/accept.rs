//! The accept policy: what an application decides about each incoming connection before state is kept for it.

use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use super::TransportConfig;

/// A client's first packet, as far as it is known before any state is kept for it or any
/// cryptography is done.
///
/// The packet is not authenticated yet, and unless [`Incoming::address_validated`] is true its
/// address may be forged. The server name is encrypted and hence not among the facts.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Incoming {
    /// Where it came from.
    pub remote: SocketAddr,
    /// Where it arrived, if the driver reports it.
    pub local_ip: Option<IpAddr>,
    /// QUIC version.
    pub version: u32,
    /// A token proves that the client is at its address.
    pub address_validated: bool,
    /// The client answers a Retry; it would ignore another.
    pub retried: bool,
    /// Connections that this worker has.
    pub connections: usize,
    /// Those of them, accepted ones only, whose handshake is in progress.
    pub handshakes: usize,
}

/// What becomes of an incoming connection.
#[derive(Clone)]
pub enum AcceptDecision {
    /// Accept it with the server's transport configuration, unless a limit is reached. Whether the
    /// client must validate its address first is up to the server's
    /// [`RetryPolicy`](crate::RetryPolicy).
    Accept,
    /// The same with another transport configuration: another congestion controller, other windows,
    /// another profile.
    AcceptWith(Arc<TransportConfig>),
    /// Validate the client's address by a Retry first, whatever the retry policy decides. Accepts a client whose
    /// address is validated, or that answers a Retry.
    Retry,
    /// Close it with `CONNECTION_REFUSED`.
    Refuse,
    /// Drop the packet without an answer.
    Ignore,
}

impl fmt::Debug for AcceptDecision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Accept => "Accept",
            Self::AcceptWith(_) => "AcceptWith(..)",
            Self::Retry => "Retry",
            Self::Refuse => "Refuse",
            Self::Ignore => "Ignore",
        })
    }
}

/// Decides about incoming connections, one by one. Functions from [`Incoming`] to [`AcceptDecision`] do.
pub trait AcceptPolicy: Send + Sync {
    /// Called for each first packet of a client, in a flood for each packet of the flood: it should
    /// be quick. A client may send several first packets, before and after a Retry. The same answer
    /// to the same question keeps runs repeatable.
    fn decide(&self, incoming: &Incoming) -> AcceptDecision;
}

impl<F: Fn(&Incoming) -> AcceptDecision + Send + Sync> AcceptPolicy for F {
    fn decide(&self, incoming: &Incoming) -> AcceptDecision {
        self(incoming)
    }
}
