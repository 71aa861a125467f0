//! What an endpoint hands to a new connection.

use std::fmt;
use std::sync::Arc;

use rand_chacha::ChaCha20Rng;
use swiftwater_units::Side;
use swiftwater_wire::ConnectionId;

use crate::cid::CidSource;
use crate::config::TransportConfig;
use crate::crypto::{EndpointKey, Keys, Primitives, Session};
use crate::handshake::Opening;
use crate::transmit::{DatagramMeta, PathAddress};

/// Everything a connection starts from.
pub(crate) struct ConnectionSetup {
    pub(crate) side: Side,
    /// Version of the client's first packet.
    pub(crate) version: u32,
    pub(crate) transport: Arc<TransportConfig>,
    /// Starts TLS sessions with this end's transport parameters.
    pub(crate) opening: Opening,
    /// A client's first session. A server starts its own when the version is known.
    pub(crate) session: Option<Box<dyn Session>>,
    pub(crate) primitives: Arc<dyn Primitives>,
    pub(crate) key: Arc<dyn EndpointKey>,
    /// Makes further connection IDs.
    pub(crate) cids: CidSource,
    /// The first local connection ID.
    pub(crate) local_cid: ConnectionId,
    /// Where to send at first: the random destination (client) or the client's source ID (server).
    pub(crate) remote_cid: ConnectionId,
    /// Destination of the client's very first Initial.
    pub(crate) original_dst_cid: ConnectionId,
    /// Source ID of the Retry that was sent (server), if one was.
    pub(crate) retry_src_cid: Option<ConnectionId>,
    /// Connection ID from which Initial keys are derived.
    pub(crate) initial_keys_cid: ConnectionId,
    /// Those keys.
    pub(crate) initial_keys: Keys,
    /// The ID that goes with the preferred address, if one is declared (server).
    pub(crate) preferred_cid: Option<ConnectionId>,
    pub(crate) address: PathAddress,
    /// True if a token proved the client's address.
    pub(crate) address_validated: bool,
    /// Token for the client's Initial packets.
    pub(crate) token: Vec<u8>,
    pub(crate) rng: ChaCha20Rng,
    /// Clear the QUIC bit at random if the peer accepts that, and accept it cleared (RFC 9287).
    pub(crate) grease: bool,
    /// A server issues tokens for later connections.
    pub(crate) issues_tokens: bool,
    /// A server's application may send before the handshake is complete.
    pub(crate) half_rtt: bool,
    /// Early data that arrived before the first Initial did.
    pub(crate) early_packets: Vec<(DatagramMeta, Vec<u8>)>,
}

impl fmt::Debug for ConnectionSetup {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ConnectionSetup")
            .field("side", &self.side)
            .field("address", &self.address)
            .finish_non_exhaustive()
    }
}
