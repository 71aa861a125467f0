//! Heap memory of a proxy whose tunnels are busy: what is allocated for each datagram.

#![allow(clippy::unwrap_used, reason = "a test may fail")]

mod stage;

use std::sync::mpsc;
use std::thread;

use stage::{Stage, endpoint_config, guard};
use swiftwater_net::Endpoint;
use swiftwater_tunnel::client::{TunnelClient, UdpTunnel};
use swiftwater_tunnel::forwarding::Transform;
use swiftwater_tunnel::target::Template;
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

/// Packets with a short header, for a client and a target with these IDs.
const TO_CLIENT: &[u8] = b"\x41client-1";
const TO_TARGET: &[u8] = b"\x41target-1";

/// Packets with long headers from which the IDs are read.
const FROM_CLIENT: &[u8] = b"\xc0\x00\x00\x00\x01\x06random\x08client-1";
const FROM_TARGET: &[u8] = b"\xc0\x00\x00\x00\x01\x08client-1\x08target-1";

/// A packet for the owner of the connection ID in `start`.
fn packet(start: &[u8]) -> [u8; SIZE] {
    let mut payload = [7; SIZE];
    payload[..start.len()].copy_from_slice(start);
    payload
}

/// Sends bursts one after the other; each is complete before the next one. A target answers with one packet: a client to
/// which nothing comes back stops to forward, on a busy machine before the test is over.
async fn bursts(tunnel: &mut UdpTunnel, target: &UdpSocket, direction: Direction, count: usize) {
    let to_client = packet(TO_CLIENT);
    let payload = match direction {
        Direction::ToClient => to_client,
        Direction::ToTarget => packet(TO_TARGET),
    };
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
        if matches!(direction, Direction::ToTarget) {
            assert_eq!(target.send(&to_client).await.unwrap(), SIZE);
            assert_eq!(tunnel.recv().await.unwrap().len(), SIZE);
        }
    }
}

/// Allocations of a proxy, which has a thread of its own, for each datagram in `direction`; those are forwarded beside the
/// connection with a `transform`.
fn allocations(direction: Direction, transform: Option<Transform>) -> f64 {
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
        let client = match transform {
            None => stage.client(),
            Some(transform) => {
                let template = Template::new(stage::NAME).unwrap();
                let connector = stage.connector_to(stage.server_end.local_addr());
                let token = stage::token();
                TunnelClient::with_forwarding(template, Some(&token), connector, &[transform])
            }
        };
        let mut tunnel = client.open(&stage::target(address)).await.unwrap();
        tunnel.send(FROM_CLIENT).await.unwrap();
        let mut buffer = [0; 100];
        let (_, from) = target.recv_from(&mut buffer).await.unwrap();
        target.connect(from).await.unwrap();
        target.send(FROM_TARGET).await.unwrap();
        tunnel.recv().await.unwrap();
        // What the proxy says of the IDs is read while the tunnel is.
        bursts(&mut tunnel, &target, Direction::ToClient, 50).await;
        bursts(&mut tunnel, &target, direction, 100).await;
        let forwarded = || {
            let stats = stage.proxy.stats();
            match direction {
                Direction::ToClient => stats.forwarded_to_clients,
                Direction::ToTarget => stats.forwarded_to_targets,
            }
        };
        let before = forwarded();
        warm.send(()).unwrap();
        bursts(&mut tunnel, &target, direction, 200).await;
        done.send(()).unwrap();
        let datagrams = 200 * BURST;
        let wanted = transform.map_or(0, |_| datagrams as u64);
        // They are counted after they have left.
        let counted = forwarded() - before;
        assert!(counted.abs_diff(wanted) <= BURST as u64, "{counted}");
        datagrams
    }));
    let heap = proxy.join().unwrap();
    heap.count_total as f64 / datagrams as f64
}

#[test]
fn datagrams_to_clients_allocate_nothing() {
    for transform in [None, Some(Transform::Scramble), Some(Transform::Identity)] {
        let each = allocations(Direction::ToClient, transform);
        assert!(
            each < 0.05,
            "{each} allocations for each datagram, {transform:?}"
        );
    }
}

#[test]
fn datagrams_to_targets_allocate_nothing() {
    for transform in [None, Some(Transform::Scramble), Some(Transform::Identity)] {
        let each = allocations(Direction::ToTarget, transform);
        assert!(
            each < 0.05,
            "{each} allocations for each datagram, {transform:?}"
        );
    }
}
