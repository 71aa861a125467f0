//! Errors of sessions and their streams, and of calls on them.

use std::io;

use http::StatusCode;
use swiftwater_net::quic::{self, ConnectionError};
use thiserror::Error;

use crate::h3::webtransport::application_code;
use crate::h3::{Code, RequestError};

/// Why a session ended.
#[derive(Clone, Debug, Eq, Error, PartialEq)]
#[non_exhaustive]
pub enum SessionEnd {
    /// The peer closed it; code 0 and no reason by default.
    #[error("the peer closed the session with code {code}: {reason}")]
    Closed {
        /// The application's code.
        code: u32,
        /// The reason, at most 1024 bytes.
        reason: String,
    },
    /// This end closed it.
    #[error("this end closed the session")]
    ClosedHere,
    /// Its request was reset or stopped, or received data that are not a session's.
    #[error("the session's request ended with {0}")]
    Broken(Code),
    /// The connection is closed.
    #[error(transparent)]
    ConnectionLost(#[from] ConnectionError),
}

/// A request for a session failed: the response's status was not 2xx, or the request ended before.
#[derive(Clone, Copy, Debug, Eq, Error, PartialEq)]
#[error("the session was not accepted")]
pub struct SessionRefused;

/// Why a client got no session.
#[derive(Clone, Debug, Error)]
#[non_exhaustive]
pub enum OpenSessionError {
    /// The request was never sent.
    #[error(transparent)]
    Request(#[from] RequestError),
    /// The response's status was not 2xx.
    #[error("the server refused the session with {0}")]
    Refused(StatusCode),
    /// The server reset the request.
    #[error("the server reset the request with {0}")]
    Reset(Code),
    /// The connection ended first.
    #[error(transparent)]
    ConnectionLost(#[from] ConnectionError),
}

/// Why a stream can't be read further.
#[derive(Clone, Debug, Eq, Error, PartialEq)]
#[non_exhaustive]
pub enum ReadError {
    /// The peer reset it; [`application_code`] converts to the application's code.
    #[error("the peer reset the stream with {0}")]
    Reset(Code),
    /// It was read to its end or stopped.
    #[error("the stream is closed for reading")]
    Closed,
    /// The session has ended, and its streams with it.
    #[error("the session of the stream has ended")]
    SessionOver,
    /// The connection is closed.
    #[error(transparent)]
    ConnectionLost(#[from] ConnectionError),
}

/// Why a stream can't be written.
#[derive(Clone, Debug, Eq, Error, PartialEq)]
#[non_exhaustive]
pub enum WriteError {
    /// The peer sent STOP_SENDING; [`application_code`] converts to the application's code.
    #[error("the peer stopped reading with {0}")]
    Stopped(Code),
    /// It was finished or reset.
    #[error("the stream is closed for writing")]
    Closed,
    /// The session has ended, and its streams with it.
    #[error("the session of the stream has ended")]
    SessionOver,
    /// The connection is closed.
    #[error(transparent)]
    ConnectionLost(#[from] ConnectionError),
}

impl ReadError {
    /// The application's code of a stream that the peer reset, if it gave one.
    pub fn application_code(&self) -> Option<u32> {
        match self {
            Self::Reset(code) => application_code(*code),
            _ => None,
        }
    }
}

impl WriteError {
    /// The application's code of a stream that the peer stopped reading, if it gave one.
    pub fn application_code(&self) -> Option<u32> {
        match self {
            Self::Stopped(code) => application_code(*code),
            _ => None,
        }
    }
}

/// Why [`RecvStream::read_to_end`](super::RecvStream::read_to_end) failed.
#[derive(Clone, Debug, Eq, Error, PartialEq)]
pub enum ReadToEndError {
    /// Reading failed.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// The stream is longer than the caller's limit. What was read is lost.
    #[error("the stream is longer than {limit} bytes")]
    TooLong {
        /// The caller's limit.
        limit: usize,
    },
}

impl From<quic::ReadError> for ReadError {
    fn from(error: quic::ReadError) -> Self {
        match error {
            quic::ReadError::Reset(code) => Self::Reset(Code(code)),
            quic::ReadError::ConnectionLost(reason) => Self::ConnectionLost(reason),
            _ => Self::Closed,
        }
    }
}

impl From<quic::WriteError> for WriteError {
    fn from(error: quic::WriteError) -> Self {
        match error {
            quic::WriteError::Stopped(code) => Self::Stopped(Code(code)),
            quic::WriteError::ConnectionLost(reason) => Self::ConnectionLost(reason),
            _ => Self::Closed,
        }
    }
}

impl From<ReadError> for io::Error {
    fn from(error: ReadError) -> Self {
        let kind = match error {
            ReadError::Reset(_) | ReadError::ConnectionLost(_) => io::ErrorKind::ConnectionReset,
            ReadError::SessionOver => io::ErrorKind::ConnectionAborted,
            ReadError::Closed => io::ErrorKind::NotConnected,
        };
        Self::new(kind, error)
    }
}

impl From<WriteError> for io::Error {
    fn from(error: WriteError) -> Self {
        let kind = match error {
            WriteError::Stopped(_) => io::ErrorKind::BrokenPipe,
            WriteError::ConnectionLost(_) => io::ErrorKind::ConnectionReset,
            WriteError::SessionOver => io::ErrorKind::ConnectionAborted,
            WriteError::Closed => io::ErrorKind::NotConnected,
        };
        Self::new(kind, error)
    }
}
