//! What a worker and the application's handles share of one connection.
//!
//! The lock is held for single calls, never across an await. Whoever changes the connection from
//! outside the worker says so with [`Shared::touch`]; whoever has to wait leaves a waker (streams)
//! or has asked a [`Notify`] for a ticket before it looked (everything else), so that no wake-up is
//! lost.

use std::io;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::task::Waker;
use std::time::Duration;

use swiftwater_quic::{
    Connection, ConnectionError, Event, MigrateError, PathAddress, SocketId, StreamEvent, StreamMap,
};
use swiftwater_units::{Dir, Instant, StreamId};
use tokio::sync::Notify;

use crate::application::Application;
use crate::endpoint_shared::EndpointShared;

/// One connection.
pub(crate) struct Shared {
    /// Place in the worker's table.
    index: usize,
    state: Mutex<State>,
    pub(crate) endpoint: Arc<EndpointShared>,
    pub(crate) signals: Signals,
    /// True while the worker has it on its list of touched connections.
    touched: AtomicBool,
    /// Something runs on the connection inside the worker.
    hosts: AtomicBool,
    /// Handles of the application: connection and streams.
    handles: AtomicUsize,
}

/// What tasks wait for, streams apart. A task that is woken looks for itself, so that what is rare
/// can share a signal.
#[derive(Default)]
pub(crate) struct Signals {
    /// A stage of the connection's life: connected, confirmed, moved elsewhere, unable to reach the peer,
    /// closed.
    pub(crate) life: Notify,
    opened: [Notify; 2],
    /// Made by who waits first: what changed before that, it sees.
    flow: OnceLock<Box<Flow>>,
}

/// What tasks wait for on few connections.
#[derive(Default)]
struct Flow {
    available: [Notify; 2],
    datagram_received: Notify,
    datagram_room: Notify,
}

impl Signals {
    /// The peer opened streams of this kind.
    pub(crate) fn opened(&self, dir: Dir) -> &Notify {
        &self.opened[dir as usize]
    }

    /// The peer permits more streams of this kind.
    pub(crate) fn available(&self, dir: Dir) -> &Notify {
        &self.flow.get_or_init(Box::default).available[dir as usize]
    }

    /// A datagram waits to be read.
    pub(crate) fn datagram_received(&self) -> &Notify {
        &self.flow.get_or_init(Box::default).datagram_received
    }

    /// There is room for another datagram.
    pub(crate) fn datagram_room(&self) -> &Notify {
        &self.flow.get_or_init(Box::default).datagram_room
    }

    /// Wakes all that wait for anything.
    fn notify_all(&self) {
        self.life.notify_waiters();
        self.opened.iter().for_each(Notify::notify_waiters);
        if let Some(flow) = self.flow.get() {
            flow.available.iter().for_each(Notify::notify_waiters);
            flow.datagram_received.notify_waiters();
            flow.datagram_room.notify_waiters();
        }
    }
}

/// How the sending of a stream ended.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum SendEnd {
    /// The peer has everything.
    Acknowledged,
    /// The peer stopped reading, with this code.
    Stopped(u64),
    /// The stream's time was over; the code is ours.
    Expired(u64),
}

/// A sending half that the application holds.
#[derive(Default)]
pub(crate) struct Sender {
    pub(crate) writer: Option<Waker>,
    pub(crate) end_waiter: Option<Waker>,
    pub(crate) end: Option<SendEnd>,
}

/// What the lock protects.
pub(crate) struct State {
    pub(crate) connection: Box<Connection>,
    /// Sending halves held by the application.
    pub(crate) senders: StreamMap<Sender>,
    /// Tasks that wait to read.
    pub(crate) readers: StreamMap<Waker>,
    /// The task that waits for the handshake.
    pub(crate) connecting: Option<Waker>,
    pub(crate) connected: bool,
    pub(crate) confirmed: bool,
    pub(crate) closed: Option<Box<ConnectionError>>,
    /// Tokens for later connections that the application has not taken.
    pub(crate) tokens: Vec<Vec<u8>>,
    /// The moves that the application asked for, if it ever did.
    pub(crate) migration: Option<Box<Migration>>,
    /// What the system said when it last refused to send from the local address; taken by whom it
    /// was told.
    pub(crate) unreachable: Option<io::ErrorKind>,
    /// What runs on the connection; it takes the events of streams and datagrams.
    application: Option<Arc<dyn Application>>,
    rest: Rest,
}

/// When a connection gives back the memory that only busy ones need.
#[derive(Default)]
struct Rest {
    /// When to look whether it is quiet.
    due: Option<Instant>,
    /// The last packet before it rested.
    rested_after: Option<Instant>,
    /// It rests as soon as nothing is left to be sent: sending needs some of that memory.
    is_wanted: bool,
}

impl Rest {
    /// When to look, if the last packet was at `active_at`. It is not put off for every packet: a look
    /// that comes too early costs less.
    fn due(&mut self, active_at: Instant) -> Option<Instant> {
        if self.rested_after == Some(active_at) {
            return None;
        }
        Some(*self.due.get_or_insert(active_at + QUIET))
    }

    /// Looks whether it is quiet, if it is time to.
    fn look(&mut self, now: Instant, active_at: Instant) {
        if self.due.is_some_and(|due| due <= now) {
            self.due = None;
            self.is_wanted = active_at + QUIET <= now;
        }
    }

    /// True if the connection rests now: it is wanted, and no packet was sent since.
    fn begins(&mut self, now: Instant, active_at: Instant) -> bool {
        let begins = std::mem::take(&mut self.is_wanted) && active_at + QUIET <= now;
        if begins {
            self.rested_after = Some(active_at);
        }
        begins
    }
}

/// The last move that the application asked for.
#[derive(Default)]
pub(crate) struct Migration {
    /// Moves asked for so far.
    pub(crate) asked: u64,
    /// The socket to move to, while that is not decided.
    pub(crate) to: Option<SocketId>,
    /// How it went.
    pub(crate) outcome: Option<Result<PathAddress, MigrateError>>,
}

impl Migration {
    fn begin(&mut self, socket: Option<SocketId>) -> u64 {
        self.asked += 1;
        self.to = socket;
        self.outcome = None;
        self.asked
    }

    /// A move to `socket` was decided; true if it is the one that was asked for.
    fn decide(&mut self, socket: SocketId, outcome: Result<PathAddress, MigrateError>) -> bool {
        let is_mine = self.to == Some(socket);
        if is_mine {
            self.to = None;
            self.outcome = Some(outcome);
        }
        is_mine
    }
}

/// After so long without a packet a connection rests. Longer than most round trips, so that few rest while
/// they wait for an answer, and waking ten times a second is still next to nothing; not longer, because
/// what connections hold until they rest leaves holes in the heap.
const QUIET: Duration = Duration::from_millis(100);

/// By how much timers of the runtime may be late: they fire on whole milliseconds.
const TIMER_GRANULARITY: Duration = Duration::from_millis(1);

/// Tokens kept for the application; a server that sends more replaces the oldest.
const MAX_TOKENS: usize = 4;

/// What came out of draining a connection's events, to be acted on without its lock.
#[derive(Default)]
pub(crate) struct Wakeups {
    wakers: Vec<Waker>,
    opened: [bool; 2],
    available: [bool; 2],
    datagram_received: bool,
    datagram_room: bool,
    /// A stage of the connection's life.
    life: bool,
    closed: bool,
    /// The application may have it: the handshake has just completed, or early data may flow.
    pub(crate) usable: bool,
    /// Tasks were told of something to read. Stays until it is taken.
    pub(crate) readers_woken: bool,
    /// Tasks were woken, or a connection's life went on, which some wait for. Stays until it is taken.
    pub(crate) tasks_woken: bool,
}

impl Wakeups {
    /// Wakes everybody and empties itself.
    pub(crate) fn deliver(&mut self, signals: &Signals) {
        self.tasks_woken |= self.life || self.closed || !self.wakers.is_empty();
        for waker in self.wakers.drain(..) {
            waker.wake();
        }
        for dir in Dir::ALL {
            if std::mem::take(&mut self.opened[dir as usize]) {
                signals.opened(dir).notify_waiters();
            }
        }
        let available = std::mem::take(&mut self.available);
        let received = std::mem::take(&mut self.datagram_received);
        let room = std::mem::take(&mut self.datagram_room);
        if let Some(flow) = signals.flow.get() {
            let [bi, uni] = &flow.available;
            let fired = [
                (available[0], bi),
                (available[1], uni),
                (received, &flow.datagram_received),
                (room, &flow.datagram_room),
            ];
            for (_, signal) in fired.into_iter().filter(|(fired, _)| *fired) {
                signal.notify_waiters();
            }
        }
        if std::mem::take(&mut self.life) {
            signals.life.notify_waiters();
        }
        if std::mem::take(&mut self.closed) {
            signals.notify_all();
        }
        self.usable = false;
    }
}

impl State {
    fn new(connection: Box<Connection>) -> Self {
        Self {
            connection,
            senders: StreamMap::default(),
            readers: StreamMap::default(),
            connecting: None,
            connected: false,
            confirmed: false,
            closed: None,
            tokens: Vec::new(),
            migration: None,
            unreachable: None,
            application: None,
            rest: Rest::default(),
        }
    }

    /// Lets `application` run on the connection. What it has missed is told now.
    pub(crate) fn host(
        &mut self,
        now: Instant,
        application: Arc<dyn Application>,
        wakeups: &mut Wakeups,
    ) {
        // There are no handles of connections on which nothing may be sent yet.
        let mut missed = vec![if self.connected {
            Event::Connected
        } else {
            Event::EarlyDataReady
        }];
        if self.confirmed {
            missed.push(Event::Confirmed);
        }
        let opened = Dir::ALL.map(|dir| Event::Stream(StreamEvent::Opened { dir }));
        missed.extend(opened);
        missed.push(Event::DatagramReceived);
        missed.extend(self.close_reason().map(|reason| Event::Closed { reason }));
        for event in missed {
            let wakers = &mut wakeups.wakers;
            application.on_event(now, &mut self.connection, &event, wakers);
        }
        self.application = Some(application);
    }

    /// Nothing is left to be sent: a quiet connection comes to rest.
    pub(crate) fn on_sent_all(&mut self, now: Instant) {
        if self.rest.begins(now, self.connection.last_packet_at()) {
            self.connection.release_idle_memory();
            self.senders.shrink_to_fit();
            self.readers.shrink_to_fit();
        }
    }

    /// The next time at which the connection, or what runs on it, has something to do.
    pub(crate) fn next_timeout(&mut self) -> Option<Instant> {
        let application = self.application.as_ref();
        let wanted = application.and_then(|application| application.next_timeout());
        let rest = self.rest.due(self.connection.last_packet_at());
        [self.connection.poll_timeout(), wanted, rest]
            .into_iter()
            .flatten()
            .min()
    }

    /// Time passed.
    pub(crate) fn handle_timeout(&mut self, now: Instant, wakeups: &mut Wakeups) {
        self.rest.look(now, self.connection.last_packet_at());
        self.connection.handle_timeout(now);
        if let Some(application) = &self.application
            && application.next_timeout().is_some_and(|at| at <= now)
        {
            application.on_timeout(now, &mut self.connection, &mut wakeups.wakers);
        }
    }

    /// Why the connection is closed, if it is.
    pub(crate) fn close_reason(&self) -> Option<ConnectionError> {
        self.closed.as_deref().cloned()
    }

    /// A wish to move to `socket`, or to wherever the endpoint goes; replaces the last one.
    pub(crate) fn begin_migration(&mut self, socket: Option<SocketId>) -> u64 {
        let migration = self.migration.get_or_insert_default();
        migration.begin(socket)
    }

    /// Takes the connection's events and notes whom they concern.
    pub(crate) fn drain_events(&mut self, now: Instant, wakeups: &mut Wakeups) {
        while let Some(event) = self.connection.poll_event() {
            if let Some(application) = &self.application {
                let wakers = &mut wakeups.wakers;
                let before = wakers.len();
                application.on_event(now, &mut self.connection, &event, wakers);
                wakeups.readers_woken |= wakers.len() > before;
            }
            match event {
                Event::EarlyDataReady => wakeups.usable = true,
                Event::Connected => {
                    self.connected = true;
                    wakeups.life = true;
                    wakeups.usable = true;
                    wakeups.wakers.extend(self.connecting.take());
                }
                Event::Confirmed => {
                    self.confirmed = true;
                    wakeups.life = true;
                }
                Event::Stream(event) => self.stream_event(event, wakeups),
                Event::DatagramReceived => {
                    wakeups.datagram_received = true;
                    wakeups.readers_woken = true;
                }
                Event::DatagramsUnblocked => wakeups.datagram_room = true,
                Event::NewToken { token } => {
                    if self.tokens.len() >= MAX_TOKENS {
                        self.tokens.remove(0);
                    }
                    // Mostly there is one.
                    self.tokens.reserve_exact(1);
                    self.tokens.push(token);
                }
                Event::Migrated { path } => {
                    wakeups.life |= self.migrated(path.local.socket, Ok(path));
                }
                Event::MigrationFailed { path } => {
                    let failed = Err(MigrateError::Failed);
                    wakeups.life |= self.migrated(path.local.socket, failed);
                }
                Event::Closed { reason } => self.note_closed(reason, wakeups),
                _ => {}
            }
        }
    }

    /// A move to `socket` was decided; true if it is the one that was asked for.
    fn migrated(&mut self, socket: SocketId, outcome: Result<PathAddress, MigrateError>) -> bool {
        let asked = self.migration.as_mut();
        asked.is_some_and(|migration| migration.decide(socket, outcome))
    }

    fn stream_event(&mut self, event: StreamEvent, wakeups: &mut Wakeups) {
        match event {
            StreamEvent::Opened { dir } => {
                wakeups.opened[dir as usize] = true;
                wakeups.readers_woken |= self.application.is_none();
            }
            StreamEvent::Available { dir } => wakeups.available[dir as usize] = true,
            StreamEvent::Readable { id } => {
                let reader = self.readers.remove(&id);
                wakeups.readers_woken |= reader.is_some();
                wakeups.wakers.extend(reader);
            }
            StreamEvent::Writable { id } => {
                let sender = self.senders.get_mut(&id);
                wakeups
                    .wakers
                    .extend(sender.and_then(|sender| sender.writer.take()));
            }
            StreamEvent::Finished { id } => self.end_sending(id, SendEnd::Acknowledged, wakeups),
            StreamEvent::Stopped { id, code } => {
                self.end_sending(id, SendEnd::Stopped(code), wakeups);
            }
            StreamEvent::Expired { id, code } => {
                self.end_sending(id, SendEnd::Expired(code), wakeups);
            }
            _ => {}
        }
    }

    fn end_sending(&mut self, id: StreamId, end: SendEnd, wakeups: &mut Wakeups) {
        // Streams whose handle is gone have no entry: nobody will ask.
        if let Some(sender) = self.senders.get_mut(&id) {
            sender.end.get_or_insert(end);
            wakeups.wakers.extend(sender.writer.take());
            wakeups.wakers.extend(sender.end_waiter.take());
        }
    }

    /// Closes from this end.
    pub(crate) fn close(&mut self, now: Instant, code: u64, reason: &[u8], wakeups: &mut Wakeups) {
        if self.closed.is_some() {
            return;
        }
        self.connection.close(now, code, reason);
        let reason = self.connection.close_reason().cloned();
        self.note_closed(
            reason.unwrap_or(ConnectionError::LocallyClosed { code }),
            wakeups,
        );
    }

    fn note_closed(&mut self, reason: ConnectionError, wakeups: &mut Wakeups) {
        self.closed.get_or_insert_with(|| Box::new(reason));
        wakeups.closed = true;
        wakeups.wakers.extend(self.connecting.take());
        wakeups
            .wakers
            .extend(self.readers.drain().map(|(_, waker)| waker));
        for sender in self.senders.values_mut() {
            wakeups.wakers.extend(sender.writer.take());
            wakeups.wakers.extend(sender.end_waiter.take());
        }
    }
}

/// Puts the waker of the running task into `slot`.
pub(crate) fn remember(slot: &mut Option<Waker>, waker: &Waker) {
    match slot {
        Some(old) => old.clone_from(waker),
        None => *slot = Some(waker.clone()),
    }
}

impl Shared {
    pub(crate) fn new(
        index: usize,
        mut connection: Box<Connection>,
        endpoint: Arc<EndpointShared>,
    ) -> Arc<Self> {
        connection.set_timer_granularity(endpoint.clock.now(), TIMER_GRANULARITY);
        Arc::new(Self {
            index,
            state: Mutex::new(State::new(connection)),
            endpoint,
            signals: Signals::default(),
            touched: AtomicBool::new(false),
            hosts: AtomicBool::new(false),
            handles: AtomicUsize::new(0),
        })
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, State> {
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

    /// Tells the worker that the application changed the connection. To be called after the change, and
    /// when its lock is free.
    pub(crate) fn touch(&self) {
        if !self.touched.swap(true, Ordering::AcqRel) {
            self.endpoint
                .inbox
                .post(|messages| messages.touched.push(self.index));
        }
    }

    /// The worker takes note: changes from now on are news again.
    pub(crate) fn clear_touched(&self) {
        self.touched.swap(false, Ordering::AcqRel);
    }

    /// The system could not reach the peer from `socket`. Matters if that is the one in use.
    pub(crate) fn note_unreachable(&self, socket: SocketId, kind: io::ErrorKind) {
        let mut state = self.lock();
        if state.connection.path_address().local.socket == socket {
            state.unreachable = Some(kind);
            drop(state);
            self.signals.life.notify_waiters();
        }
    }

    /// Closes from this end and tells everyone.
    pub(crate) fn close(&self, code: u64, reason: &[u8]) {
        let mut wakeups = Wakeups::default();
        let now = self.endpoint.clock.now();
        self.lock().close(now, code, reason, &mut wakeups);
        wakeups.deliver(&self.signals);
        self.touch();
    }

    /// Repeats `attempt` whenever `signal` fires, until it yields something.
    pub(crate) async fn wait_for<T>(
        &self,
        signal: &Notify,
        mut attempt: impl FnMut(&mut State) -> Option<T>,
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
pub(crate) struct Handle(Arc<Shared>);

impl Handle {
    pub(crate) fn new(shared: Arc<Shared>) -> Self {
        shared.handles.fetch_add(1, Ordering::Relaxed);
        Self(shared)
    }
}

impl Clone for Handle {
    fn clone(&self) -> Self {
        Self::new(Arc::clone(&self.0))
    }
}

impl std::ops::Deref for Handle {
    type Target = Shared;

    fn deref(&self) -> &Shared {
        &self.0
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        if self.0.handles.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.0.close(0, b"");
        }
    }
}
