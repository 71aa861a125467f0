//! The same transfer by the simulated TCP.

use std::net::SocketAddr;

use swiftwater_sim::apps::{TcpExchange, TcpExchangeServer};
use swiftwater_sim::tcp::Config;
use swiftwater_sim::{HostConfig, Network};
use swiftwater_units::Instant;

use crate::Outcome;
use crate::cells::{Cell, REQUEST};

/// Headers of IPv4 and UDP, which the simulator's datagrams don't have in them.
const HEADERS: u32 = 28;

/// Time from the SYN to the last byte, milliseconds.
pub(crate) fn run(cell: &Cell, seed: u64) -> Outcome<f64> {
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
    network.set_tcp_server(server, Some(Config::default()));
    network.install(server, TcpExchangeServer::new());
    let lengths = (REQUEST, cell.bytes);
    let exchange = TcpExchange::new(Config::default(), remote, Instant::ZERO, lengths);
    network.install(client, exchange);
    while network.step() {
        let exchange = network.application::<TcpExchange>(client);
        if let Some(took) = exchange.and_then(|each| each.exchange().duration()) {
            return Ok(took.as_secs_f64() * 1e3);
        }
    }
    Err(format!("not finished: {cell:?}, seed {seed}").into())
}
