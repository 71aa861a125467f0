//! What an endpoint hands to a new connection.

use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use rand_chacha::ChaCha20Rng;
use swiftwater_units::Side;
use swiftwater_wire::ConnectionId;

use crate::config::TransportConfig;
use crate::crypto::{EndpointKey, Primitives, Session};

/// Everything a connection starts from.
pub(crate) struct ConnectionSetup {
    pub(crate) side: Side,
    pub(crate) version: u32,
    pub(crate) transport: Arc<TransportConfig>,
    /// Started with our transport parameters.
    pub(crate) session: Box<dyn Session>,
    pub(crate) primitives: Arc<dyn Primitives>,
    pub(crate) key: Arc<dyn EndpointKey>,
    /// Length of the connection IDs we issue.
    pub(crate) cid_len: usize,
    /// Our first connection ID.
    pub(crate) local_cid: ConnectionId,
    /// Where to send at first: the random destination (client) or the client's source ID (server).
    pub(crate) remote_cid: ConnectionId,
    /// Destination of the client's very first Initial.
    pub(crate) original_dst_cid: ConnectionId,
    /// Source ID of the Retry that we sent (server), if we did.
    pub(crate) retry_src_cid: Option<ConnectionId>,
    /// Connection ID from which Initial keys are derived.
    pub(crate) initial_keys_cid: ConnectionId,
    pub(crate) remote: SocketAddr,
    pub(crate) local_ip: Option<IpAddr>,
    /// True if a token proved the client's address.
    pub(crate) address_validated: bool,
    /// Token for the client's Initial packets.
    pub(crate) token: Vec<u8>,
    pub(crate) rng: ChaCha20Rng,
    /// Lifetime of the tokens for later connections that a server issues; `None` issues none.
    pub(crate) address_token_lifetime: Option<Duration>,
}

impl fmt::Debug for ConnectionSetup {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ConnectionSetup")
            .field("side", &self.side)
            .field("remote", &self.remote)
            .finish_non_exhaustive()
    }
}
