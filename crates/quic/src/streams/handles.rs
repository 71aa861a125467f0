//! The sending and the receiving part of one stream, as applications use them.

use std::ops::Range;

use bytes::Bytes;
use swiftwater_units::{ByteCount, Instant, StreamId};

use crate::error::{ConnectionError, ReadError, WriteError};

use super::{Expiry, Priority, RangeHints, ReadChunk, ReadOutcome, Streams};

/// The sending part of a stream, borrowed from its connection.
#[derive(Debug)]
pub struct SendStream<'a> {
    id: StreamId,
    streams: &'a mut Streams,
    closed: Option<&'a ConnectionError>,
}

impl<'a> SendStream<'a> {
    /// Stream `id` of `streams`; `closed` says why the connection closed, if it did.
    pub(crate) fn new(
        id: StreamId,
        streams: &'a mut Streams,
        closed: Option<&'a ConnectionError>,
    ) -> Self {
        Self {
            id,
            streams,
            closed,
        }
    }

    /// The stream.
    pub fn id(&self) -> StreamId {
        self.id
    }

    fn check(&self) -> Result<(), WriteError> {
        self.closed
            .map_or(Ok(()), |reason| Err(reason.clone().into()))
    }

    /// Copies from `data` into the stream and returns how many bytes were taken; zero means blocked,
    /// and [`StreamEvent::Writable`](crate::StreamEvent::Writable) follows.
    pub fn write(&mut self, data: &[u8]) -> Result<usize, WriteError> {
        self.check()?;
        self.streams.write(self.id, data)
    }

    /// Like [`SendStream::write`] for pieces that follow one another, at the price of one call.
    pub fn write_vectored(&mut self, pieces: &[&[u8]]) -> Result<usize, WriteError> {
        self.check()?;
        self.streams.write_vectored(self.id, pieces)
    }

    /// Like [`SendStream::write`] without a copy: takes bytes off the front of `data`.
    pub fn write_chunk(&mut self, data: &mut Bytes) -> Result<usize, WriteError> {
        self.check()?;
        self.streams.write_chunk(self.id, data)
    }

    /// How many bytes the peer's limit on this stream (`MAX_STREAM_DATA`) lets be written; zero while it is
    /// the peer that holds this very stream back.
    pub fn credit(&self) -> Result<u64, WriteError> {
        self.check()?;
        self.streams.stream_credit(self.id)
    }

    /// How many bytes [`SendStream::write`] would take now: what flow control and the send window leave.
    pub fn room(&self) -> Result<usize, WriteError> {
        self.check()?;
        self.streams.room(self.id)
    }

    /// Ends the stream after what was written.
    pub fn finish(&mut self) -> Result<(), WriteError> {
        self.check()?;
        self.streams.finish(self.id)
    }

    /// Abandons the stream with the application's `code`.
    pub fn reset(&mut self, code: u64) -> Result<(), WriteError> {
        self.check()?;
        self.streams.reset(self.id, code)
    }

    /// Abandons the stream with the application's `code`, but for its first `reliable_size` bytes,
    /// which are still delivered before the peer's reader gets the reset. More than was written
    /// counts as all that was written. Can be called again to lower that number, also to nothing with
    /// [`SendStream::reset`]; a larger one changes nothing, and the first code stays.
    ///
    /// Fails with [`WriteError::ResetAtUnsupported`] if the peer does not support
    /// draft-ietf-quic-reliable-stream-reset; then only [`SendStream::reset`] is possible.
    pub fn reset_at(&mut self, code: u64, reliable_size: u64) -> Result<(), WriteError> {
        self.check()?;
        self.streams.reset_at(self.id, code, reliable_size)
    }

    /// Sets when the data of the stream expires if the peer has not acknowledged all of it, the
    /// end included; `None` (the default) never.
    /// [`StreamEvent::Expired`](crate::StreamEvent::Expired) reports it.
    pub fn set_expiry(&mut self, expiry: Option<Expiry>) -> Result<(), WriteError> {
        self.check()?;
        self.streams.set_expiry(self.id, expiry)
    }

    /// Bytes written to the stream that were not sent yet, not even once.
    pub fn unsent_bytes(&self) -> Result<ByteCount, WriteError> {
        self.check()?;
        Ok(self.streams.unsent_bytes(self.id)?.into())
    }

    /// As [`SendStream::write`], with hints about the bytes that are taken.
    pub fn write_with(&mut self, data: &[u8], hints: RangeHints) -> Result<usize, WriteError> {
        self.check()?;
        self.streams.write_with(self.id, data, hints)
    }

    /// Sets hints about a range of the stream, in bytes from its start, written or to be written;
    /// default hints remove earlier ones. They are kept until the range is acknowledged, and shown to
    /// schedulers and re-injectors together with the range; nothing is dropped or sent earlier for them.
    pub fn set_range_hints(
        &mut self,
        range: Range<u64>,
        hints: RangeHints,
    ) -> Result<(), WriteError> {
        self.check()?;
        self.streams.set_range_hints(self.id, range, hints)
    }

    /// The priority of the stream's data.
    pub fn priority(&self) -> Result<Priority, WriteError> {
        self.check()?;
        self.streams.priority(self.id)
    }

    /// Sets how urgent the stream's data is among that of other streams.
    pub fn set_priority(&mut self, priority: Priority) -> Result<(), WriteError> {
        self.check()?;
        self.streams.set_priority(self.id, priority)
    }

    /// Sets when the receiver has no use for the stream's data any more, for re-injectors; by default
    /// never. Nothing is dropped or sent earlier for it; see [`SendStream::set_expiry`].
    pub fn set_deadline(&mut self, deadline: Option<Instant>) -> Result<(), WriteError> {
        self.check()?;
        self.streams.set_deadline(self.id, deadline)
    }
}

/// The receiving part of a stream, borrowed from its connection.
#[derive(Debug)]
pub struct RecvStream<'a> {
    id: StreamId,
    streams: &'a mut Streams,
    closed: Option<&'a ConnectionError>,
}

impl<'a> RecvStream<'a> {
    /// Stream `id` of `streams`; `closed` says why the connection closed, if it did.
    pub(crate) fn new(
        id: StreamId,
        streams: &'a mut Streams,
        closed: Option<&'a ConnectionError>,
    ) -> Self {
        Self {
            id,
            streams,
            closed,
        }
    }

    /// The stream.
    pub fn id(&self) -> StreamId {
        self.id
    }

    /// True if some of what arrived on the stream were early data, which an attacker may have recorded
    /// and sent again (RFC 9001, section 9.2). Once the handshake is complete
    /// ([`Connection::is_handshaking`](crate::Connection::is_handshaking)), they are known to be the client's own. To be asked before the
    /// end was read.
    pub fn is_early_data(&self) -> bool {
        self.streams.is_early_data(self.id)
    }

    /// Reads in order into `buf`. What arrived before the connection closed can still be read.
    pub fn read(&mut self, buf: &mut [u8]) -> Result<ReadOutcome, ReadError> {
        match (self.streams.read(self.id, buf), self.closed) {
            (Ok(ReadOutcome::Blocked), Some(reason)) => Err(reason.clone().into()),
            (outcome, _) => outcome,
        }
    }

    /// Like [`RecvStream::read`] without a copy: lends the next bytes in place.
    pub fn read_chunk(&mut self) -> Result<ReadChunk<'_>, ReadError> {
        match (self.streams.read_chunk(self.id)?, self.closed) {
            (ReadChunk::Blocked, Some(reason)) => Err(reason.clone().into()),
            (chunk, _) => Ok(chunk),
        }
    }

    /// Stops reading: asks the peer with the application's `code` to stop sending.
    pub fn stop(&mut self, code: u64) -> Result<(), ReadError> {
        if let Some(reason) = self.closed {
            return Err(reason.clone().into());
        }
        self.streams.stop(self.id, code)
    }
}
