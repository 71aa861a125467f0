//! Tunnels over HTTP/1.1 and HTTP/2, where datagrams are capsules in the content.

use bytes::{Bytes, BytesMut};
use http::{Method, Request, StatusCode, Version};
use swiftwater_http::h3::capsule::{Capsule, CapsuleReader};
use swiftwater_http::tcp::{RunningServer, TcpServer};
use swiftwater_tunnel::context::{self, ContextId};
use swiftwater_tunnel::proxy::TunnelProxy;
use swiftwater_tunnel::target::Target;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use crate::stage::{SECRET, config, echo, guard};

async fn proxy() -> RunningServer {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let service = TunnelProxy::new(config());
    TcpServer::plain().serve(listener, service).unwrap()
}

fn path(target: &Target) -> String {
    format!("/.well-known/masque/udp/127.0.0.1/{}/", target.port())
}

fn capsule(payload: &[u8]) -> Bytes {
    let mut out = Vec::new();
    let datagram = context::encode(ContextId::UDP, payload);
    Capsule::datagram(datagram.into()).encode(&mut out);
    out.into()
}

/// The UDP payloads in pieces of content.
struct Payloads(CapsuleReader);

impl Payloads {
    fn new() -> Self {
        Self(CapsuleReader::new(1 << 16))
    }

    fn next(&mut self, piece: &mut Bytes) -> Option<Bytes> {
        let capsule = self.0.next(piece)?;
        assert_eq!(capsule.capsule_type, 0);
        let (context, payload) = context::decode(capsule.value).unwrap();
        assert_eq!(context, ContextId::UDP);
        Some(payload)
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn over_http1() {
    guard(async {
        let (proxy, target) = (proxy().await, echo().await);
        let mut stream = TcpStream::connect(proxy.local_addr()).await.unwrap();
        let head = format!(
            "GET {} HTTP/1.1\r\nhost: proxy\r\nconnection: upgrade\r\nupgrade: connect-udp\r\n\
             capsule-protocol: ?1\r\nproxy-authorization: Bearer {SECRET}\r\n\r\n",
            path(&target)
        );
        stream.write_all(head.as_bytes()).await.unwrap();
        let mut answer = Vec::new();
        while !answer.ends_with(b"\r\n\r\n") {
            answer.push(stream.read_u8().await.unwrap());
        }
        let answer = String::from_utf8(answer).unwrap().to_ascii_lowercase();
        assert!(answer.starts_with("http/1.1 101 "), "{answer}");
        for line in [
            "upgrade: connect-udp",
            "connection: upgrade",
            "capsule-protocol: ?1",
        ] {
            assert!(answer.contains(&format!("\r\n{line}\r\n")), "{answer}");
        }
        let mut payloads = Payloads::new();
        for payload in [&b"one"[..], &[7; 1400], b""] {
            stream.write_all(&capsule(payload)).await.unwrap();
            let mut piece = BytesMut::new();
            let received = loop {
                stream.read_buf(&mut piece).await.unwrap();
                if let Some(received) = payloads.next(&mut piece.split().freeze()) {
                    break received;
                }
            };
            assert_eq!(received, payload);
        }
        stream.shutdown().await.unwrap();
        assert_eq!(stream.read(&mut [0; 1]).await.unwrap(), 0);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn over_http2() {
    guard(async {
        let (proxy, target) = (proxy().await, echo().await);
        let stream = TcpStream::connect(proxy.local_addr()).await.unwrap();
        let (client, connection) = h2::client::handshake(stream).await.unwrap();
        tokio::spawn(connection);
        let mut client = client.ready().await.unwrap();
        while !client.is_extended_connect_protocol_enabled() {
            tokio::task::yield_now().await;
        }
        let request = |authorized: bool| {
            let mut request = Request::builder()
                .method(Method::CONNECT)
                .uri(format!("https://proxy{}", path(&target)))
                .version(Version::HTTP_2)
                .header("capsule-protocol", "?1")
                .extension(h2::ext::Protocol::from_static("connect-udp"));
            if authorized {
                request = request.header("proxy-authorization", format!("Bearer {SECRET}"));
            }
            request.body(()).unwrap()
        };
        let (answer, _) = client.send_request(request(false), false).unwrap();
        let answer = answer.await.unwrap();
        assert_eq!(answer.status(), StatusCode::PROXY_AUTHENTICATION_REQUIRED);

        let (answer, mut send) = client.send_request(request(true), false).unwrap();
        let answer = answer.await.unwrap();
        assert_eq!(answer.status(), StatusCode::OK);
        assert_eq!(answer.headers()["capsule-protocol"], "?1");
        let mut receive = answer.into_body();
        let mut payloads = Payloads::new();
        for payload in [&b"one"[..], &[7; 1400], b""] {
            send.send_data(capsule(payload), false).unwrap();
            let received = loop {
                let mut piece = receive.data().await.unwrap().unwrap();
                if let Some(received) = payloads.next(&mut piece) {
                    break received;
                }
            };
            assert_eq!(received, payload);
        }
        send.send_data(Bytes::new(), true).unwrap();
        while let Some(piece) = receive.data().await {
            assert!(piece.unwrap().is_empty());
        }
    })
    .await;
}
