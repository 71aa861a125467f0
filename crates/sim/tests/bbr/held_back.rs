//! Flows that loss recovery holds back: what they send then shows no more of the path than the
//! application or the window let leave.

use std::net::SocketAddr;
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use swiftwater_link::{Buffer, LinkConfig, LossModel};
use swiftwater_quic::{ClientConfig, RetryPolicy, ServerConfig, TransportConfig};
use swiftwater_sim::apps::{BulkReceiver, BurstSender};
use swiftwater_sim::{Cipher, HostConfig, HostId, Network};
use swiftwater_units::{Bandwidth, ByteCount, Instant};

use super::recorder::{Log, Recorded};
use super::{at, lone_flow};

/// Rate of the link, Mbit/s.
const LINK: u64 = 12;
/// Time from one frame to the next.
const FRAME: Duration = Duration::from_millis(40);
/// Rate at which the application writes a frame: far more than the link carries.
const WRITES: Bandwidth = Bandwidth::from_mbps(160);

/// A source that writes bursts to one stream, and its receiver, on a link with loss both ways.
struct Stream {
    network: Network,
    server: HostId,
    log: Log,
}

impl Stream {
    fn new(
        specification: &str,
        rtt: Duration,
        loss: f64,
        seed: u64,
        bursts: impl Iterator<Item = Range<Instant>> + 'static,
    ) -> Self {
        let (controller, log) = Recorded::new(specification);
        let (client_crypto, server_crypto) = Cipher::Null.crypto().unwrap();
        let plenty = ByteCount::new(64 << 20);
        let transport = TransportConfig {
            send_window: plenty,
            stream_receive_window: plenty,
            max_stream_receive_window: plenty,
            receive_window: plenty,
            max_receive_window: plenty,
            ..TransportConfig::default()
        };
        let server_config = ServerConfig {
            retry: RetryPolicy::Never,
            ..ServerConfig::new(server_crypto, Arc::new(transport.clone()))
        };
        let config = ClientConfig {
            crypto: client_crypto,
            transport: Arc::new(TransportConfig {
                controller,
                ..transport
            }),
        };
        let rate = Bandwidth::from_mbps(LINK);
        let link = LinkConfig::default()
            .rate(rate)
            .delay(rtt / 2)
            .buffer(Buffer::Bytes(rate.bytes_in(rtt).into()))
            .loss(LossModel::Bernoulli(loss));
        let mut network = Network::new(seed);
        let client = network.add_host(HostConfig::default());
        let server = network.add_host(HostConfig {
            server: Some(Arc::new(server_config)),
            ..HostConfig::default()
        });
        let remote: SocketAddr = "10.0.0.2:443".parse().unwrap();
        let nodes = (network.node(client), network.node(server));
        let there = network.add_link(nodes.0, nodes.1, link.clone()).unwrap();
        let back = network.add_link(nodes.1, nodes.0, link).unwrap();
        let local = "10.0.0.1:5000".parse().unwrap();
        network.add_interface(client, local, there, back).unwrap();
        network.add_interface(server, remote, back, there).unwrap();
        let sender = BurstSender::new(config, remote, Instant::ZERO, Some(WRITES), bursts);
        network.install(client, sender);
        network.install(server, BulkReceiver::new());
        Self {
            network,
            server,
            log,
        }
    }

    /// Bytes that have arrived.
    fn received(&self) -> u64 {
        let receiver = self.network.application::<BulkReceiver>(self.server);
        receiver.unwrap().bytes()
    }

    /// The least of `detail` from `from` on.
    fn least(&self, detail: &str, from: Instant) -> f64 {
        let entries = self.log.entries();
        let late = entries.iter().filter(|entry| entry.now >= from);
        late.map(|entry| entry.detail(detail))
            .fold(f64::INFINITY, f64::min)
    }
}

/// Frames of a stream of `mbps` from `start` on: each is written at once.
fn frames(mbps: f64, start: Duration) -> impl Iterator<Item = Range<Instant>> {
    let write = FRAME.mul_f64(mbps / WRITES.as_mbps_f64());
    (0_u32..).map(move |nth| {
        let at = Instant::ZERO + start + FRAME * nth;
        at..at + write
    })
}

/// Pacing rate outside `ProbeRTT`, and estimate of the bandwidth, at least twice the stream's.
const ENOUGH: f64 = 2.0 * 4e6;

/// Twelve seconds of a stream of 4 Mbit/s over 60 ms; the least pacing rate in the last two.
fn paced(specification: &str, loss: f64, seed: u64) -> f64 {
    let rtt = Duration::from_millis(60);
    let frames = frames(4.0, Duration::ZERO);
    let mut stream = Stream::new(specification, rtt, loss, seed, frames);
    stream.network.run_until(at(12_000));
    let entries = stream.log.entries();
    let late = entries
        .iter()
        .filter(|entry| entry.now >= at(10_000) && entry.state != "probe_rtt");
    late.map(|entry| entry.pacing).fold(f64::INFINITY, f64::min)
}

#[test]
fn random_loss_does_not_slow_down_a_stream_that_never_filled_the_link() {
    for name in ["bbr1", "bbr1-xquic"] {
        for loss in [0.01, 0.02, 0.05] {
            for seed in 1..=5 {
                let paced = paced(name, loss, seed);
                assert!(paced >= ENOUGH, "{name}, {loss}, seed {seed}: {paced:.2e}");
            }
        }
        // As in Linux, rounds of conserved packets end Startup, and the stream's rate is the estimate.
        let linux = format!("{name}:recovery_counts=on");
        let least = (1..=5).map(|seed| paced(&linux, 0.05, seed));
        assert!(least.fold(f64::INFINITY, f64::min) < ENOUGH / 2.0);
    }
}

/// The link is filled for three seconds; from the fourth on a stream of 4 Mbit/s crosses 60 ms. The
/// least estimate after ten seconds of it, and the number of stays in `ProbeRTT`.
fn remembered(specification: &str, loss: f64, seed: u64) -> (f64, usize) {
    let rtt = Duration::from_millis(60);
    let filling = Bandwidth::from_mbps(LINK).bytes_in(Duration::from_secs(3));
    let filling = Instant::ZERO..Instant::ZERO + WRITES.time_to_send(filling);
    let bursts = std::iter::once(filling).chain(frames(4.0, Duration::from_secs(4)));
    let mut stream = Stream::new(specification, rtt, loss, seed, bursts);
    stream.network.run_until(at(16_000));
    let stays = stream.log.visits("probe_rtt").len();
    (stream.least("max_bandwidth_bps", at(14_000)), stays)
}

#[test]
fn random_loss_does_not_make_a_stream_forget_the_link() {
    for name in ["bbr1", "bbr1-xquic"] {
        for loss in [0.01, 0.02, 0.05] {
            for seed in 1..=5 {
                let (estimate, _) = remembered(name, loss, seed);
                assert!(
                    estimate >= ENOUGH,
                    "{name}, {loss}, seed {seed}: {estimate:.2e}"
                );
            }
        }
        let linux = format!("{name}:recovery_counts=on");
        let least = (1..=5).map(|seed| remembered(&linux, 0.05, seed).0);
        assert!(least.fold(f64::INFINITY, f64::min) < ENOUGH);
    }
}

#[test]
fn what_probe_rtt_lets_leave_does_not_make_a_stream_forget_the_link() {
    for name in ["bbr1", "bbr1-xquic", "bbr2", "bbr3"] {
        let (estimate, stays) = remembered(name, 0.0, 1);
        assert!(stays > 0, "{name}");
        assert!(estimate >= ENOUGH, "{name}: {estimate:.2e}");
    }
}

/// Bytes that arrive within a minute of a stream of 4 Mbit/s over one second and 3 % of loss.
fn arrived(specification: &str, seed: u64) -> u64 {
    let rtt = Duration::from_secs(1);
    let frames = frames(4.0, Duration::ZERO);
    let mut stream = Stream::new(specification, rtt, 0.03, seed, frames);
    stream.network.run_until(at(60_000));
    stream.received()
}

#[test]
fn no_stream_on_a_long_lossy_path_is_left_at_a_fraction_of_its_rate() {
    let mut all: Vec<_> = (1..=60).map(|seed| arrived("bbr1", seed)).collect();
    all.sort_unstable();
    let median = all[all.len() / 2] as f64;
    let least = all[0] as f64 / median;
    assert!(least >= 0.8, "{least:.2} of the median");
    // As in Linux, three rounds of conserved packets end Startup at what had been reached by then.
    let linux = arrived("bbr1:recovery_counts=on", 37) as f64 / median;
    assert!(linux < 0.5, "{linux:.2} of the median");
}

/// Packets that a lone flow of five seconds drops at a buffer of `bdp`.
fn dropped(specification: &str, bdp: f64) -> u64 {
    let (mut dumbbell, log) = lone_flow(specification, 20, 5);
    dumbbell.buffer = Buffer::Bdp(bdp);
    let dropped = dumbbell.run().unwrap().queue.dropped_packets;
    let last = log.entries().pop().unwrap();
    assert!(last.detail("full_pipe") > 0.5, "{specification} at {bdp}");
    dropped
}

#[test]
fn startup_overfills_a_small_buffer_no_longer_than_in_linux() {
    for bdp in [0.05, 0.1, 0.2, 0.43, 1.0, 1.5] {
        let linux = dropped("bbr1:recovery_counts=on", bdp);
        let here = dropped("bbr1", bdp);
        assert!(here <= linux * 3 / 2, "{here}, {linux} at {bdp}");
    }
}
