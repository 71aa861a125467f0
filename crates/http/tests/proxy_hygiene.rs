//! What the reverse proxy lets through neither way: fields and paths that an upstream might understand
//! otherwise, and what an upstream says of itself.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use http::{HeaderMap, Request, Response, StatusCode, request};
use swiftwater_http::tcp::{RunningServer, TcpLimits};
use swiftwater_http::web::body::Body;
use swiftwater_http::web::connection_info::{ConnectionInfo, Transport};
use swiftwater_http::web::proxy::{Proxy, ProxyOptions, Upstream};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tower::{ServiceExt, service_fn};

use crate::peers::{in_time, plain, text};

type Heads = Arc<Mutex<Vec<request::Parts>>>;

/// An upstream that notes heads.
async fn upstream() -> (RunningServer, Heads) {
    let heads = Heads::default();
    let noted = Arc::clone(&heads);
    let service = service_fn(move |request: Request<Body>| {
        noted.lock().unwrap().push(request.into_parts().0);
        async { Ok::<_, Infallible>(Response::new(Body::full("content"))) }
    });
    (plain(service, TcpLimits::default()).await, heads)
}

/// An upstream that answers one request with these bytes.
async fn says(answer: String) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        let mut request = [0; 4096];
        let _ = stream.read(&mut request).await.unwrap();
        stream.write_all(answer.as_bytes()).await.unwrap();
    });
    address
}

fn proxy(address: SocketAddr, prefix: &str, options: ProxyOptions) -> Proxy {
    let upstream = Upstream::parse(&format!("http://{address}{prefix}")).unwrap();
    Proxy::new(upstream, options)
}

async fn send(proxy: &Proxy, request: Request<Body>) -> Response<Body> {
    in_time(proxy.clone().oneshot(request)).await.unwrap()
}

fn request(method: &str, path: &str, fields: &[(&str, &str)]) -> Request<Body> {
    let mut builder = Request::builder()
        .method(method)
        .uri(path)
        .header("host", "public.example")
        .extension(ConnectionInfo {
            peer: "192.0.2.1:1234".parse().unwrap(),
            local: "192.0.2.2:443".parse().unwrap(),
            protocol: Transport::Quic,
            alpn: None,
            server_name: None,
            client_chain: None,
        });
    for (name, value) in fields {
        builder = builder.header(*name, *value);
    }
    builder.body(Body::full("12345")).unwrap()
}

/// What of `fields` reaches the upstream.
async fn seen(options: ProxyOptions, fields: &[(&str, &str)]) -> HeaderMap {
    let (server, heads) = upstream().await;
    let proxy = proxy(server.local_addr(), "", options);
    let response = send(&proxy, request("POST", "/", fields)).await;
    assert_eq!(response.status(), StatusCode::OK);
    heads.lock().unwrap().pop().unwrap().headers
}

#[tokio::test]
async fn the_length_of_content_is_one_number() {
    for length in ["5, 5", "05", "5,5 ,\t5", "005"] {
        let headers = seen(ProxyOptions::default(), &[("content-length", length)]).await;
        let values: Vec<_> = headers.get_all("content-length").iter().collect();
        assert_eq!(values, ["5"], "{length}");
    }
    let twice = [("content-length", "5"), ("content-length", "05")];
    let headers = seen(ProxyOptions::default(), &twice).await;
    let values: Vec<_> = headers.get_all("content-length").iter().collect();
    assert_eq!(values, ["5"]);

    let (server, heads) = upstream().await;
    let proxy = proxy(server.local_addr(), "", ProxyOptions::default());
    for length in [
        "5, 6",
        "-5",
        "+5",
        "5;",
        "",
        "5,",
        "0x5",
        "99999999999999999999",
    ] {
        let response = send(&proxy, request("POST", "/", &[("content-length", length)])).await;
        assert_eq!(response.status(), StatusCode::BAD_REQUEST, "{length}");
    }
    let differ = [("content-length", "5"), ("content-length", "6")];
    let response = send(&proxy, request("POST", "/", &differ)).await;
    assert_eq!(response.status(), StatusCode::BAD_REQUEST);
    assert!(heads.lock().unwrap().is_empty());
}

/// Fields by which clients could forge their identity or the request.
const CLAIMS: [(&str, &str); 9] = [
    ("proxy", "http://evil.example"),
    ("x-original-url", "/admin"),
    ("x-rewrite-url", "/admin"),
    ("x_forwarded_for", "10.0.0.1"),
    ("x-forwarded_host", "evil.example"),
    ("x-forwarded-ssl", "on"),
    ("x_real_ip", "10.0.0.1"),
    ("content_length", "0"),
    ("x_own", "twin"),
];

#[tokio::test]
async fn misleading_fields_do_not_arrive() {
    let mut fields = CLAIMS.to_vec();
    fields.extend([("x-own", "1"), ("other_own", "2")]);
    let headers = seen(ProxyOptions::default(), &fields).await;
    for (name, _) in CLAIMS {
        assert!(!headers.contains_key(name), "{name}");
    }
    assert_eq!(headers["x-forwarded-for"], "192.0.2.1");
    assert_eq!(headers["x-own"], "1");
    assert_eq!(headers["other_own"], "2");
}

#[tokio::test]
async fn a_proxy_before_this_one_may_say_what_was_asked_for() {
    let options = ProxyOptions {
        trust_forwarded: true,
        ..ProxyOptions::default()
    };
    let headers = seen(options, &CLAIMS).await;
    assert_eq!(headers["x-original-url"], "/admin");
    assert_eq!(headers["x-forwarded-ssl"], "on");
    assert!(!headers.contains_key("x_forwarded_for") && !headers.contains_key("proxy"));
}

#[tokio::test]
async fn trace_is_not_forwarded() {
    let (server, heads) = upstream().await;
    let proxy = proxy(server.local_addr(), "", ProxyOptions::default());
    let response = send(&proxy, request("TRACE", "/", &[])).await;
    assert_eq!(response.status(), StatusCode::NOT_IMPLEMENTED);
    assert!(heads.lock().unwrap().is_empty());
}

#[tokio::test]
async fn a_length_that_the_transfer_coding_overrides_is_dropped() {
    let head = "HTTP/1.1 200 OK\r\ncontent-length: 2\r\ntransfer-encoding: chunked\r\n";
    let address = says(format!("{head}\r\n5\r\nwhole\r\n0\r\n\r\n")).await;
    let proxy = proxy(address, "", ProxyOptions::default());
    let response = send(&proxy, request("GET", "/", &[])).await;
    assert!(!response.headers().contains_key("content-length"));
    assert_eq!(text(response).await, "whole");
}

#[tokio::test]
async fn alternatives_of_the_upstream_are_not_those_of_the_public_origin() {
    let head = "HTTP/1.1 200 OK\r\ncontent-length: 0\r\nalt-svc: clear\r\n";
    let address = says(format!("{head}\r\n")).await;
    let proxy = proxy(address, "", ProxyOptions::default());
    let response = send(&proxy, request("GET", "/", &[])).await;
    assert!(!response.headers().contains_key("alt-svc"));
}

#[tokio::test]
async fn behind_a_route_paths_must_be_clear() {
    let (server, heads) = upstream().await;
    let options = |behind_route| ProxyOptions {
        behind_route,
        ..ProxyOptions::default()
    };
    let guarded = proxy(server.local_addr(), "", options(true));
    let alone = proxy(server.local_addr(), "", options(false));
    for path in [
        "/api/..%2fadmin",
        "/api/..%2Fadmin",
        "/api/..%5cadmin",
        "/api/%5c../admin",
        "/api/..;/admin",
        "/api/..;x=y/admin",
        "/api/%2e%2e;/admin",
        "/api/.;/admin",
        "/api/../admin",
        "/api/%2e%2E/admin",
        "/api/a%2fb",
    ] {
        let response = send(&guarded, request("GET", path, &[])).await;
        assert_eq!(response.status(), StatusCode::BAD_REQUEST, "{path}");
        assert!(heads.lock().unwrap().is_empty());
        let response = send(&alone, request("GET", path, &[])).await;
        assert_eq!(response.status(), StatusCode::OK, "{path}");
        heads.lock().unwrap().clear();
    }
    for path in [
        "/api/a..b",
        "/api/...",
        "/api/a;b=..",
        "/api/.well-known",
        "/api/%252f",
        "/a?b=..%2f",
    ] {
        let response = send(&guarded, request("GET", path, &[])).await;
        assert_eq!(response.status(), StatusCode::OK, "{path}");
        heads.lock().unwrap().clear();
    }
}

/// The rewritten `Location`, in which `UPSTREAM` represents the upstream's address.
async fn location(prefix: &str, location: &str) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let sent = location.replace("UPSTREAM", &address.to_string());
    let head = format!("HTTP/1.1 302 Found\r\ncontent-length: 0\r\nlocation: {sent}\r\n\r\n");
    tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        let mut request = [0; 4096];
        let _ = stream.read(&mut request).await.unwrap();
        stream.write_all(head.as_bytes()).await.unwrap();
    });
    let proxy = proxy(address, prefix, ProxyOptions::default());
    let response = send(&proxy, request("GET", "/", &[])).await;
    let seen = response.headers()["location"].to_str().unwrap();
    seen.replace(&address.to_string(), "UPSTREAM")
}

#[tokio::test]
async fn locations_on_the_upstream_lead_to_the_public_origin() {
    for (prefix, sent, seen) in [
        ("", "http://UPSTREAM/next?a=b#c", "/next?a=b#c"),
        ("", "http://UPSTREAM", "/"),
        ("/base", "http://UPSTREAM/base/next", "/next"),
        ("/base", "http://UPSTREAM/base", "/"),
        ("/base", "/base/next", "/next"),
        ("/base", "/basement", "/basement"),
        ("", "https://public.example/next", "/next"),
        ("", "https://PUBLIC.example:443/next", "/next"),
        // The rest stays as it is.
        ("", "/next", "/next"),
        ("", "next", "next"),
        ("", "//other.example/x", "//other.example/x"),
        (
            "",
            "http://UPSTREAM//other.example",
            "http://UPSTREAM//other.example",
        ),
        ("/base", "/base//other.example", "/base//other.example"),
        ("/base", "/base/\\other.example", "/base/\\other.example"),
        (
            "",
            "https://other.example/next",
            "https://other.example/next",
        ),
        (
            "",
            "http://public.example/next",
            "http://public.example/next",
        ),
        ("", "ftp://public.example/next", "ftp://public.example/next"),
    ] {
        assert_eq!(location(prefix, sent).await, seen, "{prefix} {sent}");
    }
}
