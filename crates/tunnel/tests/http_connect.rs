//! A local proxy for CONNECT: programs that know it, hostile ones, and what the proxy refuses.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use swiftwater_tunnel::client::{HttpConnectServer, ListenerLimits, TunnelClient};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use crate::stage::{Stage, content, guard, no_proxy, tcp_echo};

const LOOPBACK: &str = "127.0.0.1:0";

async fn server(client: TunnelClient) -> (Arc<HttpConnectServer>, SocketAddr) {
    let limits = ListenerLimits {
        handshake: Duration::from_millis(500),
        ..ListenerLimits::default()
    };
    let server = HttpConnectServer::bind(LOOPBACK.parse().unwrap(), client, limits);
    let server = Arc::new(server.await.unwrap());
    let address = server.local_addr().unwrap();
    let running = Arc::clone(&server);
    tokio::spawn(async move { running.run().await });
    (server, address)
}

/// The head of an answer.
async fn head(stream: &mut TcpStream) -> String {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(stream.read_u8().await.unwrap());
    }
    String::from_utf8(head).unwrap().to_ascii_lowercase()
}

/// The head of the answer to a request.
async fn ask(to: SocketAddr, request: &str) -> String {
    let mut stream = TcpStream::connect(to).await.unwrap();
    stream.write_all(request.as_bytes()).await.unwrap();
    head(&mut stream).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn content_passes_both_ways() {
    guard(async {
        let stage = Stage::new();
        let target = tcp_echo().await;
        let (server, address) = server(stage.client()).await;
        let content = content(3_000_000);
        for round in 0..2 {
            let mut stream = TcpStream::connect(address).await.unwrap();
            let mut request = format!("CONNECT {target} HTTP/1.1\r\nHost: {target}\r\n\r\n");
            // Ahead of the answer.
            request.push_str("early ");
            stream.write_all(request.as_bytes()).await.unwrap();
            let answer = head(&mut stream).await;
            assert!(answer.starts_with("http/1.1 200 "), "{answer}");
            assert!(!answer.contains("content-length") && !answer.contains("transfer-encoding"));
            let (mut reader, mut writer) = stream.split();
            let sending = async {
                writer.write_all(&content).await.unwrap();
                writer.shutdown().await.unwrap();
            };
            let mut received = Vec::new();
            let ((), _) = tokio::join!(sending, reader.read_to_end(&mut received));
            assert!(received == [b"early ", &content[..]].concat());
            stage.until(|stats| stats.closed == round + 1).await;
        }
        let stats = server.stats();
        assert_eq!((stats.opened, stats.failed, stats.rejected), (2, 0, 0));
        assert_eq!(stats.bytes_sent, 2 * 3_000_006);
        assert_eq!(stats.bytes_received, 2 * 3_000_006);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn refusals_have_a_status() {
    guard(async {
        let stage = Stage::new();
        let (_server, address) = server(stage.client()).await;
        let (_anonymous, no_token) = server(stage.client_with(None)).await;
        let free = TcpListener::bind(LOOPBACK).await.unwrap();
        let nobody = free.local_addr().unwrap().to_string();
        drop(free);
        for (to, target, status, error) in [
            (address, &*nobody, 502, "connection_refused"),
            (address, "10.0.0.1:443", 403, "destination_ip_prohibited"),
            (address, "127.0.0.1:53", 403, "http_request_denied"),
            // Whose token is refused is not asked for another one.
            (no_token, &*nobody, 502, "http_request_denied"),
        ] {
            let request = format!("CONNECT {target} HTTP/1.1\r\nHost: {target}\r\n\r\n");
            let answer = ask(to, &request).await;
            assert!(
                answer.starts_with(&format!("http/1.1 {status} ")),
                "{answer}"
            );
            assert!(answer.contains(&format!("proxy-status: swiftwater;error={error}")));
            assert!(!answer.contains("proxy-authenticate"), "{answer}");
        }
        // The connection is of use after a refusal.
        let target = tcp_echo().await;
        let mut stream = TcpStream::connect(address).await.unwrap();
        let request = "CONNECT 10.0.0.1:443 HTTP/1.1\r\nHost: a\r\n\r\n";
        stream.write_all(request.as_bytes()).await.unwrap();
        let answer = head(&mut stream).await;
        let len = answer.split("content-length: ").nth(1).unwrap();
        let len: usize = len.split("\r\n").next().unwrap().parse().unwrap();
        stream.read_exact(&mut vec![0; len]).await.unwrap();
        let request = format!("CONNECT {target} HTTP/1.1\r\nHost: {target}\r\n\r\n");
        stream.write_all(request.as_bytes()).await.unwrap();
        assert!(head(&mut stream).await.starts_with("http/1.1 200 "));

        let (_gone, address) = server(no_proxy()).await;
        let answer = ask(address, &request).await;
        assert!(answer.starts_with("http/1.1 502 "), "{answer}");
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn other_requests_are_refused_clearly() {
    guard(async {
        let stage = Stage::new();
        let (server, address) = server(stage.client()).await;
        for (line, status) in [
            ("GET http://a.example/ HTTP/1.1", "405"),
            ("POST / HTTP/1.1", "405"),
            ("OPTIONS * HTTP/1.1", "405"),
            ("CONNECT a.example HTTP/1.1", "400"),
            ("CONNECT a.example:0 HTTP/1.1", "400"),
            ("CONNECT -a:443 HTTP/1.1", "400"),
            ("CONNECT [fe80::1%25eth0]:443 HTTP/1.1", "400"),
            ("nonsense", "400"),
            ("PRI * HTTP/2.0", "400"),
        ] {
            let answer = ask(address, &format!("{line}\r\nHost: a\r\n\r\n")).await;
            assert!(
                answer.starts_with(&format!("http/1.1 {status} ")),
                "{line}: {answer}"
            );
            if status == "405" {
                assert!(answer.contains("allow: connect"), "{answer}");
            }
        }
        // A huge name, and a huge head.
        let name = "a".repeat(10_000);
        let answer = ask(
            address,
            &format!("CONNECT {name}:443 HTTP/1.1\r\nHost: a\r\n\r\n"),
        )
        .await;
        assert!(answer.starts_with("http/1.1 400 "), "{answer}");
        let field = "b".repeat(100_000);
        let mut stream = TcpStream::connect(address).await.unwrap();
        let request = format!("CONNECT a.example:443 HTTP/1.1\r\nHost: a\r\nX: {field}\r\n\r\n");
        let _ = stream.write_all(request.as_bytes()).await;
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer).await;
        assert!(answer.is_empty() || answer.starts_with(b"HTTP/1.1 431 "));
        assert!(server.stats().rejected >= 10);
        assert_eq!(stage.proxy.stats().opened, 0);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn slow_requests_end_in_time() {
    guard(async {
        let stage = Stage::new();
        let (_server, address) = server(stage.client()).await;
        for sent in [
            "",
            "CONNECT a.exam",
            "CONNECT a.example:443 HTTP/1.1\r\nHost: a\r\n",
        ] {
            let mut stream = TcpStream::connect(address).await.unwrap();
            stream.write_all(sent.as_bytes()).await.unwrap();
            let mut answer = Vec::new();
            let _ = stream.read_to_end(&mut answer).await;
            assert!(!answer.starts_with(b"HTTP/1.1 200"));
        }
    })
    .await;
}
