//! Calls of the application on streams.

use bytes::Bytes;
use swiftwater_units::{Dir, Instant, StreamId};
use swiftwater_wire::VarInt;

use super::StreamEvent;
use super::send_stream::SendHalf;
use super::stream_ids::Lookup;
use super::{Priority, READABLE, RangeHints, Streams, WRITABLE};
use crate::control::{ControlKey, ControlValue};
use crate::error::{ReadError, WriteError};

/// The outcome of a read.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum ReadOutcome {
    /// So many bytes.
    Data(usize),
    /// Nothing yet; an event follows when there is something.
    Blocked,
    /// The end: everything was read. Returned once; later reads find the stream closed.
    Finished,
}

/// What can be read without a copy.
#[derive(Debug)]
pub enum ReadChunk<'a> {
    /// The next bytes.
    Data(Chunk<'a>),
    /// As [`ReadOutcome::Blocked`].
    Blocked,
    /// As [`ReadOutcome::Finished`].
    Finished,
}

/// The next bytes of a stream, in place. They stay unread until [`Chunk::consume`].
#[derive(Debug)]
pub struct Chunk<'a> {
    streams: &'a mut Streams,
    key: u32,
}

/// What a read begins with.
enum ReadStart {
    /// The stream of this key has bytes to read.
    Readable(u32),
    /// No bytes can be read.
    Nothing(ReadOutcome),
}

impl Chunk<'_> {
    /// The bytes, at least one. More may follow after consuming all of them.
    pub fn data(&self) -> &[u8] {
        let stream = self.streams.slab.get(self.key);
        stream
            .and_then(|stream| stream.recv.as_ref())
            .map_or(&[], |recv| recv.peek())
    }

    /// True if the stream is known to end after these bytes, and was not reset.
    pub fn is_last(&self) -> bool {
        let stream = self.streams.slab.get(self.key);
        stream
            .and_then(|stream| stream.recv.as_ref())
            .is_some_and(|recv| recv.ends_after(recv.peek().len()))
    }

    /// Takes the first `n` bytes; more than there are count as all.
    pub fn consume(self, n: usize) {
        let taken = self
            .streams
            .with_recv(self.key, |recv, _| recv.consume(n as u64));
        self.streams.after_read(self.key, taken.unwrap_or(0));
    }
}

impl Streams {
    /// Opens a stream; `None` at the peer's limit, and `Available` follows when that grows.
    pub(crate) fn open(&mut self, dir: Dir) -> Option<StreamId> {
        let Some(id) = self.ids.open(dir) else {
            if self.knows_peer
                && let Some(limit) = self.ids.blocked_at(dir)
            {
                self.set_control(ControlKey::StreamsBlocked(dir), ControlValue::Limit(limit));
            }
            return None;
        };
        self.create(id);
        Some(id)
    }

    /// The next stream that the peer opened, in the order of identifiers.
    pub(crate) fn accept(&mut self, dir: Dir) -> Option<StreamId> {
        let (id, found) = self.ids.accept(dir)?;
        let key = match found {
            Lookup::Live(key) => key,
            Lookup::Untouched | Lookup::Closed => self.create(id),
        };
        let stream = &mut self.slab[key];
        stream.accepted = true;
        // Events of a stream that is not accepted were not queued.
        let stopped = stream.send.as_ref().and_then(SendHalf::stopped_code);
        self.announce_readable(key);
        if let Some(code) = stopped {
            self.events.push_back(StreamEvent::Stopped { id, code });
        }
        Some(id)
    }

    /// Writes as much of `data` as there is room for, and returns how much. Less than all means
    /// that the send window or the stream's credit is used up; `Writable` follows.
    pub(crate) fn write(&mut self, id: StreamId, data: &[u8]) -> Result<usize, WriteError> {
        self.write_vectored(id, &[data])
    }

    /// Like [`Streams::write`] for pieces that follow one another.
    pub(crate) fn write_vectored(
        &mut self,
        id: StreamId,
        pieces: &[&[u8]],
    ) -> Result<usize, WriteError> {
        let (key, room) = self.room_to_write(id)?;
        let len = pieces.iter().map(|piece| piece.len()).sum::<usize>();
        let n = len.min(room);
        self.with_send(key, |send, pool| {
            let mut left = n;
            for piece in pieces {
                let taken = piece.len().min(left);
                left -= taken;
                send.buffer.write_piece(&piece[..taken], left, pool);
            }
        });
        self.after_write(key, n < len);
        Ok(n)
    }

    /// Like [`Streams::write`] without a copy; what was written is split off `data`.
    pub(crate) fn write_chunk(
        &mut self,
        id: StreamId,
        data: &mut Bytes,
    ) -> Result<usize, WriteError> {
        let (key, room) = self.room_to_write(id)?;
        let n = data.len().min(room);
        if n > 0 {
            let part = data.split_to(n);
            self.with_send(key, |send, pool| send.buffer.push(part, pool));
        }
        self.after_write(key, !data.is_empty());
        Ok(n)
    }

    /// Bytes that the peer's limit on the stream lets the application write.
    pub(crate) fn stream_credit(&self, id: StreamId) -> Result<u64, WriteError> {
        Ok(self.sending(id)?.1.credit())
    }

    /// How many bytes can be written now.
    pub(crate) fn room(&self, id: StreamId) -> Result<usize, WriteError> {
        Ok(self.room_to_write(id)?.1)
    }

    /// Bytes written to the stream that were not sent yet.
    pub(crate) fn unsent_bytes(&self, id: StreamId) -> Result<u64, WriteError> {
        Ok(self.sending(id)?.1.buffer.unsent())
    }

    /// As [`Streams::write`], with hints about what is written.
    pub(crate) fn write_with(
        &mut self,
        id: StreamId,
        data: &[u8],
        hints: RangeHints,
    ) -> Result<usize, WriteError> {
        let start = self.sending(id)?.1.buffer.end();
        let n = self.write(id, data)?;
        self.set_range_hints(id, start..start + n as u64, hints)?;
        Ok(n)
    }

    /// Ends the stream after what was written.
    pub(crate) fn finish(&mut self, id: StreamId) -> Result<(), WriteError> {
        let key = self.sending(id)?.0;
        self.with_send(key, |send, _| {
            send.check_writable()?;
            send.buffer.finish();
            send.awaits_event = false;
            Ok(())
        })
        .unwrap_or(Err(WriteError::Closed))?;
        self.discard_unlimited(key);
        Ok(())
    }

    /// Sets which streams go first.
    pub(crate) fn set_priority(
        &mut self,
        id: StreamId,
        priority: Priority,
    ) -> Result<(), WriteError> {
        let (key, _) = self.sending(id)?;
        let stream = &mut self.slab[key];
        stream.priority = priority;
        if let Some(send) = &stream.send {
            self.outgoing.set_rank(key, id, priority.rank(), send);
        }
        Ok(())
    }

    /// Sets when the receiver has no use for the stream's data any more.
    pub(crate) fn set_deadline(
        &mut self,
        id: StreamId,
        deadline: Option<Instant>,
    ) -> Result<(), WriteError> {
        let (key, _) = self.sending(id)?;
        self.slab[key].deadline = deadline;
        Ok(())
    }

    /// The stream's priority.
    pub(crate) fn priority(&self, id: StreamId) -> Result<Priority, WriteError> {
        let (_, stream) = self.stream(id).ok_or(WriteError::Closed)?;
        Ok(stream.priority)
    }

    /// Reads into `buf`.
    pub(crate) fn read(&mut self, id: StreamId, buf: &mut [u8]) -> Result<ReadOutcome, ReadError> {
        let key = match self.start_read(id)? {
            ReadStart::Readable(key) => key,
            ReadStart::Nothing(outcome) => return Ok(outcome),
        };
        let n = self.with_recv(key, |recv, _| recv.read(buf)).unwrap_or(0);
        self.after_read(key, n as u64);
        Ok(ReadOutcome::Data(n))
    }

    /// Reads without a copy.
    pub(crate) fn read_chunk(&mut self, id: StreamId) -> Result<ReadChunk<'_>, ReadError> {
        Ok(match self.start_read(id)? {
            ReadStart::Readable(key) => ReadChunk::Data(Chunk { streams: self, key }),
            ReadStart::Nothing(ReadOutcome::Finished) => ReadChunk::Finished,
            ReadStart::Nothing(_) => ReadChunk::Blocked,
        })
    }

    /// Stops reading the stream: what is buffered is dropped, and the peer is asked with `code`
    /// (cut to 2^62 - 1) to stop sending.
    pub(crate) fn stop(&mut self, id: StreamId, code: u64) -> Result<(), ReadError> {
        let key = self.ids.key(id).ok_or(ReadError::Closed)?;
        let stopped = self.with_recv(key, |recv, _| {
            (!recv.is_stopped()).then(|| (recv.is_expecting_data(), recv.stop()))
        });
        let (expecting, outcome) = stopped.flatten().ok_or(ReadError::Closed)?;
        self.cancel(ControlKey::MaxStreamData(id));
        if expecting {
            let code = ControlValue::Code(VarInt::saturating(code).get());
            self.set_control(ControlKey::StopSending(id), code);
        }
        self.after_receipt(key, outcome);
        Ok(())
    }

    /// The sending half of `id`.
    pub(super) fn sending(&self, id: StreamId) -> Result<(u32, &SendHalf), WriteError> {
        let (key, stream) = self.stream(id).ok_or(WriteError::Closed)?;
        Ok((key, stream.send.as_ref().ok_or(WriteError::Closed)?))
    }

    /// How many bytes may be written to `id` now.
    fn room_to_write(&self, id: StreamId) -> Result<(u32, usize), WriteError> {
        let (key, send) = self.sending(id)?;
        send.check_writable()?;
        let room = send.credit().min(self.outgoing.room_for(send));
        Ok((key, usize::try_from(room).unwrap_or(usize::MAX)))
    }

    /// Notes what the writer of `key` waits for after a write, which fell `short` or not.
    fn after_write(&mut self, key: u32, short: bool) {
        if short {
            self.await_room(key);
            self.note_stream_blocked(key);
        }
        self.note_connection_blocked();
    }

    /// An event for the writer of `key` is due when there is room.
    fn await_room(&mut self, key: u32) {
        let Some(send) = self
            .slab
            .get_mut(key)
            .and_then(|stream| stream.send.as_mut())
        else {
            return;
        };
        send.awaits_event = true;
        if send.credit() > 0 && !send.is_listed {
            send.is_listed = true;
            self.outgoing.waiting.push_back(key);
        }
    }

    /// Queues the event for the writer of `key`, if it waits and there is room.
    pub(super) fn announce_writable(&mut self, key: u32) {
        let Some(stream) = self.slab.get_mut(key) else {
            return;
        };
        let id = stream.id;
        let Some(send) = stream
            .send
            .as_mut()
            .filter(|send| send.awaits_event && send.credit() > 0)
        else {
            return;
        };
        if self.outgoing.room_for(send) == 0 {
            self.await_room(key);
            return;
        }
        send.awaits_event = false;
        self.queue_event(key, WRITABLE, StreamEvent::Writable { id });
    }

    /// Queues the event for the reader of `key`, if it waits and there is something to read.
    pub(super) fn announce_readable(&mut self, key: u32) {
        let Some(stream) = self.slab.get_mut(key).filter(|stream| stream.accepted) else {
            return;
        };
        let id = stream.id;
        if let Some(recv) = &mut stream.recv
            && recv.awaits_event
            && recv.is_readable()
        {
            recv.awaits_event = false;
            self.queue_event(key, READABLE, StreamEvent::Readable { id });
        }
    }

    /// The stream to read from, or the outcome of the read.
    fn start_read(&mut self, id: StreamId) -> Result<ReadStart, ReadError> {
        let key = self.ids.recall(id).ok_or(ReadError::Closed)?;
        let recv = self
            .slab
            .get_mut(key)
            .and_then(|stream| stream.recv.as_mut());
        let recv = recv
            .filter(|recv| !recv.is_stopped())
            .ok_or(ReadError::Closed)?;
        if let Some(code) = recv.reset_code() {
            self.close_recv(key);
            return Err(ReadError::Reset(code));
        }
        if recv.is_at_end() {
            self.close_recv(key);
            return Ok(ReadStart::Nothing(ReadOutcome::Finished));
        }
        if !recv.is_readable() {
            recv.awaits_event = true;
            return Ok(ReadStart::Nothing(ReadOutcome::Blocked));
        }
        Ok(ReadStart::Readable(key))
    }
}
