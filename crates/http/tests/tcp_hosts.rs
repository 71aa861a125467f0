//! Requests that do not say clearly which host they are for, or how their content is coded, are refused
//! before any service sees them.

use std::convert::Infallible;
use std::net::SocketAddr;

use http::{Request, Response};
use swiftwater_http::tcp::{RunningServer, TcpLimits};
use swiftwater_http::web::body::Body;
use swiftwater_http::web::host::{host, host_name};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tower::service_fn;

use crate::peers::{in_time, plain};
use crate::raw_h2::{HEADERS, RST_STREAM, RawClient};

/// Tells for which host a request is, and what its `Host` field says.
async fn tell(request: Request<Body>) -> Result<Response<Body>, Infallible> {
    let field = request.headers().get("host");
    let field = field.map_or("-", |value| value.to_str().unwrap());
    let text = format!("{} {field}", host(&request).unwrap_or("-"));
    Ok(Response::new(Body::full(text)))
}

async fn server() -> RunningServer {
    plain(service_fn(tell), TcpLimits::default()).await
}

/// What the server says to `head` and the end of the connection.
async fn http1(server: SocketAddr, head: &str) -> String {
    let mut stream = TcpStream::connect(server).await.unwrap();
    stream.write_all(head.as_bytes()).await.unwrap();
    let mut answer = String::new();
    in_time(stream.read_to_string(&mut answer)).await.unwrap();
    answer
}

#[tokio::test]
async fn http1_hosts_that_are_refused() {
    let server = server().await;
    for head in [
        "GET / HTTP/1.1\r\n",
        "GET / HTTP/1.1\r\nhost: a\r\nhost: a\r\n",
        "GET / HTTP/1.1\r\nhost: a\r\nhost: b\r\n",
        "GET / HTTP/1.1\r\nhost:\r\n",
        "GET / HTTP/1.1\r\nhost: a b@c/d\r\n",
        "GET / HTTP/1.1\r\nhost: user@localhost\r\n",
        "GET / HTTP/1.1\r\nhost: a.example@x.b.example\r\n",
        "GET / HTTP/1.1\r\nhost: .b.example\r\n",
        "GET / HTTP/1.1\r\nhost: a..b\r\n",
        "GET / HTTP/1.1\r\nhost: a:b\r\n",
        "GET / HTTP/1.1\r\nhost: a:99999\r\n",
        "GET / HTTP/1.1\r\nhost: a/b\r\n",
        "GET / HTTP/1.1\r\nhost: a,b c\r\n",
        "GET / HTTP/1.1\r\nhost: [::1\r\n",
        "GET / HTTP/1.1\r\nhost: [::x]\r\n",
        "GET http://a/ HTTP/1.1\r\n",
        "GET http://user@a/ HTTP/1.1\r\nhost: a\r\n",
        "GET http://a/ HTTP/1.1\r\nhost: user@a\r\n",
        "GET / HTTP/1.0\r\nhost: a\r\nhost: b\r\n",
    ] {
        let head = format!("{head}connection: close\r\n\r\n");
        let answer = http1(server.local_addr(), &head).await;
        assert!(
            answer.starts_with("HTTP/1.1 400 ") || answer.starts_with("HTTP/1.0 400 "),
            "{head}{answer}"
        );
    }
}

#[tokio::test]
async fn http1_hosts_that_are_accepted() {
    let server = server().await;
    for (head, seen) in [
        (
            "GET / HTTP/1.1\r\nhost: a.example\r\n",
            "a.example a.example",
        ),
        (
            "GET / HTTP/1.1\r\nhost: A.example.:8443\r\n",
            "A.example.:8443 A.example.:8443",
        ),
        (
            "GET / HTTP/1.1\r\nhost: a_b-c~d.example\r\n",
            "a_b-c~d.example a_b-c~d.example",
        ),
        (
            "GET / HTTP/1.1\r\nhost: [2001:db8::1]:80\r\n",
            "[2001:db8::1]:80 [2001:db8::1]:80",
        ),
        (
            "GET / HTTP/1.1\r\nhost: 127.0.0.1:\r\n",
            "127.0.0.1: 127.0.0.1:",
        ),
        // The target counts, and the service sees nothing else (RFC 9112, section 3.2.2).
        (
            "GET http://a.example/x HTTP/1.1\r\nhost: b.example\r\n",
            "a.example a.example",
        ),
        ("GET / HTTP/1.0\r\n", "- -"),
    ] {
        let head = format!("{head}connection: close\r\n\r\n");
        let answer = http1(server.local_addr(), &head).await;
        assert!(
            answer.contains(" 200 ") && answer.ends_with(seen),
            "{head}{answer}"
        );
    }
}

/// The status of a request over HTTP/2; none if the stream is reset.
async fn http2(server: SocketAddr, authority: &str, fields: &[(&str, &str)]) -> Option<u16> {
    let mut client = RawClient::connect(server, 65_535).await;
    client.request_with(1, "GET", authority, fields, true).await;
    loop {
        let frame = client.next().await.expect("an answer");
        match frame.kind {
            HEADERS => return frame.status(),
            RST_STREAM => return None,
            _ => {}
        }
    }
}

#[tokio::test]
async fn http2_authorities() {
    let address = server().await;
    let address = address.local_addr();
    assert_eq!(http2(address, "a.example", &[]).await, Some(200));
    assert_eq!(
        http2(address, "a.example:80", &[("host", "A.example:80")]).await,
        Some(200)
    );
    for (authority, fields) in [
        ("a.example", &[("host", "b.example")][..]),
        ("a.example", &[("host", "a.example"), ("host", "a.example")]),
        ("user@a.example", &[]),
        (".b.example", &[]),
        ("a.example@x.b.example", &[]),
    ] {
        let status = http2(address, authority, fields).await;
        assert!(
            matches!(status, Some(400) | None),
            "{authority} {fields:?}: {status:?}"
        );
    }
}

#[tokio::test]
async fn content_that_is_coded_otherwise_is_not_understood() {
    let server = server().await;
    let post = "POST / HTTP/1.1\r\nhost: a\r\nconnection: close\r\n";
    for coding in [
        "gzip, chunked",
        "gzip\r\ntransfer-encoding: chunked",
        "chunked, chunked",
    ] {
        let head = format!("{post}transfer-encoding: {coding}\r\n\r\n0\r\n\r\n");
        let answer = http1(server.local_addr(), &head).await;
        assert!(answer.starts_with("HTTP/1.1 501 "), "{coding}: {answer}");
    }
    let head = format!("{post}transfer-encoding: Chunked\r\n\r\n0\r\n\r\n");
    let answer = http1(server.local_addr(), &head).await;
    assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
}

#[test]
fn what_is_no_host_has_no_name() {
    for host in [
        "a.example@x.b.example",
        ".b.example",
        "a..b",
        "user@localhost",
        "a b",
        ".",
        ":80",
    ] {
        assert_eq!(host_name(host), None, "{host}");
    }
    assert_eq!(host_name("X.b.Example.:80").unwrap(), "x.b.example");
}
