//! WebSocket through the reverse proxy to upstreams of HTTP/2 (RFC 8441), with a server of another implementation.

use crate::pair;

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Instant;

use bytes::Bytes;
use futures_util::{SinkExt, StreamExt};
use http::{Method, Request, Response, StatusCode};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::ext::Protocol;
use hyper::server::conn::http2;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use swiftwater_http::tcp::{RunningServer, TcpLimits};
use swiftwater_http::web::proxy::{Proxy, ProxyOptions, Upstream as Target};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::protocol::Role;
use tokio_tungstenite::tungstenite::{Error, Message};

use crate::peers::{in_time, plain, until};
use crate::sockets::{
    ask_http1, ask_http2, ask_http3, http2_client, http3_client, refusals_arrive, socket_http2,
    socket_http3, text_http2,
};
use pair::Pair;

#[derive(Default)]
struct Seen {
    heads: Vec<Request<()>>,
    ended: usize,
}

type Notes = Arc<Mutex<Seen>>;

/// A server of HTTP/2 without TLS, which takes extended CONNECT or not.
async fn upstream(takes: bool) -> (SocketAddr, Notes) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let notes = Notes::default();
    let noted = Arc::clone(&notes);
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let notes = Arc::clone(&noted);
            let mut builder = http2::Builder::new(TokioExecutor::new());
            if takes {
                builder.enable_connect_protocol();
            }
            let service = service_fn(move |request| {
                let answer = answer(request, Arc::clone(&notes));
                async move { Ok::<_, Infallible>(answer) }
            });
            tokio::spawn(builder.serve_connection(TokioIo::new(stream), service));
        }
    });
    (address, notes)
}

/// `/echo` echoes, `/die` drops the stream at the first message, everything else is refused.
fn answer(mut request: Request<Incoming>, notes: Notes) -> Response<Full<Bytes>> {
    let mut head = Request::new(());
    *head.method_mut() = request.method().clone();
    *head.uri_mut() = request.uri().clone();
    *head.headers_mut() = request.headers().clone();
    if let Some(protocol) = request.extensions().get::<Protocol>() {
        head.extensions_mut().insert(protocol.clone());
    }
    let path = head.uri().path().to_owned();
    notes.lock().unwrap().heads.push(head);
    if !matches!(&*path, "/echo" | "/die") {
        let mut refusal = Response::new("not you".into());
        *refusal.status_mut() = StatusCode::FORBIDDEN;
        return refusal;
    }
    let mut response = Response::new(Full::default());
    let chosen = http::HeaderValue::from_static("chat");
    response
        .headers_mut()
        .insert("sec-websocket-protocol", chosen);
    let upgrade = hyper::upgrade::on(&mut request);
    tokio::spawn(async move {
        let stream = TokioIo::new(upgrade.await.unwrap());
        let mut socket = WebSocketStream::from_raw_socket(stream, Role::Server, None).await;
        while let Some(Ok(message)) = socket.next().await {
            if path == "/die" {
                break;
            }
            if message.is_close() || socket.send(message).await.is_err() {
                break;
            }
        }
        notes.lock().unwrap().ended += 1;
    });
    response
}

/// A proxy to an upstream, over TCP and over QUIC.
struct World {
    notes: Notes,
    tcp: RunningServer,
    quic: Pair,
}

async fn world(takes: bool) -> World {
    let (address, notes) = upstream(takes).await;
    let target = Target::parse(&format!("h2c://{address}")).unwrap();
    let proxy = Proxy::new(target, ProxyOptions::default());
    World {
        notes,
        tcp: plain(proxy.clone(), TcpLimits::default()).await,
        quic: Pair::new(proxy),
    }
}

impl World {
    async fn http1(&self, path: &str) -> Result<WebSocketStream<TcpStream>, Error> {
        let (socket, response) = ask_http1(self.tcp.local_addr(), path).await?;
        assert_eq!(response.headers()["sec-websocket-protocol"], "chat");
        Ok(socket)
    }

    fn ended(&self) -> usize {
        self.notes.lock().unwrap().ended
    }

    /// What the upstream saw of the newest request.
    fn check_head(&self) {
        let seen = self.notes.lock().unwrap();
        let head = seen.heads.last().unwrap();
        assert_eq!(head.method(), Method::CONNECT);
        let protocol = head.extensions().get::<Protocol>().map(Protocol::as_str);
        assert_eq!(protocol, Some("websocket"));
        assert_eq!(head.uri().scheme_str(), Some("http"));
        assert_eq!(head.headers()["sec-websocket-version"], "13");
        for field in [
            "sec-websocket-key",
            "upgrade",
            "connection",
            "host",
            "content-length",
        ] {
            assert!(!head.headers().contains_key(field), "{field}");
        }
    }
}

/// Text, a large message and the end, in this order.
async fn converse<S>(mut socket: WebSocketStream<S>)
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let large = Bytes::from(pair::noise(3_000_000));
    for message in [Message::text("hello"), Message::Binary(large)] {
        in_time(socket.send(message.clone())).await.unwrap();
        let answer = in_time(socket.next()).await.unwrap().unwrap();
        assert!(answer == message);
    }
    in_time(socket.close(None)).await.unwrap();
    while let Some(Ok(message)) = in_time(socket.next()).await {
        assert!(message.is_close());
    }
}

#[tokio::test]
async fn clients_of_every_version_converse() {
    let world = world(true).await;
    converse(world.http1("/echo").await.unwrap()).await;
    world.check_head();
    until(|| world.ended() == 1).await;
    let mut client = http2_client(world.tcp.local_addr()).await;
    let (response, sender) = ask_http2(&mut client, "/echo", "websocket").await;
    assert_eq!(response.headers()["sec-websocket-protocol"], "chat");
    assert!(response.headers().get("sec-websocket-accept").is_none());
    converse(socket_http2(response, sender).await).await;
    world.check_head();
    until(|| world.ended() == 2).await;
    let client = http3_client(&world.quic).await;
    let (response, sending) = ask_http3(&client, "/echo", "websocket").await;
    assert_eq!(response.headers()["sec-websocket-protocol"], "chat");
    converse(socket_http3(response, sending).await).await;
    world.check_head();
    until(|| world.ended() == 3).await;
}

#[tokio::test]
async fn refusals_of_the_upstream_reach_clients() {
    let world = world(true).await;
    match world.http1("/refused").await {
        Err(Error::Http(response)) => assert_eq!(response.status(), StatusCode::FORBIDDEN),
        other => panic!("{other:?}"),
    }
    refusals_arrive(world.tcp.local_addr(), &world.quic).await;
}

#[tokio::test]
async fn an_upstream_that_ends_the_stream_ends_the_tunnel() {
    let world = world(true).await;
    let mut socket = world.http1("/die").await.unwrap();
    socket.send(Message::text("x")).await.unwrap();
    assert!(!matches!(in_time(socket.next()).await, Some(Ok(_))));
    until(|| world.tcp.connections() == 0).await;
}

#[tokio::test]
async fn a_client_that_dies_ends_the_stream() {
    let world = world(true).await;
    let socket = world.http1("/echo").await.unwrap();
    socket.get_ref().set_zero_linger().unwrap();
    drop(socket);
    until(|| world.ended() == 1).await;
    // The connection to the upstream goes on.
    converse(world.http1("/echo").await.unwrap()).await;
    until(|| world.ended() == 2).await;
}

#[tokio::test]
async fn an_upstream_without_extended_connect_is_not_asked() {
    let world = world(false).await;
    let mut client = http2_client(world.tcp.local_addr()).await;
    let mut times = Vec::new();
    for _ in 0..2 {
        let begun = Instant::now();
        let (response, _sender) = ask_http2(&mut client, "/echo", "websocket").await;
        assert_eq!(response.status(), StatusCode::NOT_IMPLEMENTED);
        let text = text_http2(response).await;
        assert!(text.contains("no WebSocket over HTTP/2"), "{text}");
        times.push(begun.elapsed());
    }
    // The second one is answered from memory.
    assert!(times[1] < times[0], "{times:?}");
    match world.http1("/echo").await {
        Err(Error::Http(response)) => assert_eq!(response.status(), 501),
        other => panic!("{other:?}"),
    }
    assert!(world.notes.lock().unwrap().heads.is_empty());
}
