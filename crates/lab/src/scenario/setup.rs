//! One case with all values resolved.
//!
//! The topology is a chain of routers, `router 0 - link 0 - router 1 - link 1 - ...`. A flow enters
//! at one router and leaves at another, each end on a separate access link. One link is a dumbbell,
//! several are a chain, flows over parts of it a parking lot; a flow whose exit is before its entry
//! is reverse traffic.
//!
//! Or the links are in parallel ([`Setup::parallel`]): link `i` leads from router `2 i` to router `2 i + 1`, and a
//! flow uses one or several of them, with an access link of its own to each.

use std::sync::Arc;
use std::time::Duration;

use swiftwater_congestion::{ControllerFactory, CouplingRule};
use swiftwater_link::LinkConfig;
use swiftwater_policies::FeedbackFactory;
use swiftwater_quic::policy::PolicyFactory;
use swiftwater_sim::Cipher;
use swiftwater_sim::apps::TunnelConfig;
use swiftwater_units::{Bandwidth, ByteCount};
use thiserror::Error;

use super::session::SessionSetup;
use super::streaming::{ChunkedVideoSpec, ShortVideoSpec};
use super::video::VideoSpec;
use super::web::WebSpec;

/// All parameters of one run except its seed.
#[derive(Clone, Debug)]
pub struct Setup {
    /// Length of the run at most; it ends early when every flow with an end has reached it and
    /// there is no flow without one.
    pub duration: Duration,
    /// Time at the start that measures exclude. Default none.
    pub warmup: Duration,
    /// Round-trip propagation delay from end to end over all links, access links without
    /// [`FlowSpec::extra_rtt`] included. Buffers in bandwidth-delay products refer to it. A link in parallel to
    /// others may have one of its own.
    pub rtt: Duration,
    /// UDP payload of full packets, bytes.
    pub datagram_size: u16,
    /// Packet protection.
    pub cipher: Cipher,
    /// Interval of the recorder; `None` records nothing.
    pub record: Option<Duration>,
    /// Length of the bins in which throughput is counted for minima and variation.
    pub bin: Duration,
    /// The links between routers, at least one.
    pub links: Vec<LinkSpec>,
    /// The flows, at least one.
    pub flows: Vec<FlowSpec>,
    /// The links are in parallel; `None`: they are a chain.
    pub parallel: Option<Parallel>,
}

/// What applies to links in parallel only.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Parallel {
    /// What happens to the links in the course of the run.
    pub changes: Vec<LinkChange>,
}

/// A link works differently for a time.
#[derive(Clone, Debug, PartialEq)]
pub struct LinkChange {
    /// Index of the link.
    pub link: usize,
    /// Since the start of the run.
    pub from: Duration,
    /// When it works as before; `None`: never.
    pub until: Option<Duration>,
    /// What happens to packets that are offered to it.
    pub fault: LinkFault,
}

/// What is wrong with a link for a time. Packets that are on it already arrive.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum LinkFault {
    /// Nothing passes in either direction.
    Cut,
    /// Nothing passes in the direction to the higher router.
    CutForward,
    /// Nothing passes in the direction to the lower router.
    CutBackward,
    /// Additional random loss in both directions, a share of packets.
    Loss(f64),
    /// The propagation delay of both directions is this many times as long.
    Delay(f64),
}

/// The paths of a flow over links in parallel.
#[derive(Clone, Debug)]
pub struct FlowPaths {
    /// Indices of the links, one for each path, in the order of opening: the first is that of the handshake.
    /// With a single one the flow is one without multipath; a link may occur several times.
    pub links: Vec<usize>,
    /// Their names in measures.
    pub names: Vec<String>,
    /// Name of the scheduler, as written in the scenario.
    pub scheduler_text: String,
    /// How the controllers of the paths are coupled.
    pub coupling: CouplingRule,
    /// True for a connection without multipath that begins on the first path, and migrates to the next one when the
    /// path is silent for too long; the server has one address then, behind all paths.
    pub migrates: bool,
}

impl FlowPaths {
    /// Whether the flow has more than one path at a time.
    pub fn are_several(&self) -> bool {
        self.links.len() > 1 && !self.migrates
    }
}

impl Setup {
    /// The routers of a link: the lower one and the higher one.
    pub(crate) fn ends(&self, link: usize) -> (usize, usize) {
        match self.parallel {
            Some(_) => (2 * link, 2 * link + 1),
            None => (link, link + 1),
        }
    }

    /// What happens to links in the course of the run.
    pub(crate) fn changes(&self) -> impl Iterator<Item = &LinkChange> {
        self.parallel.iter().flat_map(|parallel| &parallel.changes)
    }

    /// Number of routers.
    pub(crate) fn routers(&self) -> usize {
        let last = self.links.len().checked_sub(1);
        last.map_or(0, |last| self.ends(last).1 + 1)
    }

    /// The routers at which the data of `flow` enter and leave, for each of its paths.
    pub(crate) fn routes(&self, flow: &FlowSpec) -> Vec<(usize, usize)> {
        match &flow.paths {
            Some(paths) => paths.links.iter().map(|link| self.ends(*link)).collect(),
            None => vec![(flow.enter, flow.exit)],
        }
    }
}

/// A link between consecutive routers.
#[derive(Clone, Debug)]
pub struct LinkSpec {
    /// Its name in measures.
    pub name: String,
    /// In the direction to higher routers.
    pub forward: LinkConfig,
    /// In the direction to lower routers. Default: the same rate and delay, no loss, unlimited
    /// queue.
    pub backward: LinkConfig,
}

/// A group of equal flows.
#[derive(Clone, Debug)]
pub struct FlowSpec {
    /// Its name in measures.
    pub name: String,
    /// Number of members: connections, or for [`App::Poisson`] hosts that open connections.
    pub count: u32,
    /// Router at which the data enters.
    pub enter: usize,
    /// Router at which the data leaves; not the same.
    pub exit: usize,
    /// When the first one starts.
    pub start: Duration,
    /// Each starts this much later than the one before it.
    pub stagger: Duration,
    /// Additional random delay of the start, up to this.
    pub start_jitter: Duration,
    /// When flows without an end stop; `None` for the end of the run.
    pub stop: Option<Duration>,
    /// Rate of the access links, both ends.
    pub access_rate: Bandwidth,
    /// Round-trip time in addition to that of the setup, on the access links.
    pub extra_rtt: Duration,
    /// The congestion controller.
    pub controller: Arc<dyn ControllerFactory>,
    /// As written in the scenario.
    pub controller_text: String,
    /// Recovery policy of both ends.
    pub recovery: Arc<dyn PolicyFactory>,
    /// As written in the scenario.
    pub recovery_text: String,
    /// Feedback policies of both ends, of video on demand and in tunnels only.
    pub feedback: Option<FeedbackPolicies>,
    /// The transport's settings.
    pub transport: TransportSpec,
    /// The application.
    pub app: App,
    /// Its paths, if links are in parallel. `enter` and `exit` are then the routers of the first one.
    pub paths: Option<FlowPaths>,
    /// The tunnel that carries its connections near the exit.
    pub tunnel: Option<TunnelSpec>,
}

/// A tunnel between a proxy at a router and the client at the exit of a flow. Packets on it are larger than those of the
/// flow by what the tunnel adds.
#[derive(Clone, Debug)]
pub struct TunnelSpec {
    /// Router of the proxy, between entry and exit.
    pub router: usize,
    /// What carries the packets, and what the proxy does with lost ones.
    pub config: TunnelConfig,
    /// Bytes by which packets between proxy and client are larger than their payloads need: room for a report.
    pub report_room: u16,
    /// The congestion controller of the connection between proxy and client.
    pub controller: Arc<dyn ControllerFactory>,
    /// Its loss recovery: copies of what streams carry. Datagrams are sent once, whatever it is.
    pub recovery: Arc<dyn PolicyFactory>,
}

/// What the policies of the two ends of video on demand, or in a tunnel, say to each other.
#[derive(Clone, Debug)]
pub struct FeedbackPolicies {
    /// Of the server; [`FlowSpec::recovery`] includes it.
    pub server: Arc<dyn FeedbackFactory>,
    /// Of the viewer.
    pub viewer: Arc<dyn FeedbackFactory>,
}

/// Transport settings of a scenario; `None` is the transport's default.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TransportSpec {
    /// Initial congestion window in packets.
    pub initial_window: Option<u64>,
    /// Round-trip time assumed before the first sample; the first probe timeout is three times it.
    pub initial_rtt: Option<Duration>,
    /// Whether ECN is used.
    pub ecn: Option<bool>,
    /// Whether packets are paced.
    pub pacing: Option<bool>,
    /// Ack-eliciting packets per ACK.
    pub ack_eliciting_threshold: Option<u64>,
    /// Longest delay of an ACK.
    pub max_ack_delay: Option<Duration>,
}

/// The application of a flow. Data are sent from the entry to the exit.
#[derive(Clone, Debug, PartialEq)]
pub enum App {
    /// As much as possible until the flow stops.
    Bulk,
    /// A number of bytes over a separate connection.
    Transfer {
        /// Number of bytes.
        bytes: u64,
    },
    /// A constant-rate stream; excess data are queued at the sender.
    ConstantRate {
        /// Application bytes per time.
        rate: Bandwidth,
    },
    /// Objects of one size, one after the other on one connection. The client is at the exit.
    Requests {
        /// Bytes of each object.
        bytes: u64,
        /// Time from the end of an object to the request of the next one.
        pause: Duration,
    },
    /// Alternately sends and pauses, on one connection.
    OnOff {
        /// Duration of a burst.
        on: Spread,
        /// Duration of a pause.
        off: Spread,
        /// Rate while sending; `None` for as much as possible.
        rate: Option<Bandwidth>,
    },
    /// Transfers with random arrivals, each on a separate connection between a random sender and a
    /// random receiver of the group.
    Poisson {
        /// Distribution of sizes.
        sizes: SizeDistribution,
        /// Mean number per second, over the whole group.
        per_second: f64,
        /// Most transfers.
        limit: Option<u64>,
        /// Hosts at the exit.
        receivers: u32,
    },
    /// Viewers of a live stream: each requests it at its start; the server sends the first frame's
    /// size at once, then at the stream's rate; the player starts when it has the first frame and
    /// pauses when its buffer is empty. The viewer is at the exit and opens the connection.
    Live {
        /// Rate of the stream.
        rate: Bandwidth,
        /// Bytes required by the player to start, available at once.
        first_frame: ByteCount,
        /// Least duration of a pause that counts as a stall.
        stall_after: Duration,
        /// Bytes required by the player to continue after a pause.
        rebuffer: ByteCount,
    },
    /// Live video, frame by frame: each member is a viewer at the exit, which opens the connection
    /// and sends a request, and a separate server at the entry, which encodes from then on.
    Video(VideoSpec),
    /// Video on demand at adaptive bitrates: each member is a viewer at the exit, and a separate server
    /// at the entry.
    ChunkedVideo(ChunkedVideoSpec),
    /// A feed of short videos: members as in [`App::ChunkedVideo`].
    ShortVideo(ShortVideoSpec),
    /// Live video over datagrams, with a loss protection scheme. It is the only flow, from router 0
    /// over the only link, without hosts and access links.
    Session(SessionSetup),
    /// A user who browses over QUIC and TCP, as a selector of protocols decides. It is the only flow, over the only
    /// link, in whose direction responses go, without access links.
    Web(Box<WebSpec>),
}

/// A fixed or random duration.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Spread {
    /// Fixed.
    Constant(Duration),
    /// Exponential with this mean.
    Exponential(Duration),
}

/// Sizes of transfers: the distribution function, linear between its points.
#[derive(Clone, Debug, PartialEq)]
pub struct SizeDistribution {
    /// Size in bytes and share of transfers of at most that size; both ascending, the last share is
    /// 1.
    points: Vec<(f64, f64)>,
}

/// Why a distribution of sizes is invalid.
#[derive(Clone, Debug, Error, PartialEq)]
#[error("point {index} ({size} bytes, {share}): {expected}")]
pub struct UnknownSize {
    /// Index of the point, from 1.
    pub index: usize,
    /// Its size.
    pub size: f64,
    /// Its share.
    pub share: f64,
    /// The expected values.
    pub expected: &'static str,
}

impl SizeDistribution {
    /// Checks and stores the points.
    pub fn new(points: Vec<(f64, f64)>) -> Result<Self, UnknownSize> {
        let mut last = (0.0, 0.0);
        for (place, &(size, share)) in points.iter().enumerate() {
            let fail = |expected| UnknownSize {
                index: place + 1,
                size,
                share,
                expected,
            };
            let rises = size > last.0 || (place == 0 && size >= 1.0);
            if !(rises && size.is_finite()) {
                return Err(fail("sizes must rise from 1 byte on"));
            }
            if !(last.1..=1.0).contains(&share) {
                return Err(fail("shares must rise from 0 to 1"));
            }
            last = (size, share);
        }
        if points.is_empty() || last.1 < 1.0 {
            return Err(UnknownSize {
                index: points.len(),
                size: last.0,
                share: last.1,
                expected: "the last share must be 1",
            });
        }
        Ok(Self { points })
    }

    /// The points: size in bytes, share of transfers up to it.
    pub fn points(&self) -> &[(f64, f64)] {
        &self.points
    }

    /// Mean size in bytes.
    pub fn mean(&self) -> f64 {
        let mut last = (self.points[0].0, 0.0);
        let mut mean = 0.0;
        for &(size, share) in &self.points {
            mean += f64::midpoint(last.0, size) * (share - last.1);
            last = (size, share);
        }
        mean
    }

    /// The size below which a share `u`, 0 to 1, of the transfers is; at least one byte.
    pub fn quantile(&self, u: f64) -> u64 {
        let mut last = (self.points[0].0, 0.0);
        for &(size, share) in &self.points {
            if u <= share {
                let along = if share > last.1 {
                    (u - last.1) / (share - last.1)
                } else {
                    1.0
                };
                return ((size - last.0).mul_add(along, last.0).round() as u64).max(1);
            }
            last = (size, share);
        }
        (last.0.round() as u64).max(1)
    }
}
