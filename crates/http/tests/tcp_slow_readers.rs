//! Clients that do not read their responses: each response has its own time limit, and all together a memory
//! budget.

use crate::peers;
use crate::raw_h2;

use std::collections::BTreeSet;
use std::convert::Infallible;
use std::time::{Duration, Instant};

use bytes::Bytes;
use http::{Method, Request, Response};
use http_body_util::BodyExt;
use swiftwater_http::tcp::TcpLimits;
use swiftwater_http::web::body::Body;
use swiftwater_http::web::response_budget::{PieceSize, ResponseBudget};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tower::service_fn;

use peers::{get, in_time, plain, until};
use raw_h2::{HEADERS, RST_STREAM, RawClient};

const LONG: Duration = Duration::from_secs(3600);
const SHORT: Duration = Duration::from_millis(400);

fn limits(send_timeout: Duration) -> TcpLimits {
    TcpLimits {
        send_timeout,
        header_timeout: LONG,
        idle_timeout: LONG,
        ping_interval: LONG,
        ..TcpLimits::default()
    }
}

/// Endless content, in pieces of the requested size; none for HEAD.
async fn endless(request: Request<Body>) -> Result<Response<Body>, Infallible> {
    if request.method() == Method::HEAD {
        return Ok(Response::new(Body::empty()));
    }
    let pieces = request.extensions().get::<PieceSize>().unwrap().clone();
    Ok(Response::new(Body::new(Endless(pieces))))
}

struct Endless(PieceSize);

impl http_body::Body for Endless {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        self: std::pin::Pin<&mut Self>,
        _: &mut std::task::Context<'_>,
    ) -> std::task::Poll<Option<Result<http_body::Frame<Bytes>, Infallible>>> {
        let piece = Bytes::from(vec![0; self.0.bytes()]);
        std::task::Poll::Ready(Some(Ok(http_body::Frame::data(piece))))
    }
}

#[tokio::test]
async fn a_stream_that_is_not_taken_is_reset_whatever_happens_on_others() {
    let server = plain(service_fn(endless), limits(SHORT)).await;
    let mut client = RawClient::connect(server.local_addr(), 0).await;
    let mut held: BTreeSet<u32> = (0..50).map(|number| 2 * number + 1).collect();
    for &stream in &held {
        client.request(stream, "GET", true).await;
    }
    let begin = Instant::now();
    let mut stream = 101;
    while !held.is_empty() {
        // Something new happens on the connection all the time.
        client.request(stream, "HEAD", true).await;
        stream += 2;
        for frame in client.until_pong().await {
            if frame.kind == RST_STREAM {
                assert_eq!(frame.code(), 8, "CANCEL");
                assert!(held.remove(&frame.stream));
            }
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
        assert!(
            begin.elapsed() < peers::TIME_LIMIT,
            "{} are held",
            held.len()
        );
    }
    // The client's clock started slightly after the server's.
    assert!(begin.elapsed() > SHORT / 2);
    // The connection and its other streams continue.
    client.request(stream, "HEAD", true).await;
    let frames = client.until_pong().await;
    assert!(frames.iter().all(|frame| frame.kind != RST_STREAM));
    assert_eq!(server.connections(), 1);
}

#[tokio::test]
async fn a_stream_that_is_taken_slowly_goes_on() {
    let server = plain(service_fn(endless), limits(SHORT)).await;
    let mut client = RawClient::connect(server.local_addr(), 0).await;
    client.request(1, "GET", true).await;
    let begin = Instant::now();
    while begin.elapsed() < 4 * SHORT {
        let credit = raw_h2::frame(raw_h2::WINDOW_UPDATE, 0, 1, &100_u32.to_be_bytes());
        client.send(&credit).await;
        let frames = client.until_pong().await;
        assert!(frames.iter().all(|frame| frame.kind != RST_STREAM));
        tokio::time::sleep(SHORT / 8).await;
    }
}

#[tokio::test]
async fn the_rest_of_a_response_that_is_not_taken_does_not_stay() {
    let service = service_fn(|_: Request<Body>| async {
        // Short enough to be handed to the connection at once.
        Ok::<_, Infallible>(Response::new(Body::full(vec![0; 10_000])))
    });
    let server = plain(service, limits(SHORT)).await;
    let mut client = RawClient::connect(server.local_addr(), 10).await;
    client.request(1, "GET", true).await;
    until(|| server.connections() == 1).await;
    until(|| server.connections() == 0).await;
}

#[tokio::test]
async fn http1_loses_its_connection() {
    let server = plain(service_fn(endless), limits(SHORT)).await;
    let mut stream = TcpStream::connect(server.local_addr()).await.unwrap();
    stream
        .write_all(b"GET / HTTP/1.1\r\nhost: a\r\n\r\n")
        .await
        .unwrap();
    until(|| server.connections() == 1).await;
    until(|| server.connections() == 0).await;
}

#[tokio::test]
async fn http1_over_tls_loses_its_connection_at_the_timeout() {
    const TIME_LIMIT: Duration = Duration::from_secs(4);
    let (trusted, shown) = peers::certificate();
    let server = peers::secure(service_fn(endless), limits(TIME_LIMIT), &shown).await;
    let mut stream = peers::tls(server.local_addr(), &trusted, &[b"http/1.1"]).await;
    let head = b"GET / HTTP/1.1\r\nhost: a\r\n\r\n";
    stream.write_all(head).await.unwrap();
    let begin = Instant::now();
    until(|| server.connections() == 0).await;
    // Half of it is for the server's detection; the rest for a busy machine. Buffers that fill one after
    // the other are not progress: they would double the time.
    let elapsed = begin.elapsed();
    assert!(
        elapsed > TIME_LIMIT / 2 && elapsed < TIME_LIMIT * 15 / 8,
        "{elapsed:?}"
    );
}

#[tokio::test]
async fn a_long_response_is_whole_although_its_end_waits() {
    let content: Vec<u8> = (0..3_000_000_u32).map(|n| (n / 7) as u8).collect();
    let shared = content.clone();
    let service = service_fn(move |_: Request<Body>| {
        let content = shared.clone();
        async move { Ok::<_, Infallible>(Response::new(Body::full(content))) }
    });
    let server = plain(service, limits(LONG)).await;
    let stream = TcpStream::connect(server.local_addr()).await.unwrap();
    let mut client = peers::http2(stream).await;
    for _ in 0..3 {
        let response = in_time(client.send_request(get("http://localhost/"))).await;
        let body = in_time(response.unwrap().into_body().collect()).await;
        assert!(body.unwrap().to_bytes() == content);
    }
}

#[tokio::test]
async fn memory_for_responses_has_a_bound_for_all_connections() {
    const BUDGET: usize = 4 << 20;
    let budget = ResponseBudget::new(BUDGET);
    let limits = TcpLimits {
        response_budget: budget.clone(),
        ..limits(LONG)
    };
    let server = plain(service_fn(endless), limits).await;
    let mut clients = Vec::new();
    let mut refused = 0;
    for _ in 0..10 {
        let mut client = RawClient::connect(server.local_addr(), 1 << 20).await;
        for number in 0..20 {
            client.request(2 * number + 1, "GET", true).await;
        }
        let mut answered = 0;
        while answered < 20 {
            let frame = client.next().await.unwrap();
            if frame.kind == HEADERS {
                answered += 1;
                refused += u32::from(frame.status() != Some(200));
            }
        }
        // Nothing more is read.
        clients.push(client);
        assert!(budget.held() <= BUDGET, "{} bytes", budget.held());
    }
    assert!(refused > 0 && refused < 200, "{refused}");
    assert!(budget.held() > BUDGET / 4, "{} bytes", budget.held());
    drop(clients);
    until(|| budget.held() == 0).await;
    let mut stream = TcpStream::connect(server.local_addr()).await.unwrap();
    stream
        .write_all(b"GET / HTTP/1.1\r\nhost: a\r\n\r\n")
        .await
        .unwrap();
    let mut answer = [0; 12];
    in_time(stream.read_exact(&mut answer)).await.unwrap();
    assert_eq!(&answer, b"HTTP/1.1 200");
}
