//! Tunnels for TCP at the client: content both ways, ends of either side, refusals.

use std::collections::BTreeMap;
use std::io;

use http::StatusCode;
use socket2::SockRef;
use swiftwater_tunnel::client::{OpenError, TunnelClient};
use swiftwater_tunnel::proxy::{Access, ProxyConfig, TunnelProxy};
use swiftwater_tunnel::proxy_status::ProxyError;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use crate::stage::{Names, Stage, config, content, guard, sent_back, tcp_echo, tcp_target};

/// How a tunnel to `target` is refused.
async fn refusal(stage: &Stage, target: &str) -> (StatusCode, Option<ProxyError>) {
    let opened = stage.client().open_tcp(&target.parse().unwrap()).await;
    let error = opened.unwrap_err();
    match &error {
        OpenError::Refused { status, .. } => (*status, error.proxy_error()),
        other => panic!("{other}"),
    }
}

/// The target ends its direction at once, and still reads.
pub(crate) async fn target_ends_first(client: &TunnelClient) {
    let (target, read) = tcp_target(|mut stream| async move {
        stream.write_all(b"last words").await.unwrap();
        stream.shutdown().await.unwrap();
        let mut received = String::new();
        stream.read_to_string(&mut received).await.unwrap();
        received
    })
    .await;
    let mut tunnel = client.open_tcp(&target).await.unwrap();
    let mut words = String::new();
    tunnel.read_to_string(&mut words).await.unwrap();
    assert_eq!(words, "last words");
    tunnel.write_all(b"an answer to them").await.unwrap();
    tunnel.shutdown().await.unwrap();
    assert_eq!(read.await.unwrap(), "an answer to them");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn content_passes_both_ways_at_once() {
    guard(async {
        let stage = Stage::new();
        let target = tcp_echo().await;
        let tunnel = stage.client().open_tcp(&target).await.unwrap();
        let hop = format!("swiftwater;next-hop=\"{target}\"");
        assert_eq!(tunnel.proxy_status(), Some(&*hop));
        let content = content(5_000_000);
        assert!(sent_back(tunnel, &content).await == content);
        stage.until(|stats| stats.closed == 1).await;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn either_side_may_end_first() {
    guard(async {
        let stage = Stage::new();
        let client = stage.client();
        target_ends_first(&client).await;

        // A target that breaks the connection off breaks the tunnel off, too.
        let (target, _) = tcp_target(|mut stream| async move {
            stream.read_u8().await.unwrap();
            let linger = Some(std::time::Duration::ZERO);
            SockRef::from(&stream).set_linger(linger).unwrap();
            drop(stream);
        })
        .await;
        let mut tunnel = client.open_tcp(&target).await.unwrap();
        tunnel.write_all(b"x").await.unwrap();
        tunnel.flush().await.unwrap();
        let error = tunnel.read(&mut [0; 10]).await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::ConnectionReset);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_dropped_tunnel_is_no_orderly_end() {
    guard(async {
        let stage = Stage::new();
        let (target, read) =
            tcp_target(|mut stream| async move { stream.read_to_end(&mut Vec::new()).await }).await;
        let mut tunnel = stage.client().open_tcp(&target).await.unwrap();
        tunnel.write_all(b"begun").await.unwrap();
        tunnel.flush().await.unwrap();
        drop(tunnel);
        let error = read.await.unwrap().unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::ConnectionReset);
        stage.until(|stats| stats.closed == 1).await;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn refusals_have_their_types() {
    guard(async {
        let names = Names(BTreeMap::from([(
            "inside.example",
            vec!["10.0.0.1:443".parse().unwrap()],
        )]));
        let open = ProxyConfig {
            access: Access::Anyone,
            ..config()
        };
        let stage = Stage::serving(TunnelProxy::with_resolver(open, names));
        let free = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let nobody = free.local_addr().unwrap().to_string();
        drop(free);
        let denied = StatusCode::FORBIDDEN;
        let bad = StatusCode::BAD_GATEWAY;
        for (target, status, error) in [
            (&*nobody, bad, ProxyError::ConnectionRefused),
            (
                "inside.example:443",
                denied,
                ProxyError::DestinationIpProhibited,
            ),
            ("10.0.0.1:443", denied, ProxyError::DestinationIpProhibited),
            ("127.0.0.1:53", denied, ProxyError::HttpRequestDenied),
            ("nobody.example:443", bad, ProxyError::DnsError),
        ] {
            let refused = refusal(&stage, target).await;
            assert_eq!(refused, (status, Some(error)), "{target}");
        }

        let stage = Stage::new();
        let (client, target) = (stage.client_with(None), nobody.parse().unwrap());
        let error = client.open_tcp(&target).await.unwrap_err();
        assert_eq!(error.proxy_error(), Some(ProxyError::HttpRequestDenied));
        assert!(error.to_string().contains("407"), "{error}");
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_writer_waits_for_a_target_that_does_not_read() {
    guard(async {
        let stage = Stage::new();
        let (go, gone) = tokio::sync::oneshot::channel::<()>();
        let (target, read) = tcp_target(|mut stream: TcpStream| async move {
            gone.await.unwrap();
            let mut received = Vec::new();
            stream.read_to_end(&mut received).await.unwrap();
            received
        })
        .await;
        let mut tunnel = stage.client().open_tcp(&target).await.unwrap();
        // More than all buffers on the way hold.
        let content = content(64 << 20);
        let mut written = 0;
        let some = std::time::Duration::from_millis(500);
        while let Ok(count) = tokio::time::timeout(some, tunnel.write(&content[written..])).await {
            written += count.unwrap();
            assert!(written < content.len(), "nothing holds the writer back");
        }
        go.send(()).unwrap();
        tunnel.write_all(&content[written..]).await.unwrap();
        tunnel.shutdown().await.unwrap();
        assert!(read.await.unwrap() == content);
    })
    .await;
}
