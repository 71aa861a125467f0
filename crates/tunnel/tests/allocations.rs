//! Heap memory of a proxy whose tunnels are busy: what is allocated for each datagram.

#![allow(clippy::unwrap_used, reason = "a test may fail")]

mod stage;

use std::sync::mpsc;
use std::thread;

use stage::{Stage, endpoint_config, guard};
use swiftwater_net::Endpoint;
use swiftwater_tunnel::client::UdpTunnel;
use tokio::net::UdpSocket;
use tokio::runtime;
use tokio::sync::oneshot;

/// Datagrams that are on the way at once.
const BURST: usize = 16;

/// UDP payload of each, bytes.
const SIZE: usize = 1_100;

/// A direction of datagrams.
#[derive(Clone, Copy, Debug)]
enum Direction {
    ToClient,
    ToTarget,
}

/// Sends bursts one after the other; each is complete before the next one.
async fn bursts(tunnel: &mut UdpTunnel, target: &UdpSocket, direction: Direction, count: usize) {
    let payload = [7; SIZE];
    let mut buffer = [0; 2 * SIZE];
    for _ in 0..count {
        for _ in 0..BURST {
            match direction {
                Direction::ToClient => assert_eq!(target.send(&payload).await.unwrap(), SIZE),
                Direction::ToTarget => tunnel.send(&payload).await.unwrap(),
            }
        }
        for _ in 0..BURST {
            let len = match direction {
                Direction::ToClient => tunnel.recv().await.unwrap().len(),
                Direction::ToTarget => target.recv(&mut buffer).await.unwrap(),
            };
            assert_eq!(len, SIZE);
        }
    }
}

/// Allocations of a proxy, which has a thread of its own, for each datagram in `direction`.
fn allocations(direction: Direction) -> f64 {
    let current_thread = || {
        let mut builder = runtime::Builder::new_current_thread();
        builder.enable_all().build().unwrap()
    };
    let (parts, stage) = mpsc::channel();
    let (warm, is_warm) = oneshot::channel::<()>();
    let (done, is_done) = oneshot::channel::<()>();
    let proxy = thread::spawn(move || {
        let runtime = current_thread();
        runtime.block_on(async {
            let stage = Stage::new();
            let of_client = (stage.proxy, stage.server_end, stage.client_config);
            parts.send(of_client).unwrap();
            is_warm.await.unwrap();
        });
        allocation_counter::measure(|| runtime.block_on(is_done).unwrap())
    });
    let (proxy_service, server_end, client_config) = stage.recv().unwrap();
    let datagrams = current_thread().block_on(guard(async {
        let any = "127.0.0.1:0".parse().unwrap();
        let stage = Stage {
            proxy: proxy_service,
            server_end,
            client_end: Endpoint::client(any, endpoint_config(2), [2; 32]).unwrap(),
            client_config,
        };
        let target = UdpSocket::bind("127.0.0.1:0").await.unwrap();
        let address = target.local_addr().unwrap();
        let mut tunnel = stage.client().open(&stage::target(address)).await.unwrap();
        tunnel.send(b"first").await.unwrap();
        let mut buffer = [0; 16];
        let (_, from) = target.recv_from(&mut buffer).await.unwrap();
        target.connect(from).await.unwrap();
        target.send(b"answer").await.unwrap();
        tunnel.recv().await.unwrap();
        bursts(&mut tunnel, &target, direction, 100).await;
        warm.send(()).unwrap();
        bursts(&mut tunnel, &target, direction, 200).await;
        done.send(()).unwrap();
        200 * BURST
    }));
    let heap = proxy.join().unwrap();
    heap.count_total as f64 / datagrams as f64
}

#[test]
fn datagrams_to_clients_allocate_nothing() {
    let each = allocations(Direction::ToClient);
    assert!(each < 0.05, "{each} allocations for each datagram");
}

#[test]
fn datagrams_to_targets_allocate_nothing() {
    let each = allocations(Direction::ToTarget);
    assert!(each < 0.05, "{each} allocations for each datagram");
}
