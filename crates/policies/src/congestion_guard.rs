//! Limits the copies of lost data while the path is short of capacity, where each of them delays all data behind it.
//!
//! A copy occupies the bottleneck for the time that its bytes take. While the link has capacity to spare no
//! data wait for that time. While a queue stands, in the sender or in the network, they do; and the queue
//! lengthens loss detection, for which AutoRec's formulas grant more copies. Two signs of that are read from
//! what the transport shows: a round-trip time far above its minimum, and more unsent new data than leave
//! within a round trip.

use std::time::Duration;

use swiftwater_quic::policy::PathView;
use swiftwater_tunable::parameters::OrNone;
use swiftwater_tunable::tunable;
use swiftwater_units::{Bandwidth, ByteCount, Instant};

/// Least time until a congested path is looked at again.
const MIN_PAUSE: Duration = Duration::from_millis(2);

/// Parameters of a [`CongestionGuard`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CongestionGuardConfig {
    /// Copies are limited during congestion; default on.
    pub is_on: bool,
    /// A latest round-trip time above this multiple of `min_rtt`, 1 to 100, shows a queue in the network;
    /// none: it is not regarded.
    pub max_rtt: Option<f64>,
    /// Unsent new data that take longer to send than this multiple of `min_rtt`, 0 to 100, show a queue in
    /// the sender; none: they are not regarded.
    pub max_backlog: Option<f64>,
    /// Copies that lost data may have had, 0 to 20, for another to leave while a queue stands in the network.
    pub queue_copies: u32,
    /// The same while a queue stands in the sender.
    pub backlog_copies: u32,
    /// The same for the first missing bytes of a stream, which all later ones wait for, during either.
    pub head_copies: u32,
}

tunable!(CongestionGuardConfig {
    "guard" => is_on, "copies are limited while the path is congested";
    "guard-rtt" => max_rtt in OrNone(1.0..=100.0),
        "round-trip time, in least ones, that shows a queue in the network";
    "guard-backlog" => max_backlog in OrNone(0.0..=100.0),
        "time to send the unsent data, in least round-trip times, that shows a queue in the sender";
    "guard-queue-copies" => queue_copies in 0..=20,
        "most replicas of lost data while a queue stands in the network";
    "guard-backlog-copies" => backlog_copies in 0..=20,
        "most replicas of lost data while a queue stands in the sender";
    "guard-head-copies" => head_copies in 0..=20,
        "most replicas of the first missing bytes of a stream during congestion";
});

impl Default for CongestionGuardConfig {
    fn default() -> Self {
        Self {
            is_on: true,
            max_rtt: Some(2.0),
            max_backlog: Some(0.25),
            queue_copies: 1,
            backlog_copies: 0,
            head_copies: 1,
        }
    }
}

impl CongestionGuardConfig {
    /// No guard.
    pub fn off() -> Self {
        Self {
            is_on: false,
            ..Self::default()
        }
    }
}

/// How many copies lost data may have had for another to leave now.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct CopyLimit {
    /// For the first missing bytes of a stream.
    pub head: u32,
    /// For all others.
    pub others: u32,
}

impl CopyLimit {
    /// No limit.
    pub const NONE: Self = Self {
        head: u32::MAX,
        others: u32::MAX,
    };

    /// True if data of which `copies` were sent may have another; `is_head` if they are the first missing
    /// bytes of their stream.
    pub fn permits(self, copies: u32, is_head: bool) -> bool {
        copies < if is_head { self.head } else { self.others }
    }
}

/// Limits copies by the state of the paths. One for each connection.
#[derive(Clone, Copy, Debug)]
pub struct CongestionGuard {
    config: CongestionGuardConfig,
    /// New data that wait to be sent.
    unsent: ByteCount,
}

impl CongestionGuard {
    /// A guard with nothing unsent.
    pub fn new(config: CongestionGuardConfig) -> Self {
        Self {
            config,
            unsent: ByteCount::ZERO,
        }
    }

    /// Changes the parameters.
    pub fn configure(&mut self, config: CongestionGuardConfig) {
        self.config = config;
    }

    /// So many stream bytes wait to be sent for the first time, see
    /// [`Reinjector::on_unsent_data`](swiftwater_quic::policy::Reinjector::on_unsent_data).
    pub fn on_unsent_data(&mut self, waiting: ByteCount) {
        self.unsent = waiting;
    }

    /// The limit at present: that of the usable path with the most generous one, since a copy may leave on
    /// any; [`CopyLimit::NONE`] without a usable path.
    pub fn limit(&self, paths: &[PathView]) -> CopyLimit {
        if !self.config.is_on {
            return CopyLimit::NONE;
        }
        paths
            .iter()
            .filter(|path| path.is_usable())
            .map(|path| self.limit_of(path))
            .max_by_key(|limit| limit.others)
            .unwrap_or(CopyLimit::NONE)
    }

    fn limit_of(&self, path: &PathView) -> CopyLimit {
        let config = &self.config;
        let mut others = u32::MAX;
        if self.has_network_queue(path) {
            others = config.queue_copies;
        }
        if self.has_sender_queue(path) {
            others = others.min(config.backlog_copies);
        }
        if others == u32::MAX {
            return CopyLimit::NONE;
        }
        CopyLimit {
            head: config.head_copies.max(others),
            others,
        }
    }

    /// True if the latest round-trip time is too long for a path without a queue.
    fn has_network_queue(&self, path: &PathView) -> bool {
        let (latest, least) = (path.latest_rtt.as_secs_f64(), path.min_rtt.as_secs_f64());
        let is_long = |most| latest > least * most;
        path.has_rtt_sample && self.config.max_rtt.is_some_and(is_long)
    }

    /// True if what is unsent takes too long to send, at the larger one of delivery rate and pacing rate: the
    /// former is low while the application limits the flow, the latter while the controller does.
    fn has_sender_queue(&self, path: &PathView) -> bool {
        if self.unsent.is_zero() || !path.has_rtt_sample {
            return false;
        }
        let paced = path.pacing_rate.unwrap_or(Bandwidth::ZERO);
        let rate = path.estimated_rate().max(paced);
        let time = rate.time_to_send(self.unsent.get()).as_secs_f64();
        let is_long = |most| time > path.min_rtt.as_secs_f64() * most;
        self.config.max_backlog.is_some_and(is_long)
    }

    /// When copies that the limit held back are to be tried again: an eighth of the smallest smoothed
    /// round-trip time from `now`, 2 ms at least.
    pub fn retry_at(&self, now: Instant, paths: &[PathView]) -> Instant {
        let rtt = paths.iter().map(|path| path.smoothed_rtt).min();
        now + (rtt.unwrap_or_default() / 8).max(MIN_PAUSE)
    }
}
