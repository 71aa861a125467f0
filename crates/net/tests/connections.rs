//! Connections: many, closing, datagrams, address families, the end of an endpoint.

use std::net::SocketAddr;
use std::time::Duration;

use crate::loopback::{LOOPBACK, NAME, Pair, configs, echo, endpoint_config, guard, noise};
use bytes::Bytes;
use swiftwater_net::quic::units::Side;
use swiftwater_net::quic::wire::ErrorCode;
use swiftwater_net::quic::{
    ConnectError, ConnectionError, MtuDiscovery, SendDatagramError, TransportConfig, WriteError,
};
use swiftwater_net::{BindError, Connection, Endpoint, EndpointOptions};

async fn small_echo(connection: &Connection, seed: u64) {
    let data = noise(2000, seed);
    let (mut send, mut recv) = connection.open_bi().await.unwrap();
    send.write_all(&data).await.unwrap();
    send.finish().unwrap();
    assert!(recv.read_to_end(data.len()).await.unwrap() == data);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_hundred_connections_on_one_socket() {
    guard(async {
        let pair = Pair::new();
        let server = pair.server.clone();
        let acceptor = tokio::spawn(async move {
            while let Some(connection) = server.accept().await {
                tokio::spawn(echo(connection));
            }
        });
        let clients: Vec<_> = (0..200)
            .map(|n| {
                let (client, config) = (pair.client.clone(), pair.config.clone());
                let address = pair.server.local_addr();
                tokio::spawn(async move {
                    let connection = client
                        .connect(&config, address, NAME)
                        .unwrap()
                        .await
                        .unwrap();
                    small_echo(&connection, n).await;
                    connection
                })
            })
            .collect();
        let mut open = Vec::new();
        for client in clients {
            open.push(client.await.unwrap());
        }
        assert_eq!(pair.client.stats().connections, 200);
        for (n, connection) in open.iter().enumerate() {
            small_echo(connection, 1000 + n as u64).await;
        }
        drop(open);
        pair.shut_down().await;
        acceptor.await.unwrap();
    })
    .await;
}

#[tokio::test]
async fn both_ends_have_each_others_addresses() {
    guard(async {
        let pair = Pair::new();
        let (client, server) = pair.connect().await;
        client.handshake_confirmed().await.unwrap();
        server.handshake_confirmed().await.unwrap();
        assert_eq!((client.side(), server.side()), (Side::Client, Side::Server));
        assert_eq!(client.remote_address(), pair.server.local_addr());
        assert_eq!(server.remote_address(), pair.client.local_addr());
        assert_eq!(client.alpn().as_deref(), Some(&b"test"[..]));
        assert_eq!(server.alpn(), client.alpn());
        assert_eq!(server.server_name().as_deref(), Some(NAME));
        assert_eq!(client.peer_certificates().len(), 1);
        let (mut a, mut b) = ([0; 32], [0; 32]);
        client.export_keying_material(&mut a, b"test", b"").unwrap();
        server.export_keying_material(&mut b, b"test", b"").unwrap();
        assert_eq!(a, b);
        assert!(client.stats().handshake_duration.is_some());
        pair.shut_down().await;
    })
    .await;
}

#[tokio::test]
async fn close_carries_code_and_reason() {
    guard(async {
        let pair = Pair::new();
        let (client, server) = pair.connect().await;
        let (mut send, _recv) = client.open_bi().await.unwrap();
        send.write_all(b"hello").await.unwrap();
        let reading = tokio::spawn({
            let server = server.clone();
            async move {
                let (_send, mut recv) = server.accept_bi().await.unwrap();
                recv.read_to_end(100).await
            }
        });
        // Once the stream is there.
        while !reading.is_finished() && server.stats().stream_bytes_received.is_zero() {
            tokio::task::yield_now().await;
        }
        client.close(42, b"enough");
        let expected = ConnectionError::PeerApplication {
            code: 42,
            reason: b"enough".to_vec(),
        };
        assert_eq!(server.closed().await, expected);
        assert_eq!(server.close_reason(), Some(expected.clone()));
        assert!(reading.await.unwrap().is_err());
        let local = ConnectionError::LocallyClosed { code: 42 };
        assert_eq!(client.closed().await, local);
        assert_eq!(client.open_uni().await.unwrap_err(), local);
        assert_eq!(
            send.write(b"x").await,
            Err(WriteError::ConnectionLost(local.clone()))
        );
        assert_eq!(client.read_datagram().await, Err(local));
        assert_eq!(server.accept_bi().await.unwrap_err(), expected);
        pair.shut_down().await;
    })
    .await;
}

#[tokio::test]
async fn dropping_the_last_handle_closes() {
    guard(async {
        let pair = Pair::new();
        let (client, server) = pair.connect().await;
        let clone = client.clone();
        let stream = client.open_uni().await.unwrap();
        drop(client);
        drop(clone);
        assert_eq!(server.close_reason(), None);
        // The stream was the last.
        drop(stream);
        let reason = server.closed().await;
        assert!(matches!(
            reason,
            ConnectionError::PeerApplication { code: 0, .. }
        ));
        pair.shut_down().await;
    })
    .await;
}

#[tokio::test]
async fn streams_that_came_before_the_end_can_be_read() {
    guard(async {
        let pair = Pair::new();
        let (client, server) = pair.connect().await;
        let mut send = client.open_uni().await.unwrap();
        send.write_all(b"last words").await.unwrap();
        send.finish().unwrap();
        assert_eq!(send.stopped().await, Ok(None));
        client.close(1, b"");
        server.closed().await;
        let mut recv = server.accept_uni().await.unwrap();
        assert_eq!(recv.read_to_end(100).await.unwrap(), b"last words");
        pair.shut_down().await;
    })
    .await;
}

#[tokio::test]
async fn datagrams_both_ways() {
    guard(async {
        let pair = Pair::new();
        let (client, server) = pair.connect().await;
        let max = client.max_datagram_size().unwrap();
        assert!(max >= 1100);
        client
            .send_datagram(Bytes::from_static(b"ping"))
            .await
            .unwrap();
        assert_eq!(&server.read_datagram().await.unwrap()[..], b"ping");
        server.try_send_datagram(Bytes::from(vec![7; max])).unwrap();
        assert_eq!(client.read_datagram().await.unwrap(), vec![7; max]);
        let large = Bytes::from(vec![0; max + 1]);
        assert!(matches!(
            client.send_datagram(large).await,
            Err(SendDatagramError::TooLarge { .. })
        ));
        pair.shut_down().await;
    })
    .await;
}

/// Loopback takes far more than the 1200 bytes that every path takes.
#[tokio::test]
async fn datagrams_grow_to_what_the_path_carries() {
    guard(async {
        for (bound, least) in [(1472, 1452), (65_527, 9_000)] {
            let pair = Pair::with(TransportConfig {
                mtu_discovery: Some(MtuDiscovery {
                    upper_bound: bound,
                    ..MtuDiscovery::default()
                }),
                ..TransportConfig::default()
            });
            let (client, server) = pair.connect().await;
            let mut send = client.open_uni().await.unwrap();
            let data = vec![9; 4_000_000];
            let reading = tokio::spawn(async move {
                let mut recv = server.accept_uni().await.unwrap();
                let read = recv.read_to_end(5_000_000).await.unwrap();
                (server, read.len())
            });
            send.write_all(&data).await.unwrap();
            send.finish().unwrap();
            let (_server, read) = reading.await.unwrap();
            assert_eq!(read, data.len());
            let path = client.stats().paths[0].clone();
            assert!(path.max_datagram_size >= least, "{path:?}");
            assert_eq!(path.mtu_black_holes, 0);
            pair.shut_down().await;
        }
    })
    .await;
}

#[tokio::test]
async fn a_full_datagram_queue_makes_the_sender_wait() {
    guard(async {
        let transport = TransportConfig {
            datagram_queue: 10_000.into(),
            ..TransportConfig::default()
        };
        let pair = Pair::with(transport);
        let (client, server) = pair.connect().await;
        let reader = tokio::spawn(async move {
            let mut highest = 0;
            // Some may be lost, the last one closes.
            while let Ok(data) = server.read_datagram().await {
                highest = highest.max(u32::from_be_bytes(data[..4].try_into().unwrap()));
            }
            highest
        });
        let mut full = 0;
        for n in 0..500u32 {
            let data = Bytes::from([&n.to_be_bytes()[..], &[0; 996]].concat());
            match client.try_send_datagram(data.clone()) {
                Ok(()) => {}
                Err(SendDatagramError::Blocked) => {
                    full += 1;
                    client.send_datagram(data).await.unwrap();
                }
                Err(error) => panic!("{error}"),
            }
        }
        assert!(full > 0, "500 datagrams went into a queue of 10");
        let mut done = client.open_uni().await.unwrap();
        done.finish().unwrap();
        done.stopped().await.unwrap();
        client.close(0, b"");
        assert!(reader.await.unwrap() > 0);
        pair.shut_down().await;
    })
    .await;
}

#[tokio::test]
async fn ipv6() {
    guard(async {
        let (server, config) = configs(TransportConfig::default());
        let options = EndpointOptions::new(endpoint_config(1), [1; 32]).server(server);
        let pair = Pair::on("[::1]:0", "[::1]:0", options, config);
        let (client, server) = pair.connect().await;
        tokio::spawn(echo(server));
        small_echo(&client, 1).await;
        pair.shut_down().await;
    })
    .await;
}

#[tokio::test]
async fn one_socket_for_both_families() {
    guard(async {
        let (server, config) = configs(TransportConfig::default());
        let options = EndpointOptions::new(endpoint_config(1), [1; 32]).server(server);
        let pair = Pair::on("[::]:0", "[::]:0", options, config);
        let port = pair.server.local_addr().port();
        for address in ["127.0.0.1", "::1"] {
            let address = SocketAddr::new(address.parse().unwrap(), port);
            let (client, server) = pair.connect_to(address).await;
            // IPv4 peers look like IPv4 peers.
            assert_eq!(client.remote_address(), address);
            assert_eq!(server.remote_address().ip(), address.ip());
            tokio::spawn(echo(server));
            small_echo(&client, 2).await;
        }
        pair.shut_down().await;
    })
    .await;
}

#[tokio::test]
async fn close_is_sent_to_all_peers_and_drains() {
    guard(async {
        let pair = Pair::new();
        let mut servers = Vec::new();
        let mut clients = Vec::new();
        for _ in 0..5 {
            let (client, server) = pair.connect().await;
            clients.push(client);
            servers.push(server);
        }
        pair.server.close(9, b"maintenance");
        pair.server.wait_idle().await;
        for client in &clients {
            let reason = client.closed().await;
            assert!(matches!(
                reason,
                ConnectionError::PeerApplication { code: 9, .. }
            ));
        }
        for server in &servers {
            assert_eq!(
                server.closed().await,
                ConnectionError::LocallyClosed { code: 9 }
            );
        }
        assert!(pair.server.accept().await.is_none());
        pair.client.close(0, b"");
        assert_eq!(
            pair.client
                .connect(&pair.config, pair.server.local_addr(), NAME)
                .err(),
            Some(ConnectError::Closing)
        );
        pair.shut_down().await;
    })
    .await;
}

#[tokio::test]
async fn close_reaches_connections_that_were_not_accepted() {
    guard(async {
        let pair = Pair::new();
        let connecting = pair
            .client
            .connect(&pair.config, pair.server.local_addr(), NAME);
        let client = connecting.unwrap().await.unwrap();
        while pair.server.stats().waiting == 0 {
            tokio::task::yield_now().await;
        }
        pair.server.close(3, b"");
        let reason = client.closed().await;
        assert!(
            matches!(reason, ConnectionError::PeerApplication { code: 3, .. }),
            "{reason}"
        );
        pair.shut_down().await;
    })
    .await;
}

#[tokio::test]
async fn dropping_the_endpoint_keeps_its_connections() {
    guard(async {
        let Pair {
            server: endpoint,
            client,
            config,
        } = Pair::new();
        let connecting = client
            .connect(&config, endpoint.local_addr(), NAME)
            .unwrap();
        let (connection, server) = tokio::join!(connecting, endpoint.accept());
        drop((client, endpoint));
        let echoing = tokio::spawn(echo(server.unwrap()));
        let connection = connection.unwrap();
        small_echo(&connection, 3).await;
        drop(connection);
        echoing.await.unwrap();
    })
    .await;
}

#[tokio::test]
async fn the_backlog_is_bounded() {
    guard(async {
        let (server, config) = configs(TransportConfig {
            initial_rtt: Duration::from_millis(50),
            ..TransportConfig::default()
        });
        let mut options = EndpointOptions::new(endpoint_config(1), [1; 32]).server(server);
        options.accept_backlog = 2;
        let pair = Pair::on(LOOPBACK, LOOPBACK, options, config);
        let connect = || {
            pair.client
                .connect(&pair.config, pair.server.local_addr(), NAME)
                .unwrap()
        };
        let _first = connect().await.unwrap();
        let _second = connect().await.unwrap();

        // Repeats nothing for hours, so the answer can only be one to its first flight.
        let (_, mut patient) = configs(TransportConfig {
            initial_rtt: Duration::from_secs(3600),
            handshake_timeout: Duration::from_secs(24 * 3600),
            ..TransportConfig::default()
        });
        patient.crypto = pair.config.crypto.clone();
        let late =
            Endpoint::client(LOOPBACK.parse().unwrap(), endpoint_config(3), [3; 32]).unwrap();
        let refused = late.connect(&patient, pair.server.local_addr(), NAME);
        let ConnectionError::PeerTransport(refused) = refused.unwrap().await.unwrap_err() else {
            panic!("not refused by the peer");
        };
        assert_eq!(refused.code, ErrorCode::CONNECTION_REFUSED);
        let stats = pair.server.stats();
        assert_eq!((stats.routing.accepted, stats.connections), (2, 2));
        assert_eq!(stats.overflows, stats.routing.refusals_sent);
        let sent = late.stats().datagrams_sent;
        assert!((1..=sent).contains(&stats.overflows), "{stats:?}");

        pair.server.accept().await.unwrap();
        connect().await.unwrap();
        pair.shut_down().await;
    })
    .await;
}

#[tokio::test]
async fn the_wrong_certificate_is_refused() {
    guard(async {
        let pair = Pair::new();
        let (_, stranger) = configs(TransportConfig::default());
        let connecting = pair
            .client
            .connect(&stranger, pair.server.local_addr(), NAME)
            .unwrap();
        let error = connecting.await.unwrap_err();
        assert!(matches!(error, ConnectionError::Transport(_)), "{error}");
        // Counted when the server has discarded the connection.
        while pair.server.stats().handshakes_failed == 0 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        assert_eq!(pair.server.stats().handshakes_failed, 1);
        pair.shut_down().await;
    })
    .await;
}

#[tokio::test]
async fn a_server_that_stops_accepting_keeps_what_it_has() {
    guard(async {
        let pair = Pair::new();
        let (client, server) = pair.connect().await;
        pair.server.set_server_config(None);
        tokio::spawn(echo(server));
        small_echo(&client, 4).await;
        let mut late = pair
            .client
            .connect(&pair.config, pair.server.local_addr(), NAME)
            .unwrap();
        tokio::select! {
            biased;
            connected = &mut late => assert!(connected.is_err()),
            () = small_echo(&client, 5) => {}
        }
        drop(late);
        pair.shut_down().await;
    })
    .await;
}

#[tokio::test]
async fn addresses_that_cannot_work() {
    guard(async {
        let (_, config) = configs(TransportConfig::default());
        let client =
            Endpoint::client(LOOPBACK.parse().unwrap(), endpoint_config(1), [1; 32]).unwrap();
        for address in ["127.0.0.1:0", "[::1]:443", "0.0.0.0:443"] {
            let address = address.parse().unwrap();
            let connecting = client.connect(&config, address, NAME);
            assert_eq!(
                connecting.err(),
                Some(ConnectError::InvalidAddress(address))
            );
        }
        let taken = Endpoint::client(client.local_addr(), endpoint_config(1), [1; 32]);
        let error = taken.unwrap_err();
        assert!(
            error.to_string().contains(&client.local_addr().to_string()),
            "{error}"
        );
    })
    .await;
}

#[test]
fn outside_a_runtime_binding_fails() {
    let bound = Endpoint::client(LOOPBACK.parse().unwrap(), endpoint_config(1), [1; 32]);
    assert!(matches!(bound, Err(BindError::NoRuntime(_))));
}

/// When the runtime goes, no task waits forever.
#[test]
fn a_runtime_that_ends_closes_everything() {
    let build = || {
        tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()
            .unwrap()
    };
    let (inner, outer) = (build(), build());
    let (pair, client) = inner.block_on(guard(async {
        let pair = Pair::new();
        let (client, _server) = pair.connect().await;
        (pair, client)
    }));
    inner.shutdown_background();
    outer.block_on(guard(async {
        client.closed().await;
        pair.client.wait_idle().await;
        assert!(pair.server.accept().await.is_none());
    }));
}

#[tokio::test]
async fn an_idle_connection_goes_on_after_releasing_memory() {
    guard(async {
        let pair = Pair::new();
        let (client, server) = pair.connect().await;
        tokio::spawn(echo(server));
        let (mut send, mut recv) = client.open_bi().await.unwrap();
        for seed in 0..3 {
            let data = noise(3000, seed);
            send.write_all(&data).await.unwrap();
            let mut back = vec![0; data.len()];
            recv.read_exact(&mut back).await.unwrap();
            assert!(back == data);
            small_echo(&client, seed).await;
            tokio::time::sleep(Duration::from_millis(600)).await;
        }
        pair.shut_down().await;
    })
    .await;
}
