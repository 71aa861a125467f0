//! Routers in a chain, the links between them, and hosts on separate access links.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use swiftwater_link::LinkConfig;
use swiftwater_quic::ServerConfig;
use swiftwater_sim::{HostConfig, HostId, LinkId, Network, NodeId, SimError};

use super::RunError;
use crate::scenario::{FlowSpec, LinkSpec, Setup};

/// Most hosts of a run.
pub(super) const MAX_HOSTS: u32 = 1 << 20;

/// Port of servers.
const SERVER_PORT: u16 = 443;
/// Port of clients.
const CLIENT_PORT: u16 = 49_152;

/// The network of a run, without applications.
#[derive(Debug)]
pub(super) struct Topology {
    pub(super) network: Network,
    routers: Vec<NodeId>,
    /// In the direction to higher routers, in the order of the setup.
    pub(super) forward: Vec<LinkId>,
    hosts: u32,
}

impl Topology {
    pub(super) fn new(setup: &Setup, seed: u64) -> Result<Self, RunError> {
        let mut network = Network::new(seed);
        let routers: Vec<_> = (0..=setup.links.len())
            .map(|_| network.add_router())
            .collect();
        let mut forward = Vec::with_capacity(setup.links.len());
        for (spec, ends) in setup.links.iter().zip(routers.windows(2)) {
            let (low, high) = (ends[0], ends[1]);
            forward.push(network.add_link(low, high, referred(&spec.forward, setup.rtt))?);
            network.add_link(high, low, referred(&spec.backward, setup.rtt))?;
        }
        Ok(Self {
            network,
            routers,
            forward,
            hosts: 0,
        })
    }

    /// Adds a host for `flow` at a router; a server if there is a configuration for one.
    pub(super) fn add_host(
        &mut self,
        flow: &FlowSpec,
        router: usize,
        server: Option<Arc<ServerConfig>>,
    ) -> Result<(HostId, SocketAddr), SimError> {
        let port = if server.is_some() {
            SERVER_PORT
        } else {
            CLIENT_PORT
        };
        self.hosts += 1;
        // 10.0.0.1 and so on.
        let address = (Ipv4Addr::from(0x0a00_0000 + self.hosts), port).into();
        let host = self.network.add_host(HostConfig {
            server,
            ..HostConfig::default()
        });
        // A quarter in each direction on each of the two access links.
        let access = LinkConfig::default()
            .rate(flow.access_rate)
            .delay(flow.extra_rtt / 4);
        let router = self.routers[router];
        self.network
            .attach(host, address, router, access.clone(), access)?;
        Ok((host, address))
    }
}

/// A link whose buffer, if it is in bandwidth-delay products, refers to the setup's round trip.
pub(super) fn referred(link: &LinkConfig, rtt: Duration) -> LinkConfig {
    let mut link = link.clone();
    link.bdp_rtt.get_or_insert(rtt);
    link
}

/// The links on a flow's path, in no particular order, each with its forward and reverse direction
/// for that flow.
pub(super) fn traversed<'a>(
    links: &'a [LinkSpec],
    flow: &FlowSpec,
) -> impl Iterator<Item = (&'a LinkConfig, &'a LinkConfig)> + use<'a> {
    let is_forward = flow.enter < flow.exit;
    let range = flow.enter.min(flow.exit)..flow.enter.max(flow.exit);
    links[range].iter().map(move |link| {
        if is_forward {
            (&link.forward, &link.backward)
        } else {
            (&link.backward, &link.forward)
        }
    })
}

/// Round-trip propagation delay of a flow: the constant delays of its links in both directions, and
/// its own addition.
pub(super) fn base_rtt(links: &[LinkSpec], flow: &FlowSpec) -> Duration {
    let links: Duration = traversed(links, flow)
        .map(|(there, back)| there.delay + back.delay)
        .sum();
    links + flow.extra_rtt
}
