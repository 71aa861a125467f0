//! What `relay` prints.

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use serde::Serialize;
use swiftwater::link::{Counters, LinkConfig};
use swiftwater::net::relay::RelayCounters;

use super::Leg;
use super::change::ChangeArg;
use crate::exit::Failure;
use crate::output;
use crate::table::{self, Table};

#[derive(Serialize)]
#[serde(tag = "event", rename_all = "snake_case")]
enum RelayEvent<'a> {
    Listening {
        #[serde(skip_serializing_if = "Option::is_none")]
        leg: Option<&'a str>,
        listen: SocketAddr,
        #[serde(skip_serializing_if = "Option::is_none")]
        from: Option<IpAddr>,
        to: SocketAddr,
    },
    Changed {
        #[serde(skip_serializing_if = "Option::is_none")]
        leg: Option<&'a str>,
        /// Since the first datagram of a client, as planned.
        seconds: f64,
        change: &'a str,
    },
    Counters {
        #[serde(skip_serializing_if = "Option::is_none")]
        leg: Option<&'a str>,
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

/// Prints events, as JSON or for people.
pub(super) struct Reports {
    pub(super) json: bool,
}

impl Reports {
    pub(super) fn listening(
        &self,
        leg: Option<&str>,
        listen: SocketAddr,
        from: Option<IpAddr>,
        to: SocketAddr,
        description: &str,
    ) -> Result<(), Failure> {
        if self.json {
            return output::json(&RelayEvent::Listening {
                leg,
                listen,
                from,
                to,
            });
        }
        let leg = leg.map(|leg| format!("{leg}: ")).unwrap_or_default();
        let from = from.map(|from| format!("{from} -> ")).unwrap_or_default();
        output::line(&format!(
            "{leg}relaying UDP {from}{listen} -> {to} ({description})"
        ))
    }

    pub(super) fn changed(&self, leg: Option<&str>, change: &ChangeArg) -> Result<(), Failure> {
        let seconds = change.at.as_secs_f64();
        let what = &change.text;
        if self.json {
            let change = what;
            return output::json(&RelayEvent::Changed {
                leg,
                seconds,
                change,
            });
        }
        let leg = leg.map(|leg| format!("{leg}: ")).unwrap_or_default();
        output::line(&format!("{leg}{what} after {seconds} s"))
    }

    /// The counters of all legs.
    pub(super) fn all(&self, legs: &[Leg], elapsed: Duration) -> Result<(), Failure> {
        for leg in legs {
            self.counters(leg.name.as_deref(), &leg.relay.counters(), elapsed)?;
        }
        Ok(())
    }

    pub(super) fn counters(
        &self,
        leg: Option<&str>,
        counters: &RelayCounters,
        elapsed: Duration,
    ) -> Result<(), Failure> {
        let (up, down) = (Fates::from(&counters.up), Fates::from(&counters.down));
        if self.json {
            return output::json(&RelayEvent::Counters {
                leg,
                seconds: elapsed.as_secs_f64(),
                clients: counters.clients,
                refused: counters.refused,
                unsent: counters.unsent,
                up,
                down,
            });
        }
        if let Some(leg) = leg {
            output::line(&format!("{leg}:"))?;
        }
        output::line(&fates_table([("up", up), ("down", down)], elapsed))
    }
}

fn fates_table(directions: [(&str, Fates); 2], elapsed: Duration) -> String {
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
    for (direction, fates) in directions {
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
    table.render()
}

/// A link in a few words.
pub(super) fn describe(link: &LinkConfig) -> String {
    format!(
        "{}, {} delay, queue {} {}, loss {}",
        link.rate,
        table::time(link.delay),
        link.queue,
        link.buffer,
        link.loss
    )
}
