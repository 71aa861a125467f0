//! quiche's HTTP/3 as server and client of the HTTP cases.

mod client;
mod link;
mod server;

use std::error::Error;

use clap::Parser;
use quiche::Config;
use quiche::h3::{self, Header};
use swiftwater_interop_peers_quiche::config;
use swiftwater_interop_program::http::{ALPN, Role};

/// The initial congestion window, packets: quiche needs space for all of a message's head at once, and its
/// usual 10 have none for the large ones.
const WINDOW_PACKETS: usize = 32;

/// Unidirectional streams that the peer may have open at once.
const UNI_STREAMS: u64 = 8;

/// Bytes that each of these may bring at first.
const UNI_WINDOW: u64 = 100_000;

#[derive(Parser)]
struct Command {
    #[command(subcommand)]
    role: Role,
}

fn main() -> Result<(), Box<dyn Error>> {
    match Command::parse().role {
        Role::H3Server(arguments) => server::run(&arguments),
        Role::H3Client(arguments) => client::run(&arguments),
    }
}

/// Settings of both sides.
fn http_config() -> quiche::Result<Config> {
    let mut config = config()?;
    config.set_application_protos(&[ALPN])?;
    config.set_initial_max_streams_uni(UNI_STREAMS);
    config.set_initial_max_stream_data_uni(UNI_WINDOW);
    config.set_initial_congestion_window_packets(WINDOW_PACKETS);
    Ok(config)
}

/// HTTP/3 on a connection that is ready for it.
fn http_over(connection: &mut quiche::Connection) -> h3::Result<h3::Connection> {
    h3::Connection::with_transport(connection, &h3::Config::new()?)
}

/// A field's value as text, if the field is there.
fn value<'a>(list: &'a [Header], name: &str) -> Option<&'a str> {
    use h3::NameValue;
    let field = list.iter().find(|field| field.name() == name.as_bytes())?;
    std::str::from_utf8(field.value()).ok()
}

/// How many short headers there are.
fn count_small(list: &[Header]) -> usize {
    use h3::NameValue;
    let prefix = swiftwater_interop_program::http::SMALL.as_bytes();
    list.iter()
        .filter(|field| field.name().starts_with(prefix))
        .count()
}

fn field(name: &str, value: &str) -> Header {
    Header::new(name.as_bytes(), value.as_bytes())
}
