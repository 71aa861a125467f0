//! Thousands of connections on one socket.

use std::time::Duration;

use crate::loopback::{NAME, Pair, guard};
use swiftwater_net::Connection;
use swiftwater_net::quic::TransportConfig;
use tokio::task::JoinSet;

const CONNECTIONS: usize = 2000;
/// Handshakes in progress at once.
const AT_ONCE: usize = 40;

/// Echoes a few bytes that no other connection sends.
async fn say(connection: &Connection, n: usize) {
    let text = format!("I am number {n}");
    let (mut send, mut recv) = connection.open_bi().await.unwrap();
    send.write_all(text.as_bytes()).await.unwrap();
    send.finish().unwrap();
    assert_eq!(recv.read_to_end(100).await.unwrap(), text.as_bytes());
}

/// Echoes streams one after the other.
async fn answer(connection: Connection) {
    while let Ok((mut send, mut recv)) = connection.accept_bi().await {
        let Ok(text) = recv.read_to_end(100).await else {
            return;
        };
        let _ = send.write_all(&text).await;
        let _ = send.finish();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_thousand_connections_live_on_one_socket() {
    guard(async {
        // No connection may become idle while the others are still on their way.
        let pair = Pair::with(TransportConfig {
            max_idle_timeout: Some(Duration::from_secs(600)),
            initial_rtt: Duration::from_millis(50),
            ..TransportConfig::default()
        });
        let server = pair.server.clone();
        let acceptor = tokio::spawn(async move {
            let mut accepted = 0;
            while let Some(connection) = server.accept().await {
                accepted += 1;
                tokio::spawn(answer(connection));
            }
            accepted
        });
        let connect = |n| {
            let connecting = pair
                .client
                .connect(&pair.config, pair.server.local_addr(), NAME);
            async move {
                let connection = connecting.unwrap().await.unwrap();
                say(&connection, n).await;
                (n, connection)
            }
        };
        let mut open: Vec<Option<Connection>> = vec![None; CONNECTIONS];
        let mut attempts = JoinSet::new();
        for n in 0..CONNECTIONS {
            if attempts.len() >= AT_ONCE {
                let (n, connection) = attempts.join_next().await.unwrap().unwrap();
                open[n] = Some(connection);
            }
            attempts.spawn(connect(n));
        }
        for (n, connection) in attempts.join_all().await {
            open[n] = Some(connection);
        }

        // All are there at the same time, at both ends, and every one of them still works.
        assert_eq!(pair.client.stats().connections, CONNECTIONS);
        assert_eq!(pair.server.stats().connections, CONNECTIONS);
        for (n, connection) in open.iter().enumerate() {
            say(connection.as_ref().unwrap(), n).await;
        }
        assert_eq!(pair.server.stats().routing.accepted, CONNECTIONS as u64);
        drop(open);
        pair.shut_down().await;
        assert_eq!(acceptor.await.unwrap(), CONNECTIONS);
    })
    .await;
}
