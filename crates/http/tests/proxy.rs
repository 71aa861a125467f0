//! The reverse proxy through its public interface: requests at the upstream, responses at the
//! client.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode, Version, request};
use http_body::Frame;
use http_body_util::BodyExt;
use swiftwater_http::tcp::{ALPN_HTTP2, RunningServer, TcpLimits};
use swiftwater_http::web::body::Body;
use swiftwater_http::web::connection_info::{ConnectionInfo, Transport};
use swiftwater_http::web::early_data::EarlyData;
use swiftwater_http::web::proxy::{Proxy, ProxyOptions, Upstream, UpstreamError};
use tower::{ServiceExt, service_fn};

use crate::peers::{certificate, fed, http2, in_time, piece, plain, secure, text, tls};

/// The heads of the requests that an upstream saw.
type Heads = Arc<Mutex<Vec<request::Parts>>>;

/// An upstream that notes heads and gives the body back, with fields of its connection and its own.
async fn upstream() -> (RunningServer, Heads) {
    let heads = Heads::default();
    let noted = Arc::clone(&heads);
    let service = service_fn(move |request: Request<Body>| {
        let noted = Arc::clone(&noted);
        async move {
            let (head, body) = request.into_parts();
            noted.lock().unwrap().push(head);
            let response = Response::builder()
                .status(StatusCode::ACCEPTED)
                .header("connection", "x-private, keep-alive")
                .header("x-private", "of this connection")
                .header("keep-alive", "timeout=5")
                .header("x-public", "of everyone")
                .body(body);
            Ok::<_, Infallible>(response.unwrap())
        }
    });
    (plain(service, TcpLimits::default()).await, heads)
}

fn proxy(address: SocketAddr, prefix: &str, options: ProxyOptions) -> Proxy {
    let upstream = Upstream::parse(&format!("http://{address}{prefix}")).unwrap();
    Proxy::new(upstream, options)
}

async fn send(proxy: &Proxy, request: Request<Body>) -> Response<Body> {
    in_time(proxy.clone().oneshot(request)).await.unwrap()
}

fn get(path: &str) -> Request<Body> {
    Request::get(path)
        .header("host", "public.example")
        .body(Body::empty())
        .unwrap()
}

fn last(heads: &Heads) -> request::Parts {
    heads.lock().unwrap().pop().unwrap()
}

fn values(headers: &HeaderMap, name: &str) -> Vec<String> {
    headers
        .get_all(name)
        .iter()
        .map(|value| value.to_str().unwrap().to_owned())
        .collect()
}

#[tokio::test]
async fn a_request_arrives_as_it_was_sent() {
    let (server, heads) = upstream().await;
    let address = server.local_addr();
    let proxy = proxy(address, "/base/", ProxyOptions::default());
    let request = Request::put("/a%20b/c?d=e&f")
        .header("host", "public.example")
        .header("x-own", "1")
        .header("x-own", "2")
        .body(Body::full("content"))
        .unwrap();
    let response = send(&proxy, request).await;
    assert_eq!(response.status(), StatusCode::ACCEPTED);
    assert_eq!(response.headers()["x-public"], "of everyone");
    assert_eq!(text(response).await, "content");
    let head = last(&heads);
    assert_eq!(head.method, Method::PUT);
    assert_eq!(head.uri, "/base/a%20b/c?d=e&f");
    assert_eq!(values(&head.headers, "x-own"), ["1", "2"]);
    assert_eq!(head.headers["host"], address.to_string());
    assert_eq!(head.headers["via"], "1.1 swiftwater");
}

#[tokio::test]
async fn the_host_is_kept_if_asked_for() {
    let (server, heads) = upstream().await;
    let options = ProxyOptions {
        preserve_host: true,
        ..ProxyOptions::default()
    };
    let proxy = proxy(server.local_addr(), "", options);
    send(&proxy, get("/")).await;
    assert_eq!(last(&heads).headers["host"], "public.example");
    // HTTP/2 and HTTP/3 name the host in the target.
    let mut request = get("https://other.example:8443/x");
    *request.version_mut() = Version::HTTP_2;
    send(&proxy, request).await;
    let head = last(&heads);
    assert_eq!(head.headers["host"], "other.example:8443");
    assert_eq!(head.headers["via"], "2 swiftwater");
    assert_eq!(head.uri, "/x");
}

#[tokio::test]
async fn fields_of_one_connection_stay_there() {
    let (server, heads) = upstream().await;
    let proxy = proxy(server.local_addr(), "", ProxyOptions::default());
    let request = Request::get("/")
        .header("connection", "x-mine, Upgrade")
        .header("x-mine", "of this connection")
        .header("upgrade", "h2c")
        .header("keep-alive", "timeout=5")
        .header("proxy-authorization", "secret")
        .header("proxy-connection", "keep-alive")
        .header("te", "gzip")
        .header("x-public", "of everyone")
        .body(Body::empty())
        .unwrap();
    let response = send(&proxy, request).await;
    let head = last(&heads);
    for name in [
        "connection",
        "x-mine",
        "upgrade",
        "keep-alive",
        "proxy-authorization",
        "proxy-connection",
        "te",
    ] {
        assert!(!head.headers.contains_key(name), "{name}");
    }
    assert_eq!(head.headers["x-public"], "of everyone");
    for name in ["connection", "x-private", "keep-alive"] {
        assert!(!response.headers().contains_key(name), "{name}");
    }
    assert_eq!(response.headers()["via"], "1.1 swiftwater");
}

fn from_peer(mut request: Request<Body>, peer: &str, protocol: Transport) -> Request<Body> {
    request.extensions_mut().insert(ConnectionInfo {
        peer: peer.parse().unwrap(),
        local: "192.0.2.1:443".parse().unwrap(),
        protocol,
        alpn: None,
        server_name: None,
        client_chain: None,
    });
    request
}

#[tokio::test]
async fn the_upstream_gets_the_clients_address() {
    let (server, heads) = upstream().await;
    let proxy = proxy(server.local_addr(), "", ProxyOptions::default());
    for (peer, protocol, element, address, scheme) in [
        (
            "198.51.100.7:1234",
            Transport::Tls,
            "for=198.51.100.7;host=\"public.example\";proto=https",
            "198.51.100.7",
            "https",
        ),
        (
            "[2001:db8::7]:1234",
            Transport::Tcp,
            "for=\"[2001:db8::7]\";host=\"public.example\";proto=http",
            "2001:db8::7",
            "http",
        ),
    ] {
        let mut request = from_peer(get("/"), peer, protocol);
        for name in ["forwarded", "x-forwarded-for", "x-real-ip"] {
            let forged = HeaderValue::from_static("for=203.0.113.1");
            request.headers_mut().insert(name, forged);
        }
        send(&proxy, request).await;
        let headers = last(&heads).headers;
        assert_eq!(values(&headers, "forwarded"), [element]);
        assert_eq!(values(&headers, "x-forwarded-for"), [address]);
        assert_eq!(values(&headers, "x-forwarded-proto"), [scheme]);
        assert_eq!(values(&headers, "x-forwarded-host"), ["public.example"]);
        assert!(!headers.contains_key("x-real-ip"));
    }
}

#[tokio::test]
async fn a_trusted_proxy_before_this_one_is_extended() {
    let (server, heads) = upstream().await;
    let options = ProxyOptions {
        trust_forwarded: true,
        ..ProxyOptions::default()
    };
    let proxy = proxy(server.local_addr(), "", options);
    let mut request = from_peer(get("/"), "198.51.100.7:1234", Transport::Tcp);
    for (name, value) in [
        ("forwarded", "for=203.0.113.1"),
        ("x-forwarded-for", "203.0.113.1"),
        ("x-forwarded-proto", "https"),
        ("via", "2 edge"),
    ] {
        let value = HeaderValue::from_static(value);
        request.headers_mut().insert(name, value);
    }
    send(&proxy, request).await;
    let headers = last(&heads).headers;
    assert_eq!(
        values(&headers, "forwarded"),
        [
            "for=203.0.113.1",
            "for=198.51.100.7;host=\"public.example\";proto=http"
        ]
    );
    assert_eq!(
        values(&headers, "x-forwarded-for"),
        ["203.0.113.1", "198.51.100.7"]
    );
    assert_eq!(values(&headers, "x-forwarded-proto"), ["https"]);
    assert_eq!(values(&headers, "via"), ["2 edge", "1.1 swiftwater"]);
}

#[tokio::test]
async fn split_cookies_are_joined() {
    let (server, heads) = upstream().await;
    let proxy = proxy(server.local_addr(), "", ProxyOptions::default());
    let mut request = get("/");
    for crumb in ["a=1", "b=2", "c=3"] {
        let crumb = HeaderValue::from_static(crumb);
        request.headers_mut().append("cookie", crumb);
    }
    send(&proxy, request).await;
    assert_eq!(values(&last(&heads).headers, "cookie"), ["a=1; b=2; c=3"]);
}

#[tokio::test]
async fn bodies_stream_both_ways_at_once() {
    let (server, _) = upstream().await;
    let proxy = proxy(server.local_addr(), "", ProxyOptions::default());
    let (feeder, body) = fed();
    feeder.data("one");
    let response = send(&proxy, Request::post("/").body(body).unwrap()).await;
    let mut body = response.into_body();
    assert_eq!(piece(&mut body).await, "one");
    feeder.data("two");
    assert_eq!(piece(&mut body).await, "two");
    drop(feeder);
    assert!(in_time(body.frame()).await.is_none());
}

#[tokio::test]
async fn trailers_pass_both_ways() {
    let service = service_fn(|request: Request<Body>| async {
        let asked = request.headers()["te"].clone();
        let collected = request.into_body().collect().await.unwrap();
        let mut trailers = collected.trailers().cloned().unwrap();
        trailers.insert("x-sum", asked);
        let (feeder, body) = fed();
        feeder.data("content");
        feeder.frame(Frame::trailers(trailers));
        let response = Response::builder().header("trailer", "x-sum, x-mine");
        Ok::<_, Infallible>(response.body(body).unwrap())
    });
    let server = plain(service, TcpLimits::default()).await;
    let proxy = proxy(server.local_addr(), "", ProxyOptions::default());
    let (feeder, body) = fed();
    feeder.data("content");
    let mut trailers = HeaderMap::new();
    trailers.insert("x-mine", HeaderValue::from_static("sent"));
    feeder.frame(Frame::trailers(trailers));
    drop(feeder);
    let request = Request::post("/")
        .header("te", "trailers")
        .header("trailer", "x-mine")
        .body(body)
        .unwrap();
    let response = send(&proxy, request).await;
    let collected = in_time(response.into_body().collect()).await.unwrap();
    let trailers = collected.trailers().unwrap();
    assert_eq!(trailers["x-sum"], "trailers");
    assert_eq!(trailers["x-mine"], "sent");
}

#[tokio::test]
async fn tunnels_are_refused() {
    let (server, heads) = upstream().await;
    let proxy = proxy(server.local_addr(), "", ProxyOptions::default());
    let mut websocket = get("/");
    let headers = websocket.headers_mut();
    headers.insert(
        "connection",
        HeaderValue::from_static("keep-alive, Upgrade"),
    );
    headers.insert("upgrade", HeaderValue::from_static("websocket"));
    assert_eq!(
        send(&proxy, websocket).await.status(),
        StatusCode::NOT_IMPLEMENTED
    );
    let connect = Request::connect("host.example:443")
        .body(Body::empty())
        .unwrap();
    assert_eq!(
        send(&proxy, connect).await.status(),
        StatusCode::NOT_IMPLEMENTED
    );
    assert!(heads.lock().unwrap().is_empty());
}

#[tokio::test]
async fn nothing_leads_out_of_the_prefix() {
    let (server, heads) = upstream().await;
    let strict = proxy(server.local_addr(), "/public", ProxyOptions::default());
    for path in [
        "/../private",
        "/a/%2e%2E/b",
        "/..%2fprivate",
        "/..\\private",
        "/%5c../x",
        "/..;/private",
        "/a/..;x=1/private",
        "/a/..%3b/private",
    ] {
        let response = send(&strict, get(path)).await;
        assert_eq!(response.status(), StatusCode::BAD_REQUEST, "{path}");
    }
    assert!(heads.lock().unwrap().is_empty());
    send(&strict, get("/a..b/...")).await;
    assert_eq!(last(&heads).uri, "/public/a..b/...");
}

#[tokio::test]
async fn an_unknown_expectation_fails() {
    let (server, _) = upstream().await;
    let proxy = proxy(server.local_addr(), "", ProxyOptions::default());
    let mut request = get("/");
    let expectation = HeaderValue::from_static("200-maybe");
    request.headers_mut().insert("expect", expectation);
    assert_eq!(
        send(&proxy, request).await.status(),
        StatusCode::EXPECTATION_FAILED
    );
}

#[tokio::test]
async fn early_data_is_marked_and_425_passed_on() {
    let service = service_fn(|request: Request<Body>| async move {
        let early = request
            .headers()
            .get("early-data")
            .is_some_and(|v| v == "1");
        let status = if early {
            StatusCode::TOO_EARLY
        } else {
            StatusCode::OK
        };
        let response = Response::builder().status(status).body(Body::empty());
        Ok::<_, Infallible>(response.unwrap())
    });
    let server = plain(service, TcpLimits::default()).await;
    let proxy = proxy(server.local_addr(), "", ProxyOptions::default());
    assert_eq!(send(&proxy, get("/")).await.status(), StatusCode::OK);
    let mut early = get("/");
    early.extensions_mut().insert(EarlyData);
    assert_eq!(send(&proxy, early).await.status(), StatusCode::TOO_EARLY);
    // A previous proxy may have added it, once or twice.
    let mut told = get("/");
    for _ in 0..2 {
        let one = HeaderValue::from_static("1");
        told.headers_mut().append("early-data", one);
    }
    assert_eq!(send(&proxy, told).await.status(), StatusCode::TOO_EARLY);
}

#[test]
fn upstreams_are_read_strictly() {
    for good in [
        "http://a",
        "http://a:81/",
        "http://[::1]:81/b/c/",
        "https://a/b",
        "h2c://a:81",
        "unix:/run/a.sock",
    ] {
        let shown = Upstream::parse(good).unwrap().to_string();
        assert_eq!(shown, good.trim_end_matches('/'));
    }
    assert_eq!(
        Upstream::parse("http://a/b/").unwrap(),
        Upstream::parse("http://a/b").unwrap()
    );
    let parse = |text| Upstream::parse(text).unwrap_err();
    assert!(matches!(parse("ftp://a"), UpstreamError::Scheme));
    assert!(matches!(parse("unix:a.sock"), UpstreamError::Socket));
    assert!(matches!(parse("a:80"), UpstreamError::Scheme));
    assert!(matches!(parse("http://"), UpstreamError::Syntax(_)));
    assert!(matches!(parse("http://a/?b"), UpstreamError::Superfluous));
    assert!(matches!(parse("http://u:p@a"), UpstreamError::Superfluous));
}

#[tokio::test]
async fn an_http2_client_reaches_an_http1_upstream() {
    let (upstream, heads) = upstream().await;
    let proxy = proxy(upstream.local_addr(), "", ProxyOptions::default());
    let (trusted, shown) = certificate();
    let server = secure(proxy, TcpLimits::default(), &shown).await;
    let stream = tls(server.local_addr(), &trusted, &[ALPN_HTTP2]).await;
    let mut client = http2(stream).await;
    let content = "0123456789".repeat(100_000);
    let request = Request::post("https://public.example/x")
        .body(Body::full(Bytes::from(content.clone())))
        .unwrap();
    let response = in_time(client.send_request(request)).await.unwrap();
    assert_eq!(response.version(), Version::HTTP_2);
    assert_eq!(response.status(), StatusCode::ACCEPTED);
    assert!(text(response).await == content);
    let headers = last(&heads).headers;
    assert_eq!(headers["x-forwarded-proto"], "https");
    assert_eq!(headers["x-forwarded-host"], "public.example");
    assert_eq!(headers["x-forwarded-for"], "127.0.0.1");
    assert_eq!(headers["content-length"], content.len().to_string());
}
