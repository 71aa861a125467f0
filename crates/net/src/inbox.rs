//! How application tasks tell a worker that there is work.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Waker;

use swiftwater_quic::ConnectionHandle;

use crate::connection::Connection;
use crate::shared::Shared;

/// What happened since the worker looked last.
#[derive(Default)]
pub(crate) struct News {
    /// Connections that the application opened.
    pub(crate) added: Vec<(ConnectionHandle, Arc<Shared>)>,
    /// Indices of connections that the application touched.
    pub(crate) touched: Vec<usize>,
    /// The endpoint's closing or release is to be looked at.
    pub(crate) state_changed: bool,
    /// Connections that nobody accepted before the endpoint was closed.
    pub(crate) discarded: Vec<Connection>,
}

impl News {
    fn is_empty(&self) -> bool {
        self.added.is_empty() && self.touched.is_empty() && !self.state_changed
    }
}

#[derive(Default)]
struct Inner {
    news: News,
    /// Set only while the worker sleeps: a worker that runs looks by itself before it sleeps.
    waker: Option<Waker>,
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

    /// Swaps the news for `empty`, which keeps its allocations.
    pub(crate) fn take(&self, empty: &mut News) {
        std::mem::swap(&mut self.lock().news, empty);
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
