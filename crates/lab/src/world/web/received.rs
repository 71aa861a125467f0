//! What the user's host knows of the round trip and of the server's losses, as the HTTP client of this project does: over QUIC from
//! packet numbers that did not come, over TCP from what Linux counts.

use std::time::Duration;

use swiftwater_quic::{Arrivals, Connection};
use swiftwater_select::Traffic;
use swiftwater_sim::HostContext;
use swiftwater_sim::apps::{Protocol, WebClient};
use swiftwater_sim::tcp::{self, ReceiverStats};
use swiftwater_units::PathId;

/// What has come on the present connections.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Received {
    pub(super) quic: Arrivals,
    pub(super) tcp: ReceiverStats,
}

fn quic<'a>(client: &WebClient, host: &'a HostContext<'_>) -> Option<&'a Connection> {
    host.view(client.quic().handle()?)
}

fn tcp<'a>(client: &WebClient, host: &'a HostContext<'_>) -> Option<&'a tcp::Connection> {
    host.view_tcp(client.tcp().handle()?)
}

impl Received {
    /// By now.
    pub(super) fn now(client: &WebClient, host: &HostContext<'_>) -> Self {
        Self {
            quic: quic(client, host).map_or_else(Arrivals::default, Connection::arrivals),
            tcp: tcp(client, host).map_or_else(ReceiverStats::default, tcp::Connection::received),
        }
    }

    /// What the server sent since `before` over a protocol, as far as is known.
    pub(super) fn traffic_since(&self, before: &Self, over: Protocol) -> Traffic {
        match over {
            Protocol::Quic => {
                let arrivals = self.quic.since(&before.quic);
                Traffic::of_packets(arrivals.expected.get(), arrivals.missing.get())
            }
            Protocol::Tcp => {
                let since = |count: fn(&ReceiverStats) -> u64| {
                    count(&self.tcp).saturating_sub(count(&before.tcp))
                };
                let out_of_order = since(|tcp| tcp.out_of_order);
                Traffic::of_segments(
                    since(|tcp| tcp.bytes),
                    since(|tcp| tcp.data_segments),
                    out_of_order,
                )
            }
        }
    }
}

/// The smoothed round trip of the present connection, at this end.
pub(super) fn smoothed_rtt(
    client: &WebClient,
    host: &HostContext<'_>,
    over: Protocol,
) -> Option<Duration> {
    match over {
        Protocol::Quic => {
            let path = quic(client, host)?.path_stats(PathId::ZERO)?;
            (!path.min_rtt.is_zero()).then_some(path.smoothed_rtt)
        }
        Protocol::Tcp => tcp(client, host)?.smoothed_rtt(),
    }
}
