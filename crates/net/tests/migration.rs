//! Connections that move between real sockets.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use crate::loopback::{LOOPBACK, NAME, Pair, configs, echo, endpoint_config, guard, noise};
use swiftwater_net::quic::{MigrateError, SocketId, TransportConfig};
use swiftwater_net::{BindError, Connection, Endpoint, EndpointOptions};

/// Bytes that take some moves.
const LEN: usize = 8_000_000;

fn loopback() -> SocketAddr {
    LOOPBACK.parse().unwrap()
}

/// Sends `LEN` bytes there and back while `meanwhile` happens, and compares them.
async fn echoed_while(connection: &Connection, meanwhile: impl Future<Output = ()>) {
    let data = noise(LEN, 7);
    let (mut send, mut recv) = connection.open_bi().await.unwrap();
    let expected = data.clone();
    let writing = async {
        send.write_all(&data).await.unwrap();
        send.finish().unwrap();
    };
    let reading = async { recv.read_to_end(LEN).await.unwrap() };
    let ((), read, ()) = tokio::join!(writing, reading, meanwhile);
    assert!(read == expected, "{} of {LEN} bytes", read.len());
}

/// With the initial RTT of the default, validation gives a busy machine three seconds.
fn without_idle_timeout() -> Pair {
    Pair::with(TransportConfig::default())
}

async fn pause() {
    tokio::time::sleep(Duration::from_millis(5)).await;
}

#[tokio::test]
async fn a_transfer_goes_on_over_another_socket() {
    guard(async {
        let pair = without_idle_timeout();
        let (client, server) = pair.connect().await;
        let home = server.remote_address();
        tokio::spawn(echo(server.clone()));
        client.handshake_confirmed().await.unwrap();
        let socket = pair.client.add_socket(loopback()).unwrap();
        let address = pair.client.socket_addr(socket).unwrap();
        echoed_while(&client, async {
            pause().await;
            let path = client.migrate(socket).await.unwrap();
            assert_eq!(path.local.socket, socket);
            assert_eq!(path.remote, pair.server.local_addr());
            pause().await;
            // Back again, and once more.
            client.migrate(SocketId(0)).await.unwrap();
            client.migrate(socket).await.unwrap();
        })
        .await;
        assert_eq!(client.path_address().local.socket, socket);
        assert_eq!(server.remote_address(), address);
        assert_ne!(address, home);
        assert_eq!(client.stats().path_changes, 3);
        pair.shut_down().await;
    })
    .await;
}

#[tokio::test]
async fn an_endpoint_moves_all_its_connections_at_once() {
    guard(async {
        let pair = without_idle_timeout();
        let (first, one) = pair.connect().await;
        let (second, two) = pair.connect().await;
        for server in [&one, &two] {
            tokio::spawn(echo(server.clone()));
        }
        for client in [&first, &second] {
            client.handshake_confirmed().await.unwrap();
        }
        let before = pair.client.local_addr();
        let moving = async {
            pause().await;
            let socket = pair.client.rebind(loopback()).unwrap();
            assert_ne!(pair.client.local_addr(), before);
            pause().await;
            assert!(pair.client.remove_socket(SocketId(0)));
            assert!(!pair.client.remove_socket(SocketId(0)));
            assert!(!pair.client.remove_socket(socket), "it is in use");
        };
        tokio::join!(
            echoed_while(&first, moving),
            echoed_while(&second, async {})
        );
        for server in [&one, &two] {
            assert_eq!(server.remote_address(), pair.client.local_addr());
        }
        // New connections start from there.
        let (_third, three) = pair.connect().await;
        assert_eq!(three.remote_address(), pair.client.local_addr());
        pair.shut_down().await;
    })
    .await;
}

#[tokio::test]
async fn what_does_not_work_is_reported_and_costs_nothing() {
    guard(async {
        let pair = without_idle_timeout();
        let (client, server) = pair.connect().await;
        tokio::spawn(echo(server.clone()));
        client.handshake_confirmed().await.unwrap();
        assert_eq!(
            client.migrate(SocketId(9)).await,
            Err(MigrateError::NoSuchSocket)
        );
        assert_eq!(
            client.migrate(SocketId(0)).await,
            Err(MigrateError::SameAddress)
        );
        assert_eq!(
            server.migrate(SocketId(0)).await,
            Err(MigrateError::NotClient)
        );
        // IPv4 can't be reached from there.
        let dead = pair.client.add_socket("[::1]:0".parse().unwrap()).unwrap();
        let live = pair.client.add_socket(loopback()).unwrap();
        echoed_while(&client, async {
            assert_eq!(client.migrate(dead).await, Err(MigrateError::Failed));
            let replaced = async {
                let (dead, live) = tokio::join!(client.migrate(dead), client.migrate(live));
                assert_eq!(dead, Err(MigrateError::Replaced));
                live.unwrap();
            };
            replaced.await;
        })
        .await;
        assert_eq!(client.path_address().local.socket, live);
        pair.shut_down().await;
    })
    .await;
}

#[tokio::test]
async fn a_lost_local_address_is_noticed_and_survived() {
    guard(async {
        let pair = without_idle_timeout();
        let (client, server) = pair.connect().await;
        tokio::spawn(echo(server.clone()));
        client.handshake_confirmed().await.unwrap();
        let socket = pair.client.add_socket(loopback()).unwrap();
        client.migrate(socket).await.unwrap();
        echoed_while(&client, async {
            pause().await;
            assert!(pair.client.remove_socket(socket));
            let told = client.local_unreachable().await;
            assert_eq!(told, Some(io::ErrorKind::AddrNotAvailable));
            client.rebind(SocketId(0)).await.unwrap();
        })
        .await;
        assert_eq!(server.remote_address(), pair.client.local_addr());
        client.close(0, b"");
        // What was reported before may be reported once more; in the end there is nothing to wait for.
        while client.local_unreachable().await.is_some() {}
        pair.shut_down().await;
    })
    .await;
}

async fn to_the_preferred_address(workers: usize) {
    // As in `without_idle_timeout`.
    let (server, config) = configs(TransportConfig::default());
    let options = EndpointOptions::new(endpoint_config(1), [1; 32])
        .server(server)
        .workers(workers)
        .preferred(loopback());
    let pair = Pair::on(LOOPBACK, LOOPBACK, options, config);
    let preferred = pair.server.socket_addr(SocketId(1)).unwrap();
    for _ in 0..4 {
        let (client, server) = pair.connect().await;
        tokio::spawn(echo(server.clone()));
        echoed_while(&client, async {
            while client.remote_address() != preferred
                || server.path_address().local.socket != SocketId(1)
            {
                pause().await;
            }
        })
        .await;
        client.close(0, b"");
    }
    pair.shut_down().await;
}

#[tokio::test]
async fn clients_go_to_the_preferred_address() {
    guard(to_the_preferred_address(1)).await;
}

#[cfg(any(target_os = "linux", target_os = "android"))]
#[tokio::test]
async fn clients_of_several_workers_go_to_the_preferred_address() {
    guard(to_the_preferred_address(3)).await;
}

#[tokio::test]
async fn servers_listen_on_added_sockets_too() {
    guard(async {
        let pair = without_idle_timeout();
        let socket = pair.server.add_socket(loopback()).unwrap();
        let address = pair.server.socket_addr(socket).unwrap();
        let connecting = pair.client.connect(&pair.config, address, NAME).unwrap();
        let (client, server) = tokio::join!(connecting, pair.server.accept());
        let (client, server) = (client.unwrap(), server.unwrap());
        assert_eq!(server.path_address().local.socket, socket);
        tokio::spawn(echo(server));
        echoed_while(&client, async {}).await;
        pair.shut_down().await;
    })
    .await;
}

#[tokio::test]
async fn a_preferred_address_must_be_one() {
    let options =
        EndpointOptions::new(endpoint_config(1), [1; 32]).preferred("0.0.0.0:0".parse().unwrap());
    assert!(matches!(
        Endpoint::bind(loopback(), options),
        Err(BindError::Unspecified(_))
    ));
}
