//! The state of a connection under its lock: the protocol's connection, what the application has seen of it, and the
//! tasks that wait for its streams.

use std::io;
use std::sync::Arc;
use std::task::Waker;

use swiftwater_quic::{
    Connection, ConnectionError, Event, MigrateError, PathAddress, SocketId, StreamEvent, StreamMap,
};
use swiftwater_units::{Dir, Instant, StreamId};

use crate::application::Application;
use crate::connection_signals::Wakeups;
use crate::datagram_fates::DatagramFates;
use crate::idle_release::IdleRelease;
use crate::migration_request::MigrationRequest;
use crate::path_events::{PathEvent, PathRecord};

/// Tokens kept for the application; a server that sends more replaces the oldest.
const MAX_TOKENS: usize = 4;

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
pub(crate) struct SendHalf {
    pub(crate) writer: Option<Waker>,
    pub(crate) end_waiter: Option<Waker>,
    pub(crate) end: Option<SendEnd>,
}

/// What the lock protects.
pub(crate) struct ConnectionState {
    pub(crate) connection: Box<Connection>,
    /// Sending halves held by the application.
    pub(crate) senders: StreamMap<SendHalf>,
    /// Tasks that wait to read.
    pub(crate) readers: StreamMap<Waker>,
    /// The task that waits for the handshake.
    pub(crate) connecting: Option<Waker>,
    pub(crate) connected: bool,
    pub(crate) confirmed: bool,
    pub(crate) closed: Option<Box<ConnectionError>>,
    /// Tokens for later connections that the application has not taken.
    pub(crate) tokens: Vec<Vec<u8>>,
    /// Fates of datagrams that the application has not read, once there were any.
    pub(crate) datagram_fates: Option<Box<DatagramFates>>,
    /// The moves that the application asked for, if it ever did.
    pub(crate) migration: Option<Box<MigrationRequest>>,
    /// The system's error when it last refused to send from the local address; cleared when it is reported.
    pub(crate) unreachable: Option<io::ErrorKind>,
    /// Readers of the events of paths, and paths that have ended, once there were any.
    pub(crate) path_record: Option<Box<PathRecord>>,
    /// What runs on the connection; it takes the events of streams and datagrams.
    application: Option<Arc<dyn Application>>,
    idle: IdleRelease,
}

impl ConnectionState {
    pub(crate) fn new(connection: Box<Connection>) -> Self {
        Self {
            connection,
            senders: StreamMap::default(),
            readers: StreamMap::default(),
            connecting: None,
            connected: false,
            confirmed: false,
            closed: None,
            tokens: Vec::new(),
            datagram_fates: None,
            migration: None,
            unreachable: None,
            path_record: None,
            application: None,
            idle: IdleRelease::default(),
        }
    }

    /// Lets `application` run on the connection. Events that it missed are delivered now.
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

    /// Nothing is left to be sent: an idle connection releases memory.
    pub(crate) fn on_sent_all(&mut self, now: Instant) {
        if self.idle.begins(now, self.connection.last_packet_at()) {
            self.connection.release_idle_memory();
            self.senders.shrink_to_fit();
            self.readers.shrink_to_fit();
        }
    }

    /// The next time at which the connection, or what runs on it, has something to do.
    pub(crate) fn next_timeout(&mut self) -> Option<Instant> {
        let application = self.application.as_ref();
        let wanted = application.and_then(|application| application.next_timeout());
        let rest = self.idle.due(self.connection.last_packet_at());
        [self.connection.poll_timeout(), wanted, rest]
            .into_iter()
            .flatten()
            .min()
    }

    /// Time passed.
    pub(crate) fn handle_timeout(&mut self, now: Instant, wakeups: &mut Wakeups) {
        self.idle.check(now, self.connection.last_packet_at());
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

    /// A request to migrate to `socket`, or with the whole endpoint; replaces the last one.
    pub(crate) fn begin_migration(&mut self, socket: Option<SocketId>) -> u64 {
        let migration = self.migration.get_or_insert_default();
        migration.begin(socket)
    }

    /// Takes the connection's events and collects the wake-ups that they lead to.
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
                    wakeups.state = true;
                    wakeups.usable = true;
                    wakeups.wakers.extend(self.connecting.take());
                }
                Event::Confirmed => {
                    self.confirmed = true;
                    wakeups.state = true;
                }
                Event::Stream(event) => self.stream_event(event, wakeups),
                Event::DatagramReceived => {
                    wakeups.datagram_received = true;
                    wakeups.readers_woken = true;
                }
                Event::DatagramsUnblocked => wakeups.datagram_room = true,
                Event::DatagramFate { key, fate } if self.application.is_none() => {
                    let fates = self.datagram_fates.get_or_insert_default();
                    fates.push(key, fate);
                    wakeups.datagram_fate = true;
                }
                Event::NewToken { token } => {
                    if self.tokens.len() >= MAX_TOKENS {
                        self.tokens.remove(0);
                    }
                    // Mostly there is one.
                    self.tokens.reserve_exact(1);
                    self.tokens.push(token);
                }
                Event::Migrated { address, .. } => {
                    wakeups.state |= self.migrated(address.local.socket, Ok(address));
                }
                Event::MigrationFailed { address, .. } => {
                    let failed = Err(MigrateError::Failed);
                    wakeups.state |= self.migrated(address.local.socket, failed);
                }
                Event::PathOpened { .. }
                | Event::PathAbandoned { .. }
                | Event::PathStatusChanged { .. }
                | Event::PathsAvailable => self.path_event(&event),
                Event::Closed { reason } => self.note_closed(reason, wakeups),
                _ => {}
            }
        }
    }

    fn path_event(&mut self, event: &Event) {
        let event = match *event {
            Event::PathOpened { path, address } => PathEvent::Opened { path, address },
            Event::PathAbandoned {
                path,
                error,
                by_peer,
            } => {
                let stats = self.connection.stats().paths;
                if let Some(stats) = stats.into_iter().find(|stats| stats.id == path) {
                    self.path_record.get_or_insert_default().keep(stats);
                }
                PathEvent::Abandoned {
                    path,
                    error,
                    by_peer,
                }
            }
            Event::PathStatusChanged { path, status } => PathEvent::StatusChanged { path, status },
            Event::PathsAvailable => PathEvent::Available,
            _ => return,
        };
        self.report_path_event(event);
    }

    /// Shows an event of a path to those who read them.
    pub(crate) fn report_path_event(&self, event: PathEvent) {
        if let Some(record) = &self.path_record {
            record.report(event);
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
        // Streams whose handle is gone have no entry.
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
        if let Some(record) = &mut self.path_record {
            record.close();
        }
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
