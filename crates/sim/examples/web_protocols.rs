//! Requests over QUIC and over TCP on the same networks: mean completion times.
//!
//! ```sh
//! cargo run --release -p swiftwater-sim --example web_protocols -- [REPEATS]
//! ```
//!
//! Responses are sent in the order of their requests over both. Each repeat is a new connection with a burst of six requests of 30 kB each, and a second burst on it
//! two seconds later.

use std::error::Error;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use swiftwater_congestion::CubicConfig;
use swiftwater_link::{Buffer, LinkConfig, LossModel};
use swiftwater_quic::{ClientConfig, ServerConfig, TransportConfig};
use swiftwater_sim::apps::{HttpsConfig, Protocol, WebClient, WebRequest, WebServer};
use swiftwater_sim::{Cipher, HostConfig, Network};
use swiftwater_units::{Bandwidth, ByteCount, Instant};

const BURST: usize = 6;
const RESPONSE: u64 = 30_000;
const LIMIT: Instant = Instant::from_millis(120_000);

fn main() -> Result<(), Box<dyn Error>> {
    let repeats = std::env::args()
        .nth(1)
        .map_or(Ok(30), |text| text.parse())?;
    println!("RTT | loss | rate | TCP, ms: first burst, second | QUIC | unfinished");
    for rtt in [20, 60, 150] {
        for loss in [0.0, 0.01, 0.03, 0.05] {
            for mbps in [2, 10, 50] {
                let tcp = mean(Protocol::Tcp, (rtt, loss, mbps), repeats)?;
                let quic = mean(Protocol::Quic, (rtt, loss, mbps), repeats)?;
                println!(
                    "{rtt} ms | {} % | {mbps} Mbit/s | {:.0} {:.0} | {:.0} {:.0} | {} {}",
                    loss * 100.0,
                    tcp[0],
                    tcp[1],
                    quic[0],
                    quic[1],
                    tcp[2],
                    quic[2]
                );
            }
        }
    }
    Ok(())
}

/// Mean times of both bursts, milliseconds, and the number of requests without a response.
fn mean(
    protocol: Protocol,
    (rtt_ms, loss, mbps): (u64, f64, u64),
    repeats: u64,
) -> Result<[f64; 3], Box<dyn Error>> {
    let rate = Bandwidth::from_mbps(mbps);
    let rtt = Duration::from_millis(rtt_ms);
    let buffer = ByteCount::new(rate.bytes_in(rtt).max(64_000));
    let mut link = LinkConfig::default()
        .rate(rate)
        .delay(rtt / 2)
        .buffer(Buffer::Bytes(buffer));
    if loss > 0.0 {
        link = link.loss(LossModel::Bernoulli(loss));
    }
    let burst = |millis| {
        let request = WebRequest {
            at: Instant::from_millis(millis),
            protocol,
            request_len: 0,
            response_len: RESPONSE,
        };
        vec![request; BURST]
    };
    let plan = [burst(0), burst(2_000)].concat();
    let mut sums = [0.0; 3];
    for seed in 1..=repeats {
        let exchanges = run(seed, &link, &plan)?;
        for (nth, duration) in exchanges.into_iter().enumerate() {
            match duration {
                Some(millis) => sums[nth / BURST] += millis / (BURST as f64 * repeats as f64),
                None => sums[2] += 1.0,
            }
        }
    }
    Ok(sums)
}

/// The time of each request, milliseconds.
fn run(
    seed: u64,
    link: &LinkConfig,
    plan: &[WebRequest],
) -> Result<Vec<Option<f64>>, Box<dyn Error>> {
    let (client_crypto, server_crypto) = Cipher::Null.crypto()?;
    let transport = TransportConfig {
        controller: Arc::new(CubicConfig::default()),
        ..TransportConfig::default()
    };
    let transport = Arc::new(transport);
    let mut network = Network::new(seed);
    let client = network.add_host(HostConfig::default());
    let server = network.add_host(HostConfig {
        server: Some(Arc::new(ServerConfig::new(
            server_crypto,
            Arc::clone(&transport),
        ))),
        ..HostConfig::default()
    });
    let (here, there) = (network.node(client), network.node(server));
    let up = network.add_link(here, there, link.clone())?;
    let down = network.add_link(there, here, link.clone())?;
    let remote = SocketAddr::from(([10, 0, 0, 2], 443));
    network.add_interface(client, ([10, 0, 0, 1], 49_152).into(), up, down)?;
    network.add_interface(server, remote, down, up)?;
    let https = HttpsConfig {
        in_order: true,
        ..HttpsConfig::default()
    };
    network.set_tcp_server(server, Some(https.tcp.clone()));
    network.install(server, WebServer::new(https.clone()));
    let quic = ClientConfig {
        crypto: client_crypto,
        transport,
    };
    network.install(client, WebClient::new(quic, https, remote, plan.to_vec()));
    while network.step_until(LIMIT) {
        let client: Option<&WebClient> = network.application(client);
        let done = client.map_or(0, |client| {
            let exchanges = client.exchanges();
            exchanges.filter(|each| each.1.finish.is_some()).count()
        });
        if done == plan.len() {
            break;
        }
    }
    let client: Option<&WebClient> = network.application(client);
    let exchanges = client.into_iter().flat_map(WebClient::exchanges);
    Ok(exchanges
        .map(|(_, exchange)| Some(exchange.duration()?.as_secs_f64() * 1e3))
        .collect())
}
