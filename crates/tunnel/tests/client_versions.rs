//! The client over HTTP/2 and HTTP/1.1: both kinds of tunnels, the choice of the version, proxies that misbehave.

use crate::stage;

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use bytes::Bytes;
use http::{Response, StatusCode, Version};
use swiftwater_http::h3::capsule::Capsule;
use swiftwater_http::tcp::{RunningServer, TcpServer};
use swiftwater_tunnel::client::{
    Connect, Connecting, ConnectingTcp, HttpVersions, OpenError, TcpConnection, TunnelClient,
    TunnelError,
};
use swiftwater_tunnel::context::{self, ContextId};
use swiftwater_tunnel::proxy::{Token, TunnelProxy};
use swiftwater_tunnel::proxy_status::ProxyError;
use swiftwater_tunnel::target::Template;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream, UdpSocket};

use crate::tcp::target_ends_first;
use stage::{NAME, Stage, config, content, echo, guard, sent_back, tcp_echo, token};

/// A proxy over TCP without TLS.
struct Plain {
    proxy: TunnelProxy,
    server: RunningServer,
}

impl Plain {
    async fn new() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let proxy = TunnelProxy::new(config());
        let server = TcpServer::plain().serve(listener, proxy.clone()).unwrap();
        Self { proxy, server }
    }

    fn client(&self, version: Version) -> TunnelClient {
        client(self.server.local_addr(), version, Some(&token()))
    }

    async fn until_closed(&self, count: u64) {
        while self.proxy.stats().closed < count {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }
}

/// Connects by TCP, after HTTP/3 if there is a way to it.
struct Connector {
    tcp: SocketAddr,
    version: Version,
    http3: Option<stage::Connector>,
    versions: HttpVersions,
}

impl Connect for Connector {
    fn connect(&self) -> Connecting<'_> {
        match &self.http3 {
            Some(http3) => http3.connect(),
            None => Box::pin(async { Err("nobody answers".into()) }),
        }
    }

    fn versions(&self) -> HttpVersions {
        self.versions
    }

    fn connect_tcp(&self) -> ConnectingTcp<'_> {
        Box::pin(async {
            let stream = TcpStream::connect(self.tcp).await?;
            Ok(match self.version {
                Version::HTTP_2 => TcpConnection::http2(stream),
                _ => TcpConnection::http1(stream),
            })
        })
    }
}

fn client(tcp: SocketAddr, version: Version, token: Option<&Token>) -> TunnelClient {
    let connector = Connector {
        tcp,
        version,
        http3: None,
        versions: HttpVersions::Tcp,
    };
    TunnelClient::with_repair(Template::new(NAME).unwrap(), token, connector)
}

const BOTH: [Version; 2] = [Version::HTTP_2, Version::HTTP_11];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn udp_passes_in_capsules() {
    guard(async {
        let target = echo().await;
        for version in BOTH {
            let proxy = Plain::new().await;
            let client = proxy.client(version);
            assert_eq!(client.connected().await.unwrap(), version);
            let mut tunnels = Vec::new();
            for number in 0..3_u8 {
                let opening = client.begin(&target).await.unwrap();
                // It leaves with the stream.
                opening.send(&[number; 10]);
                let mut tunnel = opening.opened().await.unwrap();
                assert_eq!(tunnel.recv().await.unwrap(), [number; 10][..]);
                assert!(tunnel.proxy_status().unwrap().contains("next-hop"));
                assert!(!tunnel.is_repaired());
                tunnels.push(tunnel);
            }
            for len in [0, 1, 1200, 1500, 9000, 65_507] {
                let payload = Bytes::from(content(len));
                for tunnel in &mut tunnels {
                    tunnel.send(&payload).await.unwrap();
                    assert_eq!(tunnel.recv().await.unwrap(), payload, "{version:?}");
                }
            }
            drop(tunnels);
            proxy.until_closed(3).await;
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tcp_passes_and_either_side_may_end_first() {
    guard(async {
        for version in BOTH {
            let proxy = Plain::new().await;
            let client = proxy.client(version);
            let content = content(3_000_000);
            let tunnel = client.open_tcp(&tcp_echo().await).await.unwrap();
            assert!(sent_back(tunnel, &content).await == content, "{version:?}");
            proxy.until_closed(1).await;
            target_ends_first(&client).await;
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn refusals_have_their_types() {
    guard(async {
        for version in BOTH {
            let proxy = Plain::new().await;
            let free = TcpListener::bind("127.0.0.1:0").await.unwrap();
            let nobody = free.local_addr().unwrap().to_string();
            drop(free);
            let clients = [
                proxy.client(version),
                client(proxy.server.local_addr(), version, None),
            ];
            for (client, target, status, error) in [
                (0, &*nobody, 502, ProxyError::ConnectionRefused),
                (0, "10.0.0.1:443", 403, ProxyError::DestinationIpProhibited),
                (1, &nobody, 407, ProxyError::HttpRequestDenied),
            ] {
                let client = &clients[client];
                let target = target.parse().unwrap();
                let mut errors = vec![client.open_tcp(&target).await.unwrap_err()];
                if status != 502 {
                    errors.push(client.open(&target).await.unwrap_err());
                }
                for refused in errors {
                    assert_eq!(refused.proxy_error(), Some(error), "{version:?}");
                    assert!(refused.to_string().contains(&status.to_string()));
                }
            }
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn http3_goes_first() {
    guard(async {
        let (stage, proxy) = (Stage::new(), Plain::new().await);
        // Takes datagrams and answers none: QUIC is blocked.
        let hole = UdpSocket::bind("127.0.0.1:0").await.unwrap();
        let patience = Duration::from_millis(300);
        for (to, expected) in [
            (Some(stage.server_end.local_addr()), Version::HTTP_3),
            (Some(hole.local_addr().unwrap()), Version::HTTP_2),
            (None, Version::HTTP_2),
        ] {
            let connector = Connector {
                tcp: proxy.server.local_addr(),
                version: Version::HTTP_2,
                http3: to.map(|to| stage.connector_to(to)),
                versions: HttpVersions::Http3OrTcp(patience),
            };
            let template = Template::new(NAME).unwrap();
            let client = TunnelClient::new(template, Some(&token()), connector);
            let mut tunnel = client.open(&echo().await).await.unwrap();
            tunnel.send(b"through").await.unwrap();
            assert_eq!(tunnel.recv().await.unwrap(), "through");
            assert_eq!(client.connected().await.unwrap(), expected);
            assert_eq!(
                client.connection().await.is_ok(),
                to.is_some() && expected == Version::HTTP_3
            );
        }
        // Neither way: both reasons are told.
        let connector = Connector {
            tcp: "127.0.0.1:1".parse().unwrap(),
            version: Version::HTTP_11,
            http3: None,
            versions: HttpVersions::Http3OrTcp(patience),
        };
        let client = TunnelClient::new(Template::new(NAME).unwrap(), None, connector);
        let error = client.connected().await.unwrap_err().to_string();
        assert!(error.contains("nobody answers; over TCP: "), "{error}");
    })
    .await;
}

/// Counts attempts over QUIC, of which none is answered.
struct Unanswered {
    tcp: SocketAddr,
    attempts: Arc<AtomicUsize>,
}

impl Connect for Unanswered {
    fn connect(&self) -> Connecting<'_> {
        self.attempts.fetch_add(1, Ordering::Relaxed);
        Box::pin(std::future::pending())
    }

    fn versions(&self) -> HttpVersions {
        HttpVersions::Http3OrTcp(Duration::from_millis(50))
    }

    fn connect_tcp(&self) -> ConnectingTcp<'_> {
        Box::pin(async {
            let stream = TcpStream::connect(self.tcp).await?;
            Ok(TcpConnection::http2(stream))
        })
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn where_quic_is_blocked_the_next_connection_does_not_wait_for_it() {
    guard(async {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let proxy = TunnelProxy::new(config());
        let serve = |listener| TcpServer::plain().serve(listener, proxy.clone()).unwrap();
        let server = serve(listener);
        let attempts = Arc::default();
        let connector = Unanswered {
            tcp: address,
            attempts: Arc::clone(&attempts),
        };
        let client = TunnelClient::new(Template::new(NAME).unwrap(), Some(&token()), connector);
        let attempts = || attempts.load(Ordering::Relaxed);
        let target = echo().await;
        client.open(&target).await.unwrap();
        assert_eq!(attempts(), 1);
        drop(server);
        // Nothing is there: both are tried, and what was known is forgotten.
        while client.connected().await.is_ok() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        assert_eq!(attempts(), 2);
        let server = serve(bound_again(address).await);
        client.open(&target).await.unwrap();
        assert_eq!(attempts(), 3);
        drop(server);
        let _server = serve(bound_again(address).await);
        while client.open(&target).await.is_err() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        assert_eq!(attempts(), 3);
    })
    .await;
}

/// Listens at an address that was in use a moment ago.
async fn bound_again(address: SocketAddr) -> TcpListener {
    loop {
        match TcpListener::bind(address).await {
            Ok(listener) => return listener,
            Err(_) => tokio::time::sleep(Duration::from_millis(20)).await,
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_connection_that_ended_is_replaced() {
    guard(async {
        let target = tcp_echo().await;
        for version in BOTH {
            let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
            let address = listener.local_addr().unwrap();
            let proxy = TunnelProxy::new(config());
            let server = TcpServer::plain().serve(listener, proxy.clone()).unwrap();
            let client = client(address, version, Some(&token()));
            let tunnel = client.open_tcp(&target).await.unwrap();
            drop((tunnel, server));
            // The next server at this address.
            let listener = bound_again(address).await;
            let _server = TcpServer::plain().serve(listener, proxy).unwrap();
            while client.open_tcp(&target).await.is_err() {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_unused_connection_that_the_proxy_closed_costs_nothing() {
    guard(async {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let client = client(address, Version::HTTP_11, Some(&token()));
        assert_eq!(client.connected().await.unwrap(), Version::HTTP_11);
        drop(listener.accept().await.unwrap());
        let proxy = TunnelProxy::new(config());
        let _server = TcpServer::plain().serve(listener, proxy).unwrap();
        client.open_tcp(&tcp_echo().await).await.unwrap();
    })
    .await;
}

/// A proxy of HTTP/1.1 that answers the first request with `answer`, and then reads nothing.
async fn answering(answer: &'static str) -> (SocketAddr, tokio::task::JoinHandle<TcpStream>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let answered = tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            head.push(stream.read_u8().await.unwrap());
        }
        stream.write_all(answer.as_bytes()).await.unwrap();
        stream
    });
    (address, answered)
}

const ACCEPTED: &str = "HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\n\
                        Upgrade: connect-udp\r\nCapsule-Protocol: ?1\r\n\r\n";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn datagrams_are_dropped_where_the_connection_is_too_slow() {
    guard(async {
        let (address, answered) = answering(ACCEPTED).await;
        let client = client(address, Version::HTTP_11, None);
        let target = "target.example:443".parse().unwrap();
        let tunnel = client.open(&target).await.unwrap();
        let mut stream = answered.await.unwrap();
        let begun = Instant::now();
        // More than the sockets and the queue hold.
        let (mut sent, mut full) = (0, 0);
        while full < 20_000 {
            match tunnel.send(&[1; 1200]).await {
                Ok(()) => sent += 1,
                Err(TunnelError::Full) => full += 1,
                Err(error) => panic!("{error}"),
            }
            assert!(sent < 20_000, "there is no bound");
            if sent % 64 == 0 {
                tokio::task::yield_now().await;
            }
        }
        assert!(begun.elapsed() < Duration::from_secs(20), "it waited");
        // What has waited for too long is not sent when the proxy reads again; what is sent then, is.
        tokio::time::sleep(Duration::from_millis(500)).await;
        let reading = tokio::spawn(async move {
            let mut received = vec![0; 1 << 16];
            let mut last = Vec::new();
            while !last.ends_with(&[2; 100]) {
                let count = stream.read(&mut received).await.unwrap();
                assert!(count > 0);
                last = received[..count].to_vec();
            }
        });
        while !reading.is_finished() {
            let _ = tunnel.send(&[2; 1200]).await;
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        reading.await.unwrap();
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn proxies_that_misbehave_are_errors() {
    guard(async {
        let target = "target.example:443".parse().unwrap();
        for (answer, expected) in [
            ("HTTP/1.1 200 OK\r\n\r\n", Some(StatusCode::OK)),
            (
                "HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n",
                Some(StatusCode::SWITCHING_PROTOCOLS),
            ),
            (
                "HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n",
                Some(StatusCode::FORBIDDEN),
            ),
            ("SSH-2.0-OpenSSH\r\n\r\n", None),
        ] {
            let (address, _) = answering(answer).await;
            let opened = client(address, Version::HTTP_11, None).open(&target).await;
            let status = match opened.unwrap_err() {
                OpenError::Refused { status, .. } => Some(status),
                OpenError::Http(_) => None,
                other => panic!("{other}"),
            };
            assert_eq!(status, expected, "{answer}");
        }
        // It ends within a capsule, or between two.
        for (rest, ends_well) in [(&[0_u8, 3, 0, b'a'][..], false), (&[0, 2, 0, b'a'], true)] {
            let (address, answered) = answering(ACCEPTED).await;
            let client = client(address, Version::HTTP_11, None);
            let mut tunnel = client.open(&target).await.unwrap();
            let mut stream = answered.await.unwrap();
            stream.write_all(rest).await.unwrap();
            stream.shutdown().await.unwrap();
            let payload = tunnel.recv().await;
            assert_eq!(payload.is_ok(), ends_well);
            let end = tunnel.recv().await.unwrap_err();
            assert_eq!(matches!(end, TunnelError::Ended), ends_well, "{end}");
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_http2_proxy_without_extended_connect() {
    guard(async {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        tokio::spawn(async move {
            let (stream, _) = listener.accept().await.unwrap();
            let mut connection = h2::server::handshake(stream).await.unwrap();
            while let Some(Ok((_, mut respond))) = connection.accept().await {
                let answer = Response::builder().status(StatusCode::NOT_FOUND).body(());
                respond.send_response(answer.unwrap(), true).unwrap();
            }
        });
        let client = client(address, Version::HTTP_2, None);
        let target = "target.example:443".parse().unwrap();
        let error = client.open(&target).await.unwrap_err();
        assert!(matches!(error, OpenError::NoExtendedConnect), "{error}");
        let error = client.open_tcp(&target).await.unwrap_err();
        assert!(error.to_string().contains("404"), "{error}");
    })
    .await;
}

/// Connects to proxies that open the tunnel and read nothing of it.
struct Stalling;

impl Connect for Stalling {
    fn connect(&self) -> Connecting<'_> {
        Box::pin(async { Err("nobody answers".into()) })
    }

    fn versions(&self) -> HttpVersions {
        HttpVersions::Tcp
    }

    fn connect_tcp(&self) -> ConnectingTcp<'_> {
        Box::pin(async {
            let (ours, mut theirs) = tokio::io::duplex(4096);
            tokio::spawn(async move {
                let mut head = Vec::new();
                while !head.ends_with(b"\r\n\r\n") {
                    head.push(theirs.read_u8().await.unwrap());
                }
                let answer = "HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\n\
                    upgrade: connect-udp\r\ncapsule-protocol: ?1\r\n\r\n";
                theirs.write_all(answer.as_bytes()).await.unwrap();
                // What the target sends still comes.
                let payload = context::encode(ContextId::UDP, b"hello");
                let mut capsule = Vec::new();
                Capsule::datagram(payload.into()).encode(&mut capsule);
                loop {
                    tokio::time::sleep(Duration::from_secs(1)).await;
                    if theirs.write_all(&capsule).await.is_err() {
                        break;
                    }
                }
            });
            Ok(TcpConnection::http1(ours))
        })
    }
}

#[tokio::test(start_paused = true)]
async fn a_connection_that_takes_nothing_ends_the_tunnel() {
    let client = TunnelClient::new(Template::new(NAME).unwrap(), None, Stalling);
    let target = "192.0.2.1:443".parse().unwrap();
    let mut tunnel = client.open(&target).await.unwrap();
    let begin = tokio::time::Instant::now();
    for _ in 0..10 {
        tunnel.send(&[0; 1000]).await.unwrap();
    }
    let end = loop {
        match tunnel.recv().await {
            Ok(payload) => assert_eq!(payload, "hello"),
            Err(end) => break end,
        }
    };
    assert!(matches!(end, TunnelError::Stream(_)), "{end:?}");
    // It may be asked again.
    let _ = tunnel.recv().await;
    let elapsed = begin.elapsed().as_secs();
    assert!((9..=12).contains(&elapsed), "{elapsed}");
}
