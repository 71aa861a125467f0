//! What a program may decide about each incoming connection.

use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use crate::config::TransportConfig;

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
    /// Where it arrived, if the driver knows.
    pub local_ip: Option<IpAddr>,
    /// QUIC version.
    pub version: u32,
    /// A token proves that the client is at its address.
    pub address_validated: bool,
    /// The client comes back from a Retry; it can't be asked again.
    pub retried: bool,
    /// Connections that this worker has.
    pub connections: usize,
    /// Those of them, accepted ones only, whose handshake is in progress.
    pub handshakes: usize,
}

/// What becomes of an incoming connection.
#[derive(Clone)]
pub enum Decision {
    /// Accept it with the server's transport configuration, unless a limit is reached. Whether the
    /// client must prove its address first is up to the server's
    /// [`RetryPolicy`](crate::RetryPolicy).
    Accept,
    /// The same with another transport configuration: another congestion controller, other windows,
    /// another profile.
    AcceptWith(Arc<TransportConfig>),
    /// Have the client prove its address first, whatever the policy says. Accepts a client that has
    /// just done so.
    Retry,
    /// Tell it that it is refused (`CONNECTION_REFUSED`).
    Refuse,
    /// Say nothing.
    Ignore,
}

impl fmt::Debug for Decision {
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

/// Decides about incoming connections, one by one. Functions from [`Incoming`] to [`Decision`] do.
pub trait AcceptPolicy: Send + Sync {
    /// Called for each first packet of a client, in a flood for each packet of the flood: it should
    /// be quick. A client may send several first packets, before and after a Retry. The same answer
    /// to the same question keeps runs repeatable.
    fn decide(&self, incoming: &Incoming) -> Decision;
}

impl<F: Fn(&Incoming) -> Decision + Send + Sync> AcceptPolicy for F {
    fn decide(&self, incoming: &Incoming) -> Decision {
        self(incoming)
    }
}
