//! A path whose behaviour a test writes down.

use std::ops::Range;
use std::time::Duration;

use swiftwater_quic::policy::PathStatus;
use swiftwater_units::{Bandwidth, ByteCount, Instant};

/// A link with a queue that drops nothing of its own accord, in front of a fixed delay; the way back
/// has the same delay, no rate limit and no loss.
#[derive(Clone, Debug)]
#[must_use]
pub struct ScriptedPath {
    /// Rates, each from a time on; the first from the start.
    rates: Vec<(Instant, Bandwidth)>,
    pub(super) delay: Duration,
    pub(super) cwnd: ByteCount,
    pub(super) status: PathStatus,
    pub(super) cost: u32,
    lost: Vec<u64>,
    lose_every: Option<u64>,
    outages: Vec<Range<Instant>>,
    sent: u64,
    free_at: Instant,
}

impl ScriptedPath {
    /// A path of `rate` and one-way delay `delay`, without loss; its congestion window is fixed at
    /// twice the product of rate and round-trip time, at least 12,000 bytes.
    pub fn new(rate: Bandwidth, delay: Duration) -> Self {
        Self {
            rates: vec![(Instant::ZERO, rate)],
            delay,
            cwnd: ByteCount::new((2 * rate.bytes_in(2 * delay)).max(12_000)),
            status: PathStatus::Available,
            cost: 0,
            lost: Vec::new(),
            lose_every: None,
            outages: Vec::new(),
            sent: 0,
            free_at: Instant::ZERO,
        }
    }

    /// Sets the congestion window.
    pub fn cwnd(mut self, cwnd: ByteCount) -> Self {
        self.cwnd = cwnd;
        self
    }

    /// Makes it a backup path.
    pub fn backup(mut self) -> Self {
        self.status = PathStatus::Backup;
        self
    }

    /// Sets what the application says a byte costs.
    pub fn cost(mut self, cost: u32) -> Self {
        self.cost = cost;
        self
    }

    /// From `at` on, the path has this rate. Times must rise from call to call.
    pub fn rate_from(mut self, at: Duration, rate: Bandwidth) -> Self {
        self.rates.push((Instant::ZERO + at, rate));
        self
    }

    /// Drops these datagrams, 0 being the first that is sent on the path.
    pub fn lose(mut self, datagrams: impl IntoIterator<Item = u64>) -> Self {
        self.lost.extend(datagrams);
        self
    }

    /// Drops every `n`th datagram.
    pub fn lose_every(mut self, n: u64) -> Self {
        self.lose_every = Some(n.max(1));
        self
    }

    /// Drops everything that is sent in this time.
    pub fn outage(mut self, time: Range<Duration>) -> Self {
        self.outages
            .push(Instant::ZERO + time.start..Instant::ZERO + time.end);
        self
    }

    /// A datagram of `size` bytes is sent; returns when it arrives, `None` if it is dropped.
    pub(super) fn send(&mut self, now: Instant, size: u64) -> Option<Instant> {
        let nth = self.sent;
        self.sent += 1;
        let rate = self
            .rates
            .iter()
            .rev()
            .find(|(from, _)| *from <= now)
            .map_or(Bandwidth::from_bps(1), |(_, rate)| *rate);
        self.free_at = self.free_at.max(now) + rate.time_to_send(size);
        let is_lost = self.outages.iter().any(|time| time.contains(&now))
            || self.lost.contains(&nth)
            || self.lose_every.is_some_and(|n| (nth + 1).is_multiple_of(n));
        (!is_lost).then_some(self.free_at + self.delay)
    }
}
