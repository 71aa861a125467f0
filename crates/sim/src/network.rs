//! The network and its event loop over virtual time.

use std::any::Any;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use rand_chacha::ChaCha20Rng;
use swiftwater_link::{Counters, Ecn, Link, LinkConfig, Packet, QueueStats, Tally};
use swiftwater_quic::{
    Connection, ConnectionHandle, Endpoint, EndpointConfig, EndpointStats, LocalAddress,
    PathAddress, ServerConfig, SocketId,
};
use swiftwater_tls::EndpointSecrets;
use swiftwater_units::Instant;

use crate::application::{Application, HostContext};
use crate::error::SimError;
use crate::event_queue::Task;
use crate::fabric::{Arrival, Fabric, FabricStats, InterfaceId, LinkId, Node, NodeId};
use crate::host::{Host, HostConfig};
use crate::log::{LogDetail, PacketLog};
use crate::path_opener::PathOpener;
use crate::seed::{Purpose, Seed};
use crate::tap::{Recording, Tap, TapDatagram, Verdict};
use crate::tcp;
use crate::tcp_table::TcpHandle;
use crate::totals::HostTotals;

/// Most tasks at one point of time; more mean that time does not advance.
const MAX_TASKS_AT_ONCE: u64 = 50_000_000;

/// A host.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct HostId(u32);

/// Treatment of datagrams to the address that a host had before [`Network::rebind`].
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum OldAddress {
    /// They are lost, as behind a NAT without the mapping.
    Lost,
    /// They still arrive, as behind one with the mapping.
    Kept,
}

/// Hosts, routers and links, and the present point of virtual time.
#[derive(Debug)]
pub struct Network {
    seed: Seed,
    fabric: Fabric,
    hosts: Vec<Host>,
    /// Node of each host.
    host_nodes: Vec<u32>,
}

impl Network {
    /// An empty network at time zero. All randomness comes from `seed`.
    pub fn new(seed: u64) -> Self {
        Self {
            seed: Seed(seed),
            fabric: Fabric::default(),
            hosts: Vec::new(),
            host_nodes: Vec::new(),
        }
    }

    /// Adds a host. It needs an interface ([`Network::attach`] or [`Network::add_interface`]) and
    /// usually an application.
    pub fn add_host(&mut self, config: HostConfig) -> HostId {
        let id = self.hosts.len() as u32;
        let endpoint = config
            .endpoint
            .clone()
            .unwrap_or_else(|| self.next_endpoint_config());
        let seed = self.seed.bytes(Purpose::Endpoint, u64::from(id));
        let rng = self.seed.rng(Purpose::Application, u64::from(id));
        self.hosts.push(Host::new(id, config, endpoint, seed, rng));
        self.host_nodes.push(self.fabric.add_node(Node::Host(id)));
        HostId(id)
    }

    /// The endpoint configuration that the next host has by default, for modification.
    pub fn next_endpoint_config(&self) -> EndpointConfig {
        let index = self.hosts.len() as u64;
        let key = EndpointSecrets::from_seed(self.seed.bytes(Purpose::EndpointKey, index));
        EndpointConfig::new(Arc::new(key))
    }

    /// Random numbers for the caller's traffic: those of flow number `index`. They depend on the seed
    /// only, not on the rest of the network.
    pub fn flow_rng(&self, index: u64) -> ChaCha20Rng {
        self.seed.rng(Purpose::Flow, index)
    }

    /// Adds a router. It forwards at once, along the fewest links.
    pub fn add_router(&mut self) -> NodeId {
        NodeId(self.fabric.add_node(Node::Router))
    }

    /// The node of a host.
    pub fn node(&self, host: HostId) -> NodeId {
        NodeId(self.host_nodes[host.0 as usize])
    }

    /// Adds a link, one way.
    pub fn add_link(
        &mut self,
        from: NodeId,
        to: NodeId,
        config: LinkConfig,
    ) -> Result<LinkId, SimError> {
        let index = self.fabric.links() as u64;
        let seed = self.seed.number(Purpose::Link, index);
        self.add_seeded_link(from, to, config, seed)
    }

    /// Adds a link, one way, with a seed of its own: it draws the same random numbers as any other link of
    /// that seed and configuration, in real time too.
    pub fn add_seeded_link(
        &mut self,
        from: NodeId,
        to: NodeId,
        config: LinkConfig,
        seed: u64,
    ) -> Result<LinkId, SimError> {
        let link = Link::new(config, seed, self.fabric.now)?;
        Ok(LinkId(self.fabric.add_link(link, from.0, to.0)))
    }

    /// Gives a host an address, reached over `downlink`; datagrams from there are sent over
    /// `uplink`. The first interface of a host is the default of its connections.
    pub fn add_interface(
        &mut self,
        host: HostId,
        address: SocketAddr,
        uplink: LinkId,
        downlink: LinkId,
    ) -> Result<InterfaceId, SimError> {
        let node = self.node(host).0;
        if self.fabric.edge(uplink.0).from != node || self.fabric.edge(downlink.0).to != node {
            return Err(SimError::WrongLink);
        }
        let id = self
            .fabric
            .add_interface(host.0, address, uplink.0, downlink.0)
            .ok_or(SimError::AddressTaken(address))?;
        self.hosts[host.0 as usize].core.interfaces.push(id);
        Ok(InterfaceId(id))
    }

    /// Lets the host or router at the start of an interface's downlink use it for all datagrams to the
    /// interface, whatever the link of the interface that they are sent from: a second path to a host of one
    /// address.
    pub fn set_direct(&mut self, interface: InterfaceId) {
        self.fabric.set_direct(interface.0);
    }

    /// Lets the application of the interface's host read the datagrams to it
    /// ([`Application::on_datagram`]), instead of the host's endpoint.
    pub fn set_raw(&mut self, interface: InterfaceId) {
        self.fabric.set_raw(interface.0);
    }

    /// Keeps one path open for each pair of an interface of `host` and a remote address, in every connection
    /// that the host opens from now on to the first of them; those beyond the first are opened once the peer
    /// permits, in this order, and again a second after they have ended (RFC 10069).
    pub fn set_paths(&mut self, host: HostId, paths: &[(InterfaceId, SocketAddr)]) {
        let addresses = paths.iter().map(|&(interface, remote)| {
            let ip = self.fabric.interface(interface.0).inner.ip();
            PathAddress {
                remote,
                local: LocalAddress {
                    socket: self.socket(interface),
                    ip: Some(ip),
                },
            }
        });
        let opener = PathOpener::new(addresses.collect());
        self.hosts[host.0 as usize].core.path_opener = opener;
    }

    /// The index of an interface among the local sockets of its host: 0 for the first one, and so on.
    pub fn socket(&self, interface: InterfaceId) -> SocketId {
        let host = self.fabric.interface(interface.0).host;
        self.hosts[host as usize].core.socket_of(interface.0)
    }

    /// Connects a host to a node (a router, usually) with a link each way, and gives it an address
    /// there.
    pub fn attach(
        &mut self,
        host: HostId,
        address: SocketAddr,
        node: NodeId,
        up: LinkConfig,
        down: LinkConfig,
    ) -> Result<InterfaceId, SimError> {
        let own = self.node(host);
        let uplink = self.add_link(own, node, up)?;
        let downlink = self.add_link(node, own, down)?;
        self.add_interface(host, address, uplink, downlink)
    }

    /// Installs a host's application; its [`Application::on_start`] is called when the network runs
    /// next.
    pub fn install(&mut self, host: HostId, application: impl Application) {
        self.hosts[host.0 as usize].application = Box::new(application);
        let task = Task::Start { host: host.0 };
        self.fabric.event_queue.push(self.fabric.now, task);
    }

    /// The application of a host, if it is an `A`.
    pub fn application<A: Application>(&self, host: HostId) -> Option<&A> {
        let application: &dyn Any = &*self.hosts[host.0 as usize].application;
        application.downcast_ref()
    }

    /// The application of a host, mutable, if it is an `A`.
    pub fn application_mut<A: Application>(&mut self, host: HostId) -> Option<&mut A> {
        let application: &mut dyn Any = &mut *self.hosts[host.0 as usize].application;
        application.downcast_mut()
    }

    /// Acts on a host, as its application would.
    pub fn with_host<R>(&mut self, host: HostId, act: impl FnOnce(&mut HostContext<'_>) -> R) -> R {
        let host = &mut self.hosts[host.0 as usize];
        let (_, mut context) = host.context(&mut self.fabric);
        let result = act(&mut context);
        host.list(&mut self.fabric);
        result
    }

    /// Acts on a host with its application, if that is an `A`.
    pub fn with_application<A: Application, R>(
        &mut self,
        host: HostId,
        act: impl FnOnce(&mut A, &mut HostContext<'_>) -> R,
    ) -> Option<R> {
        let host = &mut self.hosts[host.0 as usize];
        let (application, mut context) = host.context(&mut self.fabric);
        let application: &mut dyn Any = application;
        let result = act(application.downcast_mut()?, &mut context);
        host.list(&mut self.fabric);
        Some(result)
    }

    /// A connection of a host, to read and change; `None` if there is none. Resulting actions are
    /// performed when the network runs next.
    pub fn connection(
        &mut self,
        host: HostId,
        handle: ConnectionHandle,
    ) -> Option<&mut Connection> {
        let host = &mut self.hosts[host.0 as usize];
        host.core.slots.get_mut(handle)?;
        host.list(&mut self.fabric);
        host.core.slots.get_mut(handle)
    }

    /// A connection of a host, read-only.
    pub fn view(&self, host: HostId, handle: ConnectionHandle) -> Option<&Connection> {
        self.hosts[host.0 as usize].core.slots.get(handle)
    }

    /// A host's connections that are not drained.
    pub fn connections(&self, host: HostId) -> impl Iterator<Item = ConnectionHandle> {
        self.hosts[host.0 as usize].core.slots.handles()
    }

    /// Totals of all connections of a host, including drained ones.
    pub fn totals(&self, host: HostId) -> HostTotals {
        self.hosts[host.0 as usize].core.slots.totals()
    }

    /// A host's endpoint, read-only.
    pub fn endpoint(&self, host: HostId) -> &Endpoint {
        &self.hosts[host.0 as usize].core.endpoint
    }

    /// Statistics of a host's endpoint.
    pub fn endpoint_stats(&self, host: HostId) -> EndpointStats {
        self.hosts[host.0 as usize].core.endpoint.stats()
    }

    /// Accepts connections at a host from now on with this configuration, or none with `None`.
    pub fn set_server(&mut self, host: HostId, server: Option<Arc<ServerConfig>>) {
        let host = &mut self.hosts[host.0 as usize];
        host.config.1.clone_from(&server);
        host.core.endpoint.set_server_config(server);
    }

    /// Accepts TCP connections at a host from now on with these parameters, or none with `None`.
    pub fn set_tcp_server(&mut self, host: HostId, config: Option<tcp::Config>) {
        self.hosts[host.0 as usize].core.tcp.listen(config);
    }

    /// A TCP connection of a host, read-only; also one that is over.
    pub fn tcp(&self, host: HostId, handle: TcpHandle) -> Option<&tcp::Connection> {
        self.hosts[host.0 as usize].core.tcp.get(handle)
    }

    /// The TCP connections of a host, in the order in which they were opened or accepted.
    pub fn tcp_connections(&self, host: HostId) -> impl Iterator<Item = TcpHandle> {
        self.hosts[host.0 as usize].core.tcp.handles()
    }

    /// The host crashes and restarts at once: its connections are lost without CONNECTION_CLOSE,
    /// its endpoint has the same configuration and keys.
    pub fn restart(&mut self, host: HostId) {
        let state = &mut self.hosts[host.0 as usize];
        state.restarts += 1;
        let index = u64::from(host.0) | state.restarts << 32;
        state.restart(self.seed.bytes(Purpose::Endpoint, index));
    }

    /// NAT rebinding: from now on the datagrams from this interface have the source `address`, and
    /// those to `address` reach it. The host is not informed.
    pub fn rebind(
        &mut self,
        interface: InterfaceId,
        address: SocketAddr,
        old: OldAddress,
    ) -> Result<(), SimError> {
        let keep = old == OldAddress::Kept;
        if self.fabric.rebind(interface.0, address, keep) {
            Ok(())
        } else {
            Err(SimError::AddressTaken(address))
        }
    }

    /// Injects a datagram at a host now, as if it had come from `source` to the interface.
    pub fn inject(&mut self, interface: InterfaceId, source: SocketAddr, ecn: Ecn, data: &[u8]) {
        let to = self.fabric.interface(interface.0);
        let (host, destination) = (to.host, to.outer);
        let parcel = self
            .fabric
            .pool
            .parcel(source, destination, interface.0, data);
        let packet = Packet::with_ecn(parcel, ecn);
        self.hosts[host as usize].receive(&mut self.fabric, packet);
    }

    /// The outer address of an interface.
    pub fn address(&self, interface: InterfaceId) -> SocketAddr {
        self.fabric.interface(interface.0).outer
    }

    /// Passes every datagram offered to a link to `tap` first. Several taps are called in the order
    /// of their addition; one that drops or delays ends the sequence.
    pub fn tap(
        &mut self,
        link: LinkId,
        tap: impl FnMut(&mut TapDatagram<'_>) -> Verdict + 'static,
    ) {
        self.fabric.add_tap(link.0, Tap(Box::new(tap)));
    }

    /// Copies every datagram offered to a link from now on.
    pub fn record(&mut self, link: LinkId) -> Recording {
        let recording = Recording::default();
        self.tap(link, recording.tap());
        recording
    }

    /// Number of datagrams offered to a link so far.
    pub fn offered(&self, link: LinkId) -> u64 {
        self.fabric.offered(link.0)
    }

    /// Counters of the datagrams of a link.
    pub fn counters(&self, link: LinkId) -> &Counters {
        self.fabric.link(link.0).link.counters()
    }

    /// Datagrams in transit on a link.
    pub fn in_transit(&self, link: LinkId) -> Tally {
        self.fabric.link(link.0).link.in_transit()
    }

    /// The queue of a link, at present and so far.
    pub fn queue_stats(&self, link: LinkId) -> QueueStats {
        self.fabric.link(link.0).link.queue_stats(self.fabric.now)
    }

    /// Restarts the mean and the maxima of a link's queue.
    pub fn reset_queue_stats(&mut self, link: LinkId) {
        let now = self.fabric.now;
        self.fabric.link_mut(link.0).link.reset_queue_stats(now);
    }

    /// Counters of datagrams outside links.
    pub fn stats(&self) -> FabricStats {
        self.fabric.stats
    }

    /// Starts or restarts a packet log.
    pub fn start_log(&mut self, detail: LogDetail) {
        self.fabric.log = Some(PacketLog::new(detail));
    }

    /// The packet log, if one was started.
    pub fn log(&self) -> Option<&PacketLog> {
        self.fabric.log.as_ref()
    }

    /// The present time.
    pub fn now(&self) -> Instant {
        self.fabric.now
    }

    /// Advances to the next scheduled point of time and processes its tasks; false if there are
    /// none. Actions from outside since then are completed first.
    pub fn step(&mut self) -> bool {
        self.step_before(Instant::FAR_FUTURE)
    }

    /// As [`Network::step`], unless the next point of time is after `limit`: then the time becomes
    /// `limit`, and false is returned.
    pub fn step_until(&mut self, limit: Instant) -> bool {
        if self.step_before(limit) {
            return true;
        }
        self.fabric.now = self.fabric.now.max(limit);
        false
    }

    /// Processes everything up to `time`, which then is the present time.
    pub fn run_until(&mut self, time: Instant) {
        while self.step_until(time) {}
    }

    /// Runs for `duration`.
    pub fn run_for(&mut self, duration: Duration) {
        self.run_until(self.fabric.now + duration);
    }

    /// Lets hosts send pending packets at this time. Running the network does so automatically.
    pub fn settle(&mut self) {
        while let Some(host) = self.fabric.busy.pop_front() {
            let host = &mut self.hosts[host as usize];
            host.is_listed = false;
            host.drive(&mut self.fabric);
        }
    }

    fn step_before(&mut self, limit: Instant) -> bool {
        self.settle();
        let Some(at) = self.fabric.event_queue.next_at().filter(|at| *at <= limit) else {
            return false;
        };
        self.fabric.now = self.fabric.now.max(at);
        let mut tasks = 0;
        // First all tasks at this time, then all hosts concerned, once each; repeated if that
        // created further tasks at this time.
        while let Some(task) = self.fabric.event_queue.pop_due(self.fabric.now) {
            self.perform(task);
            tasks += 1;
            if self
                .fabric
                .event_queue
                .next_at()
                .is_none_or(|at| at > self.fabric.now)
            {
                self.settle();
            }
            assert!(tasks < MAX_TASKS_AT_ONCE, "virtual time does not advance");
        }
        self.fabric.stats.tasks += tasks;
        true
    }

    fn perform(&mut self, task: Task) {
        let fabric = &mut self.fabric;
        match task {
            Task::Link(link) => {
                while let Some(Arrival { host, packet }) = fabric.arrival(link) {
                    self.hosts[host as usize].receive(fabric, packet);
                }
            }
            Task::Release(place) => fabric.release(place),
            Task::Connection { host, slot } => {
                let now = fabric.now;
                let host = &mut self.hosts[host as usize];
                host.core
                    .slots
                    .expire(now, slot, host.id, &mut fabric.event_queue);
                host.list(fabric);
            }
            Task::Tcp { host, slot } => {
                let now = fabric.now;
                let host = &mut self.hosts[host as usize];
                host.core
                    .tcp
                    .expire(now, slot, host.id, &mut fabric.event_queue);
                host.list(fabric);
            }
            Task::Application { host, token } => {
                let host = &mut self.hosts[host as usize];
                let (application, mut context) = host.context(fabric);
                application.on_timer(&mut context, token);
                host.list(fabric);
            }
            Task::Paths { host } => {
                self.hosts[host as usize].reopen_paths(fabric);
            }
            Task::Start { host } => {
                let host = &mut self.hosts[host as usize];
                let (application, mut context) = host.context(fabric);
                application.on_start(&mut context);
                host.list(fabric);
            }
        }
    }
}
