//! What the jobs need of a connection.

use bytes::Bytes;
use job::{Outgoing, WrongAnswer};
use thiserror::Error;

/// A connection, as far as the jobs need it. Streams go both ways.
pub trait Streams {
    /// Opens a stream.
    fn open(&mut self) -> Result<u64, Failure>;

    /// Reads received data, in order; returns the number of bytes and whether the stream ends after them, or
    /// `None` without data.
    fn read(&mut self, stream: u64, room: &mut [u8]) -> Result<Option<(usize, bool)>, Failure>;

    /// Offers bytes to be sent and, with `finish`, the stream's end after them. Returns how many were accepted;
    /// the end is only accepted with the last byte.
    fn write(&mut self, stream: u64, bytes: Bytes, finish: bool) -> Result<usize, Failure>;

    /// Closes the connection, after pending data.
    fn close(&mut self);
}

/// Why a job can't be done.
#[derive(Debug, Error)]
pub enum Failure {
    /// The system says no.
    #[error(transparent)]
    Io(#[from] std::io::Error),
    /// The library says no.
    #[error("{0}")]
    Library(String),
    /// The server's answer is not the requested one.
    #[error(transparent)]
    WrongAnswer(#[from] WrongAnswer),
    /// A connection ended too early.
    #[error("a connection ended before its job was done")]
    Lost,
    /// The library can do without more than one thread only.
    #[error("this program has one worker")]
    OneWorker,
}

impl Failure {
    /// The library's message about an error.
    pub fn library(error: impl std::fmt::Display) -> Self {
        Self::Library(error.to_string())
    }
}

/// Sends as much as is accepted. Returns whether that was everything.
pub(crate) fn supply(
    streams: &mut impl Streams,
    stream: u64,
    outgoing: &mut Outgoing,
) -> Result<bool, Failure> {
    loop {
        let piece = outgoing.next_bytes();
        let len = piece.len();
        let last = len as u64 == outgoing.left();
        let taken = streams.write(stream, piece, last && outgoing.finishes())?;
        outgoing.advance(taken);
        if last || taken < len {
            return Ok(taken == len);
        }
    }
}
