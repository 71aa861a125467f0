//! Tunnels of one client behind a slow link: what one floods does not displace what the others carry.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use swiftwater_link::{LinkConfig, Rate};
use swiftwater_net::relay::{Relay, RelayConfig};
use swiftwater_tunnel::client::TunnelClient;
use swiftwater_tunnel::target::{Target, Template};
use swiftwater_units::Bandwidth;
use tokio::net::UdpSocket;
use tokio::time::{Instant, interval, timeout};

use crate::stage::{NAME, Stage, echo, guard, target, token};

/// Datagrams that a flood sends every 2 ms: three times what the link carries.
const BURST: usize = 7;

/// A link of 10 Mbit/s from the proxy to the client.
fn slow(stage: &Stage) -> Relay {
    let any = SocketAddr::from(([127, 0, 0, 1], 0));
    let mut through = RelayConfig::new(any, stage.server_end.local_addr());
    through.down = LinkConfig {
        rate: Rate::Constant(Bandwidth::from_mbps(10)),
        delay: Duration::from_millis(5),
        ..LinkConfig::default()
    };
    Relay::start(through).unwrap()
}

/// A target that sends datagrams of `len` bytes without end to who sent it one.
async fn flood(len: usize) -> Target {
    let socket = UdpSocket::bind("127.0.0.1:0").await.unwrap();
    let address = socket.local_addr().unwrap();
    tokio::spawn(async move {
        let (_, to) = socket.recv_from(&mut [0; 16]).await.unwrap();
        let mut ticks = interval(Duration::from_millis(2));
        let payload = vec![7; len];
        loop {
            ticks.tick().await;
            for _ in 0..BURST {
                let _ = socket.send_to(&payload, to).await;
            }
        }
    });
    target(address)
}

/// Opens a tunnel to a flood, and counts the bytes that come through it.
async fn flooded(client: &TunnelClient, len: usize) -> Arc<AtomicU64> {
    let mut tunnel = client.open(&flood(len).await).await.unwrap();
    let received = Arc::new(AtomicU64::new(0));
    let counted = Arc::clone(&received);
    tunnel.send(b"begin").await.unwrap();
    tokio::spawn(async move {
        while let Ok(payload) = tunnel.recv().await {
            counted.fetch_add(payload.len() as u64, Ordering::Relaxed);
        }
    });
    received
}

fn client(stage: &Stage, relay: &Relay) -> TunnelClient {
    let template = Template::new(NAME).unwrap();
    let connector = stage.connector_to(relay.local_addr());
    TunnelClient::new(template, Some(&token()), connector)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_quiet_tunnel_beside_a_flood_loses_nothing() {
    guard(async {
        let stage = Stage::new();
        let relay = slow(&stage);
        let client = client(&stage, &relay);
        let mut quiet = client.open(&echo().await).await.unwrap();
        let received = flooded(&client, 1_100).await;
        // Until the flood has filled the queue.
        tokio::time::sleep(Duration::from_secs(1)).await;
        let mut answered = 0;
        for number in 0..100_u32 {
            quiet.send(&number.to_be_bytes()).await.unwrap();
            let until = Instant::now() + Duration::from_millis(20);
            while let Ok(payload) = tokio::time::timeout_at(until, quiet.recv()).await {
                payload.unwrap();
                answered += 1;
            }
        }
        while let Ok(payload) = timeout(Duration::from_secs(1), quiet.recv()).await {
            payload.unwrap();
            answered += 1;
        }
        assert!(received.load(Ordering::Relaxed) > 500_000);
        // The link itself may lose some: its queue is full as well.
        assert!(answered >= 90, "{answered}");
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_floods_get_equal_shares() {
    guard(async {
        let stage = Stage::new();
        let relay = slow(&stage);
        let client = client(&stage, &relay);
        // The first one has the queue for itself before the second one begins.
        let first = flooded(&client, 1_100).await;
        tokio::time::sleep(Duration::from_millis(500)).await;
        let second = flooded(&client, 700).await;
        tokio::time::sleep(Duration::from_secs(1)).await;
        let before = [&first, &second].map(|count| count.load(Ordering::Relaxed));
        tokio::time::sleep(Duration::from_secs(2)).await;
        let after = [&first, &second].map(|count| count.load(Ordering::Relaxed));
        let [a, b] = [0, 1].map(|nth| (after[nth] - before[nth]) as f64);
        let jain = (a + b) * (a + b) / (2.0 * (a * a + b * b));
        assert!(jain >= 0.95, "{a} {b}: {jain}");
    })
    .await;
}
