//! The relay between two endpoints.

use std::io::IoSliceMut;
use std::net::{SocketAddr, UdpSocket};
use std::time::Duration;

use crate::loopback::{LOOPBACK, NAME, Pair, echo, guard, noise};
use quinn_udp::{EcnCodepoint, RecvMeta, Transmit, UdpSocketState};
use swiftwater_link::{EcnThreshold, LinkCondition, LinkConfig, LossModel};
use swiftwater_net::Connection;
use swiftwater_net::relay::{Direction, Relay, RelayConfig, RelayError};
use swiftwater_units::Bandwidth;

async fn transfer(connection: &Connection, len: usize) {
    let data = noise(len, len as u64);
    let (mut send, mut recv) = connection.open_bi().await.unwrap();
    let expected = data.clone();
    let writer = tokio::spawn(async move {
        send.write_all(&data).await.unwrap();
        send.finish().unwrap();
        send.stopped().await.unwrap();
    });
    assert!(recv.read_to_end(len).await.unwrap() == expected);
    writer.await.unwrap();
}

/// A pair whose client can connect through the relay to an echoing server.
fn through(relay: impl FnOnce(&mut RelayConfig)) -> (Pair, Relay) {
    let pair = Pair::new();
    let mut config = RelayConfig::new(LOOPBACK.parse().unwrap(), pair.server.local_addr());
    relay(&mut config);
    let relay = Relay::start(config).unwrap();
    let server = pair.server.clone();
    tokio::spawn(async move {
        while let Some(connection) = server.accept().await {
            tokio::spawn(echo(connection));
        }
    });
    (pair, relay)
}

async fn connect(pair: &Pair, relay: &Relay) -> Connection {
    let connecting = pair
        .client
        .connect(&pair.config, relay.local_addr(), NAME)
        .unwrap();
    connecting.await.unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_filter_drops_what_it_says_and_counts_it() {
    guard(async {
        let config = RelayConfig::new(LOOPBACK.parse().unwrap(), LOOPBACK.parse().unwrap());
        let server = tokio::net::UdpSocket::bind(LOOPBACK).await.unwrap();
        let to = server.local_addr().unwrap();
        let relay = Relay::start(RelayConfig { to, ..config }).unwrap();
        relay.set_filter(Some(Box::new(|direction, datagram| {
            direction == Direction::Down || datagram != b"no"
        })));
        let client = tokio::net::UdpSocket::bind(LOOPBACK).await.unwrap();
        client.connect(relay.local_addr()).await.unwrap();
        let mut buffer = [0; 10];
        for text in [&b"no"[..], b"yes"] {
            client.send(text).await.unwrap();
        }
        let (len, from) = server.recv_from(&mut buffer).await.unwrap();
        assert_eq!(&buffer[..len], b"yes");
        assert_eq!(relay.counters().filtered, 1);
        server.send_to(b"no", from).await.unwrap();
        let len = client.recv(&mut buffer).await.unwrap();
        assert_eq!(&buffer[..len], b"no", "it is for the other direction");
        relay.set_filter(None);
        client.send(b"no").await.unwrap();
        let len = server.recv(&mut buffer).await.unwrap();
        assert_eq!(&buffer[..len], b"no");
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_transfer_survives_five_percent_loss() {
    guard(async {
        let (pair, relay) = through(|config| {
            let link = LinkConfig::default()
                .rate(Bandwidth::from_mbps(100))
                .delay(Duration::from_millis(2))
                .loss(LossModel::Bernoulli(0.05));
            config.up = link.clone();
            config.down = link;
            config.seed = 3;
        });
        let connection = connect(&pair, &relay).await;
        transfer(&connection, 1 << 20).await;
        let path = connection.stats().paths[0].clone();
        assert!(path.lost_packets.get() > 0);
        // Twice the delay, but for the age of the worker's clock, which is read once for a batch of arrivals.
        assert!(
            path.min_rtt >= Duration::from_millis(3),
            "{:?}",
            path.min_rtt
        );
        pair.shut_down().await;
        let counters = relay.stop();
        assert!(counters.up.dropped_random.packets.get() > 0);
        assert!(counters.down.dropped_random.packets.get() > 0);
        assert_eq!(counters.clients, 1);
    })
    .await;
}

#[tokio::test]
async fn clients_are_distinguished() {
    guard(async {
        let (pair, relay) = through(|_| {});
        let other = Pair::new();
        let a = connect(&pair, &relay).await;
        let connecting = other
            .client
            .connect(&pair.config, relay.local_addr(), NAME)
            .unwrap();
        let b = connecting.await.unwrap();
        tokio::join!(transfer(&a, 100_000), transfer(&b, 200_000));
        assert_eq!(relay.counters().clients, 2);
        pair.shut_down().await;
        other.shut_down().await;
    })
    .await;
}

#[tokio::test]
async fn no_more_clients_than_allowed() {
    guard(async {
        let (pair, relay) = through(|config| config.max_clients = 1);
        let other = Pair::new();
        let a = connect(&pair, &relay).await;
        let connecting = other
            .client
            .connect(&pair.config, relay.local_addr(), NAME)
            .unwrap();
        while relay.counters().refused == 0 {
            tokio::task::yield_now().await;
        }
        drop(connecting);
        transfer(&a, 1000).await;
        pair.shut_down().await;
        other.shut_down().await;
    })
    .await;
}

/// A client that takes all places and sends nothing for a second makes room; none is locked out until the client
/// timeout.
#[tokio::test]
async fn an_idle_client_makes_room() {
    guard(async {
        let (pair, relay) = through(|config| config.max_clients = 1);
        let other = Pair::new();
        let a = connect(&pair, &relay).await;
        transfer(&a, 1000).await;
        let connecting = other
            .client
            .connect(&pair.config, relay.local_addr(), NAME)
            .unwrap();
        let b = connecting.await.unwrap();
        transfer(&b, 1000).await;
        assert!(relay.counters().refused > 0, "a had been active");
        // The first one comes back, as from behind a NAT that lost its binding.
        transfer(&a, 1000).await;
        let counters = relay.counters();
        assert_eq!((counters.clients, counters.replaced >= 2), (1, true));
        pair.shut_down().await;
        other.shut_down().await;
    })
    .await;
}

/// The server follows when the relay behaves like a NAT that lost its bindings.
#[tokio::test]
async fn a_connection_survives_rebinding() {
    guard(async {
        let pair = Pair::new();
        let config = RelayConfig::new(LOOPBACK.parse().unwrap(), pair.server.local_addr());
        let relay = Relay::start(config).unwrap();
        let connecting = pair
            .client
            .connect(&pair.config, relay.local_addr(), NAME)
            .unwrap();
        let (client, server) = tokio::join!(connecting, pair.server.accept());
        let (client, server) = (client.unwrap(), server.unwrap());
        tokio::spawn(echo(server.clone()));
        transfer(&client, 10_000).await;
        let before = server.remote_address();
        relay.rebind().unwrap();
        transfer(&client, 10_000).await;
        assert_ne!(server.remote_address().port(), before.port());
        assert_eq!(relay.counters().rebinds, 1);
        pair.shut_down().await;
    })
    .await;
}

/// A bare UDP socket that sees ECN codepoints.
struct Bare {
    socket: UdpSocket,
    state: UdpSocketState,
}

impl Bare {
    fn new() -> Self {
        Self::on(LOOPBACK)
    }

    fn on(address: &str) -> Self {
        let socket = UdpSocket::bind(address).unwrap();
        socket
            .set_read_timeout(Some(Duration::from_secs(30)))
            .unwrap();
        let state = UdpSocketState::new((&socket).into()).unwrap();
        // Which is what the state has just turned on.
        socket.set_nonblocking(false).unwrap();
        Self { socket, state }
    }

    fn address(&self) -> SocketAddr {
        self.socket.local_addr().unwrap()
    }

    fn send(&self, destination: SocketAddr, contents: &[u8], ecn: Option<EcnCodepoint>) {
        let transmit = Transmit {
            destination,
            ecn,
            contents,
            segment_size: None,
            src_ip: None,
        };
        self.state
            .try_send((&self.socket).into(), &transmit)
            .unwrap();
    }

    fn receive(&self) -> (Vec<u8>, SocketAddr, Option<EcnCodepoint>) {
        let mut buffer = vec![0; 65_535];
        let mut meta = [RecvMeta::default()];
        let mut slots = [IoSliceMut::new(&mut buffer)];
        self.state
            .recv((&self.socket).into(), &mut slots, &mut meta)
            .unwrap();
        buffer.truncate(meta[0].len.min(meta[0].stride));
        (buffer, meta[0].addr, meta[0].ecn)
    }
}

#[test]
fn payloads_and_ecn_codepoints_pass_both_ways() {
    let (server, client) = (Bare::new(), Bare::new());
    let config = RelayConfig::new(LOOPBACK.parse().unwrap(), server.address());
    let relay = Relay::start(config).unwrap();
    let codepoints = [
        None,
        Some(EcnCodepoint::Ect0),
        Some(EcnCodepoint::Ect1),
        Some(EcnCodepoint::Ce),
    ];
    for (n, ecn) in codepoints.into_iter().enumerate() {
        let up = noise(100 + n, 1);
        client.send(relay.local_addr(), &up, ecn);
        let (data, seen_as, marked) = server.receive();
        assert_eq!((data, marked), (up, ecn));
        assert_ne!(seen_as, client.address());
        let down = noise(200 + n, 2);
        server.send(seen_as, &down, ecn);
        let (data, from, marked) = client.receive();
        assert_eq!((data, from, marked), (down, relay.local_addr(), ecn));
    }
    let counters = relay.stop();
    assert_eq!(counters.up.delivered.packets.get(), 4);
    assert_eq!(counters.down.delivered.packets.get(), 4);
    assert_eq!((counters.refused, counters.unsent), (0, 0));
}

/// Batches are taken apart, and each datagram keeps its codepoint, on sockets of every family.
#[test]
fn batches_keep_their_codepoints() {
    for (listen, from) in [
        ("127.0.0.1:0", "127.0.0.1:0"),
        ("[::1]:0", "[::1]:0"),
        ("[::]:0", "[::1]:0"),
        ("[::]:0", "127.0.0.1:0"),
    ] {
        let (server, client) = (Bare::new(), Bare::on(from));
        let config = RelayConfig::new(listen.parse().unwrap(), server.address());
        let relay = Relay::start(config).unwrap();
        let to = SocketAddr::new(client.address().ip(), relay.local_addr().port());
        let data = noise(5 * 1200, 4);
        let segments = if client.state.max_gso_segments() > 1 {
            5
        } else {
            1
        };
        for batch in data.chunks(segments * 1200) {
            let transmit = Transmit {
                destination: to,
                ecn: Some(EcnCodepoint::Ect0),
                contents: batch,
                segment_size: Some(1200),
                src_ip: None,
            };
            client
                .state
                .try_send((&client.socket).into(), &transmit)
                .unwrap();
        }
        for sent in data.chunks(1200) {
            let (received, _, ecn) = server.receive();
            assert!(received == sent);
            assert_eq!(ecn, Some(EcnCodepoint::Ect0), "{from} to {listen}");
        }
        assert_eq!(relay.stop().up.delivered.packets.get(), 5);
    }
}

/// After rebinding the server receives from another port, and what it sends to the old one is lost.
#[test]
fn rebinding_drops_the_old_port() {
    let (server, client) = (Bare::new(), Bare::new());
    let config = RelayConfig::new(LOOPBACK.parse().unwrap(), server.address());
    let relay = Relay::start(config).unwrap();
    client.send(relay.local_addr(), b"before", None);
    let (_, old, _) = server.receive();
    relay.rebind().unwrap();
    client.send(relay.local_addr(), b"after", None);
    let (data, new, _) = server.receive();
    assert_eq!(data, b"after");
    assert_ne!(new, old);
    server.send(old, b"lost", None);
    server.send(new, b"found", None);
    assert_eq!(client.receive().0, b"found");
    assert_eq!(relay.stop().unsent, 0);
}

/// The link's marks arrive at the peer, which reports them.
#[tokio::test]
async fn congestion_marks_are_reported() {
    guard(async {
        let (pair, relay) = through(|config| {
            config.up = LinkConfig::default()
                .rate(Bandwidth::from_mbps(20))
                .ecn_threshold(EcnThreshold::Packets(2.into()));
        });
        let connection = connect(&pair, &relay).await;
        transfer(&connection, 300_000).await;
        let path = connection.stats().paths[0].clone();
        assert!(path.ecn, "the path carries marks, yet validation failed");
        assert!(path.ecn_ce.get() > 0);
        assert!(relay.counters().up.ecn_marked.packets >= path.ecn_ce);
        pair.shut_down().await;
    })
    .await;
}

#[tokio::test]
async fn mistakes_are_reported() {
    let taken = std::net::UdpSocket::bind(LOOPBACK).unwrap();
    let to = "127.0.0.1:9".parse().unwrap();
    let error = Relay::start(RelayConfig::new(taken.local_addr().unwrap(), to)).unwrap_err();
    assert!(matches!(error, RelayError::Bind(_)), "{error}");
    let mut config = RelayConfig::new(LOOPBACK.parse().unwrap(), to);
    config.down.duplicate = 2.0;
    let error = Relay::start(config).unwrap_err();
    assert!(
        matches!(
            error,
            RelayError::Link {
                direction: "down",
                ..
            }
        ),
        "{error}"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_relay_that_is_cut_delivers_nothing_until_it_is_restored() {
    guard(async {
        let (pair, relay) = through(|_| {});
        relay.record_deliveries();
        let connection = connect(&pair, &relay).await;
        assert!(relay.in_use().await);
        transfer(&connection, 10_000).await;
        let before = relay.take_deliveries();
        let down = before.iter().filter(|one| one.direction == Direction::Down);
        assert!(down.map(|one| one.bytes).sum::<usize>() >= 10_000);
        assert!(before.is_sorted_by_key(|one| one.at));
        let cut = LinkCondition {
            cut: true,
            ..LinkCondition::default()
        };
        relay.set_conditions(cut, cut).unwrap();
        let transfer = transfer(&connection, 10_000);
        let mut transfer = std::pin::pin!(transfer);
        let stalled = tokio::time::timeout(Duration::from_millis(100), &mut transfer);
        assert!(stalled.await.is_err());
        let whole = LinkCondition::default();
        relay.set_conditions(whole, whole).unwrap();
        transfer.await;
    })
    .await;
}
