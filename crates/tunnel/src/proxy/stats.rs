//! Counters of a proxy.

use std::sync::atomic::{AtomicU64, Ordering};

use metrics::{Counter, Unit, counter, describe_counter};

use super::user_budget::Direction;

/// Values of the label `direction`.
const TO_CLIENT: &str = "to-client";
const TO_TARGET: &str = "to-target";

/// Describes the metrics of proxies to the recorder of the process, which has to be installed before proxies are made.
pub fn describe_metrics() {
    describe_counter!("swiftwater_tunnels_opened_total", "Tunnels opened");
    describe_counter!("swiftwater_tunnels_ended_total", "Tunnels that have ended");
    describe_counter!(
        "swiftwater_tunnels_refused_total",
        "Requests for tunnels that were refused"
    );
    let text = "Datagrams through tunnels, by direction";
    describe_counter!("swiftwater_tunnel_datagrams_total", text);
    let text = "UDP payload through tunnels, by direction";
    describe_counter!("swiftwater_tunnel_bytes_total", Unit::Bytes, text);
    let text = "Those of the datagrams that passed beside the connection, by direction";
    describe_counter!("swiftwater_tunnel_datagrams_forwarded_total", text);
    let text = "Datagrams that were sent to clients again because they were lost";
    describe_counter!("swiftwater_tunnel_datagrams_repaired_total", text);
    let text = "Datagrams that did not pass, by reason";
    describe_counter!("swiftwater_tunnel_datagrams_dropped_total", text);
}

/// What a proxy has done since its start.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
#[non_exhaustive]
pub struct ProxyStats {
    /// Tunnels opened.
    pub opened: u64,
    /// Tunnels that have ended.
    pub closed: u64,
    /// Requests refused.
    pub refused: u64,
    /// Datagrams from targets to clients.
    pub datagrams_to_clients: u64,
    /// Their UDP payload, bytes.
    pub bytes_to_clients: u64,
    /// Datagrams from clients to targets.
    pub datagrams_to_targets: u64,
    /// Their UDP payload, bytes.
    pub bytes_to_targets: u64,
    /// Those among the datagrams to clients that were forwarded beside the connection ([`forwarding`](crate::forwarding)).
    pub forwarded_to_clients: u64,
    /// Those among the datagrams to targets that were.
    pub forwarded_to_targets: u64,
    /// Datagrams that were sent to clients again because they were lost.
    pub repaired: u64,
    /// Datagrams from targets that were larger than what fits into a datagram for the client.
    pub dropped_large: u64,
    /// Datagrams that a queue or the system did not take: mostly because it was full.
    pub dropped_full: u64,
    /// Datagrams that were not sent to targets that had not answered.
    pub dropped_unanswered: u64,
    /// Datagrams from clients in a context that is not known, or with no context at all; what is no IP packet, or has
    /// no hops left.
    pub dropped_unknown: u64,
    /// Datagrams and IP packets beyond what their user may pass.
    pub dropped_over_limit: u64,
    /// IP packets that the scope of their tunnel, or the policy, does not permit, or with the address of another.
    pub dropped_forbidden: u64,
}

/// The counters, shared by the tunnels.
#[derive(Debug)]
pub(super) struct Counters {
    opened: Counted,
    closed: Counted,
    refused: Counted,
    datagrams_to_clients: Counted,
    bytes_to_clients: Counted,
    datagrams_to_targets: Counted,
    bytes_to_targets: Counted,
    forwarded_to_clients: Counted,
    forwarded_to_targets: Counted,
    repaired: Counted,
    dropped_large: Counted,
    dropped_full: Counted,
    dropped_unanswered: Counted,
    dropped_unknown: Counted,
    dropped_forbidden: Counted,
    dropped_over_limit: Counted,
}

/// A number, and the same as a metric of the process, which is the sum over all its proxies.
#[derive(Debug)]
struct Counted {
    value: AtomicU64,
    exported: Counter,
}

impl Counted {
    fn new(exported: Counter) -> Self {
        Self {
            value: AtomicU64::new(0),
            exported,
        }
    }

    fn add(&self, n: u64) {
        self.value.fetch_add(n, Ordering::Relaxed);
        self.exported.increment(n);
    }

    fn get(&self) -> u64 {
        self.value.load(Ordering::Relaxed)
    }
}

impl Default for Counters {
    fn default() -> Self {
        let datagrams = |direction| {
            Counted::new(counter!("swiftwater_tunnel_datagrams_total", "direction" => direction))
        };
        let bytes = |direction| {
            Counted::new(counter!("swiftwater_tunnel_bytes_total", "direction" => direction))
        };
        let forwarded = |direction| {
            Counted::new(
                counter!("swiftwater_tunnel_datagrams_forwarded_total", "direction" => direction),
            )
        };
        let dropped = |reason| {
            Counted::new(counter!("swiftwater_tunnel_datagrams_dropped_total", "reason" => reason))
        };
        Self {
            opened: Counted::new(counter!("swiftwater_tunnels_opened_total")),
            closed: Counted::new(counter!("swiftwater_tunnels_ended_total")),
            refused: Counted::new(counter!("swiftwater_tunnels_refused_total")),
            datagrams_to_clients: datagrams(TO_CLIENT),
            bytes_to_clients: bytes(TO_CLIENT),
            datagrams_to_targets: datagrams(TO_TARGET),
            bytes_to_targets: bytes(TO_TARGET),
            forwarded_to_clients: forwarded(TO_CLIENT),
            forwarded_to_targets: forwarded(TO_TARGET),
            repaired: Counted::new(counter!("swiftwater_tunnel_datagrams_repaired_total")),
            dropped_large: dropped("large"),
            dropped_full: dropped("full"),
            dropped_unanswered: dropped("unanswered"),
            dropped_unknown: dropped("unknown"),
            dropped_forbidden: dropped("forbidden"),
            dropped_over_limit: dropped("over-limit"),
        }
    }
}

/// Why a datagram was dropped.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Dropped {
    /// It does not fit into a datagram for the client.
    Large,
    /// A queue is full.
    Full,
    /// The target has not answered.
    Unanswered,
    /// Its context is not known, or it is no IP packet that can be forwarded.
    Unknown,
    /// Its addresses or its protocol are not permitted.
    Forbidden,
    /// Its user passed too much.
    OverLimit,
}

/// What became of datagrams to a client that came together.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Passed {
    datagrams: u64,
    bytes: u64,
    large: u64,
    full: u64,
    over_limit: u64,
}

impl Passed {
    /// Counts a payload that was sent, or not.
    pub(super) fn add(&mut self, payload: &[u8], sent: Result<(), Dropped>) {
        match sent {
            Ok(()) => {
                self.datagrams += 1;
                self.bytes += payload.len() as u64;
            }
            Err(Dropped::Large) => self.large += 1,
            Err(Dropped::OverLimit) => self.over_limit += 1,
            Err(_) => self.full += 1,
        }
    }
}

impl Counters {
    pub(super) fn on_open(&self) {
        self.opened.add(1);
    }

    pub(super) fn on_close(&self) {
        self.closed.add(1);
    }

    pub(super) fn on_refusal(&self) {
        self.refused.add(1);
    }

    pub(super) fn on_passed_to_client(&self, passed: &Passed) {
        self.datagrams_to_clients.add(passed.datagrams);
        self.bytes_to_clients.add(passed.bytes);
        for (dropped, count) in [
            (Dropped::Large, passed.large),
            (Dropped::Full, passed.full),
            (Dropped::OverLimit, passed.over_limit),
        ] {
            if count > 0 {
                self.on_drop(dropped, count);
            }
        }
    }

    pub(super) fn on_datagrams_to_target(&self, datagrams: usize, bytes: usize) {
        self.datagrams_to_targets.add(datagrams as u64);
        self.bytes_to_targets.add(bytes as u64);
    }

    pub(super) fn on_forwarded(&self, direction: Direction, datagrams: usize, bytes: usize) {
        let (all, size, forwarded) = match direction {
            Direction::ToClient => (
                &self.datagrams_to_clients,
                &self.bytes_to_clients,
                &self.forwarded_to_clients,
            ),
            Direction::ToTarget => (
                &self.datagrams_to_targets,
                &self.bytes_to_targets,
                &self.forwarded_to_targets,
            ),
        };
        all.add(datagrams as u64);
        size.add(bytes as u64);
        forwarded.add(datagrams as u64);
    }

    pub(super) fn on_repair(&self) {
        self.repaired.add(1);
    }

    pub(super) fn on_drop(&self, dropped: Dropped, count: u64) {
        let counter = match dropped {
            Dropped::Large => &self.dropped_large,
            Dropped::Full => &self.dropped_full,
            Dropped::Unanswered => &self.dropped_unanswered,
            Dropped::Unknown => &self.dropped_unknown,
            Dropped::Forbidden => &self.dropped_forbidden,
            Dropped::OverLimit => &self.dropped_over_limit,
        };
        counter.add(count);
    }

    pub(super) fn read(&self) -> ProxyStats {
        ProxyStats {
            opened: self.opened.get(),
            closed: self.closed.get(),
            refused: self.refused.get(),
            datagrams_to_clients: self.datagrams_to_clients.get(),
            bytes_to_clients: self.bytes_to_clients.get(),
            datagrams_to_targets: self.datagrams_to_targets.get(),
            bytes_to_targets: self.bytes_to_targets.get(),
            forwarded_to_clients: self.forwarded_to_clients.get(),
            forwarded_to_targets: self.forwarded_to_targets.get(),
            repaired: self.repaired.get(),
            dropped_large: self.dropped_large.get(),
            dropped_full: self.dropped_full.get(),
            dropped_unanswered: self.dropped_unanswered.get(),
            dropped_unknown: self.dropped_unknown.get(),
            dropped_forbidden: self.dropped_forbidden.get(),
            dropped_over_limit: self.dropped_over_limit.get(),
        }
    }
}
