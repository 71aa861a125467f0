//! Routers, the links between them in a chain or in parallel, and hosts on separate access links.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use swiftwater_link::LinkConfig;
use swiftwater_quic::{LocalAddress, ServerConfig, SocketId};
use swiftwater_sim::{HostConfig, HostId, InterfaceId, LinkId, Network, NodeId, SimError};
use swiftwater_units::Bandwidth;

use super::RunError;
use super::link_changes;
use crate::scenario::{FlowSpec, Setup};

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
        let routers: Vec<_> = (0..setup.routers()).map(|_| network.add_router()).collect();
        let mut forward = Vec::with_capacity(setup.links.len());
        let mut backward = Vec::with_capacity(setup.links.len());
        for (index, spec) in setup.links.iter().enumerate() {
            let (low, high) = setup.ends(index);
            let (low, high) = (routers[low], routers[high]);
            forward.push(network.add_link(low, high, referred(&spec.forward, setup.rtt))?);
            backward.push(network.add_link(high, low, referred(&spec.backward, setup.rtt))?);
        }
        for (number, change) in (0..).zip(setup.changes()) {
            let links = [forward[change.link], backward[change.link]];
            link_changes::apply(
                &mut network,
                number,
                change,
                &setup.links[change.link],
                links,
            );
        }
        Ok(Self {
            network,
            routers,
            forward,
            hosts: 0,
        })
    }

    /// Adds a host for `flow`, attached to one router or several; a server if there is a configuration for one.
    pub(super) fn add_host(
        &mut self,
        flow: &FlowSpec,
        routers: impl IntoIterator<Item = usize>,
        server: Option<Arc<ServerConfig>>,
    ) -> Result<Attached, SimError> {
        let port = if server.is_some() {
            SERVER_PORT
        } else {
            CLIENT_PORT
        };
        self.hosts += 1;
        let host = self.network.add_host(HostConfig {
            server,
            ..HostConfig::default()
        });
        // A quarter in each direction on each of the two access links.
        let access = LinkConfig::default()
            .rate(flow.access_rate)
            .delay(flow.extra_rtt / 4);
        let mut interfaces = Vec::new();
        for (path, router) in (0..).zip(routers) {
            // 10.0.0.1 and so on, on the first path.
            let address = 0x0a00_0000 + path * MAX_HOSTS + self.hosts;
            let address = (Ipv4Addr::from(address), port).into();
            let router = self.routers[router];
            let (up, down) = (access.clone(), access.clone());
            let interface = self.network.attach(host, address, router, up, down)?;
            interfaces.push((interface, address));
        }
        Ok(Attached { host, interfaces })
    }

    /// Adds a host for `flow` with one address that is attached to several routers.
    pub(super) fn add_host_behind(
        &mut self,
        flow: &FlowSpec,
        routers: impl IntoIterator<Item = usize>,
        server: Option<Arc<ServerConfig>>,
    ) -> Result<Attached, SimError> {
        let hub = self.network.add_router();
        for router in routers {
            let router = self.routers[router];
            self.network.add_link(hub, router, LinkConfig::default())?;
            self.network.add_link(router, hub, LinkConfig::default())?;
        }
        self.routers.push(hub);
        self.add_host(flow, [self.routers.len() - 1], server)
    }

    /// Adds a host that reaches only `other`, at an address of `other` whose datagrams the application there reads;
    /// returns that address.
    pub(super) fn add_behind(
        &mut self,
        other: &Attached,
    ) -> Result<(Attached, SocketAddr), SimError> {
        self.hosts += 1;
        let host = self.network.add_host(HostConfig::default());
        let network = &mut self.network;
        let (there, here) = (network.node(other.host), network.node(host));
        let up = network.add_link(here, there, LinkConfig::default())?;
        let down = network.add_link(there, here, LinkConfig::default())?;
        // 192.0.0.1 and so on, which no path has.
        let ip = Ipv4Addr::from(0xc000_0000 + self.hosts);
        let (local, own) = ((ip, SERVER_PORT).into(), (ip, CLIENT_PORT).into());
        let interface = network.add_interface(other.host, local, down, up)?;
        network.set_raw(interface);
        let interface = network.add_interface(host, own, up, down)?;
        let interfaces = vec![(interface, own)];
        Ok((Attached { host, interfaces }, local))
    }

    /// Lets the application of `host` read the datagrams to one of its interfaces.
    pub(super) fn read_raw(&mut self, host: &Attached, interface: usize) {
        self.network.set_raw(host.interfaces[interface].0);
    }

    /// The connections of `client` to `server` use all their interfaces, in pairs.
    pub(super) fn join(&mut self, client: &Attached, server: &Attached) {
        let pairs = client.interfaces.iter().zip(&server.interfaces);
        let paths: Vec<_> = pairs
            .map(|((interface, _), (_, remote))| (*interface, *remote))
            .collect();
        if paths.len() > 1 {
            self.network.set_paths(client.host, &paths);
        }
    }
}

/// A host in its place.
#[derive(Clone, Debug)]
pub(super) struct Attached {
    pub(super) host: HostId,
    /// With their addresses, at least one.
    interfaces: Vec<(InterfaceId, SocketAddr)>,
}

impl Attached {
    /// Its first address.
    pub(super) fn address(&self) -> SocketAddr {
        self.interfaces[0].1
    }

    /// Its addresses as the local ends of its connections.
    pub(super) fn local_addresses(&self) -> Vec<LocalAddress> {
        let sockets = (0..).map(SocketId);
        let interfaces = sockets.zip(&self.interfaces);
        let local = interfaces.map(|(socket, (_, address))| LocalAddress {
            socket,
            ip: Some(address.ip()),
        });
        local.collect()
    }
}

/// A link whose buffer, if it is in bandwidth-delay products, refers to the setup's round trip.
pub(super) fn referred(link: &LinkConfig, rtt: Duration) -> LinkConfig {
    let mut link = link.clone();
    link.bdp_rtt.get_or_insert(rtt);
    link
}

/// The links on one of a flow's routes, in no particular order, each with its forward and reverse direction for
/// that flow.
fn traversed(
    setup: &Setup,
    (enter, exit): (usize, usize),
) -> impl Iterator<Item = (&LinkConfig, &LinkConfig)> {
    let (low, high) = (enter.min(exit), enter.max(exit));
    let links = setup.links.iter().enumerate();
    let between = links.filter(move |(index, _)| {
        let ends = setup.ends(*index);
        low <= ends.0 && ends.1 <= high
    });
    between.map(move |(_, link)| {
        if enter < exit {
            (&link.forward, &link.backward)
        } else {
            (&link.backward, &link.forward)
        }
    })
}

/// One way of a flow's data through the network, access links included.
#[derive(Clone, Debug)]
pub(super) struct Route<'a> {
    /// The links in the direction of the data.
    pub(super) links: Vec<&'a LinkConfig>,
    /// Round-trip propagation delay: the constant delays of the links in both directions, and the flow's own
    /// addition.
    pub(super) rtt: Duration,
    /// The lowest mean rate.
    pub(super) rate: Bandwidth,
}

/// The routes of a flow, one for each path; paths over the same links are one.
pub(super) fn routes<'a>(setup: &'a Setup, flow: &FlowSpec) -> Vec<Route<'a>> {
    let mut ends = setup.routes(flow);
    ends.sort_unstable();
    ends.dedup();
    let routes = ends.into_iter().map(|ends| {
        let both: Duration = traversed(setup, ends)
            .map(|(there, back)| there.delay + back.delay)
            .sum();
        let links: Vec<_> = traversed(setup, ends).map(|(there, _)| there).collect();
        let rates = links.iter().filter_map(|link| link.rate.mean());
        Route {
            rtt: both + flow.extra_rtt,
            rate: rates.fold(flow.access_rate, Bandwidth::min),
            links,
        }
    });
    routes.collect()
}
