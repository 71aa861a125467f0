//! QUIC in a tunnel over QUIC that repairs losses near the client and reports to the server.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use swiftwater_congestion::{Bbr3Config, ControllerFactory, CubicConfig, FollowExternalConfig};
use swiftwater_link::{Buffer, LinkConfig, LossModel, Rate};
use swiftwater_policies::Policies;
use swiftwater_quic::{ClientConfig, RetryPolicy, ServerConfig, TransportConfig};
use swiftwater_sim::apps::{
    Carriage, Requester, Responder, TunnelClient, TunnelConfig, TunnelProxy, TunnelStats,
};
use swiftwater_sim::{Cipher, HostConfig, HostId, Network};
use swiftwater_tecc::{REPORT_ROOM, RepairLimits};
use swiftwater_units::{Bandwidth, Instant};

/// Of connections in a tunnel.
const DATAGRAM: u16 = 1_200;
const BYTES: u64 = 100_000;

fn address(host: u8) -> SocketAddr {
    (Ipv4Addr::new(10, 0, 0, host), 443).into()
}

fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

struct Stage {
    network: Network,
    server: HostId,
    proxy: HostId,
    requester: HostId,
}

/// What differs between systems.
#[derive(Clone)]
struct System {
    tunnel: TunnelConfig,
    controller: Arc<dyn ControllerFactory>,
    server: Policies,
    client: Policies,
    /// Bytes by which packets between proxy and client are larger than payloads need.
    room: u16,
}

fn tunnel(repair: bool, reports: bool) -> TunnelConfig {
    TunnelConfig {
        carriage: Carriage::Datagrams,
        repair: repair.then(RepairLimits::default),
        reports,
        report_loss: 0.0,
    }
}

fn plain() -> System {
    System {
        tunnel: tunnel(false, false),
        controller: Arc::new(CubicConfig::default()),
        server: Policies::default(),
        client: Policies::default(),
        room: REPORT_ROOM,
    }
}

fn forwarded() -> System {
    System {
        tunnel: TunnelConfig {
            carriage: Carriage::Forwarded,
            ..tunnel(false, false)
        },
        ..plain()
    }
}

fn repaired() -> System {
    System {
        tunnel: tunnel(true, false),
        ..plain()
    }
}

fn tecc() -> System {
    System {
        tunnel: tunnel(true, true),
        controller: Arc::new(FollowExternalConfig::default()),
        server: Policies::tecc(),
        client: Policies::tecc_client(),
        ..plain()
    }
}

/// Settings of the connection between proxy and client.
fn outer(system: &System) -> TransportConfig {
    TransportConfig {
        controller: Arc::new(Bbr3Config::default()),
        // In forwarded mode nothing else keeps it open.
        keep_alive_interval: Some(Duration::from_secs(10)),
        ..transport(DATAGRAM + 50 + system.room)
    }
}

fn transport(size: u16) -> TransportConfig {
    TransportConfig {
        initial_max_datagram_size: size,
        mtu_discovery: None,
        max_feedback_size: 64,
        ..TransportConfig::default()
    }
}

fn server_config(transport: TransportConfig) -> Arc<ServerConfig> {
    let (_, crypto) = Cipher::Null.crypto().unwrap();
    Arc::new(ServerConfig {
        retry: RetryPolicy::Never,
        address_token_lifetime: Duration::ZERO,
        ..ServerConfig::new(crypto, Arc::new(transport))
    })
}

fn client_config(transport: TransportConfig) -> ClientConfig {
    let (crypto, _) = Cipher::Null.crypto().unwrap();
    ClientConfig {
        crypto,
        transport: Arc::new(transport),
    }
}

/// Server and proxy 30 ms apart, proxy and client 20 ms over a bottleneck of 10 Mbit/s that loses `loss`. The
/// client requests 100 kB forty times.
fn stage(system: &System, loss: f64) -> Stage {
    let mut network = Network::new(5);
    let (far, near) = (network.add_router(), network.add_router());
    let wide = LinkConfig::default()
        .rate(Rate::Constant(Bandwidth::from_mbps(100)))
        .delay(ms(30));
    network.add_link(far, near, wide.clone()).unwrap();
    network.add_link(near, far, wide).unwrap();
    let edge = network.add_router();
    let access = LinkConfig::default()
        .rate(Rate::Constant(Bandwidth::from_mbps(10)))
        .delay(ms(10))
        .buffer(Buffer::Bytes(swiftwater_units::ByteCount::new(60_000)));
    let model = LossModel::Bernoulli(loss);
    let lossy = access.clone().loss(model);
    network.add_link(near, edge, lossy).unwrap();
    network.add_link(edge, near, access).unwrap();

    let inner = |controller: &Arc<dyn ControllerFactory>, policies: &Policies| TransportConfig {
        controller: Arc::clone(controller),
        policies: Arc::new(policies.clone()),
        ..transport(DATAGRAM)
    };
    let host = |server: Option<Arc<ServerConfig>>| HostConfig {
        server,
        ..HostConfig::default()
    };
    let own = LinkConfig::default;
    let of_server = server_config(inner(&system.controller, &system.server));
    let server = network.add_host(host(Some(of_server)));
    network
        .attach(server, address(1), far, own(), own())
        .unwrap();
    network.install(server, Responder::new());

    let proxy = network.add_host(host(Some(server_config(outer(system)))));
    network
        .attach(proxy, address(2), near, own(), own())
        .unwrap();
    let udp = network
        .attach(proxy, address(3), near, own(), own())
        .unwrap();
    network.set_raw(udp);
    network.install(proxy, TunnelProxy::new(system.tunnel, address(1)));

    let client = network.add_host(host(None));
    network
        .attach(client, address(4), edge, own(), own())
        .unwrap();
    let requester = network.add_host(host(None));
    let (there, here) = (network.node(client), network.node(requester));
    let up = network.add_link(here, there, own()).unwrap();
    let down = network.add_link(there, here, own()).unwrap();
    let local = network.add_interface(client, address(5), down, up).unwrap();
    network.set_raw(local);
    network
        .add_interface(requester, address(6), up, down)
        .unwrap();
    let config = client_config(outer(system));
    let app = TunnelClient::new(system.tunnel, config, address(2), Instant::ZERO);
    network.install(client, app);
    let config = client_config(inner(&system.controller, &system.client));
    let app = Requester::new(config, address(5), (40, Duration::ZERO), (0, BYTES));
    let start = Instant::ZERO + ms(200);
    let app = app.one_after_another(ms(50)).during(start, None);
    network.install(requester, app);
    Stage {
        network,
        server,
        proxy,
        requester,
    }
}

/// Mean completion time, counters of the proxy, bytes that the server sent again, losses of the server that were none.
fn run(system: &System, loss: f64) -> (f64, TunnelStats, u64, u64) {
    let mut stage = stage(system, loss);
    let end = Instant::ZERO + Duration::from_secs(120);
    while stage.network.step_until(end) {}
    let app = stage
        .network
        .application::<Requester>(stage.requester)
        .unwrap();
    assert!(app.is_done(), "all requests are answered");
    assert!(app.exchanges().iter().all(|each| each.verified));
    let times = app.exchanges().iter().map(|each| each.duration().unwrap());
    let mean = times.map(|time| time.as_secs_f64()).sum::<f64>() / app.exchanges().len() as f64;
    let proxy = stage.network.application::<TunnelProxy>(stage.proxy);
    let totals = stage.network.totals(stage.server);
    let again = totals.stream_bytes_retransmitted.get();
    (
        mean,
        proxy.unwrap().stats(),
        again,
        totals.spurious_losses.get(),
    )
}

#[test]
fn without_loss_every_system_transfers_and_nothing_is_sent_twice() {
    for system in [plain(), repaired()] {
        let (_, stats, ..) = run(&system, 0.0);
        assert_eq!(stats.reports, 0);
    }
    let stream = System {
        tunnel: TunnelConfig {
            carriage: Carriage::Stream,
            repair: None,
            reports: false,
            report_loss: 0.0,
        },
        ..plain()
    };
    run(&stream, 0.05);
    let (_, stats, ..) = run(&tecc(), 0.0);
    assert!(stats.reports > 40, "{stats:?}");
}

#[test]
fn in_forwarded_mode_nearly_everything_passes_beside_the_tunnel() {
    let (time, stats, ..) = run(&forwarded(), 0.0);
    assert!(stats.forwarded * 100 > stats.payloads * 99, "{stats:?}");
    let (plain_time, stats, ..) = run(&plain(), 0.0);
    assert_eq!(stats.forwarded, 0);
    assert!(time < plain_time * 1.03, "{time} {plain_time}");
    // Nobody repairs, the server sends again.
    let (_, stats, again, _) = run(&forwarded(), 0.02);
    assert_eq!(stats.repair.resent, 0);
    assert!(again > 40_000, "{again}");
}

#[test]
fn a_server_with_reports_does_not_send_again_what_the_tunnel_repairs() {
    let (plain_time, ..) = run(&plain(), 0.05);
    let (repaired_time, _, repaired_again, _) = run(&repaired(), 0.05);
    let (tecc_time, stats, tecc_again, _) = run(&tecc(), 0.05);
    assert!(stats.repair.resent > 100);
    assert!(
        tecc_again * 5 < repaired_again,
        "{tecc_again} {repaired_again}"
    );
    assert!(tecc_time < plain_time / 2.0 && tecc_time < repaired_time * 1.1);
}

#[test]
fn reports_share_packets_with_payloads() {
    let packets_beside_payloads = |room| {
        let mut stage = stage(&System { room, ..tecc() }, 0.1);
        let end = Instant::ZERO + Duration::from_secs(120);
        while stage.network.step_until(end) {}
        let sent = stage.network.totals(stage.proxy).packets_sent.get();
        let proxy = stage.network.application::<TunnelProxy>(stage.proxy);
        let stats = proxy.unwrap().stats();
        assert!(stats.reports > 400, "{stats:?}");
        let others = sent.saturating_sub(stats.payloads + stats.repair.resent);
        others as f64 / stats.reports as f64
    };
    let (without, with) = (
        packets_beside_payloads(0),
        packets_beside_payloads(REPORT_ROOM),
    );
    // When nothing waits, a report goes alone.
    assert!(without > 0.9 && with < 0.6, "{without} {with}");
}

#[test]
fn behind_a_queue_of_many_round_trips_losses_are_repaired_too() {
    // So many losses make the rate of the last mile low: what the server has sent by then waits for long.
    let (_, stats, ..) = run(&tecc(), 0.15);
    let repair = stats.repair;
    assert!(repair.resent > 500, "{repair:?}");
    assert!(repair.abandoned * 20 < repair.lost, "{repair:?}");
    assert!(
        stats.dropped * 200 < stats.payloads,
        "{} of {}",
        stats.dropped,
        stats.payloads
    );
    let longest = stats.queue_delays_ms.iter().copied().fold(0.0, f32::max);
    assert!(longest > 200.0, "{longest} ms");
}

#[test]
fn without_its_reports_tecc_is_repair_alone() {
    let losing = |report_loss| {
        let mut system = tecc();
        system.tunnel.report_loss = report_loss;
        run(&system, 0.05)
    };
    let (plain_time, ..) = run(&plain(), 0.05);
    let (half_time, stats, half_again, _) = losing(0.5);
    assert!(stats.reports > 40, "{stats:?}");
    let (none_time, _, none_again, _) = losing(1.0);
    assert!(half_time < plain_time && none_time < plain_time);
    // Nobody tells the server what the tunnel repairs.
    assert!(half_again < none_again, "{half_again} {none_again}");
}
