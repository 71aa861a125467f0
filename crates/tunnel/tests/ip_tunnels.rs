//! Tunnels for IP packets through a proxy on loopback (RFC 9484), into a network within the test.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::time::Duration;

use http::StatusCode;
use swiftwater_net::quic::TransportConfig;
use swiftwater_tunnel::client::{
    FromIpTunnel, IpTunnel, SendPacketError, TunnelClient, TunnelError,
};
use swiftwater_tunnel::ip::{AddressRange, IpHeader, Scope};
use swiftwater_tunnel::policy::Prefix;
use swiftwater_tunnel::proxy::{
    IpNetwork, Limits, NetworkError, ProxyConfig, SystemResolver, TunnelProxy,
};
use tokio::time::timeout;

use crate::network::Network;
use crate::packets::{is_valid_icmp, packet};
use crate::stage::{Names, Stage, config, guard, refused};

const UDP: u8 = 17;
const TCP: u8 = 6;

fn ip(text: &str) -> IpAddr {
    text.parse().unwrap()
}

fn prefixes(texts: &[&str]) -> Vec<Prefix> {
    texts.iter().map(|text| text.parse().unwrap()).collect()
}

/// A proxy whose tunnels lead into `network`, and reach 198.51.100.0/24 and 2001:db8:1::/48 as well as public
/// addresses.
fn ip_config() -> ProxyConfig {
    let mut config = config();
    config.policy.allowed = prefixes(&["198.51.100.0/24", "2001:db8:1::/48"]);
    config.policy.denied = prefixes(&["198.51.100.66", "2001:db8:1::66"]);
    config
}

fn stage(network: &Network, pools: &[&str]) -> Stage {
    stage_with(ip_config(), network, pools)
}

fn stage_with(config: ProxyConfig, network: &Network, pools: &[&str]) -> Stage {
    let names = BTreeMap::from([("host.example", vec!["198.51.100.2:0".parse().unwrap()])]);
    let network = IpNetwork::new(network.clone(), &prefixes(pools)).unwrap();
    Stage::serving(TunnelProxy::with_network(config, Names(names), &network))
}

async fn open(client: &TunnelClient, target: &str, protocol: &str) -> IpTunnel {
    let scope = Scope::new(target, protocol).unwrap();
    client.open_ip(&scope).await.unwrap()
}

/// The tunnel, and its addresses once there are `count`.
async fn opened(
    client: &TunnelClient,
    target: &str,
    protocol: &str,
    count: usize,
) -> (IpTunnel, Vec<IpAddr>) {
    let mut tunnel = open(client, target, protocol).await;
    while tunnel.sender().addresses().len() < count {
        tunnel.recv().await.unwrap();
    }
    tunnel.configured().await.unwrap();
    let addresses = tunnel.sender().addresses();
    (tunnel, addresses.iter().map(Prefix::address).collect())
}

async fn next_packet(tunnel: &mut IpTunnel) -> Vec<u8> {
    loop {
        if let FromIpTunnel::Packet(packet) = tunnel.recv().await.unwrap() {
            return packet.to_vec();
        }
    }
}

async fn refusal(client: &TunnelClient, target: &str) -> (StatusCode, String) {
    refused(client.open_ip(&Scope::new(target, "*").unwrap()).await)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn packets_of_both_versions_go_there_and_back() {
    guard(async {
        let network = Network::echo();
        let stage = stage(&network, &["10.9.0.0/24", "fd00:9::/64"]);
        let (mut tunnel, addresses) = opened(&stage.client(), "*", "*", 2).await;
        assert_eq!(addresses, [ip("10.9.0.2"), ip("fd00:9::2")]);
        for (from, to) in [
            (addresses[0], ip("198.51.100.2")),
            (addresses[1], ip("2001:db8:1::2")),
        ] {
            for len in [0, 1, 500, 1200] {
                let content = vec![len as u8; len];
                let sent = packet(from, to, UDP, 64, &content);
                tunnel.send(&sent).await.unwrap();
                // The client takes one hop, the proxy another; the network sends back what it got.
                let expected = packet(to, from, UDP, 62, &content);
                assert_eq!(next_packet(&mut tunnel).await, expected);
            }
        }
        let stats = stage.proxy.stats();
        assert_eq!((stats.opened, stats.datagrams_to_targets), (1, 8));
        drop(tunnel);
        stage.until(|stats| stats.closed == 1).await;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn routes_are_those_of_the_policy_and_the_scope() {
    guard(async {
        let stage = stage(&Network::echo(), &["10.9.0.0/24"]);
        let mut tunnel = open(&stage.client(), "198.51.100.64/29", "17").await;
        tunnel.configured().await.unwrap();
        let routes = tunnel.sender().routes();
        let range = |first, last| AddressRange::new(ip(first), ip(last)).unwrap();
        let advertised: Vec<_> = routes
            .as_slice()
            .iter()
            .map(|route| (route.addresses, route.protocol))
            .collect();
        let expected = [
            (range("198.51.100.64", "198.51.100.65"), UDP),
            (range("198.51.100.67", "198.51.100.71"), UDP),
        ];
        assert_eq!(advertised, expected);
        let (_all, addresses) = opened(&stage.client(), "*", "*", 1).await;
        assert_eq!(addresses, [ip("10.9.0.3")]);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_network_itself_is_reached_only_if_it_is_allowed() {
    guard(async {
        for (allowed, is_reached) in [(&[][..], false), (&["9.8.0.0/15"], true)] {
            let mut config = ip_config();
            config.policy.allowed = prefixes(allowed);
            let stage = stage_with(config, &Network::echo(), &["9.9.9.0/24"]);
            let mut tunnel = open(&stage.client(), "*", "*").await;
            tunnel.configured().await.unwrap();
            let routes = tunnel.sender().routes();
            assert!(routes.allow(ip("9.9.8.255"), TCP));
            for own in ["9.9.9.1", "9.9.9.2", "9.9.9.9"] {
                assert_eq!(routes.allow(ip(own), TCP), is_reached, "{own}");
            }
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_name_is_a_scope_of_its_addresses() {
    guard(async {
        let network = Network::echo();
        let stage = stage(&network, &["10.9.0.0/24", "fd00:9::/64"]);
        let (mut tunnel, addresses) = opened(&stage.client(), "host.example", "*", 1).await;
        let sent = packet(addresses[0], ip("198.51.100.2"), TCP, 9, b"x");
        tunnel.send(&sent).await.unwrap();
        next_packet(&mut tunnel).await;
        let other = packet(addresses[0], ip("198.51.100.3"), TCP, 9, b"x");
        let sent = tunnel.send(&other).await;
        assert!(matches!(sent, Err(SendPacketError::NoRoute)), "{sent:?}");
        let (status, why) = refusal(&stage.client(), "unknown.example").await;
        assert_eq!(status, StatusCode::BAD_GATEWAY);
        assert!(why.contains("dns_error"), "{why}");
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn requests_are_refused() {
    guard(async {
        let network = Network::echo();
        let v4_only = stage(&network, &["10.9.0.0/24"]);
        let client = v4_only.client();
        for (target, status, error) in [
            (
                "198.51.100.66",
                StatusCode::FORBIDDEN,
                "destination_ip_prohibited",
            ),
            (
                "10.0.0.0/8",
                StatusCode::FORBIDDEN,
                "destination_ip_prohibited",
            ),
            (
                "2001:db8:1::/48",
                StatusCode::BAD_GATEWAY,
                "destination_ip_unroutable",
            ),
        ] {
            let (refused, why) = refusal(&client, target).await;
            assert_eq!(refused, status, "{target}");
            assert!(why.contains(error), "{target}: {why}");
        }
        let (status, _) = refusal(&v4_only.client_with(None), "*").await;
        assert_eq!(status, StatusCode::PROXY_AUTHENTICATION_REQUIRED);
        // A proxy without a network.
        let (status, _) = refusal(&Stage::new().client(), "*").await;
        assert_eq!(status, StatusCode::NOT_IMPLEMENTED);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn addresses_are_given_back() {
    guard(async {
        let network = Network::echo();
        // Four addresses: the network's, the proxy's, one for a tunnel, the broadcast address.
        let stage = stage(&network, &["10.9.0.0/30"]);
        let client = stage.client();
        for closed in 1..4 {
            let (tunnel, addresses) = opened(&client, "*", "*", 1).await;
            assert_eq!(addresses, [ip("10.9.0.2")]);
            let (status, why) = refusal(&client, "*").await;
            assert_eq!(status, StatusCode::SERVICE_UNAVAILABLE);
            assert!(why.contains("connection_limit_reached"), "{why}");
            drop(tunnel);
            stage.until(|stats| stats.closed == closed).await;
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tunnels_share_the_limits_of_the_others() {
    guard(async {
        let limits = Limits {
            tunnels_per_user: 1,
            ..Limits::default()
        };
        let config = ProxyConfig {
            limits,
            ..ip_config()
        };
        let stage = stage_with(config, &Network::echo(), &["10.9.0.0/24"]);
        let client = stage.client();
        let _tunnel = open(&client, "*", "*").await;
        let (status, _) = refusal(&client, "*").await;
        assert_eq!(status, StatusCode::TOO_MANY_REQUESTS);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tunnels_get_only_their_own_packets() {
    guard(async {
        let network = Network::echo();
        let stage = stage(&network, &["10.9.0.0/24"]);
        let client = stage.client();
        let (mut one, of_one) = opened(&client, "*", "*", 1).await;
        let (mut two, of_two) = opened(&client, "*", "*", 1).await;
        assert_ne!(of_one, of_two);
        let peer = ip("198.51.100.2");
        network.deliver(packet(peer, of_two[0], UDP, 9, b"two"));
        network.deliver(packet(peer, ip("10.9.0.99"), UDP, 9, b"nobody"));
        network.deliver(packet(peer, of_one[0], UDP, 9, b"one"));
        assert_eq!(next_packet(&mut one).await[20..], *b"one");
        assert_eq!(next_packet(&mut two).await[20..], *b"two");
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn clients_check_what_they_send() {
    guard(async {
        let network = Network::echo();
        let stage = stage(&network, &["10.9.0.0/24"]);
        let (tunnel, addresses) = opened(&stage.client(), "*", "17", 1).await;
        tunnel.sender();
        let (own, peer) = (addresses[0], ip("198.51.100.2"));
        let sent = tunnel
            .send(&packet(ip("10.9.0.9"), peer, UDP, 9, b"x"))
            .await;
        assert!(matches!(sent, Err(SendPacketError::Source)), "{sent:?}");
        let sent = tunnel.send(&packet(own, peer, TCP, 9, b"x")).await;
        assert!(matches!(sent, Err(SendPacketError::NoRoute)), "{sent:?}");
        let sent = tunnel.send(b"no packet").await;
        assert!(matches!(sent, Err(SendPacketError::Packet(_))), "{sent:?}");
        for (kind, code, packet) in [
            (11, 0, packet(own, peer, UDP, 1, b"x")),
            (3, 4, packet(own, peer, UDP, 9, &[0; 4000])),
        ] {
            let Err(SendPacketError::Forwarding { reply, .. }) = tunnel.send(&packet).await else {
                panic!("forwarded");
            };
            let reply = reply.unwrap();
            assert_eq!(reply[20..22], [kind, code]);
            assert!(is_valid_icmp(&reply));
        }
        assert_eq!(stage.proxy.stats().datagrams_to_targets, 0);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn senders_in_the_network_hear_what_does_not_fit_or_has_no_hops_left() {
    guard(async {
        let network = Network::silent();
        let stage = stage(&network, &["10.9.0.0/24", "fd00:9::/64"]);
        let (tunnel, addresses) = opened(&stage.client(), "*", "*", 2).await;
        let sender = tunnel.sender();
        for (own, router, peer, header, codes) in [
            (
                addresses[0],
                ip("10.9.0.1"),
                ip("198.51.100.2"),
                20,
                [[11, 0], [3, 4]],
            ),
            (
                addresses[1],
                ip("fd00:9::1"),
                ip("2001:db8:1::2"),
                40,
                [[3, 0], [2, 0]],
            ),
        ] {
            let expired = packet(peer, own, UDP, 1, b"x");
            let large = packet(peer, own, UDP, 9, &[0; 4000]);
            for (packet, code) in [expired, large].into_iter().zip(codes) {
                network.deliver(packet.clone());
                let message = network.sent().await;
                let read = IpHeader::parse(&message).unwrap();
                assert_eq!((read.source, read.destination), (router, peer));
                assert_eq!(message[header..header + 2], code);
                assert!(is_valid_icmp(&message));
                assert_eq!(message[header + 8..], packet[..message.len() - header - 8]);
                if packet.len() > 4000 {
                    let mtu = u16::from_be_bytes([message[header + 6], message[header + 7]]);
                    assert!((1200..4000).contains(&mtu), "{mtu}");
                }
            }
        }
        assert_eq!(stage.proxy.stats().dropped_large, 2);
        drop(sender);
    })
    .await;
}

/// A connection that never looks for larger packets carries less than IPv6 needs.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn links_too_small_for_ipv6_have_none() {
    guard(async {
        let small = |pools: &[&str]| {
            let network = IpNetwork::new(Network::silent(), &prefixes(pools)).unwrap();
            let transport = TransportConfig {
                mtu_discovery: None,
                ..TransportConfig::default()
            };
            let proxy = TunnelProxy::with_network(ip_config(), SystemResolver, &network);
            Stage::over(transport, proxy)
        };
        let (dual, single) = (
            small(&["10.9.0.0/24", "fd00:9::/64"]),
            small(&["fd00:9::/64"]),
        );
        let ipv6_only = async {
            let mut tunnel = open(&single.client(), "*", "*").await;
            let end = loop {
                if let Err(error) = tunnel.recv().await {
                    break error;
                }
            };
            assert!(matches!(end, TunnelError::Broken(_)), "{end:?}");
            assert!(tunnel.sender().addresses().is_empty());
        };
        let with_ipv4 = async {
            let (mut tunnel, addresses) = opened(&dual.client(), "*", "*", 1).await;
            assert_eq!(addresses, [ip("10.9.0.2")]);
            let ids = tunnel
                .sender()
                .request(&prefixes(&["::/128"]))
                .await
                .unwrap();
            let refused = loop {
                if let FromIpTunnel::Addresses(addresses) = tunnel.recv().await.unwrap()
                    && let [_, refused] = addresses[..]
                {
                    break refused;
                }
            };
            assert!(refused.is_refusal() && refused.request_id == ids[0]);
        };
        tokio::join!(ipv6_only, with_ipv4);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn unused_tunnels_stay() {
    guard(async {
        let limits = Limits {
            idle_timeout: Duration::from_millis(50),
            ..Limits::default()
        };
        let config = ProxyConfig {
            limits,
            ..ip_config()
        };
        let stage = stage_with(config, &Network::silent(), &["10.9.0.0/24"]);
        let mut tunnel = open(&stage.client(), "*", "*").await;
        tunnel.configured().await.unwrap();
        // That timeout is for tunnels that are opened again with the next datagram, at no other address of the client.
        assert!(
            timeout(Duration::from_millis(300), tunnel.recv())
                .await
                .is_err()
        );
        assert_eq!(stage.proxy.stats().closed, 0);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_device_that_fails_ends_all_tunnels() {
    guard(async {
        let network = Network::silent();
        let stage = stage(&network, &["10.9.0.0/24"]);
        let client = stage.client();
        let (mut tunnel, _) = opened(&client, "*", "*", 1).await;
        network.fail();
        loop {
            match tunnel.recv().await {
                Ok(_) => {}
                Err(error) => {
                    assert!(matches!(error, TunnelError::Broken(_)), "{error:?}");
                    break;
                }
            }
        }
        let (status, _) = refusal(&client, "*").await;
        assert_eq!(status, StatusCode::BAD_GATEWAY);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn clients_may_ask_for_addresses() {
    guard(async {
        let stage = stage(&Network::echo(), &["10.9.0.0/24"]);
        let (mut tunnel, own) = opened(&stage.client(), "*", "*", 1).await;
        let wanted = prefixes(&["0.0.0.0/32", "::/128", "10.9.0.7"]);
        let ids = tunnel.sender().request(&wanted).await.unwrap();
        let answer = loop {
            if let FromIpTunnel::Addresses(addresses) = tunnel.recv().await.unwrap()
                && addresses.len() == 3
            {
                break addresses;
            }
        };
        for (id, prefix) in ids
            .iter()
            .zip([&Prefix::single(own[0]), &wanted[1], &wanted[0]])
        {
            let entry = answer.iter().find(|entry| entry.request_id == *id).unwrap();
            assert_eq!(entry.prefix, *prefix);
            assert_eq!(entry.is_refusal(), *prefix != Prefix::single(own[0]));
        }
        assert_eq!(tunnel.sender().addresses(), [Prefix::single(own[0])]);
    })
    .await;
}

#[test]
fn networks_have_addresses_for_tunnels() {
    let network = |pools: &[&str]| IpNetwork::new(Network::silent(), &prefixes(pools)).map(drop);
    assert_eq!(network(&[]), Err(NetworkError::Empty));
    assert_eq!(
        network(&["10.0.0.0/24", "10.1.0.0/24"]),
        Err(NetworkError::Twice)
    );
    for small in ["10.0.0.0/31", "10.0.0.1", "fd00::/127"] {
        let error = NetworkError::Small(small.parse().unwrap());
        assert_eq!(network(&[small]), Err(error));
    }
    assert_eq!(network(&["fd00::/126", "10.0.0.0/30"]), Ok(()));
    let both = prefixes(&["fd00::5/64", "10.0.0.0/30"]);
    let both = IpNetwork::new(Network::silent(), &both).unwrap();
    assert_eq!(both.own_addresses(), [ip("fd00::1"), ip("10.0.0.1")]);
    let _ = TunnelProxy::with_network(config(), SystemResolver, &both);
}
