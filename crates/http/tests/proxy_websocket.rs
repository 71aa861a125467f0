//! WebSocket through the reverse proxy, from clients of HTTP/1.1, HTTP/2 and HTTP/3, with a server and clients of
//! another implementation.

use crate::pair;

use std::time::Duration;

use bytes::Bytes;
use futures_util::{SinkExt, StreamExt};
use http::StatusCode;
use swiftwater_http::tcp::{RunningServer, TcpLimits};
use swiftwater_http::web::balancer::Balancer;
use swiftwater_http::web::proxy::{Proxy, ProxyOptions, Upstream as Target};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::handshake::client::generate_key;
use tokio_tungstenite::tungstenite::protocol::CloseFrame;
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;
use tokio_tungstenite::tungstenite::{Error, Message};

use crate::peers::{in_time, plain, until};
use crate::sockets::{
    Tunnelled, Upstream, ask_http1, ask_http2, ask_http3, http2_client, http3_client,
    refusals_arrive, socket_http2, socket_http3,
};
use pair::Pair;

/// A proxy to an upstream, over TCP and over QUIC.
struct World {
    upstream: Upstream,
    tcp: RunningServer,
    quic: Pair,
}

async fn world() -> World {
    with(ProxyOptions::default()).await
}

async fn with(options: ProxyOptions) -> World {
    let upstream = Upstream::start().await;
    let target = Target::parse(&format!("http://{}", upstream.address)).unwrap();
    let proxy = Proxy::new(target, options);
    World {
        upstream,
        tcp: plain(proxy.clone(), TcpLimits::default()).await,
        quic: Pair::new(proxy),
    }
}

type Plain = WebSocketStream<TcpStream>;

impl World {
    async fn http1(&self, path: &str) -> Result<Plain, Error> {
        let (socket, response) = ask_http1(self.tcp.local_addr(), path).await?;
        assert_eq!(response.headers()["sec-websocket-protocol"], "chat");
        assert!(response.headers().get("content-length").is_none());
        Ok(socket)
    }

    async fn http2(&self, path: &str) -> Tunnelled {
        let mut client = http2_client(self.tcp.local_addr()).await;
        let (response, sender) = ask_http2(&mut client, path, "websocket").await;
        assert_eq!(response.headers()["sec-websocket-protocol"], "chat");
        assert!(response.headers().get("sec-websocket-accept").is_none());
        assert!(response.headers().get("upgrade").is_none());
        socket_http2(response, sender).await
    }

    /// The socket lives as long as its client.
    async fn http3(&self, path: &str) -> (Tunnelled, swiftwater_http::udp::SendRequest) {
        let client = http3_client(&self.quic).await;
        let (response, sending) = ask_http3(&client, path, "websocket").await;
        assert_eq!(response.headers()["sec-websocket-protocol"], "chat");
        assert!(response.headers().get("sec-websocket-accept").is_none());
        (socket_http3(response, sending).await, client)
    }
}

/// Text, a large message and the end, in this order.
async fn converse<S>(mut socket: WebSocketStream<S>, upstream: &Upstream)
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    socket.send(Message::text("hello")).await.unwrap();
    let answer = in_time(socket.next()).await.unwrap().unwrap();
    assert_eq!(answer, Message::text("hello"));
    let large = Bytes::from(pair::noise(3_000_000));
    in_time(socket.send(Message::Binary(large.clone())))
        .await
        .unwrap();
    let answer = in_time(socket.next()).await.unwrap().unwrap();
    assert!(answer == Message::Binary(large));
    let reason = CloseFrame {
        code: CloseCode::Normal,
        reason: "enough".into(),
    };
    in_time(socket.close(Some(reason.clone()))).await.unwrap();
    let answer = in_time(socket.next()).await.unwrap().unwrap();
    assert_eq!(answer, Message::Close(Some(reason.clone())));
    assert!(in_time(socket.next()).await.is_none());
    until(|| upstream.ended() == 1).await;
    assert_eq!(
        upstream.messages().pop(),
        Some(Message::Close(Some(reason)))
    );
    let head = upstream.heads().pop().unwrap();
    assert!(head.starts_with("get /echo http/1.1\r\n"), "{head}");
    for line in [
        "connection: upgrade",
        "upgrade: websocket",
        "sec-websocket-version: 13",
        "sec-websocket-protocol: chat, other",
    ] {
        assert_eq!(
            head.lines().filter(|other| *other == line).count(),
            1,
            "{head}"
        );
    }
    assert_eq!(head.matches("sec-websocket-key: ").count(), 1, "{head}");
    assert!(
        !head.contains("content-length") && !head.contains("transfer-encoding"),
        "{head}"
    );
}

#[tokio::test]
async fn http1_clients_converse() {
    let world = world().await;
    converse(world.http1("/echo").await.unwrap(), &world.upstream).await;
    until(|| world.tcp.connections() == 0).await;
}

#[tokio::test]
async fn http2_clients_converse() {
    let world = world().await;
    converse(world.http2("/echo").await, &world.upstream).await;
}

#[tokio::test]
async fn http3_clients_converse() {
    let world = world().await;
    let (socket, _client) = world.http3("/echo").await;
    converse(socket, &world.upstream).await;
}

#[tokio::test]
async fn refusals_of_the_upstream_reach_clients() {
    let world = world().await;
    match world.http1("/refused").await {
        Err(Error::Http(response)) => {
            assert_eq!(response.status(), StatusCode::FORBIDDEN);
            // As received: in chunks.
            let content = String::from_utf8_lossy(response.body().as_deref().unwrap());
            assert!(content.contains("not you"), "{content}");
        }
        other => panic!("{other:?}"),
    }
    refusals_arrive(world.tcp.local_addr(), &world.quic).await;
}

#[tokio::test]
async fn only_a_consent_makes_a_tunnel() {
    let world = world().await;
    let mut client = http2_client(world.tcp.local_addr()).await;
    let h3 = http3_client(&world.quic).await;
    // No consent, that to another key, and an incomplete one.
    for path in ["/plain", "/wrong", "/incomplete"] {
        let (response, _sender) = ask_http2(&mut client, path, "websocket").await;
        assert_eq!(response.status(), StatusCode::BAD_GATEWAY, "{path}");
        let (response, _sending) = ask_http3(&h3, path, "websocket").await;
        assert_eq!(response.status(), StatusCode::BAD_GATEWAY, "{path}");
    }
    // Over HTTP/1.1 another status can't be mistaken for consent.
    for (path, status) in [("/plain", 200), ("/incomplete", 502)] {
        match world.http1(path).await {
            Err(Error::Http(response)) => assert_eq!(response.status(), status, "{path}"),
            other => panic!("{path}: {other:?}"),
        }
    }
}

#[tokio::test]
async fn other_protocols_are_not_implemented() {
    let world = world().await;
    let mut client = http2_client(world.tcp.local_addr()).await;
    let (response, _sender) = ask_http2(&mut client, "/echo", "connect-udp").await;
    assert_eq!(response.status(), StatusCode::NOT_IMPLEMENTED);
    let client = http3_client(&world.quic).await;
    let (response, _sending) = ask_http3(&client, "/echo", "connect-udp").await;
    assert_eq!(response.status(), StatusCode::NOT_IMPLEMENTED);
    assert!(world.upstream.heads().is_empty());
}

#[tokio::test]
async fn it_can_be_switched_off() {
    let options = ProxyOptions {
        websocket: false,
        ..ProxyOptions::default()
    };
    let world = with(options).await;
    match world.http1("/echo").await {
        Err(Error::Http(response)) => assert_eq!(response.status(), 501),
        other => panic!("{other:?}"),
    }
    let mut client = http2_client(world.tcp.local_addr()).await;
    let (response, _sender) = ask_http2(&mut client, "/echo", "websocket").await;
    assert_eq!(response.status(), StatusCode::NOT_IMPLEMENTED);
    assert!(world.upstream.heads().is_empty());
}

/// The end of a socket whose upstream was reset: no close frame.
async fn is_cut<S>(mut socket: WebSocketStream<S>)
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    socket.send(Message::text("x")).await.unwrap();
    match in_time(socket.next()).await {
        Some(Err(_)) | None => {}
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn an_upstream_that_dies_ends_the_tunnel() {
    let world = world().await;
    is_cut(world.http1("/die").await.unwrap()).await;
    until(|| world.tcp.connections() == 0).await;
    is_cut(world.http2("/die").await).await;
    let (socket, _client) = world.http3("/die").await;
    is_cut(socket).await;
}

#[tokio::test]
async fn a_client_that_dies_ends_the_tunnel() {
    let world = world().await;
    let socket = world.http1("/echo").await.unwrap();
    socket.get_ref().set_zero_linger().unwrap();
    drop(socket);
    until(|| world.upstream.ended() == 1).await;
    // The end of the stream, without a close frame.
    drop(world.http2("/echo").await);
    until(|| world.upstream.ended() == 2).await;
    let (socket, client) = world.http3("/echo").await;
    client.close();
    until(|| world.upstream.ended() == 3).await;
    drop(socket);
    until(|| world.tcp.connections() == 0).await;
}

#[tokio::test]
async fn silence_has_a_limit() {
    let options = ProxyOptions {
        websocket_timeout: Duration::from_secs(2),
        ..ProxyOptions::default()
    };
    let world = with(options).await;
    let mut socket = world.http1("/echo").await.unwrap();
    for _ in 0..4 {
        tokio::time::sleep(Duration::from_millis(700)).await;
        socket.send(Message::text("x")).await.unwrap();
        assert_eq!(
            in_time(socket.next()).await.unwrap().unwrap(),
            Message::text("x")
        );
    }
    assert!(!matches!(in_time(socket.next()).await, Some(Ok(_))));
    until(|| world.upstream.ended() == 1).await;
}

#[tokio::test]
async fn each_direction_waits_for_its_reader_alone() {
    let world = world().await;
    let mut socket = world.http1("/flood").await.unwrap();
    // The client reads nothing: the upstream must stop.
    let mut before = 0;
    in_time(async {
        loop {
            tokio::time::sleep(Duration::from_millis(300)).await;
            let now = world.upstream.flooded();
            if now > 0 && now == before {
                break;
            }
            before = now;
        }
    })
    .await;
    // What sockets hold, and a little.
    assert!(before < 200_000_000, "{before}");
    socket.send(Message::text("still heard")).await.unwrap();
    until(|| world.upstream.messages() == [Message::text("still heard")]).await;
    let mut received = 0;
    while received <= before {
        received += in_time(socket.next()).await.unwrap().unwrap().len();
    }
}

#[tokio::test]
async fn an_upstream_that_is_down_is_left_out() {
    let upstream = Upstream::start().await;
    let down = TcpListener::bind("127.0.0.1:0")
        .await
        .unwrap()
        .local_addr()
        .unwrap();
    let target = |address| Target::parse(&format!("http://{address}")).unwrap();
    let balancer = Balancer::new(
        target(down),
        vec![target(upstream.address)],
        &ProxyOptions::default(),
    );
    let server = plain(balancer, TcpLimits::default()).await;
    let mut client = http2_client(server.local_addr()).await;
    for _ in 0..2 {
        let (response, sender) = ask_http2(&mut client, "/echo", "websocket").await;
        let mut socket = socket_http2(response, sender).await;
        socket.send(Message::text("x")).await.unwrap();
        assert_eq!(
            in_time(socket.next()).await.unwrap().unwrap(),
            Message::text("x")
        );
    }
}

/// What a client gets for a request written by hand, followed by another request.
async fn smuggle(world: &World, fields: &str) -> String {
    let mut stream = TcpStream::connect(world.tcp.local_addr()).await.unwrap();
    let request = format!(
        "GET /echo HTTP/1.1\r\nhost: x\r\n{fields}\r\nGET /smuggled HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n"
    );
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut all = Vec::new();
    let _ = tokio::time::timeout(Duration::from_secs(2), stream.read_to_end(&mut all)).await;
    String::from_utf8_lossy(&all).into_owned()
}

#[tokio::test]
async fn nothing_is_smuggled_past_a_handshake() {
    let world = world().await;
    let key = format!("sec-websocket-key: {}\r\n", generate_key());
    let upgrade = "upgrade: websocket\r\nconnection: upgrade\r\n";
    // Refused by the upstream: a version it doesn't speak, no key, a key that `Connection` removes.
    for fields in [
        format!("{upgrade}{key}sec-websocket-version: 12\r\n"),
        format!("{upgrade}sec-websocket-version: 13\r\n"),
        format!(
            "upgrade: websocket\r\nconnection: upgrade, sec-websocket-key\r\n{key}\
             sec-websocket-version: 13\r\n"
        ),
    ] {
        let answer = smuggle(&world, &fields).await;
        let first = answer.lines().next().unwrap_or_default();
        assert!(
            !first.contains(" 101 ") && first.starts_with("HTTP/1.1 "),
            "{fields}: {answer}"
        );
    }
    // The second request was one of its own for the proxy, or none: never a part of a tunnel.
    for head in world.upstream.heads() {
        assert!(head.contains("\r\nvia: 1.1 swiftwater"), "{head}");
        assert!(head.contains("\r\nx-forwarded-for: "), "{head}");
    }
    // Fields that the proxy sets can't be removed by naming them.
    let fields = format!(
        "upgrade: websocket\r\nconnection: upgrade, host, x-forwarded-for, upgrade, via\r\n{key}\
         sec-websocket-version: 13\r\nx-forwarded-for: 192.0.2.1\r\n"
    );
    let answer = smuggle(&world, &fields).await;
    assert!(answer.starts_with("HTTP/1.1 101 "), "{answer}");
    let head = world.upstream.heads().pop().unwrap();
    for field in [
        "host: ",
        "via: ",
        "x-forwarded-for: 127.0.0.1",
        "upgrade: websocket",
    ] {
        assert!(head.contains(&format!("\r\n{field}")), "{field}: {head}");
    }
    // With content, by another method, and by HTTP/1.0 it is no handshake.
    let heads = world.upstream.heads().len();
    for fields in [
        format!("{upgrade}{key}sec-websocket-version: 13\r\ncontent-length: 3\r\n\r\nabc"),
        format!(
            "{upgrade}{key}sec-websocket-version: 13\r\ntransfer-encoding: chunked\r\n\r\n0\r\n"
        ),
    ] {
        let answer = smuggle(&world, &fields).await;
        assert!(answer.starts_with("HTTP/1.1 501 "), "{fields}: {answer}");
    }
    for head in &world.upstream.heads()[heads..] {
        assert!(head.starts_with("get /smuggled "), "{head}");
    }
}
