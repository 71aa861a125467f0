//! How application tasks tell a worker that there is work.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Waker;

use swiftwater_quic::{ConnectionHandle, DatagramMeta, SocketId};

use crate::connection::Connection;
use crate::shared::Shared;
use crate::socket::Bound;

/// Datagrams of other workers that may wait: more than one turn of theirs brings.
const MAX_FORWARDED: usize = 1024;
/// Bytes of them.
const MAX_FORWARDED_BYTES: usize = 4 << 20;

/// What happened since the worker looked last.
#[derive(Default)]
pub(crate) struct News {
    /// Connections that the application opened.
    pub(crate) added: Vec<(ConnectionHandle, Arc<Shared>)>,
    /// Indices of connections that the application touched.
    pub(crate) touched: Vec<usize>,
    /// Sockets to receive on from now on.
    pub(crate) sockets: Vec<(SocketId, Bound)>,
    /// Sockets to close.
    pub(crate) closed_sockets: Vec<SocketId>,
    /// Connections that were opened here move to this socket.
    pub(crate) rebind: Option<SocketId>,
    /// The endpoint's closing or release is to be looked at.
    pub(crate) state_changed: bool,
    /// Datagrams that other workers received for connections of this one.
    pub(crate) forwarded: Forwarded,
    /// Connections that nobody accepted before the endpoint was closed.
    pub(crate) discarded: Vec<Connection>,
}

impl News {
    fn is_empty(&self) -> bool {
        self.added.is_empty()
            && self.touched.is_empty()
            && self.forwarded.datagrams.is_empty()
            && !self.state_changed
            && self.sockets.is_empty()
            && self.closed_sockets.is_empty()
            && self.rebind.is_none()
    }
}

/// Datagrams from other workers, and their size in bytes.
#[derive(Default)]
pub(crate) struct Forwarded {
    pub(crate) datagrams: Vec<(DatagramMeta, Box<[u8]>)>,
    pub(crate) bytes: usize,
}

#[derive(Default)]
struct Inner {
    news: News,
    /// Set only while the worker sleeps: a worker that runs looks by itself before it sleeps.
    waker: Option<Waker>,
    /// The worker is gone.
    closed: bool,
}

/// Mailbox of a worker.
#[derive(Default)]
pub(crate) struct Inbox {
    inner: Mutex<Inner>,
}

impl Inbox {
    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds news and wakes the worker if it sleeps.
    pub(crate) fn post(&self, change: impl FnOnce(&mut News)) {
        let waker = {
            let mut inner = self.lock();
            change(&mut inner.news);
            inner.waker.take()
        };
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    /// Leaves a datagram for the worker. False if it has to be dropped: the worker is gone, or
    /// doesn't keep up.
    pub(crate) fn forward(&self, meta: DatagramMeta, datagram: &[u8]) -> bool {
        let waker = {
            let mut inner = self.lock();
            let queue = &mut inner.news.forwarded;
            let full = queue.datagrams.len() >= MAX_FORWARDED
                || queue.bytes + datagram.len() > MAX_FORWARDED_BYTES;
            if inner.closed || full {
                return false;
            }
            let queue = &mut inner.news.forwarded;
            queue.datagrams.push((meta, datagram.into()));
            queue.bytes += datagram.len();
            inner.waker.take()
        };
        if let Some(waker) = waker {
            waker.wake();
        }
        true
    }

    /// The worker is gone: nothing is forwarded to it any more.
    pub(crate) fn close(&self) {
        let mut inner = self.lock();
        inner.closed = true;
        inner.news.forwarded = Forwarded::default();
    }

    /// Swaps the news for `empty`, which keeps its allocations.
    pub(crate) fn take(&self, empty: &mut News) {
        std::mem::swap(&mut self.lock().news, empty);
    }

    /// True if connections were touched, and no datagrams of other workers wait.
    pub(crate) fn only_touches(&self) -> bool {
        let inner = self.lock();
        !inner.news.touched.is_empty() && inner.news.forwarded.datagrams.is_empty()
    }

    /// Leaves `waker` to be woken by the next news; false if there are news already.
    pub(crate) fn park(&self, waker: &Waker) -> bool {
        let mut inner = self.lock();
        if !inner.news.is_empty() {
            return false;
        }
        inner.waker = Some(waker.clone());
        true
    }
}
