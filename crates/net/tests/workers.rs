//! A server with several workers on one port.

#![cfg(any(target_os = "linux", target_os = "android"))]

use std::net::UdpSocket;
use std::sync::Arc;
use std::time::Duration;

use crate::loopback::{LOOPBACK, NAME, Pair, configs, echo, endpoint_config, guard, noise};
use swiftwater_link::LinkConfig;
use swiftwater_net::quic::{
    ClientConfig, ConnectionError, QuicLbCids, QuicLbCodec, QuicLbFormat, RandomCids, RetryPolicy,
    ServerConfig, TransportConfig,
};
use swiftwater_net::relay::{Relay, RelayConfig};
use swiftwater_net::{BindError, Connection, Endpoint, EndpointOptions};
use swiftwater_tls::Aes128Block;
use swiftwater_units::Bandwidth;

fn transport() -> TransportConfig {
    TransportConfig {
        initial_rtt: Duration::from_millis(50),
        ..TransportConfig::default()
    }
}

fn options(server: ServerConfig) -> EndpointOptions {
    EndpointOptions::new(endpoint_config(1), [1; 32])
        .server(server)
        .workers(2)
}

/// A server with two workers that echoes, and what clients need to connect.
fn echo_server() -> (Endpoint, ClientConfig) {
    let (server, client) = configs(transport());
    let server = Endpoint::bind(LOOPBACK.parse().unwrap(), options(server)).unwrap();
    let accepting = server.clone();
    tokio::spawn(async move {
        while let Some(connection) = accepting.accept().await {
            tokio::spawn(echo(connection));
        }
    });
    (server, client)
}

fn client(n: u8) -> Endpoint {
    Endpoint::client(LOOPBACK.parse().unwrap(), endpoint_config(2), [n; 32]).unwrap()
}

async fn transfer(connection: &Connection, len: usize, seed: u64) {
    let data = noise(len, seed);
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

/// Each client from a port of its own, as the system spreads them by their addresses.
async fn connect_all(
    server: &Endpoint,
    config: &ClientConfig,
    n: u8,
) -> Vec<(Endpoint, Connection)> {
    let mut all = Vec::new();
    for n in 0..n {
        let client = client(n);
        let connecting = client.connect(config, server.local_addr(), NAME).unwrap();
        all.push((client, connecting.await.unwrap()));
    }
    all
}

#[tokio::test]
async fn clients_are_spread_and_stay() {
    guard(async {
        let (server, config) = echo_server();
        let clients = connect_all(&server, &config, 64).await;
        for (n, (_, connection)) in clients.iter().enumerate() {
            transfer(connection, 3000, n as u64).await;
        }
        let workers = server.worker_stats();
        assert_eq!(workers.len(), 2);
        for worker in &workers {
            // 32 on average; fewer than 8 would happen once in 10^10 runs.
            assert!(worker.routing.accepted >= 8, "{workers:?}");
            assert_eq!(worker.connections, worker.routing.accepted as usize);
            assert_eq!((worker.handed_over, worker.routing.handed_over), (0, 0));
            assert!(worker.datagrams_received > 0 && worker.datagrams_sent > 0);
        }
        let all = server.stats();
        assert_eq!((all.connections, all.routing.accepted), (64, 64));
        let sent: u64 = workers.iter().map(|worker| worker.datagrams_sent).sum();
        assert!(all.datagrams_sent >= sent);

        // Closing reaches the connections of all workers, with code and reason.
        server.close(9, b"maintenance");
        for (_, connection) in &clients {
            let reason = connection.closed().await;
            assert!(
                matches!(reason, ConnectionError::PeerApplication { code: 9, .. }),
                "{reason}"
            );
        }
        server.wait_idle().await;
        assert_eq!(server.stats().connections, 0);
        assert!(server.accept().await.is_none());
    })
    .await;
}

/// What accepts on a worker's own thread gets that worker's connections, and ends with the endpoint.
#[tokio::test]
async fn acceptors_have_the_connections_of_their_workers() {
    guard(async {
        let (config, client_config) = configs(transport());
        let server = Endpoint::bind(LOOPBACK.parse().unwrap(), options(config)).unwrap();
        let (tell, mut told) = tokio::sync::mpsc::unbounded_channel();
        let accepting: Vec<_> = (server.acceptors().into_iter())
            .map(|acceptor| {
                let (runtime, tell) = (acceptor.runtime(), tell.clone());
                runtime.spawn(async move {
                    let mut accepted = Vec::new();
                    while let Some(connection) = acceptor.accept().await {
                        accepted.push(connection);
                        tell.send(std::thread::current().name().map(str::to_owned))
                            .unwrap();
                    }
                    accepted.len()
                })
            })
            .collect();
        let _clients = connect_all(&server, &client_config, 32).await;
        let mut by_thread = [0; 2];
        for _ in 0..32 {
            let thread = told.recv().await.unwrap().unwrap();
            by_thread[usize::from(thread == "quic-1")] += 1;
            assert!(thread.starts_with("quic-"), "{thread}");
        }
        let by_worker: Vec<_> = (server.worker_stats().iter())
            .map(|worker| worker.routing.accepted as usize)
            .collect();
        assert_eq!(by_worker, by_thread);
        drop(server);
        for (accepting, expected) in accepting.into_iter().zip(by_worker) {
            assert_eq!(accepting.await.unwrap(), expected);
        }
    })
    .await;
}

/// A closed endpoint has nothing more to accept, whichever task waits.
#[tokio::test]
async fn acceptors_end_when_the_endpoint_closes() {
    guard(async {
        let (config, _) = configs(transport());
        let server = Endpoint::bind(LOOPBACK.parse().unwrap(), options(config)).unwrap();
        let waiting: Vec<_> = (server.acceptors().into_iter())
            .map(|acceptor| tokio::spawn(async move { acceptor.accept().await.is_none() }))
            .collect();
        tokio::task::yield_now().await;
        server.close(0, b"");
        for ended in waiting {
            assert!(ended.await.unwrap());
        }
        let late = server.acceptors().remove(0);
        assert!(late.accept().await.is_none());
    })
    .await;
}

/// The system sends a moved client's packets to whichever worker its new port falls to.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_that_moves_stays_with_its_worker_and_loses_nothing() {
    guard(async {
        let (server, config) = echo_server();
        let link = LinkConfig::default()
            .rate(Bandwidth::from_mbps(50))
            .delay(Duration::from_millis(2));
        let mut through = RelayConfig::new(LOOPBACK.parse().unwrap(), server.local_addr());
        (through.up, through.down) = (link.clone(), link);
        let relay = Relay::start(through).unwrap();
        let client = client(1);
        let connecting = client.connect(&config, relay.local_addr(), NAME).unwrap();
        let connection = connecting.await.unwrap();
        transfer(&connection, 1000, 1).await;
        let home: Vec<_> = server
            .worker_stats()
            .iter()
            .map(|w| w.connections)
            .collect();

        // Ports that fall to the other worker come up soon: 20 times in a row they don't once in a
        // million runs.
        for round in 0..20 {
            let moving = async {
                tokio::time::sleep(Duration::from_millis(30)).await;
                relay.rebind().unwrap();
            };
            tokio::join!(transfer(&connection, 300_000, round), moving);
            if server.stats().handed_over > 0 && round >= 2 {
                break;
            }
        }
        let workers = server.worker_stats();
        let now: Vec<_> = workers.iter().map(|w| w.connections).collect();
        assert_eq!(now, home, "it never changed hands");
        let all = server.stats();
        assert!(all.handed_over > 0, "{workers:?}");
        assert_eq!((all.routing.accepted, all.handovers_dropped), (1, 0));
        assert_eq!(all.routing.resets_sent, 0, "no worker reset it");
        // Only the worker that has no connection hands datagrams over.
        for worker in &workers {
            assert_eq!(worker.handed_over > 0, worker.connections == 0);
        }
    })
    .await;
}

/// A Retry answered by one worker, and a connection opened by one of several.
#[tokio::test]
async fn retry_and_opening_work_with_several_workers() {
    guard(async {
        let (mut server, config) = configs(transport());
        server.retry = RetryPolicy::Always;
        let server = Endpoint::bind(LOOPBACK.parse().unwrap(), options(server)).unwrap();
        let mut options = EndpointOptions::new(endpoint_config(2), [2; 32]).workers(2);
        options.endpoint.max_connections = 8;
        let client = Endpoint::bind(LOOPBACK.parse().unwrap(), options).unwrap();
        let accepting = server.clone();
        tokio::spawn(async move {
            while let Some(connection) = accepting.accept().await {
                tokio::spawn(echo(connection));
            }
        });
        // Each worker opens some; the answers to half of them arrive at the other one.
        for n in 0..4 {
            let connecting = client.connect(&config, server.local_addr(), NAME).unwrap();
            let connection = connecting.await.unwrap();
            transfer(&connection, 20_000, n).await;
        }
        assert_eq!(server.stats().routing.retries_sent, 4);
        for worker in client.worker_stats() {
            assert_eq!(worker.routing.opened, 2);
        }
        assert!(client.stats().handed_over > 0);
    })
    .await;
}

#[tokio::test]
async fn as_many_workers_as_processors() {
    let (server, _) = configs(transport());
    let options = options(server).workers(0);
    let server = Endpoint::bind(LOOPBACK.parse().unwrap(), options).unwrap();
    let processors = std::thread::available_parallelism().unwrap().get();
    assert_eq!(server.worker_stats().len(), processors);
}

#[tokio::test]
async fn what_cannot_work_is_refused() {
    let bind = |address, change: fn(&mut EndpointOptions)| {
        let (server, _) = configs(transport());
        let mut options = options(server);
        change(&mut options);
        Endpoint::bind(address, options)
    };
    let any = LOOPBACK.parse().unwrap();
    let error = bind(any, |options| {
        options.endpoint.cids = Some(Arc::new(RandomCids::new(8)));
    });
    let message = error.unwrap_err().to_string();
    assert!(
        message.starts_with("the connection IDs distinguish 1 workers, not 2"),
        "{message}"
    );
    // The worker would leave 7 bytes of the shorter nonce to chance, which IDs would share too soon.
    for (nonce_len, enough) in [(7, false), (8, true)] {
        let (server, _) = configs(transport());
        let mut options = options(server);
        let format = QuicLbFormat {
            nonce_len,
            ..QuicLbFormat::default()
        };
        let codec = QuicLbCodec::new(format, Some(Arc::new(Aes128Block::new([1; 16])))).unwrap();
        options.endpoint.cids = Some(Arc::new(QuicLbCids::new(codec, &[5]).unwrap()));
        let bound = Endpoint::bind(any, options);
        let refused = matches!(bound, Err(BindError::ConnectionIds { distinct: 1, .. }));
        assert_eq!(refused, !enough, "nonce of {nonce_len} bytes");
    }
    let error = bind(any, |options| options.workers = 1000).unwrap_err();
    assert!(matches!(
        error,
        BindError::ConnectionIds { workers: 1000, .. }
    ));
    // A port is shared among the workers of one endpoint, not with other endpoints.
    let taken = bind(any, |_| {}).unwrap();
    let error = bind(taken.local_addr(), |_| {}).unwrap_err();
    assert!(matches!(error, BindError::Address { .. }), "{error}");
}

/// Threads and sockets go with the last handle.
#[tokio::test]
async fn nothing_is_left_behind() {
    guard(async {
        let (server, config) = configs(transport());
        let pair = Pair::on(LOOPBACK, LOOPBACK, options(server), config);
        let (client, server) = pair.connect().await;
        let address = pair.server.local_addr();
        drop((client, server));
        pair.client.close(0, b"");
        drop(pair);
        while UdpSocket::bind(address).is_err() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    })
    .await;
}
