//! The reverse proxy when something goes wrong: upstreams that are absent, unresponsive, broken or stale,
//! clients that don't finish, and the wait for 100 (Continue).

use std::convert::Infallible;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response, StatusCode};
use http_body::{Body as HttpBody, Frame};
use http_body_util::BodyExt;
use swiftwater_http::tcp::TcpLimits;
use swiftwater_http::web::body::Body;
use swiftwater_http::web::connection_info::{ConnectionInfo, Transport};
use swiftwater_http::web::proxy::{Proxy, ProxyOptions, Upstream};
use swiftwater_http::web::timed_body::{Pace, TimedBody};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tower::{ServiceExt, service_fn};

use crate::peers::{fed, in_time, piece, plain, text};

const SHORT: Duration = Duration::from_millis(200);

fn proxy(address: SocketAddr, options: ProxyOptions) -> Proxy {
    Proxy::new(
        Upstream::parse(&format!("http://{address}")).unwrap(),
        options,
    )
}

async fn send(proxy: &Proxy, request: Request<Body>) -> Response<Body> {
    in_time(proxy.clone().oneshot(request)).await.unwrap()
}

fn request(method: &str, body: Body) -> Request<Body> {
    Request::builder()
        .method(method)
        .uri("/")
        .body(body)
        .unwrap()
}

async fn listen() -> (TcpListener, SocketAddr) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    (listener, address)
}

/// Reads one head, to the empty line.
async fn read_head(stream: &mut TcpStream) -> String {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        if in_time(stream.read(&mut byte)).await.unwrap() == 0 {
            break;
        }
        head.push(byte[0]);
    }
    String::from_utf8(head).unwrap()
}

const OK: &[u8] = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok";

#[tokio::test]
async fn an_absent_upstream_is_a_bad_gateway() {
    let (listener, address) = listen().await;
    drop(listener);
    let proxy = proxy(address, ProxyOptions::default());
    let response = send(&proxy, request("GET", Body::empty())).await;
    assert_eq!(response.status(), StatusCode::BAD_GATEWAY);
}

#[tokio::test]
async fn a_broken_upstream_is_a_bad_gateway() {
    let (listener, address) = listen().await;
    let broken = tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        read_head(&mut stream).await;
        stream.write_all(b"SSH-2.0-server\r\n\r\n").await.unwrap();
    });
    let proxy = proxy(address, ProxyOptions::default());
    let response = send(&proxy, request("GET", Body::empty())).await;
    assert_eq!(response.status(), StatusCode::BAD_GATEWAY);
    in_time(broken).await.unwrap();
}

#[tokio::test]
async fn an_upstream_that_does_not_answer_is_a_timeout() {
    let (listener, address) = listen().await;
    let options = ProxyOptions {
        head_timeout: SHORT,
        ..ProxyOptions::default()
    };
    let proxy = proxy(address, options);
    for body in [Body::empty(), Body::full("content")] {
        let response = send(&proxy, request("POST", body)).await;
        assert_eq!(response.status(), StatusCode::GATEWAY_TIMEOUT);
    }
    drop(listener);
}

#[tokio::test]
async fn an_upstream_that_stops_breaks_the_response() {
    let (listener, address) = listen().await;
    let upstream = tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        read_head(&mut stream).await;
        let half = b"HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nhalf";
        stream.write_all(half).await.unwrap();
        stream
    });
    let options = ProxyOptions {
        body_gap: SHORT,
        ..ProxyOptions::default()
    };
    let proxy = proxy(address, options);
    let mut body = send(&proxy, request("GET", Body::empty()))
        .await
        .into_body();
    assert_eq!(piece(&mut body).await, "half");
    let error = in_time(body.frame()).await.unwrap().unwrap_err();
    assert!(error.to_string().contains("slowly"));
    drop(upstream.await.unwrap());
}

#[tokio::test]
async fn requests_beyond_the_limit_are_turned_away() {
    let service = service_fn(|request: Request<Body>| async {
        Ok::<_, Infallible>(Response::new(request.into_body()))
    });
    let server = plain(service, TcpLimits::default()).await;
    let options = ProxyOptions {
        in_flight: 1,
        ..ProxyOptions::default()
    };
    let proxy = proxy(server.local_addr(), options);
    let (feeder, body) = fed();
    feeder.data("first");
    let first = send(&proxy, request("POST", body)).await;
    let second = send(&proxy, request("GET", Body::empty())).await;
    assert_eq!(second.status(), StatusCode::SERVICE_UNAVAILABLE);
    assert!(second.headers().contains_key("retry-after"));
    drop(feeder);
    assert_eq!(text(first).await, "first");
    let third = send(&proxy, request("GET", Body::empty())).await;
    assert_eq!(third.status(), StatusCode::OK);
}

/// A request of a client at this address.
fn of_client(address: &str) -> Request<Body> {
    let mut request = request("GET", Body::empty());
    request.extensions_mut().insert(ConnectionInfo {
        peer: format!("{address}:1").parse().unwrap(),
        local: "192.0.2.9:443".parse().unwrap(),
        protocol: Transport::Tls,
        alpn: None,
        server_name: None,
        client_chain: None,
    });
    request
}

/// How many requests of `request` can be in progress at once.
async fn slots_for(options: ProxyOptions, request: impl Fn(usize) -> Request<Body>) -> usize {
    let service = service_fn(|_: Request<Body>| async {
        let (feeder, body) = fed();
        feeder.data("first");
        std::mem::forget(feeder);
        Ok::<_, Infallible>(Response::new(body))
    });
    let server = plain(service, TcpLimits::default()).await;
    let proxy = proxy(server.local_addr(), options);
    let mut held = Vec::new();
    for number in 0..100 {
        let response = send(&proxy, request(number)).await;
        if response.status() == StatusCode::SERVICE_UNAVAILABLE {
            assert!(response.headers().contains_key("retry-after"));
            // Others still get a place.
            let other = send(&proxy, of_client("203.0.113.77")).await;
            assert_eq!(other.status(), StatusCode::OK);
            return held.len();
        }
        held.push(response);
    }
    held.len()
}

#[tokio::test]
async fn one_client_leaves_slots_to_others() {
    let options = || ProxyOptions {
        in_flight: 20,
        ..ProxyOptions::default()
    };
    let one = slots_for(options(), |_| of_client("192.0.2.1")).await;
    assert_eq!(one, 10);
    // All of a subscriber's network count together.
    let network = slots_for(options(), |number| {
        of_client(&format!("[2001:db8::{number:x}]"))
    });
    assert_eq!(network.await, 10);
    // Behind another proxy its clients are counted, not it.
    let behind = ProxyOptions {
        trust_forwarded: true,
        ..options()
    };
    let client = slots_for(behind, |number| {
        let mut request = of_client("192.0.2.1");
        let value = format!("10.0.0.{number}, 198.51.100.1");
        let headers = request.headers_mut();
        headers.insert("x-forwarded-for", value.parse().unwrap());
        request
    });
    assert_eq!(client.await, 10);
}

#[derive(Clone, Default)]
struct Captured(Arc<Mutex<Vec<u8>>>);

impl std::io::Write for Captured {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

impl Captured {
    /// Captures what is logged at the level of errors on this thread.
    fn start(&self) -> tracing::subscriber::DefaultGuard {
        let writer = self.clone();
        let subscriber = tracing_subscriber::fmt()
            .with_max_level(tracing::Level::ERROR)
            .with_ansi(false)
            .with_writer(move || writer.clone())
            .finish();
        tracing::subscriber::set_default(subscriber)
    }

    fn text(&self) -> String {
        String::from_utf8(self.0.lock().unwrap().clone()).unwrap()
    }
}

#[tokio::test]
async fn operators_read_why_an_upstream_failed() {
    let (listener, address) = listen().await;
    drop(listener);
    let log = Captured::default();
    let _guard = log.start();
    let down = proxy(address, ProxyOptions::default());
    for _ in 0..20 {
        let response = send(&down, request("GET", Body::empty())).await;
        assert_eq!(response.status(), StatusCode::BAD_GATEWAY);
    }
    let text = log.text();
    assert!(
        text.contains(&format!("upstream http://{address}")),
        "{text}"
    );
    assert!(
        text.contains("answered with 502") && text.contains("refused"),
        "{text}"
    );
    // Not once for each, and in words.
    assert!(
        text.lines().count() < 10 && !text.contains("Error {"),
        "{text}"
    );

    let log = Captured::default();
    let _guard = log.start();
    let (listener, address) = listen().await;
    let upstream = tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        read_head(&mut stream).await;
        let head = b"HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nhalf";
        stream.write_all(head).await.unwrap();
    });
    let half = proxy(address, ProxyOptions::default());
    let response = send(&half, request("GET", Body::empty())).await;
    assert!(in_time(response.into_body().collect()).await.is_err());
    upstream.await.unwrap();
    let text = log.text();
    assert!(
        text.contains(&format!("upstream http://{address}: a response broke off")),
        "{text}"
    );
}

/// An upstream that answers the first request of its first connection, closes it at the second, and
/// answers one on a second connection, if there is one. Returns the methods received.
async fn stale_upstream(listener: TcpListener) -> Vec<String> {
    let mut seen = Vec::new();
    let mut note = |head: String| {
        let method = head.split(' ').next().unwrap();
        if !method.is_empty() {
            seen.push(method.to_owned());
        }
    };
    let (mut stream, _) = listener.accept().await.unwrap();
    note(read_head(&mut stream).await);
    stream.write_all(OK).await.unwrap();
    note(read_head(&mut stream).await);
    drop(stream);
    if let Ok(Ok((mut stream, _))) =
        tokio::time::timeout(Duration::from_secs(1), listener.accept()).await
    {
        note(read_head(&mut stream).await);
        stream.write_all(OK).await.unwrap();
    }
    seen
}

#[tokio::test]
async fn a_stale_connection_costs_idempotent_requests_nothing() {
    let (listener, address) = listen().await;
    let upstream = tokio::spawn(stale_upstream(listener));
    let proxy = proxy(address, ProxyOptions::default());
    for _ in 0..2 {
        let response = send(&proxy, request("GET", Body::empty())).await;
        assert_eq!(response.status(), StatusCode::OK);
        assert_eq!(text(response).await, "ok");
    }
    assert_eq!(in_time(upstream).await.unwrap(), ["GET", "GET", "GET"]);
}

#[tokio::test]
async fn what_might_have_worked_is_not_sent_twice() {
    for (method, body) in [("POST", Body::empty()), ("PUT", Body::full("content"))] {
        let (listener, address) = listen().await;
        let upstream = tokio::spawn(stale_upstream(listener));
        let proxy = proxy(address, ProxyOptions::default());
        let first = send(&proxy, request("GET", Body::empty())).await;
        assert_eq!(text(first).await, "ok");
        let response = send(&proxy, request(method, body)).await;
        assert_eq!(response.status(), StatusCode::BAD_GATEWAY);
        assert_eq!(in_time(upstream).await.unwrap(), ["GET", method]);
    }
}

#[tokio::test]
async fn a_fresh_connection_that_fails_is_not_tried_again() {
    let (listener, address) = listen().await;
    let upstream = tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        read_head(&mut stream).await;
        drop(stream);
        tokio::time::timeout(Duration::from_secs(1), listener.accept())
            .await
            .is_err()
    });
    let proxy = proxy(address, ProxyOptions::default());
    let response = send(&proxy, request("GET", Body::empty())).await;
    assert_eq!(response.status(), StatusCode::BAD_GATEWAY);
    assert!(in_time(upstream).await.unwrap(), "a second connection came");
}

#[tokio::test]
async fn a_client_that_breaks_off_gets_an_error() {
    let (_listener, address) = listen().await;
    let proxy = proxy(address, ProxyOptions::default());
    let (feeder, body) = fed();
    feeder.data("half");
    feeder.fail("gone");
    let response = send(&proxy, request("POST", body)).await;
    assert_eq!(response.status(), StatusCode::BAD_REQUEST);
    let (feeder, body) = fed();
    feeder.data("half");
    let slow = Body::new(TimedBody::new(body, Pace::gap(SHORT)));
    let response = send(&proxy, request("POST", slow)).await;
    assert_eq!(response.status(), StatusCode::REQUEST_TIMEOUT);
    drop(feeder);
}

/// A body that reports its first poll.
struct Watched {
    inner: Body,
    asked: Arc<AtomicBool>,
}

impl HttpBody for Watched {
    type Data = Bytes;
    type Error = swiftwater_http::web::body::BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        self.asked.store(true, Ordering::Relaxed);
        Pin::new(&mut self.inner).poll_frame(cx)
    }
}

/// A request that waits for 100 (Continue), and whether its body was polled.
fn expecting() -> (Request<Body>, Arc<AtomicBool>) {
    let asked = Arc::new(AtomicBool::new(false));
    let body = Body::new(Watched {
        inner: Body::full("content"),
        asked: Arc::clone(&asked),
    });
    let request = Request::post("/")
        .header("expect", "100-Continue")
        .header("content-length", "7")
        .body(body)
        .unwrap();
    (request, asked)
}

/// Options under which nothing but the upstream opens the way for the body.
fn patient() -> ProxyOptions {
    ProxyOptions {
        continue_timeout: Duration::from_secs(3600),
        ..ProxyOptions::default()
    }
}

#[tokio::test]
async fn a_body_waits_for_the_upstream_to_continue() {
    let (listener, address) = listen().await;
    let (request, asked) = expecting();
    let upstream = tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        let head = read_head(&mut stream).await;
        assert!(head.to_ascii_lowercase().contains("expect: 100-continue"));
        assert!(!asked.load(Ordering::Relaxed));
        stream
            .write_all(b"HTTP/1.1 100 Continue\r\n\r\n")
            .await
            .unwrap();
        let mut body = [0; 7];
        stream.read_exact(&mut body).await.unwrap();
        assert_eq!(&body, b"content");
        stream.write_all(OK).await.unwrap();
    });
    let response = send(&proxy(address, patient()), request).await;
    assert_eq!(text(response).await, "ok");
    in_time(upstream).await.unwrap();
}

#[tokio::test]
async fn a_final_answer_comes_without_the_body() {
    let (listener, address) = listen().await;
    let (request, asked) = expecting();
    let upstream = tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        read_head(&mut stream).await;
        assert!(!asked.load(Ordering::Relaxed));
        let refusal = b"HTTP/1.1 413 Too Large\r\ncontent-length: 2\r\n\r\nno";
        stream.write_all(refusal).await.unwrap();
        stream
    });
    let response = send(&proxy(address, patient()), request).await;
    assert_eq!(response.status(), StatusCode::PAYLOAD_TOO_LARGE);
    assert_eq!(text(response).await, "no");
    in_time(upstream).await.unwrap();
}

#[tokio::test]
async fn an_upstream_without_continue_gets_the_body_anyway() {
    let (listener, address) = listen().await;
    let (request, _) = expecting();
    let upstream = tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        read_head(&mut stream).await;
        let mut body = [0; 7];
        in_time(stream.read_exact(&mut body)).await.unwrap();
        stream.write_all(OK).await.unwrap();
    });
    let options = ProxyOptions {
        continue_timeout: SHORT,
        ..ProxyOptions::default()
    };
    let response = send(&proxy(address, options), request).await;
    assert_eq!(text(response).await, "ok");
    in_time(upstream).await.unwrap();
}
