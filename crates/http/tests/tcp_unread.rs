//! Responses that are complete before their request is: the client gets to read them.

use std::convert::Infallible;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use http::{Request, Response, StatusCode};
use swiftwater_http::tcp::{RunningServer, TcpLimits};
use swiftwater_http::web::body::{Body, text_response};
use swiftwater_http::web::proxy::{Proxy, ProxyOptions, Upstream};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tower::service_fn;

use crate::peers::{certificate, in_time, plain, secure};
use crate::raw_h2::{DATA, HEADERS, RST_STREAM, RawClient, RawFrame, WINDOW_UPDATE};

/// Answers 405 at once, to any request.
async fn refuse(_: Request<Body>) -> Result<Response<Body>, Infallible> {
    Ok(text_response(StatusCode::METHOD_NOT_ALLOWED, ""))
}

async fn refusing(linger_time: Duration, linger_bytes: usize) -> RunningServer {
    let limits = TcpLimits {
        linger_time,
        linger_bytes,
        ..TcpLimits::default()
    };
    plain(service_fn(refuse), limits).await
}

const LONG: Duration = Duration::from_secs(3600);

/// Reads the response on `stream` to its end; other frames are left out.
async fn response(client: &mut RawClient, stream: u32) -> Vec<RawFrame> {
    let mut frames = Vec::new();
    while !frames.last().is_some_and(RawFrame::ends_stream) {
        let frame = client.next().await.expect("the connection goes on");
        assert_ne!(frame.kind, RST_STREAM, "the response is not complete");
        if frame.stream == stream && matches!(frame.kind, HEADERS | DATA) {
            frames.push(frame);
        }
    }
    frames
}

fn resets(frames: &[RawFrame]) -> usize {
    frames
        .iter()
        .filter(|frame| frame.kind == RST_STREAM)
        .count()
}

#[tokio::test]
async fn a_stream_whose_request_ends_before_the_timeout_is_not_reset() {
    let server = refusing(LONG, 1 << 20).await;
    let mut client = RawClient::connect(server.local_addr(), 65_535).await;
    client.request(1, "POST", false).await;
    client.data(1, &[b'x'; 1000], false).await;
    assert_ne!(response(&mut client, 1).await[0].status(), Some(200));
    // Long after the response the rest arrives.
    tokio::time::sleep(Duration::from_millis(100)).await;
    assert_eq!(resets(&client.until_pong().await), 0);
    client.data(1, &[b'x'; 1000], true).await;
    assert_eq!(resets(&client.until_pong().await), 0);
    client.request(3, "GET", true).await;
    assert_ne!(response(&mut client, 3).await[0].status(), Some(200));
}

#[tokio::test]
async fn a_stream_whose_request_goes_on_is_reset_after_a_while() {
    const WHILE: Duration = Duration::from_millis(300);
    let server = refusing(WHILE, 1 << 20).await;
    let mut client = RawClient::connect(server.local_addr(), 65_535).await;
    client.request(1, "POST", false).await;
    response(&mut client, 1).await;
    let complete = Instant::now();
    let reset = loop {
        let frame = client.next().await.unwrap();
        if frame.kind == RST_STREAM {
            break frame;
        }
    };
    // NO_ERROR: the response counts (RFC 9113, section 8.1).
    assert_eq!((reset.stream, reset.code()), (1, 0));
    // The server's clock started slightly before the test's.
    assert!(complete.elapsed() > WHILE / 2);
}

#[tokio::test]
async fn what_is_discarded_has_a_bound() {
    const BOUND: usize = 256 * 1024;
    let limits = TcpLimits {
        linger_time: LONG,
        linger_bytes: BOUND,
        connection_window: 65_535,
        ..TcpLimits::default()
    };
    let server = plain(service_fn(refuse), limits).await;
    let mut client = RawClient::connect(server.local_addr(), 65_535).await;
    client.request(1, "POST", false).await;
    response(&mut client, 1).await;
    // Sends as much as flow control permits.
    let mut credit: i64 = 65_535;
    let mut sent = 0;
    loop {
        while credit >= 16_384 {
            client.data(1, &[0; 16_384], false).await;
            credit -= 16_384;
            sent += 16_384;
        }
        let frames = client.until_pong().await;
        let more: i64 = frames
            .iter()
            .filter(|frame| frame.kind == WINDOW_UPDATE && frame.stream == 1)
            .map(|frame| i64::from(u32::from_be_bytes(frame.payload[..4].try_into().unwrap())))
            .sum();
        credit += more;
        if more == 0 {
            // Credit may arrive late.
            tokio::time::sleep(Duration::from_millis(200)).await;
            if client.until_pong().await.is_empty() {
                break;
            }
        }
        assert!(sent < 4 * BOUND, "nothing bounds it");
    }
    assert!(sent > BOUND / 2, "{sent}");
}

#[tokio::test]
async fn http1_reads_the_rest_and_goes_on() {
    let server = refusing(LONG, 1 << 20).await;
    let mut stream = TcpStream::connect(server.local_addr()).await.unwrap();
    for _ in 0..3 {
        let head = b"POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 500000\r\n\r\n";
        in_time(stream.write_all(head)).await.unwrap();
        in_time(stream.write_all(&vec![b'x'; 500_000]))
            .await
            .unwrap();
        let mut answer = vec![0; 4096];
        let length = in_time(stream.read(&mut answer)).await.unwrap();
        assert!(answer[..length].starts_with(b"HTTP/1.1 405"));
    }
}

#[tokio::test]
async fn http1_does_not_ask_for_a_body_that_is_not_read() {
    let server = refusing(LONG, 1 << 20).await;
    let mut stream = TcpStream::connect(server.local_addr()).await.unwrap();
    let head = b"POST / HTTP/1.1\r\nhost: a\r\nexpect: 100-continue\r\ncontent-length: 5\r\n\r\n";
    stream.write_all(head).await.unwrap();
    let mut answer = String::new();
    in_time(stream.read_to_string(&mut answer)).await.unwrap();
    assert!(answer.starts_with("HTTP/1.1 405"), "{answer}");
}

/// The status that curl sees, of `times` requests that send `bytes` over HTTP/2; `None` without curl.
async fn curl(server: &RunningServer, bytes: usize, times: usize) -> Option<Vec<String>> {
    let url = format!("https://127.0.0.1:{}/", server.local_addr().port());
    let body = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(body.path(), vec![b'x'; bytes]).unwrap();
    let mut seen = Vec::new();
    for _ in 0..times {
        let mut command = Command::new("curl");
        command
            .args([
                "--http2",
                "-k",
                "-s",
                "-o",
                "/dev/null",
                "-w",
                "%{http_version} %{http_code}",
            ])
            .args(["-X", "POST", "--data-binary"])
            .arg(format!("@{}", body.path().display()))
            .arg(&url)
            .stderr(Stdio::null());
        let output = tokio::task::spawn_blocking(move || command.output());
        let Ok(output) = in_time(output).await.unwrap() else {
            println!("skipped: there is no curl");
            return None;
        };
        let code = output.status.code().unwrap_or_default();
        seen.push(format!(
            "{} exit {code}",
            String::from_utf8_lossy(&output.stdout)
        ));
    }
    Some(seen)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn curl_sees_the_answer_of_a_service_that_reads_nothing() {
    let (_, shown) = certificate();
    let server = secure(service_fn(refuse), TcpLimits::default(), &shown).await;
    for bytes in [1, 10_000, 200_000, 10_000_000] {
        let Some(seen) = curl(&server, bytes, 10).await else {
            return;
        };
        assert_eq!(seen, vec!["2 405 exit 0"; 10], "{bytes} bytes");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn curl_sees_that_an_upstream_is_down() {
    // Nothing listens there any more.
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    drop(listener);
    let upstream = Upstream::parse(&format!("http://{address}")).unwrap();
    let proxy = Proxy::new(upstream, ProxyOptions::default());
    let (_, shown) = certificate();
    let server = secure(proxy, TcpLimits::default(), &shown).await;
    for bytes in [1, 10_000, 200_000, 10_000_000] {
        let Some(seen) = curl(&server, bytes, 10).await else {
            return;
        };
        assert_eq!(seen, vec!["2 502 exit 0"; 10], "{bytes} bytes");
    }
}
