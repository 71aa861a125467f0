//! Flows that share one bottleneck.
//!
//! ```text
//! sender 0 --\                               /-- receiver 0
//! sender 1 ---- router == bottleneck == router -- receiver 1
//! sender n --/                               \-- receiver n
//! ```
//!
//! Every flow has its own sender and receiver, on fast access links. Queue, random loss and ECN
//! marks are those of the bottleneck in the direction to the receivers; the reverse direction has
//! its rate, but an unlimited queue and no loss.
//!
//! With [`Dumbbell::paths`] there are several bottlenecks beside one another, and every flow uses all of them
//! over one connection (RFC 10069).

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use rand_core::Rng;
use swiftwater_congestion::ControllerFactory;
use swiftwater_link::{Buffer, EcnThreshold, Jitter, LinkConfig, LossModel, QueueDiscipline, Rate};
use swiftwater_quic::{
    ClientConfig, ConnectionStats, MultipathConfig, RetryPolicy, ServerConfig, TransportConfig,
};
use swiftwater_units::{Bandwidth, ByteCount, Instant};

use crate::apps::{BulkReceiver, BulkSender};
use crate::cipher::Cipher;
use crate::error::SimError;
use crate::fabric::{LinkId, NodeId};
use crate::host::HostConfig;
use crate::network::{HostId, Network};
use crate::report::{FlowReport, PathReport, QueueReport, Report};
use crate::seed::{Purpose, Seed};

/// Most flows of a run: limit of the address plan.
const MAX_FLOWS: usize = 60_000;

/// Most paths of a flow.
const MAX_PATHS: usize = 8;

/// Bytes of IPv4 and UDP headers.
const HEADERS: u16 = 28;

/// One flow of a [`Dumbbell`].
#[derive(Clone, Debug)]
pub struct FlowSpec {
    /// Its congestion controller.
    pub controller: Arc<dyn ControllerFactory>,
    /// When it starts, before the random part ([`Dumbbell::start_jitter`]).
    pub start: Duration,
    /// Bytes to send; `None` sends until the end of the run.
    pub bytes: Option<u64>,
    /// Round-trip time in addition to the run's, on its access links.
    pub extra_rtt: Duration,
}

impl FlowSpec {
    /// An endless flow from the start, with the controller of this name and its default parameters.
    pub fn new(controller: &str) -> Result<Self, SimError> {
        Ok(Self {
            controller: swiftwater_congestion::by_name(controller)?,
            start: Duration::ZERO,
            bytes: None,
            extra_rtt: Duration::ZERO,
        })
    }

    /// Sends so many bytes.
    #[must_use]
    pub fn bytes(mut self, bytes: u64) -> Self {
        self.bytes = Some(bytes);
        self
    }

    /// Starts this long after the run.
    #[must_use]
    pub fn start(mut self, start: Duration) -> Self {
        self.start = start;
        self
    }

    /// Adds to the run's round-trip time.
    #[must_use]
    pub fn extra_rtt(mut self, extra_rtt: Duration) -> Self {
        self.extra_rtt = extra_rtt;
        self
    }
}

/// One of several paths of a [`Dumbbell`].
#[derive(Clone, Debug)]
pub struct DumbbellPath {
    /// Rate, constant or a trace.
    pub rate: Rate,
    /// Round-trip propagation delay, half of it each way.
    pub rtt: Duration,
    /// Size of its queue.
    pub buffer: Buffer,
    /// Queue discipline.
    pub queue: QueueDiscipline,
    /// Random loss after the queue.
    pub loss: LossModel,
    /// Random delay after the queue.
    pub jitter: Jitter,
    /// Queue above which the link, if it is drop-tail, marks ECN-capable packets.
    pub ecn_threshold: Option<EcnThreshold>,
}

impl DumbbellPath {
    fn link(&self) -> LinkConfig {
        let mut link = LinkConfig::default()
            .rate(self.rate.clone())
            .delay(self.rtt / 2)
            .buffer(self.buffer)
            .queue(self.queue)
            .bdp_rtt(self.rtt)
            .loss(self.loss)
            .jitter(self.jitter);
        link.ecn_threshold = self.ecn_threshold;
        link
    }

    fn way_back(&self) -> LinkConfig {
        LinkConfig::default()
            .rate(self.rate.clone())
            .delay(self.rtt / 2)
    }

    /// Most bytes in flight of a flow: path and queue full; `unknown` for a queue without limit.
    fn window(&self, rtt: Duration, dumbbell: &Dumbbell, unknown: ByteCount) -> ByteCount {
        let path = match &self.rate {
            Rate::Unlimited => dumbbell.access_rate.bytes_in(rtt),
            // A trace may exceed its mean for a while.
            rate => rate.mean().map_or(0, |mean| mean.bytes_in(rtt)) * 4,
        };
        let queue = match self.link().resolved_buffer() {
            Ok(Buffer::Bytes(bytes)) => bytes,
            Ok(Buffer::Packets(packets)) => {
                ByteCount::new(u64::from(dumbbell.datagram_size)).times(packets.get())
            }
            _ => unknown,
        };
        ByteCount::new(path) + queue
    }
}

/// A run with a shared bottleneck: set the fields, then [`Dumbbell::run`].
#[derive(Clone, Debug)]
pub struct Dumbbell {
    /// The flows.
    pub flows: Vec<FlowSpec>,
    /// Rate of the bottleneck, constant or a trace; default 100 Mbit/s.
    pub rate: Rate,
    /// Round-trip propagation delay of the path, half of it each way, all of it on the bottleneck;
    /// default 30 ms.
    pub rtt: Duration,
    /// Size of the bottleneck's queue; default one bandwidth-delay product.
    pub buffer: Buffer,
    /// Queue discipline of the bottleneck; default drop-tail.
    pub queue: QueueDiscipline,
    /// Random loss after the bottleneck's queue; default none.
    pub loss: LossModel,
    /// Random delay after the bottleneck; default none.
    pub jitter: Jitter,
    /// Queue above which the bottleneck, if it is drop-tail, marks ECN-capable packets; default
    /// never.
    pub ecn_threshold: Option<EcnThreshold>,
    /// Rate of the access links; default 1 Gbit/s. Their queues are unlimited.
    pub access_rate: Bandwidth,
    /// Length of the run, at most; default 10 s. It ends early when all flows are finished.
    pub duration: Duration,
    /// Each flow's start is delayed by a random time up to this, so that flows are not synchronised;
    /// default 10 ms.
    pub start_jitter: Duration,
    /// UDP payload of full packets, 1200 to 65507; default 1472, packets of 1500 bytes.
    pub datagram_size: u16,
    /// Packet protection; default null.
    pub cipher: Cipher,
    /// Seed of all randomness; default 1.
    pub seed: u64,
    /// Paths that every flow uses together, instead of the one bottleneck that `rate`, `rtt`, `buffer`,
    /// `queue`, `loss`, `jitter` and `ecn_threshold` describe; the first is that of the handshake. At most 8;
    /// default none.
    pub paths: Vec<DumbbellPath>,
    /// Transport configuration of all flows. Controller, datagram size, windows and idle timeout
    /// are set by the run.
    pub transport: TransportConfig,
}

impl Default for Dumbbell {
    fn default() -> Self {
        Self {
            flows: Vec::new(),
            rate: Rate::Constant(Bandwidth::from_mbps(100)),
            rtt: Duration::from_millis(30),
            buffer: Buffer::Bdp(1.0),
            queue: QueueDiscipline::DropTail,
            loss: LossModel::None,
            jitter: Jitter::None,
            ecn_threshold: None,
            access_rate: Bandwidth::from_mbps(1_000),
            duration: Duration::from_secs(10),
            start_jitter: Duration::from_millis(10),
            datagram_size: 1_500 - HEADERS,
            cipher: Cipher::Null,
            seed: 1,
            paths: Vec::new(),
            transport: TransportConfig::default(),
        }
    }
}

/// One flow of a run.
#[derive(Debug)]
struct Flow {
    sender: HostId,
    receiver: HostId,
    start: Instant,
    controller: &'static str,
}

/// A [`Dumbbell`] in progress, for inspection while it runs.
#[derive(Debug)]
pub struct DumbbellRun {
    network: Network,
    /// One for each path.
    bottlenecks: Vec<LinkId>,
    flows: Vec<Flow>,
    end: Instant,
    /// Of all paths together.
    mean_rate: Option<Bandwidth>,
}

impl Dumbbell {
    /// Runs to the end.
    pub fn run(&self) -> Result<Report, SimError> {
        let mut run = self.build()?;
        run.advance_to(run.end());
        Ok(run.report())
    }

    /// Builds the network, at time zero.
    pub fn build(&self) -> Result<DumbbellRun, SimError> {
        self.check()?;
        let mut network = Network::new(self.seed);
        let paths = self.all_paths();
        let mut routers = Vec::with_capacity(paths.len());
        let mut bottlenecks = Vec::with_capacity(paths.len());
        for path in &paths {
            let (left, right) = (network.add_router(), network.add_router());
            bottlenecks.push(network.add_link(left, right, path.link())?);
            network.add_link(right, left, path.way_back())?;
            routers.push((left, right));
        }

        let (client_crypto, server_crypto) = self.cipher.crypto()?;
        let mut flows = Vec::with_capacity(self.flows.len());
        for (index, spec) in self.flows.iter().enumerate() {
            let transport = Arc::new(self.transport_of(spec));
            let client = ClientConfig {
                crypto: client_crypto.clone(),
                transport: transport.clone(),
            };
            let server = ServerConfig {
                retry: RetryPolicy::Never,
                address_token_lifetime: Duration::ZERO,
                ..ServerConfig::new(server_crypto.clone(), transport)
            };
            flows.push(self.add_flow(&mut network, &routers, index, (client, server))?);
        }
        Ok(DumbbellRun {
            network,
            bottlenecks,
            flows,
            end: Instant::ZERO + self.duration,
            mean_rate: sum_of_rates(&paths),
        })
    }

    fn check(&self) -> Result<(), SimError> {
        let out_of_range = |what, why| Err(SimError::OutOfRange { what, why });
        if self.flows.is_empty() || self.flows.len() > MAX_FLOWS {
            return out_of_range("the number of flows", "1 to 60000");
        }
        if !(1_200..=65_507).contains(&self.datagram_size) {
            return out_of_range("the datagram size", "1200 to 65507 bytes");
        }
        if self.duration.is_zero() {
            return out_of_range("the duration", "it must be above zero");
        }
        if self.paths.len() > MAX_PATHS {
            return out_of_range("the number of paths", "8 at most");
        }
        Ok(())
    }

    /// The paths, or the one that the fields of the dumbbell describe.
    fn all_paths(&self) -> Vec<DumbbellPath> {
        if !self.paths.is_empty() {
            return self.paths.clone();
        }
        vec![DumbbellPath {
            rate: self.rate.clone(),
            rtt: self.rtt,
            buffer: self.buffer,
            queue: self.queue,
            loss: self.loss,
            jitter: self.jitter,
            ecn_threshold: self.ecn_threshold,
        }]
    }

    fn add_flow(
        &self,
        network: &mut Network,
        routers: &[(NodeId, NodeId)],
        index: usize,
        (client, server): (ClientConfig, ServerConfig),
    ) -> Result<Flow, SimError> {
        let spec = &self.flows[index];
        let access = LinkConfig::default()
            .rate(self.access_rate)
            .delay(spec.extra_rtt / 4);
        let sender = network.add_host(HostConfig {
            keep_drained: true,
            ..HostConfig::default()
        });
        let receiver = network.add_host(HostConfig {
            server: Some(Arc::new(server)),
            ..HostConfig::default()
        });
        let mut paths = Vec::with_capacity(routers.len());
        for (path, (left, right)) in routers.iter().enumerate() {
            let side = 2 * path as u8;
            let from = address(side + 1, index, 49_152);
            let to = address(side + 2, index, 443);
            let interface = network.attach(sender, from, *left, access.clone(), access.clone())?;
            network.attach(receiver, to, *right, access.clone(), access.clone())?;
            paths.push((interface, to));
        }
        let to = address(2, index, 443);
        if paths.len() > 1 {
            network.set_paths(sender, &paths);
        }

        let start = Instant::ZERO + spec.start + self.random_delay(index);
        network.install(sender, BulkSender::new(client, to, start, spec.bytes));
        network.install(receiver, BulkReceiver::new());
        Ok(Flow {
            sender,
            receiver,
            start,
            controller: spec.controller.name(),
        })
    }

    /// The random part of a flow's start.
    fn random_delay(&self, index: usize) -> Duration {
        let random = Seed(self.seed).rng(Purpose::Flow, index as u64).next_u64();
        let nanos = (self.start_jitter.as_nanos() * u128::from(random)) >> 64;
        Duration::from_nanos(nanos as u64)
    }

    /// Windows that never limit the flow: congestion control does.
    fn transport_of(&self, spec: &FlowSpec) -> TransportConfig {
        let window = self.window(spec);
        let mut transport = self.transport.clone();
        transport.controller = Arc::clone(&spec.controller);
        transport.initial_max_datagram_size = self.datagram_size;
        // The size is a parameter of the experiment.
        transport.mtu_discovery = None;
        transport.stream_receive_window = window.times(2);
        transport.max_stream_receive_window = window.times(2);
        transport.receive_window = window.times(2);
        transport.max_receive_window = window.times(2);
        transport.send_window = window.times(2);
        transport.max_idle_timeout = None;
        if self.paths.len() > 1 {
            transport.multipath.get_or_insert(MultipathConfig {
                max_paths: MAX_PATHS as u8,
                ..MultipathConfig::default()
            });
        }
        transport
    }

    /// Most bytes in flight: all paths and queues full, with the longest round-trip time, because data that
    /// arrive on a fast path wait for those of a slow one; 64 MiB if there is no limit.
    fn window(&self, spec: &FlowSpec) -> ByteCount {
        const UNKNOWN: ByteCount = ByteCount::new(64 << 20);
        let paths = self.all_paths();
        let longest = paths.iter().map(|path| path.rtt).max();
        let rtt = longest.unwrap_or(self.rtt) + spec.extra_rtt;
        let mut window = ByteCount::new(1 << 20);
        for path in &paths {
            window += path.window(rtt, self, UNKNOWN);
        }
        window.min(UNKNOWN.times(16))
    }
}

/// Of all paths; `None` if one has no rate.
fn sum_of_rates(paths: &[DumbbellPath]) -> Option<Bandwidth> {
    let rates = paths.iter().map(|path| path.rate.mean());
    let rates: Option<Vec<Bandwidth>> = rates.collect();
    let bits = rates?.iter().map(|rate| rate.as_bps()).sum();
    Some(Bandwidth::from_bps(bits))
}

/// The address of a flow's host: 10.1.x.y for senders, 10.2.x.y for receivers; on the next path 10.3.x.y and
/// 10.4.x.y, and so on.
fn address(side: u8, index: usize, port: u16) -> SocketAddr {
    let host = index as u16 + 1;
    let [high, low] = host.to_be_bytes();
    (Ipv4Addr::new(10, side, high, low), port).into()
}

impl DumbbellRun {
    /// End of the run.
    pub fn end(&self) -> Instant {
        self.end
    }

    /// The network, for inspection or taps.
    pub fn network(&mut self) -> &mut Network {
        &mut self.network
    }

    /// The bottleneck's link in the direction to the receivers; of several paths the first one's.
    pub fn bottleneck(&self) -> LinkId {
        self.bottlenecks[0]
    }

    /// The hosts of a flow: sender and receiver.
    pub fn hosts(&self, flow: usize) -> (HostId, HostId) {
        (self.flows[flow].sender, self.flows[flow].receiver)
    }

    /// Runs up to `time`, or to the end of the run, or until all flows are finished.
    pub fn advance_to(&mut self, time: Instant) {
        let time = time.min(self.end);
        while !self.is_finished() && self.network.step_until(time) {}
    }

    /// True if all flows are finished: all data are acknowledged, or the connection is lost.
    pub fn is_finished(&self) -> bool {
        self.flows.iter().all(|flow| {
            let sender = self.network.application::<BulkSender>(flow.sender);
            sender.is_none_or(|sender| sender.acknowledged().is_some() || sender.error().is_some())
        })
    }

    /// The results so far.
    pub fn report(&mut self) -> Report {
        let now = self.network.now();
        let flows = (0..self.flows.len())
            .map(|index| self.flow_report(index))
            .collect();
        let mut queue = QueueReport::default();
        let (mut random_losses, mut ecn_marks) = (0, 0);
        for link in &self.bottlenecks {
            let stats = self.network.queue_stats(*link);
            let counters = self.network.counters(*link);
            let dropped = counters.dropped_queue.packets + counters.dropped_aqm.packets;
            queue.mean_bytes += stats.mean_bytes;
            queue.max_bytes += stats.max_bytes.get();
            queue.dropped_packets += dropped.get();
            random_losses += counters.dropped_random.packets.get();
            ecn_marks += counters.ecn_marked.packets.get();
        }
        Report {
            flows,
            queue,
            wall_s: 0.0,
            simulated_s: now.as_secs_f64(),
            random_losses,
            ecn_marks,
            utilisation: self.utilisation(now),
            tasks: self.network.stats().tasks,
        }
    }

    fn utilisation(&self, now: Instant) -> Option<f64> {
        let could = self.mean_rate?.bytes_in(now - Instant::ZERO);
        let links = self.bottlenecks.iter();
        let carried = links.map(|link| {
            let counters = self.network.counters(*link);
            (counters.delivered.bytes + counters.dropped_random.bytes).get()
        });
        let carried: u64 = carried.sum();
        (could > 0).then(|| carried as f64 / could as f64)
    }

    fn flow_report(&mut self, index: usize) -> FlowReport {
        let now = self.network.now();
        let &Flow {
            sender,
            receiver,
            start,
            controller,
        } = &self.flows[index];
        let mut report = FlowReport {
            cc: controller.to_owned(),
            goodput_bps: 0.0,
            bytes: 0,
            finish_s: None,
            retransmitted_share: 0.0,
            srtt_ms_mean: 0.0,
            paths: Vec::new(),
            start_s: start.as_secs_f64(),
            intact: true,
        };
        let mut finish = None;
        if let Some(app) = self.network.application::<BulkReceiver>(receiver) {
            for received in app.received() {
                report.bytes += received.bytes;
                report.intact &= received.intact;
                finish = finish.max(received.finish);
            }
        }
        let lasted = finish.unwrap_or(now) - start;
        if !lasted.is_zero() {
            report.goodput_bps = report.bytes as f64 * 8.0 / lasted.as_secs_f64();
        }
        report.finish_s = finish.map(Instant::as_secs_f64);
        if let Some(app) = self.network.application::<BulkSender>(sender) {
            let rtt = app.rtt().mean().unwrap_or_default();
            report.srtt_ms_mean = rtt.as_secs_f64() * 1e3;
        }
        let stats = self
            .network
            .with_application(sender, |app: &mut BulkSender, host| app.stats(host));
        if let Some(stats) = stats.flatten() {
            let sent = stats.stream_bytes_sent.get();
            if sent > 0 {
                let again = stats.stream_bytes_retransmitted.get();
                report.retransmitted_share = again as f64 / sent as f64;
            }
            report.paths = path_reports(&stats, self.bottlenecks.len());
        }
        report
    }
}

/// What a sender did on each of its paths. One that was abandoned and opened again is one path.
fn path_reports(stats: &ConnectionStats, count: usize) -> Vec<PathReport> {
    let mut reports = vec![PathReport::default(); count];
    for path in stats.ended_paths.iter().chain(&stats.paths) {
        let Some(report) = reports.get_mut(usize::from(path.local.socket.0)) else {
            continue;
        };
        report.bytes_sent += path.sent_bytes.get();
        report.copies += path.copies.get();
        if !path.min_rtt.is_zero() {
            report.srtt_ms = path.smoothed_rtt.as_secs_f64() * 1e3;
        }
    }
    reports
}
