//! What a worker and the application's handles share of one connection: its state under a lock, its signals, and the
//! count of handles.
//!
//! The lock is held for single calls, never across an await. After a change from outside the worker,
//! [`ConnectionShared::touch`] notifies the worker. A task that has to wait leaves a waker (streams), or asks a
//! [`Notify`] for a ticket before it looks (everything else), so that no wake-up is lost.

use std::io;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use swiftwater_quic::{Connection, SocketId};
use swiftwater_units::{Instant, PathId};
use tokio::sync::Notify;

use crate::connection_signals::{ConnectionSignals, Wakeups};
use crate::connection_state::ConnectionState;
use crate::connection_worker::ConnectionWorker;
use crate::path_events::PathEvent;

/// By how much timers of the runtime may be late: they fire on whole milliseconds.
const TIMER_GRANULARITY: Duration = Duration::from_millis(1);

/// One connection.
pub(crate) struct ConnectionShared {
    /// Place in the worker's table.
    index: usize,
    state: Mutex<ConnectionState>,
    pub(crate) worker: Arc<dyn ConnectionWorker>,
    pub(crate) signals: ConnectionSignals,
    /// True while the worker has it on its list of touched connections.
    touched: AtomicBool,
    /// Something runs on the connection inside the worker.
    hosts: AtomicBool,
    /// Handles of the application: connection and streams.
    handles: AtomicUsize,
}

impl ConnectionShared {
    pub(crate) fn new(
        index: usize,
        mut connection: Box<Connection>,
        worker: Arc<dyn ConnectionWorker>,
    ) -> Arc<Self> {
        connection.set_timer_granularity(worker.now(), TIMER_GRANULARITY);
        Arc::new(Self {
            index,
            state: Mutex::new(ConnectionState::new(connection)),
            worker,
            signals: ConnectionSignals::default(),
            touched: AtomicBool::new(false),
            hosts: AtomicBool::new(false),
            handles: AtomicUsize::new(0),
        })
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, ConnectionState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Something runs on the connection inside the worker.
    pub(crate) fn hosts(&self) -> bool {
        self.hosts.load(Ordering::Relaxed)
    }

    /// Notes that something runs on the connection inside the worker.
    pub(crate) fn note_host(&self) {
        self.hosts.store(true, Ordering::Relaxed);
    }

    /// Place in the table of the worker.
    pub(crate) fn index(&self) -> usize {
        self.index
    }

    /// Notifies the worker of a change that the application made to the connection. To be called after the change, and
    /// when its lock is free.
    pub(crate) fn touch(&self) {
        if !self.touched.swap(true, Ordering::AcqRel) {
            self.worker.touch(self.index);
        }
    }

    /// The worker has seen the changes so far: the next one is to be notified again.
    pub(crate) fn clear_touched(&self) {
        self.touched.swap(false, Ordering::AcqRel);
    }

    /// The system could not reach the peer on `path` from `socket`; of interest if the path still uses that
    /// socket.
    pub(crate) fn note_unreachable(
        &self,
        now: Instant,
        path: PathId,
        socket: SocketId,
        kind: io::ErrorKind,
    ) {
        let mut state = self.lock();
        let address = state.connection.address_of(path);
        if address.is_some_and(|address| address.local.socket == socket) {
            state.connection.on_path_unreachable(now, path);
            state.report_path_event(PathEvent::Unreachable { path, kind });
        }
        if state.connection.path_address().local.socket == socket {
            state.unreachable = Some(kind);
            drop(state);
            self.signals.state.notify_waiters();
        }
    }

    /// Closes from this end and wakes all tasks that wait.
    pub(crate) fn close(&self, code: u64, reason: &[u8]) {
        let mut wakeups = Wakeups::default();
        let now = self.worker.now();
        self.lock().close(now, code, reason, &mut wakeups);
        wakeups.deliver(&self.signals);
        self.touch();
    }

    /// Repeats `attempt` whenever `signal` fires, until it yields something.
    pub(crate) async fn wait_for<T>(
        &self,
        signal: &Notify,
        mut attempt: impl FnMut(&mut ConnectionState) -> Option<T>,
    ) -> T {
        loop {
            // The ticket comes before the look: what fires in between counts.
            let ticket = signal.notified();
            if let Some(result) = attempt(&mut self.lock()) {
                return result;
            }
            ticket.await;
        }
    }
}

/// A counted reference: when the application's last one goes, the connection closes.
pub(crate) struct ConnectionRef(Arc<ConnectionShared>);

impl ConnectionRef {
    pub(crate) fn new(shared: Arc<ConnectionShared>) -> Self {
        shared.handles.fetch_add(1, Ordering::Relaxed);
        Self(shared)
    }
}

impl Clone for ConnectionRef {
    fn clone(&self) -> Self {
        Self::new(Arc::clone(&self.0))
    }
}

impl std::ops::Deref for ConnectionRef {
    type Target = ConnectionShared;

    fn deref(&self) -> &ConnectionShared {
        &self.0
    }
}

impl Drop for ConnectionRef {
    fn drop(&mut self) {
        if self.0.handles.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.0.close(0, b"");
        }
    }
}
