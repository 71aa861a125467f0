//! Lifetime of HTTP/3 connections over loopback: while there are requests, and no longer; time limit of
//! responses that clients don't read.

use std::convert::Infallible;
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::BodyExt;
use swiftwater_http::h3::{BodyError, Code};
use swiftwater_http::udp::H3Server;
use swiftwater_http::web::body::Body;
use swiftwater_net::quic::{ConnectionError, TransportConfig};
use tokio::time::{Instant, sleep};
use tower::service_fn;

use crate::pair::{Pair, get, guard, read};

/// Answers after the milliseconds of the path.
async fn slow(request: Request<Body>) -> Result<Response<Body>, Infallible> {
    let millis = request.uri().path()[1..].parse().unwrap();
    sleep(Duration::from_millis(millis)).await;
    Ok(Response::new(Body::full("at last")))
}

fn with_idle_timeout(millis: u64) -> TransportConfig {
    TransportConfig {
        max_idle_timeout: Some(Duration::from_millis(millis)),
        ..TransportConfig::default()
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_answer_may_take_longer_than_the_idle_timeout() {
    guard(async {
        let server = H3Server::default();
        let pair = Pair::with(server, with_idle_timeout(2_000), service_fn(slow));
        let client = pair.connect().await;
        let response = client.send(get("/6000")).await.unwrap();
        assert_eq!(read(response).await, "at last");
        // And then it ends.
        let reason = client.connection().closed().await;
        assert_eq!(reason, ConnectionError::TimedOut);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn pings_without_requests_keep_no_connection() {
    guard(async {
        let server = H3Server::default().idle_timeout(Duration::from_secs(1));
        let transport = TransportConfig {
            keep_alive_interval: Some(Duration::from_millis(100)),
            ..TransportConfig::default()
        };
        let pair = Pair::with(server, transport, service_fn(slow));
        // One without any request, and one with.
        let (silent, client) = (pair.connection().await, pair.connect().await);
        for _ in 0..3 {
            let response = client.send(get("/800")).await.unwrap();
            assert_eq!(read(response).await, "at last");
        }
        for connection in [&silent, client.connection()] {
            let ConnectionError::PeerApplication { code, .. } = connection.closed().await else {
                panic!("{:?}", connection.close_reason());
            };
            assert_eq!(Code(code), Code::NO_ERROR);
        }
        // One that waits for an answer stays.
        let client = pair.connect().await;
        let response = client.send(get("/3000")).await.unwrap();
        assert_eq!(read(response).await, "at last");
    })
    .await;
}

/// 16 MiB, or as much as is in the path.
async fn large(request: Request<Body>) -> Result<Response<Body>, Infallible> {
    let kib: usize = request.uri().path()[1..].parse().unwrap();
    Ok(Response::new(Body::full(Bytes::from(vec![7; kib << 10]))))
}

/// Progress on other streams of the connection does not count for this one.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_response_has_its_own_time() {
    guard(async {
        let server = H3Server::default().send_timeout(Duration::from_secs(2));
        let transport = TransportConfig {
            stream_receive_window: (64 << 10).into(),
            max_stream_receive_window: (64 << 10).into(),
            ..TransportConfig::default()
        };
        let pair = Pair::with(server, transport, service_fn(large));
        let client = pair.connect().await;
        let mut unread = client.send(get("/16384")).await.unwrap().into_body();
        let begun = Instant::now();
        // Others are read meanwhile, for far longer than the time that it has.
        while begun.elapsed() < Duration::from_secs(6) {
            let response = client.send(get("/200")).await.unwrap();
            assert_eq!(read(response).await.len(), 200 << 10);
        }
        let error = loop {
            match unread.frame().await.unwrap() {
                Ok(_) => {}
                Err(error) => break error,
            }
        };
        assert_eq!(error, BodyError::Reset(Code::REQUEST_CANCELLED));
    })
    .await;
}

/// A response that waits for earlier ones, which the client reads in order, is not stalled.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_response_may_wait_for_its_turn() {
    guard(async {
        let server = H3Server::default().send_timeout(Duration::from_secs(1));
        let transport = TransportConfig {
            send_window: (16 << 10).into(),
            unsent_window: (16 << 10).into(),
            receive_rate: Some(swiftwater_units::Bandwidth::from_mbps(4)),
            ..TransportConfig::default()
        };
        let pair = Pair::with(server, transport, service_fn(large));
        let client = pair.connect().await;
        let mut running = tokio::task::JoinSet::new();
        for _ in 0..4 {
            let client = client.clone();
            running.spawn(async move {
                let response = client.send(get("/700")).await.unwrap();
                read(response).await.len()
            });
        }
        while let Some(len) = running.join_next().await {
            assert_eq!(len.unwrap(), 700 << 10);
        }
    })
    .await;
}
