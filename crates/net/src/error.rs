//! Errors of this crate, and how transport errors look through `std::io`.

use std::io;
use std::net::SocketAddr;

use swiftwater_quic::{ConnectionError, ReadError, WriteError};
use thiserror::Error;

/// A UDP socket could not be had.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum BindError {
    /// The system refused the address: the port is taken, forbidden, or the address isn't ours.
    #[error("cannot bind UDP {address}: {source}")]
    Address {
        /// The address asked for.
        address: SocketAddr,
        /// The system's error.
        source: io::Error,
    },
    /// The connection IDs don't distinguish as many workers. Those of QUIC-LB need a cipher and a nonce of 8 bytes
    /// or more to distinguish any.
    #[error(
        "the connection IDs distinguish {distinct} workers, not {workers} (QUIC-LB: encrypt them, with a nonce of 8 bytes or more)"
    )]
    ConnectionIds {
        /// Workers asked for.
        workers: usize,
        /// Workers that the generator of connection IDs distinguishes.
        distinct: usize,
    },
    /// Workers need a port that several sockets share, which this system doesn't offer.
    #[error("on this system a server has one worker: sockets can't share a port evenly")]
    NoSharing,
    /// The system gave no thread or event queue to a worker.
    #[error("cannot start a worker: {0}")]
    Worker(io::Error),
    /// Clients can't be asked to come to a wildcard address.
    #[error("a preferred address must name an IP address, not {0}")]
    Unspecified(SocketAddr),
    /// The endpoint has used up its 65,535 socket numbers.
    #[error("too many sockets were added to the endpoint")]
    TooManySockets,
    /// The call came from outside a tokio runtime.
    #[error("an endpoint must be made inside a tokio runtime: {0}")]
    NoRuntime(String),
}

/// [`RecvStream::read_to_end`](crate::RecvStream::read_to_end) failed.
#[derive(Clone, Debug, Eq, Error, PartialEq)]
pub enum ReadToEndError {
    /// Reading failed.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// The stream is longer than the caller allowed. What was read is lost.
    #[error("the stream is longer than {limit} bytes")]
    TooLong {
        /// The caller's limit.
        limit: usize,
    },
}

/// [`RecvStream::read_exact`](crate::RecvStream::read_exact) failed.
#[derive(Clone, Debug, Eq, Error, PartialEq)]
pub enum ReadExactError {
    /// Reading failed.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// The stream ended before the buffer was full.
    #[error("the stream ended after {read} bytes")]
    FinishedEarly {
        /// Bytes read.
        read: usize,
    },
}

/// How a lost connection looks to code that uses `std::io` only.
pub(crate) fn connection_io_error(error: ConnectionError) -> io::Error {
    let kind = match error {
        ConnectionError::TimedOut | ConnectionError::HandshakeTimedOut => io::ErrorKind::TimedOut,
        ConnectionError::LocallyClosed { .. } => io::ErrorKind::ConnectionAborted,
        _ => io::ErrorKind::ConnectionReset,
    };
    io::Error::new(kind, error)
}

pub(crate) fn read_io_error(error: ReadError) -> io::Error {
    match error {
        ReadError::ConnectionLost(error) => connection_io_error(error),
        ReadError::Reset(_) => io::Error::new(io::ErrorKind::ConnectionReset, error),
        _ => io::Error::new(io::ErrorKind::NotConnected, error),
    }
}

pub(crate) fn write_io_error(error: WriteError) -> io::Error {
    match error {
        WriteError::ConnectionLost(error) => connection_io_error(error),
        WriteError::Stopped(_) => io::Error::new(io::ErrorKind::BrokenPipe, error),
        _ => io::Error::new(io::ErrorKind::NotConnected, error),
    }
}
