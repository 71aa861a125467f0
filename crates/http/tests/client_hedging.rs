//! Requests that the selection sends over TCP as well, and requests that find QUIC gone.

use std::net::{Ipv4Addr, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use http::{Method, Request, Version};
use swiftwater_http::client::Select;
use swiftwater_http::client::select::Reason;
use swiftwater_http::web::alt_svc::AltSvcLayer;
use swiftwater_http::web::body::Body;
use tokio::sync::watch;
use tower::{Layer, service_fn};

use crate::client_world::selecting::{
    LATER, choice, experiment, get, greet, informed, parameters, slow_over,
};
use crate::client_world::{Forwarder, Tcp, Udp, World, chosen, guard, read, until};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_get_without_an_answer_goes_over_tcp_too_and_a_post_does_not() {
    // Without content it could be sent again, but must not be either.
    for content in ["once", ""] {
        guard(hold_over_quic(content)).await;
    }
}

/// Requests that the server does not answer over QUIC: a POST with `content`, and GETs.
async fn hold_over_quic(content: &'static str) {
    let posts = Arc::new(AtomicUsize::new(0));
    let (release, held) = watch::channel(false);
    let service = {
        let posts = Arc::clone(&posts);
        service_fn(move |request: Request<Body>| {
            if request.method() == Method::POST {
                posts.fetch_add(1, Ordering::SeqCst);
            }
            let mut held = held.clone();
            async move {
                let holds = request.uri().path() == "/held";
                if holds && request.version() == Version::HTTP_3 {
                    held.wait_for(|released| *released).await.unwrap();
                }
                greet(request).await
            }
        })
    };
    let world = World::new(Tcp::Both, Udp::Http3, service).await;
    let select = Select::wise().parameters(parameters(&[("hedge_floor", 0.01)]));
    let client = informed(&world).protocol(select).build().unwrap();
    // The race is won by QUIC.
    get(&client, &world).await;
    let post = tokio::spawn({
        let (client, request) = (client.clone(), world.post("/held", content));
        async move { client.send(request).await.unwrap() }
    });
    until(|| posts.load(Ordering::SeqCst) == 1).await;
    let hedged = loop {
        let response = client.send(world.get("/held")).await.unwrap();
        let choice = choice(&response);
        assert_eq!(choice.arm.name(), "h2");
        assert_eq!(read(response).await, "/held");
        if choice.decided.name() == "h3" {
            break choice;
        }
    };
    assert!(hedged.hedged);
    assert_eq!(client.selection().unwrap().hedged, 1);
    release.send(true).unwrap();
    let response = post.await.unwrap();
    let choice = choice(&response);
    assert_eq!((choice.arm.name(), choice.hedged), ("h3", false));
    assert_eq!(choice.reason, Reason::NotReplaySafe);
    assert_eq!(posts.load(Ordering::SeqCst), 1);
}

/// Counts the requests whose processing ends without a response.
struct Unanswered(Arc<AtomicUsize>);

impl Drop for Unanswered {
    fn drop(&mut self) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_copy_that_lost_is_cancelled_at_once() {
    // Over QUIC; then over TCP, with each version.
    for (tcp, held, others) in [
        (Tcp::Both, Version::HTTP_3, Duration::ZERO),
        (Tcp::Both, Version::HTTP_2, LATER * 3),
        (Tcp::Http1, Version::HTTP_11, LATER * 3),
    ] {
        guard(async {
            let cancelled = Arc::new(AtomicUsize::new(0));
            let service = {
                let cancelled = Arc::clone(&cancelled);
                service_fn(move |request: Request<Body>| {
                    let cancelled = Unanswered(Arc::clone(&cancelled));
                    async move {
                        if request.uri().path() == "/held" {
                            if request.version() == held {
                                std::future::pending::<()>().await;
                            }
                            tokio::time::sleep(others).await;
                        } else if request.version() != Version::HTTP_3 {
                            tokio::time::sleep(LATER).await;
                        }
                        std::mem::forget(cancelled);
                        greet(request).await
                    }
                })
            };
            let world = World::new(tcp, Udp::Http3, service).await;
            let select = Select::wise().parameters(parameters(&[("hedge_floor", 0.05)]));
            let client = informed(&world).protocol(select).build().unwrap();
            experiment(&client, &world).await;
            let response = client.send(world.get("/held")).await.unwrap();
            let choice = choice(&response);
            assert_eq!((choice.decided.name(), choice.hedged), ("h3", true));
            assert_ne!(response.version(), held);
            assert_eq!(read(response).await, "/held");
            until(|| cancelled.load(Ordering::SeqCst) == 1).await;
        })
        .await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_request_fails_when_udp_is_blocked_in_the_middle() {
    guard(async {
        let relay = Forwarder::to(1).await;
        let layer = AltSvcLayer::new(relay.port, Duration::from_secs(3600));
        let service = layer.layer(service_fn(slow_over(false)));
        let world = World::new(Tcp::Both, Udp::Http3, service).await;
        relay.lead_to(world.port);
        let select = Select::wise().parameters(parameters(&[("hedge_floor", 0.05)]));
        let client = world.client().protocol(select).build().unwrap();
        let choices = experiment(&client, &world).await;
        assert_eq!(choices.last().unwrap().arm.name(), "h3");

        let nowhere = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        relay.lead_to(nowhere.local_addr().unwrap().port());
        let mut choice = get(&client, &world).await;
        assert_eq!(
            (choice.decided.name(), choice.arm.name(), choice.hedged),
            ("h3", "h2", true)
        );
        for _ in 0..4 {
            choice = get(&client, &world).await;
            assert_eq!(choice.arm.name(), "h2");
        }
        // QUIC is not tried any more, so that other requests go well too.
        assert_eq!(choice.decided.name(), "h2");
        assert!(client.selection().unwrap().stats.blocks > 0);
        let response = client.send(world.post("/x", "once")).await.unwrap();
        assert_eq!(read(response).await, "/x");
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn requests_that_find_quic_gone_wait_for_one_handshake_together() {
    guard(async {
        let relay = Forwarder::to(1).await;
        let layer = AltSvcLayer::new(relay.port, Duration::from_secs(3600));
        let service = layer.layer(service_fn(slow_over(false)));
        let world = World::new(Tcp::Both, Udp::Http3, service).await;
        relay.lead_to(world.port);
        let client = world.client().protocol(Select::wise()).build().unwrap();
        let choices = experiment(&client, &world).await;
        assert_eq!(choices.last().unwrap().arm.name(), "h3");
        client.close_idle();
        let nowhere = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        relay.lead_to(nowhere.local_addr().unwrap().port());
        let mut running = tokio::task::JoinSet::new();
        for _ in 0..8 {
            let (client, request) = (client.clone(), world.get("/x"));
            running.spawn(async move { client.send(request).await.unwrap() });
        }
        let responses = running.join_all().await;
        let raced = responses
            .iter()
            .filter(|response| chosen(response).attempts > 0);
        assert_eq!(raced.count(), 1);
    })
    .await;
}
