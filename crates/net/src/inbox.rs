//! Messages to a worker, from application tasks and from other workers.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Waker;

use swiftwater_quic::{ConnectionHandle, DatagramMeta, SocketId};

use crate::connection::Connection;
use crate::connection_shared::ConnectionShared;
use crate::handed_over::HandedOver;
use crate::socket::Bound;

/// What a worker has been sent since it last took its messages.
#[derive(Default)]
pub(crate) struct WorkerMessages {
    /// Connections that the application opened.
    pub(crate) added: Vec<(ConnectionHandle, Arc<ConnectionShared>)>,
    /// Indices of connections that the application touched.
    pub(crate) touched: Vec<usize>,
    /// Sockets to receive on from now on.
    pub(crate) sockets: Vec<(SocketId, Bound)>,
    /// Sockets to close.
    pub(crate) closed_sockets: Vec<SocketId>,
    /// Connections that were opened here move to this socket.
    pub(crate) rebind: Option<SocketId>,
    /// The endpoint is closing or was released.
    pub(crate) state_changed: bool,
    /// Datagrams that other workers received for connections of this one.
    pub(crate) handed_over: HandedOver,
    /// Connections that were not accepted before the endpoint was closed.
    pub(crate) discarded: Vec<Connection>,
}

impl WorkerMessages {
    fn is_empty(&self) -> bool {
        self.added.is_empty()
            && self.touched.is_empty()
            && self.handed_over.is_empty()
            && !self.state_changed
            && self.sockets.is_empty()
            && self.closed_sockets.is_empty()
            && self.rebind.is_none()
    }
}

#[derive(Default)]
struct Inner {
    messages: WorkerMessages,
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

    /// Adds messages and wakes the worker if it sleeps.
    pub(crate) fn post(&self, add: impl FnOnce(&mut WorkerMessages)) {
        let waker = {
            let mut inner = self.lock();
            add(&mut inner.messages);
            inner.waker.take()
        };
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    /// Leaves datagrams for the worker, each with whether it is of an established connection, at the price of one lock and at most one wake-up for all of them; returns how
    /// many it takes. The others have to be dropped: the worker is gone, or doesn't keep up.
    pub(crate) fn hand_over<'a>(
        &self,
        datagrams: impl Iterator<Item = (DatagramMeta, &'a [u8], bool)>,
    ) -> u64 {
        let mut taken = 0;
        let waker = {
            let mut inner = self.lock();
            let open = !inner.closed;
            for (meta, datagram, established) in datagrams {
                let handed_over = &mut inner.messages.handed_over;
                let fits = open && handed_over.push(meta, datagram, established);
                taken += u64::from(fits);
            }
            inner.waker.take_if(|_| taken > 0)
        };
        if let Some(waker) = waker {
            waker.wake();
        }
        taken
    }

    /// The worker is gone: nothing is handed over to it any more.
    pub(crate) fn close(&self) {
        let mut inner = self.lock();
        inner.closed = true;
        inner.messages.handed_over = HandedOver::default();
    }

    /// Swaps the messages for `empty`, which keeps its allocations.
    pub(crate) fn take(&self, empty: &mut WorkerMessages) {
        std::mem::swap(&mut self.lock().messages, empty);
    }

    /// True if connections were touched, and no datagrams of other workers wait.
    pub(crate) fn only_touches(&self) -> bool {
        let inner = self.lock();
        !inner.messages.touched.is_empty() && inner.messages.handed_over.is_empty()
    }

    /// Leaves `waker` to be woken by the next message; false if there are messages already.
    pub(crate) fn park(&self, waker: &Waker) -> bool {
        let mut inner = self.lock();
        if !inner.messages.is_empty() {
            return false;
        }
        inner.waker = Some(waker.clone());
        true
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU64, Ordering};
    use std::task::Wake;

    use super::*;

    #[derive(Default)]
    struct Counting(AtomicU64);

    impl Wake for Counting {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// However many datagrams a batch brings for another worker, that one is woken once.
    #[test]
    fn a_batch_wakes_its_worker_once() {
        let wakes = Arc::new(Counting::default());
        let waker = Waker::from(Arc::clone(&wakes));
        let inbox = Inbox::default();
        let meta = DatagramMeta {
            remote: ([192, 0, 2, 1], 1).into(),
            local_ip: None,
            socket: SocketId::default(),
            ecn: None,
        };
        for batches in 1..=3 {
            assert!(inbox.park(&waker));
            let datagrams = [&b"one"[..]; 64].map(|datagram| (meta, datagram, true));
            assert_eq!(inbox.hand_over(datagrams.into_iter()), 64);
            assert_eq!(wakes.0.load(Ordering::Relaxed), batches);
            assert!(!inbox.park(&waker), "there is something to take");
            let mut messages = WorkerMessages::default();
            inbox.take(&mut messages);
            assert!(!messages.handed_over.is_empty());
        }
        // Nothing is taken after the end, and nothing is woken.
        assert!(inbox.park(&waker));
        inbox.close();
        assert_eq!(inbox.hand_over([(meta, &b"late"[..], true)].into_iter()), 0);
        assert_eq!(wakes.0.load(Ordering::Relaxed), 3);
    }
}
