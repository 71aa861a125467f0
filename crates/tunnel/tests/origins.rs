//! Requests of pages of the web (RFC 6454).

use http::header::{ORIGIN, PROXY_AUTHORIZATION};
use http::{Request, StatusCode};
use swiftwater_http::h3::ConnectProtocol;
use swiftwater_http::udp::SendRequest;
use swiftwater_tunnel::CONNECT_UDP;
use swiftwater_tunnel::proxy::{Origin, OriginError, ProxyConfig};
use swiftwater_tunnel::target::Target;

use crate::stage::{NAME, Stage, config, echo, guard, tcp_echo, token};

/// The status and the Proxy-Status of the answer to a request for a tunnel with these fields `Origin`.
async fn answer(
    connection: &SendRequest,
    protocol: &str,
    target: &Target,
    origins: &[&str],
) -> (StatusCode, String) {
    let path = format!("/.well-known/masque/udp/127.0.0.1/{}/", target.port());
    let mut request = match protocol {
        "" => Request::connect(target.to_string()),
        _ => Request::get(format!("https://{NAME}{path}")).header("capsule-protocol", "?1"),
    };
    request = request.header(PROXY_AUTHORIZATION, token().credentials().unwrap());
    for origin in origins {
        request = request.header(ORIGIN, *origin);
    }
    let request = request.body(()).unwrap();
    let pending = match ConnectProtocol::new(protocol) {
        Some(protocol) => connection.connect(protocol, request).await.unwrap(),
        None => connection.connect_host(request).await.unwrap(),
    };
    let (head, _) = pending.response().await.unwrap().into_parts();
    let status = head.headers.get("proxy-status");
    let status = status.map_or("", |value| value.to_str().unwrap());
    (head.status, status.to_owned())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn pages_are_refused_unless_they_are_allowed() {
    guard(async {
        let stage = Stage::with(ProxyConfig {
            allowed_origins: vec!["https://app.example".parse().unwrap()],
            ..config()
        });
        let connection = stage.connect().await;
        let (udp, tcp) = (echo().await, tcp_echo().await);
        for (protocol, target) in [(CONNECT_UDP, &udp), ("", &tcp)] {
            for allowed in [&[][..], &["https://app.example"]] {
                let (status, _) = answer(&connection, protocol, target, allowed).await;
                assert_eq!(status, StatusCode::OK, "{allowed:?}");
            }
            for refused in [
                &["https://other.example"][..],
                &["https://app.example:8443"],
                &["http://app.example"],
                &["null"],
                &[""],
                &["https://app.example", "https://other.example"],
            ] {
                let (status, why) = answer(&connection, protocol, target, refused).await;
                assert_eq!(status, StatusCode::FORBIDDEN, "{refused:?}");
                assert!(why.contains("error=http_request_denied"), "{why}");
            }
        }
        assert_eq!(stage.proxy.stats().refused, 12);
    })
    .await;
}

#[test]
fn an_origin_is_written_as_browsers_do() {
    for text in [
        "https://app.example",
        "http://localhost:8080",
        "https://[::1]:8443",
    ] {
        assert_eq!(text.parse::<Origin>().unwrap().to_string(), text);
    }
    assert_eq!(
        "HTTPS://App.example".parse::<Origin>(),
        "https://app.example".parse()
    );
    for text in [
        "",
        "null",
        "*",
        "app.example",
        "https://",
        "https://app.example/",
        "https://app.example:443",
        "http://app.example:80",
        "https://app.example?x",
        "https://user@app.example",
        "https://*.example#",
    ] {
        assert_eq!(text.parse::<Origin>(), Err(OriginError), "{text}");
    }
}
