//! Error types: protocol violations of the peer, and failures of calls of the engine.

use swiftwater_quic::{ConnectionError, ReadError, WriteError};
use thiserror::Error;

use super::code::Code;

/// A protocol violation of the peer, and its scope (RFC 9114, section 8).
#[derive(Clone, Copy, Debug, Eq, Error, PartialEq)]
#[error("{code}: {reason}")]
pub struct Fault {
    /// The error code sent to the peer.
    pub code: Code,
    /// The reason phrase.
    pub reason: &'static str,
    /// True for a connection error, false for a stream error.
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

/// Why a message's head or trailers can't be sent.
#[derive(Clone, Copy, Debug, Eq, Error, PartialEq)]
#[non_exhaustive]
pub enum HeadError {
    /// A request's URI has no authority, and there is no Host field.
    #[error("the request has no authority")]
    NoAuthority,
    /// The Host field is not an authority.
    #[error("the Host field is not a valid authority")]
    InvalidHost,
    /// [`ConnectProtocol`](super::ConnectProtocol) without the method CONNECT.
    #[error("only CONNECT requests have a protocol")]
    ProtocolWithoutConnect,
    /// 101 does not exist in HTTP/3 (RFC 9114, section 4.5).
    #[error("HTTP/3 has no 101 (Switching Protocols)")]
    SwitchingProtocols,
    /// An informational response can't end the stream.
    #[error("a 1xx response can't be the last")]
    InformationalEnd,
    /// Only final responses have content.
    #[error("a 1xx response has no content")]
    InformationalContent,
    /// Larger than the peer accepts (RFC 9114, section 4.2.2).
    #[error("the field section counts {size} bytes and the peer accepts {max}")]
    TooLarge {
        /// Its size.
        size: u64,
        /// The peer's limit.
        max: u64,
    },
}

/// Why a request could not be sent.
#[derive(Clone, Debug, Eq, Error, PartialEq)]
#[non_exhaustive]
pub enum RequestError {
    /// The handshake has not progressed far enough; an event reports when it has.
    #[error("the connection is not ready for requests yet")]
    NotReady,
    /// The server's stream limit is reached;
    /// [`Event::RequestsAvailable`](super::Event::RequestsAvailable) follows.
    #[error("the server permits no more requests for now")]
    Blocked,
    /// The connection is shutting down: use another one.
    #[error("the connection takes no more requests")]
    GoingAway,
    /// The server does not support extended CONNECT (RFC 9220), or its SETTINGS were not received
    /// yet.
    #[error("the server does not support extended CONNECT")]
    ConnectProtocolUnsupported,
    /// The server supports no WebTransport sessions, its SETTINGS were not received yet, or this
    /// end's configuration permits none.
    #[error("the server does not support WebTransport")]
    WebTransportUnsupported,
    /// The server's limit of WebTransport sessions is reached.
    #[error("the server takes no more WebTransport sessions for now")]
    TooManySessions,
    /// Only clients send requests.
    #[error("servers send no requests")]
    NotClient,
    /// The head can't be sent.
    #[error(transparent)]
    Head(#[from] HeadError),
    /// The connection is closed.
    #[error(transparent)]
    ConnectionLost(#[from] ConnectionError),
}

/// Why data can't be sent on a message's stream.
#[derive(Clone, Debug, Eq, Error, PartialEq)]
#[non_exhaustive]
pub enum SendError {
    /// The peer sent STOP_SENDING.
    #[error("the peer stopped reading with {0}")]
    Stopped(Code),
    /// The stream was finished or reset, or never existed.
    #[error("the stream is closed for sending")]
    Closed,
    /// Out of order, such as content before the head, a second head, or trailers twice.
    #[error("not permitted at this point of the message")]
    OutOfOrder,
    /// The head or trailers can't be sent.
    #[error(transparent)]
    Head(#[from] HeadError),
    /// The connection is closed.
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

/// Why a message's content can't be read to its end.
#[derive(Clone, Debug, Eq, Error, PartialEq)]
#[non_exhaustive]
pub enum BodyError {
    /// The peer reset the stream.
    #[error("the peer reset the stream with {0}")]
    Reset(Code),
    /// The message was malformed and its stream was reset, or the connection was closed.
    #[error(transparent)]
    Fault(#[from] Fault),
    /// It was read to its end or stopped, or never existed.
    #[error("the stream is closed for reading")]
    Closed,
    /// The connection is closed.
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

/// Why a stream of a WebTransport session could not be opened.
#[derive(Clone, Debug, Eq, Error, PartialEq)]
#[non_exhaustive]
pub enum SessionError {
    /// The request is not a session, or it has ended.
    #[error("no such session")]
    NoSession,
    /// The peer's limit of streams, or of data on them, is reached.
    #[error("the peer permits no more streams for now")]
    Blocked,
    /// The connection is closed.
    #[error(transparent)]
    ConnectionLost(#[from] ConnectionError),
}

/// Why an HTTP datagram was not accepted for sending.
#[derive(Clone, Debug, Eq, Error, PartialEq)]
#[non_exhaustive]
pub enum DatagramError {
    /// HTTP datagrams were not negotiated by both ends (RFC 9297, section 2.1.1).
    #[error("HTTP datagrams were not negotiated")]
    NotNegotiated,
    /// The request has ended or never existed.
    #[error("no such request")]
    Closed,
    /// The transport did not accept it: it is too large, or the queue is full.
    #[error(transparent)]
    Transport(#[from] swiftwater_quic::SendDatagramError),
}
