//! The application's handle of the HTTP datagrams of one request.

use std::fmt;
use std::sync::Arc;
use std::task::Poll;

use bytes::Bytes;
use swiftwater_net::Connection;
use swiftwater_net::quic::{self, DatagramFate, DatagramOptions, SendDatagramError};
use swiftwater_units::StreamId;
use thiserror::Error;

use super::flows::Flow;
use crate::h3::{self, DatagramError};
use crate::udp::connection::Http3;
use crate::udp::datagram_buffer::store_waker;
use crate::udp::hosted::State;

/// No more datagrams will be received: the request was reset, or its connection has ended.
#[derive(Clone, Copy, Debug, Eq, Error, PartialEq)]
#[error("the request of the datagrams has ended")]
pub struct DatagramsEnded;

/// The HTTP datagrams of an extended CONNECT request (RFC 9297, section 2). Clones share the request.
///
/// Up to 256 KiB of received datagrams wait to be read, each counted as its payload and 64 bytes; beyond it
/// the oldest are dropped. 64 of them may hold back 4 KiB each, which they share with datagrams of other requests. The
/// datagrams belong to the request: they end with it, and dropping the handle does not end the request.
#[derive(Clone)]
pub struct HttpDatagrams {
    held: Arc<Held>,
}

/// State shared by the handles.
struct Held {
    http3: Http3,
    id: StreamId,
}

impl HttpDatagrams {
    /// The handle for the request of stream `id`, which is in the table.
    pub(in crate::udp) fn new(http3: Http3, id: StreamId) -> Self {
        let held = Arc::new(Held { http3, id });
        Self { held }
    }

    /// The stream of the request.
    pub fn id(&self) -> StreamId {
        self.held.id
    }

    /// The QUIC connection, for addresses and measurements.
    pub fn connection(&self) -> &Connection {
        self.held.http3.quic()
    }

    /// Sends a datagram, unreliably; waits while the queue is full.
    pub async fn send(&self, payload: &[u8]) -> Result<(), DatagramError> {
        self.send_with(payload, DatagramOptions::default()).await
    }

    /// Like [`HttpDatagrams::send`], with a place among other data, a deadline on the clock of
    /// [`Connection::now`], and a key: [`HttpDatagrams::recv_fate`] reports what became of a datagram with a
    /// key.
    pub async fn send_with(
        &self,
        payload: &[u8],
        options: DatagramOptions,
    ) -> Result<(), DatagramError> {
        std::future::poll_fn(|cx| {
            self.held.http3.with(|_, quic, state| {
                match self.batch(quic, state).send_with([&[], payload], options) {
                    Err(DatagramError::Transport(SendDatagramError::Blocked)) => {
                        store_waker(&mut state.flows.writers, cx.waker());
                        Poll::Pending
                    }
                    sent => Poll::Ready(sent),
                }
            })
        })
        .await
    }

    /// Sends a datagram, unreliably, or fails at once if the queue is full.
    pub fn try_send(&self, payload: &[u8]) -> Result<(), DatagramError> {
        self.try_send_with(payload, DatagramOptions::default())
    }

    /// Like [`HttpDatagrams::try_send`], with the options of [`HttpDatagrams::send_with`].
    pub fn try_send_with(
        &self,
        payload: &[u8],
        options: DatagramOptions,
    ) -> Result<(), DatagramError> {
        self.send_batch(|batch| batch.send_with([&[], payload], options))
    }

    /// Lets `send` send any number of datagrams at the price of one: the connection is locked once, and its worker
    /// woken once. `send` must not use handles of the connection.
    pub fn send_batch<R>(&self, send: impl FnOnce(&mut DatagramBatch<'_>) -> R) -> R {
        let http3 = &self.held.http3;
        http3.with(|_, quic, state| send(&mut self.batch(quic, state)))
    }

    fn batch<'a>(&self, quic: &'a mut quic::Connection, state: &'a mut State) -> DatagramBatch<'a> {
        DatagramBatch {
            quic,
            engine: &mut state.engine,
            id: self.held.id,
        }
    }

    /// The largest payload of a datagram at present, bytes; `None` if datagrams can't be sent.
    pub fn max_size(&self) -> Option<usize> {
        let id = self.held.id;
        let http3 = &self.held.http3;
        http3.with(|_, quic, state| state.engine.max_datagram_size(quic, id))
    }

    /// The next datagram of the peer. Dropping the future loses nothing.
    ///
    /// The regular end of the peer's content is not reported here: who reads the content sees it.
    pub async fn recv(&self) -> Result<Bytes, DatagramsEnded> {
        std::future::poll_fn(|cx| {
            self.poll_flow(|flow| {
                if let Some(payload) = flow.buffer.pop() {
                    return Poll::Ready(payload);
                }
                flow.buffer.wait(cx.waker());
                Poll::Pending
            })
        })
        .await
    }

    /// Waits for datagrams of the peer, as [`HttpDatagrams::recv`] does, and adds all that wait to `datagrams`, for
    /// those who are soon done with them: it takes no allocation for each, but each may hold back 4 KiB of memory that it
    /// shares with others.
    pub async fn recv_all(&self, datagrams: &mut Vec<Bytes>) -> Result<(), DatagramsEnded> {
        std::future::poll_fn(|cx| {
            self.poll_flow(|flow| {
                if flow.buffer.pop_all(datagrams) {
                    return Poll::Ready(());
                }
                flow.buffer.wait(cx.waker());
                Poll::Pending
            })
        })
        .await
    }

    /// The next datagram of the peer, if one waits.
    pub fn try_recv(&self) -> Option<Bytes> {
        let id = self.held.id;
        let http3 = &self.held.http3;
        http3.state(|state| state.flows.flow(id)?.buffer.pop())
    }

    /// Datagrams of the peer that were dropped because they were not read fast enough.
    pub fn dropped(&self) -> u64 {
        let id = self.held.id;
        self.held.http3.state(|state| {
            let flow = state.flows.flow(id);
            flow.map_or(0, |flow| flow.buffer.dropped())
        })
    }

    /// Waits for the fate of a datagram that was sent with a key, and returns both. The 4096 newest unread
    /// fates are kept. Dropping the future loses nothing.
    pub async fn recv_fate(&self) -> Result<(u64, DatagramFate), DatagramsEnded> {
        std::future::poll_fn(|cx| {
            self.poll_flow(|flow| {
                if let Some(fate) = flow.buffer.pop_fate() {
                    return Poll::Ready(fate);
                }
                flow.buffer.wait_for_fate(cx.waker());
                Poll::Pending
            })
        })
        .await
    }

    /// Accesses the datagrams while the request is open.
    fn poll_flow<T>(
        &self,
        look: impl FnOnce(&mut Flow) -> Poll<T>,
    ) -> Poll<Result<T, DatagramsEnded>> {
        let id = self.held.id;
        self.held.http3.state(|state| match state.flows.flow(id) {
            Some(flow) if !flow.is_over => look(flow).map(Ok),
            _ => Poll::Ready(Err(DatagramsEnded)),
        })
    }
}

/// Sends datagrams while the connection is locked: see [`HttpDatagrams::send_batch`].
pub struct DatagramBatch<'a> {
    quic: &'a mut quic::Connection,
    engine: &'a mut h3::Connection,
    id: StreamId,
}

impl DatagramBatch<'_> {
    /// Sends a datagram whose payload is given in two parts, unreliably, or fails at once if the queue is full; with the
    /// options of [`HttpDatagrams::send_with`].
    pub fn send_with(
        &mut self,
        parts: [&[u8]; 2],
        options: DatagramOptions,
    ) -> Result<(), DatagramError> {
        self.engine
            .send_datagram_parts(self.quic, self.id, parts, options)
    }
}

impl fmt::Debug for DatagramBatch<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DatagramBatch")
            .field("id", &self.id)
            .finish_non_exhaustive()
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        let id = self.id;
        self.http3.state(|state| state.flows.discard(id));
    }
}

impl fmt::Debug for HttpDatagrams {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HttpDatagrams")
            .field("id", &self.held.id)
            .finish_non_exhaustive()
    }
}
