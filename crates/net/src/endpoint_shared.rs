//! What a worker and the handles of its endpoint share.

use std::collections::VecDeque;
use std::io;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use swiftwater_quic::wire::ConnectionId;
use swiftwater_quic::{Endpoint as Core, SocketId};
use swiftwater_units::Instant;
use tokio::runtime::Handle as Runtime;
use tokio::sync::Notify;

use crate::clock::Clock;
use crate::connection::Connection;
use crate::connection_worker::ConnectionWorker;
use crate::inbox::Inbox;
use crate::socket::Parcel;
use crate::socket_list::SocketList;
use crate::virtual_ids::{VirtualIdError, VirtualIdReceiver, VirtualIds};
use crate::worker_socket::WorkerSocket;

/// One worker of an endpoint. Locks are taken in the order: a connection's, this one, an inbox's: what runs on a
/// connection under its lock may use the endpoint.
pub(crate) struct EndpointShared {
    state: Mutex<EndpointState>,
    pub(crate) inbox: Inbox,
    pub(crate) clock: Clock,
    pub(crate) signals: Arc<EndpointSignals>,
    /// A connection of this worker waits to be accepted, or none will any more.
    pub(crate) incoming: Notify,
    pub(crate) counters: IoCounters,
    /// Where the worker runs.
    pub(crate) runtime: Runtime,
}

/// What the application waits for, from all workers of an endpoint.
#[derive(Default)]
pub(crate) struct EndpointSignals {
    /// A connection waits to be accepted, or none will any more.
    pub(crate) incoming: Notify,
    /// The last connection of a worker is gone.
    pub(crate) idle: Notify,
}

/// What the lock protects.
pub(crate) struct EndpointState {
    pub(crate) core: Core,
    /// The worker's sockets.
    pub(crate) sockets: SocketList,
    /// Destinations of packets that are of no connection.
    pub(crate) virtual_ids: VirtualIds,
    /// Connections that are complete and wait for `accept`.
    pub(crate) accept: VecDeque<Connection>,
    /// Incoming handshakes in progress: each has a place in `accept` reserved.
    pub(crate) handshakes: usize,
    /// Places in `accept`.
    pub(crate) backlog: usize,
    /// Connections not drained yet.
    pub(crate) connections: usize,
    /// Set by `close`: code and reason for every connection.
    pub(crate) closing: Option<(u64, Vec<u8>)>,
    /// The last handle of the endpoint is dropped: the worker ends with its last connection.
    pub(crate) released: bool,
    /// The worker is gone, with all connections.
    pub(crate) dead: bool,
}

/// Counted by the worker.
#[derive(Default)]
pub(crate) struct IoCounters {
    pub(crate) datagrams_received: AtomicU64,
    pub(crate) datagrams_sent: AtomicU64,
    pub(crate) sends: AtomicU64,
    pub(crate) receive_errors: AtomicU64,
    pub(crate) send_errors: AtomicU64,
    pub(crate) wakeups: AtomicU64,
    pub(crate) virtual_packets: AtomicU64,
    pub(crate) handed_over: AtomicU64,
    pub(crate) handovers_dropped: AtomicU64,
    pub(crate) handshakes_failed: AtomicU64,
}

/// Adds to a counter that only one task writes.
pub(crate) fn count(counter: &AtomicU64, n: u64) {
    counter.fetch_add(n, Ordering::Relaxed);
}

impl EndpointShared {
    pub(crate) fn new(
        core: Core,
        socket: &WorkerSocket,
        backlog: usize,
        clock: Clock,
        signals: Arc<EndpointSignals>,
        runtime: Runtime,
    ) -> Self {
        Self {
            state: Mutex::new(EndpointState {
                core,
                sockets: SocketList::new(socket),
                virtual_ids: VirtualIds::default(),
                accept: VecDeque::new(),
                handshakes: 0,
                backlog,
                connections: 0,
                closing: None,
                released: false,
                dead: false,
            }),
            inbox: Inbox::default(),
            clock,
            signals,
            incoming: Notify::new(),
            counters: IoCounters::default(),
            runtime,
        }
    }

    /// A connection waits to be accepted, or none will any more.
    pub(crate) fn wake_acceptors(&self) {
        self.incoming.notify_waiters();
        self.signals.incoming.notify_waiters();
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, EndpointState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ConnectionWorker for EndpointShared {
    fn now(&self) -> Instant {
        self.clock.now()
    }

    fn touch(&self, index: usize) {
        self.inbox.post(|messages| messages.touched.push(index));
    }

    fn socket_address(&self, socket: SocketId) -> Option<SocketAddr> {
        self.lock().sockets.address(socket)
    }

    fn local_address(&self) -> SocketAddr {
        self.lock().sockets.local()
    }

    fn has_udp_socket(&self, socket: SocketId) -> bool {
        self.lock().sockets.sender(socket).is_some()
    }

    fn send(&self, socket: SocketId, parcel: Parcel<'_>) -> io::Result<()> {
        let sender = self.lock().sockets.sender(socket).cloned();
        let sender = sender.ok_or(io::ErrorKind::Unsupported)?;
        let size = parcel.segment_size.unwrap_or(parcel.contents.len()).max(1);
        let sent = sender.try_send_all(&parcel, size, |datagrams| {
            count(&self.counters.sends, 1);
            count(&self.counters.datagrams_sent, datagrams as u64);
        });
        if sent.is_err() {
            count(&self.counters.send_errors, 1);
        }
        sent
    }

    fn issue_virtual_id(
        &self,
        receiver: Arc<dyn VirtualIdReceiver>,
    ) -> Result<ConnectionId, VirtualIdError> {
        let mut state = self.lock();
        let id = state.core.unused_cid().ok_or(VirtualIdError::Short)?;
        state.virtual_ids.add(id, receiver)?;
        Ok(id)
    }

    fn accept_virtual_id(
        &self,
        id: ConnectionId,
        receiver: Arc<dyn VirtualIdReceiver>,
    ) -> Result<(), VirtualIdError> {
        let mut state = self.lock();
        if state.core.conflicts_with_cid(id) {
            return Err(VirtualIdError::Conflict);
        }
        state.virtual_ids.add(id, receiver)
    }

    fn remove_virtual_id(&self, id: &ConnectionId) {
        self.lock().virtual_ids.remove(id);
    }

    fn runtime(&self) -> Runtime {
        self.runtime.clone()
    }
}

impl EndpointState {
    /// New connections are refused while as many wait to be accepted, handshakes in progress included, as may.
    pub(crate) fn limit_backlog(&mut self) {
        let full = self.accept.len() + self.handshakes >= self.backlog;
        self.core.set_refusing(full);
    }

    /// No connection will ever wait to be accepted again.
    pub(crate) fn accepts_no_more(&self) -> bool {
        self.closing.is_some() || self.released || self.dead
    }
}
