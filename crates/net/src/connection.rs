//! The application's handle of a connection.

use std::fmt;
use std::future::Future;
use std::net::SocketAddr;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use swiftwater_quic::crypto::CryptoError;
use swiftwater_quic::policy::Hints;
use swiftwater_quic::{ConnectionError, ConnectionStats, SendDatagramError};
use swiftwater_units::{Dir, Side, StreamId};

use crate::recv_stream::RecvStream;
use crate::send_stream::SendStream;
use crate::shared::{Handle, remember};

/// A QUIC connection: streams in both directions, datagrams, and how the path fares.
///
/// Clones are handles of the same connection. When the last handle is dropped, the handles of its
/// streams included, the connection closes with code 0, and what was not yet delivered is lost: let
/// the receiver close, or wait with [`SendStream::stopped`] before dropping.
///
/// All futures may be dropped at any time without losing streams or datagrams.
#[derive(Clone)]
pub struct Connection {
    handle: Handle,
}

impl Connection {
    pub(crate) fn new(handle: Handle) -> Self {
        Self { handle }
    }

    /// Opens a stream on which both ends send. Waits while the peer permits no more streams. The
    /// peer hears of it with the first data (or its end).
    pub async fn open_bi(&self) -> Result<(SendStream, RecvStream), ConnectionError> {
        let id = self.open(Dir::Bi).await?;
        Ok(self.both(id))
    }

    /// Opens a stream on which only this end sends, like [`Connection::open_bi`].
    pub async fn open_uni(&self) -> Result<SendStream, ConnectionError> {
        let id = self.open(Dir::Uni).await?;
        Ok(SendStream::new(id, self.handle.clone()))
    }

    async fn open(&self, dir: Dir) -> Result<StreamId, ConnectionError> {
        let signal = self.handle.signals.available(dir);
        let mut blocked = false;
        self.handle
            .wait_for(signal, |state| {
                if let Some(reason) = &state.closed {
                    return Some(Err(reason.clone()));
                }
                let opened = state.connection.open(dir);
                if opened.is_none() && !blocked {
                    // The peer is told that its limit is in the way.
                    blocked = true;
                    self.handle.touch();
                }
                opened.map(Ok)
            })
            .await
    }

    /// Waits for a stream on which both ends send, opened by the peer.
    pub async fn accept_bi(&self) -> Result<(SendStream, RecvStream), ConnectionError> {
        let id = self.accept(Dir::Bi).await?;
        Ok(self.both(id))
    }

    /// Waits for a stream on which only the peer sends.
    pub async fn accept_uni(&self) -> Result<RecvStream, ConnectionError> {
        let id = self.accept(Dir::Uni).await?;
        Ok(RecvStream::new(id, self.handle.clone()))
    }

    async fn accept(&self, dir: Dir) -> Result<StreamId, ConnectionError> {
        let signal = self.handle.signals.opened(dir);
        let id = self
            .handle
            .wait_for(signal, |state| match state.connection.accept(dir) {
                // Streams that came before the end can still be read.
                Some(id) => Some(Ok(id)),
                None => state.closed.clone().map(Err),
            })
            .await?;
        self.handle.touch();
        Ok(id)
    }

    fn both(&self, id: StreamId) -> (SendStream, RecvStream) {
        let send = SendStream::new(id, self.handle.clone());
        let recv = RecvStream::new(id, self.handle.clone());
        (send, recv)
    }

    /// Queues a datagram for sending; waits while the queue is full. Datagrams may be lost, are
    /// never sent twice, and must fit [`Connection::max_datagram_size`].
    pub async fn send_datagram(&self, data: Bytes) -> Result<(), SendDatagramError> {
        let signal = &self.handle.signals.datagram_room;
        self.handle
            .wait_for(signal, |state| {
                match state.connection.send_datagram(data.clone()) {
                    Err(SendDatagramError::Blocked) => None,
                    other => Some(other),
                }
            })
            .await?;
        self.handle.touch();
        Ok(())
    }

    /// Queues a datagram for sending, or fails with [`SendDatagramError::Blocked`] if the queue is
    /// full.
    pub fn try_send_datagram(&self, data: Bytes) -> Result<(), SendDatagramError> {
        self.handle.lock().connection.send_datagram(data)?;
        self.handle.touch();
        Ok(())
    }

    /// Waits for a datagram of the peer. The queue is bounded: a reader that is too slow loses the
    /// oldest.
    pub async fn read_datagram(&self) -> Result<Bytes, ConnectionError> {
        let signal = &self.handle.signals.datagram_received;
        self.handle
            .wait_for(signal, |state| match state.connection.recv_datagram() {
                Some(data) => Some(Ok(data)),
                None => state.closed.clone().map(Err),
            })
            .await
    }

    /// The largest datagram that can be sent now, bytes; `None` if the peer accepts none. It changes
    /// with the path.
    pub fn max_datagram_size(&self) -> Option<usize> {
        self.handle.lock().connection.max_datagram_size()
    }

    /// Closes the connection at once, with a code (below 2^62) and a reason for the peer. Data that
    /// the peer has not received yet is lost.
    pub fn close(&self, code: u64, reason: &[u8]) {
        self.handle.close(code, reason);
    }

    /// Waits until the connection is closed, by whomever, and tells why.
    pub async fn closed(&self) -> ConnectionError {
        let signal = &self.handle.signals.closed;
        self.handle
            .wait_for(signal, |state| state.closed.clone())
            .await
    }

    /// Why the connection is closed; `None` while it isn't.
    pub fn close_reason(&self) -> Option<ConnectionError> {
        self.handle.lock().closed.clone()
    }

    /// Waits until the handshake is confirmed (RFC 9001, section 4.1.2): the peer has proved that it
    /// completed it too.
    pub async fn handshake_confirmed(&self) -> Result<(), ConnectionError> {
        let signal = &self.handle.signals.confirmed;
        self.handle
            .wait_for(signal, |state| match &state.closed {
                _ if state.confirmed => Some(Ok(())),
                closed => closed.clone().map(Err),
            })
            .await
    }

    /// Counters and measurements up to now, also after the end.
    pub fn stats(&self) -> ConnectionStats {
        self.handle.lock().connection.stats()
    }

    /// The peer's address, which may change during the connection.
    pub fn remote_address(&self) -> SocketAddr {
        self.handle.lock().connection.remote()
    }

    /// The application protocol that was negotiated, if any.
    pub fn alpn(&self) -> Option<Vec<u8>> {
        self.handle.lock().connection.alpn().map(<[u8]>::to_vec)
    }

    /// The server name that the client asked for.
    pub fn server_name(&self) -> Option<String> {
        self.handle
            .lock()
            .connection
            .server_name()
            .map(str::to_owned)
    }

    /// The peer's certificate chain, DER, end-entity first; empty if it sent none.
    pub fn peer_certificates(&self) -> Vec<Vec<u8>> {
        self.handle.lock().connection.peer_certificates()
    }

    /// Fills `out` with keying material that only the two ends know (RFC 8446, section 7.5).
    pub fn export_keying_material(
        &self,
        out: &mut [u8],
        label: &[u8],
        context: &[u8],
    ) -> Result<(), CryptoError> {
        let state = self.handle.lock();
        state.connection.export_keying_material(out, label, context)
    }

    /// Which end this is.
    pub fn side(&self) -> Side {
        self.handle.lock().connection.side()
    }

    /// A number that no other open connection of the same endpoint has.
    pub fn stable_id(&self) -> usize {
        self.handle.index()
    }

    /// Tells the policies what the application needs.
    pub fn set_hints(&self, hints: Hints) {
        let now = self.handle.endpoint.clock.now();
        self.handle.lock().connection.set_hints(now, hints);
        self.handle.touch();
    }

    /// Starts a key update (RFC 9001, section 6) as soon as one is permitted.
    pub fn update_keys(&self) {
        self.handle.lock().connection.update_keys();
        self.handle.touch();
    }

    /// Goes over to fresh connection IDs, so that observers can't link what follows.
    pub fn rotate_connection_ids(&self) {
        self.handle.lock().connection.rotate_connection_ids();
        self.handle.touch();
    }

    /// Sends something that the peer must acknowledge, to keep the path alive or measured.
    pub fn ping(&self) {
        self.handle.lock().connection.ping();
        self.handle.touch();
    }

    /// Takes the tokens for later connections that the server has sent (client only).
    pub fn take_tokens(&self) -> Vec<Vec<u8>> {
        std::mem::take(&mut self.handle.lock().tokens)
    }
}

impl fmt::Debug for Connection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Connection")
            .field("remote", &self.remote_address())
            .field("closed", &self.close_reason())
            .finish_non_exhaustive()
    }
}

/// A connection whose handshake is under way: a future of the [`Connection`]. Dropping it gives up.
#[must_use = "a connection that nobody waits for is closed"]
pub struct Connecting {
    handle: Option<Handle>,
}

impl Connecting {
    pub(crate) fn new(handle: Handle) -> Self {
        Self {
            handle: Some(handle),
        }
    }
}

impl Future for Connecting {
    type Output = Result<Connection, ConnectionError>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let handle = self.handle.as_ref().expect("not polled after completion");
        let outcome = {
            let mut state = handle.lock();
            match state.closed.clone() {
                Some(reason) => Some(Err(reason)),
                None if state.connected => Some(Ok(())),
                None => {
                    remember(&mut state.connecting, cx.waker());
                    None
                }
            }
        };
        match outcome {
            None => Poll::Pending,
            Some(outcome) => {
                let handle = self.handle.take().expect("taken once, here");
                Poll::Ready(outcome.map(|()| Connection::new(handle)))
            }
        }
    }
}

impl fmt::Debug for Connecting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Connecting").finish_non_exhaustive()
    }
}
