//! Programs that know nothing of proxies, through local addresses: QUIC in QUIC.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use swiftwater_net::Endpoint;
use swiftwater_net::quic::{ClientConfig, TransportConfig};
use swiftwater_tunnel::client::{ListenerLimits, LocalForward, LocalTcpForward};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpStream, UdpSocket};
use tokio::time::sleep;

use crate::stage::{
    self, NAME, Stage, content, echo, endpoint_config, guard, origin, target, tcp_echo,
};

const LOOPBACK: &str = "127.0.0.1:0";
const IDLE: Duration = Duration::from_secs(30);

async fn get(config: &ClientConfig, address: SocketAddr) -> Bytes {
    let end = Endpoint::client(LOOPBACK.parse().unwrap(), endpoint_config(4), [4; 32]).unwrap();
    let connection = end.connect(config, address, NAME).unwrap().await.unwrap();
    stage::get(connection).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn quic_connections_pass() {
    guard(async {
        let stage = Stage::new();
        let content = Bytes::from(content(3_000_000));
        let (origin, config) = origin(content.clone(), TransportConfig::default());
        let to = target(origin.local_addr());
        let local = LOOPBACK.parse().unwrap();
        let forward = LocalForward::bind(local, stage.client(), to, IDLE)
            .await
            .unwrap();
        let address = forward.local_addr().unwrap();
        let downloads = async { tokio::join!(get(&config, address), get(&config, address)) };
        let (first, second) = tokio::select! {
            both = downloads => both,
            error = forward.run() => panic!("{error}"),
        };
        assert!(first == content && second == content);
        // Each client has a tunnel of its own.
        assert_eq!(forward.stats().opened, 2);
        assert_eq!(stage.proxy.stats().opened, 2);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_refused_target_is_not_asked_for_with_each_datagram() {
    guard(async {
        let stage = Stage::new();
        let local = LOOPBACK.parse().unwrap();
        let forbidden = "10.0.0.1:443".parse().unwrap();
        let forward = LocalForward::bind(local, stage.client(), forbidden, IDLE);
        let forward = Arc::new(forward.await.unwrap());
        let running = Arc::clone(&forward);
        let address = forward.local_addr().unwrap();
        tokio::spawn(async move { running.run().await });
        let peer = UdpSocket::bind(LOOPBACK).await.unwrap();
        let start = Instant::now();
        let mut after_refusal = 0;
        while after_refusal < 60 {
            peer.send_to(b"anyone?", address).await.unwrap();
            sleep(Duration::from_millis(5)).await;
            after_refusal += usize::from(forward.stats().failed > 0);
        }
        let stats = forward.stats();
        let most = 1 + start.elapsed().as_secs();
        assert!((1..=most).contains(&stats.failed), "{stats:?}");
        assert!(stats.dropped > 0, "{stats:?}");
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn peers_get_their_own_answers() {
    guard(async {
        let stage = Stage::new();
        let local = LOOPBACK.parse().unwrap();
        let forward = LocalForward::bind(local, stage.client(), echo().await, IDLE);
        let forward = Arc::new(forward.await.unwrap());
        let address = forward.local_addr().unwrap();
        let running = Arc::clone(&forward);
        tokio::spawn(async move { running.run().await });
        let mut peers = Vec::new();
        for _ in 0..10 {
            let peer = UdpSocket::bind(LOOPBACK).await.unwrap();
            peer.connect(address).await.unwrap();
            peers.push(peer);
        }
        for (number, peer) in peers.iter().enumerate() {
            peer.send(&[number as u8; 100]).await.unwrap();
        }
        for (number, peer) in peers.iter().enumerate() {
            let mut buffer = [0; 200];
            let len = peer.recv(&mut buffer).await.unwrap();
            assert_eq!(buffer[..len], [number as u8; 100]);
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_idle_peer_gives_its_tunnel_back_and_gets_another() {
    guard(async {
        let stage = Stage::new();
        let local = LOOPBACK.parse().unwrap();
        let idle = Duration::from_millis(100);
        let forward = LocalForward::bind(local, stage.client(), echo().await, idle);
        let forward = Arc::new(forward.await.unwrap());
        let address = forward.local_addr().unwrap();
        let running = Arc::clone(&forward);
        tokio::spawn(async move { running.run().await });
        let peer = UdpSocket::bind(LOOPBACK).await.unwrap();
        let mut buffer = [0; 10];
        for round in 1..=2 {
            peer.send_to(b"hello", address).await.unwrap();
            peer.recv(&mut buffer).await.unwrap();
            stage.until(|stats| stats.closed == round).await;
        }
        assert_eq!(forward.stats().opened, 2);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tcp_connections_have_tunnels_of_their_own() {
    guard(async {
        let stage = Stage::new();
        let (local, to) = (LOOPBACK.parse().unwrap(), tcp_echo().await);
        let limits = ListenerLimits::default();
        let forward = LocalTcpForward::bind(local, stage.client(), to, limits).await;
        let forward = Arc::new(forward.unwrap());
        let address = forward.local_addr().unwrap();
        let running = Arc::clone(&forward);
        tokio::spawn(async move { running.run().await });
        let content = content(1_000_000);
        let mut transfers = Vec::new();
        for number in 0..8 {
            let content = content[number..].to_vec();
            transfers.push(tokio::spawn(async move {
                let mut stream = TcpStream::connect(address).await.unwrap();
                let (mut reader, mut writer) = stream.split();
                let sending = async {
                    writer.write_all(&content).await.unwrap();
                    writer.shutdown().await.unwrap();
                };
                let mut received = Vec::new();
                let ((), _) = tokio::join!(sending, reader.read_to_end(&mut received));
                assert!(received == content);
            }));
        }
        for transfer in transfers {
            transfer.await.unwrap();
        }
        assert_eq!(forward.stats().opened, 8);
        stage.until(|stats| stats.closed == 8).await;

        // Without a tunnel, the connection is reset.
        let local = LOOPBACK.parse().unwrap();
        let inside = "10.0.0.1:443".parse().unwrap();
        let forward = LocalTcpForward::bind(local, stage.client(), inside, limits).await;
        let forward = Arc::new(forward.unwrap());
        let running = Arc::clone(&forward);
        tokio::spawn(async move { running.run().await });
        let address = forward.local_addr().unwrap();
        // Perhaps even before the system tells that it is connected.
        let read = async {
            let mut stream = TcpStream::connect(address).await?;
            stream.read(&mut [0; 1]).await
        };
        let error = read.await.unwrap_err();
        assert_eq!(error.kind(), std::io::ErrorKind::ConnectionReset);
        assert_eq!(forward.stats().failed, 1);
    })
    .await;
}
