//! Counters of a proxy.

use std::sync::atomic::{AtomicU64, Ordering};

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
    /// Datagrams that were sent to clients again because they were lost.
    pub repaired: u64,
    /// Datagrams from targets that were larger than what fits into a datagram for the client.
    pub dropped_large: u64,
    /// Datagrams that a queue or the system did not take: mostly because it was full.
    pub dropped_full: u64,
    /// Datagrams that were not sent to targets that had not answered.
    pub dropped_unanswered: u64,
    /// Datagrams from clients in a context that is not known, or with no context at all.
    pub dropped_unknown: u64,
}

/// The counters, shared by the tunnels.
#[derive(Debug, Default)]
pub(super) struct Counters {
    opened: AtomicU64,
    closed: AtomicU64,
    refused: AtomicU64,
    datagrams_to_clients: AtomicU64,
    bytes_to_clients: AtomicU64,
    datagrams_to_targets: AtomicU64,
    bytes_to_targets: AtomicU64,
    repaired: AtomicU64,
    dropped_large: AtomicU64,
    dropped_full: AtomicU64,
    dropped_unanswered: AtomicU64,
    dropped_unknown: AtomicU64,
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
    /// Its context is not known.
    Unknown,
}

impl Counters {
    pub(super) fn on_open(&self) {
        add(&self.opened, 1);
    }

    pub(super) fn on_close(&self) {
        add(&self.closed, 1);
    }

    pub(super) fn on_refusal(&self) {
        add(&self.refused, 1);
    }

    pub(super) fn on_datagram_to_client(&self, len: usize) {
        add(&self.datagrams_to_clients, 1);
        add(&self.bytes_to_clients, len as u64);
    }

    pub(super) fn on_datagram_to_target(&self, len: usize) {
        add(&self.datagrams_to_targets, 1);
        add(&self.bytes_to_targets, len as u64);
    }

    pub(super) fn on_repair(&self) {
        add(&self.repaired, 1);
    }

    pub(super) fn on_drop(&self, dropped: Dropped) {
        let counter = match dropped {
            Dropped::Large => &self.dropped_large,
            Dropped::Full => &self.dropped_full,
            Dropped::Unanswered => &self.dropped_unanswered,
            Dropped::Unknown => &self.dropped_unknown,
        };
        add(counter, 1);
    }

    pub(super) fn read(&self) -> ProxyStats {
        let get = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        ProxyStats {
            opened: get(&self.opened),
            closed: get(&self.closed),
            refused: get(&self.refused),
            datagrams_to_clients: get(&self.datagrams_to_clients),
            bytes_to_clients: get(&self.bytes_to_clients),
            datagrams_to_targets: get(&self.datagrams_to_targets),
            bytes_to_targets: get(&self.bytes_to_targets),
            repaired: get(&self.repaired),
            dropped_large: get(&self.dropped_large),
            dropped_full: get(&self.dropped_full),
            dropped_unanswered: get(&self.dropped_unanswered),
            dropped_unknown: get(&self.dropped_unknown),
        }
    }
}

fn add(counter: &AtomicU64, n: u64) {
    counter.fetch_add(n, Ordering::Relaxed);
}
