//! The viewer: sends what its player requests, and passes on what arrives.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::time::Duration;

use swiftwater_media::streaming::divide_by_path;
use swiftwater_media::streaming::predictor::{PathEstimate, ServerReport};
use swiftwater_quic::policy::{ChunkExpectation, QoeSignal};
use swiftwater_quic::{
    ClientConfig, Connection, ConnectionHandle, Event, LocalAddress, StreamEvent,
};
use swiftwater_sim::apps::Sink;
use swiftwater_sim::{Application, HostContext};
use swiftwater_units::{Dir, Instant, PathId, StreamId};

use super::announced_shares::AnnouncedShares;
use super::buffer_levels::BufferLevels;
use super::migration::Migration;
use super::player::{Player, Wanted};
use super::wire::Request;

/// Timer of the start.
const START: u64 = 0;
/// Timer of the player.
const PLAYER: u64 = 1;
/// Timer of the end.
const STOP: u64 = 2;

/// Timer of migration.
const MIGRATION: u64 = 3;

/// Time between two checks whether the path is silent.
const MIGRATION_CHECK: Duration = Duration::from_millis(50);

/// Time between two hints about the player's state while a response arrives: the shortest interval between two reports
/// of a player. XLINK gives none.
const HINT_INTERVAL: Duration = Duration::from_millis(50);

/// Error code with which a response that is not wanted any more is refused.
const NOT_WANTED: u64 = 1;

/// Bytes received on each path.
type ByPath = BTreeMap<PathId, u64>;

/// A response under way.
#[derive(Debug)]
struct Pending {
    request: Request,
    sink: Sink,
    /// Bytes that were passed to the player.
    passed: u64,
    /// What the paths had received at the request.
    before: ByPath,
}

/// Watches with a player.
#[derive(Debug)]
pub(in crate::world) struct StreamingViewer {
    config: ClientConfig,
    remote: SocketAddr,
    start: Instant,
    stop: Option<Instant>,
    player: Player,
    handle: Option<ConnectionHandle>,
    connected: bool,
    pending: BTreeMap<StreamId, Pending>,
    /// Requests that wait for a stream.
    waiting: Vec<Wanted>,
    /// When the player's timer is set to.
    armed: Option<Instant>,
    /// When the transport was last told the player's state.
    hinted: Option<Instant>,
    levels: BufferLevels,
    shares: AnnouncedShares,
    migration: Option<Migration>,
    received: u64,
    broken: bool,
    closed: bool,
}

impl StreamingViewer {
    /// A viewer that connects to `remote` at `start`, when `player` has been started.
    pub(in crate::world) fn new(
        config: ClientConfig,
        remote: SocketAddr,
        start: Instant,
        player: Player,
    ) -> Self {
        Self {
            config,
            remote,
            start,
            stop: None,
            player,
            handle: None,
            connected: false,
            pending: BTreeMap::new(),
            waiting: Vec::new(),
            armed: None,
            hinted: None,
            levels: BufferLevels::default(),
            shares: AnnouncedShares::default(),
            migration: None,
            received: 0,
            broken: false,
            closed: false,
        }
    }

    /// Closes the connection at `stop`.
    #[must_use]
    pub(in crate::world) fn stop(mut self, stop: Option<Instant>) -> Self {
        self.stop = stop;
        self
    }

    /// Migrates between these local addresses, if there is more than one.
    #[must_use]
    pub(in crate::world) fn migrate(mut self, addresses: Vec<LocalAddress>) -> Self {
        self.migration = Migration::new(addresses);
        self
    }

    /// Bytes of responses that were received in order.
    pub(in crate::world) fn bytes(&self) -> u64 {
        self.received
    }

    /// False if a byte differed from the sent one.
    pub(in crate::world) fn is_intact(&self) -> bool {
        !self.broken
    }

    /// Whether the viewer has left.
    pub(in crate::world) fn is_over(&self) -> bool {
        self.closed
    }

    /// The player.
    pub(super) fn player(&self) -> &Player {
        &self.player
    }

    /// The play time that was buffered in the course of the session.
    pub(super) fn levels(&self) -> &BufferLevels {
        &self.levels
    }

    /// Announced shares of paths.
    pub(super) fn shares(&self) -> &AnnouncedShares {
        &self.shares
    }

    /// Lets the player decide, and does what it wants.
    fn drive(&mut self, host: &mut HostContext<'_>) {
        let now = host.now();
        self.player.on_timer(now);
        self.levels.on_level(now, self.player.buffered());
        // A request that takes the place of another has its number.
        while let Some(id) = self.player.poll_cancel() {
            self.cancel(host, id);
        }
        let mut expectation = None;
        if self.connected {
            while let Some(wanted) = self.player.poll_request(now) {
                expectation = wanted.expectation().or(expectation);
                self.waiting.push(wanted);
            }
        }
        while let Some(id) = self.player.poll_cancel() {
            self.cancel(host, id);
        }
        if self.player.is_finished() {
            return self.leave(host);
        }
        let requests = !self.waiting.is_empty();
        self.hint(host, expectation, requests);
        self.request(host);
        let timer = self.player.next_timer();
        if let Some(timer) = timer.filter(|timer| self.armed != Some(*timer)) {
            self.armed = Some(timer);
            host.set_timer(timer, PLAYER);
        }
    }

    /// Gives the transport the player's state: at a request, and from time to time.
    fn hint(
        &mut self,
        host: &mut HostContext<'_>,
        expectation: Option<ChunkExpectation>,
        at_once: bool,
    ) {
        let now = host.now();
        let recently = self.hinted.is_some_and(|last| now < last + HINT_INTERVAL);
        if recently && !at_once {
            return;
        }
        let Some(connection) = self.handle.and_then(|handle| host.connection(handle)) else {
            return;
        };
        self.hinted = Some(now);
        let signal = self.player.signal();
        connection.update_hints(now, |hints| {
            hints.player = signal;
            hints.expectation = expectation.or(hints.expectation);
        });
    }

    /// Sends the requests that wait, as far as the server permits.
    fn request(&mut self, host: &mut HostContext<'_>) {
        let now = host.now();
        let Some(connection) = self.handle.and_then(|handle| host.connection(handle)) else {
            return;
        };
        while !self.waiting.is_empty()
            && let Some(id) = connection.open(Dir::Bi)
        {
            let wanted = self.waiting.remove(0);
            if let Some(migration) = self.migration.as_mut().filter(|_| self.pending.is_empty()) {
                migration.restart(now);
            }
            let request = Request {
                id: wanted.id,
                bytes: wanted.bytes,
                first_frame: wanted.first_frame,
            };
            let mut stream = connection.send_stream(id);
            // The windows of a new stream have room for a request.
            let _ = stream.write(&request.encode());
            let _ = stream.finish();
            let mut sink = Sink::new(request.pattern());
            // A first read registers for events.
            let _ = sink.drain(connection, id);
            let pending = Pending {
                request,
                sink,
                passed: 0,
                before: received(connection),
            };
            self.pending.insert(id, pending);
        }
    }

    fn cancel(&mut self, host: &mut HostContext<'_>, id: u64) {
        self.waiting.retain(|wanted| wanted.id != id);
        let mut pending = self.pending.iter();
        let found = pending.find(|(_, pending)| pending.request.id == id);
        let Some(stream) = found.map(|(stream, _)| *stream) else {
            return;
        };
        self.pending.remove(&stream);
        if let Some(connection) = self.handle.and_then(|handle| host.connection(handle)) {
            // It may be complete by now.
            let _ = connection.recv_stream(stream).stop(NOT_WANTED);
        }
    }

    fn read(&mut self, host: &mut HostContext<'_>, id: StreamId) {
        let now = host.now();
        let connection = self.handle.and_then(|handle| host.connection(handle));
        let (Some(connection), Some(pending)) = (connection, self.pending.get_mut(&id)) else {
            return;
        };
        let result = pending.sink.drain(connection, id);
        let fresh = pending.sink.received() - pending.passed;
        pending.passed += fresh;
        self.received += fresh;
        self.broken |= !pending.sink.is_intact();
        self.player.on_data(now, pending.request.id, fresh);
        if let Some(migration) = self.migration.as_mut().filter(|_| fresh > 0) {
            migration.restart(now);
        }
        if pending.sink.is_finished() {
            self.broken |= pending.sink.received() != pending.request.bytes;
            let paths = divide_by_path(pending.passed, &pending.before, &received(connection));
            self.shares.on_complete(&paths);
            self.player.on_complete(now, pending.request.id, &paths);
        }
        if pending.sink.is_finished() || result.is_err() {
            self.pending.remove(&id);
        }
        self.drive(host);
    }

    /// Passes reports of the server's policies to the player.
    fn read_reports(&mut self, host: &mut HostContext<'_>) {
        let now = host.now();
        let Some(connection) = self.handle.and_then(|handle| host.connection(handle)) else {
            return;
        };
        while let Some(message) = connection.recv_feedback() {
            let Some(QoeSignal::Shares(shares)) = QoeSignal::decode(message.kind, &message.payload)
            else {
                continue;
            };
            let paths = shares.paths.iter().map(|share| PathEstimate {
                path: share.path,
                share: share.share,
                rate: share.rate,
                rtt: share.rtt,
            });
            let report = ServerReport {
                received: now,
                paths: paths.collect(),
            };
            self.shares.on_report(&report);
            self.player.on_server_report(&report);
        }
    }

    /// Migrates if the path is silent while data are awaited.
    fn check_path(&mut self, host: &mut HostContext<'_>) {
        let now = host.now();
        let Some(migration) = self.migration.as_mut() else {
            return;
        };
        host.set_timer(now + MIGRATION_CHECK, MIGRATION);
        if self.pending.is_empty() {
            return;
        }
        if let Some(connection) = self.handle.and_then(|handle| host.connection(handle)) {
            migration.check(now, connection);
        }
    }

    fn leave(&mut self, host: &mut HostContext<'_>) {
        let now = host.now();
        if self.closed {
            return;
        }
        self.closed = true;
        if let Some(connection) = self.handle.and_then(|handle| host.connection(handle)) {
            connection.close(now, 0, b"left");
        }
    }
}

/// Bytes received on each open path.
fn received(connection: &Connection) -> ByPath {
    let paths = connection.open_paths();
    let stats = paths.filter_map(|path| Some((path, connection.path_stats(path)?)));
    stats
        .map(|(path, stats)| (path, stats.received_bytes.get()))
        .collect()
}

impl Application for StreamingViewer {
    fn on_start(&mut self, host: &mut HostContext<'_>) {
        host.set_timer(host.now().max(self.start), START);
        if let Some(stop) = self.stop {
            host.set_timer(stop, STOP);
        }
    }

    fn on_event(&mut self, host: &mut HostContext<'_>, _: ConnectionHandle, event: Event) {
        self.read_reports(host);
        match event {
            Event::Connected => {
                self.connected = true;
                self.drive(host);
                self.check_path(host);
            }
            Event::Stream(StreamEvent::Available { dir: Dir::Bi }) => self.request(host),
            Event::Stream(StreamEvent::Readable { id }) => self.read(host, id),
            Event::Closed { .. } => self.closed = true,
            _ => {}
        }
    }

    fn on_timer(&mut self, host: &mut HostContext<'_>, token: u64) {
        match token {
            START => self.handle = host.connect_to_server(&self.config, self.remote),
            PLAYER if !self.closed => self.drive(host),
            MIGRATION if !self.closed => self.check_path(host),
            STOP => self.leave(host),
            _ => {}
        }
    }
}
