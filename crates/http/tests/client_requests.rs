//! The life of a request in the client: early data, connections that go away, limits, cancellation,
//! measurements.

use std::convert::Infallible;
use std::net::Ipv4Addr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use bytes::Bytes;
use http::{Method, Request, Response, StatusCode};
use http_body::Frame;
use http_body_util::{BodyExt, StreamBody};
use swiftwater_http::client::{
    AttemptCause, End, Error, HttpClient, Measurements, Phase, Policy, Protocol, Snapshot, Timeouts,
};
use swiftwater_http::udp::ClientError;
use swiftwater_http::web::body::Body;
use swiftwater_http::web::early_data::is_early;
use swiftwater_net::quic::ConnectionError;
use tokio::net::TcpListener;
use tokio::task::JoinSet;
use tower::service_fn;

use crate::client_world::{Forwarder, NAME, Tcp, Udp, World, chosen, guard, read, until};

/// A world and a policy for each version.
const VERSIONS: [(Tcp, Policy, Protocol); 3] = [
    (Tcp::Both, Policy::Http3Only, Protocol::Http3),
    (Tcp::Both, Policy::NoHttp3, Protocol::Http2),
    (Tcp::Http1, Policy::NoHttp3, Protocol::Http1),
];

async fn echo(request: Request<Body>) -> Result<Response<Body>, Infallible> {
    Ok(Response::new(request.into_body()))
}

/// Returns whether the request was early data; optionally answers 425.
async fn early(request: Request<Body>) -> Result<Response<Body>, Infallible> {
    let early = is_early(&request);
    let mut response = Response::new(Body::full(format!("early: {early}")));
    if early && request.uri().path() == "/strict" {
        *response.status_mut() = StatusCode::TOO_EARLY;
    }
    Ok(response)
}

/// Asks on new connections until a session permits early data.
async fn until_early(client: &HttpClient, world: &World) {
    loop {
        client.close_idle();
        let response = client.send(world.get("/")).await.unwrap();
        let early = chosen(&response).early;
        assert_eq!(read(response).await, format!("early: {early}"));
        if early {
            return;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

// On one thread, so that a request is written before the handshake continues.
#[tokio::test]
async fn safe_requests_go_out_early_and_again_if_that_was_too_early() {
    guard(async {
        let world = World::new(Tcp::Both, Udp::Http3, service_fn(early)).await;
        let client = world.client().policy(Policy::Http3Only).early_data(true);
        let client = client.build().unwrap();
        until_early(&client, &world).await;

        // The connection gave new tickets.
        let strict = loop {
            client.close_idle();
            let response = client.send(world.get("/strict")).await.unwrap();
            assert_eq!(response.status(), StatusCode::OK);
            if chosen(&response).sent == 2 {
                break response;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        };
        assert!(!chosen(&strict).early);
        assert_eq!(read(strict).await, "early: false");

        until_early(&client, &world).await;
        client.close_idle();
        let response = client.send(world.post("/", "unsafe")).await.unwrap();
        assert!(!chosen(&response).early);
        assert_eq!(read(response).await, "early: false");
    })
    .await;
}

#[tokio::test]
async fn early_data_need_to_be_permitted() {
    guard(async {
        let world = World::new(Tcp::Both, Udp::Http3, service_fn(early)).await;
        let client = world.client().policy(Policy::Http3Only).build().unwrap();
        for _ in 0..5 {
            client.close_idle();
            let response = client.send(world.get("/")).await.unwrap();
            assert!(!chosen(&response).early);
            assert_eq!(read(response).await, "early: false");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        assert_eq!(client.pool_stats().opened, 5);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn connections_that_go_away_are_replaced_and_no_request_is_lost() {
    guard(async {
        let world = World::new(Tcp::Both, Udp::Http3, service_fn(echo)).await;
        let client = world.client().policy(Policy::Http3Only).build().unwrap();
        let done = Arc::new(AtomicUsize::new(0));
        let mut running = tokio::task::JoinSet::new();
        for _ in 0..8 {
            let (client, done) = (client.clone(), Arc::clone(&done));
            let uri = world.uri("/");
            running.spawn(async move {
                for _ in 0..50 {
                    let request = Request::get(&uri).body(Body::empty()).unwrap();
                    let response = client.send(request).await.unwrap();
                    assert_eq!(response.status(), StatusCode::OK);
                    read(response).await;
                    done.fetch_add(1, Ordering::SeqCst);
                }
            });
        }
        for served in [100, 200, 300] {
            until(|| done.load(Ordering::SeqCst) >= served).await;
            world.drain_http3();
        }
        while let Some(result) = running.join_next().await {
            result.unwrap();
        }
        assert!(client.pool_stats().opened >= 2);
    })
    .await;
}

/// A server that lost its state sends a stateless reset (RFC 9000, section 10.3).
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_lost_its_connections_gets_the_request_on_a_new_one() {
    guard(async {
        let world = World::new(Tcp::None, Udp::Http3, service_fn(echo)).await;
        let forwarder = Forwarder::to(world.port).await;
        let client = world.client().policy(Policy::Http3Only).build().unwrap();
        let uri = format!("https://{NAME}:{}/", forwarder.port);
        let request = |method: Method| {
            let request = Request::builder().method(method).uri(&uri);
            request.body(Body::empty()).unwrap()
        };
        let response = client.send(request(Method::GET)).await.unwrap();
        assert_eq!(read(response).await, "");

        let second = world.http3_after_a_crash(service_fn(echo));
        forwarder.lead_to(second.local_addr().port());
        // The idle timeout, which is what else would end the old connection, is 30 s.
        let limit = Duration::from_secs(20);
        let sent = tokio::time::timeout(limit, client.send(request(Method::GET)));
        let response = sent.await.expect("the reset was heeded").unwrap();
        assert_eq!(response.status(), StatusCode::OK);
        let chosen = chosen(&response);
        assert_eq!((chosen.sent, chosen.reused), (2, false));
        assert_eq!(read(response).await, "");

        // What must not be done twice fails at once, and the next request finds a new connection.
        let third = world.http3_after_a_crash(service_fn(echo));
        forwarder.lead_to(third.local_addr().port());
        let sent = tokio::time::timeout(limit, client.send(request(Method::POST)));
        let error = sent.await.expect("the reset was heeded").unwrap_err();
        assert!(
            matches!(
                error,
                Error::Http3(ClientError::Connection(ConnectionError::Reset))
            ),
            "{error}"
        );
        let response = client.send(request(Method::POST)).await.unwrap();
        assert_eq!(read(response).await, "");
    })
    .await;
}

fn limits(change: impl FnOnce(&mut Timeouts)) -> Timeouts {
    let mut timeouts = Timeouts::default();
    change(&mut timeouts);
    timeouts
}

const SHORT: Duration = Duration::from_millis(200);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_phase_of_connecting_has_its_limit() {
    guard(Box::pin(async {
        let world = World::new(Tcp::None, Udp::Silent, service_fn(echo)).await;
        let client = world.client().timeouts(limits(|it| it.resolve = SHORT));
        let client = client.build().unwrap();
        let silent = || {
            let request = Request::get("https://silent.test/").body(Body::empty());
            request.unwrap()
        };
        let error = client.send(silent()).await.unwrap_err();
        assert!(matches!(error, Error::Timeout(Phase::Resolve)), "{error:?}");

        let client = world
            .client()
            .policy(Policy::Http3Only)
            .timeouts(limits(|it| it.quic = SHORT));
        let error = client.build().unwrap().send(world.get("/")).await;
        let Err(Error::Unreachable(attempts)) = error else {
            panic!("{error:?}");
        };
        let cause = &attempts[0].cause;
        assert!(
            matches!(cause, AttemptCause::Timeout(Phase::Quic)),
            "{cause:?}"
        );

        // Connected by the kernel, and then nothing.
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let client = world.client().timeouts(limits(|it| it.handshake = SHORT));
        let request = Request::get(format!("https://{NAME}:{port}/"));
        let request = request.body(Body::empty()).unwrap();
        let error = client.build().unwrap().send(request).await;
        let Err(Error::Unreachable(attempts)) = error else {
            panic!("{error:?}");
        };
        let cause = &attempts[0].cause;
        assert!(
            matches!(cause, AttemptCause::Timeout(Phase::Handshake)),
            "{cause:?}"
        );

        let client = world.client().timeouts(limits(|it| it.total = Some(SHORT)));
        let error = client.build().unwrap().send(silent()).await.unwrap_err();
        assert!(matches!(error, Error::Timeout(Phase::Total)), "{error:?}");
    }))
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_waited_for_an_attempt_that_failed_does_not_wait_for_all_others() {
    guard(async {
        // Connected by the kernel, and then nothing.
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let world = World::new(Tcp::None, Udp::Silent, service_fn(echo)).await;
        let client = world.client().timeouts(limits(|it| it.handshake = SHORT));
        let client = client.build().unwrap();
        let begin = Instant::now();
        let mut attempts = JoinSet::new();
        for _ in 0..15 {
            let request = Request::get(format!("https://{NAME}:{port}/"));
            let request = request.body(Body::empty()).unwrap();
            let client = client.clone();
            attempts.spawn(async move { client.send(request).await.is_err() });
        }
        assert!(attempts.join_all().await.into_iter().all(|failed| failed));
        // Two attempts one after the other, not fifteen.
        let elapsed = begin.elapsed();
        assert!(elapsed < 14 * SHORT, "{elapsed:?}");
    })
    .await;
}

/// Never answers, or never completes the response.
async fn stall(request: Request<Body>) -> Result<Response<Body>, Infallible> {
    if request.uri().path() == "/head" {
        std::future::pending::<()>().await;
    }
    let begun = futures_util::stream::iter([Ok::<_, Infallible>(Frame::data(Bytes::from("half")))]);
    let stream = futures_util::StreamExt::chain(begun, futures_util::stream::pending());
    Ok(Response::new(Body::new(StreamBody::new(stream))))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn requests_to_servers_that_stall_time_out() {
    guard(async {
        for (tcp, policy, protocol) in VERSIONS {
            let world = World::new(tcp, Udp::Http3, service_fn(stall)).await;
            let client = world.client().policy(policy).timeouts(limits(|it| {
                it.head = SHORT;
                it.body = SHORT;
            }));
            let client = client.build().unwrap();
            let error = client.send(world.get("/head")).await.unwrap_err();
            assert!(
                matches!(error, Error::Timeout(Phase::Head)),
                "{protocol}: {error:?}"
            );

            // Here the head must arrive in time on a busy machine.
            let client = world.client().policy(policy);
            let client = client
                .timeouts(limits(|it| it.body = SHORT))
                .build()
                .unwrap();
            let response = client.send(world.get("/body")).await.unwrap();
            let measurements = response.extensions().get::<Measurements>().unwrap().clone();
            let mut body = response.into_body();
            let first = body.frame().await.unwrap().unwrap();
            assert_eq!(first.into_data().unwrap(), "half");
            let error = body.frame().await.unwrap().unwrap_err();
            assert!(
                matches!(error, Error::Timeout(Phase::Body)),
                "{protocol}: {error:?}"
            );
            assert!(body.frame().await.is_none());
            assert_eq!(measurements.snapshot().end, Some(End::Broken));
        }
    })
    .await;
}

/// Counts how many of the service's futures are alive.
struct Alive(Arc<AtomicUsize>);

impl Alive {
    fn new(count: &Arc<AtomicUsize>) -> Self {
        count.fetch_add(1, Ordering::SeqCst);
        Self(Arc::clone(count))
    }
}

impl Drop for Alive {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_dropped_request_ends_the_servers_work() {
    guard(async {
        for (tcp, policy, _) in VERSIONS {
            let alive = Arc::new(AtomicUsize::new(0));
            let count = Arc::clone(&alive);
            let service = service_fn(move |request: Request<Body>| {
                let alive = Alive::new(&count);
                async move {
                    let _alive = alive;
                    if request.method() == Method::GET {
                        std::future::pending::<()>().await;
                    }
                    Ok::<_, Infallible>(Response::new(request.into_body()))
                }
            });
            let world = World::new(tcp, Udp::Http3, service).await;
            let client = world.client().policy(policy).build().unwrap();
            let (asking, request) = (client.clone(), world.get("/"));
            let waiting = tokio::spawn(async move { asking.send(request).await });
            until(|| alive.load(Ordering::SeqCst) == 1).await;
            waiting.abort();
            until(|| alive.load(Ordering::SeqCst) == 0).await;
            let response = client.send(world.post("/", "next")).await.unwrap();
            assert_eq!(read(response).await, "next");
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_request_dropped_while_connecting_blocks_no_other() {
    guard(async {
        let world = World::new(Tcp::None, Udp::Silent, service_fn(echo)).await;
        let client = world.client().timeouts(limits(|it| it.resolve = SHORT));
        let client = client.build().unwrap();
        let silent = || {
            let request = Request::get("https://silent.test/").body(Body::empty());
            request.unwrap()
        };
        let dropped = tokio::time::timeout(SHORT / 10, client.send(silent())).await;
        assert!(dropped.is_err());
        let error = client.send(silent()).await.unwrap_err();
        assert!(matches!(error, Error::Timeout(Phase::Resolve)), "{error:?}");
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn measurements_have_each_phase() {
    guard(Box::pin(async {
        let data = vec![3; 100_000];
        for (tcp, policy, protocol) in VERSIONS {
            let world = World::new(tcp, Udp::Http3, service_fn(echo)).await;
            let client = world.client().policy(policy).build().unwrap();
            let response = client.send(world.post("/", data.clone())).await.unwrap();
            let measurements = response.extensions().get::<Measurements>().unwrap().clone();
            let head = measurements.snapshot();
            assert_eq!((head.completion, head.end), (None, None), "{protocol}");
            assert!(head.sent.is_some() && head.sent <= head.first_byte);
            assert!(head.first_byte.is_some());
            read(response).await;
            let all = measurements.ended().await;
            assert!(all.completion >= all.first_byte);
            assert!(all.resolve.is_some() && all.handshake.is_some() && all.rtt.is_some());
            assert!(all.rtt < all.completion);
            assert_eq!(all.received, 100_000);
            assert_eq!(all.end, Some(End::Complete));
            let quic = protocol == Protocol::Http3;
            assert_eq!(
                (all.connect.is_none(), all.retransmitted.is_some()),
                (quic, quic)
            );
            assert!(
                all.retransmitted
                    .is_none_or(|share| (0.0..=1.0).contains(&share))
            );

            // On the same connection only the exchange is left to measure.
            let again = Measurements::new();
            let mut request = world.post("/", data.clone());
            request.extensions_mut().insert(again.clone());
            let response = client.send(request).await.unwrap();
            assert!(chosen(&response).reused);
            drop(response);
            let abandoned = again.ended().await;
            assert_eq!((abandoned.resolve, abandoned.handshake), (None, None));
            assert_eq!(abandoned.end, Some(End::Abandoned));
        }
    }))
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn failures_leave_what_was_measured_until_then() {
    guard(async {
        let world = World::new(Tcp::None, Udp::Silent, service_fn(echo)).await;
        let client = world.client().build().unwrap();
        let measurements = Measurements::new();
        let mut request = world.get("/");
        request.extensions_mut().insert(measurements.clone());
        let error = client.send(request).await.unwrap_err();
        assert!(matches!(error, Error::Unreachable(_)), "{error:?}");
        let known = measurements.snapshot();
        assert!(known.resolve.is_some());
        let expected = Snapshot {
            resolve: known.resolve,
            ..Snapshot::default()
        };
        assert_eq!(known, expected);
    })
    .await;
}
