//! The task behind an endpoint: owns its sockets, and moves datagrams, timers and events between them and the
//! connections.
//!
//! A turn takes the messages of the application and of other workers, one batch of received datagrams and the
//! expired timers, delivers events, and lets connections send, each a batch in turn. Tasks that were woken to read
//! run before anything is sent: what they answer leaves together, with the acknowledgements. After some turns the
//! worker yields to other tasks anyway. A worker that finds nothing to do sleeps until a socket, a timer or a message
//! wakes it.

mod messages;
mod receiving;
mod sending;
mod settling;
mod timer;

use std::future::Future;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use swiftwater_quic::{EndpointEvent, SocketId};
use swiftwater_units::Instant;
use tokio::runtime::{Handle as Runtime, RuntimeFlavor};

use crate::connection_signals::Wakeups;
use crate::connection_table::ConnectionTable;
use crate::datagram_router::{DatagramRouter, Destination};
use crate::endpoint_shared::{EndpointShared, count};
use crate::inbox::WorkerMessages;
use crate::outgoing::Outgoing;
use crate::receive_errors::{PAUSE, ReceiveErrors};
use crate::recv_batch::RecvBatch;
use crate::worker_socket::WorkerSocket;
use crate::worker_sockets::WorkerSockets;

use self::timer::WorkerTimer;

/// Turns before other tasks get a chance.
const TURNS: usize = 4;

/// The task of an endpoint, or one of several.
pub(crate) struct Worker {
    shared: Arc<EndpointShared>,
    sockets: WorkerSockets,
    received: RecvBatch,
    receive_errors: ReceiveErrors,
    router: DatagramRouter,
    outgoing: Outgoing,
    table: ConnectionTable,
    timer: WorkerTimer,
    messages: WorkerMessages,
    /// Sleeps, or did until this very poll.
    asleep: bool,
    /// The runtime runs a woken task right after the one that woke it: see [`Worker::waits_for_more`].
    runs_next: bool,
    /// Yielded to the tasks that have something to read: this time it sends.
    yielded: bool,
    scratch: Scratch,
}

/// What came of a turn.
enum Turn {
    /// Something was done, and more may be to do.
    Busy,
    /// Nothing is left to do.
    Idle,
    /// Tasks have something to read, and should run before anything is sent.
    Yield,
}

/// Reused between calls, to allocate nothing.
#[derive(Default)]
struct Scratch {
    wakeups: Wakeups,
    events: Vec<EndpointEvent>,
    destinations: Vec<Destination>,
    /// What carriers say of the datagrams of a batch, and report.
    tags: Vec<Option<u64>>,
    reports: Vec<(SocketAddr, Bytes)>,
    /// Sockets that take no datagrams, as of the last send.
    blocked_sockets: Vec<SocketId>,
}

impl Worker {
    /// The worker of `workers[index]`, with its socket.
    pub(crate) fn new(
        workers: Arc<[Arc<EndpointShared>]>,
        index: usize,
        socket: WorkerSocket,
    ) -> Self {
        let shared = Arc::clone(&workers[index]);
        Self {
            timer: WorkerTimer::new(shared.clock),
            router: DatagramRouter::new(Arc::clone(&shared), workers),
            shared,
            sockets: WorkerSockets::new(socket),
            received: RecvBatch::new(),
            receive_errors: ReceiveErrors::default(),
            outgoing: Outgoing::new(),
            table: ConnectionTable::default(),
            messages: WorkerMessages::default(),
            asleep: false,
            runs_next: Runtime::try_current()
                .is_ok_and(|runtime| runtime.runtime_flavor() == RuntimeFlavor::MultiThread),
            yielded: false,
            scratch: Scratch::default(),
        }
    }

    /// True once after the application woke the worker. A runtime with several threads runs a task that
    /// another one wakes right after that one, before all that were ready: each request or response of many
    /// would go into a packet of its own. A task that wakes itself comes after those tasks.
    fn waits_for_more(&mut self) -> bool {
        let slept = std::mem::take(&mut self.asleep);
        slept && self.runs_next && self.shared.inbox.only_touches()
    }

    /// One turn.
    fn turn(&mut self, cx: &mut Context<'_>) -> Turn {
        let now = self.shared.clock.now();
        let mut busy = self.take_messages(now);
        if std::mem::take(&mut self.yielded) {
            // The socket was not polled, and will not wake the task.
            busy = true;
        } else {
            busy |= self.receive(cx, now);
            busy |= self.expire(now);
            self.deliver_all(now);
            if std::mem::take(&mut self.scratch.wakeups.readers_woken) {
                self.yielded = true;
                return Turn::Yield;
            }
        }
        busy |= self.transmit(cx);
        self.settle_all(now);
        if std::mem::take(&mut self.scratch.wakeups.tasks_woken) {
            // What they have to do, such as the next handshake, keeps the peer busy.
            self.sockets.skip_non_blocking_poll();
        }
        busy |= self.table.has_ready();
        if busy { Turn::Busy } else { Turn::Idle }
    }

    /// Runs the timers that are due.
    fn expire(&mut self, now: Instant) -> bool {
        let mut busy = false;
        while let Some(index) = self.table.pop_expired(now) {
            if let Some(entry) = self.table.get(index) {
                let wakeups = &mut self.scratch.wakeups;
                entry.shared.lock().handle_timeout(now, wakeups);
                self.table.mark(index);
                busy = true;
            }
        }
        busy
    }

    /// Arms the timer for what comes next; true if that is due already.
    fn arm(&mut self, cx: &mut Context<'_>) -> bool {
        let mut next = self.table.next_deadline();
        if self.receive_errors.needs_pause() {
            let again = self.shared.clock.now() + PAUSE;
            next = Some(next.map_or(again, |next| next.min(again)));
        }
        next.is_some_and(|next| self.timer.poll_at(cx, next))
    }

    /// True once neither a handle nor a connection needs the worker.
    fn is_finished(&self) -> bool {
        let endpoint = self.shared.lock();
        endpoint.released && endpoint.connections == 0
    }
}

impl Future for Worker {
    type Output = ();

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let worker = self.get_mut();
        count(&worker.shared.counters.wakeups, 1);
        if worker.waits_for_more() {
            cx.waker().wake_by_ref();
            return Poll::Pending;
        }
        for _ in 0..TURNS {
            match worker.turn(cx) {
                Turn::Busy => continue,
                Turn::Yield => break,
                Turn::Idle => {}
            }
            if worker.is_finished() {
                return Poll::Ready(());
            }
            if !worker.arm(cx) && worker.shared.inbox.park(cx.waker()) {
                worker.asleep = true;
                return Poll::Pending;
            }
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    }
}

impl Drop for Worker {
    /// The runtime is shutting down, or everything is over: nothing may wait for the worker in vain.
    fn drop(&mut self) {
        let now = self.shared.clock.now();
        let waiting = {
            let mut endpoint = self.shared.lock();
            endpoint.dead = true;
            endpoint.connections = 0;
            // Handles of connections outlive the worker; its sockets must not.
            endpoint.sockets.drop_senders();
            std::mem::take(&mut endpoint.accept)
        };
        drop(waiting);
        self.shared.inbox.close();
        self.shared.inbox.take(&mut self.messages);
        let added = self.messages.added.drain(..).map(|(_, shared)| shared);
        let known = self.table.drain().map(|entry| entry.shared);
        for shared in known.chain(added) {
            let wakeups = &mut self.scratch.wakeups;
            shared.lock().close(now, 0, b"", wakeups);
            wakeups.deliver(&shared.signals);
        }
        self.shared.wake_acceptors();
        self.shared.signals.idle.notify_waiters();
    }
}
