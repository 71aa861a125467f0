//! What the client knows from the kernel about its TCP connections.

use std::convert::Infallible;
use std::time::Duration;

use http::{Request, Response};
use swiftwater_http::client::{Builder, HttpClient, Measurements, Policy, Select, Snapshot};
use swiftwater_http::web::body::Body;
use tower::service_fn;

use crate::client_world::{Tcp, Udp, World, guard, read};

async fn echo(request: Request<Body>) -> Result<Response<Body>, Infallible> {
    Ok(Response::new(request.into_body()))
}

/// The measurements of a request whose response has 300 kB.
async fn measure(client: &HttpClient, world: &World) -> Snapshot {
    let request = world.post("/", vec![1; 300_000]);
    let response = client.send(request).await.unwrap();
    let measurements = response.extensions().get::<Measurements>().unwrap().clone();
    assert_eq!(read(response).await.len(), 300_000);
    measurements.ended().await
}

fn is_known(snapshot: &Snapshot) -> bool {
    // The kernel counts whole microseconds, and without the system calls around the handshake.
    let rtt = snapshot.rtt.unwrap();
    let is_of_kernel = rtt.subsec_nanos().is_multiple_of(1000) && snapshot.connect != Some(rtt);
    let share = snapshot.out_of_order;
    assert_eq!((snapshot.retransmitted, snapshot.missing), (None, None));
    assert!(rtt > Duration::ZERO);
    assert!(share.is_none_or(|share| (0.0..=1.0).contains(&share)));
    is_of_kernel && share.is_some()
}

fn over_tcp(world: &World) -> Builder {
    world.client().policy(Policy::NoHttp3)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_request_has_the_kernels_counts() {
    guard(async {
        for tcp in [Tcp::Both, Tcp::Http1] {
            let world = World::new(tcp, Udp::Silent, service_fn(echo)).await;
            let client = over_tcp(&world).tcp_statistics(true).build().unwrap();
            for nth in 0..3 {
                let snapshot = measure(&client, &world).await;
                assert_eq!(snapshot.connect.is_some(), nth == 0, "{tcp:?}");
                assert!(is_known(&snapshot), "{tcp:?}: {snapshot:?}");
            }
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_it_the_kernel_is_not_asked() {
    guard(async {
        let world = World::new(Tcp::Both, Udp::Silent, service_fn(echo)).await;
        let client = over_tcp(&world).build().unwrap();
        let first = measure(&client, &world).await;
        assert_eq!(first.rtt, first.connect);
        let second = measure(&client, &world).await;
        assert_eq!(second.rtt, first.rtt);
        assert_eq!((first.out_of_order, second.out_of_order), (None, None));
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_that_selects_asks_the_kernel() {
    guard(async {
        let world = World::new(Tcp::Both, Udp::Silent, service_fn(echo)).await;
        let select = Select::wise();
        let client = world.client().protocol(select).build().unwrap();
        let snapshot = measure(&client, &world).await;
        assert!(is_known(&snapshot), "{snapshot:?}");
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn quic_has_its_own_counts() {
    guard(async {
        let world = World::new(Tcp::None, Udp::Http3, service_fn(echo)).await;
        let client = world.client().policy(Policy::Http3Only);
        let client = client.tcp_statistics(true).build().unwrap();
        let snapshot = measure(&client, &world).await;
        assert_eq!(snapshot.out_of_order, None);
        assert!(snapshot.rtt.is_some() && snapshot.retransmitted.is_some());
        // On the loopback interface nothing is lost, except numbers that the server skips.
        assert!(snapshot.missing.unwrap() < 0.05, "{snapshot:?}");
    })
    .await;
}
