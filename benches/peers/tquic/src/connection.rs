//! One connection.

use bytes::Bytes;
use polled::{Failure, Streams};
use tquic::{Connection, Error};

/// Most urgent of all, as in the defaults of tquic's own tools; the same for all streams.
const URGENCY: u8 = 0;

/// A connection in the hands of the role.
pub(crate) struct Handle<'a> {
    pub(crate) library: &'a mut Connection,
    /// The role requests its close.
    pub(crate) closing: bool,
}

impl Streams for Handle<'_> {
    fn open(&mut self) -> Result<u64, Failure> {
        self.library
            .stream_bidi_new(URGENCY, true)
            .map_err(Failure::library)
    }

    fn read(&mut self, stream: u64, room: &mut [u8]) -> Result<Option<(usize, bool)>, Failure> {
        match self.library.stream_read(stream, room) {
            Ok(read) => Ok(Some(read)),
            Err(Error::Done) => Ok(None),
            Err(error) => Err(Failure::library(error)),
        }
    }

    fn write(&mut self, stream: u64, bytes: Bytes, finish: bool) -> Result<usize, Failure> {
        let len = bytes.len();
        let taken = match self.library.stream_write(stream, bytes, finish) {
            Ok(taken) => taken,
            Err(Error::Done) => 0,
            Err(error) => return Err(Failure::library(error)),
        };
        // Otherwise it would be reported as writable again and again.
        let _ = self.library.stream_want_write(stream, taken < len);
        Ok(taken)
    }

    fn close(&mut self) {
        self.closing = true;
    }
}
