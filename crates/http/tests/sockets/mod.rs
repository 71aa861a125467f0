//! WebSocket peers: an upstream whose paths behave differently, and clients over every version of HTTP.

#![allow(dead_code, reason = "each test file uses a part")]

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use futures_util::{SinkExt, StreamExt};
use http::{Method, Request, Response, StatusCode, Version};
use http_body::Frame;
use http_body_util::BodyExt;
use swiftwater_http::h3::ConnectProtocol;
use swiftwater_http::udp::{RecvBody, SendRequest};
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream, duplex};
use tokio::net::{TcpListener, TcpStream};
use tokio_tungstenite::tungstenite::handshake::client::{Response as ClientResponse, generate_key};
use tokio_tungstenite::tungstenite::handshake::server::{ErrorResponse, Request as Asked};
use tokio_tungstenite::tungstenite::protocol::Role;
use tokio_tungstenite::tungstenite::{Error, Message};
use tokio_tungstenite::{WebSocketStream, client_async};

use crate::pair::Pair;
use crate::peers::{fed, in_time, until};

/// A server of WebSocket.
pub(crate) struct Upstream {
    pub(crate) address: SocketAddr,
    seen: Arc<Mutex<Seen>>,
}

#[derive(Default)]
struct Seen {
    heads: Vec<String>,
    /// Connections that have ended.
    ended: usize,
    /// Bytes of messages sent at `/flood`.
    flooded: usize,
    messages: Vec<Message>,
}

impl Upstream {
    /// `/echo` echoes, `/refused` answers 403, `/plain` 200; `/wrong` agrees to another key; `/die` drops the connection at the
    /// first message, `/flood` sends until it can't and notes messages; the others answer 101 and nothing of WebSocket.
    pub(crate) async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let seen: Arc<Mutex<Seen>> = Arc::default();
        let noted = Arc::clone(&seen);
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let seen = Arc::clone(&noted);
                tokio::spawn(async move {
                    serve(stream, &seen).await;
                    seen.lock().unwrap().ended += 1;
                });
            }
        });
        Self { address, seen }
    }

    /// The heads of the requests so far, in lower case.
    pub(crate) fn heads(&self) -> Vec<String> {
        self.seen.lock().unwrap().heads.clone()
    }

    pub(crate) fn ended(&self) -> usize {
        self.seen.lock().unwrap().ended
    }

    pub(crate) fn flooded(&self) -> usize {
        self.seen.lock().unwrap().flooded
    }

    pub(crate) fn messages(&self) -> Vec<Message> {
        self.seen.lock().unwrap().messages.clone()
    }
}

async fn head(stream: &TcpStream) -> String {
    let mut bytes = [0; 4096];
    loop {
        let count = stream.peek(&mut bytes).await.unwrap_or(0);
        let text = String::from_utf8_lossy(&bytes[..count]).into_owned();
        if let Some((head, _)) = text.split_once("\r\n\r\n") {
            return head.to_ascii_lowercase();
        }
        if count == 0 {
            return text;
        }
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
}

#[allow(
    clippy::result_large_err,
    reason = "the type that the library requires"
)]
async fn serve(mut stream: TcpStream, seen: &Mutex<Seen>) {
    let head = head(&stream).await;
    let path = head.split(' ').nth(1).unwrap_or_default().to_owned();
    seen.lock().unwrap().heads.push(head);
    let raw = match path.as_str() {
        "/echo" | "/refused" | "/die" | "/flood" => None,
        "/plain" => Some("HTTP/1.1 200 OK\r\ncontent-length: 4\r\nconnection: close\r\n\r\ntext"),
        "/wrong" => Some(
            "HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: websocket\r\n\
             sec-websocket-accept: AAAAAAAAAAAAAAAAAAAAAAAAAAA=\r\n\r\n",
        ),
        _ => Some("HTTP/1.1 101 Switching Protocols\r\n\r\n"),
    };
    if let Some(raw) = raw {
        let _ = stream.write_all(raw.as_bytes()).await;
        let mut rest = Vec::new();
        let _ = stream.read_to_end(&mut rest).await;
        let text = String::from_utf8_lossy(&rest).to_ascii_lowercase();
        let further = text
            .split("\r\n\r\n")
            .skip(1)
            .filter(|text| !text.is_empty());
        (seen.lock().unwrap().heads).extend(further.map(str::to_owned));
        return;
    }
    let answer = |asked: &Asked, mut response: Response<()>| {
        if asked.uri().path() == "/refused" {
            let mut refusal = ErrorResponse::new(Some("not you".to_owned()));
            *refusal.status_mut() = StatusCode::FORBIDDEN;
            return Err(refusal);
        }
        if asked.headers().contains_key("sec-websocket-protocol") {
            let chosen = http::HeaderValue::from_static("chat");
            let headers = response.headers_mut();
            headers.insert("sec-websocket-protocol", chosen);
        }
        Ok(response)
    };
    let Ok(mut socket) = tokio_tungstenite::accept_hdr_async(stream, answer).await else {
        return;
    };
    match path.as_str() {
        "/die" => {
            let _ = socket.next().await;
            // RST instead of an orderly end.
            let _ = socket.get_ref().set_zero_linger();
        }
        "/flood" => {
            let (mut sender, mut receiver) = socket.split();
            let flood = async {
                let piece = Bytes::from(vec![7; 64 * 1024]);
                while sender.send(Message::Binary(piece.clone())).await.is_ok() {
                    seen.lock().unwrap().flooded += piece.len();
                }
            };
            let listen = async {
                while let Some(Ok(message)) = receiver.next().await {
                    seen.lock().unwrap().messages.push(message);
                }
            };
            tokio::join!(flood, listen);
        }
        _ => {
            while let Some(Ok(message)) = socket.next().await {
                seen.lock().unwrap().messages.push(message.clone());
                let is_data = message.is_text() || message.is_binary();
                if is_data && socket.send(message).await.is_err() {
                    break;
                }
            }
        }
    }
}

/// A WebSocket whose bytes go over a stream of HTTP.
pub(crate) type Tunnelled = WebSocketStream<DuplexStream>;

/// A handshake over HTTP/1.1.
pub(crate) async fn ask_http1(
    address: SocketAddr,
    path: &str,
) -> Result<(WebSocketStream<TcpStream>, ClientResponse), Error> {
    let stream = TcpStream::connect(address).await.unwrap();
    let request = Request::get(format!("ws://public.example{path}"))
        .header("host", "public.example")
        .header("connection", "Upgrade")
        .header("upgrade", "websocket")
        .header("sec-websocket-version", "13")
        // The client checks the answer to it.
        .header("sec-websocket-key", generate_key())
        .header("sec-websocket-protocol", "chat, other")
        .body(())
        .unwrap();
    in_time(client_async(request, stream)).await
}

/// The head of a handshake by extended CONNECT.
fn connect(uri: &str, version: Version) -> http::request::Builder {
    Request::builder()
        .method(Method::CONNECT)
        .uri(uri)
        .version(version)
        .header("sec-websocket-version", "13")
        .header("sec-websocket-protocol", "chat, other")
}

/// A connection of HTTP/2 on which extended CONNECT is permitted.
pub(crate) async fn http2_client(address: SocketAddr) -> h2::client::SendRequest<Bytes> {
    let stream = TcpStream::connect(address).await.unwrap();
    let (mut client, connection) = h2::client::handshake(stream).await.unwrap();
    tokio::spawn(connection);
    in_time(async {
        // Settings arrive with the first frames.
        while !client.is_extended_connect_protocol_enabled() {
            tokio::time::sleep(Duration::from_millis(5)).await;
            client = client.clone().ready().await.unwrap();
        }
    })
    .await;
    client
}

/// A request by extended CONNECT over HTTP/2.
pub(crate) async fn ask_http2(
    client: &mut h2::client::SendRequest<Bytes>,
    path: &str,
    protocol: &'static str,
) -> (Response<h2::RecvStream>, h2::SendStream<Bytes>) {
    let request = connect(&format!("http://public.example{path}"), Version::HTTP_2)
        .extension(h2::ext::Protocol::from_static(protocol))
        .body(())
        .unwrap();
    let (response, sender) = client.send_request(request, false).unwrap();
    (in_time(response).await.unwrap(), sender)
}

/// A WebSocket on an accepted stream of HTTP/2.
pub(crate) async fn socket_http2(
    response: Response<h2::RecvStream>,
    mut sender: h2::SendStream<Bytes>,
) -> Tunnelled {
    assert_eq!(response.status(), StatusCode::OK);
    let (near, far) = duplex(64 * 1024);
    let (mut reader, mut writer) = tokio::io::split(far);
    let mut body = response.into_body();
    tokio::spawn(async move {
        while let Some(Ok(piece)) = body.data().await {
            let _ = body.flow_control().release_capacity(piece.len());
            if writer.write_all(&piece).await.is_err() {
                return;
            }
        }
        let _ = writer.shutdown().await;
    });
    tokio::spawn(async move {
        let mut buffer = vec![0; 16 * 1024];
        while let Ok(count @ 1..) = reader.read(&mut buffer).await {
            let piece = Bytes::copy_from_slice(&buffer[..count]);
            if sender.send_data(piece, false).is_err() {
                return;
            }
        }
        let _ = sender.send_data(Bytes::new(), true);
    });
    WebSocketStream::from_raw_socket(near, Role::Client, None).await
}

/// A client of HTTP/3 that knows the server's settings.
pub(crate) async fn http3_client(pair: &Pair) -> SendRequest {
    let client = pair.connect().await;
    until(|| client.peer_settings().is_some()).await;
    client
}

/// A request by extended CONNECT over HTTP/3, and the end for its bytes.
pub(crate) async fn ask_http3(
    client: &SendRequest,
    path: &str,
    protocol: &str,
) -> (Response<RecvBody>, DuplexStream) {
    let (feeder, body) = fed();
    let (near, mut far) = duplex(64 * 1024);
    tokio::spawn(async move {
        let mut buffer = vec![0; 16 * 1024];
        while let Ok(count @ 1..) = far.read(&mut buffer).await {
            feeder.frame(Frame::data(Bytes::copy_from_slice(&buffer[..count])));
        }
    });
    let uri = format!("https://{}{path}", crate::pair::NAME);
    let request = connect(&uri, Version::HTTP_3)
        .extension(ConnectProtocol::new(protocol).unwrap())
        .body(body)
        .unwrap();
    (in_time(client.send(request)).await.unwrap(), near)
}

/// A WebSocket on an accepted stream of HTTP/3.
pub(crate) async fn socket_http3(response: Response<RecvBody>, sending: DuplexStream) -> Tunnelled {
    assert_eq!(response.status(), StatusCode::OK);
    let (near, far) = duplex(64 * 1024);
    let (mut reader, mut writer) = tokio::io::split(far);
    let mut body = response.into_body();
    tokio::spawn(async move {
        while let Some(Ok(frame)) = body.frame().await {
            let piece = frame.into_data().unwrap_or_default();
            if writer.write_all(&piece).await.is_err() {
                return;
            }
        }
        let _ = writer.shutdown().await;
    });
    let mut sending = sending;
    tokio::spawn(async move {
        let _ = tokio::io::copy(&mut reader, &mut sending).await;
    });
    WebSocketStream::from_raw_socket(near, Role::Client, None).await
}

/// The content of a refusal.
pub(crate) async fn text_http2(response: Response<h2::RecvStream>) -> String {
    let mut body = response.into_body();
    let mut all = Vec::new();
    while let Some(piece) = in_time(body.data()).await {
        all.extend_from_slice(&piece.unwrap());
    }
    String::from_utf8(all).unwrap()
}

/// Requests over HTTP/2 and HTTP/3 for what the upstream refuses get its answer.
pub(crate) async fn refusals_arrive(tcp: SocketAddr, quic: &Pair) {
    let mut client = http2_client(tcp).await;
    let (response, _sender) = ask_http2(&mut client, "/refused", "websocket").await;
    assert_eq!(response.status(), StatusCode::FORBIDDEN);
    assert_eq!(text_http2(response).await, "not you");
    let client = http3_client(quic).await;
    let (response, _sending) = ask_http3(&client, "/refused", "websocket").await;
    assert_eq!(response.status(), StatusCode::FORBIDDEN);
    let content = in_time(response.into_body().collect()).await.unwrap();
    assert_eq!(content.to_bytes(), "not you");
}
