//! Requests over TLS 1.3 and HTTP/2 on the simulated TCP, and the same over QUIC.

use std::sync::Arc;
use std::time::Duration;

use swiftwater_link::{Buffer, LinkConfig, LossModel};
use swiftwater_quic::{ClientConfig, ServerConfig, TransportConfig};
use swiftwater_sim::apps::{
    Exchange, HttpsConfig, MAX_RECORD, Protocol, WebClient, WebRequest, WebServer,
};
use swiftwater_sim::tcp::{Config, Expected, Segment};
use swiftwater_sim::{Cipher, HostConfig, HostId, LinkId, Network, Verdict};
use swiftwater_units::{Bandwidth, Instant};

use crate::support::join;

const RTT: Duration = Duration::from_millis(100);

/// Timers of TCP expire when they are due.
fn https() -> HttpsConfig {
    HttpsConfig {
        tcp: Config {
            tick: Duration::ZERO,
            ..Config::default()
        },
        ..HttpsConfig::default()
    }
}

fn ms(count: u64) -> Duration {
    Duration::from_millis(count)
}

fn at(count: u64) -> Instant {
    Instant::from_millis(count)
}

struct World {
    network: Network,
    client: HostId,
    server: HostId,
    up: LinkId,
    down: LinkId,
}

impl World {
    fn new(seed: u64, link: LinkConfig, https: &HttpsConfig, plan: Vec<WebRequest>) -> Self {
        let mut network = Network::new(seed);
        let transport = Arc::new(TransportConfig::default());
        let (client_crypto, crypto) = Cipher::Null.crypto().unwrap();
        let server = network.add_host(HostConfig {
            server: Some(Arc::new(ServerConfig::new(crypto, Arc::clone(&transport)))),
            ..HostConfig::default()
        });
        let client = network.add_host(HostConfig::default());
        let links = (link.clone(), link);
        let (up, down, remote) = join(&mut network, client, server, links);
        network.set_tcp_server(server, Some(https.tcp.clone()));
        network.install(server, WebServer::new(https.clone()));
        let quic = ClientConfig {
            crypto: client_crypto,
            transport,
        };
        network.install(client, WebClient::new(quic, https.clone(), remote, plan));
        Self {
            network,
            client,
            server,
            up,
            down,
        }
    }

    fn with_delay_only(plan: Vec<WebRequest>) -> Self {
        let link = LinkConfig::default().delay(RTT / 2);
        Self::new(1, link, &https(), plan)
    }

    /// Runs until `until`, and returns all results.
    fn run(&mut self, until: u64) -> Vec<Exchange> {
        self.network.run_until(at(until));
        let client: &WebClient = self.network.application(self.client).unwrap();
        client.exchanges().map(|(_, exchange)| exchange).collect()
    }

    fn client(&self) -> &WebClient {
        self.network.application(self.client).unwrap()
    }

    /// Drops the data segment down that carries the stream's byte number `offset`, once.
    fn drop_byte(&mut self, offset: u64) {
        let mut is_dropped = false;
        self.network.tap(self.down, move |datagram| {
            let Some((segment, _)) = Segment::decode(datagram.data, Expected::default()) else {
                return Verdict::Pass;
            };
            if is_dropped || !segment.payload.contains(&offset) {
                return Verdict::Pass;
            }
            is_dropped = true;
            Verdict::Drop
        });
    }
}

fn get(protocol: Protocol, millis: u64, response_len: u64) -> WebRequest {
    WebRequest {
        at: at(millis),
        protocol,
        request_len: 0,
        response_len,
    }
}

fn duration(exchange: &Exchange) -> Duration {
    assert!(exchange.verified, "{exchange:?}");
    exchange.duration().unwrap()
}

#[test]
fn the_first_response_over_tcp_takes_three_round_trips_and_over_quic_two() {
    for (protocol, rounds) in [(Protocol::Tcp, 3), (Protocol::Quic, 2)] {
        let mut world = World::with_delay_only(vec![get(protocol, 0, 1000)]);
        let exchanges = world.run(2000);
        assert_eq!(duration(&exchanges[0]), rounds * RTT, "{protocol:?}");
        assert_eq!(exchanges[0].first_byte, exchanges[0].finish);
    }
}

#[test]
fn further_requests_use_the_connection_and_take_one_round_trip() {
    for protocol in [Protocol::Tcp, Protocol::Quic] {
        let plan = vec![get(protocol, 0, 1000), get(protocol, 1000, 1000)];
        let mut world = World::with_delay_only(plan);
        let exchanges = world.run(3000);
        assert_eq!(duration(&exchanges[1]), RTT, "{protocol:?}");
    }
}

#[test]
fn a_handshake_of_more_than_the_initial_window_takes_another_round_trip() {
    let mut https = https();
    https.tls.server_flight = 20_000;
    let link = LinkConfig::default().delay(RTT / 2);
    let mut world = World::new(1, link, &https, vec![get(Protocol::Tcp, 0, 1000)]);
    assert_eq!(duration(&world.run(2000)[0]), 4 * RTT);
}

#[test]
fn a_resumed_handshake_carries_no_certificates() {
    let bytes = |resumes| {
        let https = HttpsConfig { resumes, ..https() };
        let link = LinkConfig::default().delay(RTT / 2);
        let mut world = World::new(1, link, &https, vec![get(Protocol::Tcp, 0, 1000)]);
        let recording = world.network.record(world.down);
        assert_eq!(duration(&world.run(2000)[0]), 3 * RTT);
        recording.bytes()
    };
    let tls = https().tls;
    let saved = (tls.server_flight - tls.resumed_server_flight) as u64;
    let difference = bytes(false) - bytes(true);
    assert!(
        difference >= saved && difference < saved + 200,
        "{difference}"
    );
}

#[test]
fn a_request_body_arrives_before_the_response_begins() {
    let plan = vec![WebRequest {
        request_len: 100_000,
        ..get(Protocol::Tcp, 0, 1000)
    }];
    let mut world = World::with_delay_only(plan);
    let exchanges = world.run(5000);
    // 100 kB are 70 segments: 10, 20 and 40 after the two round trips of the handshakes.
    assert!(duration(&exchanges[0]) >= 4 * RTT);
    let server: &WebServer = world.network.application(world.server).unwrap();
    assert_eq!((server.tcp().answered(), server.tcp().damaged()), (1, 0));
}

#[test]
fn concurrent_responses_take_turns() {
    let plan = (0..4).map(|_| get(Protocol::Tcp, 0, 1_000_000)).collect();
    let link = LinkConfig::default()
        .rate(Bandwidth::from_mbps(20))
        .delay(ms(10));
    let mut world = World::new(1, link, &https(), plan);
    let exchanges = world.run(10_000);
    let times: Vec<_> = exchanges.iter().map(duration).collect();
    let (least, most) = (times.iter().min().unwrap(), times.iter().max().unwrap());
    // All end within the time of a few frames.
    assert!(*most > ms(1600), "{most:?}");
    assert!(*most < *least + ms(60), "{times:?}");
}

#[test]
fn one_lost_packet_holds_back_every_response() {
    // 64 kB each: the packet that is lost belongs to the first of four responses.
    let plan: Vec<_> = (0..4).map(|_| get(Protocol::Tcp, 1000, 60_000)).collect();
    let plan = [vec![get(Protocol::Tcp, 0, 1000)], plan].concat();
    let link = || {
        LinkConfig::default()
            .rate(Bandwidth::from_mbps(20))
            .delay(RTT / 2)
    };
    let mut without = World::new(1, link(), &https(), plan.clone());
    let without = without.run(10_000);
    let mut with = World::new(1, link(), &https(), plan);
    // Somewhere in the first frame of the first response.
    with.drop_byte(20_000);
    let with = with.run(10_000);
    for (without, with) in without.iter().zip(&with).skip(2) {
        let late = duration(with).saturating_sub(duration(without));
        assert!(late >= RTT * 8 / 10, "{late:?}");
    }
}

#[test]
fn a_record_is_of_use_only_when_whole() {
    // At 1 Mbit/s a record of 16 KiB takes 130 ms: the first byte of the body can't be earlier.
    let link = LinkConfig::default()
        .rate(Bandwidth::from_mbps(1))
        .delay(ms(10));
    let mut world = World::new(
        1,
        link,
        &https(),
        vec![get(Protocol::Tcp, 0, MAX_RECORD as u64 - 9)],
    );
    world.drop_byte(12_000);
    let exchange = world.run(5000)[0];
    assert!(duration(&exchange) > ms(130));
    // Head and body are two records.
    assert!(exchange.first_byte < exchange.finish);
}

#[test]
fn a_failed_connection_fails_its_requests_and_the_next_one_opens_another() {
    let https = HttpsConfig {
        tcp: Config {
            syn_retries: 1,
            syn_linear_timeouts: 0,
            ..https().tcp
        },
        ..https()
    };
    let plan = vec![get(Protocol::Tcp, 0, 1000), get(Protocol::Tcp, 5000, 1000)];
    let link = LinkConfig::default().delay(RTT / 2);
    let mut world = World::new(1, link, &https, plan);
    world.network.tap(world.up, |datagram| {
        if datagram.now < at(4000) {
            Verdict::Drop
        } else {
            Verdict::Pass
        }
    });
    let exchanges = world.run(10_000);
    assert_eq!(exchanges[0].failed, Some(at(3000)));
    assert_eq!(exchanges[0].finish, None);
    assert_eq!(duration(&exchanges[1]), 3 * RTT);
    assert_eq!(world.client().tcp().connections(), 2);
}

#[test]
fn requests_can_be_made_from_outside_over_either_protocol() {
    let mut world = World::with_delay_only(Vec::new());
    for protocol in [Protocol::Tcp, Protocol::Quic, Protocol::Tcp] {
        let made = world
            .network
            .with_application(world.client, |client: &mut WebClient, host| {
                client.request(host, protocol, (10, 1_000))
            });
        world.network.run_for(Duration::from_secs(1));
        let exchange = world.client().exchange(made.unwrap()).unwrap();
        assert!(exchange.verified, "{protocol:?}");
    }
    let durations: Vec<_> = world.run(3000).iter().map(duration).collect();
    assert_eq!(durations, [3 * RTT, 2 * RTT, RTT]);
}

#[test]
fn both_protocols_share_a_bottleneck_with_verified_contents() {
    let plan = vec![
        get(Protocol::Tcp, 0, 5_000_000),
        get(Protocol::Quic, 0, 5_000_000),
    ];
    let link = LinkConfig::default()
        .rate(Bandwidth::from_mbps(20))
        .delay(ms(20))
        .bdp_rtt(ms(40))
        .buffer(Buffer::Bdp(1.0))
        .loss(LossModel::Bernoulli(0.001));
    let mut world = World::new(5, link, &https(), plan);
    let exchanges = world.run(60_000);
    let times: Vec<_> = exchanges.iter().map(duration).collect();
    let both = Bandwidth::from_mbps(20).time_to_send(10_000_000);
    assert!(*times.iter().max().unwrap() > both, "{times:?}");
    assert!(*times.iter().min().unwrap() > both / 2, "{times:?}");
}

#[test]
fn udp_may_be_blocked_where_tcp_passes() {
    let plan = vec![get(Protocol::Quic, 0, 1000), get(Protocol::Tcp, 0, 1000)];
    let mut world = World::with_delay_only(plan);
    world.network.tap(world.up, |datagram| {
        if datagram.tcp_port.is_none() {
            Verdict::Drop
        } else {
            Verdict::Pass
        }
    });
    let exchanges = world.run(60_000);
    assert!(exchanges[0].failed.is_some());
    assert_eq!(duration(&exchanges[1]), 3 * RTT);
}

#[test]
fn after_the_end_of_a_connection_a_request_opens_another() {
    for (protocol, rounds) in [(Protocol::Tcp, 3), (Protocol::Quic, 2)] {
        let plan = vec![get(protocol, 0, 1000), get(protocol, 2000, 1000)];
        let mut world = World::with_delay_only(plan);
        world.run(1000);
        world
            .network
            .with_application(world.client, |client: &mut WebClient, host| {
                client.close(host, protocol);
            });
        let exchanges = world.run(4000);
        for exchange in exchanges {
            assert_eq!(duration(&exchange), rounds * RTT, "{protocol:?}");
        }
    }
}

#[test]
fn requests_fail_when_their_connection_is_ended() {
    for protocol in [Protocol::Tcp, Protocol::Quic] {
        let mut world = World::with_delay_only(vec![get(protocol, 0, 50_000_000)]);
        world.run(600);
        world
            .network
            .with_application(world.client, |client: &mut WebClient, host| {
                client.close(host, protocol);
            });
        let exchange = world.run(1000)[0];
        assert_eq!(exchange.failed, Some(at(600)), "{protocol:?}");
        assert_eq!(exchange.finish, None);
    }
}

/// When three responses of 60 kB at 4 Mbit/s are complete, ms after the first one.
fn ends_of_three(protocol: Protocol, in_order: bool) -> Vec<u64> {
    let https = HttpsConfig {
        in_order,
        ..https()
    };
    let link = LinkConfig::default()
        .rate(Bandwidth::from_mbps(4))
        .delay(ms(10));
    let request = WebRequest {
        at: Instant::ZERO,
        protocol,
        request_len: 0,
        response_len: 60_000,
    };
    let exchanges = World::new(1, link, &https, vec![request; 3]).run(5_000);
    let ends: Vec<Instant> = exchanges.iter().map(|each| each.finish.unwrap()).collect();
    ends.iter()
        .map(|end| end.saturating_since(ends[0]).as_millis() as u64)
        .collect()
}

#[test]
fn responses_are_sent_in_order_or_take_turns() {
    // Each needs 120 ms of the link.
    for protocol in [Protocol::Quic, Protocol::Tcp] {
        let in_order = ends_of_three(protocol, true);
        assert!(
            (100..150).contains(&in_order[1]),
            "{protocol:?}: {in_order:?}"
        );
        assert!(
            (200..300).contains(&in_order[2]),
            "{protocol:?}: {in_order:?}"
        );
        let in_turns = ends_of_three(protocol, false);
        assert!(in_turns[2] < 100, "{protocol:?}: {in_turns:?}");
    }
}
