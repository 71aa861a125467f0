//! The choice between TCP and QUIC request by request.

use crate::client_world;

use std::net::Ipv4Addr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use http::Version;
use swiftwater_http::client::select::Reason;
use swiftwater_http::client::{ArmChoice, HttpsRecord, Network, Policy, Proxies, Select};
use swiftwater_http::web::alt_svc::AltSvcLayer;
use swiftwater_http::web::metrics::prometheus;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tower::{Layer, service_fn};

use client_world::selecting::{choice, experiment, get, greet, informed, parameters, slow_over};
use client_world::{Names, Tcp, Udp, World, guard, read, until};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_experiment_sends_four_requests_over_each_arm() {
    guard(async {
        let world = World::new(Tcp::Both, Udp::Http3, service_fn(greet)).await;
        let client = informed(&world).protocol(Select::wise()).build().unwrap();
        let first = get(&client, &world).await;
        assert_eq!(first.reason, Reason::ConnectedFirst);
        assert_eq!(first.decided.name(), "h3");
        for position in 0..8 {
            let choice = get(&client, &world).await;
            let expected = ["h2", "h3"][position as usize % 2];
            assert_eq!(choice.decided.name(), expected);
            let Reason::Experiment { position: at, .. } = choice.reason else {
                panic!("{choice:?}");
            };
            assert_eq!(at, position);
        }
        let after = get(&client, &world).await;
        assert!(!after.reason.is_probe(), "{after:?}");
        let snapshot = client.selection().unwrap();
        assert_eq!(snapshot.stats.experiments, 1);
        assert_eq!(snapshot.stats.requests, 10);
        assert_eq!(snapshot.stats.with_reason("connected_first"), 1);
        assert_eq!(snapshot.stats.with_reason("only_arm"), 0);
        assert_eq!(snapshot.strategy, "wise");
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_slower_protocol_is_left() {
    guard(async {
        for (quic_is_slow, quicker) in [(true, "h2"), (false, "h3")] {
            let service = service_fn(slow_over(quic_is_slow));
            let world = World::new(Tcp::Both, Udp::Http3, service).await;
            let client = informed(&world).protocol(Select::wise()).build().unwrap();
            let choices = experiment(&client, &world).await;
            let last = choices.last().unwrap();
            assert_eq!(last.arm.name(), quicker);
            assert_eq!(last.reason, Reason::WonExperiment);
            let selected = client.selected_arm(&world.origin()).unwrap();
            assert_eq!(selected.name(), quicker);
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn arms_with_controllers_have_connections_of_their_own() {
    guard(async {
        let world = World::new(Tcp::Both, Udp::Http3, service_fn(greet)).await;
        let arms = ["h3", "h3:bbr1", "h3+autorec", "h2"].map(|arm| arm.parse().unwrap());
        let select = Select::wise().arms(arms);
        let client = informed(&world).protocol(select).build().unwrap();
        let choices = experiment(&client, &world).await;
        for arm in ["h2", "h3", "h3:bbr1", "h3+autorec"] {
            let probes = choices
                .iter()
                .filter(|choice| choice.reason.is_probe() && choice.decided.name() == arm);
            assert_eq!(probes.count(), 4, "{arm}");
        }
        let stats = client.pool_stats();
        assert_eq!((stats.http3, stats.http2), (3, 1));

        let select = Select::fixed("h3:slowest".parse().unwrap());
        let error = informed(&world).protocol(select).build().unwrap_err();
        assert!(error.to_string().contains("slowest"), "{error}");
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_request_with_a_policy_of_its_own_is_not_selected() {
    guard(async {
        let world = World::new(Tcp::Both, Udp::Http3, service_fn(greet)).await;
        let client = informed(&world).protocol(Select::wise()).build().unwrap();
        let mut request = world.get("/x");
        request.extensions_mut().insert(Policy::NoHttp3);
        let response = client.send(request).await.unwrap();
        assert_eq!(response.extensions().get::<ArmChoice>(), None);
        assert_eq!(client.selection().unwrap().stats.requests, 0);
    })
    .await;
}

#[tokio::test]
async fn decisions_are_counted_for_prometheus() {
    guard(async {
        let recorder = prometheus().unwrap();
        let _local = metrics::set_default_local_recorder(&recorder);
        let world = World::new(Tcp::Both, Udp::Http3, service_fn(slow_over(true))).await;
        let client = informed(&world).protocol(Select::wise()).build().unwrap();
        let requests = experiment(&client, &world).await.len();
        let page = recorder.handle().render();
        for line in [
            "swiftwater_select_requests_total{arm=\"h3\",reason=\"connected_first\"} 1",
            "swiftwater_select_requests_total{arm=\"h2\",reason=\"won_experiment\"} 1",
            "swiftwater_select_probes_total{arm=\"h2\"} 4",
            "swiftwater_select_probes_total{arm=\"h3\"} 4",
            "swiftwater_select_experiments_total 1",
            "swiftwater_select_switches_total{from=\"h3\",to=\"h2\",cause=\"experiment\"} 1",
        ] {
            assert!(page.contains(line), "{line}: {page}");
        }
        let counted: u64 = page
            .lines()
            .filter(|line| line.starts_with("swiftwater_select_requests_total{"))
            .map(|line| line.rsplit(' ').next().unwrap().parse::<u64>().unwrap())
            .sum();
        assert_eq!(counted, requests as u64);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn http3_that_is_advertised_but_not_served_fails_no_request() {
    guard(async {
        for udp in [Udp::Closed, Udp::Silent] {
            let there = World::new(Tcp::None, udp, service_fn(greet)).await;
            let layer = AltSvcLayer::new(there.port, Duration::from_secs(3600));
            let here = World::new(Tcp::Both, Udp::Silent, layer.layer(service_fn(greet))).await;
            let select = Select::wise().parameters(parameters(&[("hedge_floor", 0.01)]));
            let client = there.client().tls(here.tls()).protocol(select);
            let client = client.build().unwrap();
            let mut tried = 0;
            for _ in 0..10 {
                let choice = get(&client, &here).await;
                assert_eq!(choice.arm.name(), "h2");
                tried += usize::from(choice.decided.name() == "h3");
                let response = client.send(here.post("/x", "")).await.unwrap();
                assert_eq!(read(response).await, "/x");
            }
            assert!(tried > 0, "{udp:?}");
            assert_eq!(client.selection().unwrap().stats.failed, 0);
        }
    })
    .await;
}

/// A proxy that opens every tunnel to this host. Returns its address.
async fn proxy() -> String {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((mut client, _)) = listener.accept().await {
            tokio::spawn(async move {
                let mut head = Vec::new();
                while !head.ends_with(b"\r\n\r\n") {
                    head.push(client.read_u8().await.unwrap());
                }
                let head = String::from_utf8(head).unwrap();
                let target = head.split(' ').nth(1).unwrap();
                let port: u16 = target.rsplit(':').next().unwrap().parse().unwrap();
                let server = tokio::net::TcpStream::connect((Ipv4Addr::LOCALHOST, port));
                let mut server = server.await.unwrap();
                client.write_all(b"HTTP/1.1 200 OK\r\n\r\n").await.unwrap();
                let _ = tokio::io::copy_bidirectional(&mut client, &mut server).await;
            });
        }
    });
    format!("http://{address}")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn behind_a_proxy_only_tcp_is_used() {
    guard(async {
        let address = proxy().await;
        let proxies =
            Proxies::from_variables(|name| (name == "HTTPS_PROXY").then(|| address.clone()));
        let world = World::new(Tcp::Both, Udp::Http3, service_fn(greet)).await;
        let client = informed(&world)
            .resolver(Names::default())
            .proxies(proxies.unwrap())
            .protocol(Select::plus())
            .build()
            .unwrap();
        for _ in 0..5 {
            let choice = get(&client, &world).await;
            assert_eq!(choice.arm.name(), "h2");
            assert_eq!(choice.reason, Reason::OnlyArm);
        }
        assert_eq!(client.pool_stats().http3, 0);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_a_hint_only_tcp_is_used_and_a_record_is_a_hint() {
    guard(async {
        let world = World::new(Tcp::Both, Udp::Http3, service_fn(greet)).await;
        let client = world.client().protocol(Select::wise()).build().unwrap();
        for _ in 0..5 {
            assert_eq!(get(&client, &world).await.arm.name(), "h2");
        }
        assert_eq!(client.pool_stats().http3, 0);

        let names = Names {
            record: Some(HttpsRecord {
                alpn: vec![b"h3".to_vec()],
                port: None,
            }),
            ..Names::default()
        };
        let client = world.client().resolver(names).protocol(Select::wise());
        let client = client.stagger(Duration::from_secs(20)).build().unwrap();
        assert_eq!(get(&client, &world).await.arm.name(), "h3");
        // Without the connection, the record is only found by a lookup.
        client.close_idle();
        let choices = experiment(&client, &world).await;
        assert!(choices.iter().any(|choice| choice.arm.name() == "h3"));
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_fixed_arm_carries_every_request() {
    guard(async {
        let world = World::new(Tcp::Both, Udp::Http3, service_fn(greet)).await;
        for name in ["h1", "h2", "h3", "h3:cubic"] {
            let arm = name.parse().unwrap();
            let client = informed(&world).protocol(Select::fixed(arm));
            let client = client.build().unwrap();
            for _ in 0..3 {
                let response = client.send(world.get("/x")).await.unwrap();
                let version = match name {
                    "h1" => Version::HTTP_11,
                    "h2" => Version::HTTP_2,
                    _ => Version::HTTP_3,
                };
                assert_eq!(response.version(), version);
                let choice = choice(&response);
                assert_eq!((choice.arm.name(), choice.reason), (name, Reason::Fixed));
                read(response).await;
            }
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_connected_first_is_kept_until_the_network_changes() {
    guard(async {
        let world = World::new(Tcp::Both, Udp::Http3, service_fn(slow_over(true))).await;
        let network = Arc::new(AtomicU32::new(1));
        let select = Select::race();
        let client = informed(&world)
            .network({
                let network = Arc::clone(&network);
                move || Network {
                    v4: Some(network.load(Ordering::SeqCst).into()),
                    v6: None,
                }
            })
            .protocol(select)
            .build()
            .unwrap();
        // Back on the first network at the end, with the connections of before.
        for there in [1, 2, 1] {
            network.store(there, Ordering::SeqCst);
            for _ in 0..4 {
                let choice = get(&client, &world).await;
                assert_eq!(choice.arm.name(), "h3");
                assert_eq!(choice.reason, Reason::ConnectedFirst);
                assert!(!choice.hedged);
            }
        }
        let stats = client.selection().unwrap().stats;
        assert_eq!(
            (stats.experiments, stats.failed, stats.overtaken),
            (0, 0, 0)
        );
        // Each once, on the network that is known as well.
        assert_eq!((stats.requests, stats.with_reason("race")), (12, 0));
        assert_eq!(stats.with_reason("connected_first"), 12);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_learned_is_read_by_the_next_client() {
    guard(async {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("selection.json");
        let world = World::new(Tcp::Both, Udp::Http3, service_fn(slow_over(false))).await;
        let select = Select::wise().state_file(&file);
        let client = informed(&world).protocol(select.clone()).build().unwrap();
        assert_eq!(client.selected_arm(&world.origin()), None);
        experiment(&client, &world).await;
        drop(client);
        until(|| file.exists()).await;

        let client = informed(&world).protocol(select).build().unwrap();
        let selected = client.selected_arm(&world.origin()).unwrap();
        assert_eq!(selected.name(), "h3");
        let text = std::fs::read_to_string(&file).unwrap();
        assert!(!text.contains(client_world::NAME), "origins are hashes");
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_state_file_of_something_else_is_reported_and_kept_aside() {
    guard(async {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("selection.json");
        for text in ["", "junk", "{\"format\":\"other\"}", "{\"format\":\"swif"] {
            std::fs::write(&file, text).unwrap();
            let log = tempfile::NamedTempFile::new().unwrap();
            let writer = log.reopen().unwrap();
            let subscriber = tracing_subscriber::fmt()
                .with_writer(move || writer.try_clone().unwrap())
                .finish();
            let world = World::new(Tcp::Both, Udp::Http3, service_fn(greet)).await;
            let select = Select::wise().state_file(&file);
            let client = informed(&world).protocol(select);
            let client = tracing::subscriber::with_default(subscriber, || client.build().unwrap());
            let warned = std::fs::read_to_string(log.path()).unwrap();
            assert_eq!(warned.lines().count(), 1, "{warned}");
            assert!(warned.contains("selection.json"), "{warned}");
            assert!(client.selection().unwrap().state_problem.is_some());
            get(&client, &world).await;
            client.save_selection().unwrap();
            let saved = std::fs::read(&file).unwrap();
            let saved: serde_json::Value = serde_json::from_slice(&saved).unwrap();
            assert_eq!(saved["format"], "swiftwater-select");
            let kept = std::fs::read_to_string(folder.path().join("selection.json.refused"));
            assert_eq!(kept.unwrap(), text);
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_connections_of_the_arm_that_lost_are_closed() {
    guard(async {
        let world = World::new(Tcp::Both, Udp::Http3, service_fn(slow_over(false))).await;
        let select = Select::wise().parameters(parameters(&[("warm", 0.0)]));
        let client = informed(&world).protocol(select).build().unwrap();
        experiment(&client, &world).await;
        until(|| client.pool_stats().http2 == 0).await;
        assert_eq!(client.pool_stats().http3, 1);

        let select = Select::wise().parameters(parameters(&[("warm", 600.0)]));
        let client = informed(&world).protocol(select).build().unwrap();
        experiment(&client, &world).await;
        assert_eq!(client.pool_stats().http2, 1);
    })
    .await;
}
