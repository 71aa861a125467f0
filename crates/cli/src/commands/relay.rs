//! `relay`: an emulated link between real UDP programs.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use serde::Serialize;
use swiftwater::link::{Counters, LinkConfig};
use swiftwater::net::relay::{Relay, RelayConfig, RelayCounters, RelayError};
use tokio::time::{MissedTickBehavior, interval_at};

use crate::cli::RelayArgs;
use crate::exit::{Exit, Failure};
use crate::output;
use crate::runtime::stop_requested;
use crate::table::{self, Table};
use crate::transport::{bind_failure, resolve};

/// Interval of counters that are not requested: practically infinite.
const NEVER: Duration = Duration::from_secs(365 * 24 * 60 * 60);

pub(crate) async fn run(args: RelayArgs) -> Result<(), Failure> {
    let links = args.links.links()?;
    let to = target(&args.to).await?;
    let description = format!(
        "up: {}; down: {}",
        describe(&links.up),
        describe(&links.down)
    );
    let config = RelayConfig {
        up: links.up,
        down: links.down,
        seed: args.seed,
        ..RelayConfig::new(args.listen, to)
    };
    let relay = Relay::start(config).map_err(|error| relay_failure(&error))?;
    let listen = relay.local_addr();
    if args.json {
        output::json(&RelayEvent::Listening { listen, to })?;
    } else {
        output::line(&format!("relaying UDP {listen} -> {to} ({description})"))?;
    }
    let start = Instant::now();
    let period = args.stats.unwrap_or(NEVER);
    let mut ticks = interval_at(tokio::time::Instant::now() + period, period);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Skip);
    let mut stop = std::pin::pin!(stop_requested());
    loop {
        tokio::select! {
            _ = ticks.tick() => report(&relay.counters(), start.elapsed(), args.json)?,
            stopped = &mut stop => {
                stopped?;
                break;
            }
        }
    }
    report(&relay.stop(), start.elapsed(), args.json)
}

/// The address of a `host:port`.
async fn target(text: &str) -> Result<SocketAddr, Failure> {
    let (host, port) = host_and_port(text)?;
    let addresses = resolve(&host, port).await?;
    // The relay uses one address; with names in test set-ups, usually IPv4 is intended.
    let v4 = addresses.iter().find(|address| address.is_ipv4());
    v4.or(addresses.first())
        .copied()
        .ok_or_else(|| Failure::new(Exit::UnknownHost, format_args!("unknown host '{host}'")))
}

/// Splits `host:port`, `[v6]:port`.
pub(crate) fn host_and_port(text: &str) -> Result<(String, u16), Failure> {
    let fail = || Failure::new(Exit::Usage, format_args!("'{text}' is not host:port"));
    let (host, port) = text.rsplit_once(':').ok_or_else(fail)?;
    let port: u16 = port
        .parse()
        .ok()
        .filter(|port| *port > 0)
        .ok_or_else(fail)?;
    let host = match host.strip_prefix('[') {
        Some(rest) => rest.strip_suffix(']').ok_or_else(fail)?,
        None if host.contains(':') => return Err(fail()),
        None => host,
    };
    if host.is_empty() {
        Err(fail())
    } else {
        Ok((host.to_owned(), port))
    }
}

fn relay_failure(error: &RelayError) -> Failure {
    match error {
        RelayError::Bind(error) => bind_failure(error),
        RelayError::Link { .. } => Failure::new(Exit::Usage, error),
        other => Failure::new(Exit::Failure, other),
    }
}

fn describe(link: &LinkConfig) -> String {
    format!(
        "{}, {} delay, queue {} {}, loss {}",
        link.rate,
        table::time(link.delay),
        link.queue,
        link.buffer,
        link.loss
    )
}

#[derive(Serialize)]
#[serde(tag = "event", rename_all = "snake_case")]
enum RelayEvent {
    Listening {
        listen: SocketAddr,
        to: SocketAddr,
    },
    Counters {
        seconds: f64,
        clients: usize,
        refused: u64,
        unsent: u64,
        up: Fates,
        down: Fates,
    },
}

/// Counters of the packets on one link.
#[derive(Serialize)]
struct Fates {
    packets: u64,
    bytes: u64,
    delivered_packets: u64,
    delivered_bytes: u64,
    dropped_queue: u64,
    dropped_aqm: u64,
    dropped_random: u64,
    dropped_mtu: u64,
    duplicated: u64,
    reordered: u64,
    corrupted: u64,
    ecn_marked: u64,
}

impl From<&Counters> for Fates {
    fn from(counters: &Counters) -> Self {
        Self {
            packets: counters.enqueued.packets.get(),
            bytes: counters.enqueued.bytes.get(),
            delivered_packets: counters.delivered.packets.get(),
            delivered_bytes: counters.delivered.bytes.get(),
            dropped_queue: counters.dropped_queue.packets.get(),
            dropped_aqm: counters.dropped_aqm.packets.get(),
            dropped_random: counters.dropped_random.packets.get(),
            dropped_mtu: counters.dropped_mtu.packets.get(),
            duplicated: counters.duplicated.packets.get(),
            reordered: counters.reordered.packets.get(),
            corrupted: counters.corrupted.packets.get(),
            ecn_marked: counters.ecn_marked.packets.get(),
        }
    }
}

fn report(counters: &RelayCounters, elapsed: Duration, json: bool) -> Result<(), Failure> {
    let (up, down) = (Fates::from(&counters.up), Fates::from(&counters.down));
    if json {
        let RelayCounters {
            clients,
            refused,
            unsent,
            ..
        } = *counters;
        let seconds = elapsed.as_secs_f64();
        return output::json(&RelayEvent::Counters {
            seconds,
            clients,
            refused,
            unsent,
            up,
            down,
        });
    }
    let mut table = Table::new([
        "after",
        "packets",
        "bytes",
        "delivered",
        "queue full",
        "by AQM",
        "lost",
        "too large",
        "twice",
        "late",
        "corrupt",
        "marked",
    ]);
    for (direction, fates) in [("up", up), ("down", down)] {
        table.row([
            format!("{} {direction}", table::time(elapsed)),
            fates.packets.to_string(),
            table::bytes(fates.bytes),
            fates.delivered_packets.to_string(),
            fates.dropped_queue.to_string(),
            fates.dropped_aqm.to_string(),
            fates.dropped_random.to_string(),
            fates.dropped_mtu.to_string(),
            fates.duplicated.to_string(),
            fates.reordered.to_string(),
            fates.corrupted.to_string(),
            fates.ecn_marked.to_string(),
        ]);
    }
    output::line(&table.render())
}
