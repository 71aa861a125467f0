//! What a connection tells its driver and its endpoint.

use std::net::SocketAddr;

use swiftwater_units::{Dir, StreamId};
use swiftwater_wire::{ConnectionId, ResetToken};

use crate::error::ConnectionError;

/// Something the application may want to know.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum Event {
    /// The TLS handshake is complete: application data may flow, ALPN and peer identity are known.
    Connected,
    /// The handshake is confirmed (RFC 9001, section 4.1.2).
    Confirmed,
    /// Something happened on a stream.
    Stream(StreamEvent),
    /// A datagram can be read.
    DatagramReceived,
    /// There is room in the datagram queue again.
    DatagramsUnblocked,
    /// The peer's address changed and the new one is validated.
    PeerMoved {
        /// The new address.
        remote: SocketAddr,
    },
    /// The server gave a token for a later connection (client only).
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
    /// True for what tells of the end.
    pub(super) fn is_final(&self) -> bool {
        matches!(self, Self::Closed { .. } | Self::Drained)
    }
}

/// Something that happened on a stream. Edge-triggered.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum StreamEvent {
    /// The peer opened streams of this kind; accept until `None`.
    Opened {
        /// Which kind.
        dir: Dir,
    },
    /// There is data, an end or a reset to read after a read had to wait.
    Readable {
        /// The stream.
        id: StreamId,
    },
    /// There is room to write after a write had to wait.
    Writable {
        /// The stream.
        id: StreamId,
    },
    /// The peer has acknowledged everything that was written, the end included.
    Finished {
        /// The stream.
        id: StreamId,
    },
    /// The peer stopped reading.
    Stopped {
        /// The stream.
        id: StreamId,
        /// The application's code.
        code: u64,
    },
    /// More streams of this kind can be opened after an open had to wait.
    Available {
        /// Which kind.
        dir: Dir,
    },
}

/// What the endpoint must know of a connection to route its datagrams.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum EndpointEvent {
    /// Datagrams with this connection ID are ours.
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
