//! Forwarded packets of a client that sends many: they leave in runs.

use std::convert::Infallible;

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::{BodyExt, Full};
use swiftwater_http::web::body::Body;
use swiftwater_net::quic::TransportConfig;
use swiftwater_tunnel::forwarding::Transform;
use tower::service_fn;

use crate::forwarding::http3_client;
use crate::stage::{NAME, Stage, content, guard, serving};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn forwarded_packets_of_a_client_share_system_calls() {
    guard(async {
        let content = Bytes::from(content(3_000_000));
        let expected = content.clone();
        let upload = service_fn(move |request: Request<Body>| {
            let expected = expected.clone();
            async move {
                let content = request.into_body().collect().await.unwrap().to_bytes();
                let verdict = vec![u8::from(content == expected)];
                Ok::<_, Infallible>(Response::new(Body::full(verdict)))
            }
        });
        for transform in Transform::ALL {
            let stage = Stage::new();
            let (server, config) = serving(upload.clone(), TransportConfig::default());
            let (proxy, to) = (stage.server_end.local_addr(), server.local_addr());
            let (_endpoint, client) = http3_client(&stage, proxy, transform, (to, &config)).await;
            let request = Request::post(format!("https://{NAME}/"));
            let request = request.body(Full::new(content.clone())).unwrap();
            let response = client.send(request).await.unwrap();
            let verdict = response.into_body().collect().await.unwrap().to_bytes();
            assert_eq!(verdict[..], [1], "{transform:?}");
            let forwarded = stage.proxy.stats().forwarded_to_targets;
            assert!(forwarded > 1500, "{forwarded}");
            let sent = stage.client_end.stats();
            assert!(
                sent.sends * 2 < sent.datagrams_sent,
                "{transform:?}: {} datagrams in {} calls",
                sent.datagrams_sent,
                sent.sends
            );
        }
    })
    .await;
}
