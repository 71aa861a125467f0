//! What a connection tells its application.

use thiserror::Error;

/// Why a connection failed.
#[derive(Clone, Copy, Debug, Eq, Error, PartialEq)]
#[non_exhaustive]
pub enum ConnectionError {
    /// The peer did not answer the SYN, however often it was repeated.
    #[error("the peer does not answer")]
    NoAnswer,
    /// Nothing was acknowledged, however often it was repeated.
    #[error("the peer stopped acknowledging")]
    TimedOut,
    /// The peer has no such connection, or aborted it.
    #[error("reset by the peer")]
    Reset,
}

/// What happened to a connection.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Event {
    /// The handshake is complete.
    Connected,
    /// Bytes arrived in order.
    Readable,
    /// The peer's stream ended.
    PeerFinished,
    /// There is room for more bytes, after there was none.
    Writable,
    /// Both streams ended and were acknowledged.
    Closed,
    /// The connection failed.
    Failed(ConnectionError),
}
