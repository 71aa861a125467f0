//! The task behind an endpoint: owns the socket, moves datagrams, timers and events.
//!
//! A turn takes the application's news, one batch of received datagrams and the expired timers, tells
//! what happened, and lets connections send, each a batch in turn. Tasks that were told of something to
//! read run before anything is sent: what they answer leaves together, with the acknowledgements. After
//! some turns the worker gives way to other tasks anyway. One that finds nothing to do sleeps until the
//! socket, a timer or the application wakes it.

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::{Context, Poll};

use swiftwater_quic::{ConnectionHandle, DatagramMeta, EndpointEvent, LocalAddress, SocketId};
use swiftwater_units::{Instant, Side};
use tokio::runtime::{Handle as Runtime, RuntimeFlavor};
use tokio::time::Sleep;

use crate::connection::Connection;
use crate::dispatch::{Dispatch, ResponseRoom};
use crate::endpoint_shared::{EndpointShared, count};
use crate::inbox::{Forwarded, News};
use crate::outgoing::Outgoing;
use crate::receive_errors::{PAUSE, ReceiveErrors};
use crate::shared::{Handle, Shared, Wakeups};
use crate::socket::{RecvBatch, Socket};
use crate::sockets::Sockets;
use crate::table::Table;

/// Turns before other tasks get a chance.
const TURNS: usize = 4;
/// Datagrams that are answered at once. Of a larger batch each half is, by applications inside the worker: the
/// peer has something to do while this end takes in the second one, and there are no more packets and system
/// calls than that needs.
const ANSWERED_TOGETHER: usize = 8;
/// Batches sent in a turn before the socket is read again.
const SENDS_PER_TURN: usize = 16;

/// The task of an endpoint, or one of several.
pub(crate) struct Worker {
    shared: Arc<EndpointShared>,
    /// All workers of the endpoint, this one included.
    workers: Arc<[Arc<EndpointShared>]>,
    sockets: Sockets,
    received: RecvBatch,
    receive_errors: ReceiveErrors,
    outgoing: Outgoing,
    /// Whose batch is in `outgoing`, or was last.
    sender: Option<ConnectionHandle>,
    table: Table,
    sleep: Pin<Box<Sleep>>,
    /// What `sleep` is set to; `None` once it has fired.
    armed: Option<Instant>,
    news: News,
    /// Sleeps, or did until this very poll.
    asleep: bool,
    /// See [`Worker::waits_for_more`].
    runs_next: bool,
    /// Gave way to the tasks that have something to read: this time it sends.
    gave_way: bool,
    scratch: Scratch,
}

/// What came of a turn.
enum Turn {
    /// Something was done, and more may be to do.
    Busy,
    /// Nothing is left to do.
    Idle,
    /// Tasks have something to read, and should run before anything is sent.
    GiveWay,
}

/// Reused between calls, to allocate nothing.
struct Scratch {
    wakeups: Wakeups,
    events: Vec<EndpointEvent>,
    response: Box<ResponseRoom>,
}

impl Worker {
    /// The worker of `workers[index]`, with its socket.
    pub(crate) fn new(workers: Arc<[Arc<EndpointShared>]>, index: usize, socket: Socket) -> Self {
        let shared = Arc::clone(&workers[index]);
        Self {
            workers,
            sleep: Box::pin(tokio::time::sleep_until(shared.clock.tokio(Instant::ZERO))),
            shared,
            sockets: Sockets::new(socket),
            received: RecvBatch::new(),
            receive_errors: ReceiveErrors::default(),
            outgoing: Outgoing::new(),
            sender: None,
            table: Table::default(),
            armed: None,
            news: News::default(),
            asleep: false,
            runs_next: Runtime::try_current()
                .is_ok_and(|runtime| runtime.runtime_flavor() == RuntimeFlavor::MultiThread),
            gave_way: false,
            scratch: Scratch {
                wakeups: Wakeups::default(),
                events: Vec::new(),
                response: Box::new([0; size_of::<ResponseRoom>()]),
            },
        }
    }

    /// True once after the application woke the worker. A runtime with several threads runs a task that
    /// another one wakes right after that one, before all that were ready: each request or response of many
    /// would go into a packet of its own. Whoever wakes itself comes after those tasks.
    fn waits_for_more(&mut self) -> bool {
        let slept = std::mem::take(&mut self.asleep);
        slept && self.runs_next && self.shared.inbox.only_touches()
    }

    /// One turn.
    fn turn(&mut self, cx: &mut Context<'_>) -> Turn {
        let now = self.shared.clock.now();
        let mut busy = self.take_news(now);
        if std::mem::take(&mut self.gave_way) {
            // The socket was not asked, and wakes nobody.
            busy = true;
        } else {
            busy |= self.receive(cx, now);
            busy |= self.expire(now);
            self.tell_all(now);
            if std::mem::take(&mut self.scratch.wakeups.readers_woken) {
                self.gave_way = true;
                return Turn::GiveWay;
            }
        }
        busy |= self.transmit(cx);
        self.settle_all(now);
        if std::mem::take(&mut self.scratch.wakeups.tasks_woken) {
            // What they have to do, such as the next handshake, keeps the peer busy.
            self.sockets.forgo_glance();
        }
        busy |= !self.table.ready.is_empty() && !self.outgoing.is_blocked();
        if busy { Turn::Busy } else { Turn::Idle }
    }

    /// Takes what the application left in the inbox.
    fn take_news(&mut self, now: Instant) -> bool {
        let mut news = std::mem::take(&mut self.news);
        self.shared.inbox.take(&mut news);
        let mut busy = !news.added.is_empty() || !news.touched.is_empty();
        for (id, bound) in news.sockets.drain(..) {
            busy = true;
            self.sockets.add(id, bound);
        }
        for id in news.closed_sockets.drain(..) {
            self.sockets.remove(id);
        }
        for (handle, shared) in news.added.drain(..) {
            self.table.insert(handle, shared, false);
        }
        for index in news.touched.drain(..) {
            if let Some(entry) = self.table.get(index) {
                entry.shared.clear_touched();
                self.table.mark(index);
            }
        }
        busy |= self.take_forwarded(&mut news.forwarded, now);
        if let Some(socket) = news.rebind.take() {
            busy = true;
            self.rebind(socket, now);
        }
        if std::mem::take(&mut news.state_changed) {
            busy = true;
            self.close_if_asked(now);
        }
        news.discarded.clear();
        self.news = news;
        busy
    }

    /// Takes what other workers received for this one.
    fn take_forwarded(&mut self, forwarded: &mut Forwarded, now: Instant) -> bool {
        forwarded.bytes = 0;
        if forwarded.datagrams.is_empty() {
            return false;
        }
        let mut desk = Dispatch::new(
            &self.shared,
            &self.workers,
            &self.sockets,
            &mut self.table,
            &mut self.scratch.response,
        );
        let mut endpoint = self.shared.lock();
        for (meta, mut datagram) in forwarded.datagrams.drain(..) {
            desk.deliver(&mut endpoint, now, &meta, &mut datagram);
        }
        true
    }

    /// Moves every connection that was opened here to another socket, at once.
    fn rebind(&mut self, socket: SocketId, now: Instant) {
        for index in 0..self.table.entries.len() {
            let Some(entry) = self.table.get(index) else {
                continue;
            };
            let mut state = entry.shared.lock();
            if state.connection.side() == Side::Server {
                continue;
            }
            if let Err(error) = state.connection.rebind(now, LocalAddress::any(socket)) {
                tracing::debug!(%error, "a connection stays at the old socket");
            }
            state.begin_migration(None);
            drop(state);
            entry.shared.signals.life.notify_waiters();
            self.table.mark(index);
        }
    }

    /// Closes every connection if the endpoint is closing.
    fn close_if_asked(&mut self, now: Instant) {
        let Some((code, reason)) = self.shared.lock().closing.clone() else {
            return;
        };
        for index in 0..self.table.entries.len() {
            let Some(entry) = self.table.get(index) else {
                continue;
            };
            let wakeups = &mut self.scratch.wakeups;
            entry.shared.lock().close(now, code, &reason, wakeups);
            wakeups.deliver(&entry.shared.signals);
            self.table.mark(index);
        }
    }

    /// Reads one batch and hands its datagrams to their connections.
    fn receive(&mut self, cx: &mut Context<'_>, now: Instant) -> bool {
        self.receive_errors.go_on();
        let socket = match self.sockets.poll_recv(cx, &mut self.received) {
            Poll::Pending => return false,
            Poll::Ready(Ok(socket)) => {
                self.receive_errors.succeeded();
                socket
            }
            Poll::Ready(Err(error)) => {
                tracing::debug!(%error, "receiving failed");
                count(&self.shared.counters.receive_errors, 1);
                self.receive_errors.failed();
                // During a pause the timer wakes us, not the socket.
                return !self.receive_errors.want_pause();
            }
        };
        let mut batch = std::mem::take(&mut self.received);
        let part = ANSWERED_TOGETHER.max(batch.len().div_ceil(2));
        let mut datagrams = batch.datagrams().peekable();
        while datagrams.peek().is_some() {
            let some = datagrams.by_ref().take(part);
            self.deliver(now, socket, some);
            if datagrams.peek().is_some() {
                self.answer(cx, now);
            }
        }
        drop(datagrams);
        self.received = batch;
        true
    }

    /// Hands datagrams of one socket to their connections.
    fn deliver<'a>(
        &mut self,
        now: Instant,
        socket: SocketId,
        datagrams: impl Iterator<Item = (DatagramMeta, &'a mut [u8])>,
    ) {
        let mut delivered = 0;
        let mut desk = Dispatch::new(
            &self.shared,
            &self.workers,
            &self.sockets,
            &mut self.table,
            &mut self.scratch.response,
        );
        let mut endpoint = self.shared.lock();
        for (mut meta, datagram) in datagrams {
            delivered += 1;
            meta.socket = socket;
            desk.deliver(&mut endpoint, now, &meta, datagram);
        }
        drop(endpoint);
        count(&self.shared.counters.datagrams_received, delivered);
    }

    /// Applications inside the worker hear of what has come so far, and what they say to it leaves.
    fn answer(&mut self, cx: &mut Context<'_>, now: Instant) {
        let mut answered = false;
        for at in 0..self.table.unsettled.len() {
            let index = self.table.unsettled[at];
            if let Some(entry) = self.table.get(index)
                && entry.unsettled
                && entry.shared.hosts()
            {
                // Acknowledgements alone can wait for the rest of the batch.
                answered |= tell(now, &entry.shared, &mut self.scratch.wakeups);
            }
        }
        if answered {
            self.transmit(cx);
        }
    }

    /// Runs the timers that are due.
    fn expire(&mut self, now: Instant) -> bool {
        if self.outgoing.is_blocked() {
            // What they would send can't leave.
            return false;
        }
        let mut busy = false;
        while let Some(index) = self.table.timers.pop_expired(now) {
            if let Some(entry) = self.table.get(index) {
                let wakeups = &mut self.scratch.wakeups;
                entry.shared.lock().handle_timeout(now, wakeups);
                self.table.mark(index);
                busy = true;
            }
        }
        busy
    }

    /// Lets connections send, one batch each in turn.
    fn transmit(&mut self, cx: &mut Context<'_>) -> bool {
        let was_blocked = self.outgoing.is_blocked();
        if self.flush(cx).is_pending() {
            return false;
        }
        let mut busy = was_blocked;
        for _ in 0..SENDS_PER_TURN {
            let Some(index) = self.table.ready.pop_front() else {
                break;
            };
            busy = true;
            if self.serve(index) {
                self.table.ready.push_back(index);
            } else if let Some(entry) = self.table.get_mut(index) {
                entry.ready = false;
            }
            if self.flush(cx).is_pending() {
                break;
            }
        }
        busy
    }

    fn flush(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let flushed = self
            .outgoing
            .poll_flush(cx, &self.sockets, &self.shared.counters);
        if let Some((socket, kind)) = self.outgoing.take_unreachable() {
            self.tell_unreachable(socket, kind);
        }
        if let Some(size) = self.outgoing.take_refused_size() {
            self.tell_too_large(size);
        }
        flushed
    }

    /// The system could not send a datagram of the last batch from this socket.
    fn tell_unreachable(&self, socket: SocketId, kind: io::ErrorKind) {
        let Some(sender) = self.sender else {
            return;
        };
        let entry = self.table.get(sender.index());
        if let Some(entry) = entry.filter(|entry| entry.handle == sender) {
            entry.shared.note_unreachable(socket, kind);
        }
    }

    /// The interface refused a datagram of the last batch for its size.
    fn tell_too_large(&mut self, size: usize) {
        let Some(sender) = self.sender else {
            return;
        };
        let entry = self.table.get(sender.index());
        if let Some(entry) = entry.filter(|entry| entry.handle == sender) {
            let now = self.shared.clock.now();
            let mut state = entry.shared.lock();
            state.connection.on_datagram_too_large(now, size);
            drop(state);
            self.table.mark(sender.index());
        }
    }

    /// Takes one batch from connection `index`. False if it had nothing to send; then it is to be settled.
    fn serve(&mut self, index: usize) -> bool {
        let Some(entry) = self.table.get(index) else {
            return false;
        };
        let now = self.shared.clock.now();
        let mut state = entry.shared.lock();
        let connection = &mut state.connection;
        self.sender = Some(entry.handle);
        let sent = self.outgoing.fill(&self.sockets, |segments, buffer| {
            connection.poll_transmit(now, segments, buffer)
        });
        if !sent {
            state.on_sent_all(now);
        }
        drop(state);
        if !sent {
            self.table.unsettle(index);
        }
        sent
    }

    /// Tells what happened on connections that had input. All the rest can wait until they have sent what
    /// they have to say to it, but for what the end of a handshake entails.
    fn tell_all(&mut self, now: Instant) {
        for at in 0..self.table.unsettled.len() {
            let index = self.table.unsettled[at];
            let Some(entry) = self.table.get(index) else {
                continue;
            };
            if entry.handshaking {
                let shared = Arc::clone(&entry.shared);
                self.settle(now, index, &shared);
            } else if entry.unsettled {
                tell(now, &entry.shared, &mut self.scratch.wakeups);
            }
        }
    }

    /// Settles connections that had input, or sent something, since that was done last.
    fn settle_all(&mut self, now: Instant) {
        let mut unsettled = std::mem::take(&mut self.table.unsettled);
        for index in unsettled.drain(..) {
            if let Some(entry) = self.table.get(index)
                && entry.unsettled
            {
                let shared = Arc::clone(&entry.shared);
                self.settle(now, index, &shared);
            }
        }
        // Settling may unsettle nothing, so the list is still empty.
        self.table.unsettled = unsettled;
    }

    /// Takes events and the next timeout of connection `index`, and acts on them.
    fn settle(&mut self, now: Instant, index: usize, shared: &Arc<Shared>) {
        let Scratch {
            wakeups, events, ..
        } = &mut self.scratch;
        let timeout = {
            let mut state = shared.lock();
            state.drain_events(now, wakeups);
            while let Some(event) = state.connection.poll_endpoint_event() {
                events.push(event);
            }
            state.next_timeout()
        };
        self.table.timers.set(index, timeout);
        let usable = wakeups.usable;
        wakeups.deliver(&shared.signals);
        let Some(entry) = self.table.get_mut(index) else {
            return;
        };
        entry.unsettled = false;
        let handle = entry.handle;
        let established = usable && std::mem::take(&mut entry.handshaking);
        if !established && events.is_empty() {
            return;
        }
        let gone = events.contains(&EndpointEvent::Drained);
        let failed = gone && std::mem::take(&mut entry.handshaking);
        if failed {
            let failures = &self.shared.counters.handshakes_failed;
            failures.fetch_add(1, Ordering::Relaxed);
        }
        let mut endpoint = self.shared.lock();
        if established || failed {
            endpoint.handshakes -= 1;
        }
        let mut refused = None;
        if established {
            debug_assert_eq!(shared.lock().connection.side(), Side::Server);
            let connection = Connection::new(Handle::new(Arc::clone(shared)));
            if endpoint.closing.is_none() && !endpoint.released {
                endpoint.accept.push_back(connection);
                self.shared.tell_acceptors();
            } else {
                refused = Some(connection);
            }
        }
        for event in events.drain(..) {
            endpoint.core.handle_event(handle, event);
        }
        if gone {
            self.table.entries[index] = None;
            self.table.timers.set(index, None);
            endpoint.connections -= 1;
            if endpoint.connections == 0 {
                self.shared.signals.idle.notify_waiters();
            }
        }
        drop(endpoint);
        // Closes it, which must not happen under the endpoint's lock.
        drop(refused);
    }

    /// True once nobody needs the worker any more.
    fn is_finished(&self) -> bool {
        let endpoint = self.shared.lock();
        endpoint.released && endpoint.connections == 0
    }

    /// Sets the timer; true if it has expired already.
    fn arm(&mut self, cx: &mut Context<'_>) -> bool {
        let mut next = self.table.timers.next();
        if self.outgoing.is_blocked() {
            // The socket wakes us; timers are looked at afterwards.
            next = None;
        }
        if self.receive_errors.want_pause() {
            let again = self.shared.clock.now() + PAUSE;
            next = Some(next.map_or(again, |next| next.min(again)));
        }
        let Some(next) = next else {
            return false;
        };
        if next <= self.shared.clock.now() {
            return true;
        }
        // A timer that fires too early costs less than setting it anew for every packet.
        if self.armed.is_none_or(|armed| next < armed) {
            self.sleep.as_mut().reset(self.shared.clock.tokio(next));
            self.armed = Some(next);
        }
        let fired = self.sleep.as_mut().poll(cx).is_ready();
        if fired {
            self.armed = None;
        }
        fired
    }
}

/// Tells what happened on a connection; true if it has stream data to send, perhaps in answer to that.
fn tell(now: Instant, shared: &Shared, wakeups: &mut Wakeups) -> bool {
    let mut state = shared.lock();
    state.drain_events(now, wakeups);
    let has_data = state.connection.has_stream_data();
    drop(state);
    wakeups.deliver(&shared.signals);
    has_data
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
                Turn::GiveWay => break,
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
    /// The runtime is shutting down, or everything is over: nobody may wait for us in vain.
    fn drop(&mut self) {
        let now = self.shared.clock.now();
        let waiting = {
            let mut endpoint = self.shared.lock();
            endpoint.dead = true;
            endpoint.connections = 0;
            std::mem::take(&mut endpoint.accept)
        };
        drop(waiting);
        self.shared.inbox.close();
        self.shared.inbox.take(&mut self.news);
        let added = self.news.added.drain(..).map(|(_, shared)| shared);
        let known = self
            .table
            .entries
            .drain(..)
            .flatten()
            .map(|entry| entry.shared);
        for shared in known.chain(added) {
            let wakeups = &mut self.scratch.wakeups;
            shared.lock().close(now, 0, b"", wakeups);
            wakeups.deliver(&shared.signals);
        }
        self.shared.tell_acceptors();
        self.shared.signals.idle.notify_waiters();
    }
}
