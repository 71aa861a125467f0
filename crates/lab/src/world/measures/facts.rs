//! The collected data of a run, in the form from which measures are computed.

use std::time::Duration;

use swiftwater_link::{Counters, QueueStats};
use swiftwater_sim::HostTotals;
use swiftwater_sim::apps::Viewing;

use super::paths::PathFacts;
use super::repair::RepairFacts;
use super::session::SessionFacts;
use super::statistics::TimeMeter;
use super::streaming::StreamingViewing;
use super::tunnel::TunnelFacts;
use super::video::VideoFacts;
use super::visit::Visit;

/// A whole run.
#[derive(Debug)]
pub(in crate::world) struct RunFacts {
    pub(in crate::world) groups: Vec<GroupFacts>,
    pub(in crate::world) links: Vec<LinkFacts>,
    /// The measured time.
    pub(in crate::world) measured: Duration,
    /// Jain's index of all bulk flows in each second since the start of the last one.
    pub(in crate::world) fairness: Vec<f64>,
}

/// A group of flows.
#[derive(Debug, Default)]
pub(in crate::world) struct GroupFacts {
    pub(in crate::world) is_bulk: bool,
    /// Its active part of the measured time.
    pub(in crate::world) active: Duration,
    /// Its share of all groups' goodput, 0 to 1.
    pub(in crate::world) share: Option<f64>,
    pub(in crate::world) members: Vec<Member>,
    /// Of all its senders, after the warm-up; the smallest round-trip time is that of the whole
    /// run.
    pub(in crate::world) totals: HostTotals,
    pub(in crate::world) repair: RepairFacts,
    pub(in crate::world) tunnel: TunnelFacts,
    pub(in crate::world) rtt: TimeMeter,
    /// Its paths, if links are in parallel.
    pub(in crate::world) paths: Vec<PathFacts>,
    /// Longest time without progress at a receiver.
    pub(in crate::world) longest_gap: Option<Duration>,
    /// Bytes in each bin of its active time.
    pub(in crate::world) bins: Vec<u64>,
    pub(in crate::world) bin: Duration,
    /// In order of their start.
    pub(in crate::world) transfers: Vec<Transfer>,
    pub(in crate::world) viewers: Vec<Viewing>,
    pub(in crate::world) video: Option<VideoFacts>,
    /// Viewers of video on demand.
    pub(in crate::world) streaming: Vec<StreamingViewing>,
    pub(in crate::world) session: Option<SessionFacts>,
    /// A browsing user.
    pub(in crate::world) web: Option<Visit>,
    /// Least duration of a pause that is a stall.
    pub(in crate::world) stall_after: Duration,
    pub(in crate::world) intact: bool,
}

impl GroupFacts {
    /// Application bytes received in the measured time.
    pub(super) fn bytes(&self) -> u64 {
        self.members.iter().map(|member| member.bytes).sum()
    }

    /// Mbit/s, sum over members.
    pub(in crate::world) fn goodput_mbps(&self) -> Option<f64> {
        mbps(self.bytes(), self.active)
    }
}

/// A receiver (of Poisson transfers), or a flow.
#[derive(Clone, Copy, Debug)]
pub(in crate::world) struct Member {
    /// Application bytes received in the measured time.
    pub(in crate::world) bytes: u64,
    /// Its own active part of the measured time.
    pub(in crate::world) active: Duration,
}

/// A transfer that started in the measured time.
#[derive(Clone, Copy, Debug)]
pub(in crate::world) struct Transfer {
    pub(in crate::world) size: u64,
    /// Completion time.
    pub(in crate::world) duration: Option<Duration>,
    /// Ideal duration: at the bottleneck's rate, plus a round trip.
    pub(in crate::world) ideal: Duration,
}

/// A link in the direction to higher routers.
#[derive(Debug)]
pub(in crate::world) struct LinkFacts {
    /// After the warm-up.
    pub(in crate::world) counters: Counters,
    pub(in crate::world) queue: QueueStats,
    /// Bytes that it could have carried in the measured time.
    pub(in crate::world) capacity: Option<f64>,
    /// Mean rate times the setup's round trip, bytes.
    pub(in crate::world) bdp: Option<f64>,
}

/// Bytes in a time as Mbit/s; `None` for no time.
pub(super) fn mbps(bytes: u64, time: Duration) -> Option<f64> {
    (!time.is_zero()).then(|| bytes as f64 * 8.0 / time.as_secs_f64() / 1e6)
}

/// A quotient; `None` for a denominator of zero.
pub(super) fn ratio(part: f64, whole: f64) -> Option<f64> {
    (whole > 0.0).then(|| part / whole)
}
