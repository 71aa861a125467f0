//! The application's handle of a stream's receiving half.

use std::fmt;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use swiftwater_quic::{ReadChunk, ReadError, ReadOutcome, RecvStream as Core};
use swiftwater_units::StreamId;
use tokio::io::{AsyncRead, ReadBuf};

use crate::connection_shared::ConnectionRef;
use crate::error::{ReadExactError, ReadToEndError, read_io_error};

/// The most that [`RecvStream::read_to_end`] takes under one lock, about, and the largest chunk, bytes.
const READ_STEP: usize = 64 * 1024;

/// The receiving half of a stream.
///
/// What is not read stays in flow control: the peer stops sending when its window is full. Dropping
/// the handle before the end asks the peer to stop, as [`RecvStream::stop`] with code 0 does.
pub struct RecvStream {
    id: StreamId,
    handle: ConnectionRef,
    /// How reading ended, once it has.
    ended: Option<Result<(), ReadError>>,
    /// A waker was left with the connection at some time.
    waited: bool,
}

/// What a look at the stream brought.
enum Found<T> {
    Data(T),
    Nothing,
    End,
}

impl RecvStream {
    pub(crate) fn new(id: StreamId, handle: ConnectionRef) -> Self {
        Self {
            id,
            handle,
            ended: None,
            waited: false,
        }
    }

    /// The stream's identifier.
    pub fn id(&self) -> StreamId {
        self.id
    }

    /// True if some of what arrived so far were early data, which may have been recorded and sent
    /// again: until the handshake is complete
    /// ([`Connection::is_handshaking`](crate::Connection::is_handshaking)), only do what may happen
    /// twice. To be asked before the end was read.
    pub fn is_early_data(&self) -> bool {
        let mut state = self.handle.lock();
        state.connection.recv_stream(self.id).is_early_data()
    }

    /// Reads some bytes, in order, into `buf` and returns how many; `None` at the end of the stream.
    /// Dropping the future loses nothing.
    pub async fn read(&mut self, buf: &mut [u8]) -> Result<Option<usize>, ReadError> {
        std::future::poll_fn(|cx| self.poll_read_some(cx, buf)).await
    }

    /// Fills `buf`. If the future is dropped, part of the stream may have been read.
    pub async fn read_exact(&mut self, buf: &mut [u8]) -> Result<(), ReadExactError> {
        let mut read = 0;
        while read < buf.len() {
            match self.read(&mut buf[read..]).await? {
                Some(n) => read += n,
                None => return Err(ReadExactError::FinishedEarly { read }),
            }
        }
        Ok(())
    }

    /// Reads between 1 and `max` bytes, or `None` at the end of the stream. Dropping the future loses
    /// nothing. The chunk takes as much memory as it has bytes.
    pub async fn read_chunk(&mut self, max: usize) -> Result<Option<Bytes>, ReadError> {
        std::future::poll_fn(|cx| self.poll_read_chunk(cx, max.min(READ_STEP))).await
    }

    /// Lends the next bytes to `take` as they lie in the receive buffer, without a copy; it returns how many of
    /// them it is done with, and the rest stays. Returns that number, or `None` at the end of the stream.
    /// Dropping the future loses nothing.
    ///
    /// `take` holds up the connection while it runs, and must not use other handles of it. For code that only
    /// looks at the bytes once: checksums, parsers, copies to where they stay.
    pub async fn read_with(
        &mut self,
        take: impl FnOnce(&[u8]) -> usize,
    ) -> Result<Option<usize>, ReadError> {
        let mut take = Some(take);
        std::future::poll_fn(|cx| self.poll_read_with(cx, &mut take)).await
    }

    /// Reads to the end, at most `limit` bytes. If the future is dropped, what was read is lost.
    pub async fn read_to_end(&mut self, limit: usize) -> Result<Vec<u8>, ReadToEndError> {
        let mut data = Vec::new();
        while std::future::poll_fn(|cx| self.poll_append(cx, &mut data, limit))
            .await?
            .is_some()
        {
            if data.len() > limit {
                return Err(ReadToEndError::TooLong { limit });
            }
        }
        if data.len() > limit {
            return Err(ReadToEndError::TooLong { limit });
        }
        Ok(data)
    }

    /// Appends what is there, the end included if it is, under one lock unless it is long; one byte more
    /// than `limit` at most, to distinguish a stream that ends from one that doesn't.
    fn poll_append(
        &mut self,
        cx: &mut Context<'_>,
        data: &mut Vec<u8>,
        limit: usize,
    ) -> Poll<Result<Option<()>, ReadError>> {
        let most = limit.saturating_add(1);
        let before = data.len();
        self.poll_with(cx, |mut stream| {
            loop {
                let grown = data.len() > before;
                match stream.read_chunk()? {
                    ReadChunk::Data(_)
                        if data.len() >= most || data.len() - before >= READ_STEP =>
                    {
                        return Ok(Found::Data(()));
                    }
                    ReadChunk::Data(chunk) => {
                        let bytes = chunk.data();
                        let bytes = &bytes[..bytes.len().min(most - data.len())];
                        data.extend_from_slice(bytes);
                        let n = bytes.len();
                        chunk.consume(n);
                    }
                    ReadChunk::Finished => return Ok(Found::End),
                    // What came is worth credit for the peer.
                    ReadChunk::Blocked if grown => return Ok(Found::Data(())),
                    ReadChunk::Blocked => return Ok(Found::Nothing),
                }
            }
        })
    }

    /// Asks the peer to stop sending (STOP_SENDING), with the application's `code`.
    pub fn stop(&mut self, code: u64) -> Result<(), ReadError> {
        self.handle
            .lock()
            .connection
            .recv_stream(self.id)
            .stop(code)?;
        self.ended = Some(Err(ReadError::Closed));
        self.handle.touch();
        Ok(())
    }

    /// `None` is the end of the stream.
    fn poll_read_some(
        &mut self,
        cx: &mut Context<'_>,
        buf: &mut [u8],
    ) -> Poll<Result<Option<usize>, ReadError>> {
        if buf.is_empty() && self.ended.is_none() {
            return Poll::Ready(Ok(Some(0)));
        }
        self.poll_with(cx, |mut stream| {
            Ok(match stream.read(buf)? {
                ReadOutcome::Data(n) => Found::Data(n),
                ReadOutcome::Blocked => Found::Nothing,
                ReadOutcome::Finished => Found::End,
            })
        })
    }

    /// Copies the next bytes, `max` at most, straight from where the connection keeps them.
    fn poll_read_chunk(
        &mut self,
        cx: &mut Context<'_>,
        max: usize,
    ) -> Poll<Result<Option<Bytes>, ReadError>> {
        if max == 0 && self.ended.is_none() {
            return Poll::Ready(Ok(Some(Bytes::new())));
        }
        self.poll_with(cx, |mut stream| {
            Ok(match stream.read_chunk()? {
                ReadChunk::Data(chunk) => {
                    let data = chunk.data();
                    let data = Bytes::copy_from_slice(&data[..data.len().min(max)]);
                    chunk.consume(data.len());
                    Found::Data(data)
                }
                ReadChunk::Blocked => Found::Nothing,
                ReadChunk::Finished => Found::End,
            })
        })
    }

    /// Takes `take` out and calls it once there is something.
    fn poll_read_with(
        &mut self,
        cx: &mut Context<'_>,
        take: &mut Option<impl FnOnce(&[u8]) -> usize>,
    ) -> Poll<Result<Option<usize>, ReadError>> {
        self.poll_with(cx, |mut stream| {
            Ok(match stream.read_chunk()? {
                ReadChunk::Data(chunk) => {
                    let data = chunk.data();
                    let done = take.take().map_or(0, |take| take(data)).min(data.len());
                    chunk.consume(done);
                    Found::Data(done)
                }
                ReadChunk::Blocked => Found::Nothing,
                ReadChunk::Finished => Found::End,
            })
        })
    }

    /// Reads with `read`, or leaves a waker if there is nothing yet.
    fn poll_with<T>(
        &mut self,
        cx: &mut Context<'_>,
        read: impl FnOnce(Core<'_>) -> Result<Found<T>, ReadError>,
    ) -> Poll<Result<Option<T>, ReadError>> {
        if let Some(ended) = &self.ended {
            return Poll::Ready(ended.clone().map(|()| None));
        }
        let found = {
            let mut state = self.handle.lock();
            let found = read(state.connection.recv_stream(self.id));
            if let Ok(Found::Nothing) = found {
                self.waited = true;
                state
                    .readers
                    .entry(self.id)
                    .and_modify(|old| old.clone_from(cx.waker()))
                    .or_insert_with(|| cx.waker().clone());
            }
            found
        };
        match found {
            Ok(Found::Data(data)) => {
                // What was read may be worth more credit for the peer.
                self.handle.touch();
                Poll::Ready(Ok(Some(data)))
            }
            Ok(Found::Nothing) => Poll::Pending,
            Ok(Found::End) => {
                self.ended = Some(Ok(()));
                self.handle.touch();
                Poll::Ready(Ok(None))
            }
            Err(error) => {
                self.ended = Some(Err(error.clone()));
                Poll::Ready(Err(error))
            }
        }
    }
}

impl AsyncRead for RecvStream {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let read = ready!(self.get_mut().poll_read_some(cx, buf.initialize_unfilled()));
        buf.advance(read.map_err(read_io_error)?.unwrap_or(0));
        Poll::Ready(Ok(()))
    }
}

impl Drop for RecvStream {
    fn drop(&mut self) {
        if self.ended.is_some() && !self.waited {
            return;
        }
        {
            let mut state = self.handle.lock();
            state.readers.remove(&self.id);
            if self.ended.is_some() || state.closed.is_some() {
                return;
            }
            // Already at its end, perhaps unread: then there is nothing to stop.
            let _ = state.connection.recv_stream(self.id).stop(0);
        }
        self.handle.touch();
    }
}

impl fmt::Debug for RecvStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RecvStream")
            .field("id", &self.id)
            .finish_non_exhaustive()
    }
}
