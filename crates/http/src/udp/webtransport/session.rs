//! The application's handle of a session.

use std::fmt;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use bytes::Bytes;
use swiftwater_net::Connection;
use swiftwater_net::quic::{self, DatagramFate, DatagramOptions, SendDatagramError};
use swiftwater_units::{Dir, StreamId};

use super::error::{SessionEnd, WriteError};
use super::recv::RecvStream;
use super::send::SendStream;
use super::session_state::{Order, SessionState};
use crate::h3::{DatagramError, SessionError};
use crate::udp::connection::Http3;
use crate::udp::datagram_buffer::store_waker;
use crate::udp::hosted::State;

/// A WebTransport session. Clones share the session; streams are handles too. When the last is
/// dropped, the session is closed with code 0.
///
/// When a session ends, at whichever end, its streams end with it: undelivered data are lost.
/// [`SendStream::stopped`] completes when the peer has acknowledged everything.
#[derive(Clone)]
pub struct Session {
    pub(super) held: Arc<Held>,
}

/// State shared by the handles.
pub(super) struct Held {
    pub(super) http3: Http3,
    pub(super) id: StreamId,
}

impl Session {
    /// The handle of the session at the request of stream `id`, which is in the table; the caller
    /// ensures that [`drive`](super::drive::drive) runs.
    pub(super) fn new(http3: Http3, id: StreamId) -> Self {
        http3.with(|_, _, state| {
            if let Some(live) = state.sessions.session(id) {
                live.is_held = true;
                live.is_driven = true;
            }
        });
        let held = Arc::new(Held { http3, id });
        Self { held }
    }

    /// The session's identifier: the stream of its request.
    pub fn id(&self) -> StreamId {
        self.held.id
    }

    /// The QUIC connection, for addresses and measurements.
    pub fn connection(&self) -> &Connection {
        self.held.http3.quic()
    }

    /// The next bidirectional stream that the peer opens. Dropping the future loses nothing.
    pub async fn accept_bi(&self) -> Result<(SendStream, RecvStream), SessionEnd> {
        let id = std::future::poll_fn(|cx| self.poll_accept(cx, Dir::Bi)).await?;
        let send = SendStream::new(Arc::clone(&self.held), id);
        Ok((send, RecvStream::new(Arc::clone(&self.held), id)))
    }

    /// The next unidirectional stream that the peer opens. Dropping the future loses nothing.
    pub async fn accept_uni(&self) -> Result<RecvStream, SessionEnd> {
        let id = std::future::poll_fn(|cx| self.poll_accept(cx, Dir::Uni)).await?;
        Ok(RecvStream::new(Arc::clone(&self.held), id))
    }

    fn poll_accept(&self, cx: &Context<'_>, dir: Dir) -> Poll<Result<StreamId, SessionEnd>> {
        self.poll_live(|live| {
            if let Some(id) = live.pop_stream(dir) {
                return Poll::Ready(id);
            }
            store_waker(&mut live.acceptors[dir as usize], cx.waker());
            Poll::Pending
        })
    }

    /// Opens a bidirectional stream; waits while the peer's stream limit is reached.
    pub async fn open_bi(&self) -> Result<(SendStream, RecvStream), SessionEnd> {
        let (send, recv) = self.open(Dir::Bi).await?;
        let recv = recv.unwrap_or_else(|| RecvStream::new(Arc::clone(&self.held), send.id()));
        Ok((send, recv))
    }

    /// Opens a unidirectional stream; waits while the peer's stream limit is reached.
    pub async fn open_uni(&self) -> Result<SendStream, SessionEnd> {
        Ok(self.open(Dir::Uni).await?.0)
    }

    async fn open(&self, dir: Dir) -> Result<(SendStream, Option<RecvStream>), SessionEnd> {
        let (id, signal) = std::future::poll_fn(|cx| self.poll_open(cx, dir)).await?;
        // If this future is dropped before the header is written, the stream is reset.
        let mut send = SendStream::header_unwritten(Arc::clone(&self.held), id);
        let recv = (dir == Dir::Bi).then(|| RecvStream::new(Arc::clone(&self.held), id));
        match send.write_chunk(signal).await {
            // Whether the peer stops it is reported to the writer.
            Ok(()) | Err(WriteError::Stopped(_) | WriteError::Closed) => {
                send.header_written();
                Ok((send, recv))
            }
            Err(WriteError::SessionOver | WriteError::ConnectionLost(_)) => Err(self.end()),
        }
    }

    fn poll_open(&self, cx: &Context<'_>, dir: Dir) -> Poll<Result<(StreamId, Bytes), SessionEnd>> {
        let session = self.held.id;
        self.held.http3.with(|_, quic, state| {
            if let Some(end) = end_of(state, session) {
                return Poll::Ready(Err(end));
            }
            match state.engine.begin_session_stream(quic, session, dir) {
                Ok((id, signal)) => {
                    state.sessions.begin_sending(session, id);
                    if dir == Dir::Bi {
                        state.sessions.begin_receiving(session, id);
                    }
                    Poll::Ready(Ok((id, signal)))
                }
                Err(SessionError::Blocked) => {
                    store_waker(&mut state.sessions.openers[dir as usize], cx.waker());
                    Poll::Pending
                }
                Err(SessionError::ConnectionLost(reason)) => Poll::Ready(Err(reason.into())),
                // The request has ended, and the session's task will see it.
                Err(SessionError::NoSession) => {
                    let live = state.sessions.session(session);
                    if let Some(live) = live {
                        store_waker(&mut live.end_waiters, cx.waker());
                        return Poll::Pending;
                    }
                    Poll::Ready(Err(SessionEnd::ClosedHere))
                }
            }
        })
    }

    /// Sends a datagram, unreliably; waits while the queue is full.
    pub async fn send_datagram(&self, payload: &[u8]) -> Result<(), DatagramError> {
        let options = DatagramOptions::default();
        self.send_datagram_with(payload, options).await
    }

    /// Like [`Session::send_datagram`], with a place among other data, a deadline on the clock of
    /// [`Connection::now`], and a key: [`Session::recv_datagram_fate`] reports what became of a datagram
    /// with a key.
    pub async fn send_datagram_with(
        &self,
        payload: &[u8],
        options: DatagramOptions,
    ) -> Result<(), DatagramError> {
        std::future::poll_fn(|cx| {
            self.held.http3.with(|_, quic, state| {
                match self.send_now(quic, state, payload, options) {
                    Err(DatagramError::Transport(SendDatagramError::Blocked)) => {
                        store_waker(&mut state.sessions.datagram_writers, cx.waker());
                        Poll::Pending
                    }
                    sent => Poll::Ready(sent),
                }
            })
        })
        .await
    }

    /// Sends a datagram, unreliably, or fails at once if the queue is full.
    pub fn try_send_datagram(&self, payload: &[u8]) -> Result<(), DatagramError> {
        self.try_send_datagram_with(payload, DatagramOptions::default())
    }

    /// Like [`Session::try_send_datagram`], with the options of [`Session::send_datagram_with`].
    pub fn try_send_datagram_with(
        &self,
        payload: &[u8],
        options: DatagramOptions,
    ) -> Result<(), DatagramError> {
        let http3 = &self.held.http3;
        http3.with(|_, quic, state| self.send_now(quic, state, payload, options))
    }

    /// Waits for the fate of a datagram that was sent with a key, and returns both. The 4096 newest
    /// unread fates are kept. Dropping the future loses nothing.
    pub async fn recv_datagram_fate(&self) -> Result<(u64, DatagramFate), SessionEnd> {
        std::future::poll_fn(|cx| {
            self.poll_live(|live| {
                if let Some(fate) = live.datagrams.pop_fate() {
                    return Poll::Ready(fate);
                }
                live.datagrams.wait_for_fate(cx.waker());
                Poll::Pending
            })
        })
        .await
    }

    fn send_now(
        &self,
        quic: &mut quic::Connection,
        state: &mut State,
        payload: &[u8],
        options: DatagramOptions,
    ) -> Result<(), DatagramError> {
        if end_of(state, self.held.id).is_some() {
            return Err(DatagramError::Closed);
        }
        let engine = &mut state.engine;
        engine.send_datagram_with(quic, self.held.id, payload, options)
    }

    /// The largest payload of a datagram at present, bytes; `None` if datagrams can't be sent.
    pub fn max_datagram_size(&self) -> Option<usize> {
        let session = self.held.id;
        let http3 = &self.held.http3;
        http3.with(|_, quic, state| state.engine.max_datagram_size(quic, session))
    }

    /// The next datagram of the peer. Dropping the future loses nothing.
    pub async fn recv_datagram(&self) -> Result<Bytes, SessionEnd> {
        std::future::poll_fn(|cx| {
            self.poll_live(|live| {
                if let Some(payload) = live.datagrams.pop() {
                    return Poll::Ready(payload);
                }
                live.datagrams.wait(cx.waker());
                Poll::Pending
            })
        })
        .await
    }

    /// Datagrams of the peer that were dropped because they were not read fast enough.
    pub fn dropped_datagrams(&self) -> u64 {
        let session = self.held.id;
        self.held.http3.with(|_, _, state| {
            let live = state.sessions.session(session);
            live.map_or(0, |live| live.datagrams.dropped())
        })
    }

    /// Asks the peer to end the session soon (WT_DRAIN_SESSION).
    pub fn drain(&self) {
        let session = self.held.id;
        self.held.http3.with_wakers(|_, _, state, wakers| {
            if let Some(live) = state.sessions.session(session) {
                live.order(Order::Drain, wakers);
            }
        });
    }

    /// Waits until the session should end soon: the peer asks for it, or either end shuts the
    /// connection down. Also ready once the session has ended.
    pub async fn draining(&self) {
        std::future::poll_fn(|cx| {
            let session = self.held.id;
            self.held
                .http3
                .with(|_, _, state| match state.sessions.session(session) {
                    Some(live) if !live.draining && live.end.is_none() => {
                        store_waker(&mut live.drain_waiters, cx.waker());
                        Poll::Pending
                    }
                    _ => Poll::Ready(()),
                })
        })
        .await;
    }

    /// Ends the session with the application's code and a reason, cut to 1024 bytes. Its streams
    /// end at once. Further calls have no effect.
    pub fn close(&self, code: u32, reason: &str) {
        self.held.close(code, reason);
    }

    /// Waits for the session's end.
    pub async fn closed(&self) -> SessionEnd {
        std::future::poll_fn(|cx| {
            let waiting = self.poll_live(|live| {
                store_waker(&mut live.end_waiters, cx.waker());
                Poll::<std::convert::Infallible>::Pending
            });
            match waiting {
                Poll::Pending => Poll::Pending,
                Poll::Ready(Err(end)) => Poll::Ready(end),
                Poll::Ready(Ok(never)) => match never {},
            }
        })
        .await
    }

    /// Why the session ended.
    fn end(&self) -> SessionEnd {
        let session = self.held.id;
        let end = self.held.http3.with(|_, _, state| end_of(state, session));
        end.unwrap_or(SessionEnd::ClosedHere)
    }

    /// Accesses the session while it is open.
    fn poll_live<T>(
        &self,
        look: impl FnOnce(&mut SessionState) -> Poll<T>,
    ) -> Poll<Result<T, SessionEnd>> {
        let session = self.held.id;
        self.held.http3.with(|_, _, state| {
            if let Some(end) = end_of(state, session) {
                return Poll::Ready(Err(end));
            }
            match state.sessions.session(session) {
                Some(live) => look(live).map(Ok),
                None => Poll::Ready(Err(SessionEnd::ClosedHere)),
            }
        })
    }
}

fn end_of(state: &mut State, session: StreamId) -> Option<SessionEnd> {
    state.sessions.session(session)?.end.clone()
}

impl Held {
    fn close(&self, code: u32, reason: &str) {
        self.http3.with_wakers(|_, quic, state, wakers| {
            let Some(live) = state.sessions.session(self.id) else {
                return;
            };
            if live.end.is_none() {
                live.order(Order::Close(code, reason.to_owned()), wakers);
                let end = SessionEnd::ClosedHere;
                state.sessions.end(quic, self.id, end, wakers);
            }
        });
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.close(0, "");
        self.http3.with(|_, _, state| {
            if let Some(live) = state.sessions.session(self.id) {
                live.is_held = false;
            }
            state.sessions.discard(self.id);
        });
    }
}

impl fmt::Debug for Session {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Session")
            .field("id", &self.held.id)
            .finish_non_exhaustive()
    }
}

/// Stores the waker of a waiting task, where only one task waits.
pub(super) fn keep(slot: &mut Option<Waker>, waker: &Waker) {
    match slot {
        Some(old) => old.clone_from(waker),
        None => *slot = Some(waker.clone()),
    }
}
