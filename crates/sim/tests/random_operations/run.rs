//! Carries a plan out and checks, after every event, what must always hold.

use std::cell::RefCell;
use std::rc::Rc;
use std::time::Duration;

use bytes::Bytes;
use swiftwater_quic::policy::{PathPreference, PathStatus};
use swiftwater_quic::{
    Connection, ConnectionError, ConnectionStats, Expiry, LocalAddress, MigrateError, PathAddress,
    ReadError, SendDatagramError, WriteError,
};
use swiftwater_sim::{Direction, Pair, TapDatagram};
use swiftwater_units::{Bandwidth, Dir, Instant, PathId, Side};

use super::faults::{Dice, Faults, negotiates_version};
use super::model::Model;
use super::plan::{Early, Op, Plan, Settings};
use super::setup::{self, link};

/// What an expired stream is reset with.
pub(super) const EXPIRED: u64 = 77;
pub(crate) const SIDES: [Side; 2] = [Side::Client, Side::Server];
pub(super) const DIRS: [Dir; 2] = [Dir::Bi, Dir::Uni];

/// What two runs of a plan must share.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct Trace {
    digest: u64,
    lines: u64,
    end: Instant,
    outcomes: Vec<String>,
}

/// Runs `plan`; panics if something is wrong.
pub(crate) fn run(plan: &Plan) -> Trace {
    let mut world = World::new(plan);
    for op in &plan.ops {
        world.perform(op);
        world.settle();
    }
    world.heal();
    world.close();
    let log = world.pair.log().expect("a log was asked for");
    Trace {
        digest: log.digest(),
        lines: log.len(),
        end: world.pair.now(),
        outcomes: world.outcomes,
    }
}

/// State of one side.
#[derive(Debug, Default)]
pub(super) struct Watch {
    pub(super) events_seen: usize,
    pub(super) confirmed: bool,
    /// The application closed.
    pub(super) closed: bool,
    pub(super) reason: Option<ConnectionError>,
    /// As last seen.
    pub(super) totals: ConnectionStats,
    pub(super) packets_received: u64,
    pub(super) last_heard: Instant,
    pub(super) in_flight: u64,
    pub(super) window: u64,
    /// Probe timeouts when the window was last respected.
    pub(super) ptos_within_window: u64,
    /// Streams of which an event said that they can be read or written, and kinds to accept.
    pub(super) readable: Vec<swiftwater_units::StreamId>,
    pub(super) writable: Vec<swiftwater_units::StreamId>,
    pub(super) acceptable: [bool; 2],
}

/// A case that is being run.
pub(super) struct World {
    pub(super) pair: Pair,
    pub(super) plan: Plan,
    pub(super) model: Model,
    pub(super) faults: [Rc<RefCell<Faults>>; 2],
    pub(super) watches: [Watch; 2],
    pub(super) dice: Dice,
    /// Addresses that the client had.
    pub(super) addresses: u16,
    /// The peer's address changed or seemed to: windows restart.
    pub(super) moved: bool,
    /// An application abandoned a path while the other end could abandon the rest.
    pub(super) abandoned: bool,
    /// Where the client can be: at home, away.
    locals: [LocalAddress; 2],
    /// The client got a preferred address.
    pub(super) sent_away: bool,
    pub(super) steps: u64,
    pub(super) injected: u64,
    pub(super) outcomes: Vec<String>,
}

impl World {
    fn new(plan: &Plan) -> Self {
        let mut pair = setup::build(plan);
        let faults = [0, 1].map(|nth| Faults::new(&plan.wires[nth], plan.seed ^ nth as u64));
        let local = pair.attach(Side::Client, setup::second_address(), link(&plan.wires[0]));
        let second = local.expect("a free address");
        let mut ways = vec![
            (pair.link(Direction::ToServer), Direction::ToServer),
            (second.uplink, Direction::ToServer),
            (pair.link(Direction::ToClient), Direction::ToClient),
        ];
        if plan.preferred {
            let address = setup::preferred_address();
            let there = pair.attach(Side::Server, address, link(&plan.wires[1]));
            let uplink = there.expect("a free address").uplink;
            ways.push((uplink, Direction::ToClient));
        }
        for (way, direction) in ways {
            let faults = Rc::clone(&faults[direction as usize]);
            let tap =
                move |datagram: &mut TapDatagram<'_>| faults.borrow_mut().on_datagram(datagram);
            pair.network().tap(way, tap);
        }
        pair.start().expect("a connection can be started");
        let home = pair.client().path_address().local;
        Self {
            pair,
            locals: [home, second.local],
            plan: plan.clone(),
            model: Model::default(),
            faults,
            watches: Default::default(),
            dice: Dice::new(plan.seed.rotate_left(17)),
            addresses: 0,
            moved: false,
            abandoned: false,
            sent_away: false,
            steps: 0,
            injected: 0,
            outcomes: Vec::new(),
        }
    }

    pub(super) fn watch(&mut self, side: Side) -> &mut Watch {
        &mut self.watches[side as usize]
    }

    /// A side's connection, if it is there and open.
    pub(super) fn open_connection(&mut self, side: Side) -> Option<&mut Connection> {
        let connection = self.pair.connection(side)?;
        (!connection.is_closed()).then_some(connection)
    }

    /// Lets everything happen that happens now.
    pub(super) fn settle(&mut self) {
        let now = self.pair.now();
        self.pair.network().run_until(now);
        self.check();
    }

    pub(super) fn step_until(&mut self, limit: Instant) -> bool {
        let stepped = self.pair.network().step_until(limit);
        self.steps += u64::from(stepped);
        self.check();
        stepped
    }

    fn perform(&mut self, op: &Op) {
        match *op {
            Op::Advance(millis) => {
                let limit = self.pair.now() + Duration::from_millis(millis);
                while self.step_until(limit) {}
            }
            Op::Step(steps) => {
                let limit = self.pair.now() + Duration::from_secs(60);
                for _ in 0..steps {
                    if !self.step_until(limit) {
                        break;
                    }
                }
            }
            Op::DropNext(to, n) => self.faults[to as usize].borrow_mut().drop_next += n,
            Op::CorruptNext(to, n) => self.faults[to as usize].borrow_mut().corrupt_next += n,
            Op::Shrink(to, size) => {
                let searches = |end: &Settings| end.search_up_to.is_some();
                if self.plan.ends.iter().all(searches) {
                    self.faults[to as usize].borrow_mut().carries = size;
                }
            }
            Op::Rebind { ip } => self.rebind(ip),
            Op::Migrate { away, at_once } => self.migrate(away, at_once),
            Op::OpenPath { away } => self.open_path(away),
            Op::AbandonPath(side, nth) => self.abandon_path(side, nth),
            Op::PathStatus(side, nth, backup) => self.set_path_status(side, nth, backup),
            Op::Replay {
                to,
                index,
                damaged,
                stranger,
            } => self.replay(to, index, damaged, stranger),
            Op::Garbage {
                to,
                index,
                keep,
                len,
            } => self.garbage(to, index, keep, len),
            _ => self.perform_local(op),
        }
    }

    /// Operations on one stream, and others on one connection.
    fn perform_local(&mut self, op: &Op) {
        match *op {
            Op::Open(side, dir) => {
                if let Some(id) = self.open_connection(side).and_then(|it| it.open(dir)) {
                    self.model.opened(side, id);
                }
            }
            Op::Accept(side, dir) => self.accept(side, dir),
            Op::Write(side, stream, len) => {
                if let Some(id) = self.model.stream(side, stream) {
                    self.write(side, id, len);
                }
            }
            Op::Finish(side, stream) => {
                if let Some(id) = self.model.stream(side, stream)
                    && let Some(connection) = self.open_connection(side)
                {
                    let outcome = connection.send_stream(id).finish();
                    self.model.did_finish((id, side), &outcome);
                }
            }
            Op::Reset(side, stream, code) => {
                if let Some(id) = self.model.stream(side, stream)
                    && let Some(connection) = self.open_connection(side)
                {
                    let outcome = connection.send_stream(id).reset(code);
                    self.model.did_reset((id, side), code, 0, &outcome);
                }
            }
            Op::ResetAt(side, stream, code, reliable) => {
                if let Some(id) = self.model.stream(side, stream)
                    && let Some(connection) = self.open_connection(side)
                {
                    let outcome = connection.send_stream(id).reset_at(code, reliable);
                    self.model.did_reset((id, side), code, reliable, &outcome);
                }
            }
            Op::Stop(side, stream, code) => {
                if let Some(id) = self.model.stream(side, stream)
                    && let Some(connection) = self.open_connection(side)
                {
                    let outcome = connection.recv_stream(id).stop(code);
                    self.model.did_stop((id, !side), code, &outcome);
                }
            }
            Op::Priority(side, stream, priority) => {
                if let Some(id) = self.model.stream(side, stream)
                    && let Some(connection) = self.open_connection(side)
                {
                    let _ = connection.send_stream(id).set_priority(priority);
                }
            }
            Op::Deadline(side, stream, millis) => {
                let deadline = self.pair.now() + Duration::from_millis(millis);
                if let Some(id) = self.model.stream(side, stream)
                    && let Some(connection) = self.open_connection(side)
                {
                    let _ = connection.send_stream(id).set_deadline(Some(deadline));
                }
            }
            Op::Expire(side, stream, millis, reliable) => {
                let at = self.pair.now() + Duration::from_millis(millis);
                let expiry = Expiry {
                    at,
                    code: EXPIRED,
                    reliable_size: reliable,
                };
                if let Some(id) = self.model.stream(side, stream)
                    && let Some(connection) = self.open_connection(side)
                    && connection.send_stream(id).set_expiry(Some(expiry)).is_ok()
                {
                    self.model.will_expire((id, side), reliable);
                }
            }
            Op::Read(side, stream, len) => {
                if let Some(id) = self.model.stream(side, stream) {
                    self.read(side, id, len);
                }
            }
            _ => self.perform_on_connection(op),
        }
    }

    /// Operations that are about no stream.
    fn perform_on_connection(&mut self, op: &Op) {
        match *op {
            Op::SendDatagram(side, len) => self.send_datagram(side, len),
            Op::ReadDatagrams(side) => self.read_datagrams(side),
            Op::UpdateKeys(side) => {
                if let Some(connection) = self.pair.connection(side) {
                    connection.update_keys();
                }
            }
            Op::Rotate(side) => {
                if let Some(connection) = self.pair.connection(side) {
                    connection.rotate_connection_ids();
                }
            }
            Op::Ping(side) => {
                if let Some(connection) = self.pair.connection(side) {
                    connection.ping();
                }
            }
            Op::ReceiveRate(side, kbps) => {
                let now = self.pair.now();
                if let Some(connection) = self.pair.connection(side) {
                    connection.set_receive_rate(now, kbps.map(Bandwidth::from_kbps));
                }
            }
            Op::Redundancy(side, percent) => self.change_redundancy(side, percent),
            Op::Close(side) => self.close_side(side),
            _ => unreachable!("an operation of the network"),
        }
    }

    fn accept(&mut self, side: Side, dir: Dir) {
        if let Some(connection) = self.pair.connection(side)
            && let Some(id) = connection.accept(dir)
        {
            self.model.accepted(side, dir, id);
        }
    }

    pub(super) fn write(&mut self, side: Side, id: swiftwater_units::StreamId, len: usize) {
        let key = (id, side);
        let at = self.model.halves.get(&key).map_or(0, |half| half.written);
        let mut data = Vec::with_capacity(len);
        while data.len() < len {
            let chunk =
                Model::pattern(key).chunk(at + data.len() as u64, (len - data.len()) as u64);
            data.extend_from_slice(&chunk);
        }
        let reader = &self.plan.ends[!side as usize];
        let mut limit = reader.stream_window * reader.growth;
        if self.plan.early == Early::Lowered && side.is_client() {
            // What it had at the first visit.
            limit = limit.max(Settings::default().stream_window);
        }
        let Some(connection) = self.pair.connection(side) else {
            return;
        };
        let closed = connection.is_closed();
        let outcome = connection.send_stream(id).write(&data);
        if closed {
            let is_lost = matches!(outcome, Err(WriteError::ConnectionLost(_)));
            assert!(is_lost, "writing after the end: {outcome:?}");
            return;
        }
        self.model.wrote(key, len as u64, &outcome, limit);
    }

    /// Reads once; true if there may be more.
    pub(super) fn read(&mut self, side: Side, id: swiftwater_units::StreamId, len: usize) -> bool {
        let Some(connection) = self.pair.connection(side) else {
            return false;
        };
        let closed = connection.is_closed();
        let mut buffer = vec![0; len];
        let outcome = connection.recv_stream(id).read(&mut buffer);
        if closed && matches!(outcome, Err(ReadError::ConnectionLost(_))) {
            return false;
        }
        self.model.did_read((id, !side), &buffer, &outcome)
    }

    fn send_datagram(&mut self, side: Side, len: usize) {
        let content = self.model.next_datagram(side, len);
        let Some(connection) = self.open_connection(side) else {
            return;
        };
        let max = connection.max_datagram_size();
        match connection.send_datagram(Bytes::from(content)) {
            Ok(()) => {
                assert!(max.is_some_and(|max| len <= max));
                self.model.sent_datagram(side, len);
            }
            Err(SendDatagramError::Unsupported) => assert_eq!(max, None),
            Err(SendDatagramError::TooLarge { size, max: told }) => {
                assert_eq!((size, Some(told)), (len, max));
                assert!(len > told);
            }
            Err(SendDatagramError::Blocked) => {}
            Err(error) => panic!("sending a datagram failed: {error:?}"),
        }
    }

    pub(super) fn read_datagrams(&mut self, side: Side) {
        while let Some(content) = self
            .pair
            .connection(side)
            .and_then(Connection::recv_datagram)
        {
            self.model.received_datagram(side, &content);
        }
    }

    fn change_redundancy(&mut self, side: Side, percent: u32) {
        let now = self.pair.now();
        let settings = format!("beta={}", f64::from(percent) / 100.0);
        let recovery = self.plan.ends[side as usize].recovery;
        let is_bounded = recovery.starts_with("autorec");
        if let Some(connection) = self.open_connection(side) {
            let outcome = connection.configure_reinjector(now, &settings);
            assert_eq!(outcome.is_ok(), is_bounded, "{outcome:?}");
        }
    }

    pub(super) fn close_side(&mut self, side: Side) {
        let now = self.pair.now();
        if let Some(connection) = self.pair.connection(side) {
            connection.close(now, 7, b"enough");
            self.watch(side).closed = true;
        }
    }

    /// Before the handshake is confirmed a client must not move (RFC 9000, section 9), and a server
    /// that forbids it may ignore those that do.
    fn rebind(&mut self, ip: bool) {
        let is_allowed = self.plan.ends[Side::Server as usize].migration;
        if !is_allowed || !self.watches.iter().all(|watch| watch.confirmed) {
            return;
        }
        self.addresses += 1;
        let host = if ip { 100 + self.addresses as u8 } else { 1 };
        let address = ([198, 51, 100, host], 20_000 + self.addresses).into();
        self.pair
            .rebind(Side::Client, address)
            .expect("the address is free");
        self.moved = true;
    }

    /// The client moves on request.
    fn migrate(&mut self, away: bool, at_once: bool) {
        let to = self.locals[usize::from(away)];
        let now = self.pair.now();
        let confirmed = self.watches[Side::Client as usize].confirmed;
        let is_allowed = self.plan.ends[Side::Server as usize].migration;
        let client = self.pair.client();
        let is_there = client.path_address().local == to;
        let closed = client.is_closed();
        let outcome = if at_once {
            client.rebind(now, to)
        } else {
            client.migrate(now, to)
        };
        let is_fair = match &outcome {
            // Its first path may be over.
            _ if self.plan.has_several_paths() => true,
            Ok(()) => confirmed && !closed && !is_there,
            Err(MigrateError::NotConfirmed) => !confirmed,
            Err(MigrateError::Closed) => closed,
            Err(MigrateError::Disabled) => !is_allowed,
            Err(MigrateError::SameAddress) => is_there,
            Err(MigrateError::NoConnectionId) => true,
            Err(_) => false,
        };
        assert!(is_fair, "moving to {to:?}: {outcome:?}");
        if outcome.is_ok() {
            self.sent_away = true;
            self.moved |= at_once;
        }
    }

    fn open_path(&mut self, away: bool) {
        let now = self.pair.now();
        let client = self.pair.client();
        let address = PathAddress {
            local: self.locals[usize::from(away)],
            ..client.path_address()
        };
        if client.open_path(now, address).is_ok() {
            self.moved = true;
        }
    }

    fn nth_path(&mut self, side: Side, nth: usize) -> Option<PathId> {
        let paths: Vec<_> = self.open_connection(side)?.open_paths().collect();
        paths.get(nth % paths.len().max(1)).copied()
    }

    fn abandon_path(&mut self, side: Side, nth: usize) {
        let now = self.pair.now();
        if let Some(path) = self.nth_path(side, nth)
            && let Some(connection) = self.open_connection(side)
        {
            let is_abandoned = connection.abandon_path(now, path).is_ok();
            self.abandoned |= is_abandoned;
        }
    }

    fn set_path_status(&mut self, side: Side, nth: usize, backup: bool) {
        let status = if backup {
            PathStatus::Backup
        } else {
            PathStatus::Available
        };
        let preference = PathPreference {
            status,
            ..PathPreference::default()
        };
        if self.plan.has_several_paths()
            && let Some(path) = self.nth_path(side, nth)
            && let Some(connection) = self.open_connection(side)
        {
            connection.set_path_preference(path, preference);
        }
    }

    fn captured(&self, to: Direction, index: usize) -> Option<Vec<u8>> {
        let faults = self.faults[to as usize].borrow();
        let captured = &faults.captured;
        (!captured.is_empty()).then(|| captured[index % captured.len()].clone())
    }

    fn replay(&mut self, to: Direction, index: usize, damaged: bool, stranger: bool) {
        let Some(mut data) = self.captured(to, index) else {
            return;
        };
        if damaged {
            self.dice.damage(&mut data);
        }
        // An Initial packet from elsewhere would start another connection.
        let stranger = stranger && self.watches.iter().all(|watch| watch.confirmed);
        let from = stranger.then(|| ([203, 0, 113, 66], 6_666).into());
        self.moved |= stranger && to == Direction::ToServer;
        self.injected += 1;
        self.pair.inject(to, &data, from);
    }

    fn garbage(&mut self, to: Direction, index: usize, keep: usize, len: usize) {
        let mut data = self.captured(to, index).unwrap_or_default();
        data.truncate(if negotiates_version(&data) { 0 } else { keep });
        let missing = len.saturating_sub(data.len());
        data.extend((0..missing).map(|_| self.dice.roll() as u8));
        self.injected += 1;
        self.pair.inject(to, &data, None);
    }
}
