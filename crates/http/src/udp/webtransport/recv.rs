//! The receiving half of a session's stream.

use std::fmt;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use swiftwater_net::quic::{self, ReadChunk, ReadOutcome};
use swiftwater_units::StreamId;
use tokio::io::{AsyncRead, ReadBuf};

use super::error::{ReadError, ReadToEndError};
use super::session::{Held, keep};
use crate::h3::webtransport::stream_code;

/// Size of the largest chunk, bytes.
const MAX_CHUNK: usize = 64 * 1024;

/// The receiving half of a stream of a [`Session`](super::Session).
///
/// Unread data count against flow control: the peer stops sending when the window is full. Dropping
/// the handle before the end sends STOP_SENDING, as [`RecvStream::stop`] with code 0 does.
pub struct RecvStream {
    session: Arc<Held>,
    id: StreamId,
    /// How reading ended, if it has.
    ended: Option<Result<(), ReadError>>,
}

/// Result of one attempt to read.
enum Found<T> {
    Data(T),
    Nothing,
    End,
}

impl RecvStream {
    pub(super) fn new(session: Arc<Held>, id: StreamId) -> Self {
        Self {
            session,
            id,
            ended: None,
        }
    }

    /// The stream's identifier.
    pub fn id(&self) -> StreamId {
        self.id
    }

    /// Reads some bytes, in order, into `buf` and returns how many; `None` at the end of the stream.
    /// Dropping the future loses nothing.
    pub async fn read(&mut self, buf: &mut [u8]) -> Result<Option<usize>, ReadError> {
        std::future::poll_fn(|cx| self.poll_read_some(cx, buf)).await
    }

    /// Reads between 1 and `max` bytes, 64 KiB at most, or `None` at the end of the stream. Dropping
    /// the future loses nothing.
    pub async fn read_chunk(&mut self, max: usize) -> Result<Option<Bytes>, ReadError> {
        let max = max.min(MAX_CHUNK);
        std::future::poll_fn(|cx| self.poll_read_chunk(cx, max)).await
    }

    /// Reads to the end, at most `limit` bytes. If the future is dropped, what was read is lost.
    pub async fn read_to_end(&mut self, limit: usize) -> Result<Vec<u8>, ReadToEndError> {
        let mut data = Vec::new();
        while let Some(chunk) = self.read_chunk(MAX_CHUNK).await? {
            if chunk.len() > limit - data.len() {
                return Err(ReadToEndError::TooLong { limit });
            }
            data.extend_from_slice(&chunk);
        }
        Ok(data)
    }

    /// Sends STOP_SENDING with the application's `code`.
    pub fn stop(&mut self, code: u32) -> Result<(), ReadError> {
        if let Some(ended) = &self.ended {
            return Err(ended.clone().err().unwrap_or(ReadError::Closed));
        }
        self.ended = Some(Err(ReadError::Closed));
        self.give_up(code)
    }

    fn give_up(&self, code: u32) -> Result<(), ReadError> {
        let id = self.id;
        self.session.http3.with(|_, quic, state| {
            if !state.sessions.release_receiving(id) {
                return Err(over(quic));
            }
            quic.recv_stream(id).stop(stream_code(code).0)?;
            Ok(())
        })
    }

    fn poll_read_some(
        &mut self,
        cx: &Context<'_>,
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

    fn poll_read_chunk(
        &mut self,
        cx: &Context<'_>,
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

    /// Reads with `read`, or registers a waker if there are no data.
    fn poll_with<T>(
        &mut self,
        cx: &Context<'_>,
        read: impl FnOnce(quic::RecvStream<'_>) -> Result<Found<T>, quic::ReadError>,
    ) -> Poll<Result<Option<T>, ReadError>> {
        if let Some(ended) = &self.ended {
            return Poll::Ready(ended.clone().map(|()| None));
        }
        let id = self.id;
        let found = self.session.http3.with(|_, quic, state| {
            let Some(half) = state.sessions.receiving(id) else {
                return Err(over(quic));
            };
            let found = read(quic.recv_stream(id))?;
            if let Found::Nothing = found {
                keep(&mut half.reader, cx.waker());
            }
            Ok(found)
        });
        match found {
            Ok(Found::Data(data)) => Poll::Ready(Ok(Some(data))),
            Ok(Found::Nothing) => Poll::Pending,
            Ok(Found::End) => {
                self.ended = Some(Ok(()));
                Poll::Ready(Ok(None))
            }
            Err(error) => {
                self.ended = Some(Err(error.clone()));
                Poll::Ready(Err(error))
            }
        }
    }
}

/// Why a half that is no longer in the table can't be read.
fn over(quic: &quic::Connection) -> ReadError {
    match quic.close_reason() {
        Some(reason) => reason.clone().into(),
        None => ReadError::SessionOver,
    }
}

impl AsyncRead for RecvStream {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let read = ready!(self.get_mut().poll_read_some(cx, buf.initialize_unfilled()));
        buf.advance(read?.unwrap_or(0));
        Poll::Ready(Ok(()))
    }
}

impl Drop for RecvStream {
    fn drop(&mut self) {
        if self.ended.is_none() {
            // If it has ended, there is nothing to stop.
            let _ = self.give_up(0);
        } else {
            let id = self.id;
            self.session
                .http3
                .with(|_, _, state| state.sessions.release_receiving(id));
        }
    }
}

impl fmt::Debug for RecvStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RecvStream")
            .field("id", &self.id)
            .finish_non_exhaustive()
    }
}
