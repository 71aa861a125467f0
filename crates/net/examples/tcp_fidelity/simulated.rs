//! The same transfer by the simulated TCP.

use std::net::SocketAddr;

use swiftwater_sim::apps::{TcpExchange, TcpExchangeServer};
use swiftwater_sim::tcp::{Config, Sender, SenderStats};
use swiftwater_sim::{HostConfig, Network};
use swiftwater_units::Instant;

use crate::Outcome;
use crate::cells::{Cell, REQUEST};
use crate::kernel::Windows;

/// Headers of IPv4 and UDP, which the simulator's datagrams don't have in them.
const HEADERS: u32 = 28;

/// Microseconds between ticks of timers that are up to 2 s away, and a step through them.
const PHASES: u64 = 256_000;
const PHASE_STEP: u64 = 99_991;

/// What the simulator says about a transfer.
pub(crate) struct Simulated {
    /// Time from the SYN to the last byte, milliseconds.
    pub(crate) millis: f64,
    /// Time and bytes whenever the client has got more.
    pub(crate) progress: Vec<(f64, u64)>,
    /// Packets of the client.
    pub(crate) packets_up: u64,
    /// The server's counters.
    pub(crate) stats: SenderStats,
}

pub(crate) fn run(cell: &Cell, seed: u64, windows: Windows) -> Outcome<Simulated> {
    let config = match windows {
        Windows::Default => Config::default(),
        Windows::Large => Config {
            receive_window: 10 << 20,
            max_receive_window: 10 << 20,
            ..Config::default()
        },
    };
    let mut network = Network::new(seed);
    let client = network.add_host(HostConfig::default());
    let server = network.add_host(HostConfig::default());
    let (here, there) = (network.node(client), network.node(server));
    let link = cell.link(HEADERS);
    // The relay's seeds.
    let up = network.add_seeded_link(here, there, link.clone(), seed)?;
    let down = network.add_seeded_link(there, here, link, !seed)?;
    let remote = SocketAddr::from(([10, 0, 0, 2], 443));
    network.add_interface(client, ([10, 0, 0, 1], 49_152).into(), up, down)?;
    network.add_interface(server, remote, down, up)?;
    network.set_tcp_server(server, Some(config.clone()));
    network.install(server, TcpExchangeServer::new());
    // The kernel's transfers begin anywhere between two ticks of its coarser timers.
    let start = Instant::from_micros(seed * PHASE_STEP % PHASES);
    let lengths = (REQUEST, cell.bytes);
    let exchange = TcpExchange::new(config, remote, start, lengths);
    network.install(client, exchange);
    let mut progress = Vec::new();
    while network.step() {
        let Some(exchange) = network.application::<TcpExchange>(client) else {
            break;
        };
        let received = exchange.received();
        if progress.last().map_or(0, |last: &(f64, u64)| last.1) < received {
            let since = network.now().saturating_since(start);
            progress.push((since.as_secs_f64() * 1e3, received));
        }
        if let Some(took) = exchange.exchange().duration() {
            let connection = network.tcp_connections(server).next();
            let sender = connection
                .and_then(|handle| network.tcp(server, handle))
                .and_then(|connection| connection.sender());
            return Ok(Simulated {
                millis: took.as_secs_f64() * 1e3,
                progress,
                packets_up: network.counters(up).enqueued.packets.get(),
                stats: sender.map(Sender::stats).unwrap_or_default(),
            });
        }
    }
    Err(format!("not finished: {cell:?}, seed {seed}").into())
}
