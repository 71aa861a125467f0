//! The side and settings of a connection, the keys and generators that the endpoint gave it, and the
//! connection IDs and addresses that the handshake authenticates (RFC 9000, section 7.3).

use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use swiftwater_units::Side;
use swiftwater_wire::ConnectionId;

use crate::cid::CidSource;
use crate::config::TransportConfig;
use crate::crypto::EndpointKey;
use crate::transmit::{LocalAddress, PathAddress};

use crate::random::Random;

/// Side, settings, and what the endpoint gave.
pub(crate) struct Identity {
    pub(crate) side: Side,
    pub(crate) config: Arc<TransportConfig>,
    pub(crate) key: Arc<dyn EndpointKey>,
    pub(crate) cids: CidSource,
    pub(crate) random: Random,
    /// Source connection ID of the peer's first packet.
    pub(crate) peer_handshake_cid: Option<ConnectionId>,
    pub(crate) handshake_address: HandshakeAddress,
    /// The client's IP address that the last token of NEW_TOKEN was issued for, or will be once the
    /// handshake is complete; `None` if no tokens are issued.
    pub(crate) token_ip: Option<IpAddr>,
    /// `None` once the handshake is confirmed.
    pub(crate) start: Option<Box<Start>>,
    /// The QUIC bit is greased, if the peer agrees (RFC 9287).
    pub(crate) grease: bool,
}

/// What matters later of the addresses of the handshake.
pub(crate) enum HandshakeAddress {
    /// A client keeps the server's address.
    Client {
        /// The server's address.
        remote: SocketAddr,
    },
    /// A server keeps its own, if it declared a preferred address.
    Server {
        /// The server's address.
        local: Option<LocalAddress>,
    },
}

impl HandshakeAddress {
    /// What matters later of the `address` of the handshake; `has_preferred` if a server declared a preferred
    /// address.
    pub(crate) fn of(side: Side, address: &PathAddress, has_preferred: bool) -> Self {
        match side {
            Side::Client => Self::Client {
                remote: address.remote,
            },
            Side::Server => Self::Server {
                local: has_preferred.then_some(address.local),
            },
        }
    }
}

impl Identity {
    /// The server's address in the handshake; `None` on a server.
    pub(crate) fn first_remote(&self) -> Option<SocketAddr> {
        match self.handshake_address {
            HandshakeAddress::Client { remote } => Some(remote),
            HandshakeAddress::Server { .. } => None,
        }
    }

    /// A server's own address in the handshake, if it declared a preferred address.
    pub(crate) fn first_local(&self) -> Option<LocalAddress> {
        match self.handshake_address {
            HandshakeAddress::Client { .. } => None,
            HandshakeAddress::Server { local } => local,
        }
    }

    /// True if datagrams from there arrive at an address that a server prefers to that of the handshake:
    /// clients may use it whatever `disable_active_migration` says (RFC 9000, section 18.2).
    pub(crate) fn is_at_preferred_address(&self, from: &PathAddress) -> bool {
        let first = self.first_local();
        first.is_some_and(|first| !from.local.matches(&first))
    }
}

/// What is needed of the start until the handshake is confirmed.
pub(crate) struct Start {
    pub(crate) original_dst_cid: ConnectionId,
    /// Source connection ID of the Retry that was sent (server) or followed (client).
    pub(crate) retry_src_cid: Option<ConnectionId>,
    /// Token for the Initial packets of a client.
    pub(crate) token: Vec<u8>,
    /// The application may send before the client's last handshake message (server).
    pub(crate) half_rtt: bool,
}

impl fmt::Debug for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Identity")
            .field("side", &self.side)
            .finish_non_exhaustive()
    }
}
