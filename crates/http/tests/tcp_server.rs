//! HTTP/1.1 and HTTP/2 over TLS and TCP: versions, connection information for services, replaced
//! certificates, graceful shutdown.

use crate::peers;

use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use http::{Request, Response, StatusCode, Version};
use http_body_util::BodyExt;
use swiftwater_http::tcp::{
    ALPN_HTTP2, ALPN_HTTP11, CertificateError, Certificates, Drained, TcpLimits,
};
use swiftwater_http::web::body::{Body, BoxError};
use swiftwater_http::web::connection_info::ConnectionInfo;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::Semaphore;
use tower::service_fn;

use peers::{certificate, get, http1, http2, in_time, plain, secure, text, tls, until};

/// Answers with the connection information.
async fn describe(request: Request<Body>) -> Result<Response<Body>, Infallible> {
    let info = request.extensions().get::<ConnectionInfo>().unwrap();
    let alpn = info.alpn.as_deref().unwrap_or(b"-");
    let line = format!(
        "{:?} {:?} {} {} {}",
        request.version(),
        info.protocol,
        String::from_utf8_lossy(alpn),
        info.server_name.as_deref().unwrap_or("-"),
        info.peer.ip() == info.local.ip() && info.peer.port() != info.local.port(),
    );
    Ok(Response::new(Body::full(line)))
}

/// Gives back the body of the request.
async fn echo(request: Request<Body>) -> Result<Response<Body>, Infallible> {
    Ok(Response::new(request.into_body()))
}

#[tokio::test]
async fn alpn_chooses_the_version() {
    let (trusted, shown) = certificate();
    let server = secure(service_fn(describe), TcpLimits::default(), &shown).await;
    let address = server.local_addr();
    let stream = tls(address, &trusted, &[ALPN_HTTP2, ALPN_HTTP11]).await;
    let response = http2(stream)
        .await
        .send_request(get("https://localhost/"))
        .await;
    assert_eq!(
        text(response.unwrap()).await,
        "HTTP/2.0 Tls h2 localhost true"
    );
    let stream = tls(address, &trusted, &[ALPN_HTTP11]).await;
    let response = http1(stream).await.send_request(get("/")).await;
    assert_eq!(
        text(response.unwrap()).await,
        "HTTP/1.1 Tls http/1.1 localhost true"
    );
    let stream = tls(address, &trusted, &[]).await;
    let response = http1(stream).await.send_request(get("/")).await;
    assert_eq!(
        text(response.unwrap()).await,
        "HTTP/1.1 Tls - localhost true"
    );
}

#[tokio::test]
async fn without_tls_the_first_bytes_choose_it() {
    let server = plain(service_fn(describe), TcpLimits::default()).await;
    let stream = TcpStream::connect(server.local_addr()).await.unwrap();
    let response = http2(stream)
        .await
        .send_request(get("http://localhost/"))
        .await;
    assert_eq!(text(response.unwrap()).await, "HTTP/2.0 Tcp - - true");
    let stream = TcpStream::connect(server.local_addr()).await.unwrap();
    let response = http1(stream).await.send_request(get("/")).await;
    assert_eq!(text(response.unwrap()).await, "HTTP/1.1 Tcp - - true");
}

#[tokio::test]
async fn bodies_pass_whole() {
    let (trusted, shown) = certificate();
    let server = secure(service_fn(echo), TcpLimits::default(), &shown).await;
    let content = "0123456789".repeat(300_000);
    for alpn in [ALPN_HTTP2, ALPN_HTTP11] {
        let stream = tls(server.local_addr(), &trusted, &[alpn]).await;
        let request = Request::post("https://localhost/")
            .header("host", "localhost")
            .body(Body::full(content.clone()))
            .unwrap();
        let response = if alpn == ALPN_HTTP2 {
            in_time(http2(stream).await.send_request(request)).await
        } else {
            in_time(http1(stream).await.send_request(request)).await
        };
        assert!(text(response.unwrap()).await == content);
    }
}

#[tokio::test]
async fn a_certificate_is_replaced_for_new_handshakes() {
    let (first, shown) = certificate();
    let (second, _) = certificate();
    let server = secure(service_fn(describe), TcpLimits::default(), &shown).await;
    let mut old = http1(tls(server.local_addr(), &first, &[ALPN_HTTP11]).await).await;
    shown
        .replace_from_pem(
            second.certificate_pem().as_bytes(),
            second.private_key_pem().as_bytes(),
        )
        .unwrap();
    let stream = tls(server.local_addr(), &second, &[ALPN_HTTP11]).await;
    let seen = stream.get_ref().1.peer_certificates().unwrap().to_vec();
    assert_eq!(seen, [second.certificate_der()]);
    let response = in_time(old.send_request(get("/"))).await.unwrap();
    assert_eq!(response.status(), StatusCode::OK);
}

#[test]
fn a_useless_certificate_changes_nothing() {
    let (first, shown) = certificate();
    let (second, _) = certificate();
    let chain = first.certificate_pem().as_bytes();
    let error = shown.replace_from_pem(chain, second.private_key_pem().as_bytes());
    assert!(matches!(error, Err(CertificateError::Key(_))));
    let error = Certificates::from_pem(b"", first.private_key_pem().as_bytes());
    assert!(matches!(error, Err(CertificateError::Empty)));
    let error = Certificates::from_pem(chain, b"nonsense");
    assert!(matches!(error, Err(CertificateError::Pem(_))));
}

#[tokio::test]
async fn a_failing_service_is_answered_for() {
    let fail = service_fn(|_: Request<Body>| async {
        Err::<Response<Body>, BoxError>("on purpose".into())
    });
    let server = plain(fail, TcpLimits::default()).await;
    let stream = TcpStream::connect(server.local_addr()).await.unwrap();
    let mut client = http1(stream).await;
    for _ in 0..2 {
        let response = in_time(client.send_request(get("/"))).await.unwrap();
        assert_eq!(response.status(), StatusCode::INTERNAL_SERVER_ERROR);
        assert!(!text(response).await.contains("purpose"));
    }
}

/// Requests to `/slow` that have reached the service, and the permits by which they end.
struct Gate {
    reached: AtomicUsize,
    go: Semaphore,
}

/// A service whose requests to `/slow` wait for a permit.
fn gated() -> (
    Arc<Gate>,
    impl tower::Service<
        Request<Body>,
        Response = Response<Body>,
        Error = Infallible,
        Future: Send + 'static,
    > + Clone
    + Send
    + Sync
    + 'static,
) {
    let gate = Arc::new(Gate {
        reached: AtomicUsize::new(0),
        go: Semaphore::new(0),
    });
    let shared = Arc::clone(&gate);
    let service = service_fn(move |request: Request<Body>| {
        let gate = Arc::clone(&shared);
        async move {
            if request.uri().path() == "/slow" {
                gate.reached.fetch_add(1, Ordering::Relaxed);
                gate.go.acquire().await.unwrap().forget();
            }
            Ok::<_, Infallible>(Response::new(Body::full("done")))
        }
    });
    (gate, service)
}

#[tokio::test]
async fn draining_lets_requests_finish() {
    let (gate, service) = gated();
    let (trusted, shown) = certificate();
    let server = secure(service, TcpLimits::default(), &shown).await;
    let address = server.local_addr();
    let mut second = http2(tls(address, &trusted, &[ALPN_HTTP2]).await).await;
    let mut first = http1(tls(address, &trusted, &[ALPN_HTTP11]).await).await;
    let mut idle = http1(tls(address, &trusted, &[ALPN_HTTP11]).await).await;
    let answer = in_time(idle.send_request(get("/"))).await.unwrap();
    assert_eq!(text(answer).await, "done");
    let one = tokio::spawn(first.send_request(get("/slow")));
    let two = tokio::spawn(second.send_request(get("https://localhost/slow")));
    until(|| gate.reached.load(Ordering::Relaxed) == 2).await;
    let draining = tokio::spawn(server.drain(peers::TIME_LIMIT));
    // The idle connection is closed at once, those with requests stay.
    until(|| idle.is_closed()).await;
    assert!(TcpStream::connect(address).await.is_err());
    assert!(!draining.is_finished());
    gate.go.add_permits(2);
    let response = in_time(one).await.unwrap().unwrap();
    assert_eq!(response.headers()["connection"], "close");
    assert_eq!(text(response).await, "done");
    assert_eq!(text(in_time(two).await.unwrap().unwrap()).await, "done");
    assert_eq!(in_time(draining).await.unwrap(), Drained { cut: 0 });
}

#[tokio::test]
async fn draining_cuts_what_does_not_finish() {
    let (gate, service) = gated();
    let server = plain(service, TcpLimits::default()).await;
    let stream = TcpStream::connect(server.local_addr()).await.unwrap();
    let mut client = http1(stream).await;
    let request = tokio::spawn(client.send_request(get("/slow")));
    until(|| gate.reached.load(Ordering::Relaxed) == 1).await;
    let drained = in_time(server.drain(Duration::from_millis(50))).await;
    assert_eq!(drained, Drained { cut: 1 });
    assert!(in_time(request).await.unwrap().is_err());
}

#[tokio::test]
async fn connections_beyond_the_limit_wait() {
    let limits = TcpLimits {
        connections: 1,
        ..TcpLimits::default()
    };
    let server = plain(service_fn(describe), limits).await;
    let first = TcpStream::connect(server.local_addr()).await.unwrap();
    until(|| server.connections() == 1).await;
    let mut second = TcpStream::connect(server.local_addr()).await.unwrap();
    second
        .write_all(b"GET / HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n")
        .await
        .unwrap();
    assert_eq!(server.connections(), 1);
    drop(first);
    let mut answer = String::new();
    in_time(second.read_to_string(&mut answer)).await.unwrap();
    assert!(answer.starts_with("HTTP/1.1 200"));
    until(|| server.connections() == 0).await;
}

#[tokio::test]
async fn heads_of_requests_are_bounded() {
    let limits = TcpLimits {
        header_count: 20,
        header_size: 8192,
        ..TcpLimits::default()
    };
    let server = plain(service_fn(describe), limits).await;
    let connect = async || TcpStream::connect(server.local_addr()).await.unwrap();
    let many = |count: usize, size: usize| {
        let mut request = get("http://localhost/");
        for number in 0..count {
            let name = http::HeaderName::try_from(format!("x-{number}")).unwrap();
            let value = "v".repeat(size).parse().unwrap();
            request.headers_mut().insert(name, value);
        }
        request
    };
    for (count, size, status) in [(15, 1, 200), (25, 1, 431), (10, 2000, 431)] {
        let response = in_time(http1(connect().await).await.send_request(many(count, size)))
            .await
            .unwrap();
        assert_eq!(response.status(), status, "HTTP/1.1 {count} {size}");
        let response = in_time(http2(connect().await).await.send_request(many(count, size)))
            .await
            .unwrap();
        assert_eq!(response.version(), Version::HTTP_2);
        assert_eq!(response.status(), status, "HTTP/2 {count} {size}");
    }
}

#[tokio::test]
async fn a_dropped_server_is_gone() {
    let server = plain(service_fn(describe), TcpLimits::default()).await;
    let address = server.local_addr();
    let mut stream = TcpStream::connect(address).await.unwrap();
    until(|| server.connections() == 1).await;
    drop(server);
    let mut rest = Vec::new();
    let end = in_time(stream.read_to_end(&mut rest)).await;
    assert!(end.is_err() || rest.is_empty());
    in_time(async {
        while TcpStream::connect(address).await.is_ok() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    })
    .await;
}

#[tokio::test]
async fn a_broken_response_is_seen_as_broken() {
    let breaks = service_fn(|_: Request<Body>| async {
        let (feeder, body) = peers::fed();
        feeder.data("half");
        feeder.fail("broken");
        Ok::<_, Infallible>(Response::new(body))
    });
    let server = plain(breaks, TcpLimits::default()).await;
    let stream = TcpStream::connect(server.local_addr()).await.unwrap();
    let response = in_time(http1(stream).await.send_request(get("/"))).await;
    // Whether the head left before the body broke is a matter of buffers.
    if let Ok(response) = response {
        assert!(in_time(response.into_body().collect()).await.is_err());
    }
}

#[tokio::test]
async fn a_connection_made_before_draining_gets_its_first_answer() {
    let server = plain(service_fn(describe), TcpLimits::default()).await;
    let mut speaks = TcpStream::connect(server.local_addr()).await.unwrap();
    let mut silent = TcpStream::connect(server.local_addr()).await.unwrap();
    until(|| server.connections() == 2).await;
    let draining = tokio::spawn(server.drain(peers::TIME_LIMIT));
    tokio::time::sleep(Duration::from_millis(50)).await;
    let request = b"GET / HTTP/1.1\r\nhost: localhost\r\n\r\n";
    speaks.write_all(request).await.unwrap();
    let mut answer = String::new();
    in_time(speaks.read_to_string(&mut answer)).await.unwrap();
    assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
    // It ends the wait for one that says nothing, too.
    let mut nothing = String::new();
    in_time(silent.read_to_string(&mut nothing)).await.unwrap();
    assert_eq!(nothing, "");
    assert_eq!(in_time(draining).await.unwrap(), Drained { cut: 0 });
}
