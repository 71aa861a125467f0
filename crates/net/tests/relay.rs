//! The relay between two endpoints.

mod common;

use std::time::Duration;

use common::{LOOPBACK, NAME, Pair, echo, guard, noise};
use swiftwater_link::{EcnThreshold, LinkConfig, LossModel};
use swiftwater_net::Connection;
use swiftwater_net::relay::{Relay, RelayConfig, RelayError};
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
async fn through(relay: impl FnOnce(&mut RelayConfig)) -> (Pair, Relay) {
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
        })
        .await;
        let connection = connect(&pair, &relay).await;
        transfer(&connection, 1 << 20).await;
        let path = connection.stats().paths[0].clone();
        assert!(path.lost_packets.get() > 0);
        assert!(
            path.min_rtt >= Duration::from_millis(4),
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
async fn clients_are_told_apart() {
    guard(async {
        let (pair, relay) = through(|_| {}).await;
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
        let (pair, relay) = through(|config| config.max_clients = 1).await;
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

/// The server follows when the relay behaves like a NAT that forgot.
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

/// Marks made by the link arrive at the peer, which reports them.
#[tokio::test]
async fn ecn_marks_pass() {
    guard(async {
        let (pair, relay) = through(|config| {
            config.up = LinkConfig::default()
                .rate(Bandwidth::from_mbps(20))
                .ecn_threshold(EcnThreshold::Packets(2.into()));
        })
        .await;
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
async fn mistakes_are_told() {
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
