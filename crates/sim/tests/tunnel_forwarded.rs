//! Tunnels in forwarded mode: packets with a short header pass beside the connection between proxy and client once
//! their connection IDs are registered. Both ends of what is in the tunnel are scripts, so that times are exact.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use swiftwater_link::{Ecn, LinkConfig, Rate};
use swiftwater_quic::{
    ClientConfig, ConnectionHandle, EcnCodepoint, Event, RetryPolicy, ServerConfig, SocketId,
    TransportConfig,
};
use swiftwater_sim::apps::{Carriage, TunnelClient, TunnelConfig, TunnelProxy, TunnelStats};
use swiftwater_sim::{
    Application, Captured, Cipher, HostConfig, HostContext, HostId, InterfaceId, Network,
    RawDatagram, Recording,
};
use swiftwater_units::{Bandwidth, Instant};

/// Connection IDs of the two ends.
const OF_PEER: [u8; 8] = *b"the-peer";
const OF_SERVER: [u8; 8] = *b"serverid";
/// When each end sends its long header.
const HELLO_OF_PEER: u64 = 100;
const HELLO_OF_SERVER: u64 = 200;
/// When forwarding has begun both ways.
const SETTLED: u64 = 300;
/// Round trip between proxy and client, ms.
const ROUND_TRIP: u64 = 20;

fn address(host: u8) -> SocketAddr {
    (Ipv4Addr::new(10, 0, 0, host), 443).into()
}

fn at(ms: u64) -> Instant {
    Instant::ZERO + Duration::from_millis(ms)
}

/// A packet with a long header from `id`.
fn long(id: [u8; 8]) -> Vec<u8> {
    let mut packet = vec![0xc0, 0, 0, 0, 1, 4, 1, 2, 3, 4, 8];
    packet.extend(id);
    packet.resize(1_200, 0);
    packet
}

/// A packet with a short header to `id`; `mark` tells it from others.
fn short(id: [u8; 8], mark: u64) -> Vec<u8> {
    let mut packet = vec![0x40];
    packet.extend(id);
    packet.extend(mark.to_be_bytes());
    packet.resize(1_000, 7);
    packet
}

/// What a packet is told by, wherever its header ends.
fn mark(packet: &[u8]) -> u64 {
    u64::from_be_bytes(packet[9..17].try_into().unwrap())
}

/// A time in ms, a packet, its ECN field.
type Line = (u64, Vec<u8>, Option<EcnCodepoint>);

/// Sends what a script says to an address and keeps what arrives.
#[derive(Debug)]
struct Actor {
    to: SocketAddr,
    script: Vec<Line>,
    received: Vec<(Vec<u8>, Option<EcnCodepoint>)>,
}

impl Application for Actor {
    fn on_start(&mut self, host: &mut HostContext<'_>) {
        for (token, (ms, ..)) in (0..).zip(&self.script) {
            host.set_timer(at(*ms), token);
        }
    }

    fn on_timer(&mut self, host: &mut HostContext<'_>, token: u64) {
        let (_, packet, ecn) = self.script[token as usize].clone();
        host.forward_datagram(SocketId(0), self.to, packet, ecn);
    }

    fn on_datagram(&mut self, _: &mut HostContext<'_>, datagram: &RawDatagram<'_>) {
        let data = datagram.data.to_vec();
        self.received.push((data, datagram.ecn));
    }

    fn on_event(&mut self, _: &mut HostContext<'_>, _: ConnectionHandle, _: Event) {}
}

struct Stage {
    network: Network,
    server: HostId,
    proxy: HostId,
    peer: HostId,
    /// Where the client reaches the proxy.
    front: InterfaceId,
    /// What arrives at the proxy from the server.
    from_server: Recording,
    /// What arrives at the client from the peer.
    from_peer: Recording,
    /// What leaves for the client, and for the proxy.
    down: Recording,
    up: Recording,
}

/// Server and proxy at a router, 5 ms apart; proxy and client 20 ms there and back over 10 Mbit/s. The tunnel opens at
/// once.
fn stage(carriage: Carriage, of_server: Vec<Line>, of_peer: Vec<Line>) -> Stage {
    let mut network = Network::new(3);
    let (near, edge) = (network.add_router(), network.add_router());
    let access = LinkConfig::default()
        .rate(Rate::Constant(Bandwidth::from_mbps(10)))
        .delay(Duration::from_millis(ROUND_TRIP / 2));
    let down = network.add_link(near, edge, access.clone()).unwrap();
    let up = network.add_link(edge, near, access).unwrap();
    let own = LinkConfig::default;

    let server = network.add_host(HostConfig::default());
    let distant = own().delay(Duration::from_millis(5));
    let raw = network
        .attach(server, address(1), near, distant, own())
        .unwrap();
    network.set_raw(raw);
    network.install(server, actor(address(3), of_server));

    let transport = Arc::new(TransportConfig {
        initial_max_datagram_size: 1_300,
        mtu_discovery: None,
        ..TransportConfig::default()
    });
    let (client_crypto, server_crypto) = Cipher::Null.crypto().unwrap();
    let config = ServerConfig {
        retry: RetryPolicy::Never,
        address_token_lifetime: Duration::ZERO,
        ..ServerConfig::new(server_crypto, Arc::clone(&transport))
    };
    let proxy = network.add_host(HostConfig {
        server: Some(Arc::new(config)),
        ..HostConfig::default()
    });
    let front = network
        .attach(proxy, address(2), near, own(), own())
        .unwrap();
    let node = network.node(proxy);
    let there = network.add_link(node, near, own()).unwrap();
    let to_proxy = network.add_link(near, node, own()).unwrap();
    let udp = network
        .add_interface(proxy, address(3), there, to_proxy)
        .unwrap();
    network.set_raw(udp);
    let tunnel = TunnelConfig {
        carriage,
        repair: None,
        reports: false,
        report_loss: 0.0,
    };
    network.install(proxy, TunnelProxy::new(tunnel, address(1)));

    let client = network.add_host(HostConfig::default());
    network
        .attach(client, address(4), edge, own(), own())
        .unwrap();
    let peer = network.add_host(HostConfig::default());
    let (end, behind) = (network.node(client), network.node(peer));
    let to_client = network.add_link(behind, end, own()).unwrap();
    let to_peer = network.add_link(end, behind, own()).unwrap();
    let local = network
        .add_interface(client, address(5), to_peer, to_client)
        .unwrap();
    network.set_raw(local);
    let raw = network
        .add_interface(peer, address(6), to_client, to_peer)
        .unwrap();
    network.set_raw(raw);
    network.install(peer, actor(address(5), of_peer));
    let config = ClientConfig {
        crypto: client_crypto,
        transport,
    };
    let app = TunnelClient::new(tunnel, config, address(2), Instant::ZERO);
    network.install(client, app);
    Stage {
        server,
        proxy,
        peer,
        front,
        from_server: network.record(to_proxy),
        from_peer: network.record(to_client),
        down: network.record(down),
        up: network.record(up),
        network,
    }
}

fn actor(to: SocketAddr, script: Vec<Line>) -> Actor {
    Actor {
        to,
        script,
        received: Vec::new(),
    }
}

impl Stage {
    fn run(&mut self) {
        self.network.run_until(at(1_000));
    }

    fn received(&self, host: HostId) -> &[(Vec<u8>, Option<EcnCodepoint>)] {
        &self.network.application::<Actor>(host).unwrap().received
    }

    fn stats(&self) -> TunnelStats {
        let proxy = self.network.application::<TunnelProxy>(self.proxy);
        proxy.unwrap().stats()
    }
}

/// The packets that passed a link as they are, but for the connection ID: their content is that of [`short`].
fn forwarded(link: &Recording) -> Vec<Captured> {
    let mut datagrams = link.datagrams();
    datagrams.retain(|datagram| {
        datagram.data[0] == 0x40
            && datagram.data[1..].ends_with(&short(OF_PEER, 0)[17..])
            && datagram.data.len() == 1_000
    });
    datagrams
}

/// The script of an end: its long header, then a packet to `to` at each of these times.
fn script(
    hello: (u64, [u8; 8]),
    to: [u8; 8],
    times: impl IntoIterator<Item = u64>,
    ecn: Option<EcnCodepoint>,
) -> Vec<Line> {
    let packets = (0..).zip(times);
    let packets = packets.map(|(mark, time)| (time, short(to, mark), ecn));
    [(hello.0, long(hello.1), ecn)]
        .into_iter()
        .chain(packets)
        .collect()
}

fn of_server(times: impl IntoIterator<Item = u64>) -> Vec<Line> {
    script((HELLO_OF_SERVER, OF_SERVER), OF_PEER, times, None)
}

fn of_peer(times: impl IntoIterator<Item = u64>) -> Vec<Line> {
    script((HELLO_OF_PEER, OF_PEER), OF_SERVER, times, None)
}

#[test]
fn registration_takes_a_round_trip_each_way() {
    // A packet every other millisecond, which the window of the connection has room for.
    let mut stage = stage(
        Carriage::Forwarded,
        of_server((HELLO_OF_PEER..HELLO_OF_SERVER).step_by(2)),
        of_peer((HELLO_OF_SERVER..SETTLED).step_by(2)),
    );
    stage.run();
    // Half a round trip until the proxy knows the peer's ID, one more until the client knows the virtual one.
    let begin = HELLO_OF_PEER + ROUND_TRIP * 3 / 2;
    let first = forwarded(&stage.down)[0].at;
    assert!((at(begin)..at(begin + 6)).contains(&first), "{first:?}");
    // The server's long header reaches the client after 15 ms; then the client asks and the proxy answers.
    let begin = HELLO_OF_SERVER + 5 + ROUND_TRIP / 2 + ROUND_TRIP;
    let first = forwarded(&stage.up)[0].at;
    assert!((at(begin)..at(begin + 6)).contains(&first), "{first:?}");

    // What came before was tunnelled: nothing is missing, and from then on nothing is in the tunnel.
    for (host, sent, link) in [(stage.peer, 50, &stage.down), (stage.server, 50, &stage.up)] {
        let packets = stage.received(host).iter().map(|(packet, _)| packet);
        let mut marks: Vec<_> = packets
            .filter(|packet| packet.len() == 1_000)
            .map(|packet| mark(packet))
            .collect();
        marks.sort_unstable();
        assert_eq!(marks, (0..sent).collect::<Vec<_>>());
        let beside: Vec<_> = forwarded(link)
            .iter()
            .map(|each| mark(&each.data))
            .collect();
        assert!(beside[0] > 10, "{beside:?}");
        assert_eq!(beside, (beside[0]..sent).collect::<Vec<_>>());
    }
}

/// Of a hundred packets that arrive at the proxy in an instant, those that leave in that instant, and how much longer
/// they are.
fn burst(carriage: Carriage) -> (usize, usize) {
    let mut stage = stage(
        carriage,
        of_server([SETTLED; 100]),
        of_peer([SETTLED - 50; 1]),
    );
    stage.run();
    let arrived = stage.from_server.datagrams();
    let arrived: Vec<_> = arrived
        .iter()
        .filter(|each| each.at > at(SETTLED))
        .collect();
    assert_eq!(arrived.len(), 100);
    assert!(arrived.iter().all(|each| each.at == arrived[0].at));
    let left = stage.down.datagrams();
    let of_then: Vec<_> = left
        .iter()
        .filter(|each| each.at == arrived[0].at)
        .collect();
    let excess = of_then.iter().map(|each| each.data.len() - 1_000).max();
    (of_then.len(), excess.unwrap())
}

#[test]
fn a_short_header_leaves_at_once_and_as_long_as_it_came() {
    assert_eq!(burst(Carriage::Forwarded), (100, 0));
    // The window of the connection between them holds a tunnel of datagrams up.
    let (at_once, excess) = burst(Carriage::Datagrams);
    assert!(at_once < 20, "{at_once}");
    assert!(excess > 20, "{excess}");
}

#[test]
fn what_is_forwarded_does_not_count_as_in_flight_and_does_not_wait() {
    let times = (0..500).map(|number| SETTLED + number / 5);
    let mut stage = stage(Carriage::Forwarded, of_server(times), of_peer([]));
    stage.run();
    let stats = stage.stats();
    assert_eq!(
        (stats.payloads, stats.forwarded, stats.dropped),
        (501, 500, 0)
    );
    let waited = stats.queue_delays_ms.iter().filter(|delay| **delay > 0.0);
    assert_eq!(waited.count(), 0);
}

#[test]
fn long_headers_stay_in_the_tunnel() {
    let mut lines = of_server([]);
    let mut of_peer = of_peer([]);
    for number in 0..20 {
        lines.push((SETTLED + number, long(OF_SERVER), None));
        of_peer.push((SETTLED + number, long(OF_PEER), None));
    }
    let mut stage = stage(Carriage::Forwarded, lines, of_peer);
    stage.run();
    for (packet, link, host) in [
        (long(OF_SERVER), &stage.down, stage.peer),
        (long(OF_PEER), &stage.up, stage.server),
    ] {
        assert_eq!(stage.received(host).len(), 21);
        let datagrams = link.datagrams();
        assert!(datagrams.iter().all(|each| each.data != packet));
        // The cipher is none, so that they can be seen within others.
        let within = datagrams.iter().filter(|each| {
            let mut windows = each.data.windows(packet.len());
            windows.any(|window| window == packet)
        });
        assert_eq!(within.count(), 21);
    }
    assert_eq!(stage.stats().forwarded, 0);
}

#[test]
fn packets_to_ids_that_are_not_registered_stay_in_the_tunnel() {
    let mut lines = of_server([SETTLED]);
    lines.push((SETTLED, short(*b"nobody's", 1), None));
    let mut stage = stage(Carriage::Forwarded, lines, of_peer([]));
    stage.run();
    assert_eq!(forwarded(&stage.down).len(), 1);
    assert_eq!(stage.received(stage.peer).len(), 3);
}

#[test]
fn ids_differ_on_the_way_and_are_restored() {
    let mut stage = stage(
        Carriage::Forwarded,
        of_server([SETTLED]),
        of_peer([SETTLED]),
    );
    stage.run();
    for (sent, link, host) in [
        (short(OF_PEER, 0), &stage.down, stage.peer),
        (short(OF_SERVER, 0), &stage.up, stage.server),
    ] {
        let on_the_way = forwarded(link);
        assert_eq!(on_the_way.len(), 1);
        assert_ne!(on_the_way[0].data[1..9], sent[1..9]);
        assert_eq!(on_the_way[0].data[9..], sent[9..]);
        let received = stage.received(host);
        assert!(received.iter().any(|(packet, _)| *packet == sent));
    }
    // Knowing a virtual ID is not enough: it must come from the client's address.
    let copy = forwarded(&stage.up)[0].data.clone();
    let before = stage.received(stage.server).len();
    for (source, more) in [(address(9), 0), (address(4), 1)] {
        stage
            .network
            .inject(stage.front, source, Ecn::NotEct, &copy);
        stage.network.run_for(Duration::from_millis(100));
        assert_eq!(stage.received(stage.server).len(), before + more);
    }
}

#[test]
fn marks_pass_unchanged_and_only_beside_the_tunnel() {
    let (ect, ce) = (Some(EcnCodepoint::Ect0), Some(EcnCodepoint::Ce));
    let of_server = script((HELLO_OF_SERVER, OF_SERVER), OF_PEER, [SETTLED], ce);
    let of_peer = script((HELLO_OF_PEER, OF_PEER), OF_SERVER, [SETTLED], ect);
    let mut stage = stage(Carriage::Forwarded, of_server, of_peer);
    stage.run();
    for (host, expected) in [(stage.peer, ce), (stage.server, ect)] {
        let marks: Vec<_> = stage.received(host).iter().map(|(_, ecn)| *ecn).collect();
        // The long header, then the short one.
        assert_eq!(marks, [None, expected]);
    }
}

#[test]
fn the_same_script_gives_the_same_datagrams() {
    let run = || {
        let (server, peer) = (of_server(HELLO_OF_PEER..400), of_peer(HELLO_OF_SERVER..400));
        let mut stage = stage(Carriage::Forwarded, server, peer);
        stage.run();
        (
            stage.down.datagrams(),
            stage.up.datagrams(),
            stage.from_peer.len(),
        )
    };
    assert_eq!(run(), run());
}
