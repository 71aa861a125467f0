//! Applications: bursts, planned transfers, live streams and their player.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use proptest::prelude::*;
use swiftwater_link::{LinkConfig, LossModel};
use swiftwater_quic::{ClientConfig, RetryPolicy, ServerConfig, TransportConfig};
use swiftwater_sim::apps::{
    BulkReceiver, BurstSender, LiveServer, LiveViewer, Player, Transfer, TransferReceiver,
    TransferSender,
};
use swiftwater_sim::{Cipher, HostConfig, HostId, Network};
use swiftwater_units::{Bandwidth, ByteCount, Instant};

/// A client and a server on one link each way.
struct Two {
    network: Network,
    client: HostId,
    server: HostId,
    config: ClientConfig,
    remote: SocketAddr,
}

fn two(link: LinkConfig) -> Two {
    let (client_crypto, server_crypto) = Cipher::Null.crypto().unwrap();
    let transport = Arc::new(TransportConfig::default());
    let config = ClientConfig {
        crypto: client_crypto,
        transport: transport.clone(),
    };
    let server_config = ServerConfig {
        retry: RetryPolicy::Never,
        address_token_lifetime: Duration::ZERO,
        ..ServerConfig::new(server_crypto, transport)
    };
    let mut network = Network::new(3);
    let client = network.add_host(HostConfig::default());
    let server = network.add_host(HostConfig {
        server: Some(Arc::new(server_config)),
        ..HostConfig::default()
    });
    let remote: SocketAddr = "10.0.0.2:443".parse().unwrap();
    let nodes = (network.node(client), network.node(server));
    let there = network.add_link(nodes.0, nodes.1, link.clone()).unwrap();
    let back = network.add_link(nodes.1, nodes.0, link).unwrap();
    let local = "10.0.0.1:5000".parse().unwrap();
    network.add_interface(client, local, there, back).unwrap();
    network.add_interface(server, remote, back, there).unwrap();
    Two {
        network,
        client,
        server,
        config,
        remote,
    }
}

fn at(millis: u64) -> Instant {
    Instant::from_millis(millis)
}

/// 100 Mbit/s, 5 ms each way.
fn fast() -> LinkConfig {
    LinkConfig::default()
        .rate(Bandwidth::from_mbps(100))
        .delay(Duration::from_millis(5))
}

fn transfers(two: &mut Two, plan: &[(u64, u64)]) {
    let plan = (0..).zip(plan).map(|(number, &(start, bytes))| Transfer {
        number,
        start: at(start),
        remote: two.remote,
        bytes,
    });
    let sender = TransferSender::new(two.config.clone(), plan.collect());
    two.network.install(two.client, sender);
    two.network.install(two.server, TransferReceiver::new());
}

#[test]
fn transfers_of_any_size_arrive_whole() {
    let sizes = [0, 1, 7, 8, 9, 1_000, 70_000, 3];
    let plan: Vec<_> = (0..).map(|nth| nth * 3).zip(sizes).collect();
    let mut two = two(fast());
    transfers(&mut two, &plan);
    two.network.run_until(at(5_000));
    let receiver = two
        .network
        .application::<TransferReceiver>(two.server)
        .unwrap();
    let mut arrivals = receiver.arrivals().to_vec();
    arrivals.sort_by_key(|each| each.number);
    let received: Vec<_> = arrivals.iter().map(|each| each.bytes).collect();
    assert_eq!(received, sizes.map(|size| size.max(8)));
    assert_eq!(receiver.bytes(), received.iter().sum::<u64>());
    assert!(receiver.is_intact());
    for (arrival, (start, _)) in arrivals.iter().zip(plan) {
        // A handshake and a half round trip.
        assert!(arrival.finish > at(start + 15) && arrival.finish < at(start + 100));
    }
    let sender = two
        .network
        .application::<TransferSender>(two.client)
        .unwrap();
    assert_eq!((sender.begun(), sender.acknowledged()), (8, 8));
    assert_eq!(sender.failed(), [0; 0]);
}

#[test]
fn nothing_is_left_of_connections_that_are_done() {
    let mut two = two(fast());
    let plan: Vec<_> = (0..500).map(|nth| (nth * 4, 20_000)).collect();
    transfers(&mut two, &plan);
    let mut most = 0;
    for step in 1..=50 {
        two.network.run_until(at(step * 40));
        most = most.max(two.network.connections(two.server).count());
    }
    // Each takes about 30 ms and then some probe timeouts to drain.
    assert!(most < 100, "{most}");
    two.network.run_for(Duration::from_secs(5));
    for host in [two.client, two.server] {
        assert_eq!(two.network.connections(host).count(), 0);
        assert_eq!(two.network.totals(host).connections, 500);
    }
    let totals = two.network.totals(two.client);
    assert_eq!(totals.stream_bytes_sent.get(), 500 * 20_000);
    assert!(totals.min_rtt.unwrap() > Duration::from_millis(10));
}

#[test]
fn totals_contain_losses_of_connections_that_are_gone() {
    let mut two = two(fast().loss(LossModel::Bernoulli(0.05)));
    transfers(&mut two, &[(0, 300_000), (10, 300_000)]);
    two.network.run_until(at(100));
    let early = two.network.totals(two.client);
    two.network.run_until(at(60_000));
    let totals = two.network.totals(two.client);
    assert!(totals.packets_lost.get() > 5 && totals.packets_sent > totals.packets_lost);
    let again = totals.stream_bytes_retransmitted;
    assert_eq!((totals.stream_bytes_sent - again).get(), 600_000);
    let since = totals.since(&early);
    assert_eq!(since.packets_sent + early.packets_sent, totals.packets_sent);
}

#[test]
fn a_lost_connection_fails_its_transfer() {
    let mut two = two(fast().loss(LossModel::Bernoulli(1.0)));
    transfers(&mut two, &[(0, 1_000)]);
    two.network.run_until(at(30_000));
    let sender = two
        .network
        .application::<TransferSender>(two.client)
        .unwrap();
    assert_eq!(sender.failed(), [0]);
}

#[test]
fn bursts_write_what_their_rate_allows_and_no_more() {
    let mut two = two(fast());
    let rate = Bandwidth::from_mbps(8);
    let bursts = [at(100)..at(200), at(300)..at(350)];
    let sender = BurstSender::new(
        two.config.clone(),
        two.remote,
        at(0),
        Some(rate),
        bursts.into_iter(),
    );
    two.network.install(two.client, sender);
    two.network.install(two.server, BulkReceiver::new());
    // A megabyte per second.
    for (time, bytes) in [
        (99, 0),
        (150, 50_000),
        (250, 100_000),
        (325, 125_000),
        (900, 150_000),
    ] {
        two.network.run_until(at(time));
        let sender = two.network.application::<BurstSender>(two.client).unwrap();
        let written = sender.written();
        assert!(
            (bytes.max(1_200) - 1_200..=bytes).contains(&written),
            "{time}: {written}"
        );
    }
    let receiver = two.network.application::<BulkReceiver>(two.server).unwrap();
    assert_eq!(receiver.bytes(), 150_000);
    assert!(receiver.is_intact());
}

#[test]
fn what_a_burst_could_not_send_goes_out_in_the_pause() {
    let mut two = two(fast().rate(Bandwidth::from_mbps(4)));
    let rate = Bandwidth::from_mbps(8);
    let burst = std::iter::once(at(0)..at(500));
    let sender = BurstSender::new(two.config.clone(), two.remote, at(0), Some(rate), burst);
    two.network
        .install(two.client, sender.stop(Some(at(3_000))));
    two.network.install(two.server, BulkReceiver::new());
    two.network.run_until(at(500));
    let bytes = |two: &Two| {
        let receiver = two.network.application::<BulkReceiver>(two.server);
        receiver.unwrap().bytes()
    };
    assert!(bytes(&two) < 260_000);
    two.network.run_until(at(2_900));
    assert_eq!(bytes(&two), 500_000);
    two.network.run_until(at(6_000));
    assert_eq!(two.network.connections(two.client).count(), 0);
    let sender = two.network.application::<BurstSender>(two.client).unwrap();
    assert!(sender.error().is_none());
}

#[test]
fn a_live_stream_is_its_first_frame_and_its_rate() {
    let mut two = two(fast());
    let rate = Bandwidth::from_mbps(4);
    let sizes = (ByteCount::new(60_000), ByteCount::new(60_000));
    let viewer = LiveViewer::new(two.config.clone(), two.remote, at(20), rate, sizes);
    two.network
        .install(two.client, viewer.stop(Some(at(5_000))));
    two.network.install(two.server, LiveServer::new());
    two.network.run_until(at(4_080));
    let viewer = two.network.application::<LiveViewer>(two.client).unwrap();
    // The request arrives at 35 ms; 101 frames of 20 kB have arrived since.
    assert_eq!(viewer.bytes(), 60_000 + 101 * 20_000 - 20_000);
    assert!(viewer.is_intact());
    let viewing = viewer.viewing(two.network.now());
    assert!(viewing.start_time().unwrap() < Duration::from_millis(60));
    assert!(viewing.pauses.is_empty());
    let server = two.network.application::<LiveServer>(two.server).unwrap();
    assert_eq!(server.viewers(), 1);
    two.network.run_until(at(6_000));
    let server = two.network.application::<LiveServer>(two.server).unwrap();
    assert_eq!(server.viewers(), 0);
    let viewer = two.network.application::<LiveViewer>(two.client).unwrap();
    assert!(viewer.viewing(two.network.now()).viewed < Duration::from_secs(5));
}

/// A player of 1000 bytes per second that starts and continues with 500 bytes.
fn player() -> Player {
    let enough = ByteCount::new(500);
    Player::new(Bandwidth::from_bytes_per_sec(1_000), enough, enough)
}

#[test]
fn a_player_starts_when_it_holds_the_first_frame() {
    let mut player = player();
    player.receive(at(100), 499);
    assert_eq!(player.viewing(at(0), at(200)).started, None);
    player.receive(at(300), 500);
    let viewing = player.viewing(at(0), at(400));
    assert_eq!(viewing.start_time(), Some(Duration::from_millis(300)));
    assert_eq!(viewing.viewed, Duration::from_millis(100));
    assert!(viewing.pauses.is_empty());
}

#[test]
fn a_player_pauses_when_it_is_dry_until_it_holds_enough() {
    let mut player = player();
    player.receive(at(0), 500);
    // Dry at 500 ms; 499 bytes are not enough, at 1 s there are 500.
    player.receive(at(700), 999);
    assert_eq!(
        player.viewing(at(0), at(800)).pauses,
        [Duration::from_millis(300)]
    );
    player.receive(at(1_000), 1_000);
    assert_eq!(
        player.viewing(at(0), at(1_100)).pauses,
        [Duration::from_millis(500)]
    );
    // Those are played at 1.5 s; data that arrive at that time are in time.
    player.receive(at(1_500), 1_200);
    player.receive(at(1_700), 1_300);
    let viewing = player.viewing(at(0), at(2_000));
    assert_eq!(viewing.pauses, [500, 200].map(Duration::from_millis));
    assert_eq!(viewing.viewed, Duration::from_secs(2));
}

proptest! {
    /// Played time and pauses make up the time of viewing, and no more is played than was received.
    #[test]
    fn playing_and_pausing_is_all(steps in prop::collection::vec((0u64..400, 0u64..400), 1..60)) {
        let mut player = player();
        let (mut now, mut received) = (0, 0);
        for (wait, bytes) in steps {
            now += wait;
            received += bytes;
            player.receive(at(now), received);
        }
        let viewing = player.viewing(at(0), at(now));
        let paused: Duration = viewing.pauses.iter().sum();
        prop_assert!(paused <= viewing.viewed);
        // A byte is a millisecond.
        let played = viewing.viewed.saturating_sub(paused).as_millis();
        prop_assert!(played <= u128::from(received));
        prop_assert_eq!(viewing.started.is_some(), received >= 500);
    }
}
