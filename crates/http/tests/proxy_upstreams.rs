//! Upstreams over TLS, over HTTP/2 without TLS, and at Unix sockets.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Request, Response, StatusCode, Version, request};
use http_body::Frame;
use http_body_util::BodyExt;
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, RootCertStore};
use swiftwater_http::tcp::{
    ALPN_HTTP11, Certificates, RunningServer, TcpLimits, TcpServer, server_config,
};
use swiftwater_http::web::balancer::{Balancer, HealthCheck};
use swiftwater_http::web::body::Body;
use swiftwater_http::web::proxy::{Proxy, ProxyOptions, Upstream, UpstreamTls};
use swiftwater_http::web::service::WebService;
use swiftwater_http::web::upgrade::UpgradeRequest;
use swiftwater_tls::DevCertificate;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio_tungstenite::tungstenite::handshake::derive_accept_key;
use tower::{ServiceExt, service_fn};

use crate::peers::{certificate, fed, get, in_time, piece, plain, secure, text, until};

/// What an upstream saw.
type Heads = Arc<Mutex<Vec<request::Parts>>>;

/// Gives the body and its trailers back; at `/socket` it agrees to WebSocket and echoes bytes.
fn echo(heads: &Heads, request: Request<Body>) -> Response<Body> {
    let (head, body) = request.into_parts();
    heads.lock().unwrap().push(head.clone());
    let asked = head.extensions.get::<UpgradeRequest>();
    if let Some(asked) = asked.filter(|asked| asked.asks_for("websocket")) {
        let (mut response, stream) = asked.accept("websocket").unwrap();
        let key = derive_accept_key(head.headers["sec-websocket-key"].as_bytes());
        let key = HeaderValue::from_str(&key).unwrap();
        response.headers_mut().insert("sec-websocket-accept", key);
        tokio::spawn(async move {
            let (mut reader, mut writer) = tokio::io::split(stream);
            let _ = tokio::io::copy(&mut reader, &mut writer).await;
            let _ = writer.shutdown().await;
        });
        return response;
    }
    Response::new(body)
}

/// The service, and what it will have seen.
fn noting() -> (impl WebService + Sync, Heads) {
    let heads = Heads::default();
    let noted = Arc::clone(&heads);
    let service = service_fn(move |request| {
        let response = echo(&noted, request);
        async move { Ok::<_, Infallible>(response) }
    });
    (service, heads)
}

/// A server without TLS that echoes.
async fn cleartext(limits: TcpLimits) -> (RunningServer, Heads) {
    let (service, heads) = noting();
    (plain(service, limits).await, heads)
}

/// A server with TLS that echoes, with the protocols that it speaks.
async fn encrypted(shown: &Arc<Certificates>, only_http1: bool) -> (RunningServer, Heads) {
    let (service, heads) = noting();
    if !only_http1 {
        return (secure(service, TcpLimits::default(), shown).await, heads);
    }
    let mut config = server_config(Arc::clone(shown) as _).unwrap();
    config.alpn_protocols = vec![ALPN_HTTP11.to_vec()];
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let server = TcpServer::tls(Arc::new(config));
    (server.serve(listener, service).unwrap(), heads)
}

/// Trust in `certificate` alone.
fn trust(certificate: &DevCertificate, name: Option<&'static str>) -> UpstreamTls {
    let mut roots = RootCertStore::empty();
    roots.add(certificate.certificate_der()).unwrap();
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    UpstreamTls {
        config: Arc::new(config),
        name: name.map(|name| ServerName::try_from(name).unwrap()),
    }
}

fn proxy(url: &str, options: ProxyOptions) -> Proxy {
    Proxy::new(Upstream::parse(url).unwrap(), options)
}

async fn send(proxy: &Proxy, request: Request<Body>) -> Response<Body> {
    in_time(proxy.clone().oneshot(request)).await.unwrap()
}

fn post(content: impl Into<Bytes>) -> Request<Body> {
    Request::post("/a/b?c")
        .header("host", "public.example")
        .body(Body::full(content))
        .unwrap()
}

#[tokio::test]
async fn http2_is_spoken_over_tls_if_the_upstream_does() {
    let (trusted, shown) = certificate();
    let (server, heads) = encrypted(&shown, false).await;
    let port = server.local_addr().port();
    let options = ProxyOptions {
        tls: Some(trust(&trusted, None)),
        ..ProxyOptions::default()
    };
    let proxy = proxy(&format!("https://localhost:{port}/base"), options);
    for _ in 0..3 {
        let response = send(&proxy, post("content")).await;
        assert_eq!(text(response).await, "content");
    }
    let head = heads.lock().unwrap().pop().unwrap();
    assert_eq!(head.version, Version::HTTP_2);
    assert_eq!(
        head.uri.to_string(),
        format!("https://localhost:{port}/base/a/b?c")
    );
    assert!(!head.headers.contains_key("host"));
    assert!(head.headers["x-forwarded-host"] == "public.example");
    assert_eq!(server.connections(), 1);
}

#[tokio::test]
async fn http1_is_spoken_over_tls_if_the_upstream_does() {
    let (trusted, shown) = certificate();
    let (server, heads) = encrypted(&shown, true).await;
    let port = server.local_addr().port();
    let options = ProxyOptions {
        tls: Some(trust(&trusted, None)),
        preserve_host: true,
        ..ProxyOptions::default()
    };
    let proxy = proxy(&format!("https://localhost:{port}"), options);
    for _ in 0..3 {
        let response = send(&proxy, post("content")).await;
        assert_eq!(text(response).await, "content");
    }
    let head = heads.lock().unwrap().pop().unwrap();
    assert_eq!(head.version, Version::HTTP_11);
    assert_eq!(head.headers["host"], "public.example");
    // The connection of the first attempt is used.
    assert_eq!(server.connections(), 1);
}

#[tokio::test]
async fn certificates_of_upstreams_are_verified() {
    let (trusted, shown) = certificate();
    let (other, _) = certificate();
    let (server, heads) = encrypted(&shown, false).await;
    let port = server.local_addr().port();
    let by_name = format!("https://localhost:{port}");
    let by_address = format!("https://127.0.0.1:{port}");
    let status = |url: &str, tls: Option<UpstreamTls>| {
        let options = ProxyOptions {
            tls,
            ..ProxyOptions::default()
        };
        let proxy = proxy(url, options);
        async move { send(&proxy, get("/")).await.status().as_u16() }
    };
    assert_eq!(status(&by_name, Some(trust(&trusted, None))).await, 200);
    assert_eq!(status(&by_name, Some(trust(&other, None))).await, 502);
    assert_eq!(status(&by_name, None).await, 502);
    assert_eq!(
        status(&by_name, Some(trust(&trusted, Some("other.example")))).await,
        502
    );
    assert_eq!(status(&by_address, Some(trust(&trusted, None))).await, 502);
    assert_eq!(
        status(&by_address, Some(trust(&trusted, Some("localhost")))).await,
        200
    );
    assert_eq!(heads.lock().unwrap().len(), 2);
}

/// As gRPC over HTTP/2: content and trailers in both directions, at the same time.
#[tokio::test]
async fn calls_stream_both_ways_and_end_with_trailers() {
    let (server, heads) = cleartext(TcpLimits::default()).await;
    let options = ProxyOptions {
        host: Some("inner.example".parse().unwrap()),
        ..ProxyOptions::default()
    };
    let proxy = proxy(&format!("h2c://{}", server.local_addr()), options);
    let (feeder, body) = fed();
    let request = Request::post("/pkg.Service/Method")
        .header("host", "public.example")
        .header("te", "trailers")
        .header("content-type", "application/grpc")
        .body(body)
        .unwrap();
    let response = send(&proxy, request).await;
    let mut body = response.into_body();
    for message in ["first", "second", "third"] {
        feeder.data(message);
        assert_eq!(piece(&mut body).await, message);
    }
    let mut trailers = HeaderMap::new();
    trailers.insert("grpc-status", HeaderValue::from_static("0"));
    feeder.frame(Frame::trailers(trailers));
    drop(feeder);
    let rest = in_time(body.collect()).await.unwrap();
    assert_eq!(rest.trailers().unwrap()["grpc-status"], "0");
    let head = heads.lock().unwrap().pop().unwrap();
    assert_eq!(head.version, Version::HTTP_2);
    assert_eq!(head.headers["te"], "trailers");
    assert!(!head.headers.contains_key("connection"));
    assert_eq!(head.uri.authority().unwrap(), "inner.example");
}

#[tokio::test]
async fn a_client_that_gives_up_resets_the_stream_of_the_upstream() {
    let (server, _) = cleartext(TcpLimits::default()).await;
    let proxy = proxy(
        &format!("h2c://{}", server.local_addr()),
        ProxyOptions::default(),
    );
    let (feeder, body) = fed();
    let response = send(&proxy, post("").map(|_| body)).await;
    feeder.data("first");
    let mut body = response.into_body();
    assert_eq!(piece(&mut body).await, "first");
    drop(body);
    feeder.closed().await;
    // The connection stays.
    assert_eq!(text(send(&proxy, post("more")).await).await, "more");
    assert_eq!(server.connections(), 1);
}

#[tokio::test]
async fn more_requests_than_streams_get_more_connections() {
    let limits = TcpLimits {
        concurrent_streams: 2,
        ..TcpLimits::default()
    };
    let (server, _) = cleartext(limits).await;
    let proxy = proxy(
        &format!("h2c://{}", server.local_addr()),
        ProxyOptions::default(),
    );
    // The limit arrives with the first response.
    assert_eq!(text(send(&proxy, post("first")).await).await, "first");
    let mut calls = Vec::new();
    for _ in 0..6 {
        let (feeder, body) = fed();
        let mut body = send(&proxy, post("").map(|_| body)).await.into_body();
        feeder.data("x");
        assert_eq!(piece(&mut body).await, "x");
        calls.push((feeder, body));
    }
    assert!(server.connections() >= 3, "{}", server.connections());
    drop(calls);
    // Those without requests are closed, except for one, as requests come.
    in_time(async {
        while server.connections() > 1 {
            assert_eq!(text(send(&proxy, post("again")).await).await, "again");
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    })
    .await;
}

#[tokio::test]
async fn a_restarted_upstream_gets_a_new_connection() {
    let (server, _) = cleartext(TcpLimits::default()).await;
    let address = server.local_addr();
    let proxy = proxy(&format!("h2c://{address}"), ProxyOptions::default());
    assert_eq!(text(send(&proxy, post("one")).await).await, "one");
    in_time(server.drain(Duration::from_secs(5))).await;
    assert_eq!(
        send(&proxy, post("two")).await.status(),
        StatusCode::BAD_GATEWAY
    );
    let listener = TcpListener::bind(address).await.unwrap();
    let (service, _) = noting();
    let _server = TcpServer::plain().serve(listener, service).unwrap();
    assert_eq!(text(send(&proxy, post("three")).await).await, "three");
}

#[tokio::test]
async fn an_upstream_without_http2_is_no_gateway() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let _ = stream.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n").await;
        }
    });
    let proxy = proxy(&format!("h2c://{address}"), ProxyOptions::default());
    assert_eq!(
        send(&proxy, get("/")).await.status(),
        StatusCode::BAD_GATEWAY
    );
}

/// A request for WebSocket by hand, over HTTP/1.1, and the first line of the response.
async fn socket(address: SocketAddr) -> (TcpStream, String) {
    let mut stream = TcpStream::connect(address).await.unwrap();
    let request = "GET /socket HTTP/1.1\r\nhost: x\r\nconnection: upgrade\r\nupgrade: websocket\r\n\
                   sec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\nsec-websocket-version: 13\r\n\r\n";
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(in_time(stream.read_u8()).await.unwrap());
    }
    let head = String::from_utf8(head).unwrap();
    (stream, head.lines().next().unwrap().to_owned())
}

#[tokio::test]
async fn websocket_takes_http1_over_tls() {
    let (trusted, shown) = certificate();
    let (server, heads) = encrypted(&shown, false).await;
    let options = ProxyOptions {
        tls: Some(trust(&trusted, None)),
        ..ProxyOptions::default()
    };
    let port = server.local_addr().port();
    let over_tls = proxy(&format!("https://localhost:{port}"), options);
    assert_eq!(
        text(send(&over_tls, post("over HTTP/2")).await).await,
        "over HTTP/2"
    );
    let public = plain(over_tls, TcpLimits::default()).await;
    let (mut stream, line) = socket(public.local_addr()).await;
    assert!(line.contains(" 101 "), "{line}");
    stream.write_all(b"bytes").await.unwrap();
    let mut echoed = [0; 5];
    in_time(stream.read_exact(&mut echoed)).await.unwrap();
    assert_eq!(&echoed, b"bytes");
    let versions: Vec<_> = heads
        .lock()
        .unwrap()
        .iter()
        .map(|head| head.version)
        .collect();
    assert_eq!(versions, [Version::HTTP_2, Version::HTTP_11]);
}

/// A server at a Unix socket that answers with what it got; its path.
#[cfg(unix)]
fn at_socket(directory: &tempfile::TempDir) -> String {
    let path = directory.path().join("http.sock");
    let listener = tokio::net::UnixListener::bind(&path).unwrap();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let service =
                hyper::service::service_fn(|request: Request<hyper::body::Incoming>| async move {
                    let host = request.headers()["host"].to_str().unwrap().to_owned();
                    let target = request.uri().to_string();
                    let content = request.into_body().collect().await.unwrap().to_bytes();
                    let content = String::from_utf8(content.to_vec()).unwrap();
                    let all = format!("{host} {target} {content}");
                    Ok::<_, Infallible>(Response::new(http_body_util::Full::new(Bytes::from(all))))
                });
            let io = hyper_util::rt::TokioIo::new(stream);
            let serving = hyper::server::conn::http1::Builder::new().serve_connection(io, service);
            tokio::spawn(serving);
        }
    });
    path.to_str().unwrap().to_owned()
}

#[cfg(unix)]
#[tokio::test]
async fn unix_sockets_are_upstreams() {
    let directory = tempfile::TempDir::new().unwrap();
    let path = at_socket(&directory);
    let proxy = proxy(&format!("unix:{path}"), ProxyOptions::default());
    for _ in 0..2 {
        let response = send(&proxy, post("content")).await;
        assert_eq!(text(response).await, "localhost /a/b?c content");
    }
    drop(directory);
    let gone = self::proxy("unix:/nonexistent/http.sock", ProxyOptions::default());
    assert_eq!(
        send(&gone, get("/")).await.status(),
        StatusCode::BAD_GATEWAY
    );
}

#[cfg(unix)]
#[tokio::test]
async fn upstreams_of_every_kind_share_requests_and_are_checked() {
    let (trusted, shown) = certificate();
    let (over_tls, of_tls) = encrypted(&shown, false).await;
    let (cleartext, of_cleartext) = cleartext(TcpLimits::default()).await;
    let directory = tempfile::TempDir::new().unwrap();
    let path = at_socket(&directory);
    let options = ProxyOptions {
        tls: Some(trust(&trusted, None)),
        ..ProxyOptions::default()
    };
    let parse = |url: String| Upstream::parse(&url).unwrap();
    // Nothing listens there.
    let down = TcpListener::bind("127.0.0.1:0")
        .await
        .unwrap()
        .local_addr()
        .unwrap();
    let balancer = Balancer::new(
        parse(format!("h2c://{down}")),
        vec![
            parse(format!(
                "https://localhost:{}",
                over_tls.local_addr().port()
            )),
            parse(format!("h2c://{}", cleartext.local_addr())),
            parse(format!("unix:{path}")),
        ],
        &options,
    )
    .with_check(&HealthCheck {
        path: "/health".parse().unwrap(),
        interval: Duration::from_millis(20),
        timeout: Duration::from_secs(5),
    });
    let seen = |heads: &Heads, path: &str| {
        let heads = heads.lock().unwrap();
        heads.iter().filter(|head| head.uri.path() == path).count()
    };
    until(|| seen(&of_tls, "/health") > 1 && seen(&of_cleartext, "/health") > 1).await;
    let mut of_socket = 0;
    for _ in 0..12 {
        let response = in_time(balancer.clone().oneshot(get("/x"))).await.unwrap();
        assert_eq!(response.status(), StatusCode::OK);
        of_socket += usize::from(text(response).await.starts_with("localhost /x"));
    }
    assert!(of_socket > 1, "{of_socket}");
    assert!(seen(&of_tls, "/x") > 1 && seen(&of_cleartext, "/x") > 1);
}
