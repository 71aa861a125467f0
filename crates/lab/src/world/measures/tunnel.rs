//! Measures of the tunnels of a group of flows.

use swiftwater_units::ByteCount;

use super::Column;
use super::facts::{GroupFacts, ratio};
use super::statistics::percentile;

/// What the proxies of a group did, over the whole run.
#[derive(Clone, Debug, Default)]
pub(in crate::world) struct TunnelFacts {
    /// Packets to the clients.
    pub(in crate::world) payloads: u64,
    /// Packets of those that passed beside the connections between proxies and clients.
    pub(in crate::world) forwarded: u64,
    /// Packets of those that found no room or waited for too long.
    pub(in crate::world) dropped: u64,
    /// Datagrams sent again.
    pub(in crate::world) resent: u64,
    /// Packets given up.
    pub(in crate::world) abandoned: u64,
    /// Bytes of streams that the proxies sent for the first time.
    pub(in crate::world) new_bytes: ByteCount,
    /// Bytes of the copies of them that recovery policies added.
    pub(in crate::world) replica_bytes: ByteCount,
    /// Reports.
    pub(in crate::world) reports: u64,
    /// Milliseconds that packets find waiting before them.
    pub(in crate::world) queue_delays_ms: Vec<f64>,
}

/// Of groups in tunnels.
pub(super) const TUNNEL: &[Column<GroupFacts>] = &[
    ("duplicates_share", |group| {
        let totals = &group.totals;
        ratio(
            totals.spurious_losses.get() as f64,
            totals.packets_sent.get() as f64,
        )
    }),
    ("tunnel_queue_mean_ms", |group| {
        super::statistics::mean(&group.tunnel.queue_delays_ms)
    }),
    ("tunnel_queue_p95_ms", |group| {
        percentile(group.tunnel.queue_delays_ms.clone(), 0.95)
    }),
    ("tunnel_resent_share", |group| {
        share(group, group.tunnel.resent)
    }),
    ("tunnel_abandoned_share", |group| {
        share(group, group.tunnel.abandoned)
    }),
    ("tunnel_dropped_share", |group| {
        share(group, group.tunnel.dropped)
    }),
    ("tunnel_reports_share", |group| {
        share(group, group.tunnel.reports)
    }),
];

/// Of groups in tunnels in forwarded mode.
pub(super) const FORWARDED: &[Column<GroupFacts>] = &[("tunnel_forwarded_share", |group| {
    share(group, group.tunnel.forwarded)
})];

/// Of groups in tunnels of a stream.
pub(super) const STREAM: &[Column<GroupFacts>] = &[("tunnel_redundancy_cost", |group| {
    let (replicas, new) = (group.tunnel.replica_bytes, group.tunnel.new_bytes);
    ratio(replicas.get() as f64, new.get() as f64)
})];

fn share(group: &GroupFacts, count: u64) -> Option<f64> {
    ratio(count as f64, group.tunnel.payloads as f64)
}
