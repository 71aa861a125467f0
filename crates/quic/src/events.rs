//! Events of a connection for its driver and its endpoint.

use std::net::SocketAddr;

use swiftwater_units::PathId;
use swiftwater_wire::{ConnectionId, ErrorCode, ResetToken};

use crate::error::ConnectionError;
use crate::observe::{DatagramFate, EarlyDataOutcome};
use crate::policy::PathStatus;
use crate::streams::StreamEvent;
use crate::transmit::PathAddress;

/// An event for the application.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum Event {
    /// Application data may be sent although the handshake is not complete. On a client: it resumes a
    /// session that permits early data (0-RTT), and [`Event::EarlyData`] reports later whether the
    /// server took them. On a server: it takes early data, or may send before the client has proved
    /// anything ([`ServerConfig::half_rtt`](crate::ServerConfig::half_rtt)). Reported before anything
    /// else, if at all.
    EarlyDataReady,
    /// The server took the early data, or rejected them; reported to a client that offered some, right
    /// before [`Event::Connected`]. After a rejection all streams go on and their data are sent anew;
    /// datagrams are lost.
    EarlyData(EarlyDataOutcome),
    /// The TLS handshake is complete: application data may flow, ALPN and peer identity are known.
    Connected,
    /// The handshake is confirmed (RFC 9001, section 4.1.2).
    Confirmed,
    /// Something happened on a stream.
    Stream(StreamEvent),
    /// A datagram can be read.
    DatagramReceived,
    /// Feedback of the peer's policies can be read, see
    /// [`Connection::recv_feedback`](crate::Connection::recv_feedback). Not repeated until all was read.
    FeedbackReceived,
    /// There is room in the datagram queue again.
    DatagramsUnblocked,
    /// What became of a datagram that was sent with a key
    /// ([`DatagramOptions::key`](crate::DatagramOptions)).
    DatagramFate {
        /// The key.
        key: u64,
        /// What became of it.
        fate: DatagramFate,
    },
    /// The path carries only smaller packets than before, so queued datagrams were dropped unsent.
    DatagramsTooLarge {
        /// How many.
        count: u64,
        /// The largest payload that can be sent now.
        max: usize,
    },
    /// The peer's address changed and the new one is validated.
    PeerMoved {
        /// The path whose addresses changed.
        path: PathId,
        /// The new address.
        remote: SocketAddr,
    },
    /// A path has other addresses, and they are validated: after [`Connection::migrate_path`],
    /// [`Connection::rebind_path`], or a move to the server's preferred address (client only).
    ///
    /// [`Connection::migrate_path`]: crate::Connection::migrate_path
    /// [`Connection::rebind_path`]: crate::Connection::rebind_path
    Migrated {
        /// The path.
        path: PathId,
        /// Its addresses from now on.
        address: PathAddress,
    },
    /// The peer does not answer at the addresses that [`Connection::migrate_path`] or
    /// [`Connection::rebind_path`] asked for (client only). After `migrate_path` the old ones stay in use.
    ///
    /// [`Connection::migrate_path`]: crate::Connection::migrate_path
    /// [`Connection::rebind_path`]: crate::Connection::rebind_path
    MigrationFailed {
        /// The path.
        path: PathId,
        /// The addresses that failed.
        address: PathAddress,
    },
    /// Another path is validated and carries data (multipath).
    PathOpened {
        /// The path.
        path: PathId,
        /// Its addresses.
        address: PathAddress,
    },
    /// A path ends, by [`Connection::abandon_path`](crate::Connection::abandon_path), because it failed, or
    /// because the peer abandoned it; the connection goes on on the others.
    PathAbandoned {
        /// The path.
        path: PathId,
        /// Why (draft-ietf-quic-multipath-21, section 6).
        error: ErrorCode,
        /// The peer abandoned it.
        by_peer: bool,
    },
    /// The peer announced another status of a path.
    PathStatusChanged {
        /// The path.
        path: PathId,
        /// The peer's advice.
        status: PathStatus,
    },
    /// Another path can be opened now
    /// ([`Connection::open_path`](crate::Connection::open_path); client only).
    PathsAvailable,
    /// The server gave a token for a later connection (client only). Not reported if it was kept beside
    /// the TLS session, where the next connection finds it.
    NewToken {
        /// The token.
        token: Vec<u8>,
    },
    /// The connection is closed; nothing but [`Event::Drained`] follows.
    Closed {
        /// Why.
        reason: ConnectionError,
    },
    /// Everything is over and the connection can be dropped.
    Drained,
}

impl Event {
    /// True for the event of the connection's end.
    pub(crate) fn is_final(&self) -> bool {
        matches!(self, Self::Closed { .. } | Self::Drained)
    }
}

/// A connection issued an ID that a different connection of the endpoint has, so that datagrams with it reach
/// that one: [`Connection::handle_cid_collision`](crate::Connection::handle_cid_collision) issues another.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct CidCollision(pub(crate) ConnectionId);

/// What the endpoint must know of a connection to route its datagrams.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum EndpointEvent {
    /// Datagrams with this connection ID belong to this connection.
    CidIssued(ConnectionId),
    /// They no longer are.
    CidRetired(ConnectionId),
    /// A datagram from `remote` that ends in `token` resets the connection.
    PeerResetToken {
        /// The peer's address.
        remote: SocketAddr,
        /// The token.
        token: ResetToken,
    },
    /// It no longer does.
    PeerResetTokenRetired {
        /// The peer's address.
        remote: SocketAddr,
        /// The token.
        token: ResetToken,
    },
    /// The handshake is over: it no longer counts as in progress. The client's first destination ID
    /// stays routed, so that a late duplicate of its Initial starts no second connection.
    HandshakeDone,
    /// The connection is gone.
    Drained,
}
