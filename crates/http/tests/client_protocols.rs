//! Which protocol carries a request, and the reason that the client gives.

use std::convert::Infallible;
use std::io::ErrorKind;
use std::time::Duration;

use http::{HeaderValue, Method, Request, Response, StatusCode, Version};
use swiftwater_http::client::{
    AttemptCause, AttemptTransport, Error, Hint, HttpClient, HttpsRecord, Policy, Protocol,
    Timeouts, Why,
};
use swiftwater_http::web::alt_svc::AltSvcLayer;
use swiftwater_http::web::body::Body;
use tower::{Layer, service_fn};

use crate::client_world::{Names, Tcp, Udp, World, chosen, guard, read, until};

/// Answers with the request's content.
async fn echo(request: Request<Body>) -> Result<Response<Body>, Infallible> {
    Ok(Response::new(request.into_body()))
}

async fn greet(request: Request<Body>) -> Result<Response<Body>, Infallible> {
    Ok(Response::new(Body::full(request.uri().path().to_owned())))
}

fn with(policy: Policy, mut request: Request<Body>) -> Request<Body> {
    request.extensions_mut().insert(policy);
    request
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_version_carries_content_both_ways() {
    guard(async {
        let data = vec![7; 300_000];
        for (tcp, policy, protocol) in [
            (Tcp::Both, Policy::Http3Only, Protocol::Http3),
            (Tcp::Both, Policy::PreferHttp3, Protocol::Http3),
            (Tcp::Both, Policy::NoHttp3, Protocol::Http2),
            (Tcp::Http1, Policy::NoHttp3, Protocol::Http1),
        ] {
            let world = World::new(tcp, Udp::Http3, service_fn(echo)).await;
            let client = world.client().policy(policy).build().unwrap();
            for round in 0..3 {
                let response = client.send(world.post("/", data.clone())).await.unwrap();
                assert_eq!(response.status(), StatusCode::OK);
                let chosen = chosen(&response);
                assert_eq!(chosen.protocol, protocol);
                assert_eq!((chosen.reused, chosen.sent), (round > 0, 1));
                assert_eq!(chosen.attempts == 0, chosen.reused);
                assert!(read(response).await == data);
            }
            let stats = client.pool_stats();
            assert_eq!((stats.opened, stats.reused), (1, 2), "{protocol}");
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn requests_at_once_share_one_connection() {
    guard(async {
        for policy in [Policy::PreferHttp3, Policy::NoHttp3] {
            let world = World::new(Tcp::Both, Udp::Http3, service_fn(echo)).await;
            let client = world.client().policy(policy).build().unwrap();
            let mut running = tokio::task::JoinSet::new();
            for nth in 0..50_u32 {
                let (client, data) = (client.clone(), nth.to_be_bytes());
                let request = world.post("/", data.to_vec());
                running.spawn(async move {
                    let response = client.send(request).await.unwrap();
                    assert!(read(response).await == data.as_slice());
                });
            }
            while let Some(done) = running.join_next().await {
                done.unwrap();
            }
            assert_eq!(client.pool_stats().opened, 1, "{policy:?}");
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_alt_svc_field_brings_the_next_request_to_http3() {
    guard(Box::pin(async {
        // Where HTTP/3 is, is not where TCP is.
        let there = World::new(Tcp::None, Udp::Http3, service_fn(greet)).await;
        let layer = AltSvcLayer::new(there.port, Duration::from_secs(3600));
        let here = World::new(Tcp::Both, Udp::Silent, layer.layer(service_fn(greet))).await;
        let client = there
            .client()
            .tls(here.tls())
            .stagger(Duration::from_secs(20))
            .build()
            .unwrap();
        let response = client.send(here.get("/1")).await.unwrap();
        assert_eq!(chosen(&response).protocol, Protocol::Http2);
        assert_eq!(chosen(&response).why, Why::NoHint);
        assert_eq!(response.version(), Version::HTTP_2);
        assert_eq!(read(response).await, "/1");

        let response = client.send(here.get("/2")).await.unwrap();
        assert_eq!(chosen(&response).protocol, Protocol::Http3);
        assert_eq!(chosen(&response).why, Why::Hinted(Hint::AltSvc));
        assert_eq!(read(response).await, "/2");
        let response = client.send(here.get("/3")).await.unwrap();
        assert_eq!(chosen(&response).why, Why::Hinted(Hint::Connected));
        assert!(chosen(&response).reused);
        assert_eq!(client.pool_stats().http3, 1);
        assert_eq!(client.pool_stats().http2, 1);
    }))
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_alternative_that_disclaims_the_origin_is_removed() {
    guard(async {
        let there = service_fn(|request: Request<Body>| async move {
            assert!(request.headers().contains_key("alt-used"));
            let mut response = Response::new(Body::full("not mine"));
            *response.status_mut() = StatusCode::MISDIRECTED_REQUEST;
            Ok::<_, Infallible>(response)
        });
        let there = World::new(Tcp::None, Udp::Http3, there).await;
        let value = HeaderValue::from_str(&format!("h3=\":{}\"", there.port)).unwrap();
        let here = service_fn(move |request: Request<Body>| {
            assert!(!request.headers().contains_key("alt-used"));
            let mut response = Response::new(Body::full("mine"));
            if request.uri().path() == "/first" {
                response.headers_mut().insert("alt-svc", value.clone());
            }
            async { Ok::<_, Infallible>(response) }
        });
        let here = World::new(Tcp::Both, Udp::Silent, here).await;
        let client = there.client().tls(here.tls());
        let client = client.stagger(Duration::from_secs(20)).build().unwrap();
        client.send(here.get("/first")).await.unwrap();
        for sent in [2, 1] {
            let response = client.send(here.get("/")).await.unwrap();
            assert_eq!(chosen(&response).sent, sent);
            assert_eq!(chosen(&response).why, Why::NoHint);
            assert_eq!(read(response).await, "mine");
        }
        // Also by a request that can't be sent again.
        client.send(here.get("/first")).await.unwrap();
        let mut post = here.get("/");
        *post.method_mut() = Method::POST;
        *post.body_mut() = Body::full("content");
        let response = client.send(post).await.unwrap();
        assert_eq!(response.status(), StatusCode::MISDIRECTED_REQUEST);
        let response = client.send(here.get("/")).await.unwrap();
        assert_eq!(chosen(&response).sent, 1);
        assert_eq!(read(response).await, "mine");
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_alternative_that_has_no_address_leaves_tcp() {
    guard(async {
        let service = service_fn(|_: Request<Body>| async {
            let mut response = Response::new(Body::empty());
            let value = HeaderValue::from_static("h3=\"nowhere.test:443\"");
            response.headers_mut().insert("alt-svc", value);
            Ok::<_, Infallible>(response)
        });
        let world = World::new(Tcp::Both, Udp::Http3, service).await;
        let client = world.client().build().unwrap();
        client.send(world.get("/")).await.unwrap();
        let response = client.send(world.get("/")).await.unwrap();
        assert_eq!(chosen(&response).protocol, Protocol::Http2);
        assert_eq!(chosen(&response).why, Why::QuicFailed);
        // QUIC itself is not to blame.
        assert!(!client.is_http3_broken(&world.origin()));
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn clear_ends_what_alt_svc_began() {
    guard(async {
        let service = service_fn(|request: Request<Body>| async move {
            let mut response = Response::new(Body::empty());
            let value = match request.uri().path() {
                "/on" => "h3=\":1\"; ma=60",
                "/off" => "clear",
                _ => return Ok::<_, Infallible>(response),
            };
            let value = HeaderValue::from_static(value);
            response.headers_mut().insert("alt-svc", value);
            Ok(response)
        });
        let world = World::new(Tcp::Both, Udp::Silent, service).await;
        let client = world.client().build().unwrap();
        for path in ["/on", "/off"] {
            let request = with(Policy::NoHttp3, world.get(path));
            client.send(request).await.unwrap();
        }
        let response = client.send(world.get("/")).await.unwrap();
        assert_eq!(chosen(&response).why, Why::NoHint);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_https_record_is_a_hint() {
    guard(async {
        let world = World::new(Tcp::Both, Udp::Http3, service_fn(greet)).await;
        let names = Names {
            record: Some(HttpsRecord {
                alpn: vec![b"h2".to_vec(), b"h3".to_vec()],
                port: None,
            }),
            ..Names::default()
        };
        let client = world
            .client()
            .resolver(names)
            .stagger(Duration::from_secs(20))
            .build()
            .unwrap();
        let response = client.send(world.get("/")).await.unwrap();
        assert_eq!(chosen(&response).protocol, Protocol::Http3);
        assert_eq!(chosen(&response).why, Why::Hinted(Hint::HttpsRecord));
        assert_eq!(chosen(&response).attempts, 1);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn where_udp_is_blocked_tcp_wins_and_the_failure_is_stored() {
    guard(async {
        let world = World::new(Tcp::Both, Udp::Silent, service_fn(greet)).await;
        let client = world
            .client()
            .assume_http3(true)
            .stagger(Duration::from_millis(50))
            .timeouts(Timeouts {
                quic: Duration::from_secs(3),
                ..Timeouts::default()
            })
            .build()
            .unwrap();
        let response = client.send(world.get("/1")).await.unwrap();
        assert_eq!(chosen(&response).protocol, Protocol::Http2);
        assert_eq!(chosen(&response).why, Why::QuicSlower);
        assert_eq!(chosen(&response).attempts, 2);
        assert_eq!(read(response).await, "/1");
        // The QUIC handshake is still in progress, without a delay for other requests.
        let response = client.send(world.get("/2")).await.unwrap();
        assert_eq!(chosen(&response).why, Why::QuicPending);
        assert_eq!(chosen(&response).attempts, 0);
        until(|| client.is_http3_broken(&world.origin())).await;
        for policy in [Policy::Race, Policy::PreferHttp3] {
            let request = with(policy, world.get("/3"));
            let response = client.send(request).await.unwrap();
            assert_eq!(chosen(&response).why, Why::QuicBroken);
            assert!(chosen(&response).reused);
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_closed_udp_port_costs_no_head_start_and_is_stored() {
    guard(async {
        let world = World::new(Tcp::Both, Udp::Closed, service_fn(greet)).await;
        // Without the answer of ICMP, TCP would have to wait for a minute.
        let client = world
            .client()
            .assume_http3(true)
            .stagger(Duration::from_secs(60))
            .timeouts(Timeouts {
                quic: Duration::from_secs(60),
                ..Timeouts::default()
            })
            .build()
            .unwrap();
        let limit = Duration::from_secs(30);
        let answered = tokio::time::timeout(limit, client.send(world.get("/1"))).await;
        let response = answered.expect("the refusal was heeded").unwrap();
        assert_eq!(chosen(&response).why, Why::QuicFailed);
        assert!(client.is_http3_broken(&world.origin()));

        // The record can be transferred to another client.
        let known = client.known_failures();
        assert_eq!(known.len(), 1);
        assert_eq!(known[0].origin, world.origin());
        let next = world.client().assume_http3(true).known_failures(known);
        let next = next.build().unwrap();
        let response = next.send(world.get("/2")).await.unwrap();
        assert_eq!(chosen(&response).why, Why::QuicBroken);
        assert_eq!(chosen(&response).attempts, 1);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn closed_ports_fail_at_once() {
    guard(async {
        let world = World::new(Tcp::None, Udp::Closed, service_fn(greet)).await;
        for policy in [Policy::Http3Only, Policy::PreferHttp3] {
            let client = world.client().stagger(Duration::from_secs(60));
            let client = client.policy(policy).timeouts(Timeouts {
                quic: Duration::from_secs(60),
                ..Timeouts::default()
            });
            let client = client.build().unwrap();
            let limit = Duration::from_secs(30);
            let failed = tokio::time::timeout(limit, client.send(world.get("/"))).await;
            let error = failed.expect("the refusal was heeded").unwrap_err();
            let Error::Unreachable(attempts) = error else {
                panic!("{error}");
            };
            for attempt in &attempts {
                let AttemptCause::Io(error) = &attempt.cause else {
                    panic!("{attempt}");
                };
                assert_eq!(error.kind(), ErrorKind::ConnectionRefused);
            }
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn quic_that_lost_the_race_serves_later_requests() {
    guard(async {
        let world = World::new(Tcp::Both, Udp::Http3, service_fn(greet)).await;
        // Both start at once, and the TCP connection is already open.
        let client = world
            .client()
            .assume_http3(true)
            .stagger(Duration::ZERO)
            .build()
            .unwrap();
        let request = with(Policy::NoHttp3, world.get("/"));
        client.send(request).await.unwrap();
        let response = client.send(world.get("/")).await.unwrap();
        assert_eq!(chosen(&response).why, Why::QuicSlower);
        assert_eq!(chosen(&response).protocol, Protocol::Http2);
        until(|| client.pool_stats().http3 == 1).await;
        let response = client.send(world.get("/")).await.unwrap();
        assert_eq!(chosen(&response).protocol, Protocol::Http3);
        assert!(!client.is_http3_broken(&world.origin()));
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn prefer_waits_for_quic_to_fail() {
    guard(async {
        let world = World::new(Tcp::Both, Udp::Silent, service_fn(greet)).await;
        let client = world
            .client()
            .policy(Policy::PreferHttp3)
            .stagger(Duration::ZERO)
            .timeouts(Timeouts {
                quic: Duration::from_millis(500),
                ..Timeouts::default()
            })
            .build()
            .unwrap();
        let response = client.send(world.get("/")).await.unwrap();
        assert_eq!(chosen(&response).protocol, Protocol::Http2);
        assert_eq!(chosen(&response).why, Why::QuicFailed);
        assert!(client.is_http3_broken(&world.origin()));
        // Whatever happened before, this policy tries.
        let request = with(Policy::Http3Only, world.get("/"));
        let error = client.send(request).await.unwrap_err();
        let Error::Unreachable(attempts) = error else {
            panic!("{error:?}");
        };
        assert_eq!(attempts.len(), 1);
        assert_eq!(attempts[0].transport, AttemptTransport::Quic);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_without_quic_says_so() {
    guard(async {
        let world = World::new(Tcp::Both, Udp::Http3, service_fn(greet)).await;
        let client = HttpClient::builder()
            .tls(world.tls())
            .resolver(Names::default())
            .assume_http3(true)
            .build()
            .unwrap();
        let response = client.send(world.get("/")).await.unwrap();
        assert_eq!(chosen(&response).why, Why::NoQuic);
        let request = with(Policy::Http3Only, world.get("/"));
        let error = client.send(request).await.unwrap_err();
        assert!(
            matches!(error, Error::Http3Impossible(Why::NoQuic)),
            "{error:?}"
        );
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn http_uris_go_over_plain_tcp() {
    guard(async {
        let world = World::new(Tcp::Plain, Udp::Http3, service_fn(echo)).await;
        let client = world.client().assume_http3(true).build().unwrap();
        let uri = world.uri("/").replace("https", "http");
        for _ in 0..2 {
            let request = Request::post(&uri).body(Body::full("plain")).unwrap();
            let response = client.send(request).await.unwrap();
            assert_eq!(chosen(&response).protocol, Protocol::Http1);
            assert_eq!(chosen(&response).why, Why::PlainText);
            assert_eq!(read(response).await, "plain");
        }
        assert_eq!(client.pool_stats().opened, 1);
    })
    .await;
}

#[tokio::test]
async fn what_cannot_be_asked_is_refused() {
    let world = World::new(Tcp::Both, Udp::Http3, service_fn(greet)).await;
    let client = world.client().build().unwrap();
    for uri in ["/path", "ftp://origin.test/", "https://origin.test:0/"] {
        let request = Request::get(uri).body(Body::empty()).unwrap();
        let error = client.send(request).await.unwrap_err();
        assert!(matches!(error, Error::InvalidUri(_)), "{uri}: {error:?}");
    }
    let request = Request::connect("https://origin.test/").body(Body::empty());
    let error = client.send(request.unwrap()).await.unwrap_err();
    assert!(matches!(error, Error::Connect), "{error:?}");
    for (host, expected) in [
        ("unknown.test", "looking up"),
        ("nowhere.test", "no address"),
    ] {
        let request = Request::get(format!("https://{host}/")).body(Body::empty());
        let error = client.send(request.unwrap()).await.unwrap_err();
        assert!(error.to_string().contains(expected), "{error}");
    }
}
