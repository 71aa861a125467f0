//! The network itself: routes, interfaces, applications, and that nothing is lost track of.

use std::cell::Cell;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use swiftwater_link::LinkConfig;
use swiftwater_quic::{
    ClientConfig, ConnectionHandle, Event, RetryPolicy, ServerConfig, StreamEvent, TransportConfig,
};
use swiftwater_sim::apps::{BulkReceiver, BulkSender, Echo, Requester, Responder};
use swiftwater_sim::{
    Application, Cipher, Dumbbell, FlowSpec, HostConfig, HostContext, HostId, Network, NodeId,
    OldAddress, SERVER_NAME, SimError, Verdict,
};
use swiftwater_units::{Dir, Instant};

fn millis(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

fn delay(ms: u64) -> LinkConfig {
    LinkConfig::default().delay(millis(ms))
}

fn configs() -> (ClientConfig, HostConfig) {
    let (client, server) = Cipher::Null.crypto().unwrap();
    let transport = Arc::new(TransportConfig::default());
    let client = ClientConfig {
        crypto: client,
        transport: Arc::clone(&transport),
    };
    let server = ServerConfig {
        retry: RetryPolicy::Never,
        address_token_lifetime: Duration::ZERO,
        ..ServerConfig::new(server, transport)
    };
    let host = HostConfig {
        server: Some(Arc::new(server)),
        ..HostConfig::default()
    };
    (client, host)
}

fn address(last: u8) -> SocketAddr {
    ([10, 0, 0, last], 4_433).into()
}

/// A server and clients around one router, 5 ms from it each.
fn star(clients: u8) -> (Network, NodeId, HostId, Vec<HostId>) {
    let mut network = Network::new(1);
    let router = network.add_router();
    let server = network.add_host(configs().1);
    network
        .attach(server, address(0), router, delay(5), delay(5))
        .unwrap();
    let clients = (1..=clients)
        .map(|nth| {
            let host = network.add_host(HostConfig::default());
            network
                .attach(host, address(nth), router, delay(5), delay(5))
                .unwrap();
            host
        })
        .collect();
    (network, router, server, clients)
}

#[test]
fn routes_take_the_fewest_links() {
    let mut network = Network::new(1);
    let routers: Vec<_> = (0..4).map(|_| network.add_router()).collect();
    let (client, server) = (
        network.add_host(HostConfig::default()),
        network.add_host(configs().1),
    );
    network
        .attach(client, address(1), routers[0], delay(1), delay(1))
        .unwrap();
    network
        .attach(server, address(2), routers[3], delay(1), delay(1))
        .unwrap();
    // The way there is short through 0-1-3; the way back leads through 3-2-1-0 only.
    let mut link = |from: usize, to: usize, ms| {
        let (from, to) = (routers[from], routers[to]);
        network.add_link(from, to, delay(ms)).unwrap()
    };
    let there = [link(0, 1, 10), link(1, 3, 10)];
    let back = [link(3, 2, 20), link(2, 1, 20), link(1, 0, 20)];
    let unused = link(0, 2, 0);
    let sender = BulkSender::new(configs().0, address(2), Instant::ZERO, Some(50_000));
    network.install(client, sender);
    network.install(server, BulkReceiver::new());
    network.run_for(Duration::from_secs(5));

    let sender: &BulkSender = network.application(client).unwrap();
    let stats = sender
        .handle()
        .and_then(|handle| network.view(client, handle));
    assert!(stats.is_none(), "done, closed and gone");
    let receiver: &BulkReceiver = network.application(server).unwrap();
    let received = receiver.received().next().unwrap();
    assert!(received.intact && received.bytes == 50_000);
    let first = received.first_byte.unwrap();
    // Handshake and first data: one and a half round trips of 1 + 20 + 1 + 1 + 60 + 1 ms.
    assert_eq!(first, Instant::from_millis(84 + 22));
    for id in there.into_iter().chain(back) {
        assert!(network.counters(id).delivered.packets.get() > 0);
    }
    assert_eq!(network.counters(unused).enqueued.packets.get(), 0);
    assert_eq!(network.stats().unroutable, 0);
}

#[test]
fn datagrams_without_a_receiver_are_counted() {
    let (mut network, _, _, clients) = star(1);
    let nobody = ([10, 9, 9, 9], 1).into();
    let sender = BulkSender::new(configs().0, nobody, Instant::ZERO, None);
    network.install(clients[0], sender);
    network.run_for(Duration::from_secs(20));
    assert!(network.stats().unroutable >= 3);
    let sender: &BulkSender = network.application(clients[0]).unwrap();
    assert!(sender.error().is_some());
}

#[test]
fn interfaces_must_fit() {
    let (mut network, router, server, clients) = star(2);
    let taken = network.attach(clients[0], address(2), router, delay(1), delay(1));
    assert!(matches!(taken, Err(SimError::AddressTaken(_))));
    let (node, other) = (network.node(server), network.node(clients[0]));
    let up = network.add_link(node, router, delay(1)).unwrap();
    let elsewhere = network.add_link(router, other, delay(1)).unwrap();
    let wrong = network.add_interface(server, address(9), up, elsewhere);
    assert!(matches!(wrong, Err(SimError::WrongLink)));
}

#[test]
fn requests_are_answered_right() {
    let (mut network, _, server, clients) = star(3);
    network.install(server, Responder::new());
    for client in &clients {
        let requester = Requester::new(configs().0, address(0), (150, millis(3)), (2_000, 30_000));
        network.install(*client, requester);
    }
    network.run_for(Duration::from_secs(10));
    let responder: &Responder = network.application(server).unwrap();
    assert_eq!((responder.answered(), responder.damaged()), (450, 0));
    for client in clients {
        let requester: &Requester = network.application(client).unwrap();
        assert!(requester.is_done());
        let exchanges = requester.exchanges();
        assert!(exchanges.iter().all(|exchange| exchange.verified));
        // The first waits for the handshake: a round trip of 20 ms. No answer takes less than one.
        let first = exchanges[0].duration().unwrap();
        assert!(first >= millis(40), "{first:?}");
        assert!(
            exchanges
                .iter()
                .all(|each| each.duration().unwrap() >= millis(20))
        );
    }
}

/// Sends a greeting on a stream and one as a datagram; records the answers.
struct Greeter {
    config: ClientConfig,
    came_back: Rc<Cell<(bool, bool)>>,
}

impl Application for Greeter {
    fn on_start(&mut self, host: &mut HostContext<'_>) {
        host.connect(&self.config, address(0), SERVER_NAME).unwrap();
    }

    fn on_event(&mut self, host: &mut HostContext<'_>, handle: ConnectionHandle, event: Event) {
        let connection = host.connection(handle).unwrap();
        let (stream, datagram) = self.came_back.get();
        match event {
            Event::Connected => {
                let id = connection.open(Dir::Bi).unwrap();
                connection.send_stream(id).write(b"hello").unwrap();
                connection.send_stream(id).finish().unwrap();
                connection.recv_stream(id).read(&mut [0; 8]).unwrap();
                connection.send_datagram(Bytes::from_static(b"hi")).unwrap();
            }
            Event::Stream(StreamEvent::Readable { id }) => {
                let mut buffer = [0; 8];
                let _ = connection.recv_stream(id).read(&mut buffer);
                self.came_back
                    .set((stream || &buffer[..5] == b"hello", datagram));
            }
            Event::DatagramReceived => {
                let came = connection.recv_datagram();
                self.came_back.set((stream, came.as_deref() == Some(b"hi")));
            }
            _ => {}
        }
    }
}

#[test]
fn an_echo_returns_streams_and_datagrams() {
    let (mut network, _, server, clients) = star(1);
    network.install(server, Echo::new());
    let came_back = Rc::new(Cell::new((false, false)));
    let greeter = Greeter {
        config: configs().0,
        came_back: Rc::clone(&came_back),
    };
    network.install(clients[0], greeter);
    network.run_for(Duration::from_secs(1));
    assert_eq!(came_back.get(), (true, true));
}

#[test]
fn a_server_has_many_clients_at_once() {
    let (mut network, _, server, clients) = star(200);
    network.install(server, BulkReceiver::new());
    for client in &clients {
        let sender = BulkSender::new(configs().0, address(0), Instant::ZERO, Some(10_000));
        network.install(*client, sender);
    }
    network.run_for(millis(45));
    assert_eq!(network.connections(server).count(), 200);
    network.run_for(Duration::from_secs(5));
    assert_eq!(network.connections(server).count(), 0, "all are drained");
    let receiver: &BulkReceiver = network.application(server).unwrap();
    assert_eq!(receiver.received().count(), 200);
    assert!(
        receiver
            .received()
            .all(|each| each.bytes == 10_000 && each.intact)
    );
}

#[test]
fn a_multihomed_host_is_reached_over_each_interface() {
    let (mut network, router, server, clients) = star(2);
    let node = network.node(server);
    let up = network.add_link(node, router, delay(5)).unwrap();
    let down = network.add_link(router, node, delay(5)).unwrap();
    let second = network
        .add_interface(server, address(100), up, down)
        .unwrap();
    network.install(server, BulkReceiver::new());
    for (client, last) in clients.into_iter().zip([0, 100]) {
        let sender = BulkSender::new(configs().0, address(last), Instant::ZERO, Some(20_000));
        network.install(client, sender);
    }
    network.run_for(Duration::from_secs(1));
    let receiver: &BulkReceiver = network.application(server).unwrap();
    assert_eq!(
        receiver
            .received()
            .filter(|each| each.finish.is_some())
            .count(),
        2
    );
    assert_eq!(network.address(second), address(100));
    // Data received over the second interface were answered over it.
    assert!(network.counters(up).delivered.packets.get() > 5);
    assert!(network.counters(down).delivered.packets.get() > 15);
}

#[test]
fn a_kept_old_address_still_receives() {
    let (mut network, router, server, _) = star(0);
    let client = network.add_host(HostConfig::default());
    let interface = network
        .attach(client, address(1), router, delay(5), delay(5))
        .unwrap();
    network.install(server, BulkReceiver::new());
    let sender = BulkSender::new(configs().0, address(0), Instant::ZERO, Some(3_000_000));
    network.install(client, sender);
    network.run_for(millis(100));
    network
        .rebind(interface, address(50), OldAddress::Kept)
        .unwrap();
    network.run_for(Duration::from_secs(20));
    assert_eq!(network.stats().misdelivered, 0);
    let receiver: &BulkReceiver = network.application(server).unwrap();
    assert!(receiver.received().all(|each| each.bytes == 3_000_000));
}

#[test]
fn delayed_datagrams_are_overtaken() {
    let mut network = Network::new(1);
    let router = network.add_router();
    let (client, server) = (
        network.add_host(HostConfig::default()),
        network.add_host(configs().1),
    );
    let (client_node, server_node) = (network.node(client), network.node(server));
    let up = network.add_link(client_node, router, delay(5)).unwrap();
    let back = network.add_link(router, client_node, delay(5)).unwrap();
    let down = network.add_link(router, server_node, delay(5)).unwrap();
    let answers = network.add_link(server_node, router, delay(5)).unwrap();
    network.add_interface(client, address(1), up, back).unwrap();
    network
        .add_interface(server, address(0), answers, down)
        .unwrap();

    let before = network.record(up);
    network.tap(up, |datagram| match datagram.index {
        5 => Verdict::Delay(millis(3)),
        _ => Verdict::Pass,
    });
    let after = network.record(down);
    network.install(server, BulkReceiver::new());
    let sender = BulkSender::new(configs().0, address(0), Instant::ZERO, Some(200_000));
    network.install(client, sender);
    network.run_for(Duration::from_secs(1));

    let (before, after) = (before.datagrams(), after.datagrams());
    assert_eq!(before.len(), after.len());
    let delayed = &before[5];
    let arrived = after
        .iter()
        .position(|each| each.data == delayed.data)
        .unwrap();
    assert!(arrived > 5, "{arrived}");
    assert_eq!(after[arrived].at, delayed.at + millis(3 + 5));
    assert_eq!(after[4].data, before[4].data);
    assert_eq!(after[5].data, before[6].data);
    let receiver: &BulkReceiver = network.application(server).unwrap();
    assert!(
        receiver
            .received()
            .all(|each| each.intact && each.bytes == 200_000)
    );
}

#[test]
fn every_datagram_of_a_dumbbell_is_accounted_for() {
    let dumbbell = Dumbbell {
        flows: vec![FlowSpec::new("cubic").unwrap(); 3],
        loss: swiftwater_link::LossModel::Bernoulli(0.01),
        duration: Duration::from_secs(2),
        ..Dumbbell::default()
    };
    let mut run = dumbbell.build().unwrap();
    run.advance_to(run.end());
    let bottleneck = run.bottleneck();
    let hosts: Vec<_> = (0..3).map(|flow| run.hosts(flow)).collect();
    let network = run.network();
    let sent: u64 = hosts
        .iter()
        .map(|(sender, _)| {
            let handle = network.connections(*sender).next().unwrap();
            network
                .view(*sender, handle)
                .unwrap()
                .stats()
                .datagrams_sent
        })
        .sum();
    let received: u64 = hosts
        .iter()
        .map(|(_, receiver)| {
            let handle = network.connections(*receiver).next().unwrap();
            network
                .view(*receiver, handle)
                .unwrap()
                .stats()
                .datagrams_received
        })
        .sum();
    let counters = *network.counters(bottleneck);
    let on_bottleneck = network.in_transit(bottleneck).packets;
    assert_eq!(
        counters.enqueued.packets,
        counters.delivered.packets + counters.dropped().packets + on_bottleneck
    );
    // On access links there are a few; nowhere else.
    assert!(sent >= counters.enqueued.packets.get());
    assert!(sent - counters.enqueued.packets.get() < 500);
    assert!(counters.delivered.packets.get() >= received);
    assert!(counters.delivered.packets.get() - received < 10);
    assert_eq!(network.stats().unroutable + network.stats().misdelivered, 0);
}
