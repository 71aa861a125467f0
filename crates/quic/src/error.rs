//! Errors of connections and of each operation on them.

use std::fmt;
use std::ops::Deref;

use swiftwater_units::PathId;
use swiftwater_wire::frame::FrameError;
use swiftwater_wire::{DecodeError, ErrorCode, TransportParameterError};
use thiserror::Error;

use crate::crypto::TlsError;

/// A violation that closes the connection with `CONNECTION_CLOSE` of type 0x1c. Its fields are those of
/// [`Violation`].
///
/// It is a pointer: results are returned for every packet and errors once, so that a result should be as
/// small as what it returns when all is well.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct TransportError(Box<Violation>);

/// What a [`TransportError`] contains.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Violation {
    /// The code sent to the peer.
    pub code: ErrorCode,
    /// Type of the frame at fault, if one was.
    pub frame_type: Option<u64>,
    /// For people.
    pub reason: String,
}

impl TransportError {
    /// An error with this code and reason, without a frame.
    #[cold]
    pub fn new(code: ErrorCode, reason: impl Into<String>) -> Self {
        Self(Box::new(Violation {
            code,
            frame_type: None,
            reason: reason.into(),
        }))
    }

    /// The same error, blamed on a frame of type `frame_type`.
    #[must_use]
    pub fn in_frame(mut self, frame_type: u64) -> Self {
        self.0.frame_type.get_or_insert(frame_type);
        self
    }
}

impl Deref for TransportError {
    type Target = Violation;

    fn deref(&self) -> &Violation {
        &self.0
    }
}

impl fmt::Display for TransportError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.code)?;
        if let Some(frame_type) = self.frame_type {
            write!(f, " in frame {frame_type:#x}")?;
        }
        if !self.reason.is_empty() {
            write!(f, ": {}", self.reason)?;
        }
        Ok(())
    }
}

impl std::error::Error for TransportError {}

impl From<TlsError> for TransportError {
    fn from(error: TlsError) -> Self {
        Self::new(error.code, error.reason)
    }
}

impl From<TransportParameterError> for TransportError {
    fn from(error: TransportParameterError) -> Self {
        Self::new(ErrorCode::TRANSPORT_PARAMETER_ERROR, error.to_string())
    }
}

impl From<FrameError> for TransportError {
    fn from(error: FrameError) -> Self {
        Self::new(error.error_code(), error.error.to_string()).in_frame(error.frame_type)
    }
}

impl From<DecodeError> for TransportError {
    fn from(error: DecodeError) -> Self {
        Self::new(error.error_code(), error.to_string())
    }
}

/// The cause that a transport error of this end reports.
fn transport_cause(error: &TransportError) -> &'static str {
    if error.code == ErrorCode::INTERNAL_ERROR {
        "the connection can't go on"
    } else {
        "the peer broke the protocol"
    }
}

/// Why a connection ended.
#[derive(Clone, Debug, Eq, Error, PartialEq)]
#[non_exhaustive]
pub enum ConnectionError {
    /// The peer supports none of this end's versions.
    #[error("the peer supports none of the QUIC versions of this end")]
    VersionMismatch,
    /// This end closed because of a transport error: the peer broke the protocol, or, with
    /// INTERNAL_ERROR, this end could not go on.
    #[error("{cause}: {0}", cause = transport_cause(.0))]
    Transport(TransportError),
    /// The peer's transport closed.
    #[error("closed by the peer's transport: {0}")]
    PeerTransport(TransportError),
    /// The peer's application closed.
    #[error("closed by the peer's application with code {code}{}", reason_suffix(.reason))]
    PeerApplication {
        /// The application's code.
        code: u64,
        /// The application's reason, any bytes.
        reason: Vec<u8>,
    },
    /// The peer lost its state and sent a stateless reset.
    #[error("reset by the peer (stateless reset)")]
    Reset,
    /// Nothing was received for the idle timeout.
    #[error("timed out: nothing was received from the peer")]
    TimedOut,
    /// The handshake did not complete within the handshake timeout.
    #[error("timed out during the handshake: no usable answer (is UDP blocked?)")]
    HandshakeTimedOut,
    /// The server rejected early data, and now negotiated another application protocol than they were
    /// written for, or permits fewer streams than they used: they can't be sent anew. Connect again
    /// without early data.
    #[error("the server rejected early data that can't be sent anew; connect again without them")]
    EarlyDataLost,
    /// Every packet number was used (RFC 9000, section 12.3). Nothing is sent to the peer.
    #[error("the connection has used up its packet numbers: connect again")]
    PacketNumbersExhausted,
    /// The local application closed.
    #[error("closed by this end with code {code}")]
    LocallyClosed {
        /// Its code.
        code: u64,
    },
}

/// `: reason` for messages, if there is a reason.
fn reason_suffix(reason: &[u8]) -> String {
    if reason.is_empty() {
        return String::new();
    }
    format!(": {}", String::from_utf8_lossy(reason).escape_debug())
}

/// A connection could not be started.
#[derive(Clone, Debug, Eq, Error, PartialEq)]
#[non_exhaustive]
pub enum ConnectError {
    /// TLS refused its input, such as a server name that is no name.
    #[error("could not start TLS: {0}")]
    Tls(String),
    /// The address can't be connected to, such as port 0 or an unspecified address.
    #[error("{0} is not an address that can be connected to")]
    InvalidAddress(std::net::SocketAddr),
    /// The endpoint is closing.
    #[error("the endpoint is closing")]
    Closing,
    /// The endpoint has as many connections as it may.
    #[error("the endpoint has reached its limit of {0} connections")]
    TooManyConnections(usize),
}

/// Writing to a stream failed for good.
#[derive(Clone, Debug, Eq, Error, PartialEq)]
#[non_exhaustive]
pub enum WriteError {
    /// The peer sent `STOP_SENDING`.
    #[error("the peer stopped reading with code {0}")]
    Stopped(u64),
    /// The stream was finished or reset by this end, or never existed.
    #[error("the stream is closed for writing")]
    Closed,
    /// A part of the stream can't be delivered in spite of a reset: the peer does not support
    /// `RESET_STREAM_AT`, or its transport parameters are not known yet.
    #[error("the peer does not support resetting a stream but for its first bytes")]
    ResetAtUnsupported,
    /// The connection is gone.
    #[error(transparent)]
    ConnectionLost(#[from] ConnectionError),
}

/// Why a stream can't be assigned to a path.
#[derive(Clone, Debug, Eq, Error, PartialEq)]
#[non_exhaustive]
pub enum StreamPathError {
    /// The path is not open.
    #[error("path {0} is not open")]
    NotOpen(PathId),
    /// Nothing can be sent on the stream.
    #[error(transparent)]
    Stream(#[from] WriteError),
}

/// Reading from a stream failed for good.
#[derive(Clone, Debug, Eq, Error, PartialEq)]
#[non_exhaustive]
pub enum ReadError {
    /// The peer reset the stream.
    #[error("the peer reset the stream with code {0}")]
    Reset(u64),
    /// The stream was stopped by this end, read to its end, or never existed.
    #[error("the stream is closed for reading")]
    Closed,
    /// The connection is gone.
    #[error(transparent)]
    ConnectionLost(#[from] ConnectionError),
}

/// A datagram was not accepted for sending.
#[derive(Clone, Debug, Eq, Error, PartialEq)]
#[non_exhaustive]
pub enum SendDatagramError {
    /// The peer accepts no datagrams (RFC 9221, section 3), or its transport parameters are not known yet.
    #[error("the peer does not accept datagrams")]
    Unsupported,
    /// Larger than the path or the peer permits now.
    #[error("a datagram of {size} bytes is larger than the {max} that fit now")]
    TooLarge {
        /// The datagram's size.
        size: usize,
        /// The largest that would be accepted.
        max: usize,
    },
    /// The queue is full; an event reports when there is room.
    #[error("the datagram queue is full")]
    Blocked,
    /// The connection is gone.
    #[error(transparent)]
    ConnectionLost(#[from] ConnectionError),
}

/// Why a connection can't move to another local address now.
#[derive(Clone, Copy, Debug, Eq, Error, PartialEq)]
#[non_exhaustive]
pub enum MigrateError {
    /// The handshake is not confirmed yet (RFC 9000, section 9).
    #[error("cannot migrate before the handshake is confirmed")]
    NotConfirmed,
    /// The connection is closed.
    #[error("cannot migrate a closed connection")]
    Closed,
    /// Only clients migrate.
    #[error("a server cannot migrate its connections")]
    NotClient,
    /// The server forbids it at its present address (`disable_active_migration`).
    #[error("the server does not allow migration")]
    Disabled,
    /// The connection is at that local address already.
    #[error("the connection uses that local address already")]
    SameAddress,
    /// The server has given no connection ID to use from there. It may give one later.
    #[error("the server has given no spare connection ID; try again later")]
    NoConnectionId,
    /// The new path did not answer; the connection stays where it was.
    #[error("the server does not answer on the new path")]
    Failed,
    /// Another request to migrate came before this one was decided.
    #[error("replaced by a later request to migrate")]
    Replaced,
    /// The path is not open.
    #[error("path {0} is not open")]
    NotOpen(PathId),
    /// The endpoint has no such socket.
    #[error("the endpoint has no such socket")]
    NoSuchSocket,
    /// The server uses empty connection IDs: it could not identify a client at another address.
    #[error("the server uses no connection IDs, so connections to it cannot migrate")]
    WithoutConnectionIds,
}

/// Why another path can't be opened now.
#[derive(Clone, Copy, Debug, Eq, Error, PartialEq)]
#[non_exhaustive]
pub enum OpenPathError {
    /// One end does not support multipath, or did not enable it.
    #[error("multipath was not negotiated with the peer")]
    NotNegotiated,
    /// Only clients open paths (draft-ietf-quic-multipath-21, section 3.1).
    #[error("a server cannot open paths")]
    NotClient,
    /// The handshake is not confirmed yet.
    #[error("cannot open a path before the handshake is confirmed")]
    NotConfirmed,
    /// The connection is closed.
    #[error("cannot open a path on a closed connection")]
    Closed,
    /// The server forbids it to this address (`disable_active_migration`).
    #[error("the server does not allow further paths to this address")]
    Disabled,
    /// Local and remote address are of different families.
    #[error("no path leads from an IPv4 to an IPv6 address, or the other way")]
    AddressFamilies,
    /// As many paths are open as both ends accept.
    #[error("as many paths are open as both ends accept; abandon one first")]
    Limit,
    /// The peer has given no connection ID for another path yet.
    #[error("the server has given no connection ID for another path; try again later")]
    NoConnectionId,
    /// The endpoint has no such socket.
    #[error("the endpoint has no such socket")]
    NoSuchSocket,
}

/// Why a path can't be abandoned.
#[derive(Clone, Copy, Debug, Eq, Error, PartialEq)]
#[non_exhaustive]
pub enum AbandonPathError {
    /// One end does not support multipath, or did not enable it.
    #[error("multipath was not negotiated with the peer")]
    NotNegotiated,
    /// There is no such path.
    #[error("{0} is not open")]
    NotOpen(PathId),
    /// The connection has no other path.
    #[error("{0} is the last one: close the connection instead")]
    Last(PathId),
}
