//! The task behind an endpoint: owns the socket, moves datagrams, timers and events.
//!
//! A turn takes the application's news, one batch of received datagrams and the expired timers, and
//! lets connections send, each a batch in turn. After some turns it gives way to other tasks. A
//! worker that finds nothing to do sleeps until the socket, a timer or the application wakes it.

use std::collections::VecDeque;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use swiftwater_quic::{ConnectionHandle, EndpointEvent, Routed};
use swiftwater_units::{Instant, Side};
use tokio::time::Sleep;

use crate::connection::Connection;
use crate::endpoint_shared::{EndpointShared, count};
use crate::inbox::News;
use crate::outgoing::Outgoing;
use crate::receive_errors::{PAUSE, ReceiveErrors};
use crate::shared::{Handle, Shared, Wakeups};
use crate::socket::{Parcel, RecvBatch, Socket};
use crate::timers::TimerQueue;

/// Turns before other tasks get a chance.
const TURNS: usize = 4;
/// Batches sent in a turn before the socket is read again.
const SENDS_PER_TURN: usize = 16;
/// Room for answers of the endpoint itself.
const RESPONSE_ROOM: usize = 1500;

/// The task of one endpoint.
pub(crate) struct Worker {
    shared: Arc<EndpointShared>,
    socket: Socket,
    received: RecvBatch,
    receive_errors: ReceiveErrors,
    outgoing: Outgoing,
    table: Table,
    sleep: Pin<Box<Sleep>>,
    /// What `sleep` is set to; `None` once it has fired.
    armed: Option<Instant>,
    news: News,
    scratch: Scratch,
}

/// The connections, and which of them want what.
#[derive(Default)]
struct Table {
    entries: Vec<Option<Entry>>,
    timers: TimerQueue,
    /// May have something to send.
    ready: VecDeque<usize>,
    /// Had input since their events were last taken.
    unsettled: Vec<usize>,
}

struct Entry {
    handle: ConnectionHandle,
    shared: Arc<Shared>,
    /// In `ready`.
    ready: bool,
    /// In `unsettled`.
    unsettled: bool,
    /// An incoming connection whose handshake is in progress.
    handshaking: bool,
}

/// Reused between calls, to allocate nothing.
#[derive(Default)]
struct Scratch {
    wakeups: Wakeups,
    events: Vec<EndpointEvent>,
}

impl Table {
    fn insert(&mut self, handle: ConnectionHandle, shared: Arc<Shared>, handshaking: bool) {
        let index = handle.index();
        if self.entries.len() <= index {
            self.entries.resize_with(index + 1, || None);
        }
        self.entries[index] = Some(Entry {
            handle,
            shared,
            ready: false,
            unsettled: false,
            handshaking,
        });
        self.mark(index);
    }

    fn get(&self, index: usize) -> Option<&Entry> {
        self.entries.get(index)?.as_ref()
    }

    fn get_mut(&mut self, index: usize) -> Option<&mut Entry> {
        self.entries.get_mut(index)?.as_mut()
    }

    /// Connection `index` had input: it may want to send and have events.
    fn mark(&mut self, index: usize) {
        let Some(Some(entry)) = self.entries.get_mut(index) else {
            return;
        };
        if !std::mem::replace(&mut entry.ready, true) {
            self.ready.push_back(index);
        }
        if !std::mem::replace(&mut entry.unsettled, true) {
            self.unsettled.push(index);
        }
    }
}

impl Worker {
    pub(crate) fn new(shared: Arc<EndpointShared>, socket: Socket) -> Self {
        Self {
            sleep: Box::pin(tokio::time::sleep_until(shared.clock.tokio(Instant::ZERO))),
            shared,
            socket,
            received: RecvBatch::new(),
            receive_errors: ReceiveErrors::default(),
            outgoing: Outgoing::new(),
            table: Table::default(),
            armed: None,
            news: News::default(),
            scratch: Scratch::default(),
        }
    }

    /// One turn. True if anything was done.
    fn turn(&mut self, cx: &mut Context<'_>) -> bool {
        let now = self.shared.clock.now();
        let mut busy = self.take_news(now);
        busy |= self.receive(cx, now);
        busy |= self.expire(now);
        busy |= self.transmit(cx);
        busy |= self.settle_rest();
        busy
    }

    /// Takes what the application left in the inbox.
    fn take_news(&mut self, now: Instant) -> bool {
        let mut news = std::mem::take(&mut self.news);
        self.shared.inbox.take(&mut news);
        let mut busy = !news.added.is_empty() || !news.touched.is_empty();
        for (handle, shared) in news.added.drain(..) {
            self.table.insert(handle, shared, false);
        }
        for index in news.touched.drain(..) {
            if let Some(entry) = self.table.get(index) {
                entry.shared.clear_touched();
                self.table.mark(index);
            }
        }
        if std::mem::take(&mut news.state_changed) {
            busy = true;
            self.close_if_asked(now);
        }
        news.discarded.clear();
        self.news = news;
        busy
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
        match self.socket.poll_recv(cx, &mut self.received) {
            Poll::Pending => return false,
            Poll::Ready(Ok(())) => self.receive_errors.succeeded(),
            Poll::Ready(Err(error)) => {
                tracing::debug!(%error, "receiving failed");
                count(&self.shared.counters.receive_errors, 1);
                self.receive_errors.failed();
                // During a pause the timer wakes us, not the socket.
                return !self.receive_errors.want_pause();
            }
        }
        let mut datagrams = 0;
        let mut response = [0; RESPONSE_ROOM];
        let mut endpoint = self.shared.lock();
        for (meta, datagram) in self.received.datagrams() {
            datagrams += 1;
            let full = endpoint.accept.len() + endpoint.handshakes >= endpoint.backlog;
            endpoint.core.set_refusing(full);
            match endpoint.core.route(now, &meta, datagram, &mut response) {
                Routed::Connection(handle) => {
                    let index = handle.index();
                    if let Some(entry) = self.table.get(index) {
                        entry
                            .shared
                            .lock()
                            .connection
                            .handle_datagram(now, &meta, datagram);
                        self.table.mark(index);
                    }
                }
                Routed::NewConnection {
                    handle,
                    mut connection,
                } => {
                    endpoint.connections += 1;
                    endpoint.handshakes += 1;
                    connection.handle_datagram(now, &meta, datagram);
                    let shared = Shared::new(handle.index(), connection, Arc::clone(&self.shared));
                    self.table.insert(handle, shared, true);
                }
                Routed::Response(transmit) => {
                    let parcel = Parcel {
                        destination: transmit.destination,
                        source_ip: transmit.source_ip,
                        ecn: transmit.ecn,
                        contents: &response[..transmit.size.min(RESPONSE_ROOM)],
                        segment_size: None,
                    };
                    // Nobody relies on these; a full socket drops them.
                    match self.socket.try_send(&parcel) {
                        Ok(()) => count(&self.shared.counters.datagrams_sent, 1),
                        Err(_) => count(&self.shared.counters.send_errors, 1),
                    }
                }
                _ => {}
            }
        }
        drop(endpoint);
        count(&self.shared.counters.datagrams_received, datagrams);
        true
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
                entry.shared.lock().connection.handle_timeout(now);
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
        self.outgoing
            .poll_flush(cx, &self.socket, &self.shared.counters)
    }

    /// Takes one batch from connection `index`, then its events. False if it had nothing to send.
    fn serve(&mut self, index: usize) -> bool {
        let Some(entry) = self.table.get(index) else {
            return false;
        };
        let now = self.shared.clock.now();
        let shared = Arc::clone(&entry.shared);
        let mut state = shared.lock();
        let connection = &mut state.connection;
        let sent = self.outgoing.fill(&self.socket, |segments, buffer| {
            connection.poll_transmit(now, segments, buffer)
        });
        drop(state);
        self.settle(index, &shared);
        sent
    }

    /// Takes the events of connections that had input but no chance to send.
    fn settle_rest(&mut self) -> bool {
        let mut unsettled = std::mem::take(&mut self.table.unsettled);
        for index in unsettled.drain(..) {
            if let Some(entry) = self.table.get(index)
                && entry.unsettled
            {
                let shared = Arc::clone(&entry.shared);
                self.settle(index, &shared);
            }
        }
        // Settling may unsettle nothing, so the list is still empty.
        self.table.unsettled = unsettled;
        !self.table.ready.is_empty() && !self.outgoing.is_blocked()
    }

    /// Takes events and the next timeout of connection `index`, and acts on them.
    fn settle(&mut self, index: usize, shared: &Arc<Shared>) {
        let Scratch { wakeups, events } = &mut self.scratch;
        let timeout = {
            let mut state = shared.lock();
            state.drain_events(wakeups);
            while let Some(event) = state.connection.poll_endpoint_event() {
                events.push(event);
            }
            state.connection.poll_timeout()
        };
        self.table.timers.set(index, timeout);
        let connected = wakeups.connected;
        wakeups.deliver(&shared.signals);
        let Some(entry) = self.table.get_mut(index) else {
            return;
        };
        entry.unsettled = false;
        let handle = entry.handle;
        let established = connected && std::mem::take(&mut entry.handshaking);
        if !established && events.is_empty() {
            return;
        }
        let gone = events.contains(&EndpointEvent::Drained);
        let failed = gone && std::mem::take(&mut entry.handshaking);
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
                self.shared.incoming.notify_waiters();
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
                self.shared.idle.notify_waiters();
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

impl Future for Worker {
    type Output = ();

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let worker = self.get_mut();
        count(&worker.shared.counters.wakeups, 1);
        for _ in 0..TURNS {
            if worker.turn(cx) {
                continue;
            }
            if worker.is_finished() {
                return Poll::Ready(());
            }
            if !worker.arm(cx) && worker.shared.inbox.park(cx.waker()) {
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
        self.shared.incoming.notify_waiters();
        self.shared.idle.notify_waiters();
    }
}
