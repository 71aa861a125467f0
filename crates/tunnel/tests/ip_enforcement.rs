//! What a proxy for IP enforces against clients that do not check anything themselves: source addresses (BCP 38), scope,
//! policy, the form of capsules.

use std::net::IpAddr;
use std::time::Duration;

use bytes::Bytes;
use http::{Method, Request, StatusCode};
use http_body_util::Empty;
use swiftwater_http::h3::ConnectProtocol;
use swiftwater_http::h3::capsule::{Capsule, CapsuleReader};
use swiftwater_http::udp::connect::{ConnectContent, HttpDatagrams};
use swiftwater_tunnel::CONNECT_IP;
use swiftwater_tunnel::context::{self, ContextId};
use swiftwater_tunnel::ip::{IpCapsule, IpHeader};
use swiftwater_tunnel::policy::Prefix;
use swiftwater_tunnel::proxy::{IpNetwork, SystemResolver, TunnelProxy};

use crate::network::Network;
use crate::packets::{is_valid_icmp, packet};
use crate::stage::{NAME, Stage, config, guard, token};

const UDP: u8 = 17;
const TCP: u8 = 6;

fn ip(text: &str) -> IpAddr {
    text.parse().unwrap()
}

/// A proxy whose tunnels get addresses of 10.9.0.0/24, and reach 198.51.100.0/24 but 198.51.100.66.
fn stage(network: &Network) -> Stage {
    let mut config = config();
    config.policy.allowed = vec!["198.51.100.0/24".parse().unwrap()];
    config.policy.denied = vec!["198.51.100.66".parse().unwrap()];
    let pools = ["10.9.0.0/24".parse().unwrap()];
    let network = IpNetwork::new(network.clone(), &pools).unwrap();
    Stage::serving(TunnelProxy::with_network(config, SystemResolver, &network))
}

/// A client that sends what it likes.
struct RawClient {
    datagrams: HttpDatagrams,
    content: ConnectContent,
    capsules: CapsuleReader,
    piece: Bytes,
}

impl RawClient {
    async fn open(stage: &Stage, variables: &str) -> Self {
        let path = format!("/.well-known/masque/ip/{variables}/");
        let request = Request::get(format!("https://{NAME}{path}"))
            .header("proxy-authorization", token().credentials().unwrap())
            .body(())
            .unwrap();
        let protocol = ConnectProtocol::new(CONNECT_IP).unwrap();
        let pending = stage.connect().await.connect(protocol, request).await;
        let pending = pending.unwrap();
        let datagrams = pending.datagrams().clone();
        let answer = pending.response().await.unwrap();
        assert_eq!(answer.status(), StatusCode::OK);
        assert_eq!(answer.headers()["capsule-protocol"], "?1");
        Self {
            datagrams,
            content: answer.into_body(),
            capsules: CapsuleReader::new(1 << 16),
            piece: Bytes::new(),
        }
    }

    fn send(&self, packet: &[u8]) {
        let datagram = context::encode(ContextId::UDP, packet);
        self.datagrams.try_send(&datagram).unwrap();
    }

    async fn receive(&self) -> Bytes {
        loop {
            let datagram = self.datagrams.recv().await.unwrap();
            let (context, packet) = context::decode(datagram).unwrap();
            if context == ContextId::UDP {
                return packet;
            }
        }
    }

    async fn capsule(&mut self) -> IpCapsule {
        loop {
            if let Some(capsule) = self.capsules.next(&mut self.piece) {
                return IpCapsule::decode(&capsule).unwrap().unwrap();
            }
            self.piece = self.content.receive.read().await.unwrap().unwrap();
        }
    }

    /// Waits for routes and addresses; returns the address.
    async fn address(&mut self) -> IpAddr {
        loop {
            if let IpCapsule::AddressAssign(addresses) = self.capsule().await {
                return addresses[0].prefix.address();
            }
        }
    }

    async fn write(&mut self, capsule_type: u64, value: &[u8]) {
        let value = Bytes::copy_from_slice(value);
        let mut out = Vec::new();
        Capsule {
            capsule_type,
            value,
        }
        .encode(&mut out);
        self.content.send.write(out.into()).await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn packets_from_other_addresses_do_not_pass() {
    guard(async {
        let network = Network::silent();
        let stage = stage(&network);
        let mut one = RawClient::open(&stage, "*/*").await;
        let mut two = RawClient::open(&stage, "*/*").await;
        let (own, other) = (one.address().await, two.address().await);
        let peer = ip("198.51.100.2");
        for spoofed in [other, ip("10.9.0.1"), ip("1.1.1.1"), peer, ip("0.0.0.0")] {
            one.send(&packet(spoofed, peer, UDP, 9, b"spoofed"));
        }
        one.send(&packet(
            ip("fd00::2"),
            ip("2a00::1"),
            UDP,
            9,
            b"of no address",
        ));
        one.send(b"no packet");
        let passing = packet(own, peer, UDP, 9, b"own");
        one.send(&passing);
        assert_eq!(network.sent().await, passing);
        let stats = stage.proxy.stats();
        assert_eq!((stats.dropped_forbidden, stats.dropped_unknown), (6, 1));
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn destinations_are_within_policy_and_scope() {
    guard(async {
        let network = Network::silent();
        let stage = stage(&network);
        let mut client = RawClient::open(&stage, "198.51.100.0%2F24/17").await;
        let own = client.address().await;
        for (to, protocol) in [
            ("198.51.100.66", UDP),
            ("127.0.0.1", UDP),
            ("169.254.169.254", UDP),
            ("1.1.1.1", UDP),
            ("224.0.0.5", UDP),
            ("198.51.100.2", TCP),
        ] {
            let denied = packet(own, ip(to), protocol, 9, b"denied");
            client.send(&denied);
            if ip(to).is_multicast() {
                // There are no errors about packets to groups (RFC 1812, section 4.3.2.7).
                continue;
            }
            let message = client.receive().await;
            let header = IpHeader::parse(&message).unwrap();
            assert_eq!((header.source, header.destination), (ip("10.9.0.1"), own));
            assert_eq!(message[20..22], [3, 13], "{to}");
            assert!(is_valid_icmp(&message));
            assert_eq!(message[28..], denied);
        }
        for passing in [
            packet(own, ip("198.51.100.2"), UDP, 9, b"udp"),
            packet(own, ip("198.51.100.2"), 1, 9, &[8, 0, 0, 0]),
        ] {
            client.send(&passing);
            assert_eq!(network.sent().await, passing);
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn packets_from_outside_the_scope_do_not_come() {
    guard(async {
        let network = Network::silent();
        let stage = stage(&network);
        let mut client = RawClient::open(&stage, "198.51.100.2/17").await;
        let own = client.address().await;
        network.deliver(packet(ip("198.51.100.3"), own, UDP, 9, b"other"));
        network.deliver(packet(ip("198.51.100.2"), own, TCP, 9, b"other"));
        // A router on the way.
        network.deliver(packet(ip("192.0.2.9"), own, 1, 9, &[11, 0, 0, 0]));
        network.deliver(packet(ip("198.51.100.2"), own, UDP, 9, b"own"));
        assert_eq!(
            IpHeader::parse(&client.receive().await).unwrap().protocol,
            1
        );
        assert_eq!(client.receive().await[20..], *b"own");
        assert_eq!(stage.proxy.stats().dropped_forbidden, 2);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn packets_may_come_in_capsules_beside_others() {
    guard(async {
        let network = Network::silent();
        let stage = stage(&network);
        let mut client = RawClient::open(&stage, "*/*").await;
        let own = client.address().await;
        let passing = packet(own, ip("198.51.100.2"), UDP, 9, b"in a capsule");
        client.write(0x29 * 5 + 0x17, b"grease").await;
        client.write(3, &[4, 10, 0, 0, 0, 10, 0, 0, 9, 0]).await;
        client.write(1, &[]).await;
        let datagram = context::encode(ContextId::UDP, &passing);
        client.write(0, &datagram).await;
        assert_eq!(network.sent().await, passing);
        client.content.send.finish().unwrap();
        stage.until(|stats| stats.closed == 1).await;
        assert_eq!(client.content.receive.read().await.unwrap(), None);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn malformed_capsules_reset_the_stream() {
    guard(async {
        let network = Network::silent();
        let stage = stage(&network);
        let too_long = vec![0; 70_000];
        let malformed: [(u64, &[u8]); 5] = [
            (1, &[0, 5]),
            (2, &[]),
            (2, &[0, 4, 0, 0, 0, 0, 32]),
            (3, &[4, 9, 0, 0, 0, 1, 0, 0, 0, 0]),
            (3, &too_long),
        ];
        for (closed, (capsule_type, value)) in (1..).zip(malformed) {
            let mut client = RawClient::open(&stage, "*/*").await;
            client.address().await;
            client.write(capsule_type, value).await;
            stage.until(|stats| stats.closed == closed).await;
            client.content.receive.read().await.unwrap_err();
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn requests_are_read_before_anything_else() {
    guard(async {
        let stage = stage(&Network::silent());
        let connection = stage.connect().await;
        let status = |variables: &str| {
            let path = format!("/.well-known/masque/ip/{variables}");
            let request = Request::get(format!("https://{NAME}{path}")).body(());
            let protocol = ConnectProtocol::new(CONNECT_IP).unwrap();
            let connection = connection.clone();
            async move {
                let pending = connection.connect(protocol, request.unwrap()).await;
                pending.unwrap().response().await.unwrap().status()
            }
        };
        for malformed in ["", "*/300/", "*/tcp/", "10.0.0.1%2F8/*/", "a..b/*/"] {
            assert_eq!(status(malformed).await, StatusCode::BAD_REQUEST);
        }
        let unauthenticated = status("*/*/").await;
        assert_eq!(unauthenticated, StatusCode::PROXY_AUTHENTICATION_REQUIRED);
        let request = Request::builder()
            .method(Method::GET)
            .uri(format!("https://{NAME}/.well-known/masque/ip/*/*/"))
            .body(Empty::<Bytes>::new())
            .unwrap();
        let answer = connection.send(request).await.unwrap();
        assert_eq!(answer.status(), StatusCode::BAD_REQUEST);
        assert_eq!(stage.proxy.stats().opened, 0);
    })
    .await;
}

#[test]
fn prefixes_have_a_first_and_a_last_address() {
    for (text, first, last) in [
        ("10.1.2.3/8", "10.0.0.0", "10.255.255.255"),
        ("0.0.0.0/0", "0.0.0.0", "255.255.255.255"),
        ("10.1.2.3", "10.1.2.3", "10.1.2.3"),
        ("::/0", "::", "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff"),
        (
            "2001:db8::9/64",
            "2001:db8::",
            "2001:db8::ffff:ffff:ffff:ffff",
        ),
    ] {
        let prefix: Prefix = text.parse().unwrap();
        assert_eq!((prefix.first(), prefix.last()), (ip(first), ip(last)));
    }
    assert_eq!(Prefix::new(ip("10.0.0.0"), 33), None);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn icmp_errors_of_a_tunnel_are_limited() {
    guard(async {
        let network = Network::silent();
        let stage = stage(&network);
        let mut client = RawClient::open(&stage, "*/*").await;
        let own = client.address().await;
        let start = std::time::Instant::now();
        for _ in 0..300 {
            client.send(&packet(own, ip("198.51.100.66"), UDP, 9, b"denied"));
        }
        stage.until(|stats| stats.dropped_forbidden == 300).await;
        let most = 50 + start.elapsed().as_millis() as usize / 10 + 1;
        // What is permitted comes behind the messages.
        let mut messages = 0;
        let quiet = Duration::from_millis(500);
        while tokio::time::timeout(quiet, client.receive()).await.is_ok() {
            messages += 1;
        }
        assert!(
            (50..=most).contains(&messages),
            "{messages} of at most {most}"
        );
    })
    .await;
}
