//! A socket that takes no datagrams stops what goes through it, and nothing else of its worker.

#![cfg(target_os = "linux")]

use std::collections::BTreeSet;
use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use crate::loopback::{LOOPBACK, NAME, configs, configs_with, echo, endpoint_config, guard, noise};
use swiftwater_net::quic::{ConnectionError, SocketId, TransportConfig};
use swiftwater_net::{Connection, Endpoint, EndpointOptions, SocketFaults};

/// Sockets, by their local address, whose every send is answered with `WouldBlock`.
#[derive(Debug, Default)]
struct Blocked(Mutex<BTreeSet<SocketAddr>>);

impl Blocked {
    fn set(&self, local: SocketAddr, blocked: bool) {
        let mut sockets = self.0.lock().unwrap();
        if blocked {
            sockets.insert(local);
        } else {
            sockets.remove(&local);
        }
    }
}

impl SocketFaults for Blocked {
    fn on_send(&self, _datagrams: usize, _size: usize) -> Option<io::Error> {
        None
    }

    fn on_send_from(&self, local: SocketAddr, _: usize, _: usize) -> Option<io::Error> {
        let blocked = self.0.lock().unwrap().contains(&local);
        blocked.then(|| io::ErrorKind::WouldBlock.into())
    }

    fn on_receive(&self) -> Option<io::Error> {
        None
    }
}

/// A client with two sockets, a connection on each, and an echoing server.
struct TwoSockets {
    client: Endpoint,
    _server: Endpoint,
    faults: Arc<Blocked>,
    /// On the first socket.
    first: Connection,
    first_address: SocketAddr,
    /// On the second one.
    second: Connection,
    second_socket: SocketId,
}

impl TwoSockets {
    async fn new(server: TransportConfig, client: TransportConfig) -> Self {
        let (server, config) = configs_with(server, client);
        let options = EndpointOptions::new(endpoint_config(1), [1; 32]).server(server);
        let server = Endpoint::bind(LOOPBACK.parse().unwrap(), options).unwrap();
        let accepting = server.clone();
        tokio::spawn(async move {
            while let Some(connection) = accepting.accept().await {
                tokio::spawn(echo(connection));
            }
        });
        let faults = Arc::new(Blocked::default());
        let mut options = EndpointOptions::new(endpoint_config(2), [2; 32]);
        options.faults = Some(faults.clone());
        let client = Endpoint::bind(LOOPBACK.parse().unwrap(), options).unwrap();
        let first_address = client.local_addr();
        let connect = async || {
            let address = server.local_addr();
            let connecting = client.connect(&config, address, NAME).unwrap();
            let connection = connecting.await.unwrap();
            connection.handshake_confirmed().await.unwrap();
            connection
        };
        let (first, second) = (connect().await, connect().await);
        let second_socket = client.add_socket(LOOPBACK.parse().unwrap()).unwrap();
        second.migrate(second_socket).await.unwrap();
        transfer(&first, 10_000).await;
        transfer(&second, 10_000).await;
        Self {
            client,
            _server: server,
            faults,
            first,
            first_address,
            second,
            second_socket,
        }
    }

    /// Blocks the first socket, with data of the first connection waiting.
    async fn block_first(&self) -> tokio::task::JoinHandle<()> {
        self.faults.set(self.first_address, true);
        let connection = self.first.clone();
        let waiting = tokio::spawn(async move { transfer(&connection, 300_000).await });
        // The data are with the worker, which finds the socket blocked.
        for _ in 0..100 {
            tokio::task::yield_now().await;
        }
        waiting
    }
}

async fn transfer(connection: &Connection, len: usize) {
    let data = noise(len, len as u64);
    let (mut send, mut recv) = connection.open_bi().await.unwrap();
    let writing = async {
        send.write_all(&data).await.unwrap();
        send.finish().unwrap();
    };
    let reading = async { recv.read_to_end(len).await.unwrap() };
    let ((), read) = tokio::join!(writing, reading);
    assert!(read == data, "{} of {len} bytes", read.len());
}

#[tokio::test]
async fn other_sockets_go_on_while_one_is_blocked() {
    guard(async {
        let config = TransportConfig::default();
        let both = TwoSockets::new(config.clone(), config).await;
        let errors = both.client.stats().send_errors;
        let waiting = both.block_first().await;
        transfer(&both.second, 2_000_000).await;
        assert!(!waiting.is_finished());
        // Nothing of what waited was dropped.
        both.faults.set(both.first_address, false);
        waiting.await.unwrap();
        assert_eq!(both.client.stats().send_errors, errors);
    })
    .await;
}

/// The client's idle timeout is the shorter one: it ends by the client's timer, which sends nothing.
#[tokio::test]
async fn timers_go_on_while_a_socket_is_blocked() {
    guard(async {
        let config = TransportConfig {
            max_idle_timeout: Some(Duration::from_millis(300)),
            ..TransportConfig::default()
        };
        let (server, client) = configs(config);
        let options = EndpointOptions::new(endpoint_config(1), [1; 32]).server(server);
        let server = Endpoint::bind(LOOPBACK.parse().unwrap(), options).unwrap();
        let faults = Arc::new(Blocked::default());
        let mut options = EndpointOptions::new(endpoint_config(2), [2; 32]);
        options.faults = Some(faults.clone());
        let endpoint = Endpoint::bind(LOOPBACK.parse().unwrap(), options).unwrap();
        let connecting = endpoint
            .connect(&client, server.local_addr(), NAME)
            .unwrap();
        let connection = connecting.await.unwrap();
        connection.handshake_confirmed().await.unwrap();
        faults.set(endpoint.local_addr(), true);
        let mut send = connection.open_uni().await.unwrap();
        send.write_all(&noise(100_000, 1)).await.unwrap();
        assert_eq!(connection.closed().await, ConnectionError::TimedOut);
    })
    .await;
}

/// A connection leaves a socket that is blocked: what validates the candidate path goes through another one.
#[tokio::test]
async fn a_connection_migrates_away_from_a_blocked_socket() {
    guard(async {
        let config = TransportConfig::default();
        let both = TwoSockets::new(config.clone(), config).await;
        let waiting = both.block_first().await;
        let path = both.first.migrate(both.second_socket).await.unwrap();
        assert_eq!(path.local.socket, both.second_socket);
        waiting.await.unwrap();
        transfer(&both.first, 100_000).await;
    })
    .await;
}
