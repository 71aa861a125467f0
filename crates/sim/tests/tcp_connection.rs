//! TCP connections in virtual time: handshake, slow start, recovery, timers, sharing.

use std::net::SocketAddr;
use std::time::Duration;

use swiftwater_link::{Buffer, Jitter, LinkConfig, LossModel};
use swiftwater_sim::apps::{TcpExchange, TcpExchangeServer};
use swiftwater_sim::tcp::{Config, ConnectionError, Expected, MSS, Segment, SenderStats};
use swiftwater_sim::{HostConfig, HostId, LinkId, LogDetail, Network, TapDatagram, Verdict};
use swiftwater_units::{Bandwidth, Instant};

use crate::support::join;

const RTT: Duration = Duration::from_millis(100);

/// Timers expire when they are due, and the peer's window never limits.
fn exact() -> Config {
    Config {
        receive_window: 10 << 20,
        max_receive_window: 10 << 20,
        tick: Duration::ZERO,
        ..Config::default()
    }
}

fn ms(count: u64) -> Duration {
    Duration::from_millis(count)
}

fn at(count: u64) -> Instant {
    Instant::from_millis(count)
}

/// A client and a server over two links.
struct World {
    network: Network,
    client: HostId,
    server: HostId,
    up: LinkId,
    down: LinkId,
    remote: SocketAddr,
}

impl World {
    fn new(seed: u64, up: LinkConfig, down: LinkConfig) -> Self {
        let mut network = Network::new(seed);
        let client = network.add_host(HostConfig::default());
        let server = network.add_host(HostConfig::default());
        let (up, down, remote) = join(&mut network, client, server, (up, down));
        network.set_tcp_server(server, Some(exact()));
        network.install(server, TcpExchangeServer::new());
        Self {
            network,
            client,
            server,
            up,
            down,
            remote,
        }
    }

    fn with_delay_only() -> Self {
        let link = LinkConfig::default().delay(RTT / 2);
        Self::new(1, link.clone(), link)
    }

    /// Requests `response` bytes at time zero; runs until `until`.
    fn run(&mut self, response: u64, until: u64) -> &TcpExchange {
        self.run_with(exact(), 100, response, until)
    }

    fn run_with(&mut self, config: Config, up: u64, down: u64, until: u64) -> &TcpExchange {
        let client = TcpExchange::new(config, self.remote, Instant::ZERO, (up, down));
        self.network.install(self.client, client);
        self.network.run_until(at(until));
        self.network.application(self.client).unwrap()
    }

    fn server_stats(&self) -> SenderStats {
        let handle = self.network.tcp_connections(self.server).next().unwrap();
        let connection = self.network.tcp(self.server, handle).unwrap();
        connection.sender().unwrap().stats()
    }

    /// Drops those segments with payload on the way down whose number, from 0, is in `which`.
    fn drop_data(&mut self, which: &'static [u64]) {
        let mut number = 0;
        self.network.tap(self.down, move |datagram| {
            let is_data = !segment(datagram).payload.is_empty();
            let is_dropped = is_data && which.contains(&number);
            number += u64::from(is_data);
            if is_dropped {
                Verdict::Drop
            } else {
                Verdict::Pass
            }
        });
    }
}

fn segment(datagram: &TapDatagram<'_>) -> Segment {
    Segment::decode(datagram.data, Expected::default())
        .unwrap()
        .0
}

fn finish(exchange: &TcpExchange) -> Duration {
    let exchange = exchange.exchange();
    assert!(exchange.verified);
    exchange.duration().unwrap()
}

#[test]
fn the_handshake_takes_a_round_trip_and_a_small_response_another() {
    let mut world = World::with_delay_only();
    let exchange = world.run(1000, 1000);
    assert_eq!(exchange.handshake(), Some(RTT));
    assert_eq!(finish(exchange), 2 * RTT);
    assert_eq!(
        exchange.exchange().first_byte,
        Some(Instant::ZERO + 2 * RTT)
    );
}

#[test]
fn slow_start_doubles_the_initial_window_of_ten() {
    // 10, 20, 40 segments: so much arrives within 2, 3, 4 round trips.
    for (segments, rounds) in [(10, 2), (11, 3), (30, 3), (31, 4), (70, 4), (71, 5)] {
        let mut world = World::with_delay_only();
        let took = finish(world.run(segments * MSS, 3000));
        assert_eq!(took, rounds * RTT, "{segments} segments");
    }
}

#[test]
fn packets_have_their_true_size_on_the_link() {
    let rate = Bandwidth::from_mbps(12);
    let link = LinkConfig::default().rate(rate).delay(RTT / 2);
    let mut world = World::new(1, link.clone(), link);
    let took = finish(world.run(10 * MSS, 3000));
    // SYN and SYN-ACK of 60 bytes, ACK of 52, request of 52 + 116; ACK of 52, ten packets of 1500.
    let bytes = 60 + 60 + 52 + 168 + 52 + 10 * 1500;
    assert_eq!(took, 2 * RTT + rate.time_to_send(bytes));
}

#[test]
fn the_default_window_grows_with_what_is_read() {
    // 10 MB at 50 Mbit/s need 610 kB in flight, and a window of 80 kB would take 12 s.
    let link = LinkConfig::default()
        .rate(Bandwidth::from_mbps(50))
        .delay(RTT / 2);
    let mut world = World::new(1, link.clone(), link);
    let took = finish(world.run_with(Config::default(), 100, 10_000_000, 20_000));
    assert!(took < Duration::from_secs(3), "{took:?}");
}

#[test]
fn a_lost_syn_is_repeated_after_a_second() {
    for lost in 1..=3_u64 {
        let mut world = World::with_delay_only();
        world.network.tap(world.up, move |datagram| {
            if datagram.index < lost {
                Verdict::Drop
            } else {
                Verdict::Pass
            }
        });
        let exchange = world.run(1000, 20_000);
        assert_eq!(exchange.handshake(), Some(ms(1000 * lost) + RTT), "{lost}");
    }
}

#[test]
fn without_linear_timeouts_the_timeout_of_the_syn_doubles() {
    let mut world = World::with_delay_only();
    world.network.tap(world.up, |datagram| {
        if datagram.index < 3 {
            Verdict::Drop
        } else {
            Verdict::Pass
        }
    });
    let config = Config {
        syn_linear_timeouts: 0,
        ..exact()
    };
    let exchange = world.run_with(config, 100, 1000, 20_000);
    assert_eq!(exchange.handshake(), Some(ms(1000 + 2000 + 4000) + RTT));
}

#[test]
fn a_lost_syn_ack_is_repeated() {
    let mut world = World::with_delay_only();
    world.network.tap(world.down, |datagram| {
        if datagram.index == 0 {
            Verdict::Drop
        } else {
            Verdict::Pass
        }
    });
    let handshake = world.run(1000, 20_000).handshake().unwrap();
    assert!(
        handshake >= ms(1000) && handshake <= ms(1000) + RTT,
        "{handshake:?}"
    );
}

#[test]
fn without_an_answer_the_connection_fails() {
    let mut world = World::with_delay_only();
    world.network.tap(world.up, |_| Verdict::Drop);
    let config = Config {
        syn_retries: 2,
        syn_linear_timeouts: 0,
        ..exact()
    };
    let exchange = world.run_with(config, 100, 1000, 6_999);
    assert_eq!(exchange.error(), None);
    world.network.run_until(at(7_001));
    let exchange: &TcpExchange = world.network.application(world.client).unwrap();
    assert_eq!(exchange.error(), Some(ConnectionError::NoAnswer));
}

#[test]
fn a_host_that_does_not_listen_resets() {
    let mut world = World::with_delay_only();
    world.network.set_tcp_server(world.server, None);
    assert_eq!(world.run(1000, 1000).error(), Some(ConnectionError::Reset));
}

#[test]
fn a_connection_that_the_server_forgot_is_reset() {
    let mut world = World::with_delay_only();
    world.run(10_000_000, 500);
    world.network.restart(world.server);
    world.network.run_for(ms(500));
    let exchange: &TcpExchange = world.network.application(world.client).unwrap();
    assert_eq!(exchange.error(), Some(ConnectionError::Reset));
}

#[test]
fn a_loss_is_repaired_within_a_round_trip_without_a_timeout() {
    let mut world = World::with_delay_only();
    world.drop_data(&[3]);
    // Ten segments in the first round; the repetition takes one round trip more.
    let took = finish(world.run(10 * MSS, 3000));
    assert_eq!(took, 3 * RTT);
    let stats = world.server_stats();
    assert_eq!(
        (stats.recoveries, stats.timeouts, stats.loss_probes),
        (1, 0, 0)
    );
    assert_eq!(stats.retransmissions, 1);
}

#[test]
fn a_lost_tail_is_repaired_by_a_probe_before_the_timeout() {
    let mut world = World::with_delay_only();
    world.drop_data(&[9]);
    let took = finish(world.run(10 * MSS, 3000));
    let stats = world.server_stats();
    assert_eq!((stats.timeouts, stats.loss_probes), (0, 1));
    // The other nine are acknowledged at 250 ms. Then one is in flight, whose acknowledgement may be
    // delayed: the probe leaves when the timeout would expire, after 100 + 200 ms.
    assert_eq!(took, ms(250 + 300 + 50));
}

#[test]
fn of_a_longer_lost_tail_the_last_segment_probes_after_two_round_trips() {
    let mut world = World::with_delay_only();
    world.drop_data(&[7, 8, 9]);
    let took = finish(world.run(10 * MSS, 3000));
    let stats = world.server_stats();
    assert_eq!((stats.timeouts, stats.loss_probes), (0, 1));
    // Acknowledgements at 250 ms, the probe 202 ms later; its acknowledgement shows two losses after a
    // round trip, of which one leaves at once and the other is let out by its acknowledgement, or both
    // after the time for reordering.
    assert!(took < ms(250 + 202 + 200 + 100), "{took:?}");
}

#[test]
fn a_lost_repetition_waits_for_the_timeout_and_timeouts_double() {
    let mut world = World::with_delay_only();
    // The only segment, its probe, and two repetitions.
    world.drop_data(&[0, 1, 2, 3]);
    let took = finish(world.run(1000, 20_000));
    let stats = world.server_stats();
    assert_eq!((stats.loss_probes, stats.timeouts), (1, 3));
    // The round trip is 100 ms and the timeout 300 ms: a probe, then timeouts of 300, 600, 1200 ms.
    assert!(took > ms(2100) && took < ms(3000), "{took:?}");
}

#[test]
fn a_connection_whose_peer_falls_silent_fails() {
    let mut world = World::with_delay_only();
    world.network.tap(world.up, |datagram| {
        if datagram.index > 2 {
            Verdict::Drop
        } else {
            Verdict::Pass
        }
    });
    let config = Config {
        retries: 4,
        ..exact()
    };
    let server = Some(config.clone());
    world.network.set_tcp_server(world.server, server);
    let exchange = world.run_with(config, 100_000, 1000, 60_000);
    assert_eq!(exchange.error(), Some(ConnectionError::TimedOut));
}

#[test]
fn a_single_segment_is_acknowledged_after_40_ms_once_quick_acknowledgements_are_used_up() {
    // The application's last segment is pushed and acknowledged at once, so a full segment in the middle
    // is looked for: the 17th, as the second of a pair is lost.
    let mut world = World::with_delay_only();
    let recording = world.network.record(world.up);
    world.drop_data(&[17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29]);
    let config = Config {
        receive_window: 60_000,
        max_receive_window: 60_000,
        ..exact()
    };
    world.run_with(config, 100, 30 * MSS, 3000);
    let arrival = 3 * RTT;
    let acks = recording.datagrams();
    let late = acks.iter().find(|ack| {
        let (segment, _) = Segment::decode(&ack.data, Expected::default()).unwrap();
        segment.ack.is_some_and(|ack| ack.next == 17 * MSS)
    });
    assert_eq!(late.unwrap().at, Instant::ZERO + arrival + ms(40));
}

#[test]
fn an_idle_connection_returns_to_the_initial_window() {
    for (restart, segments_at_once) in [(true, 10), (false, 40)] {
        let config = Config {
            slow_start_after_idle: restart,
            ..exact()
        };
        assert_eq!(segments_after_idle(config), segments_at_once, "{restart}");
    }
}

/// Sends for three rounds, pauses for ten seconds, and counts what is sent at once then.
fn segments_after_idle(config: Config) -> usize {
    let mut world = World::with_delay_only();
    world.network.set_tcp_server(world.server, Some(config));
    let exchange = TcpExchange::new(exact(), world.remote, Instant::ZERO, (100, 30 * MSS));
    world.network.install(world.client, exchange.keep_open());
    world.network.run_until(at(10_000));
    let recording = world.network.record(world.down);
    let handle = world.network.tcp_connections(world.server).next().unwrap();
    world.network.with_host(world.server, |host| {
        let connection = host.tcp(handle).unwrap();
        connection.write(&vec![0; 200 * MSS as usize]);
    });
    world.network.run_for(ms(10));
    recording.len()
}

#[test]
fn every_byte_arrives_over_a_path_that_loses_duplicates_reorders_and_corrupts() {
    for seed in 0..20 {
        let mut link = LinkConfig::default()
            .rate(Bandwidth::from_mbps(10))
            .delay(ms(20))
            .jitter(Jitter::Uniform(ms(10)))
            .loss(LossModel::Bernoulli(0.05))
            .duplicate(0.05)
            .corrupt(0.05);
        link.jitter_reorders = true;
        let mut world = World::new(seed, link.clone(), link);
        let exchange = world.run_with(exact(), 50_000, 200_000, 300_000);
        let took = finish(exchange);
        assert!(took < Duration::from_secs(100), "{took:?}");
    }
}

#[test]
fn the_same_seed_gives_the_same_run() {
    let digest = |seed| {
        let link = LinkConfig::default()
            .rate(Bandwidth::from_mbps(10))
            .delay(ms(20))
            .loss(LossModel::Bernoulli(0.03));
        let mut world = World::new(seed, link.clone(), link);
        world.network.start_log(LogDetail {
            entries: false,
            content: true,
        });
        world.run(500_000, 60_000);
        world.network.log().unwrap().digest()
    };
    assert_eq!(digest(1), digest(1));
    assert_ne!(digest(1), digest(2));
}

#[test]
fn two_connections_share_a_bottleneck() {
    let mut network = Network::new(3);
    let (left, right) = (network.add_router(), network.add_router());
    let bottleneck = LinkConfig::default()
        .rate(Bandwidth::from_mbps(10))
        .delay(ms(20))
        .bdp_rtt(ms(40))
        .buffer(Buffer::Bdp(1.0));
    let back = LinkConfig::default().delay(ms(20));
    network.add_link(left, right, bottleneck).unwrap();
    network.add_link(right, left, back).unwrap();
    let mut clients = Vec::new();
    for flow in 0..2_u8 {
        let server = network.add_host(HostConfig::default());
        let client = network.add_host(HostConfig::default());
        let remote = SocketAddr::from(([10, 0, 1, flow], 443));
        let local = SocketAddr::from(([10, 0, 2, flow], 49_152));
        // So that packets of both flows do not arrive in step.
        let access = LinkConfig::default().jitter(Jitter::Uniform(ms(1)));
        network
            .attach(server, remote, left, access.clone(), access.clone())
            .unwrap();
        network
            .attach(client, local, right, access.clone(), access)
            .unwrap();
        network.set_tcp_server(server, Some(exact()));
        network.install(server, TcpExchangeServer::new());
        let start = at(500 * u64::from(flow));
        let exchange = TcpExchange::new(exact(), remote, start, (100, 1 << 30));
        network.install(client, exchange);
        clients.push(client);
    }
    network.run_until(at(60_000));
    let bytes = clients.iter().map(|client| {
        let exchange: &TcpExchange = network.application(*client).unwrap();
        exchange.received() as f64
    });
    let bytes: Vec<f64> = bytes.collect();
    let total: f64 = bytes.iter().sum();
    assert!(total > 0.85 * 75e6, "{bytes:?}");
    let squares: f64 = bytes.iter().map(|bytes| bytes * bytes).sum();
    // Jain's index.
    assert!(total * total / (2.0 * squares) > 0.95, "{bytes:?}");
}

#[test]
fn timers_of_the_kernel_are_late() {
    let mut world = World::with_delay_only();
    world.network.tap(world.up, |datagram| {
        if datagram.index < 1 {
            Verdict::Drop
        } else {
            Verdict::Pass
        }
    });
    let exchange = world.run_with(Config::default(), 100, 1000, 20_000);
    // A second is 250 ticks of 4 ms: the timer expires at the next multiple of eight ticks.
    assert_eq!(exchange.handshake(), Some(ms(1024) + RTT));
}

#[test]
fn a_handshake_with_two_repetitions_starts_with_a_window_of_one() {
    let mut world = World::with_delay_only();
    world.network.tap(world.up, |datagram| {
        if datagram.index < 2 {
            Verdict::Drop
        } else {
            Verdict::Pass
        }
    });
    // The client's window: 10 segments take four rounds instead of one.
    let exchange = world.run_with(exact(), 10 * MSS, 1000, 20_000);
    let took = finish(exchange);
    assert_eq!(took, ms(2000) + RTT + 4 * RTT);
}

#[test]
fn the_receiver_counts_segments_that_come_ahead_of_a_gap() {
    let mut world = World::with_delay_only();
    world.drop_data(&[5]);
    world.run(10 * MSS, 2000);
    let exchange: &TcpExchange = world.network.application(world.client).unwrap();
    let handle = exchange.handle().unwrap();
    let connection = world.network.tcp(world.client, handle).unwrap();
    let received = connection.received();
    // The last four of the initial window, and then the repetition.
    assert_eq!((received.data_segments, received.out_of_order), (10, 4));
    assert!((10 * MSS..=10 * MSS + 1).contains(&received.bytes));
    let rtt = connection.smoothed_rtt().unwrap();
    assert!((RTT..RTT + ms(45)).contains(&rtt), "{rtt:?}");
}
