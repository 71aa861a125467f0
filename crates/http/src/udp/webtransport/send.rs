//! The sending half of a session's stream.

use std::fmt;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use swiftwater_net::quic::{self, Priority};
use swiftwater_units::StreamId;
use tokio::io::AsyncWrite;

use super::error::WriteError;
use super::session::{Held, keep};
use super::table::SendEnd;
use crate::h3::Code;
use crate::h3::webtransport::stream_code;

/// The sending half of a stream of a [`Session`](super::Session).
///
/// Dropping it finishes the stream, as [`SendStream::finish`] does; use [`SendStream::reset`] to
/// signal that the data are incomplete. It keeps its session open; if it is the last handle, dropping
/// it ends the session and undelivered data are lost.
pub struct SendStream {
    session: Arc<Held>,
    id: StreamId,
    /// Finished or reset by this end: dropping does nothing more.
    ended: bool,
    /// The stream's header is not written yet.
    header_unwritten: bool,
}

impl SendStream {
    pub(super) fn new(session: Arc<Held>, id: StreamId) -> Self {
        Self {
            session,
            id,
            ended: false,
            header_unwritten: false,
        }
    }

    /// A stream whose header is still to be written.
    pub(super) fn header_unwritten(session: Arc<Held>, id: StreamId) -> Self {
        let mut stream = Self::new(session, id);
        stream.header_unwritten = true;
        stream
    }

    /// The header is written.
    pub(super) fn header_written(&mut self) {
        self.header_unwritten = false;
    }

    /// The stream's identifier.
    pub fn id(&self) -> StreamId {
        self.id
    }

    /// Writes some of `data` and returns how much, at least one byte unless `data` is empty. Waits
    /// while flow control or the send buffer is full. Dropping the future loses nothing: what it did
    /// not return was not written.
    pub async fn write(&mut self, data: &[u8]) -> Result<usize, WriteError> {
        std::future::poll_fn(|cx| self.poll_write_some(cx, data)).await
    }

    /// Writes all of `data`. If the future is dropped, part of it may have been written.
    pub async fn write_all(&mut self, mut data: &[u8]) -> Result<(), WriteError> {
        while !data.is_empty() {
            let written = self.write(data).await?;
            data = &data[written..];
        }
        Ok(())
    }

    /// Writes all of `data` without copying it. If the future is dropped, part of it may have been
    /// written.
    pub async fn write_chunk(&mut self, mut data: Bytes) -> Result<(), WriteError> {
        while !data.is_empty() {
            std::future::poll_fn(|cx| {
                self.poll_with(cx, |mut stream| stream.write_chunk(&mut data))
            })
            .await?;
        }
        Ok(())
    }

    /// Finishes the stream. What was written is delivered in the background, as long as the session
    /// is open; [`SendStream::stopped`] waits for it.
    pub fn finish(&mut self) -> Result<(), WriteError> {
        self.act(|mut stream| stream.finish())?;
        self.ended = true;
        Ok(())
    }

    /// Resets the stream with the application's `code`: data that the peer has not read may never be
    /// delivered.
    pub fn reset(&mut self, code: u32) -> Result<(), WriteError> {
        let id = self.id;
        self.session.http3.with(|_, quic, state| {
            let Some(half) = state.sessions.sending(id) else {
                return Err(over(quic));
            };
            quic.send_stream(id).reset(stream_code(code).0)?;
            half.end.get_or_insert(SendEnd::Reset);
            Ok(())
        })?;
        self.ended = true;
        Ok(())
    }

    /// Sets the priority of this stream's data relative to other streams of the connection.
    pub fn set_priority(&mut self, priority: Priority) -> Result<(), WriteError> {
        self.act(|mut stream| stream.set_priority(priority))
    }

    /// Waits until the peer has acknowledged everything, the end included (`None`), or has stopped
    /// reading (its code; [`application_code`](crate::h3::webtransport::application_code) converts
    /// it). Without [`SendStream::finish`] the first can't happen.
    pub async fn stopped(&mut self) -> Result<Option<Code>, WriteError> {
        std::future::poll_fn(|cx| {
            let id = self.id;
            self.session.http3.with(|_, quic, state| {
                let Some(half) = state.sessions.sending(id) else {
                    return Poll::Ready(Err(over(quic)));
                };
                match half.end {
                    Some(SendEnd::Acknowledged) => Poll::Ready(Ok(None)),
                    Some(SendEnd::Stopped(code)) => Poll::Ready(Ok(Some(code))),
                    Some(SendEnd::Reset) => Poll::Ready(Err(WriteError::Closed)),
                    None => {
                        keep(&mut half.end_waiter, cx.waker());
                        Poll::Pending
                    }
                }
            })
        })
        .await
    }

    fn act<T>(
        &self,
        act: impl FnOnce(quic::SendStream<'_>) -> Result<T, quic::WriteError>,
    ) -> Result<T, WriteError> {
        let id = self.id;
        self.session.http3.with(|_, quic, state| {
            if state.sessions.sending(id).is_none() {
                return Err(over(quic));
            }
            Ok(act(quic.send_stream(id))?)
        })
    }

    fn poll_write_some(
        &mut self,
        cx: &Context<'_>,
        data: &[u8],
    ) -> Poll<Result<usize, WriteError>> {
        if data.is_empty() {
            return Poll::Ready(Ok(0));
        }
        self.poll_with(cx, |mut stream| stream.write(data))
    }

    /// One attempt to write; zero bytes mean that there was no room.
    fn poll_with(
        &mut self,
        cx: &Context<'_>,
        write: impl FnOnce(quic::SendStream<'_>) -> Result<usize, quic::WriteError>,
    ) -> Poll<Result<usize, WriteError>> {
        let id = self.id;
        self.session.http3.with(|_, quic, state| {
            let Some(half) = state.sessions.sending(id) else {
                return Poll::Ready(Err(over(quic)));
            };
            let written = write(quic.send_stream(id))?;
            if written == 0 {
                keep(&mut half.writer, cx.waker());
                return Poll::Pending;
            }
            Poll::Ready(Ok(written))
        })
    }
}

/// Why a half that is no longer in the table can't be written.
fn over(quic: &quic::Connection) -> WriteError {
    match quic.close_reason() {
        Some(reason) => reason.clone().into(),
        None => WriteError::SessionOver,
    }
}

impl AsyncWrite for SendStream {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        data: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = self.get_mut().poll_write_some(cx, data);
        written.map_err(io::Error::from)
    }

    /// Nothing to do: what was written is being delivered.
    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    /// Finishes the stream, without waiting for the peer.
    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        let stream = self.get_mut();
        if stream.ended {
            return Poll::Ready(Ok(()));
        }
        Poll::Ready(stream.finish().map_err(io::Error::from))
    }
}

impl Drop for SendStream {
    fn drop(&mut self) {
        let (id, ended, header_unwritten) = (self.id, self.ended, self.header_unwritten);
        self.session.http3.with(|_, quic, state| {
            if !state.sessions.release_sending(id) || ended {
                return;
            }
            let reset_with = if header_unwritten {
                Code::WEBTRANSPORT_SESSION_GONE.0
            } else {
                match quic.send_stream(id).finish() {
                    Ok(()) => return,
                    // The peer has stopped the stream; it ends with the peer's code.
                    Err(quic::WriteError::Stopped(code)) => code,
                    Err(_) => stream_code(0).0,
                }
            };
            let _ = quic.send_stream(id).reset(reset_with);
            state.sessions.discard_sending(id);
        });
    }
}

impl fmt::Debug for SendStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SendStream")
            .field("id", &self.id)
            .finish_non_exhaustive()
    }
}
