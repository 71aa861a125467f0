//! Turns a plan into a network and two ends.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use swiftwater_congestion::{CubicConfig, NewRenoConfig};
use swiftwater_link::{Buffer, EcnThreshold, Jitter, LinkConfig};
use swiftwater_policies::schedulers::MinRttConfig;
use swiftwater_policies::{Policies, ReinjectorCatalogue};
use swiftwater_quic::crypto::{ClientCrypto, ServerCrypto};
use swiftwater_quic::{
    AckFrequencyConfig, EarlyData, EndpointConfig, MtuDiscovery, MultipathConfig,
    PreferredAddresses, RandomCids, RetryPolicy, TransportConfig,
};
use swiftwater_sim::{LogDetail, Pair};
use swiftwater_tls::MemorySessionStore;
use swiftwater_tls::null::{NullClient, NullServer};
use swiftwater_units::{Bandwidth, ByteCount, PacketCount, Side};

use super::plan::{Early, Plan, Settings, Wire};

/// Longer than any handshake takes whose packets get through at last: a packet that was held up for
/// minutes and is acknowledged then makes for probe timeouts of hours. Virtual time is cheap.
pub(super) const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(100_000_000);

pub(super) fn link(wire: &Wire) -> LinkConfig {
    let mut link = LinkConfig::default().delay(Duration::from_millis(wire.delay_ms));
    if wire.jitter_ms > 0 {
        link = link.jitter(Jitter::Uniform(Duration::from_millis(wire.jitter_ms)));
        link.jitter_reorders = true;
    }
    if let Some(rate) = wire.rate_kbps {
        link = link.rate(Bandwidth::from_kbps(rate));
        if let Some(packets) = wire.buffer_packets {
            link = link.buffer(Buffer::Packets(PacketCount::new(packets)));
        }
        if let Some(packets) = wire.mark_above {
            link = link.ecn_threshold(EcnThreshold::Packets(PacketCount::new(packets)));
        }
    }
    link.duplicate(f64::from(wire.duplicate) / 100.0)
}

/// The transport configuration of an end.
pub(super) fn configure(config: &mut TransportConfig, settings: &Settings) {
    config.max_concurrent_bidi_streams = settings.bidi_streams;
    config.max_concurrent_uni_streams = settings.uni_streams;
    config.stream_receive_window = ByteCount::new(settings.stream_window);
    config.receive_window = ByteCount::new(settings.window);
    config.max_stream_receive_window = ByteCount::new(settings.stream_window * settings.growth);
    config.max_receive_window = ByteCount::new(settings.window * settings.growth);
    config.send_window = ByteCount::new(settings.send_window);
    config.max_idle_timeout = settings.idle();
    config.handshake_timeout = HANDSHAKE_TIMEOUT;
    config.keep_alive_interval = settings.keep_alive_ms.map(Duration::from_millis);
    config.key_update_interval = settings.key_update_interval;
    config.max_datagram_frame_size = settings.datagram_frames;
    config.datagram_queue = ByteCount::new(settings.datagram_queue);
    config.active_connection_id_limit = settings.cid_limit;
    config.ack_eliciting_threshold = settings.ack_threshold;
    config.max_ack_delay = Duration::from_millis(settings.max_ack_delay_ms);
    config.initial_max_datagram_size = settings.packet_size;
    config.mtu_discovery = settings.search_up_to.map(|upper_bound| MtuDiscovery {
        upper_bound,
        ..MtuDiscovery::default()
    });
    config.packet_threshold = settings.packet_threshold;
    config.initial_rtt = Duration::from_millis(settings.initial_rtt_ms);
    config.initial_window = settings.initial_window.map(ByteCount::new);
    config.max_udp_payload_size = settings.largest;
    config.migration = settings.migration;
    config.ack_frequency = settings.ack_frequency.then(AckFrequencyConfig::default);
    config.handshake_pto_copies = settings.handshake_copies;
    config.handshake_retransmissions_before_timeout = settings.handshake_copies;
    config.receive_rate = settings.receive_rate_kbps.map(Bandwidth::from_kbps);
    config.pacing = settings.pacing;
    config.ecn = settings.ecn;
    config.policies = swiftwater_policies::by_name(settings.recovery).expect("a known policy");
    if let Some(versions) = settings.multipath {
        config.multipath = Some(MultipathConfig {
            versions,
            ..MultipathConfig::default()
        });
        // The default scheduler never uses a second path.
        let scheduler = Arc::new(MinRttConfig::default());
        let recovery = ReinjectorCatalogue::standard().get(settings.recovery);
        let policies = Policies::default().with_reinjector(recovery.expect("a known policy"));
        config.policies = Arc::new(policies.with_scheduler(scheduler));
    }
    config.controller = if settings.newreno {
        Arc::new(NewRenoConfig::default())
    } else {
        Arc::new(CubicConfig::default())
    };
}

fn configure_endpoint(config: &mut EndpointConfig, settings: &Settings) {
    config.versions = settings.versions.to_vec();
    config.cids = Some(Arc::new(RandomCids::new(settings.cid_len)));
}

/// The client's second address.
pub(super) fn second_address() -> SocketAddr {
    ([192, 0, 2, 200], 50_000).into()
}

/// The server's preferred address.
pub(super) fn preferred_address() -> SocketAddr {
    ([198, 51, 100, 77], 4_433).into()
}

/// State that the ends keep from an earlier connection; with it the client connects again.
fn crypto(plan: &Plan) -> (Arc<dyn ClientCrypto>, Arc<dyn ServerCrypto>) {
    let server = NullServer::new(["sim"]);
    let server: Arc<dyn ServerCrypto> = Arc::new(server.with_ticket(true).with_early_data(true));
    let client = NullClient::new(["sim"]).with_early_data(true);
    let sessions = Arc::new(MemorySessionStore::default());
    let client: Arc<dyn ClientCrypto> = Arc::new(client.with_sessions(sessions));
    let then = match plan.early {
        Early::Lowered => Settings::default(),
        _ => plan.ends[Side::Server as usize].clone(),
    };
    let mut builder = Pair::builder()
        .seed(!plan.seed)
        .crypto(Arc::clone(&client), Arc::clone(&server))
        .server_config(|config| configure(config, &then));
    for side in [Side::Client, Side::Server] {
        let settings = plan.ends[side as usize].clone();
        builder = builder.endpoint(side, move |config| configure_endpoint(config, &settings));
    }
    let mut first = builder.build().expect("a valid pair");
    // Without a common version it fails, and nothing is stored.
    if first.connect() {
        first.advance(Duration::from_secs(1));
    }
    (client, server)
}

/// The network and its two ends, at rest.
pub(super) fn build(plan: &Plan) -> Pair {
    let retry = if plan.retry {
        RetryPolicy::Always
    } else {
        RetryPolicy::Never
    };
    let early_data = match plan.early {
        Early::Accepted | Early::Lowered => EarlyData::Accept,
        Early::Stranger | Early::Rejected => EarlyData::Reject,
    };
    let [client, server] = &plan.ends;
    let half_rtt = server.half_rtt;
    let mut builder = Pair::builder()
        .seed(plan.seed)
        .links(link(&plan.wires[0]), link(&plan.wires[1]))
        .client_config(|config| configure(config, client))
        .server_config(|config| configure(config, server))
        .retry(retry)
        .server_settings(move |server| {
            server.retry_token_lifetime = HANDSHAKE_TIMEOUT;
            server.early_data = early_data;
            server.half_rtt = half_rtt;
        })
        .max_segments(plan.segments)
        .log(LogDetail {
            entries: false,
            content: true,
        });
    for side in [Side::Client, Side::Server] {
        let settings = plan.ends[side as usize].clone();
        builder = builder.endpoint(side, move |config| configure_endpoint(config, &settings));
    }
    if plan.early != Early::Stranger {
        let (client, server) = crypto(plan);
        builder = builder.crypto(client, server);
    }
    if plan.preferred {
        builder = builder.endpoint(Side::Server, |config| {
            config.preferred_address = PreferredAddresses::default().with(preferred_address());
        });
    }
    builder.build().expect("a valid pair")
}
