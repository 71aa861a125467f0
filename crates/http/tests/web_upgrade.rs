//! Requests for other protocols over every version of HTTP: the byte stream of a service, its ends, and its limits.

use crate::pair;

use std::convert::Infallible;
use std::future::poll_fn;
use std::pin::Pin;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http::{Method, Request, Response, StatusCode, Version};
use http_body::{Body as _, Frame};
use http_body_util::BodyExt;
use swiftwater_http::h3::ConnectProtocol;
use swiftwater_http::tcp::{RunningServer, TcpLimits};
use swiftwater_http::udp::RecvBody;
use swiftwater_http::web::body::Body;
use swiftwater_http::web::upgrade::UpgradeRequest;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tower::service_fn;

use crate::peers::{Feeder, fed, http2, in_time, plain, text, until};
use crate::sockets::http2_client;
use pair::Pair;

/// Echoes the bytes of each request for `echo`; at `/half` it greets and ends before it reads, at `/broken` it drops the
/// stream.
async fn echo(request: Request<Body>) -> Result<Response<Body>, Infallible> {
    let asked = request.extensions().get::<UpgradeRequest>();
    let asked = asked.filter(|asked| asked.asks_for("echo"));
    let Some((response, mut stream)) = asked.and_then(|asked| asked.accept("echo")) else {
        let mut response = Response::new(Body::full("refused"));
        *response.status_mut() = StatusCode::NOT_IMPLEMENTED;
        return Ok(response);
    };
    let path = request.uri().path().to_owned();
    tokio::spawn(async move {
        match path.as_str() {
            "/half" => {
                stream.write_all(b"done").await.unwrap();
                stream.shutdown().await.unwrap();
                let mut rest = Vec::new();
                stream.read_to_end(&mut rest).await.unwrap();
                assert_eq!(rest, b"still here");
            }
            "/broken" => stream.write_all(b"part").await.unwrap(),
            _ => {
                let (mut reader, mut writer) = tokio::io::split(stream);
                if tokio::io::copy(&mut reader, &mut writer).await.is_ok() {
                    let _ = writer.shutdown().await;
                }
            }
        }
    });
    Ok(response)
}

async fn server() -> RunningServer {
    plain(service_fn(echo), TcpLimits::default()).await
}

/// A connection of HTTP/1.1 whose request was sent, and the head of the response.
async fn upgrade(server: &RunningServer, path: &str, fields: &str) -> (TcpStream, String) {
    let mut stream = TcpStream::connect(server.local_addr()).await.unwrap();
    let request = format!("GET {path} HTTP/1.1\r\nhost: x\r\n{fields}\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(in_time(stream.read_u8()).await.unwrap());
    }
    let head = String::from_utf8(head).unwrap().to_ascii_lowercase();
    (stream, head)
}

const UPGRADE: &str = "connection: keep-alive, Upgrade\r\nupgrade: other, Echo\r\n";

#[tokio::test]
async fn http1_connections_are_upgraded() {
    let server = server().await;
    let (mut stream, head) = upgrade(&server, "/", UPGRADE).await;
    assert!(head.starts_with("http/1.1 101 "), "{head}");
    assert!(head.contains("\r\nconnection: upgrade\r\n"), "{head}");
    assert!(head.contains("\r\nupgrade: echo\r\n"), "{head}");
    let content = pair::noise(300_000);
    let (mut reader, mut writer) = stream.split();
    let (sent, received) = in_time(async {
        let mut received = Vec::new();
        tokio::join!(
            async {
                writer.write_all(&content).await?;
                writer.shutdown().await
            },
            async {
                reader.read_to_end(&mut received).await.unwrap();
                received
            }
        )
    })
    .await;
    sent.unwrap();
    assert!(received == content, "{} bytes", received.len());
    until(|| server.connections() == 0).await;
}

#[tokio::test]
async fn bytes_right_after_the_request_are_the_tunnels() {
    let server = server().await;
    let mut stream = TcpStream::connect(server.local_addr()).await.unwrap();
    let request = format!("GET / HTTP/1.1\r\nhost: x\r\n{UPGRADE}\r\nearly");
    stream.write_all(request.as_bytes()).await.unwrap();
    stream.shutdown().await.unwrap();
    let mut all = Vec::new();
    in_time(stream.read_to_end(&mut all)).await.unwrap();
    assert!(all.ends_with(b"\r\n\r\nearly"), "{all:?}");
}

#[tokio::test]
async fn other_requests_stay_messages() {
    let server = server().await;
    for fields in [
        // Not asked for by the connection; content before the other protocol; another protocol.
        "upgrade: echo\r\nconnection: close\r\n",
        "connection: upgrade\r\nupgrade: echo\r\ncontent-length: 1\r\n\r\nx",
        "connection: upgrade\r\nupgrade: h2c\r\n",
    ] {
        let (_, head) = upgrade(&server, "/", fields).await;
        assert!(head.starts_with("http/1.1 501 "), "{fields}: {head}");
    }
}

#[tokio::test]
async fn an_http1_tunnel_ends_as_the_service_ends_it() {
    let server = server().await;
    let (mut stream, _) = upgrade(&server, "/half", UPGRADE).await;
    let mut all = Vec::new();
    in_time(stream.read_to_end(&mut all)).await.unwrap();
    assert_eq!(all, b"done");
    stream.write_all(b"still here").await.unwrap();
    stream.shutdown().await.unwrap();
    let (mut stream, _) = upgrade(&server, "/broken", UPGRADE).await;
    in_time(stream.read_to_end(&mut all)).await.unwrap();
    until(|| server.connections() == 0).await;
}

/// A request for `protocol` over HTTP/2.
fn connect(path: &str, protocol: &'static str) -> Request<()> {
    let mut request = Request::new(());
    *request.method_mut() = Method::CONNECT;
    *request.uri_mut() = format!("http://x{path}").parse().unwrap();
    *request.version_mut() = Version::HTTP_2;
    let protocol = h2::ext::Protocol::from_static(protocol);
    request.extensions_mut().insert(protocol);
    request
}

/// Everything up to the end of a stream.
async fn read_h2(body: &mut h2::RecvStream) -> Result<Vec<u8>, h2::Error> {
    let mut all = Vec::new();
    while let Some(piece) = in_time(body.data()).await {
        let piece = piece?;
        let _ = body.flow_control().release_capacity(piece.len());
        all.extend_from_slice(&piece);
    }
    Ok(all)
}

#[tokio::test]
async fn http2_streams_become_tunnels() {
    let server = server().await;
    let mut client = http2_client(server.local_addr()).await;
    let (answer, mut sender) = client.send_request(connect("/", "echo"), false).unwrap();
    let answer = in_time(answer).await.unwrap();
    assert_eq!(answer.status(), StatusCode::OK);
    assert!(answer.headers().get("content-length").is_none());
    let content = Bytes::from(pair::noise(300_000));
    let sent = content.clone();
    tokio::spawn(async move { sender.send_data(sent, true).unwrap() });
    let received = read_h2(&mut answer.into_body()).await.unwrap();
    assert!(received == content, "{} bytes", received.len());
    // Other streams of the connection go on.
    let (answer, _) = client.send_request(connect("/", "unknown"), true).unwrap();
    assert_eq!(
        in_time(answer).await.unwrap().status(),
        StatusCode::NOT_IMPLEMENTED
    );
}

#[tokio::test]
async fn an_http2_tunnel_ends_as_the_service_ends_it() {
    let server = server().await;
    let mut client = http2_client(server.local_addr()).await;
    let (answer, mut sender) = client
        .send_request(connect("/half", "echo"), false)
        .unwrap();
    let mut body = in_time(answer).await.unwrap().into_body();
    assert_eq!(read_h2(&mut body).await.unwrap(), b"done");
    sender
        .send_data(Bytes::from_static(b"still here"), true)
        .unwrap();
    let (answer, _sender) = client
        .send_request(connect("/broken", "echo"), false)
        .unwrap();
    let mut body = in_time(answer).await.unwrap().into_body();
    let error = read_h2(&mut body).await.unwrap_err();
    assert_eq!(error.reason(), Some(h2::Reason::CANCEL));
}

#[tokio::test]
async fn an_http2_client_that_reads_nothing_loses_its_stream_only() {
    let limits = TcpLimits {
        send_timeout: Duration::from_millis(400),
        ..TcpLimits::default()
    };
    let server = plain(service_fn(echo), limits).await;
    let mut client = http2_client(server.local_addr()).await;
    let (answer, mut sender) = client.send_request(connect("/", "echo"), false).unwrap();
    let mut body = in_time(answer).await.unwrap().into_body();
    sender
        .send_data(Bytes::from(pair::noise(400_000)), false)
        .unwrap();
    let reset = in_time(poll_fn(|cx| sender.poll_reset(cx))).await.unwrap();
    assert_eq!(reset, h2::Reason::CANCEL);
    assert!(read_h2(&mut body).await.is_err());
    let (answer, _) = client.send_request(connect("/", "unknown"), true).unwrap();
    assert_eq!(
        in_time(answer).await.unwrap().status(),
        StatusCode::NOT_IMPLEMENTED
    );
}

#[tokio::test]
async fn tunnels_keep_their_connection_open() {
    let limits = TcpLimits {
        idle_timeout: Duration::from_millis(200),
        header_timeout: Duration::from_millis(200),
        ..TcpLimits::default()
    };
    let server = plain(service_fn(echo), limits).await;
    let (mut stream, _) = upgrade(&server, "/", UPGRADE).await;
    let mut client = http2_client(server.local_addr()).await;
    let (answer, mut sender) = client.send_request(connect("/", "echo"), false).unwrap();
    let mut body = in_time(answer).await.unwrap().into_body();
    tokio::time::sleep(Duration::from_millis(900)).await;
    stream.write_all(b"x").await.unwrap();
    assert_eq!(in_time(stream.read_u8()).await.unwrap(), b'x');
    sender.send_data(Bytes::from_static(b"y"), false).unwrap();
    assert_eq!(in_time(body.data()).await.unwrap().unwrap(), "y");
}

#[tokio::test]
async fn tunnels_count_as_connections_until_they_end() {
    let server = server().await;
    let (stream, _) = upgrade(&server, "/", UPGRADE).await;
    tokio::time::sleep(Duration::from_millis(50)).await;
    assert_eq!(server.connections(), 1);
    drop(stream);
    until(|| server.connections() == 0).await;
}

/// A request for `protocol` over HTTP/3, and the end that feeds its tunnel.
fn connect_h3(path: &str, protocol: &str) -> (Request<Body>, Feeder) {
    let (feeder, body) = fed();
    let mut request = Request::new(body);
    *request.method_mut() = Method::CONNECT;
    *request.uri_mut() = format!("https://{}{path}", pair::NAME).parse().unwrap();
    let protocol = ConnectProtocol::new(protocol).unwrap();
    request.extensions_mut().insert(protocol);
    (request, feeder)
}

async fn read_h3(body: &mut RecvBody) -> Result<Vec<u8>, swiftwater_http::h3::BodyError> {
    let mut all = BytesMut::new();
    while let Some(frame) = in_time(poll_fn(|cx| Pin::new(&mut *body).poll_frame(cx))).await {
        all.extend_from_slice(&frame?.into_data().unwrap_or_default());
    }
    Ok(all.to_vec())
}

#[tokio::test]
async fn http3_streams_become_tunnels() {
    let pair = Pair::new(service_fn(echo));
    let client = pair.connect().await;
    until(|| client.peer_settings().is_some()).await;
    let (request, feeder) = connect_h3("/", "echo");
    let answer = in_time(client.send(request)).await.unwrap();
    assert_eq!(answer.status(), StatusCode::OK);
    let content = Bytes::from(pair::noise(300_000));
    feeder.frame(Frame::data(content.clone()));
    drop(feeder);
    let received = read_h3(&mut answer.into_body()).await.unwrap();
    assert!(received == content, "{} bytes", received.len());
    let (request, _feeder) = connect_h3("/", "unknown");
    let answer = in_time(client.send(request)).await.unwrap();
    assert_eq!(answer.status(), StatusCode::NOT_IMPLEMENTED);
    assert_eq!(
        in_time(answer.into_body().collect())
            .await
            .unwrap()
            .to_bytes(),
        "refused"
    );
}

#[tokio::test]
async fn an_http3_tunnel_ends_as_the_service_ends_it() {
    let pair = Pair::new(service_fn(echo));
    let client = pair.connect().await;
    until(|| client.peer_settings().is_some()).await;
    let (request, feeder) = connect_h3("/half", "echo");
    let mut body = in_time(client.send(request)).await.unwrap().into_body();
    assert_eq!(read_h3(&mut body).await.unwrap(), b"done");
    feeder.data("still here");
    drop(feeder);
    let (request, _feeder) = connect_h3("/broken", "echo");
    // The reset may overtake the head.
    if let Ok(answer) = in_time(client.send(request)).await {
        assert!(read_h3(&mut answer.into_body()).await.is_err());
    }
}

#[tokio::test]
async fn http2_clients_of_the_library_get_refusals_with_content() {
    let server = server().await;
    let stream = TcpStream::connect(server.local_addr()).await.unwrap();
    let mut client = http2(stream).await;
    let mut request = Request::new(Body::empty());
    *request.method_mut() = Method::CONNECT;
    *request.uri_mut() = "x:80".parse().unwrap();
    let answer = in_time(client.send_request(request)).await.unwrap();
    assert_eq!(answer.status(), StatusCode::NOT_IMPLEMENTED);
    assert_eq!(text(answer).await, "refused");
}
