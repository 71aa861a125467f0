//! How much the service of `hq-interop` does at the same time.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fs;
use std::sync::Arc;

use swiftwater::{Client, DevCertificate, RecvStream, SendStream, Server};
use swiftwater_cli::hq::service::{MAX_REQUESTS, serve_connection};
use swiftwater_cli::hq::{ALPN, request};
use swiftwater_cli::site::Site;
use tempfile::TempDir;
use tokio::sync::{mpsc, watch};

async fn answer(mut recv: RecvStream) -> Vec<u8> {
    recv.read_to_end(1000).await.unwrap()
}

async fn complete(send: &mut SendStream, rest: &[u8]) {
    send.write_all(rest).await.unwrap();
    send.finish().unwrap();
}

/// Clients may be allowed more streams than are served at once. The requests beyond wait.
#[tokio::test]
async fn requests_beyond_the_limit_wait() {
    let directory = TempDir::new().unwrap();
    fs::write(directory.path().join("x"), "content").unwrap();
    let site = Arc::new(Site::new(directory.path()).unwrap());
    let certificate = DevCertificate::generate(["localhost"]).unwrap();
    let server = Server::builder()
        .certificate_pem(certificate.certificate_pem(), certificate.private_key_pem())
        .alpn([ALPN])
        .transport(|transport| transport.max_concurrent_bidi_streams = 1000)
        .bind("127.0.0.1:0".parse().unwrap())
        .unwrap();
    let address = server.local_addr();
    let (served, mut log) = mpsc::unbounded_channel();
    let (_drain, draining) = watch::channel(false);
    tokio::spawn(async move {
        while let Some(connection) = server.accept().await {
            let served = served.clone();
            let tell = move |what: swiftwater_cli::hq::service::Served| {
                served.send(what.path).unwrap();
            };
            let site = Arc::clone(&site);
            tokio::spawn(serve_connection(connection, site, draining.clone(), tell));
        }
    });
    let client = Client::builder()
        .trust_only([certificate.certificate_der()])
        .alpn([ALPN])
        .build()
        .unwrap();
    let busy = client.connect_to(address, "localhost").await.unwrap();
    let mut waiting = Vec::new();
    for _ in 0..MAX_REQUESTS {
        let (mut send, recv) = busy.open_bi().await.unwrap();
        send.write_all(b"GET /x").await.unwrap();
        waiting.push((send, recv));
    }
    let (mut send, late) = busy.open_bi().await.unwrap();
    complete(&mut send, &request("/x?late")).await;
    // Time enough for the late request to be answered, were it served: others are, one after another.
    let other = client.connect_to(address, "localhost").await.unwrap();
    for _ in 0..50 {
        let (mut send, recv) = other.open_bi().await.unwrap();
        complete(&mut send, &request("/x?other")).await;
        assert_eq!(answer(recv).await, b"content");
        assert_eq!(log.recv().await.unwrap(), "/x?other");
    }
    let (mut send, recv) = waiting.pop().unwrap();
    complete(&mut send, b"?first\r\n").await;
    assert_eq!(answer(recv).await, b"content");
    assert_eq!(answer(late).await, b"content");
    assert_eq!(log.recv().await.unwrap(), "/x?first");
    assert_eq!(log.recv().await.unwrap(), "/x?late");
}
