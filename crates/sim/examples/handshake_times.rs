//! How long handshakes take when datagrams are lost: the RFC's rules against tuned ones.
//!
//! `cargo run --release -p swiftwater-sim --example handshake_times -- [seeds] [round trip, ms]`.
//! Each figure is the time from the client's first packet until both ends are done, in ms of virtual
//! time: median, 95th and 99th percentile; and the datagrams that both ends sent for it, on average.

use std::sync::Arc;
use std::time::Duration;

use swiftwater_link::{LinkConfig, LossModel};
use swiftwater_quic::{Event, TransportConfig};
use swiftwater_sim::{Direction, Pair};
use swiftwater_tls::null::NullServer;
use swiftwater_units::Side;

/// Bytes of certificates, so that the server's flight has three datagrams.
const CHAIN: usize = 2_500;

type Tune = fn(&mut TransportConfig);

const VARIANTS: [(&str, Tune); 6] = [
    ("RFC 9002, no early repeats", |config| {
        config.handshake_pto_copies = 1;
        config.handshake_retransmissions_before_timeout = 0;
    }),
    ("one early repeat", |config| {
        config.handshake_pto_copies = 1;
        config.handshake_retransmissions_before_timeout = 1;
    }),
    ("two copies, one early repeat", |config| {
        config.handshake_pto_copies = 2;
        config.handshake_retransmissions_before_timeout = 1;
    }),
    ("PTO 750 ms, 2 copies, 3 early", |config| {
        config.initial_rtt = Duration::from_millis(250);
        config.handshake_pto_copies = 2;
        config.handshake_retransmissions_before_timeout = 3;
    }),
    ("PTO 500 ms, 2 copies, 3 early", |config| {
        config.initial_rtt = Duration::from_millis(250);
        config.initial_pto = Some(Duration::from_millis(500));
        config.handshake_pto_copies = 2;
        config.handshake_retransmissions_before_timeout = 3;
    }),
    ("same, 3 copies, back-off 1.5", |config| {
        config.initial_rtt = Duration::from_millis(250);
        config.initial_pto = Some(Duration::from_millis(500));
        config.handshake_pto_copies = 3;
        config.handshake_retransmissions_before_timeout = 3;
        config.pto_backoff = 1.5;
    }),
];

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let seeds: u64 = arguments.next().map_or(Ok(1000), |text| text.parse())?;
    let rtt: u64 = arguments.next().map_or(Ok(50), |text| text.parse())?;
    println!("round trip {rtt} ms, {seeds} seeds; p50 p95 p99 in ms, failed, datagrams");
    for percent in [1, 5, 10, 20, 30] {
        println!("loss {percent} % each way");
        for (name, tune) in VARIANTS {
            let mut times = Vec::new();
            let mut datagrams = 0;
            for seed in 0..seeds {
                let (took, sent) = handshake(seed, rtt, f64::from(percent) / 100.0, tune)?;
                times.extend(took);
                datagrams += sent;
            }
            let failed = seeds - times.len() as u64;
            times.sort_unstable();
            let at = |share: f64| {
                let index = (share * times.len() as f64) as usize;
                times.get(index).map_or(0, Duration::as_millis)
            };
            println!(
                "  {name:<30} {:>6} {:>6} {:>6}  {failed:>3}  {:>5.1}",
                at(0.5),
                at(0.95),
                at(0.99),
                datagrams as f64 / seeds as f64,
            );
        }
    }
    Ok(())
}

/// The time of one handshake, unless it fails, and the datagrams that it took.
fn handshake(
    seed: u64,
    rtt: u64,
    loss: f64,
    tune: Tune,
) -> Result<(Option<Duration>, u64), Box<dyn std::error::Error>> {
    let link = LinkConfig::default()
        .delay(Duration::from_micros(rtt * 500))
        .loss(LossModel::Bernoulli(loss));
    let mut pair = Pair::builder()
        .seed(seed)
        .link(link)
        .both_configs(|config| {
            tune(config);
            config.handshake_timeout = Duration::from_secs(60);
        })
        .server_settings(|server| {
            server.crypto = Arc::new(NullServer::new(["sim"]).with_chain_len(CHAIN));
        })
        .build()?;
    pair.start()?;
    let start = pair.now();
    let done = pair.run_until(|pair| {
        [Side::Client, Side::Server]
            .into_iter()
            .all(|side| pair.events(side).contains(&Event::Connected))
    });
    let sent = pair.offered(Direction::ToServer) + pair.offered(Direction::ToClient);
    Ok((done.then(|| pair.now() - start), sent))
}
