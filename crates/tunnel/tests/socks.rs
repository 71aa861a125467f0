//! A local SOCKS server: programs that know it, hostile ones, and what the proxy refuses.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use swiftwater_tunnel::client::socks::message::{Address, UdpMessage};
use swiftwater_tunnel::client::{ListenerLimits, SocksServer, TunnelClient};
use swiftwater_tunnel::proxy::TunnelProxy;
use swiftwater_tunnel::target::Target;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream, UdpSocket};
use tokio::time::timeout;

use crate::stage::{Names, Stage, config, content, echo, guard, no_proxy, tcp_echo, tcp_target};

const LOOPBACK: &str = "127.0.0.1:0";
const GREETING: [u8; 3] = [5, 1, 0];
/// Long enough for an answer that must not come.
const SILENCE: Duration = Duration::from_millis(200);

fn limits() -> ListenerLimits {
    ListenerLimits {
        handshake: Duration::from_millis(500),
        ..ListenerLimits::default()
    }
}

async fn server(client: TunnelClient, limits: ListenerLimits) -> (Arc<SocksServer>, SocketAddr) {
    let server = SocksServer::bind(LOOPBACK.parse().unwrap(), client, limits);
    let server = Arc::new(server.await.unwrap());
    let address = server.local_addr().unwrap();
    let running = Arc::clone(&server);
    tokio::spawn(async move { running.run().await });
    (server, address)
}

/// The type, the address and the port of `host:port`.
fn encoded(host: &str, port: u16) -> Vec<u8> {
    let mut out = match host.parse() {
        Ok(std::net::IpAddr::V4(ip)) => [&[1], &ip.octets()[..]].concat(),
        Ok(std::net::IpAddr::V6(ip)) => [&[4], &ip.octets()[..]].concat(),
        Err(_) => [&[3, host.len() as u8], host.as_bytes()].concat(),
    };
    out.extend_from_slice(&port.to_be_bytes());
    out
}

/// Sends a request, and returns the connection, the code of the reply and its address.
async fn ask(to: SocketAddr, command: u8, host: &str, port: u16) -> (TcpStream, u8, SocketAddr) {
    let mut stream = TcpStream::connect(to).await.unwrap();
    stream.write_all(&GREETING).await.unwrap();
    let mut method = [0; 2];
    stream.read_exact(&mut method).await.unwrap();
    assert_eq!(method, [5, 0]);
    let request = [&[5, command, 0], &encoded(host, port)[..]].concat();
    stream.write_all(&request).await.unwrap();
    let mut reply = [0; 10];
    stream.read_exact(&mut reply).await.unwrap();
    assert_eq!((reply[0], reply[2], reply[3]), (5, 0, 1));
    let ip: [u8; 4] = reply[4..8].try_into().unwrap();
    let port = u16::from_be_bytes([reply[8], reply[9]]);
    (stream, reply[1], (ip, port).into())
}

async fn exchange(stream: &mut TcpStream, content: &[u8]) {
    let (mut reader, mut writer) = stream.split();
    let sending = async {
        writer.write_all(content).await.unwrap();
        writer.shutdown().await.unwrap();
    };
    let mut received = Vec::new();
    let receiving = reader.read_to_end(&mut received);
    let ((), _) = tokio::join!(sending, receiving);
    assert!(received == content);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tcp_to_addresses_and_names() {
    guard(async {
        let target = tcp_echo().await;
        let names = Names(BTreeMap::from([(
            "target.example",
            vec![target.to_string().parse().unwrap()],
        )]));
        let stage = Stage::serving(TunnelProxy::with_resolver(config(), names));
        let (server, address) = server(stage.client(), limits()).await;
        let content = content(3_000_000);
        for host in ["127.0.0.1", "target.example", "TARGET.example"] {
            let (mut stream, code, _) = ask(address, 1, host, target.port()).await;
            assert_eq!(code, 0, "{host}");
            exchange(&mut stream, &content).await;
        }
        let stats = stage.until(|stats| stats.closed == 3).await;
        assert_eq!(stats.opened, 3);
        let stats = server.stats();
        assert_eq!((stats.opened, stats.failed, stats.rejected), (3, 0, 0));
        assert_eq!(stats.bytes_sent, 9_000_000);
        assert_eq!(stats.bytes_received, 9_000_000);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_may_send_everything_at_once() {
    guard(async {
        let stage = Stage::new();
        let target = tcp_echo().await;
        let (server, address) = server(stage.client(), limits()).await;
        let mut stream = TcpStream::connect(address).await.unwrap();
        let mut all = GREETING.to_vec();
        all.extend_from_slice(&[5, 1, 0]);
        all.extend_from_slice(&encoded("127.0.0.1", target.port()));
        all.extend_from_slice(b"ahead of the reply");
        stream.write_all(&all).await.unwrap();
        stream.shutdown().await.unwrap();
        let mut received = Vec::new();
        stream.read_to_end(&mut received).await.unwrap();
        assert_eq!(received[..4], [5, 0, 5, 0]);
        assert_eq!(received[12..], *b"ahead of the reply");
        stage.until(|stats| stats.closed == 1).await;
        assert_eq!(server.stats().bytes_sent, 18);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_target_that_breaks_off_is_no_orderly_end() {
    guard(async {
        let stage = Stage::new();
        let (_server, address) = server(stage.client(), limits()).await;
        let (target, _) = tcp_target(|mut stream| async move {
            stream.write_all(b"the first half").await.unwrap();
            stream.read_u8().await.unwrap();
            let linger = Some(Duration::ZERO);
            socket2::SockRef::from(&stream).set_linger(linger).unwrap();
        })
        .await;
        let (mut stream, code, _) = ask(address, 1, "127.0.0.1", target.port()).await;
        assert_eq!(code, 0);
        let mut half = [0; 14];
        stream.read_exact(&mut half).await.unwrap();
        stream.write_all(b"x").await.unwrap();
        let error = stream.read(&mut half).await.unwrap_err();
        assert_eq!(error.kind(), std::io::ErrorKind::ConnectionReset);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn replies_say_why_not() {
    guard(async {
        let names = Names(BTreeMap::from([(
            "inside.example",
            vec!["10.0.0.1:443".parse().unwrap()],
        )]));
        let stage = Stage::serving(TunnelProxy::with_resolver(config(), names));
        let (all, address) = server(stage.client(), limits()).await;
        let (_anonymous, no_token) = server(stage.client_with(None), limits()).await;
        let free = TcpListener::bind(LOOPBACK).await.unwrap();
        let nobody = free.local_addr().unwrap().port();
        drop(free);
        for (to, command, host, port, expected) in [
            (address, 1, "127.0.0.1", nobody, 5),
            (address, 1, "10.0.0.1", 443, 2),
            (address, 1, "inside.example", 443, 2),
            (address, 1, "127.0.0.1", 53, 2),
            (address, 1, "nobody.example", 443, 4),
            (address, 1, "not a name", 443, 1),
            (address, 1, "127.0.0.1", 0, 1),
            (address, 1, "::1", nobody, 2),
            // BIND, and what is no command.
            (address, 2, "127.0.0.1", 443, 7),
            (address, 9, "127.0.0.1", 443, 7),
            (no_token, 1, "127.0.0.1", nobody, 2),
        ] {
            let (mut stream, code, _) = ask(to, command, host, port).await;
            assert_eq!(code, expected, "{host}:{port}");
            assert_eq!(stream.read(&mut [0; 1]).await.unwrap(), 0);
        }
        assert_eq!((all.stats().failed, all.stats().rejected), (6, 4));

        // A proxy that is gone.
        let (_gone, address) = server(no_proxy(), limits()).await;
        let (_, code, _) = ask(address, 1, "127.0.0.1", nobody).await;
        assert_eq!(code, 1);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_no_handshake_ends_in_time() {
    guard(async {
        let stage = Stage::new();
        let (server, address) = server(stage.client(), limits()).await;
        let cases: [(&[u8], &[u8]); 9] = [
            // Half of each message.
            (b"", b""),
            (&[5], b""),
            (&[5, 3, 0], b""),
            (&[5, 1, 0, 5, 1], &[5, 0]),
            (&[5, 1, 0, 5, 1, 0, 3, 255, b'a'], &[5, 0]),
            // Other protocols.
            (b"GET / HTTP/1.1\r\n\r\n", b""),
            (&[4, 1, 0, 80, 127, 0, 0, 1, 0], b""),
            // Only with a password.
            (&[5, 1, 2], &[5, 255]),
            // An unknown type of address.
            (
                &[5, 1, 0, 5, 1, 0, 2, 1, 2, 3],
                &[5, 0, 5, 8, 0, 1, 0, 0, 0, 0, 0, 0],
            ),
        ];
        for (sent, expected) in cases {
            let mut stream = TcpStream::connect(address).await.unwrap();
            stream.write_all(sent).await.unwrap();
            let mut received = Vec::new();
            // It may be a reset if bytes were left unread.
            let _ = stream.read_to_end(&mut received).await;
            assert_eq!(received, expected, "{sent:?}");
        }
        // One that writes a byte now and then has no more time.
        let mut stream = TcpStream::connect(address).await.unwrap();
        let request = [&GREETING[..], &[5, 1, 0, 3, 255], &[b'a'; 250]].concat();
        let mut sent = 0;
        for byte in request {
            if stream.write_all(&[byte]).await.is_err() {
                break;
            }
            sent += 1;
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        assert!(sent < 200, "{sent} bytes were read");
        assert_eq!(server.stats().rejected, 10);
        assert_eq!(stage.proxy.stats().opened, 0);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn connections_are_limited() {
    guard(async {
        let stage = Stage::new();
        let target = tcp_echo().await;
        let limits = ListenerLimits {
            connections: 2,
            ..limits()
        };
        let (server, address) = server(stage.client(), limits).await;
        let first = ask(address, 1, "127.0.0.1", target.port()).await;
        let second = ask(address, 1, "127.0.0.1", target.port()).await;
        assert_eq!((first.1, second.1), (0, 0));
        let mut third = TcpStream::connect(address).await.unwrap();
        assert!(!matches!(third.read(&mut [0; 1]).await, Ok(count) if count > 0));
        assert_eq!(server.stats().rejected, 1);
        drop(first);
        stage.until(|stats| stats.closed == 1).await;
        // Its place is free when its connection has ended, which takes a moment.
        loop {
            let mut fourth = TcpStream::connect(address).await.unwrap();
            let greeted = fourth.write_all(&GREETING).await;
            if greeted.is_ok() && fourth.read_u8().await.is_ok() {
                break;
            }
        }
    })
    .await;
}

/// A program that uses the UDP of a SOCKS server.
struct UdpUser {
    control: TcpStream,
    socket: UdpSocket,
}

impl UdpUser {
    async fn new(server: SocketAddr) -> Self {
        let (control, code, relay) = ask(server, 3, "0.0.0.0", 0).await;
        assert_eq!(code, 0);
        let socket = UdpSocket::bind(LOOPBACK).await.unwrap();
        socket.connect(relay).await.unwrap();
        Self { control, socket }
    }

    async fn send(&self, fragment: u8, host: &str, port: u16, payload: &[u8]) {
        let datagram = [&[0, 0, fragment], &encoded(host, port)[..], payload].concat();
        self.socket.send(&datagram).await.unwrap();
    }

    /// From where a payload came, and the payload.
    async fn recv(&self) -> (Address, Vec<u8>) {
        let mut buffer = vec![0; 65_535];
        let len = self.socket.recv(&mut buffer).await.unwrap();
        let message = UdpMessage::decode(&buffer[..len]).unwrap();
        assert_eq!(message.fragment, 0);
        (message.address, message.payload.to_vec())
    }

    async fn is_silent(&self) -> bool {
        timeout(SILENCE, self.recv()).await.is_err()
    }
}

fn ip(target: &Target) -> Address {
    Address::Ip(target.to_string().parse().unwrap())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn udp_to_several_targets() {
    guard(async {
        let (one, other) = (echo().await, echo().await);
        let names = Names(BTreeMap::from([(
            "target.example",
            vec![other.to_string().parse().unwrap()],
        )]));
        let stage = Stage::serving(TunnelProxy::with_resolver(config(), names));
        let (server, address) = server(stage.client(), limits()).await;
        let user = UdpUser::new(address).await;
        user.send(0, "127.0.0.1", one.port(), b"to one").await;
        assert_eq!(user.recv().await, (ip(&one), b"to one".to_vec()));
        user.send(0, "target.example", other.port(), &[7; 1100])
            .await;
        let name = Address::Name(b"target.example".to_vec(), other.port());
        assert_eq!(user.recv().await, (name, vec![7; 1100]));
        assert_eq!(stage.proxy.stats().opened, 2);

        // Fragments, what is no message, and targets that are none go nowhere.
        user.send(1, "127.0.0.1", one.port(), b"a fragment").await;
        user.send(0, "127.0.0.1", 0, b"no port").await;
        user.socket.send(&[0, 0, 0, 3, 200, 1]).await.unwrap();
        user.socket.send(b"").await.unwrap();
        // Refused by the proxy.
        user.send(0, "10.0.0.1", 443, b"inside").await;
        assert!(user.is_silent().await);
        user.send(0, "127.0.0.1", one.port(), b"still here").await;
        assert_eq!(user.recv().await.1, b"still here");
        let udp = server.stats().udp;
        assert_eq!((udp.opened, udp.failed, udp.dropped), (2, 1, 4));
        assert_eq!((udp.sent, udp.received), (4, 3));
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_association_is_of_one_client_and_ends_with_its_connection() {
    guard(async {
        let stage = Stage::new();
        let target = echo().await;
        let (_server, address) = server(stage.client(), limits()).await;
        let user = UdpUser::new(address).await;
        let relay = user.socket.peer_addr().unwrap();
        let datagram = |payload: &[u8]| {
            [
                &[0, 0, 0],
                &encoded("127.0.0.1", target.port())[..],
                payload,
            ]
            .concat()
        };
        // Another address of this machine is another peer, even as the first to send.
        let stranger = UdpSocket::bind("127.0.0.2:0").await.unwrap();
        stranger
            .send_to(&datagram(b"let me in"), relay)
            .await
            .unwrap();
        user.send(0, "127.0.0.1", target.port(), b"mine").await;
        assert_eq!(user.recv().await.1, b"mine");
        // So is another port, once the client's is known.
        let other = UdpSocket::bind(LOOPBACK).await.unwrap();
        other.send_to(&datagram(b"me too"), relay).await.unwrap();
        assert!(user.is_silent().await);
        assert!(
            timeout(SILENCE, other.recv_from(&mut [0; 10]))
                .await
                .is_err()
        );
        assert_eq!(stage.proxy.stats().opened, 1);

        drop(user.control);
        stage.until(|stats| stats.closed == 1).await;
        // Nobody listens there now, which the system reports.
        while user.socket.send(&datagram(b"late")).await.is_ok() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn targets_of_an_association_are_limited() {
    guard(async {
        let stage = Stage::new();
        let limits = ListenerLimits {
            udp_targets: 2,
            idle_timeout: Duration::from_millis(300),
            ..limits()
        };
        let (server, address) = server(stage.client(), limits).await;
        let targets = [echo().await, echo().await, echo().await];
        let user = UdpUser::new(address).await;
        for target in &targets {
            user.send(0, "127.0.0.1", target.port(), b"hello").await;
        }
        let heard = [user.recv().await.0, user.recv().await.0];
        assert!(heard.contains(&ip(&targets[0])) && heard.contains(&ip(&targets[1])));
        assert!(user.is_silent().await);
        assert_eq!(server.stats().udp.dropped, 1);
        // Idle ones make room.
        stage.until(|stats| stats.closed == 2).await;
        while server.stats().udp.opened == 2 {
            user.send(0, "127.0.0.1", targets[2].port(), b"again").await;
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        assert_eq!(user.recv().await.0, ip(&targets[2]));
    })
    .await;
}
