//! Clients that hold on to a server without doing anything useful, and the bounds that end it.

use crate::peers;

use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use http::{Request, Response, StatusCode};
use http_body_util::BodyExt;
use swiftwater_http::tcp::TcpLimits;
use swiftwater_http::web::body::{Body, text_response};
use swiftwater_http::web::timed_body::{Pace, TimedBodyError};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tower::service_fn;

use peers::{certificate, in_time, plain, secure, until};

const SHORT: Duration = Duration::from_millis(200);

/// Short of `header_timeout` and others where a test sets them: far longer than any test takes.
const LONG: Duration = Duration::from_secs(3600);

/// TcpLimits that end nothing by themselves.
fn lenient() -> TcpLimits {
    TcpLimits {
        handshake_timeout: LONG,
        header_timeout: LONG,
        idle_timeout: LONG,
        send_timeout: LONG,
        ping_interval: LONG,
        body_pace: Pace::gap(LONG),
        ..TcpLimits::default()
    }
}

/// Reads the whole body; a body that is too slow is answered with 408.
async fn swallow(request: Request<Body>) -> Result<Response<Body>, Infallible> {
    Ok(match request.into_body().collect().await {
        Ok(_) => text_response(StatusCode::OK, ""),
        Err(error) => match error.downcast_ref::<TimedBodyError>() {
            Some(TimedBodyError::TooSlow) => text_response(StatusCode::REQUEST_TIMEOUT, ""),
            _ => text_response(StatusCode::BAD_REQUEST, ""),
        },
    })
}

/// Writes `piece` every few milliseconds until the server closes, and gives what the server said.
async fn drip(stream: TcpStream, piece: &'static [u8]) -> String {
    let (mut read, mut write) = stream.into_split();
    let dripping = tokio::spawn(async move {
        while write.write_all(piece).await.is_ok() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    });
    let mut answer = Vec::new();
    // A reset is an end too.
    let _ = in_time(read.read_to_end(&mut answer)).await;
    dripping.abort();
    String::from_utf8_lossy(&answer).into_owned()
}

#[tokio::test]
async fn a_handshake_that_never_comes() {
    let (_, shown) = certificate();
    let limits = TcpLimits {
        handshake_timeout: SHORT,
        ..lenient()
    };
    let server = secure(service_fn(swallow), limits, &shown).await;
    let mut stream = TcpStream::connect(server.local_addr()).await.unwrap();
    let mut nothing = Vec::new();
    in_time(stream.read_to_end(&mut nothing)).await.unwrap();
    assert!(nothing.is_empty());
    until(|| server.connections() == 0).await;
}

#[tokio::test]
async fn a_head_that_never_ends() {
    let limits = TcpLimits {
        header_timeout: SHORT,
        ..lenient()
    };
    let server = plain(service_fn(swallow), limits).await;
    let mut stream = TcpStream::connect(server.local_addr()).await.unwrap();
    stream.write_all(b"GET / HTTP/1.1\r\n").await.unwrap();
    let answer = drip(stream, b"x-a: b\r\n").await;
    assert!(!answer.contains("200"));
    until(|| server.connections() == 0).await;
}

#[tokio::test]
async fn a_first_byte_that_never_comes() {
    let limits = TcpLimits {
        idle_timeout: SHORT,
        ..lenient()
    };
    let server = plain(service_fn(swallow), limits).await;
    let mut stream = TcpStream::connect(server.local_addr()).await.unwrap();
    let mut nothing = Vec::new();
    let _ = in_time(stream.read_to_end(&mut nothing)).await;
    assert!(nothing.is_empty());
    until(|| server.connections() == 0).await;
}

/// The pace that the tests of slow bodies set: any gap, but 10 kB/s after the grace.
fn rate() -> Pace {
    Pace {
        gap: LONG,
        minimum_rate: 10_000,
        grace: SHORT,
    }
}

#[tokio::test]
async fn a_body_that_drips() {
    let limits = TcpLimits {
        body_pace: rate(),
        ..lenient()
    };
    let server = plain(service_fn(swallow), limits).await;
    let mut stream = TcpStream::connect(server.local_addr()).await.unwrap();
    stream
        .write_all(b"POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 1000000\r\n\r\n")
        .await
        .unwrap();
    let answer = drip(stream, b"b").await;
    assert!(answer.starts_with("HTTP/1.1 408"), "{answer}");
    until(|| server.connections() == 0).await;
}

#[tokio::test]
async fn a_body_that_stops() {
    let limits = TcpLimits {
        body_pace: Pace::gap(SHORT),
        ..lenient()
    };
    let server = plain(service_fn(swallow), limits).await;
    let mut stream = TcpStream::connect(server.local_addr()).await.unwrap();
    stream
        .write_all(b"POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 10\r\n\r\n12345")
        .await
        .unwrap();
    let mut answer = String::new();
    let _ = in_time(stream.read_to_string(&mut answer)).await;
    assert!(answer.starts_with("HTTP/1.1 408"), "{answer}");
}

#[tokio::test]
async fn a_body_that_is_fast_enough_passes() {
    let limits = TcpLimits {
        body_pace: Pace {
            minimum_rate: 1,
            ..rate()
        },
        ..lenient()
    };
    let server = plain(service_fn(swallow), limits).await;
    let mut stream = TcpStream::connect(server.local_addr()).await.unwrap();
    let head = b"POST / HTTP/1.1\r\nhost: a\r\nconnection: close\r\ncontent-length: 400\r\n\r\n";
    stream.write_all(head).await.unwrap();
    for _ in 0..40 {
        stream.write_all(b"0123456789").await.unwrap();
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    let mut answer = String::new();
    in_time(stream.read_to_string(&mut answer)).await.unwrap();
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
}

#[tokio::test]
async fn a_client_that_takes_nothing() {
    let limits = TcpLimits {
        send_timeout: SHORT,
        // HTTP/2 loses the response first, then the connection that has no other.
        idle_timeout: SHORT,
        ..lenient()
    };
    let pieces = service_fn(|_: Request<Body>| async {
        let (feeder, body) = peers::fed();
        tokio::spawn(async move {
            // Frames are small, so that the body is polled repeatedly while they are sent.
            for _ in 0..200_000 {
                feeder.data("0123456789012345678901234567890123456789012345678901234567890123");
            }
            feeder.closed().await;
        });
        Ok::<_, Infallible>(Response::new(body))
    });
    for version in ["1", "2"] {
        let server = plain(pieces, limits.clone()).await;
        let mut stream = TcpStream::connect(server.local_addr()).await.unwrap();
        let request = if version == "1" {
            b"GET / HTTP/1.1\r\nhost: a\r\n\r\n".to_vec()
        } else {
            [opening(), headers(1)].concat()
        };
        stream.write_all(&request).await.unwrap();
        until(|| server.connections() == 1).await;
        until(|| server.connections() == 0).await;
    }
}

/// The connection preface of an HTTP/2 client, with empty SETTINGS.
fn opening() -> Vec<u8> {
    [
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".as_slice(),
        &[0, 0, 0, 4, 0, 0, 0, 0, 0],
    ]
    .concat()
}

/// HEADERS of a whole GET request on `stream`.
fn headers(stream: u32) -> Vec<u8> {
    // :method GET, :scheme http, :path / of the static table; :authority "a" as a literal.
    let block = [0x82, 0x86, 0x84, 0x01, 0x01, b'a'];
    let mut frame = vec![0, 0, block.len() as u8, 1, 0x5];
    frame.extend_from_slice(&stream.to_be_bytes());
    frame.extend_from_slice(&block);
    frame
}

/// RST_STREAM with CANCEL.
fn reset(stream: u32) -> Vec<u8> {
    let mut frame = vec![0, 0, 4, 3, 0];
    frame.extend_from_slice(&stream.to_be_bytes());
    frame.extend_from_slice(&8_u32.to_be_bytes());
    frame
}

#[tokio::test]
async fn an_idle_http2_connection_is_closed_in_good_order() {
    let limits = TcpLimits {
        idle_timeout: SHORT,
        send_timeout: SHORT,
        ..lenient()
    };
    let server = plain(service_fn(swallow), limits).await;
    let mut stream = TcpStream::connect(server.local_addr()).await.unwrap();
    stream.write_all(&opening()).await.unwrap();
    let mut answer = Vec::new();
    in_time(stream.read_to_end(&mut answer)).await.unwrap();
    // GOAWAY: type 7 on stream 0.
    assert!(answer.windows(6).any(|window| window == [7, 0, 0, 0, 0, 0]));
    until(|| server.connections() == 0).await;
}

/// A service that counts its requests and answers none.
fn counting(
    count: &Arc<AtomicU32>,
) -> impl tower::Service<
    Request<Body>,
    Response = Response<Body>,
    Error = Infallible,
    Future: Send + 'static,
> + Clone
+ Send
+ Sync
+ 'static {
    let count = Arc::clone(count);
    service_fn(move |_: Request<Body>| {
        count.fetch_add(1, Ordering::Relaxed);
        std::future::pending()
    })
}

#[tokio::test]
async fn resets_in_one_burst_reach_no_service() {
    let count = Arc::new(AtomicU32::new(0));
    let server = plain(counting(&count), lenient()).await;
    let mut stream = TcpStream::connect(server.local_addr()).await.unwrap();
    let mut burst = opening();
    for number in 0..10_000 {
        burst.extend_from_slice(&headers(2 * number + 1));
        burst.extend_from_slice(&reset(2 * number + 1));
    }
    // The server may close before it has read everything.
    let _ = stream.write_all(&burst).await;
    until(|| server.connections() == 0).await;
    let bound = lenient().abandoned + lenient().concurrent_streams;
    assert!(count.load(Ordering::Relaxed) <= bound);
}

#[tokio::test]
async fn resets_of_requests_under_way_have_a_bound() {
    let count = Arc::new(AtomicU32::new(0));
    let limits = TcpLimits {
        abandoned: 30,
        abandon_window: LONG,
        ..lenient()
    };
    let server = plain(counting(&count), limits).await;
    let mut stream = TcpStream::connect(server.local_addr()).await.unwrap();
    stream.write_all(&opening()).await.unwrap();
    until(|| server.connections() == 1).await;
    let mut number = 0;
    // Each request reaches the service before it is reset, which hyper's own bound does not count.
    while server.connections() == 1 {
        if stream.write_all(&headers(2 * number + 1)).await.is_err() {
            break;
        }
        until(|| count.load(Ordering::Relaxed) > number || server.connections() == 0).await;
        let _ = stream.write_all(&reset(2 * number + 1)).await;
        number += 1;
        assert!(number <= 40, "resets have no bound");
    }
    until(|| server.connections() == 0).await;
    // The thirty-first ends it; data written meanwhile may still be processed.
    assert!((30..=40).contains(&count.load(Ordering::Relaxed)));
}
