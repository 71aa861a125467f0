//! The application's handle of a stream's sending half.

use std::fmt;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use swiftwater_quic::{ConnectionError, Expiry, Priority, WriteError};
use swiftwater_units::StreamId;
use tokio::io::AsyncWrite;

use crate::connection_shared::ConnectionRef;
use crate::connection_signals::store_waker;
use crate::connection_state::{ConnectionState, SendEnd};
use crate::error::write_io_error;

/// The sending half of a stream.
///
/// Dropping it finishes the stream, as [`SendStream::finish`] does; use [`SendStream::reset`] to
/// signal to the peer that the data is incomplete. It keeps its connection open; if it is the last handle
/// that does, dropping it closes the connection and what is not yet delivered is lost.
pub struct SendStream {
    id: StreamId,
    handle: ConnectionRef,
    /// Finished or reset by us: dropping does nothing more.
    ended: bool,
}

impl SendStream {
    /// The handle of a stream that is listed among the senders already, under the lock that opened it.
    pub(crate) fn new(id: StreamId, handle: ConnectionRef) -> Self {
        Self {
            id,
            handle,
            ended: false,
        }
    }

    /// The stream's identifier.
    pub fn id(&self) -> StreamId {
        self.id
    }

    /// Writes some of `data` and returns how much, at least one byte unless `data` is empty. Waits
    /// while flow control or the send buffer have no room. Dropping the future loses nothing: what it
    /// did not return was not written.
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
            std::future::poll_fn(|cx| self.poll_write_chunk(cx, &mut data)).await?;
        }
        Ok(())
    }

    /// Writes all of `data`, after which nothing follows: [`SendStream::write_all`] and
    /// [`SendStream::finish`] in one, which costs less than one after the other, and the end goes with the
    /// last byte. If the future is dropped, part of `data` may have been written.
    pub async fn write_last(&mut self, mut data: &[u8]) -> Result<(), WriteError> {
        if data.is_empty() {
            return self.finish();
        }
        while !self.ended {
            let written = std::future::poll_fn(|cx| self.poll_write_last(cx, data)).await?;
            data = &data[written..];
        }
        Ok(())
    }

    /// Marks the end of the stream. What was written is delivered in the background, as long as the
    /// connection is open; [`SendStream::stopped`] waits for it.
    pub fn finish(&mut self) -> Result<(), WriteError> {
        self.handle
            .lock()
            .connection
            .send_stream(self.id)
            .finish()?;
        self.ended = true;
        self.handle.touch();
        Ok(())
    }

    /// Abandons the stream with the application's `code`: what the peer has not read yet it may never
    /// read.
    pub fn reset(&mut self, code: u64) -> Result<(), WriteError> {
        self.handle
            .lock()
            .connection
            .send_stream(self.id)
            .reset(code)?;
        self.ended = true;
        self.handle.touch();
        Ok(())
    }

    /// Abandons the stream with the application's `code`, but for its first `reliable_size` bytes:
    /// the peer reads them before it sees the reset. More than was written counts as all that
    /// was written. Can be called again to lower that number, also to nothing with
    /// [`SendStream::reset`].
    ///
    /// Fails with [`WriteError::ResetAtUnsupported`] if the peer does not support
    /// draft-ietf-quic-reliable-stream-reset.
    pub fn reset_at(&mut self, code: u64, reliable_size: u64) -> Result<(), WriteError> {
        self.handle
            .lock()
            .connection
            .send_stream(self.id)
            .reset_at(code, reliable_size)?;
        self.ended = true;
        self.handle.touch();
        Ok(())
    }

    /// Abandons what the peer has not acknowledged `after` from now, but for the first
    /// `reliable_size` bytes, as [`SendStream::reset_at`] would with `code`; a peer that does not
    /// support that gets nothing more. [`SendStream::stopped`] reports it, and writes fail
    /// from then on. Replaces an earlier expiry.
    pub fn expire_after(
        &mut self,
        after: Duration,
        code: u64,
        reliable_size: u64,
    ) -> Result<(), WriteError> {
        let at = self.handle.worker.now() + after;
        let expiry = Expiry {
            at,
            code,
            reliable_size,
        };
        self.set_expiry(Some(expiry))
    }

    /// Takes back [`SendStream::expire_after`].
    pub fn never_expire(&mut self) -> Result<(), WriteError> {
        self.set_expiry(None)
    }

    fn set_expiry(&mut self, expiry: Option<Expiry>) -> Result<(), WriteError> {
        self.handle
            .lock()
            .connection
            .send_stream(self.id)
            .set_expiry(expiry)?;
        self.handle.touch();
        Ok(())
    }

    /// Sets how urgent this stream's data is among that of other streams.
    pub fn set_priority(&mut self, priority: Priority) -> Result<(), WriteError> {
        let mut state = self.handle.lock();
        state.connection.send_stream(self.id).set_priority(priority)
    }

    /// Waits until the peer has acknowledged everything, the end included (`None`), or has stopped
    /// reading (its code), or the stream has expired (the code of [`SendStream::expire_after`]).
    /// Without [`SendStream::finish`] the first can't happen.
    pub async fn stopped(&mut self) -> Result<Option<u64>, ConnectionError> {
        std::future::poll_fn(|cx| {
            let mut state = self.handle.lock();
            let ConnectionState {
                senders, closed, ..
            } = &mut *state;
            let sender = senders.entry(self.id).or_default();
            match (sender.end, closed) {
                (Some(SendEnd::Acknowledged), _) => Poll::Ready(Ok(None)),
                (Some(SendEnd::Stopped(code) | SendEnd::Expired(code)), _) => {
                    Poll::Ready(Ok(Some(code)))
                }
                (None, Some(reason)) => Poll::Ready(Err((**reason).clone())),
                (None, None) => {
                    store_waker(&mut sender.end_waiter, cx.waker());
                    Poll::Pending
                }
            }
        })
        .await
    }

    /// True once the time of [`SendStream::expire_after`] was over before the peer had everything.
    pub fn is_expired(&self) -> bool {
        let state = self.handle.lock();
        let end = state.senders.get(&self.id).and_then(|sender| sender.end);
        matches!(end, Some(SendEnd::Expired(_)))
    }

    fn poll_write_some(
        &mut self,
        cx: &mut Context<'_>,
        data: &[u8],
    ) -> Poll<Result<usize, WriteError>> {
        if data.is_empty() {
            return Poll::Ready(Ok(0));
        }
        self.poll_with(cx, |state, id| state.connection.send_stream(id).write(data))
    }

    /// Writes some of `data`, and finishes if that is all.
    fn poll_write_last(
        &mut self,
        cx: &mut Context<'_>,
        data: &[u8],
    ) -> Poll<Result<usize, WriteError>> {
        let mut ended = false;
        let outcome = self.poll_with(cx, |state, id| {
            let mut stream = state.connection.send_stream(id);
            let written = stream.write(data)?;
            if written == data.len() {
                stream.finish()?;
                ended = true;
            }
            Ok(written)
        });
        self.ended |= ended;
        outcome
    }

    fn poll_write_chunk(
        &mut self,
        cx: &mut Context<'_>,
        data: &mut Bytes,
    ) -> Poll<Result<usize, WriteError>> {
        self.poll_with(cx, |state, id| {
            state.connection.send_stream(id).write_chunk(data)
        })
    }

    /// One try to write; zero bytes mean that there was no room.
    fn poll_with(
        &mut self,
        cx: &mut Context<'_>,
        write: impl FnOnce(&mut ConnectionState, StreamId) -> Result<usize, WriteError>,
    ) -> Poll<Result<usize, WriteError>> {
        let outcome = {
            let mut state = self.handle.lock();
            let outcome = write(&mut state, self.id);
            if outcome == Ok(0) {
                let sender = state.senders.entry(self.id).or_default();
                store_waker(&mut sender.writer, cx.waker());
            }
            outcome
        };
        match outcome {
            Ok(0) => {
                // A STREAM_DATA_BLOCKED or DATA_BLOCKED frame is due.
                self.handle.touch();
                Poll::Pending
            }
            Ok(written) => {
                self.handle.touch();
                Poll::Ready(Ok(written))
            }
            Err(error) => Poll::Ready(Err(error)),
        }
    }
}

impl AsyncWrite for SendStream {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        data: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.get_mut()
            .poll_write_some(cx, data)
            .map_err(write_io_error)
    }

    /// Nothing to do: what was written is on its way.
    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    /// Finishes the stream, without waiting for the peer.
    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        let stream = self.get_mut();
        if stream.ended {
            return Poll::Ready(Ok(()));
        }
        Poll::Ready(stream.finish().map_err(write_io_error))
    }
}

impl Drop for SendStream {
    fn drop(&mut self) {
        {
            let mut state = self.handle.lock();
            state.senders.remove(&self.id);
            if self.ended || state.closed.is_some() {
                return;
            }
            if let Err(WriteError::Stopped(code)) = state.connection.send_stream(self.id).finish() {
                // The peer sent STOP_SENDING; the stream ends with its code.
                let _ = state.connection.send_stream(self.id).reset(code);
            }
        }
        self.handle.touch();
    }
}

impl fmt::Debug for SendStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SendStream")
            .field("id", &self.id)
            .finish_non_exhaustive()
    }
}
