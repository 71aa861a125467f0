//! QUIC connections of this program through a proxy: HTTP/3 in HTTP/3, names, refusals, and TECC.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::Request;
use swiftwater_congestion::FollowExternalConfig;
use swiftwater_http::client::{HttpClient, Policy};
use swiftwater_http::web::body::Body;
use swiftwater_link::{LinkConfig, LossModel};
use swiftwater_net::quic::{ClientConfig, TransportConfig};
use swiftwater_net::relay::{Relay, RelayConfig};
use swiftwater_policies::Policies;
use swiftwater_tunnel::client::{EndpointConnectError, OpenError, TunnelClient};
use swiftwater_tunnel::policy::TargetPolicy;
use swiftwater_tunnel::proxy::{ProxyConfig, TunnelProxy};
use swiftwater_tunnel::target::{Target, Template};

use crate::stage::{
    self, NAME, Names, Stage, config, endpoint, get, guard, origin, origin_at, target, token,
};

fn content(len: u32) -> Bytes {
    stage::content(len).into()
}

/// A proxy that knows the origin under a name that nobody else knows.
fn stage_with_names(origin: SocketAddr) -> Stage {
    let names = Names(BTreeMap::from([("origin.example", vec![origin])]));
    Stage::serving(TunnelProxy::with_resolver(config(), names))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn connections_to_one_target_share_a_tunnel() {
    guard(async {
        let stage = Stage::new();
        let content = content(3_000_000);
        let (origin, config) = origin(content.clone(), TransportConfig::default());
        let to = target(origin.local_addr());
        let endpoint = endpoint(stage.client());
        let download = || async { get(endpoint.connect(&config, &to, NAME).await.unwrap()).await };
        let (first, second) = tokio::join!(download(), download());
        assert!(first == content && second == content);
        assert_eq!(stage.proxy.stats().opened, 1);
        // Without the endpoint there is nobody to end the tunnel for.
        drop(endpoint);
        stage.until(|stats| stats.closed == 1).await;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_of_http_leaves_names_to_the_proxy() {
    guard(async {
        let content = content(100_000);
        let (origin, config) = origin(content.clone(), TransportConfig::default());
        let stage = stage_with_names(origin.local_addr());
        let through = endpoint(stage.client());
        let client = HttpClient::builder()
            .quic(through.endpoint().clone(), config)
            .resolver(through.resolver())
            .policy(Policy::Http3Only)
            .build()
            .unwrap();
        let port = origin.local_addr().port();
        // The certificate is for another name: the connection is made, and refused.
        let uri = format!("https://origin.example:{port}/");
        let request = Request::get(uri).body(Body::empty()).unwrap();
        let error = client.send(request).await.unwrap_err();
        assert!(error.to_string().contains("it is for localhost"), "{error}");
        // A name that the proxy does not know: its reason comes back, and at once.
        let uri = format!("https://nowhere.example:{port}/");
        let request = Request::get(uri).body(Body::empty()).unwrap();
        let error = client.send(request).await.unwrap_err();
        assert!(error.to_string().contains("dns_error"), "{error}");
        assert_eq!(stage.proxy.stats().opened, 1);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_name_is_resolved_by_the_proxy() {
    guard(async {
        let content = content(100_000);
        let (origin, config) = origin(content.clone(), TransportConfig::default());
        let stage = stage_with_names(origin.local_addr());
        let endpoint = endpoint(stage.client());
        let port = origin.local_addr().port();
        let to = Target::new("origin.example", port).unwrap();
        let connection = endpoint.connect(&config, &to, NAME).await.unwrap();
        assert_eq!(get(connection).await, content);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_refusal_ends_the_attempt_with_its_reason() {
    guard(async {
        let stage = Stage::with(ProxyConfig {
            policy: TargetPolicy::default(),
            ..config()
        });
        let (origin, config) = origin(content(10), TransportConfig::default());
        let to = target(origin.local_addr());
        let endpoint = endpoint(stage.client());
        let refused = endpoint.connect(&config, &to, NAME).await.unwrap_err();
        let EndpointConnectError::Tunnel(error) = refused else {
            panic!("{refused}");
        };
        assert!(matches!(*error, OpenError::Refused { .. }), "{error}");
    })
    .await;
}

/// Else the attempt would end in a timeout that shows nothing.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_tunnel_that_is_too_small_for_quic_is_reported() {
    guard(async {
        let transport = TransportConfig {
            mtu_discovery: None,
            ..TransportConfig::default()
        };
        let stage = Stage::over(transport, TunnelProxy::new(config()));
        let (origin, config) = origin(content(10), TransportConfig::default());
        let to = target(origin.local_addr());
        let endpoint = endpoint(stage.client());
        let failed = endpoint.connect(&config, &to, NAME).await.unwrap_err();
        let EndpointConnectError::Tunnel(error) = failed else {
            panic!("{failed}");
        };
        let OpenError::SmallDatagrams { max_payload } = *error else {
            panic!("{error}");
        };
        assert!((1100..1200).contains(&max_payload), "{max_payload}");
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_target_that_nobody_listens_at_is_reported() {
    guard(async {
        let stage = Stage::new();
        let (origin, config) = origin(content(10), TransportConfig::default());
        // A port that was free a moment ago.
        let socket = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
        let to = target(socket.local_addr().unwrap());
        drop(socket);
        let endpoint = endpoint(stage.client());
        let refused = endpoint.connect(&config, &to, NAME).await.unwrap_err();
        assert!(refused.to_string().contains("nobody receives"), "{refused}");
        drop(origin);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_refusal_does_not_last() {
    guard(async {
        let stage = Stage::new();
        let (unused, nobody) = origin(content(10), TransportConfig::default());
        // All other sockets are bound: nobody else takes the port.
        let socket = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
        let address = socket.local_addr().unwrap();
        drop(socket);
        let (to, endpoint) = (target(address), endpoint(stage.client()));
        let refused = endpoint.connect(&nobody, &to, NAME).await.unwrap_err();
        assert!(matches!(refused, EndpointConnectError::Tunnel(_)));
        // The server comes up later.
        let (origin, config) = origin_at(address, content(10), TransportConfig::default());
        let connection = loop {
            if let Ok(connection) = endpoint.connect(&config, &to, NAME).await {
                break connection;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        };
        assert_eq!(get(connection).await, content(10));
        drop((unused, origin));
    })
    .await;
}

/// Both ends of TECC over sockets: on a link that loses a tenth of what goes to the client, the QUIC connection in the
/// tunnel gets nearly everything once, and paces by what the tunnel reports.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_whole_of_tecc() {
    guard(async {
        let stage = Stage::new();
        let any = SocketAddr::from(([127, 0, 0, 1], 0));
        let mut through = RelayConfig::new(any, stage.server_end.local_addr());
        let delay = Duration::from_millis(5);
        through.up = LinkConfig {
            delay,
            ..LinkConfig::default()
        };
        through.down = LinkConfig {
            delay,
            loss: LossModel::Bernoulli(0.1),
            ..LinkConfig::default()
        };
        let relay = Relay::start(through).unwrap();
        let content = content(1_000_000);
        let server = TransportConfig {
            controller: Arc::new(FollowExternalConfig::default()),
            policies: Arc::new(Policies::tecc()),
            max_feedback_size: 64,
            ..TransportConfig::default()
        };
        let (origin, config) = origin(content.clone(), server);
        let to = target(origin.local_addr());
        let mut repeated = Vec::new();
        for is_tecc in [false, true] {
            let template = Template::new(NAME).unwrap();
            let connector = stage.connector_to(relay.local_addr());
            let client = if is_tecc {
                TunnelClient::with_reports(template, Some(&token()), connector)
            } else {
                TunnelClient::with_repair(template, Some(&token()), connector)
            };
            let transport = if is_tecc {
                TransportConfig {
                    policies: Arc::new(Policies::tecc_client()),
                    max_feedback_size: 64,
                    ..TransportConfig::default()
                }
            } else {
                TransportConfig::default()
            };
            let config = ClientConfig {
                transport: Arc::new(transport),
                ..config.clone()
            };
            let endpoint = endpoint(client);
            let connection = endpoint.connect(&config, &to, NAME).await.unwrap();
            let handle = connection.clone();
            assert_eq!(get(connection).await, content);
            let stats = handle.stats();
            // The messages of the client's policy.
            let messages = stats.frames_sent.of("other");
            assert_eq!(messages > 10, is_tecc, "{messages}");
            let received = stats.stream_bytes_received.get();
            repeated.push(received.saturating_sub(content.len() as u64));
        }
        assert!(repeated[1] < repeated[0] / 2, "{repeated:?}");
    })
    .await;
}
