//! Errors: faults of the peer, inside the engine, and what calls on the engine fail with.

use swiftwater_quic::{ConnectionError, ReadError, WriteError};
use thiserror::Error;

use super::code::Code;

/// What the peer did wrong, and how far it reaches (RFC 9114, section 8).
#[derive(Clone, Copy, Debug, Eq, Error, PartialEq)]
#[error("{code}: {reason}")]
pub struct Fault {
    /// The code that the peer is told.
    pub code: Code,
    /// For people.
    pub reason: &'static str,
    /// True if it ends the connection, false if only the stream.
    pub ends_connection: bool,
}

impl Fault {
    pub(crate) const fn connection(code: Code, reason: &'static str) -> Self {
        Self {
            code,
            reason,
            ends_connection: true,
        }
    }

    pub(crate) const fn stream(code: Code, reason: &'static str) -> Self {
        Self {
            code,
            reason,
            ends_connection: false,
        }
    }

    /// A malformed message (RFC 9114, section 4.1.2).
    pub(crate) const fn malformed(reason: &'static str) -> Self {
        Self::stream(Code::MESSAGE_ERROR, reason)
    }
}

/// A message's head or trailers can't be sent as they are.
#[derive(Clone, Copy, Debug, Eq, Error, PartialEq)]
#[non_exhaustive]
pub enum HeadError {
    /// A request's URI has no authority, and there is no Host field.
    #[error("the request has no authority")]
    NoAuthority,
    /// The Host field is not an authority.
    #[error("the Host field is not a valid authority")]
    InvalidHost,
    /// [`Protocol`](super::Protocol) without the method CONNECT.
    #[error("only CONNECT requests have a protocol")]
    ProtocolWithoutConnect,
    /// 101 does not exist in HTTP/3 (RFC 9114, section 4.5).
    #[error("HTTP/3 has no 101 (Switching Protocols)")]
    SwitchingProtocols,
    /// The stream can't end with an informational response.
    #[error("a 1xx response can't be the last")]
    InformationalEnd,
    /// Larger than the peer accepts (RFC 9114, section 4.2.2).
    #[error("the field section counts {size} bytes and the peer accepts {max}")]
    TooLarge {
        /// Its size.
        size: u64,
        /// The peer's limit.
        max: u64,
    },
}

/// A request could not be begun.
#[derive(Clone, Debug, Eq, Error, PartialEq)]
#[non_exhaustive]
pub enum RequestError {
    /// The handshake has not come far enough; an event tells.
    #[error("the connection is not ready for requests yet")]
    NotReady,
    /// The server permits no more requests at once;
    /// [`Event::RequestsAvailable`](super::Event::RequestsAvailable) follows.
    #[error("the server permits no more requests for now")]
    Blocked,
    /// One end is shutting down: use another connection.
    #[error("the connection takes no more requests")]
    GoingAway,
    /// The server does not understand extended CONNECT (RFC 9220), or its SETTINGS have not come.
    #[error("the server does not support extended CONNECT")]
    ConnectProtocolUnsupported,
    /// The server takes no WebTransport sessions, its SETTINGS have not come, or our own
    /// configuration names none.
    #[error("the server does not support WebTransport")]
    WebTransportUnsupported,
    /// As many WebTransport sessions are open as the server takes.
    #[error("the server takes no more WebTransport sessions for now")]
    TooManySessions,
    /// Only clients send requests.
    #[error("servers send no requests")]
    NotClient,
    /// The head can't be sent.
    #[error(transparent)]
    Head(#[from] HeadError),
    /// The connection is gone.
    #[error(transparent)]
    ConnectionLost(#[from] ConnectionError),
}

/// Nothing more can be sent on a message's stream, or not this.
#[derive(Clone, Debug, Eq, Error, PartialEq)]
#[non_exhaustive]
pub enum SendError {
    /// The peer wants no more of it.
    #[error("the peer stopped reading with {0}")]
    Stopped(Code),
    /// The stream was finished or reset, or never existed.
    #[error("the stream is closed for sending")]
    Closed,
    /// Out of order: content before the head, a second head, trailers twice, and so on.
    #[error("not at this point of the message")]
    OutOfOrder,
    /// The head or trailers can't be sent.
    #[error(transparent)]
    Head(#[from] HeadError),
    /// The connection is gone.
    #[error(transparent)]
    ConnectionLost(#[from] ConnectionError),
}

impl From<WriteError> for SendError {
    fn from(error: WriteError) -> Self {
        match error {
            WriteError::Stopped(code) => Self::Stopped(Code(code)),
            WriteError::ConnectionLost(reason) => Self::ConnectionLost(reason),
            _ => Self::Closed,
        }
    }
}

/// A message's content can't be read to its end.
#[derive(Clone, Debug, Eq, Error, PartialEq)]
#[non_exhaustive]
pub enum BodyError {
    /// The peer gave up sending it.
    #[error("the peer reset the stream with {0}")]
    Reset(Code),
    /// The message was at fault and its stream was reset, or even the connection was closed.
    #[error(transparent)]
    Fault(#[from] Fault),
    /// It was read to its end or stopped, or never existed.
    #[error("the stream is closed for reading")]
    Closed,
    /// The connection is gone.
    #[error(transparent)]
    ConnectionLost(#[from] ConnectionError),
}

impl From<ReadError> for BodyError {
    fn from(error: ReadError) -> Self {
        match error {
            ReadError::Reset(code) => Self::Reset(Code(code)),
            ReadError::ConnectionLost(reason) => Self::ConnectionLost(reason),
            _ => Self::Closed,
        }
    }
}

/// A stream of a WebTransport session could not be opened.
#[derive(Clone, Debug, Eq, Error, PartialEq)]
#[non_exhaustive]
pub enum SessionError {
    /// The request is no session, or it is over.
    #[error("no such session")]
    NoSession,
    /// The peer permits no more streams, or no data on them, for now.
    #[error("the peer permits no more streams for now")]
    Blocked,
    /// The connection is gone.
    #[error(transparent)]
    ConnectionLost(#[from] ConnectionError),
}

/// An HTTP datagram was not accepted for sending.
#[derive(Clone, Debug, Eq, Error, PartialEq)]
#[non_exhaustive]
pub enum DatagramError {
    /// Not both ends have said that they understand HTTP datagrams (RFC 9297, section 2.1.1).
    #[error("HTTP datagrams were not negotiated")]
    NotNegotiated,
    /// The request is over or never existed.
    #[error("no such request")]
    Closed,
    /// The transport does not take it: too large, or its queue is full.
    #[error(transparent)]
    Transport(#[from] swiftwater_quic::SendDatagramError),
}
