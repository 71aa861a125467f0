//! Limits on what the tunnels of one user pass, and on new tunnels to one target.

use std::num::NonZeroU64;
use std::time::{Duration, Instant};

use http::StatusCode;
use swiftwater_tunnel::client::{OpenError, TunnelClient};
use swiftwater_tunnel::ip::Scope;
use swiftwater_tunnel::policy::Prefix;
use swiftwater_tunnel::proxy::{
    Access, IpNetwork, Limits, ProxyConfig, SystemResolver, Token, TunnelProxy, UserLimit,
};
use swiftwater_tunnel::proxy_status::ProxyError;
use tokio::io::{AsyncReadExt, AsyncWriteExt, split};

use crate::network::Network;
use crate::packets::packet;
use crate::stage::{Stage, config, content, echo, guard, tcp_echo, token};

/// What a burst may have is earned in a quarter of a second.
const BURSTS_A_SECOND: u64 = 4;

fn limited(bytes: Option<u64>, packets: Option<u64>) -> ProxyConfig {
    let mut config = config();
    config.limits = Limits {
        user: UserLimit {
            bytes: bytes.and_then(NonZeroU64::new),
            packets: packets.and_then(NonZeroU64::new),
        },
        ..Limits::default()
    };
    // The limit on reflection is another one.
    config.reflection.per = Duration::ZERO;
    config
}

/// The most that a limit of `rate` lets pass since `start`.
fn most(rate: u64, start: Instant) -> u64 {
    rate / BURSTS_A_SECOND + (rate as f64 * start.elapsed().as_secs_f64()).ceil() as u64 + 1
}

async fn send(client: &TunnelClient, count: usize, len: usize) {
    let target = echo().await;
    let tunnel = client.open(&target).await.unwrap();
    for _ in 0..count {
        tunnel.send(&content(len as u32)).await.unwrap();
    }
    // It lasts until all has arrived.
    tokio::spawn(async move {
        let mut tunnel = tunnel;
        while tunnel.recv().await.is_ok() {}
    });
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn datagrams_of_all_tunnels_of_a_user_are_limited_together() {
    guard(async {
        let bob = Token::new("bob", "the-secret-of-another").unwrap();
        let mut config = limited(None, Some(80));
        config.access = Access::Tokens([token(), bob.clone()].into());
        let stage = Stage::with(config);
        let start = Instant::now();
        let alice = stage.client();
        send(&alice, 60, 100).await;
        send(&alice, 60, 100).await;
        let stats = stage
            .until(|stats| stats.datagrams_to_targets + stats.dropped_over_limit >= 120)
            .await;
        assert!(stats.datagrams_to_targets >= 80 / BURSTS_A_SECOND);
        assert!(stats.datagrams_to_targets <= most(80, start), "{stats:?}");
        // Another user has a limit of its own.
        let before = stats.datagrams_to_targets;
        send(&stage.client_with(Some(&bob)), 20, 100).await;
        stage
            .until(|stats| stats.datagrams_to_targets >= before + 20)
            .await;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn bytes_of_datagrams_are_limited() {
    guard(async {
        let stage = Stage::with(limited(Some(40_000), None));
        let start = Instant::now();
        send(&stage.client(), 60, 1000).await;
        let stats = stage
            .until(|stats| stats.datagrams_to_targets + stats.dropped_over_limit >= 60)
            .await;
        assert!(stats.bytes_to_targets >= 9_000, "{stats:?}");
        assert!(stats.bytes_to_targets <= most(40_000, start), "{stats:?}");
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn streams_wait_and_lose_nothing() {
    guard(async {
        let stage = Stage::with(limited(Some(1_000_000), None));
        let target = tcp_echo().await;
        let start = Instant::now();
        let tunnel = stage.client().open_tcp(&target).await.unwrap();
        let sent = content(1_250_000);
        let (mut reader, mut writer) = split(tunnel);
        let content = sent.clone();
        tokio::spawn(async move {
            writer.write_all(&content).await.unwrap();
            writer.shutdown().await.unwrap();
        });
        let mut received = Vec::new();
        reader.read_to_end(&mut received).await.unwrap();
        assert!(received == sent);
        // All but a burst, and the piece in which the limit was reached.
        assert!(start.elapsed() >= Duration::from_millis(800));
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn packets_of_ip_tunnels_are_limited() {
    guard(async {
        let mut config = limited(None, Some(40));
        config.policy.allowed = vec!["198.51.100.0/24".parse().unwrap()];
        let pools: [Prefix; 1] = ["10.9.0.0/24".parse().unwrap()];
        let network = IpNetwork::new(Network::silent(), &pools).unwrap();
        let proxy = TunnelProxy::with_network(config, SystemResolver, &network);
        let stage = Stage::serving(proxy);
        let start = Instant::now();
        let mut tunnel = stage.client().open_ip(&Scope::ANY).await.unwrap();
        tunnel.configured().await.unwrap();
        let own = tunnel.sender().addresses()[0].address();
        for _ in 0..60 {
            let to = "198.51.100.2".parse().unwrap();
            tunnel
                .send(&packet(own, to, 17, 9, b"one of many"))
                .await
                .unwrap();
        }
        let stats = stage
            .until(|stats| stats.datagrams_to_targets + stats.dropped_over_limit >= 60)
            .await;
        assert!(stats.datagrams_to_targets >= 10);
        assert!(stats.datagrams_to_targets <= most(40, start), "{stats:?}");
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn new_tunnels_to_one_target_are_limited() {
    guard(async {
        let mut config = config();
        config.limits.new_per_target = NonZeroU64::new(3);
        let stage = Stage::with(config);
        let client = stage.client();
        let start = Instant::now();
        let target = echo().await;
        let (mut tunnels, mut refused) = (Vec::new(), 0);
        for _ in 0..20 {
            match client.open(&target).await {
                Ok(tunnel) => tunnels.push(tunnel),
                Err(error) => {
                    assert_eq!(
                        error.proxy_error(),
                        Some(ProxyError::ConnectionLimitReached)
                    );
                    let busy = StatusCode::TOO_MANY_REQUESTS;
                    assert!(matches!(error, OpenError::Refused { status, .. } if status == busy));
                    refused += 1;
                }
            }
        }
        let most = 3 + (3.0 * start.elapsed().as_secs_f64()).ceil() as usize;
        assert!(
            refused > 0 && (3..=most).contains(&tunnels.len()),
            "{}",
            tunnels.len()
        );
        // Another address is another target.
        client.open(&"127.0.0.2:9".parse().unwrap()).await.unwrap();
        // What was refused takes no place.
        drop(tunnels);
        stage
            .until(|stats| stats.opened == stats.closed + 1 || stats.opened == stats.closed)
            .await;
    })
    .await;
}
