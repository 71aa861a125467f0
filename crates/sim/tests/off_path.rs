//! Packets sent off the path in use (challenges and responses on candidate and previous paths) say nothing
//! about it: they give no RTT samples and reveal no losses (RFC 9000, section 9.4; RFC 9002, section 5.1).

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use swiftwater_link::LinkConfig;
use swiftwater_quic::{
    ClientConfig, Connection, ConnectionHandle, Event, LocalAddress, PathStats, ReadOutcome,
    ServerConfig, StreamEvent, TransportConfig,
};
use swiftwater_sim::{
    Application, Cipher, Direction, HostConfig, HostContext, HostId, LinkId, Network, SERVER_NAME,
    Verdict,
};
use swiftwater_units::{Dir, StreamId};

use crate::support::{BOTH, link, millis, secs};

/// Rate of both ways to the client, Mbit/s.
const RATE: u64 = 100;

/// What the receive window lets through on the first path, Mbit/s: the queue stays short.
const FLOW: u64 = 20;

/// Round-trip times of the two paths, ms.
const SLOW: u64 = 100;
const FAST: u64 = 20;

/// What serialisation, delayed acknowledgements and short queues may add to a round-trip time.
const SLACK: Duration = Duration::from_millis(30);

const CONTROLLERS: [&str; 3] = ["cubic", "bbr1", "bbr3"];

/// The client's addresses, in two networks, and the server's.
const FIRST: ([u8; 4], u16) = ([192, 0, 2, 1], 49_152);
const SECOND: ([u8; 4], u16) = ([203, 0, 113, 9], 50_000);
const SERVER: ([u8; 4], u16) = ([198, 51, 100, 1], 443);

/// One end of a transfer without end.
#[derive(Default)]
struct End {
    sends: bool,
    handle: Option<ConnectionHandle>,
    stream: Option<StreamId>,
    events: Vec<Event>,
}

impl End {
    fn write(&mut self, connection: &mut Connection) {
        let id = match self.stream {
            Some(id) => id,
            None => *self.stream.insert(connection.open(Dir::Uni).unwrap()),
        };
        while connection.send_stream(id).write(&[7; 16_384]).unwrap() > 0 {}
    }

    fn read(connection: &mut Connection, id: StreamId) {
        let mut buffer = [0; 16_384];
        let mut stream = connection.recv_stream(id);
        while let ReadOutcome::Data(_) = stream.read(&mut buffer).unwrap() {}
    }
}

impl Application for End {
    fn on_accept(&mut self, _: &mut HostContext<'_>, handle: ConnectionHandle) {
        self.handle = Some(handle);
    }

    fn on_event(&mut self, host: &mut HostContext<'_>, handle: ConnectionHandle, event: Event) {
        let connection = host.connection(handle).unwrap();
        match event {
            Event::Connected if self.sends => self.write(connection),
            Event::Stream(StreamEvent::Writable { .. }) => self.write(connection),
            Event::Stream(StreamEvent::Opened { dir }) => {
                while let Some(id) = connection.accept(dir) {
                    Self::read(connection, id);
                }
            }
            Event::Stream(StreamEvent::Readable { id }) => Self::read(connection, id),
            event => self.events.push(event),
        }
    }
}

/// A transfer that fills its window on the path in use, and a second path to move it to.
struct Move {
    network: Network,
    client: HostId,
    /// The link to the client's second address.
    to_second: LinkId,
    /// The side that sends.
    sender: HostId,
    /// The client's local address on the second path.
    second: LocalAddress,
    /// Round-trip times without queues, of the path in use at first and of the other.
    rtts: [Duration; 2],
    what: String,
}

/// Both configurations: `window` bytes may be unread.
fn configs(controller: &str, window: u64) -> (ClientConfig, ServerConfig) {
    let (client, server) = Cipher::Null.crypto().unwrap();
    let transport = Arc::new(TransportConfig {
        controller: swiftwater_congestion::by_name(controller).unwrap(),
        stream_receive_window: window.into(),
        max_stream_receive_window: window.into(),
        receive_window: window.into(),
        max_receive_window: window.into(),
        mtu_discovery: None,
        ..TransportConfig::default()
    });
    let client = ClientConfig {
        crypto: client,
        transport: Arc::clone(&transport),
    };
    (client, ServerConfig::new(server, transport))
}

impl Move {
    fn new(controller: &str, direction: Direction, [from, to]: [u64; 2]) -> Self {
        let window = FLOW * from * 1_000 / 8;
        let (client_config, server_config) = configs(controller, window);
        let mut network = Network::new(1);
        let router = network.add_router();
        let client = network.add_host(HostConfig::default());
        let server = network.add_host(HostConfig {
            server: Some(Arc::new(server_config)),
            ..HostConfig::default()
        });
        let mut attach = |host, address: ([u8; 4], u16), way: LinkConfig| {
            let address = SocketAddr::from(address);
            network
                .attach(host, address, router, way.clone(), way)
                .unwrap()
        };
        attach(client, FIRST, link(RATE, from / 2));
        attach(server, SERVER, LinkConfig::default());
        let node = network.node(client);
        let way = link(RATE, to / 2);
        let uplink = network.add_link(node, router, way.clone()).unwrap();
        let to_second = network.add_link(router, node, way).unwrap();
        let second = network
            .add_interface(client, SECOND.into(), uplink, to_second)
            .unwrap();
        let second = LocalAddress {
            socket: network.socket(second),
            ip: Some(SocketAddr::from(SECOND).ip()),
        };
        let sender = match direction {
            Direction::ToServer => client,
            Direction::ToClient => server,
        };
        for host in [client, server] {
            let end = End {
                sends: host == sender,
                ..End::default()
            };
            network.install(host, end);
        }
        let start = |host: &mut HostContext<'_>| {
            host.connect(&client_config, SERVER.into(), SERVER_NAME)
                .unwrap()
        };
        let handle = network.with_host(client, start);
        network.application_mut::<End>(client).unwrap().handle = Some(handle);
        let new = Self {
            network,
            client,
            to_second,
            sender,
            second,
            rtts: [millis(from), millis(to)],
            what: format!("{controller}, {direction:?}, {from} ms to {to} ms"),
        };
        new.filled(window)
    }

    /// The transfer has gone on for a while, and a good part of its window is in flight.
    fn filled(mut self, window: u64) -> Self {
        self.network.run_for(secs(3));
        let path = self.path();
        let is_full = path.bytes_in_flight.get() * 3 >= window;
        assert!(is_full, "{}: {path:?}", self.what);
        self.assert_undisturbed();
        self
    }

    fn end(&self, host: HostId) -> &End {
        self.network.application(host).unwrap()
    }

    fn client(&mut self) -> &mut Connection {
        let handle = self.end(self.client).handle.unwrap();
        self.network.connection(self.client, handle).unwrap()
    }

    /// The sender's path in use.
    fn path(&self) -> PathStats {
        let handle = self.end(self.sender).handle.unwrap();
        let connection = self.network.view(self.sender, handle).unwrap();
        connection.stats().paths.swap_remove(0)
    }

    /// True once the sender uses the second path.
    fn has_switched(&self) -> bool {
        let path = self.path();
        if self.sender == self.client {
            path.local == self.second
        } else {
            path.remote == SECOND.into()
        }
    }

    /// How many such events the client reported.
    fn count(&self, wanted: impl Fn(&Event) -> bool) -> usize {
        let events = &self.end(self.client).events;
        events.iter().filter(|event| wanted(event)).count()
    }

    /// The sender's round-trip times are such that the path in use, the first or the second, can give.
    fn assert_within(&self, nth: usize) {
        let (path, rtt, what) = (self.path(), self.rtts[nth], &self.what);
        let now = self.network.now();
        if path.min_rtt.is_zero() {
            assert_eq!(nth, 1, "{what}: the first path has samples");
            return;
        }
        let range = rtt..rtt + SLACK;
        assert!(range.contains(&path.min_rtt), "{what}, {now:?}: {path:?}");
        assert!(
            range.contains(&path.latest_rtt),
            "{what}, {now:?}: {path:?}"
        );
    }

    /// The first path is as undisturbed as if there were no other.
    fn assert_undisturbed(&self) {
        self.assert_within(0);
        let (path, what) = (self.path(), &self.what);
        assert_eq!(path.lost_packets.get(), 0, "{what}: {path:?}");
        assert_eq!(path.congestion_events, 0, "{what}: {path:?}");
        // Once the client has moved, its acknowledgements may take longer than the server expects.
        let migrated = |event: &Event| matches!(event, Event::Migrated { .. });
        if self.count(migrated) == 0 {
            assert_eq!(path.pto_count, 0, "{what}: {path:?}");
        }
    }

    /// Runs for `time` on the second path. What was sent on the first one may count as lost there, since
    /// later packets overtake it, but it is no congestion and gives no RTT sample.
    fn run_after_switch(&mut self, time: Duration) {
        let end = self.network.now() + time;
        while self.network.now() < end {
            self.assert_within(1);
            let path = self.path();
            assert!(self.has_switched(), "{}: {path:?}", self.what);
            assert_eq!(path.congestion_events, 0, "{}: {path:?}", self.what);
            self.network.step();
        }
        let path = self.path();
        assert!(!path.min_rtt.is_zero(), "{}: no sample", self.what);
    }
}

fn every_move(mut run: impl FnMut(Move)) {
    for controller in CONTROLLERS {
        for direction in BOTH {
            for rtts in [[SLOW, FAST], [FAST, SLOW]] {
                run(Move::new(controller, direction, rtts));
            }
        }
    }
}

#[test]
fn probing_leaves_the_path_in_use_undisturbed_until_the_switch() {
    every_move(|mut each| {
        let (now, to) = (each.network.now(), each.second);
        each.client().migrate(now, to).unwrap();
        while !each.has_switched() {
            each.assert_undisturbed();
            assert!(each.network.now() < now + secs(2), "{}", each.what);
            each.network.step();
        }
        each.run_after_switch(secs(2));
        let migrated = |event: &Event| matches!(event, Event::Migrated { .. });
        assert_eq!(each.count(migrated), 1, "{}", each.what);
    });
}

#[test]
fn challenges_without_an_answer_leave_the_path_in_use_undisturbed() {
    every_move(|mut each| {
        // Challenges to the server arrive and are acknowledged on the path in use; no response
        // comes back.
        let (now, to) = (each.network.now(), each.second);
        each.network.tap(each.to_second, |_| Verdict::Drop);
        each.client().migrate(now, to).unwrap();
        let failed = |event: &Event| matches!(event, Event::MigrationFailed { .. });
        while each.count(failed) == 0 {
            each.assert_undisturbed();
            assert!(each.network.now() < now + secs(8), "{}", each.what);
            each.network.step();
        }
        assert!(!each.has_switched(), "{}", each.what);
    });
}

#[test]
fn challenges_on_the_previous_path_leave_the_new_one_undisturbed() {
    // The client moves unannounced: the server follows, and asks on the previous path whether it did.
    every_move(|mut each| {
        let (now, to) = (each.network.now(), each.second);
        each.client().rebind(now, to).unwrap();
        while !each.has_switched() {
            assert!(each.network.now() < now + secs(2), "{}", each.what);
            each.network.step();
        }
        each.run_after_switch(secs(2));
    });
}
