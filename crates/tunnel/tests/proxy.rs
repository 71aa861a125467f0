//! Tunnels through a proxy on loopback, over HTTP/3: forwarding, refusals, limits and ends.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bytes::Bytes;
use http::{Method, Request, StatusCode};
use http_body_util::{BodyExt, Empty, Full};
use swiftwater_http::h3::capsule::{Capsule, CapsuleReader};
use swiftwater_http::h3::{self, BodyError, Code, ConnectProtocol};
use swiftwater_http::udp::SendRequest;
use swiftwater_http::udp::connect::PendingConnect;
use swiftwater_tunnel::client::{Connect, Connecting, TunnelClient, TunnelError};
use swiftwater_tunnel::context;
use swiftwater_tunnel::policy::{Ports, ReflectionLimit, TargetPolicy};
use swiftwater_tunnel::proxy::{Access, Limits, ProxyConfig, Token, TunnelProxy};
use swiftwater_tunnel::target::{Target, Template};
use swiftwater_tunnel::{CONNECT_UDP, MAX_UDP_PAYLOAD};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, UdpSocket};
use tokio::task::JoinSet;

use crate::stage::{NAME, Names, SECRET, Stage, config, echo, guard, refused, target, token};

/// The status and the Proxy-Status with which a tunnel to `target` is refused.
async fn refusal(client: &TunnelClient, target: &Target) -> (StatusCode, String) {
    refused(client.open(target).await)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn payloads_of_all_sizes_go_there_and_back() {
    guard(async {
        let stage = Stage::new();
        let mut tunnel = stage.client().open(&echo().await).await.unwrap();
        let status = tunnel.proxy_status().unwrap();
        assert!(status.contains("next-hop=\"127.0.0.1:"), "{status}");
        // A QUIC client's first packet fits from the beginning (RFC 9000, section 14.1).
        assert!(tunnel.sender().max_payload() >= 1200);
        for len in [0, 1, 63, 64, 1199, 1200] {
            let payload: Vec<u8> = (0..len).map(|byte| byte as u8).collect();
            tunnel.send(&payload).await.unwrap();
            assert_eq!(tunnel.recv().await.unwrap(), payload);
        }
        let stats = stage.proxy.stats();
        assert_eq!(
            (stats.datagrams_to_targets, stats.datagrams_to_clients),
            (6, 6)
        );
        assert_eq!(
            (stats.bytes_to_targets, stats.bytes_to_clients),
            (2527, 2527)
        );
        drop(tunnel);
        stage.until(|stats| stats.closed == 1).await;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tunnels_of_one_connection_are_separate() {
    guard(async {
        let stage = Stage::new();
        let client = stage.client();
        let target = echo().await;
        let mut tunnels = Vec::new();
        for _ in 0..20 {
            tunnels.push(client.open(&target).await.unwrap());
        }
        for (number, tunnel) in tunnels.iter().enumerate() {
            tunnel.send(&[number as u8]).await.unwrap();
        }
        for (number, tunnel) in tunnels.iter_mut().enumerate() {
            assert_eq!(tunnel.recv().await.unwrap(), [number as u8][..]);
        }
        assert_eq!(stage.proxy.stats().opened, 20);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn datagrams_ahead_of_the_answer_are_forwarded() {
    guard(async {
        let stage = Stage::new();
        let opening = stage.client().begin(&echo().await).await.unwrap();
        opening.send(b"early");
        let mut tunnel = opening.opened().await.unwrap();
        assert_eq!(tunnel.recv().await.unwrap(), "early");
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn users_need_a_valid_token() {
    guard(async {
        let stage = Stage::new();
        let target = echo().await;
        let wrong = Token::new("alice", "another-secret-of-someone").unwrap();
        let longer = Token::new("alice", &format!("{SECRET}x")).unwrap();
        for token in [None, Some(&wrong), Some(&longer)] {
            let (status, why) = refusal(&stage.client_with(token), &target).await;
            assert_eq!(status, StatusCode::PROXY_AUTHENTICATION_REQUIRED);
            assert!(why.contains("error=http_request_denied"), "{why}");
        }
        assert_eq!(stage.proxy.stats().opened, 0);
        assert!(stage.client().open(&target).await.is_ok());
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_policy_is_applied_to_the_address_that_a_name_has() {
    guard(async {
        let inside = "127.0.0.1:443".parse().unwrap();
        let mapped = "[::ffff:10.0.0.1]:443".parse().unwrap();
        let metadata = "169.254.169.254:443".parse().unwrap();
        let names = Names(BTreeMap::from([
            ("inside.example", vec![inside]),
            ("mapped.example", vec![mapped]),
            ("metadata.example", vec![metadata, inside]),
            ("nothing.example", vec![]),
        ]));
        let config = ProxyConfig {
            limits: Limits {
                resolution: Duration::from_millis(50),
                ..Limits::default()
            },
            ..ProxyConfig::new(Access::Anyone)
        };
        let stage = Stage::serving(TunnelProxy::with_resolver(config, names));
        let client = stage.client();
        let cases = [
            ("inside.example", 443, 403, "destination_ip_prohibited"),
            ("mapped.example", 443, 403, "destination_ip_prohibited"),
            ("metadata.example", 443, 403, "destination_ip_prohibited"),
            ("10.1.2.3", 443, 403, "destination_ip_prohibited"),
            ("::1", 443, 403, "destination_ip_prohibited"),
            ("inside.example", 444, 403, "http_request_denied"),
            ("nothing.example", 443, 502, "dns_error"),
            ("unknown.example", 443, 502, "dns_error"),
            ("slow.example", 443, 504, "dns_timeout"),
        ];
        for (host, port, status, error) in cases {
            let target = Target::new(host, port).unwrap();
            let (got, why) = refusal(&client, &target).await;
            assert_eq!(got, status, "{host}");
            assert!(why.contains(&format!("error={error}")), "{host}: {why}");
            // What a name is within the proxy's network stays there.
            assert!(
                !why.contains("127.0.0.1") && !why.contains("169.254"),
                "{why}"
            );
        }
        assert_eq!(stage.proxy.stats().refused, cases.len() as u64);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn other_requests_are_refused() {
    guard(async {
        let stage = Stage::new();
        let connection = stage.connect().await;
        let credentials = token().credentials().unwrap();
        let connect = |protocol: &str, path: &str| {
            let request = Request::get(format!("https://{NAME}{path}"))
                .header("proxy-authorization", credentials.clone());
            let protocol = ConnectProtocol::new(protocol).unwrap();
            let connection = connection.clone();
            async move {
                let request = request.body(()).unwrap();
                let pending = connection.connect(protocol, request).await.unwrap();
                pending.response().await.unwrap().status()
            }
        };
        let path = "/.well-known/masque/udp";
        let good = format!("{path}/127.0.0.1/9/");
        assert_eq!(connect("connect-ip", &good).await, 501);
        for wrong in [
            format!("{path}/127.0.0.1/0/"),
            format!("{path}/127.0.0.1/65536/"),
            format!("{path}/127.0.0.1/+9/"),
            format!("{path}/127.0.0.1/9/more"),
            format!("{path}/fe80%3A%3A1%25eth0/9/"),
            format!("{path}/a%00b/9/"),
            format!("{path}/127.1/9/"),
            format!("{path}//9/"),
            path.to_owned(),
        ] {
            assert_eq!(connect(CONNECT_UDP, &wrong).await, 400, "{wrong}");
        }
        let get = Request::builder()
            .method(Method::GET)
            .uri(format!("https://{NAME}{good}"))
            .body(Empty::<Bytes>::new())
            .unwrap();
        let response = connection.send(get).await.unwrap();
        assert_eq!(response.status(), 400);
        assert!(response.headers().contains_key("proxy-status"));
        response.into_body().collect().await.unwrap();
        assert_eq!(stage.proxy.stats().opened, 0);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_silent_target_gets_few_datagrams() {
    guard(async {
        let stage = Stage::with(ProxyConfig {
            reflection: ReflectionLimit {
                datagrams: 3,
                bytes: 2000,
                per: Duration::from_secs(600),
            },
            ..config()
        });
        let silent = UdpSocket::bind("127.0.0.1:0").await.unwrap();
        let address = silent.local_addr().unwrap();
        let tunnel = stage.client().open(&target(address)).await.unwrap();
        for _ in 0..50 {
            tunnel.send(&[0; 800]).await.unwrap();
        }
        // Two of 800 bytes; a third would be more than 2000 bytes.
        let stats = stage.until(|stats| stats.dropped_unanswered == 48).await;
        assert_eq!(stats.datagrams_to_targets, 2);
        let mut buffer = [0; 1000];
        let (_, from) = silent.recv_from(&mut buffer).await.unwrap();
        silent.send_to(b"hello", from).await.unwrap();
        stage.until(|stats| stats.datagrams_to_clients == 1).await;
        for _ in 0..50 {
            tunnel.send(&[0; 800]).await.unwrap();
        }
        stage.until(|stats| stats.datagrams_to_targets == 52).await;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn only_the_target_itself_is_heard() {
    guard(async {
        let stage = Stage::new();
        let quiet = UdpSocket::bind("127.0.0.1:0").await.unwrap();
        let stranger = UdpSocket::bind("127.0.0.1:0").await.unwrap();
        let address = quiet.local_addr().unwrap();
        let mut tunnel = stage.client().open(&target(address)).await.unwrap();
        tunnel.send(b"where are you?").await.unwrap();
        let mut buffer = [0; 100];
        let (_, proxy) = quiet.recv_from(&mut buffer).await.unwrap();
        stranger.send_to(b"from a stranger", proxy).await.unwrap();
        quiet.send_to(b"from the target", proxy).await.unwrap();
        assert_eq!(tunnel.recv().await.unwrap(), "from the target");
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_closed_port_ends_the_tunnel() {
    guard(async {
        let stage = Stage::new();
        let address = {
            let socket = UdpSocket::bind("127.0.0.1:0").await.unwrap();
            socket.local_addr().unwrap()
        };
        let mut tunnel = stage.client().open(&target(address)).await.unwrap();
        // The system reports it once: to who sends further datagrams, or to who waits for some.
        for _ in 0..5 {
            if tunnel.send(b"anyone?").await.is_err() {
                break;
            }
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
        let end = tunnel.recv().await;
        assert!(matches!(end, Err(TunnelError::Ended)), "{end:?}");
        stage.until(|stats| stats.closed == 1).await;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_unused_tunnel_ends() {
    guard(async {
        let stage = Stage::with(ProxyConfig {
            limits: Limits {
                idle_timeout: Duration::from_millis(200),
                ..Limits::default()
            },
            ..config()
        });
        let mut tunnel = stage.client().open(&echo().await).await.unwrap();
        tunnel.send(b"once").await.unwrap();
        assert_eq!(tunnel.recv().await.unwrap(), "once");
        assert!(matches!(tunnel.recv().await, Err(TunnelError::Ended)));
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tunnels_are_limited_by_user_and_in_total() {
    guard(async {
        let limits = Limits {
            tunnels: 3,
            tunnels_per_user: 2,
            ..Limits::default()
        };
        let bob = Token::new("bob", "the-secret-of-another").unwrap();
        let access = Access::Tokens([token(), bob.clone()].into());
        let policy = TargetPolicy {
            ports: Ports::all(),
            allowed: vec!["127.0.0.1".parse().unwrap()],
            denied: Vec::new(),
        };
        let stage = Stage::with(ProxyConfig {
            limits,
            policy,
            ..ProxyConfig::new(access)
        });
        let target = echo().await;
        let (alice, bob) = (stage.client(), stage.client_with(Some(&bob)));
        let first = alice.open(&target).await.unwrap();
        let _second = alice.open(&target).await.unwrap();
        let (status, why) = refusal(&alice, &target).await;
        assert_eq!(status, StatusCode::TOO_MANY_REQUESTS);
        assert!(why.contains("error=connection_limit_reached"), "{why}");
        let _third = bob.open(&target).await.unwrap();
        let (status, _) = refusal(&bob, &target).await;
        assert_eq!(status, StatusCode::SERVICE_UNAVAILABLE);
        drop(first);
        stage.until(|stats| stats.closed == 1).await;
        bob.open(&target).await.unwrap();
    })
    .await;
}

/// Asks for a tunnel to a port of this machine.
async fn connect_udp(connection: &SendRequest, target: &Target) -> PendingConnect {
    let path = format!("/.well-known/masque/udp/127.0.0.1/{}/", target.port());
    let request = Request::get(format!("https://{NAME}{path}"))
        .header("proxy-authorization", token().credentials().unwrap())
        .body(())
        .unwrap();
    let protocol = ConnectProtocol::new(CONNECT_UDP).unwrap();
    connection.connect(protocol, request).await.unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn datagrams_may_come_in_capsules_beside_others() {
    guard(async {
        let stage = Stage::new();
        let connection = stage.connect().await;
        let pending = connect_udp(&connection, &echo().await).await;
        let datagrams = pending.datagrams().clone();
        let mut content = pending.response().await.unwrap().into_body();
        let udp = |text: &[u8]| context::encode(context::ContextId::UDP, text);
        let mut capsules = Vec::new();
        for (capsule_type, value) in [
            (0x29 * 7 + 0x17, b"grease".to_vec()),
            (0, udp(b"first")),
            (0, b"\x02of another context".to_vec()),
            (0, Vec::new()),
            (0, udp(b"second")),
        ] {
            let value = value.into();
            Capsule {
                capsule_type,
                value,
            }
            .encode(&mut capsules);
        }
        // A byte at a time: capsules and pieces have nothing to do with each other.
        for byte in capsules {
            content.send.write(vec![byte].into()).await.unwrap();
        }
        let mut received = Vec::new();
        for _ in 0..2 {
            received.push(datagrams.recv().await.unwrap());
        }
        assert_eq!(received, [udp(b"first"), udp(b"second")]);
        assert_eq!(stage.proxy.stats().dropped_unknown, 2);
        // Half a capsule, and the end.
        content.send.write(vec![0, 9, 0].into()).await.unwrap();
        content.send.finish().unwrap();
        stage.until(|stats| stats.closed == 1).await;
        // No orderly end (RFC 9297, section 3.3).
        let end = content.receive.read().await.unwrap_err();
        assert_eq!(end, BodyError::Reset(Code::MESSAGE_ERROR));
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_payload_that_udp_can_not_have_aborts_the_tunnel() {
    guard(async {
        let stage = Stage::new();
        let connection = stage.connect().await;
        for (len, is_fine) in [(MAX_UDP_PAYLOAD, true), (MAX_UDP_PAYLOAD + 1, false)] {
            let pending = connect_udp(&connection, &echo().await).await;
            let mut content = pending.response().await.unwrap().into_body();
            let mut capsule = Vec::new();
            let payload = context::encode(context::ContextId::UDP, &vec![0; len]);
            Capsule::datagram(payload.into()).encode(&mut capsule);
            content.send.write(capsule.into()).await.unwrap();
            content.send.finish().unwrap();
            let end = content.receive.read().await.err();
            let fault = BodyError::Reset(Code::MESSAGE_ERROR);
            assert_eq!(end, (!is_fine).then_some(fault), "{len}");
        }
    })
    .await;
}

/// A client without datagrams below HTTP (RFC 9297, section 3.5).
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_without_datagrams_gets_capsules() {
    guard(async {
        let stage = Stage::new();
        let to = stage.server_end.local_addr();
        let connecting = stage.client_end.connect(&stage.client_config, to, NAME);
        let without = h3::Config {
            datagrams: false,
            ..h3::Config::default()
        };
        let connection = SendRequest::new(connecting.unwrap().await.unwrap(), without);
        let pending = connect_udp(&connection, &echo().await).await;
        let mut content = pending.response().await.unwrap().into_body();
        let mut capsules = CapsuleReader::new(2000);
        for payload in [b"first", b"other"] {
            let datagram = context::encode(context::ContextId::UDP, payload);
            let mut capsule = Vec::new();
            Capsule::datagram(datagram.clone().into()).encode(&mut capsule);
            content.send.write(capsule.into()).await.unwrap();
            let received = loop {
                let mut piece = content.receive.read().await.unwrap().unwrap();
                if let Some(capsule) = capsules.next(&mut piece) {
                    break capsule;
                }
            };
            assert_eq!(received, Capsule::datagram(datagram.into()));
        }
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn who_waits_for_a_connection_attempt_shares_its_failure() {
    struct Unreachable(Arc<AtomicUsize>);
    impl Connect for Unreachable {
        fn connect(&self) -> Connecting<'_> {
            self.0.fetch_add(1, Ordering::Relaxed);
            Box::pin(async {
                tokio::time::sleep(Duration::from_millis(200)).await;
                Err("nobody answers".into())
            })
        }
    }
    guard(async {
        let attempts = Arc::new(AtomicUsize::new(0));
        let connector = Unreachable(Arc::clone(&attempts));
        let client = TunnelClient::new(Template::new(NAME).unwrap(), None, connector);
        let mut waiting = JoinSet::new();
        for _ in 0..20 {
            let client = client.clone();
            waiting.spawn(async move { client.connected().await.unwrap_err().to_string() });
        }
        while let Some(error) = waiting.join_next().await {
            assert!(error.unwrap().contains("nobody answers"));
        }
        assert_eq!(attempts.load(Ordering::Relaxed), 1);
        // Who comes later tries again.
        client.connected().await.unwrap_err();
        assert_eq!(attempts.load(Ordering::Relaxed), 2);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_that_vanishes_leaves_nothing_behind() {
    guard(async {
        let stage = Stage::new();
        let client = stage.client();
        let target = echo().await;
        let _tunnels = [
            client.open(&target).await.unwrap(),
            client.open(&target).await.unwrap(),
        ];
        client.close().await;
        stage.until(|stats| stats.closed == 2).await;
        // The next tunnel gets a new connection.
        let mut tunnel = client.open(&target).await.unwrap();
        tunnel.send(b"again").await.unwrap();
        assert_eq!(tunnel.recv().await.unwrap(), "again");
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn connect_without_a_protocol_is_for_tcp() {
    guard(async {
        let stage = Stage::new();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        tokio::spawn(async move {
            let (mut stream, _) = listener.accept().await.unwrap();
            let mut received = Vec::new();
            stream.read_to_end(&mut received).await.unwrap();
            received.reverse();
            stream.write_all(&received).await.unwrap();
        });
        let connection = stage.connect().await;
        let connect = |authority: &str, content: &'static [u8]| {
            let request = Request::builder()
                .method(Method::CONNECT)
                .uri(authority)
                .header("proxy-authorization", token().credentials().unwrap())
                .body(Full::new(Bytes::from_static(content)))
                .unwrap();
            let connection = connection.clone();
            async move { connection.send(request).await.unwrap() }
        };
        let response = connect(&address.to_string(), b"12345").await;
        assert_eq!(response.status(), StatusCode::OK);
        let content = response.into_body().collect().await.unwrap().to_bytes();
        assert_eq!(content, "54321");
        stage.until(|stats| stats.closed == 1).await;

        // Nobody listens there now.
        let response = connect(&address.to_string(), b"").await;
        assert_eq!(response.status(), StatusCode::BAD_GATEWAY);
        for (authority, status) in [("127.0.0.1:53", 403), ("10.0.0.1:443", 403)] {
            assert_eq!(
                connect(authority, b"").await.status(),
                status,
                "{authority}"
            );
        }
    })
    .await;
}
