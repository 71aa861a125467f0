//! A group of flows: its hosts, their applications, and their observable results.

use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use swiftwater_media::Cost;
use swiftwater_media::apps::Latencies;
use swiftwater_quic::{
    ClientConfig, Connection, RetryPolicy, ServerConfig, TransportConfig,
    crypto::{ClientCrypto, ServerCrypto},
};
use swiftwater_sim::apps::{
    BulkReceiver, Exchange, LiveViewer, Requester, Transfer, TransferReceiver, TransferSender,
    Viewing,
};
use swiftwater_sim::{HostId, HostTotals, Network, SimError};
use swiftwater_units::{Bandwidth, Instant, Side};

use super::RunError;
use super::arrivals::{poisson, up_to};
use super::measures::{StreamingViewing, VideoFacts};
use super::member::{self, MemberEnds};
use super::recovery_log::RepairLog;
use super::streaming::StreamingViewer;
use super::topology::Topology;
use super::transport;
use super::tunnel::Tunnels;
use super::video::{VideoServer, VideoViewer, viewing};
use crate::scenario::{App, FlowSpec, Setup};

/// Packet protection of both ends.
type Crypto = (Arc<dyn ClientCrypto>, Arc<dyn ServerCrypto>);

/// A group on its hosts.
#[derive(Debug)]
pub(crate) struct Group<'a> {
    pub(crate) spec: &'a FlowSpec,
    /// Hosts at which data enters, one for each member.
    pub(crate) senders: Vec<HostId>,
    /// Hosts at which it leaves; except for Poisson transfers one for each member.
    pub(crate) receivers: Vec<HostId>,
    /// When each member starts; of Poisson transfers the group.
    pub(super) starts: Vec<Instant>,
    /// All transfers of the group in the order of their start; a transfer's number is its index.
    pub(super) plan: Vec<Transfer>,
    /// Observations of loss recovery.
    pub(super) repairs: RepairLog,
    /// Their tunnels, if they have any.
    pub(super) tunnels: Tunnels,
    /// When flows without an end stop.
    stop: Instant,
    rate: Bandwidth,
    rtt: Duration,
}

/// Adds groups to a network.
#[derive(Debug)]
pub(super) struct Builder<'a> {
    setup: &'a Setup,
    crypto: Crypto,
    /// Number of flows so far, for their random numbers.
    flows: u64,
}

impl<'a> Builder<'a> {
    pub(super) fn new(setup: &'a Setup) -> Result<Self, SimError> {
        Ok(Self {
            setup,
            crypto: setup.cipher.crypto()?,
            flows: 0,
        })
    }

    pub(super) fn add(
        &mut self,
        topology: &mut Topology,
        spec: &'a FlowSpec,
    ) -> Result<Group<'a>, RunError> {
        let setup = self.setup;
        let end = Instant::ZERO + setup.duration;
        let mut group = Group {
            spec,
            senders: Vec::new(),
            receivers: Vec::new(),
            starts: Vec::new(),
            plan: Vec::new(),
            repairs: RepairLog::new(Instant::ZERO + setup.warmup, sender(&spec.app)),
            tunnels: Tunnels::default(),
            stop: spec.stop.map_or(end, |stop| end.min(Instant::ZERO + stop)),
            rate: transport::bottleneck(setup, spec),
            rtt: transport::base_rtt(setup, spec),
        };
        let mut transport = transport::config(setup, spec);
        transport.observer = Some(Arc::new(group.repairs.clone()));
        let viewer = transport::of_viewer(spec, &transport);
        let configs = self.configs(transport, viewer);
        if let App::Poisson { .. } = spec.app {
            self.add_poisson(topology, &mut group, &configs)?;
        } else {
            for member in 0..spec.count {
                self.add_member(topology, &mut group, member, &configs)?;
            }
        }
        Ok(group)
    }

    /// Both ends have the same settings, unless a `viewer` has some of its own.
    fn configs(
        &self,
        transport: TransportConfig,
        viewer: Option<TransportConfig>,
    ) -> (ClientConfig, Arc<ServerConfig>) {
        let transport = Arc::new(transport);
        let client = ClientConfig {
            crypto: self.crypto.0.clone(),
            transport: viewer.map_or_else(|| transport.clone(), Arc::new),
        };
        let server = ServerConfig {
            retry: RetryPolicy::Never,
            address_token_lifetime: Duration::ZERO,
            ..ServerConfig::new(self.crypto.1.clone(), transport)
        };
        (client, Arc::new(server))
    }

    fn add_member(
        &mut self,
        topology: &mut Topology,
        group: &mut Group<'_>,
        member: u32,
        (client, server): &(ClientConfig, Arc<ServerConfig>),
    ) -> Result<(), RunError> {
        let spec = group.spec;
        let mut rng = topology.network.flow_rng(self.flows);
        self.flows += 1;
        let start =
            Instant::ZERO + spec.start + spec.stagger * member + up_to(&mut rng, spec.start_jitter);
        let serves = sender(&spec.app) == Side::Server;
        let at = |serves: bool| serves.then(|| server.clone());
        let routes = self.setup.routes(spec);
        let (entries, exits) = (
            routes.iter().map(|ends| ends.0),
            routes.iter().map(|ends| ends.1),
        );
        let migrates = spec.paths.as_ref().is_some_and(|paths| paths.migrates);
        let sender = if migrates {
            topology.add_host_behind(spec, entries, at(serves))?
        } else {
            topology.add_host(spec, entries, at(serves))?
        };
        let mut local = None;
        let receiver = match &spec.tunnel {
            Some(tunnel) => {
                let parts = (spec, tunnel);
                let tunnels = &mut group.tunnels;
                let end = tunnels.add(topology, self.setup, parts, &sender, &self.crypto, start)?;
                local = Some(end.local);
                end.receiver
            }
            None => topology.add_host(spec, exits, at(!serves))?,
        };
        if migrates {
            // Its viewer knows the paths.
        } else if serves {
            topology.join(&receiver, &sender);
        } else {
            topology.join(&sender, &receiver);
        }
        let mut ends = MemberEnds::new(&sender, &receiver, migrates);
        // In a tunnel, a local address stands for the server.
        ends.from = local.unwrap_or(ends.from);
        member::install(topology, group, (member, start), ends, client.clone(), rng)?;
        group.senders.push(sender.host);
        group.receivers.push(receiver.host);
        group.starts.push(start);
        Ok(())
    }

    fn add_poisson(
        &mut self,
        topology: &mut Topology,
        group: &mut Group<'_>,
        (client, server): &(ClientConfig, Arc<ServerConfig>),
    ) -> Result<(), RunError> {
        let spec = group.spec;
        let App::Poisson {
            sizes,
            per_second,
            limit,
            receivers,
        } = &spec.app
        else {
            return Ok(());
        };
        let mut rng = topology.network.flow_rng(self.flows);
        self.flows += 1;
        let start = Instant::ZERO + spec.start + up_to(&mut rng, spec.start_jitter);
        for _ in 0..spec.count {
            let sender = topology.add_host(spec, [spec.enter], None)?;
            group.senders.push(sender.host);
        }
        let mut addresses = Vec::new();
        for _ in 0..*receivers {
            let receiver = topology.add_host(spec, [spec.exit], Some(server.clone()))?;
            topology
                .network
                .install(receiver.host, TransferReceiver::new());
            group.receivers.push(receiver.host);
            addresses.push(receiver.address());
        }
        let hosts = (group.senders.len(), group.receivers.len());
        let planned = poisson(rng, sizes, *per_second, *limit, start..group.stop, hosts);
        let mut plans = vec![Vec::new(); hosts.0];
        for (number, each) in (0..).zip(planned) {
            let transfer = Transfer {
                number,
                start: each.start,
                remote: addresses[each.receiver],
                bytes: each.bytes,
            };
            group.plan.push(transfer);
            plans[each.sender].push(transfer);
        }
        for (sender, plan) in group.senders.iter().zip(plans) {
            let app = TransferSender::new(client.clone(), plan);
            topology.network.install(*sender, app);
        }
        group.starts.push(start);
        Ok(())
    }
}

/// The end of a connection that sends the data: for viewers the server.
fn sender(app: &App) -> Side {
    match app {
        App::Live { .. }
        | App::Video(_)
        | App::ChunkedVideo(_)
        | App::ShortVideo(_)
        | App::Requests { .. } => Side::Server,
        _ => Side::Client,
    }
}

/// Bytes by purpose. Headers are all bytes that are neither of a frame nor of its copies: those of
/// QUIC, acknowledgements, the handshake; not those of IP and UDP.
fn cost(totals: &HostTotals) -> Cost {
    let repair = &totals.repair;
    let streams = repair.new_bytes + repair.replica_bytes + repair.retransmitted_bytes;
    Cost {
        source_bytes: repair.new_bytes,
        redundancy_bytes: repair.replica_bytes,
        retransmitted_bytes: repair.retransmitted_bytes,
        header_bytes: totals.bytes_sent.saturating_sub(streams),
    }
}

impl Group<'_> {
    pub(super) fn is_bulk(&self) -> bool {
        matches!(self.spec.app, App::Bulk)
    }

    pub(crate) fn is_poisson(&self) -> bool {
        matches!(self.spec.app, App::Poisson { .. })
    }

    /// Ideal duration of a transfer: at the bottleneck's rate, plus a round trip.
    pub(super) fn ideal(&self, bytes: u64) -> Duration {
        self.rate.time_to_send(bytes) + self.rtt
    }

    /// When the group starts.
    pub(super) fn start(&self) -> Instant {
        let first = self.starts.iter().copied().min();
        first.unwrap_or(Instant::FAR_FUTURE)
    }

    /// When flows without an end stop, at the latest.
    pub(super) fn stop(&self) -> Instant {
        self.stop
    }

    /// Whether the group has an end: all transfers complete, or a stop time.
    pub(super) fn has_end(&self) -> bool {
        match &self.spec.app {
            App::Transfer { .. } | App::ShortVideo(_) => true,
            App::ChunkedVideo(spec) => spec.player.session.is_some() || self.spec.stop.is_some(),
            App::Poisson { limit, .. } => limit.is_some() || self.spec.stop.is_some(),
            _ => self.spec.stop.is_some(),
        }
    }

    /// Whether it has reached it.
    pub(super) fn is_over(&self, network: &Network) -> bool {
        match self.spec.app {
            App::Transfer { .. } | App::Poisson { .. } => self.ended(network) >= self.plan.len(),
            App::ChunkedVideo(_) | App::ShortVideo(_) => self.receivers.iter().all(|host| {
                let viewer = network.application::<StreamingViewer>(*host);
                viewer.is_none_or(StreamingViewer::is_over)
            }),
            _ => network.now() >= self.stop,
        }
    }

    /// Transfers that are complete, or can't complete any more.
    fn ended(&self, network: &Network) -> usize {
        let complete = self.receivers.iter().map(|host| {
            let app = network.application::<TransferReceiver>(*host);
            app.map_or(0, |app| app.arrivals().len())
        });
        let failed = self.senders.iter().map(|host| {
            let app = network.application::<TransferSender>(*host);
            app.map_or(0, |app| app.failed().len())
        });
        complete.sum::<usize>() + failed.sum::<usize>()
    }

    /// When each transfer of the plan was complete.
    pub(super) fn finishes(&self, network: &Network) -> Vec<Option<Instant>> {
        let mut finishes = vec![None; self.plan.len()];
        for host in &self.receivers {
            let app = network.application::<TransferReceiver>(*host);
            for arrival in app.map_or(&[][..], TransferReceiver::arrivals) {
                if let Some(place) = finishes.get_mut(arrival.number as usize) {
                    *place = Some(arrival.finish);
                }
            }
        }
        finishes
    }

    /// Application bytes that a receiver got in order so far.
    pub(super) fn received(&self, network: &Network, receiver: usize) -> u64 {
        let host = self.receivers[receiver];
        if let Some(app) = network.application::<BulkReceiver>(host) {
            return app.bytes();
        }
        if let Some(app) = network.application::<TransferReceiver>(host) {
            return app.bytes();
        }
        if let Some(app) = network.application::<VideoViewer>(host) {
            return app.bytes();
        }
        if let Some(app) = network.application::<Requester>(host) {
            return app.bytes();
        }
        if let Some(app) = network.application::<StreamingViewer>(host) {
            return app.bytes();
        }
        let app = network.application::<LiveViewer>(host);
        app.map_or(0, LiveViewer::bytes)
    }

    /// What a receiver's application has to show so far: frames of video that are complete, of everything
    /// else bytes.
    pub(super) fn progress(&self, network: &Network, receiver: usize) -> u64 {
        match network.application::<VideoViewer>(self.receivers[receiver]) {
            Some(app) => app.arrivals().len() as u64,
            None => self.received(network, receiver),
        }
    }

    /// The requests of the members so far.
    pub(super) fn exchanges(&self, network: &Network) -> Vec<Exchange> {
        let apps =
            (self.receivers.iter()).filter_map(|host| network.application::<Requester>(*host));
        apps.flat_map(Requester::exchanges).copied().collect()
    }

    /// Application bytes received by some receivers.
    pub(crate) fn received_by(&self, network: &Network, receivers: Range<usize>) -> u64 {
        receivers
            .map(|receiver| self.received(network, receiver))
            .sum()
    }

    /// False if a byte differed from the sent one.
    pub(super) fn is_intact(&self, network: &Network) -> bool {
        self.receivers.iter().all(|host| {
            let bulk = network.application::<BulkReceiver>(*host);
            let transfers = network.application::<TransferReceiver>(*host);
            let viewer = network.application::<LiveViewer>(*host);
            let video = network.application::<VideoViewer>(*host);
            let requests = network.application::<Requester>(*host);
            let streaming = network.application::<StreamingViewer>(*host);
            bulk.is_none_or(BulkReceiver::is_intact)
                && transfers.is_none_or(TransferReceiver::is_intact)
                && viewer.is_none_or(LiveViewer::is_intact)
                && video.is_none_or(VideoViewer::is_intact)
                && streaming.is_none_or(StreamingViewer::is_intact)
                && requests.is_none_or(|app| {
                    let mut finished = app.exchanges().iter().filter(|each| each.finish.is_some());
                    finished.all(|each| each.verified)
                })
        })
    }

    /// Results of the viewers that started by now.
    pub(super) fn viewings(&self, network: &Network) -> Vec<Viewing> {
        let now = network.now();
        let viewers = self.receivers.iter();
        viewers
            .filter_map(|host| network.application::<LiveViewer>(*host))
            .map(|viewer| viewer.viewing(now))
            .filter(|viewing| viewing.start < now)
            .collect()
    }

    /// Results of the video viewers from `begin` to `end`, with the senders' `totals` of that time;
    /// `None` without video.
    pub(super) fn video(
        &self,
        network: &Network,
        (begin, end): (Instant, Instant),
        totals: &HostTotals,
    ) -> Option<VideoFacts> {
        let App::Video(spec) = &self.spec.app else {
            return None;
        };
        let pairs = self.senders.iter().zip(&self.receivers);
        let viewers = pairs.filter_map(|(server, viewer)| {
            let server = network.application::<VideoServer>(*server)?;
            let viewer = network.application::<VideoViewer>(*viewer)?;
            Some(viewing(spec, server, viewer, (begin, end)))
        });
        let viewers: Vec<_> = viewers.collect();
        Some(VideoFacts {
            delays: Latencies::of(viewers.iter().flat_map(|viewer| &viewer.delays).copied()),
            viewers,
            cost: cost(totals),
        })
    }

    /// Results of the viewers of video on demand so far.
    pub(super) fn streaming(&self, network: &Network) -> Vec<StreamingViewing> {
        let viewers = (self.receivers.iter())
            .filter_map(|host| network.application::<StreamingViewer>(*host));
        viewers.map(StreamingViewer::viewing).collect()
    }

    /// The open connections of a sender.
    pub(crate) fn connections<'n>(
        &self,
        network: &'n Network,
        sender: usize,
    ) -> impl Iterator<Item = &'n Connection> + use<'n> {
        let host = self.senders[sender];
        network
            .connections(host)
            .filter_map(move |handle| network.view(host, handle))
            .filter(|connection| !connection.is_closed())
    }

    /// Totals of all connections of the senders so far.
    pub(super) fn totals(&self, network: &Network) -> HostTotals {
        let mut sum = HostTotals::default();
        for host in &self.senders {
            sum += network.totals(*host);
        }
        sum
    }

    /// The active time of the group up to `end`, given the completion times of its transfers.
    pub(super) fn active(&self, end: Instant, finishes: &[Option<Instant>]) -> Range<Instant> {
        let own = if self.plan.is_empty() || !self.has_end() {
            Some(self.stop)
        } else {
            // `None` if one is missing.
            finishes
                .iter()
                .copied()
                .collect::<Option<Vec<_>>>()
                .and_then(|all| all.into_iter().max())
        };
        self.start()..own.map_or(end, |own| own.min(end))
    }
}
