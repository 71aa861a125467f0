//! Carries a plan out and checks, after every event, what must always hold.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use swiftwater_congestion::{CubicConfig, NewRenoConfig};
use swiftwater_link::{Buffer, EcnThreshold, Jitter, LinkConfig};
use swiftwater_quic::wire::ErrorCode;
use swiftwater_quic::{
    Connection, ConnectionError, Event, PathStats, ReadError, RetryPolicy, SendDatagramError,
    StreamEvent, TransportConfig, WriteError,
};
use swiftwater_sim::{Direction, HostId, LogDetail, Pair};
use swiftwater_units::{Bandwidth, ByteCount, Dir, Instant, PacketCount, Side};

use super::faults::{Dice, Faults, negotiates_version};
use super::model::Model;
use super::plan::{Op, Plan, Settings, Wire};

pub(crate) const SIDES: [Side; 2] = [Side::Client, Side::Server];
const DIRS: [Dir; 2] = [Dir::Bi, Dir::Uni];

/// Longer than any handshake takes whose packets get through at last: a packet that was held up for
/// minutes and is acknowledged then makes for probe timeouts of hours. Virtual time is cheap.
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(100_000_000);
/// Once the network is healed and the handshake is confirmed, something arrives within this time,
/// and some times the time that the network was ill and that round trips took: timers have backed
/// off.
const PATIENCE: Duration = Duration::from_secs(300);
/// After the last close, everything is gone within this time, handshakes that a replayed packet
/// began included.
const END_PATIENCE: Duration = Duration::from_secs(300_000_000);

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

/// What is known of one side.
#[derive(Debug, Default)]
struct Watch {
    events_seen: usize,
    confirmed: bool,
    /// The application closed.
    closed: bool,
    reason: Option<ConnectionError>,
    packets_received: u64,
    last_heard: Instant,
    in_flight: u64,
    window: u64,
    /// Probe timeouts when the window was last respected.
    ptos_within_window: u64,
    /// Streams of which an event said that they can be read or written, and kinds to accept.
    readable: Vec<swiftwater_units::StreamId>,
    writable: Vec<swiftwater_units::StreamId>,
    acceptable: [bool; 2],
}

struct World {
    pair: Pair,
    plan: Plan,
    model: Model,
    faults: [Rc<RefCell<Faults>>; 2],
    watches: [Watch; 2],
    dice: Dice,
    /// Addresses that the client had.
    addresses: u16,
    /// The peer's address changed or seemed to: windows start anew.
    moved: bool,
    steps: u64,
    injected: u64,
    outcomes: Vec<String>,
}

fn link(wire: &Wire) -> LinkConfig {
    let mut link = LinkConfig::default().delay(Duration::from_millis(wire.delay_ms));
    if wire.jitter_ms > 0 {
        link = link.jitter(Jitter::Uniform(Duration::from_millis(wire.jitter_ms)));
        link.jitter_reorders = true;
    }
    if let Some(rate) = wire.rate_kbps {
        link = link.rate(Bandwidth::from_kbps(rate));
        if let Some(packets) = wire.buffer_packets {
            link = link.buffer(Buffer::Packets(PacketCount::new(packets)));
        }
        if let Some(packets) = wire.mark_above {
            link = link.ecn_threshold(EcnThreshold::Packets(PacketCount::new(packets)));
        }
    }
    link.duplicate(f64::from(wire.duplicate) / 100.0)
}

fn configure(config: &mut TransportConfig, settings: &Settings) {
    config.max_concurrent_bidi_streams = settings.bidi_streams;
    config.max_concurrent_uni_streams = settings.uni_streams;
    config.stream_receive_window = ByteCount::new(settings.stream_window);
    config.receive_window = ByteCount::new(settings.window);
    config.max_stream_receive_window = ByteCount::new(settings.stream_window * settings.growth);
    config.max_receive_window = ByteCount::new(settings.window * settings.growth);
    config.send_window = ByteCount::new(settings.send_window);
    config.max_idle_timeout = settings.idle();
    config.handshake_timeout = HANDSHAKE_TIMEOUT;
    config.keep_alive_interval = settings.keep_alive_ms.map(Duration::from_millis);
    config.key_update_interval = settings.key_update_interval;
    config.max_datagram_frame_size = settings.datagram_frames;
    config.datagram_queue = ByteCount::new(settings.datagram_queue);
    config.active_connection_id_limit = settings.cid_limit;
    config.ack_eliciting_threshold = settings.ack_threshold;
    config.max_ack_delay = Duration::from_millis(settings.max_ack_delay_ms);
    config.initial_max_datagram_size = settings.packet_size;
    config.packet_threshold = settings.packet_threshold;
    config.initial_rtt = Duration::from_millis(settings.initial_rtt_ms);
    config.initial_window = settings.initial_window.map(ByteCount::new);
    config.pacing = settings.pacing;
    config.ecn = settings.ecn;
    config.policies = swiftwater_policies::by_name(settings.recovery).expect("a known policy");
    config.controller = if settings.newreno {
        Arc::new(NewRenoConfig::default())
    } else {
        Arc::new(CubicConfig::default())
    };
}

impl World {
    fn new(plan: &Plan) -> Self {
        let retry = if plan.retry {
            RetryPolicy::Always
        } else {
            RetryPolicy::Never
        };
        let [client, server] = &plan.ends;
        let mut pair = Pair::builder()
            .seed(plan.seed)
            .links(link(&plan.wires[0]), link(&plan.wires[1]))
            .client_config(|config| configure(config, client))
            .server_config(|config| configure(config, server))
            .retry(retry)
            .server_settings(|server| server.retry_token_lifetime = HANDSHAKE_TIMEOUT)
            .max_segments(plan.segments)
            .log(LogDetail {
                entries: false,
                content: true,
            })
            .build()
            .expect("a valid pair");
        let faults = [0, 1].map(|nth| Faults::new(&plan.wires[nth], plan.seed ^ nth as u64));
        for (direction, faults) in [Direction::ToServer, Direction::ToClient]
            .into_iter()
            .zip(&faults)
        {
            let faults = Rc::clone(faults);
            pair.tap(direction, move |datagram| {
                faults.borrow_mut().on_datagram(datagram)
            });
        }
        pair.start().expect("a connection can be started");
        Self {
            pair,
            plan: plan.clone(),
            model: Model::default(),
            faults,
            watches: Default::default(),
            dice: Dice::new(plan.seed.rotate_left(17)),
            addresses: 0,
            moved: false,
            steps: 0,
            injected: 0,
            outcomes: Vec::new(),
        }
    }

    fn watch(&mut self, side: Side) -> &mut Watch {
        &mut self.watches[side as usize]
    }

    /// A side's connection, if it is there and open.
    fn open_connection(&mut self, side: Side) -> Option<&mut Connection> {
        let connection = self.pair.connection(side)?;
        (!connection.is_closed()).then_some(connection)
    }

    /// Lets everything happen that happens now.
    fn settle(&mut self) {
        let now = self.pair.now();
        self.pair.network().run_until(now);
        self.check();
    }

    fn step_until(&mut self, limit: Instant) -> bool {
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
            Op::Rebind { ip } => self.rebind(ip),
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

    /// Operations on one connection.
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
                    self.model.did_reset((id, side), code, &outcome);
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
            Op::Read(side, stream, len) => {
                if let Some(id) = self.model.stream(side, stream) {
                    self.read(side, id, len);
                }
            }
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

    fn write(&mut self, side: Side, id: swiftwater_units::StreamId, len: usize) {
        let key = (id, side);
        let at = self.model.halves.get(&key).map_or(0, |half| half.written);
        let mut data = Vec::with_capacity(len);
        while data.len() < len {
            let chunk =
                Model::pattern(key).chunk(at + data.len() as u64, (len - data.len()) as u64);
            data.extend_from_slice(&chunk);
        }
        let reader = &self.plan.ends[!side as usize];
        let limit = reader.stream_window * reader.growth;
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
    fn read(&mut self, side: Side, id: swiftwater_units::StreamId, len: usize) -> bool {
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

    fn read_datagrams(&mut self, side: Side) {
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

    fn close_side(&mut self, side: Side) {
        let now = self.pair.now();
        if let Some(connection) = self.pair.connection(side) {
            connection.close(now, 7, b"enough");
            self.watch(side).closed = true;
        }
    }

    /// Before the handshake is confirmed a client must not move (RFC 9000, section 9).
    fn rebind(&mut self, ip: bool) {
        if !self.watches.iter().all(|watch| watch.confirmed) {
            return;
        }
        self.addresses += 1;
        let host = if ip { 100 + self.addresses as u8 } else { 1 };
        let address = ([198, 51, 100, host], 20_000 + self.addresses).into();
        self.pair
            .rebind(Side::Client, address)
            .expect("nobody has the address");
        self.moved = true;
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

    // --- what must always hold

    fn check(&mut self) {
        for side in SIDES {
            self.check_events(side);
            self.check_connection(side);
        }
        // Two per datagram and link, one for the pacer, and timers; far from spinning.
        let datagrams: u64 = self.faults.iter().map(|each| each.borrow().offered).sum();
        let seconds = self.pair.now().as_secs_f64() as u64;
        let limit = 1_000 + 100 * seconds + 10 * (datagrams + self.injected);
        assert!(self.steps <= limit, "{} wake-ups: it spins", self.steps);
    }

    fn check_connection(&mut self, side: Side) {
        let now = self.pair.now();
        let Some(connection) = self.pair.view(side) else {
            return;
        };
        if connection.is_drained() {
            return;
        }
        if let Some(timeout) = connection.poll_timeout() {
            assert!(
                timeout > now,
                "{side:?} wants to wake at {timeout:?}, now {now:?}"
            );
        }
        let stats = connection.stats();
        let queued = stats.reinjector.queued;
        assert!(
            queued == 0 || !connection.is_closed(),
            "{side:?} closed with {queued} data to copy"
        );
        assert_eq!(stats.invalid_decisions, 0, "{side:?}");
        let path = &stats.paths[0];
        let heard = stats.packets_received.get();
        let (in_flight, cwnd) = (path.bytes_in_flight.get(), path.cwnd.get());
        let packet = u64::from(path.max_datagram_size);
        let ptos = path.pto_count;
        assert!(cwnd >= 2 * packet, "{side:?}: window {cwnd}");
        let moved = self.moved;
        let watch = self.watch(side);
        if heard != watch.packets_received {
            watch.packets_received = heard;
            watch.last_heard = now;
        }
        if in_flight <= cwnd + packet {
            watch.ptos_within_window = ptos;
        } else if in_flight > watch.in_flight && !moved {
            // Two probes a time, in up to two epochs; and the one packet of an episode. The window
            // may have shrunk after the packets left.
            let probes = 4 * (ptos - watch.ptos_within_window);
            assert!(
                in_flight <= watch.in_flight.max(watch.window).max(cwnd) + packet * (1 + probes),
                "{side:?}: {in_flight} bytes in flight, window {cwnd}, {probes} probes"
            );
        }
        watch.in_flight = in_flight;
        watch.window = cwnd;
    }

    fn check_events(&mut self, side: Side) {
        let seen = self.watches[side as usize].events_seen;
        let new = self.pair.events(side)[seen..].to_vec();
        self.watch(side).events_seen += new.len();
        for event in new {
            assert!(
                self.watches[side as usize].reason.is_none() || event == Event::Drained,
                "{side:?}: {event:?} after the end"
            );
            match event {
                Event::Confirmed => self.watch(side).confirmed = true,
                Event::Closed { reason } => self.check_reason(side, reason),
                Event::Stream(event) => self.check_stream_event(side, event),
                _ => {}
            }
        }
    }

    fn check_stream_event(&mut self, side: Side, event: StreamEvent) {
        match event {
            StreamEvent::Opened { dir } => self.watch(side).acceptable[dir as usize] = true,
            StreamEvent::Readable { id } => self.watch(side).readable.push(id),
            StreamEvent::Writable { id } => self.watch(side).writable.push(id),
            StreamEvent::Finished { id } => self.model.was_acknowledged((id, side)),
            StreamEvent::Stopped { id, code } => self.model.was_stopped((id, side), code),
            _ => {}
        }
    }

    /// A connection between honest ends only ends for a reason.
    fn check_reason(&mut self, side: Side, reason: ConnectionError) {
        let now = self.pair.now();
        let peer_closed = self.watches[!side as usize].closed;
        let watch = &self.watches[side as usize];
        let is_fair = match &reason {
            ConnectionError::LocallyClosed { code } => watch.closed && *code == 7,
            ConnectionError::PeerApplication { code, reason } => {
                peer_closed && *code == 7 && reason == b"enough"
            }
            // What an application says during the handshake.
            ConnectionError::PeerTransport(error) => {
                peer_closed && error.code == ErrorCode::APPLICATION_ERROR
            }
            ConnectionError::TimedOut => {
                let idle = self.plan.ends.iter().filter_map(Settings::idle).min();
                idle.is_some_and(|idle| now - watch.last_heard >= idle)
            }
            ConnectionError::Reset => self.pair.view(!side).is_none_or(Connection::is_drained),
            _ => false,
        };
        assert!(is_fair, "{side:?} ended at {now:?}: {reason:?}");
        self.outcomes.push(format!("{side:?}: {reason}"));
        self.watch(side).reason = Some(reason);
    }

    // --- the end

    fn is_over(&self) -> bool {
        self.watches
            .iter()
            .any(|watch| watch.reason.is_some() || watch.closed)
    }

    /// The impairments end; everything written must arrive and be acknowledged.
    fn heal(&mut self) {
        for faults in &self.faults {
            faults.borrow_mut().healed = true;
        }
        for side in SIDES {
            self.serve_everything(side);
        }
        self.settle();
        let mut deadline = self.pair.now() + HANDSHAKE_TIMEOUT;
        let mut ping_at = Instant::ZERO;
        let mut progress = 0;
        while !self.is_over() && !self.is_settled() {
            let now = self.pair.now();
            let made = self.progress();
            if made > progress {
                progress = made;
                deadline = now + self.patience();
            }
            assert!(now < deadline, "nothing moves: {}", self.report());
            if !self.moved {
                ping_at = deadline;
            } else if now >= ping_at {
                // A server can't find a client that moved and has nothing to say.
                ping_at = now + Duration::from_secs(2);
                self.pair.client().ping();
            }
            self.step_until(ping_at.min(deadline));
            for side in SIDES {
                self.serve_events(side);
            }
            self.settle();
        }
    }

    /// Rises with whatever gets done.
    fn progress(&self) -> u64 {
        let confirmed = self.watches.iter().filter(|watch| watch.confirmed);
        self.model.progress() + confirmed.count() as u64
    }

    /// How long nothing may get done from now on.
    fn patience(&self) -> Duration {
        if !self.watches.iter().all(|watch| watch.confirmed) {
            return HANDSHAKE_TIMEOUT;
        }
        let timeouts = SIDES.map(|side| {
            let path = self.pair.stats(side).paths.pop();
            path.map_or(Duration::ZERO, |path| path.smoothed_rtt + path.rtt_var * 4)
        });
        let longest = timeouts.into_iter().max().unwrap_or_default();
        PATIENCE + (self.pair.now() - Instant::ZERO) * 8 + longest * 100
    }

    fn is_settled(&self) -> bool {
        let confirmed = self.watches.iter().all(|watch| watch.confirmed);
        let quiet = SIDES.into_iter().all(|side| {
            // One that keeps itself alive may always have a PING in flight.
            let pings = self.plan.ends[side as usize].keep_alive_ms.is_some();
            let limit = ByteCount::new(if pings { 1_000 } else { 0 });
            let stats = self.pair.stats(side);
            let in_flight = |path: &PathStats| path.bytes_in_flight > limit;
            !stats.paths.iter().any(in_flight) && stats.reinjector.queued == 0
        });
        confirmed
            && quiet
            && self
                .model
                .halves
                .values()
                .all(super::model::Half::is_settled)
    }

    fn report(&self) -> String {
        let halves = self
            .model
            .halves
            .iter()
            .filter(|(_, half)| !half.is_settled());
        let halves: Vec<_> = halves.collect();
        let sides = SIDES.map(|side| self.pair.stats(side));
        format!("{halves:#?}\n{sides:#?}")
    }

    /// Ends streams if the plan says so, and does once all that events would call for: those that
    /// came before the network healed were not acted on.
    fn serve_everything(&mut self, side: Side) {
        for dir in DIRS {
            self.accept_all(side, dir);
        }
        for id in self.model.known[side as usize].clone() {
            self.write_on(side, id);
            while self.read(side, id, 5_000) {}
        }
        self.read_datagrams(side);
    }

    /// Acts on nothing but events.
    fn serve_events(&mut self, side: Side) {
        for dir in DIRS {
            if std::mem::take(&mut self.watch(side).acceptable[dir as usize]) {
                self.accept_all(side, dir);
            }
        }
        for id in std::mem::take(&mut self.watch(side).readable) {
            while self.read(side, id, 5_000) {}
        }
        for id in std::mem::take(&mut self.watch(side).writable) {
            self.write_on(side, id);
        }
    }

    fn accept_all(&mut self, side: Side, dir: Dir) {
        while let Some(id) = self.pair.connection(side).and_then(|it| it.accept(dir)) {
            self.model.accepted(side, dir, id);
            while self.read(side, id, 5_000) {}
            self.write_on(side, id);
        }
    }

    /// Writes what was refused before, then ends the stream if the plan says so.
    fn write_on(&mut self, side: Side, id: swiftwater_units::StreamId) {
        let Some(half) = self.model.halves.get_mut(&(id, side)) else {
            return;
        };
        if half.finished || half.reset.is_some() || half.stopped.is_some() {
            return;
        }
        let wanted = std::mem::take(&mut half.wanted) as usize;
        if wanted > 0 {
            self.write(side, id, wanted);
        }
        let half = &self.model.halves[&(id, side)];
        if self.plan.finish_all
            && half.wanted == 0
            && let Some(connection) = self.open_connection(side)
        {
            let outcome = connection.send_stream(id).finish();
            self.model.did_finish((id, side), &outcome);
        }
    }

    /// Closes the connections of a server that the client tried again after it was refused: nothing
    /// ends those if the client has gone meanwhile.
    fn close_others(&mut self, hosts: [HostId; 2]) {
        let now = self.pair.now();
        let network = self.pair.network();
        for host in hosts {
            for handle in network.connections(host).collect::<Vec<_>>() {
                if let Some(connection) = network.connection(host, handle) {
                    connection.close(now, 7, b"enough");
                }
            }
        }
    }

    /// Both ends close; nothing may be left.
    fn close(&mut self) {
        for side in SIDES {
            if self.open_connection(side).is_some() {
                self.close_side(side);
            }
        }
        self.settle();
        let hosts = SIDES.map(|side| self.pair.host(side));
        self.close_others(hosts);
        let limit = self.pair.now() + END_PATIENCE;
        loop {
            let network = self.pair.network();
            let left: Vec<_> = hosts
                .into_iter()
                .flat_map(|host| network.connections(host).map(move |handle| (host, handle)))
                .collect();
            let Some((host, handle)) = left.first() else {
                break;
            };
            if !self.step_until(limit) {
                let connection = self.pair.network().view(*host, *handle);
                panic!("a connection that never ends: {connection:#?}");
            }
        }
        self.settle();
        for host in hosts {
            let endpoint = self.pair.network().endpoint(host);
            assert!(endpoint.is_idle(), "left behind: {endpoint:?}");
        }
    }
}
