//! Tower services over HTTP/3 on loopback, and the client's end.

use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode};
use http_body::Frame;
use http_body_util::{BodyExt, StreamBody};
use swiftwater_http::h3::{BodyError, Code};
use swiftwater_http::udp::{ClientError, H3Server};
use swiftwater_http::web::body::{Body, BoxError};
use swiftwater_http::web::connection_info::{ConnectionInfo, Transport};
use swiftwater_http::web::early_data::EarlyData;
use swiftwater_net::quic::TransportConfig;
use tokio::sync::mpsc;
use tower::service_fn;

use crate::pair::{Pair, get, guard, noise, post, read};

/// Answers with the request's own content, as it arrives.
async fn echo(request: Request<Body>) -> Result<Response<Body>, Infallible> {
    Ok(Response::new(request.into_body()))
}

async fn greet(request: Request<Body>) -> Result<Response<Body>, Infallible> {
    let info = request.extensions().get::<ConnectionInfo>().unwrap();
    assert_eq!(info.protocol, Transport::Quic);
    assert_eq!(info.alpn.as_deref(), Some(&b"h3"[..]));
    assert_eq!(info.server_name.as_deref(), Some("localhost"));
    assert!(info.local.ip().is_loopback() && info.peer.ip().is_loopback());
    let early = request.extensions().get::<EarlyData>().is_some();
    let text = format!("{} early: {early}", request.uri().path());
    Ok(Response::new(Body::full(text)))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_request_gets_its_response() {
    guard(async {
        let pair = Pair::new(service_fn(greet));
        let client = pair.connect().await;
        let response = client.send(get("/hello?x=1")).await.unwrap();
        assert_eq!(response.status(), StatusCode::OK);
        assert_eq!(response.version(), http::Version::HTTP_3);
        assert_eq!(response.headers()["content-length"], "19");
        assert!(httpdate::parse_http_date(response.headers()["date"].to_str().unwrap()).is_ok());
        assert_eq!(read(response).await, "/hello early: false");

        let mut head = get("/hello");
        *head.method_mut() = Method::HEAD;
        let response = client.send(head).await.unwrap();
        assert_eq!(response.headers()["content-length"], "19");
        assert!(read(response).await.is_empty());
        assert_eq!(client.open_requests(), 0);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn content_streams_both_ways_at_once() {
    guard(async {
        let pair = Pair::new(service_fn(echo));
        let client = pair.connect().await;
        let (feed, mut fed) = mpsc::channel::<Result<Frame<Bytes>, Infallible>>(1);
        let stream = futures_util::stream::poll_fn(move |cx| fed.poll_recv(cx));
        let request = Request::post("https://localhost/")
            .body(StreamBody::new(stream))
            .unwrap();
        let response = client.send(request).await.unwrap();
        let mut body = response.into_body();
        // Each piece is echoed before the next is sent.
        for round in 0..20_u8 {
            let piece = Bytes::from(vec![round; 10_000]);
            feed.send(Ok(Frame::data(piece.clone()))).await.unwrap();
            let mut back = Vec::new();
            while back.len() < piece.len() {
                let frame = body.frame().await.unwrap().unwrap();
                back.extend_from_slice(&frame.into_data().unwrap());
            }
            assert!(back == piece);
        }
        let mut trailers = HeaderMap::new();
        trailers.insert("checksum", HeaderValue::from_static("7"));
        feed.send(Ok(Frame::trailers(trailers.clone())))
            .await
            .unwrap();
        drop(feed);
        let frame = body.frame().await.unwrap().unwrap();
        assert_eq!(frame.into_trailers().unwrap(), trailers);
        assert!(body.frame().await.is_none());
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_large_body_makes_the_round_trip() {
    guard(async {
        let pair = Pair::new(service_fn(echo));
        let client = pair.connect().await;
        let data = Bytes::from(noise(5 << 20));
        let response = client.send(post("/", data.clone())).await.unwrap();
        assert!(read(response).await == data);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_thousand_requests_share_a_connection() {
    guard(async {
        let pair = Pair::new(service_fn(echo));
        let client = pair.connect().await;
        let mut running = tokio::task::JoinSet::new();
        for nth in 0..1_000_u32 {
            let client = client.clone();
            running.spawn(async move {
                let content = nth.to_be_bytes().repeat(50);
                let response = client.send(post("/", content.clone())).await.unwrap();
                assert!(read(response).await == content);
            });
        }
        while let Some(done) = running.join_next().await {
            done.unwrap();
        }
        assert_eq!(client.open_requests(), 0);
    })
    .await;
}

/// Counts how many of the service's futures are alive.
struct Alive(Arc<AtomicUsize>);

impl Alive {
    fn new(count: &Arc<AtomicUsize>) -> Self {
        count.fetch_add(1, Ordering::SeqCst);
        Self(Arc::clone(count))
    }
}

impl Drop for Alive {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

async fn until(condition: impl Fn() -> bool) {
    while !condition() {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_that_goes_away_ends_the_services_work() {
    guard(async {
        let alive = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&alive);
        let pair = Pair::new(service_fn(move |_: Request<Body>| {
            let alive = Alive::new(&count);
            async move {
                let _alive = alive;
                std::future::pending::<()>().await;
                Ok::<_, Infallible>(Response::new(Body::empty()))
            }
        }));
        let client = pair.connect().await;
        let waiting = tokio::spawn({
            let client = client.clone();
            async move { client.send(get("/")).await }
        });
        until(|| alive.load(Ordering::SeqCst) == 1).await;
        waiting.abort();
        until(|| alive.load(Ordering::SeqCst) == 0).await;
        // The connection is not affected.
        assert!(!client.is_closed());
        assert_eq!(client.open_requests(), 0);

        let again = tokio::spawn({
            let client = client.clone();
            async move { client.send(get("/")).await }
        });
        until(|| alive.load(Ordering::SeqCst) == 1).await;
        client.close();
        until(|| alive.load(Ordering::SeqCst) == 0).await;
        assert!(matches!(
            again.await.unwrap(),
            Err(ClientError::Connection(_))
        ));
    })
    .await;
}

/// Misbehaves as its path says.
async fn unreliable(request: Request<Body>) -> Result<Response<Body>, BoxError> {
    match request.uri().path() {
        "/error" => Err("no luck".into()),
        "/panic" => panic!("on purpose"),
        "/half" => {
            let frames = [
                Ok(Frame::data(Bytes::from_static(b"half"))),
                Err("the disk is gone"),
            ];
            let stream = futures_util::stream::iter(frames);
            Ok(Response::new(Body::new(StreamBody::new(stream))))
        }
        "/ignore" => Ok(Response::new(Body::full("not interested"))),
        path => Ok(Response::new(Body::full(path.to_owned()))),
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_service_that_fails_costs_its_request_only() {
    guard(async {
        let pair = Pair::new(service_fn(unreliable));
        let client = pair.connect().await;
        let response = client.send(get("/error")).await.unwrap();
        assert_eq!(response.status(), StatusCode::INTERNAL_SERVER_ERROR);
        let panicked = client.send(get("/panic")).await;
        assert!(
            matches!(panicked, Err(ClientError::Reset(Code::INTERNAL_ERROR))),
            "{panicked:?}"
        );
        // The reset may overtake the head.
        match client.send(get("/half")).await {
            Ok(response) => {
                let error = response.into_body().collect().await.unwrap_err();
                assert!(
                    matches!(error, BodyError::Reset(Code::INTERNAL_ERROR)),
                    "{error:?}"
                );
            }
            Err(error) => assert!(
                matches!(error, ClientError::Reset(Code::INTERNAL_ERROR)),
                "{error:?}"
            ),
        }
        let response = client.send(get("/fine")).await.unwrap();
        assert_eq!(read(response).await, "/fine");
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_response_may_come_before_the_request_is_read() {
    guard(async {
        let pair = Pair::new(service_fn(unreliable));
        let client = pair.connect().await;
        // More than flow control permits unread.
        let request = post("/ignore", noise(20 << 20));
        let response = client.send(request).await.unwrap();
        assert_eq!(read(response).await, "not interested");
        let response = client.send(get("/fine")).await.unwrap();
        assert_eq!(read(response).await, "/fine");
        until(|| client.open_requests() == 0).await;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_reader_that_stops_holds_the_sender_back() {
    guard(async {
        let sent = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&sent);
        let pair = Pair::new(service_fn(move |_: Request<Body>| {
            let count = Arc::clone(&count);
            let stream = futures_util::stream::repeat_with(move || {
                count.fetch_add(10_000, Ordering::SeqCst);
                Ok::<_, Infallible>(Frame::data(Bytes::from(vec![1; 10_000])))
            });
            async { Ok::<_, Infallible>(Response::new(Body::new(StreamBody::new(stream)))) }
        }));
        let client = pair.connect().await;
        let response = client.send(get("/")).await.unwrap();
        tokio::time::sleep(Duration::from_millis(300)).await;
        // The receiver's window, the sender's buffer, a little at the edges.
        let window = TransportConfig::default().stream_receive_window.get() as usize;
        let held = sent.load(Ordering::SeqCst);
        assert!(held < 2 * window + (2 << 20), "{held}");
        drop(response);
        until(|| client.open_requests() == 0).await;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_draining_server_finishes_what_it_has() {
    guard(async {
        let (go, gone) = tokio::sync::watch::channel(false);
        let service = service_fn(move |_: Request<Body>| {
            let mut gone = gone.clone();
            async move {
                gone.wait_for(|go| *go).await.unwrap();
                Ok::<_, Infallible>(Response::new(Body::full("done")))
            }
        });
        let pair = Pair::new(service);
        let client = pair.connect().await;
        let waiting = tokio::spawn({
            let client = client.clone();
            async move { client.send(get("/")).await.unwrap() }
        });
        until(|| client.open_requests() == 1 && pair.server.connections() == 1).await;
        tokio::time::sleep(Duration::from_millis(50)).await;
        pair.server.drain();
        until(|| client.is_closed()).await;
        let refused = client.send(get("/")).await.unwrap_err();
        assert!(refused.is_unprocessed(), "{refused:?}");
        go.send_replace(true);
        assert_eq!(read(waiting.await.unwrap()).await, "done");
        until(|| pair.server.connections() == 0).await;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_that_takes_nothing_is_closed() {
    guard(async {
        let server = H3Server::default().send_timeout(Duration::from_millis(200));
        let service = service_fn(|_: Request<Body>| async {
            let frames = std::iter::repeat_with(|| {
                Ok::<_, Infallible>(Frame::data(Bytes::from(vec![1; 10_000])))
            });
            let stream = futures_util::stream::iter(frames);
            Ok::<_, Infallible>(Response::new(Body::new(StreamBody::new(stream))))
        });
        let pair = Pair::with(server, TransportConfig::default(), service);
        let client = pair.connect().await;
        let mut body = client.send(get("/")).await.unwrap().into_body();
        tokio::time::sleep(Duration::from_secs(1)).await;
        let error = loop {
            match body.frame().await.unwrap() {
                Ok(_) => {}
                Err(error) => break error,
            }
        };
        assert!(
            matches!(error, BodyError::Reset(Code::REQUEST_CANCELLED)),
            "{error:?}"
        );
    })
    .await;
}
