//! When to give a request up for one of the same chunk at a lower level.
//!
//! A chunk of a high bitrate that is under way when the network becomes slow holds playback up until it has arrived.
//! Players that check their requests while they run (dash.js' `AbandonRequestsRule`) ask for less instead. Here the score
//! decides, as it does before a request ([`Mpc`](crate::streaming::adaptation::Mpc)): a request is given up if, at the rate of
//! the last two seconds, the chunk at a lower level is worth more, with the stall and the change of bitrate that each brings;
//! and not while the buffer lasts for twice the time that the lowest level takes, since the rate may recover.

use std::collections::VecDeque;
use std::time::Duration;

use swiftwater_units::{Bandwidth, Instant};

use crate::streaming::ladder::Ladder;
use crate::streaming::qoe::QoeWeights;
use crate::streaming::video::Chunk;

/// Time after the request before which it is not given up, and over which the rate is measured.
const WINDOW: Duration = Duration::from_secs(2);

/// Time between two looks at a request.
const INTERVAL: Duration = Duration::from_millis(250);

/// A level to request instead, and the rate that this was decided with.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct Replacement {
    pub(super) level: usize,
    pub(super) rate: Bandwidth,
}

/// What arrived of the request under way.
#[derive(Clone, Debug)]
pub(super) struct Progress {
    received: u64,
    /// Times within the last two seconds and bytes by then; the first one is at its beginning or before.
    totals: VecDeque<(Instant, u64)>,
    check_at: Instant,
}

impl Progress {
    /// Nothing, of a request at `now`.
    pub(super) fn new(now: Instant) -> Self {
        Self {
            received: 0,
            totals: VecDeque::from([(now, 0)]),
            check_at: now + WINDOW,
        }
    }

    /// The next `bytes` arrived.
    pub(super) fn add(&mut self, now: Instant, bytes: u64) {
        self.received = self.received.saturating_add(bytes);
        self.totals.push_back((now, self.received));
        self.forget(now);
    }

    fn forget(&mut self, now: Instant) {
        while self
            .totals
            .get(1)
            .is_some_and(|(at, _)| *at + WINDOW <= now)
        {
            self.totals.pop_front();
        }
    }

    /// When to look at the request next.
    pub(super) const fn check_at(&self) -> Instant {
        self.check_at
    }

    /// What to request instead; `None` before the time of the check, or to go on.
    pub(super) fn check(&mut self, now: Instant, under_way: &UnderWay<'_>) -> Option<Replacement> {
        if now < self.check_at {
            return None;
        }
        while self.check_at <= now {
            self.check_at += INTERVAL;
        }
        self.forget(now);
        let before = self.totals.front().map_or(0, |(_, bytes)| *bytes);
        let rate = Bandwidth::from_transfer(self.received.saturating_sub(before), WINDOW);
        if rate.is_zero() {
            return None;
        }
        let chunk = under_way.chunk;
        let missing = chunk
            .bytes_at(under_way.level)
            .saturating_sub(self.received);
        let lowest = rate.time_to_send(chunk.bytes_at(0));
        if under_way.buffered > lowest.saturating_mul(2) {
            return None;
        }
        let going_on = under_way.value(under_way.level, missing, rate);
        let lower = (0..under_way.level).rev();
        let smaller = lower.filter(|level| chunk.bytes_at(*level) < missing);
        let best = smaller
            .map(|level| (level, under_way.value(level, chunk.bytes_at(level), rate)))
            .max_by(|a, b| a.1.total_cmp(&b.1))?;
        let level = best.0;
        (best.1 > going_on).then_some(Replacement { level, rate })
    }
}

/// A request under way, and what its answer is worth.
#[derive(Debug)]
pub(super) struct UnderWay<'a> {
    pub(super) ladder: &'a Ladder,
    pub(super) chunk: &'a Chunk,
    pub(super) level: usize,
    /// Level of the chunk before.
    pub(super) previous: Option<usize>,
    pub(super) buffered: Duration,
    pub(super) weights: QoeWeights,
}

impl UnderWay<'_> {
    /// What the chunk at `level` adds to the score if `bytes` more have to arrive at `rate`.
    fn value(&self, level: usize, bytes: u64, rate: Bandwidth) -> f64 {
        let time = bytes as f64 * 8.0 / rate.as_bps() as f64;
        let stall = (time - self.buffered.as_secs_f64()).max(0.0);
        let mbps = |level| self.ladder.rate(level).as_mbps_f64();
        let change = (self.previous).map_or(0.0, |previous| (mbps(level) - mbps(previous)).abs());
        mbps(level) - self.weights.stall * stall - self.weights.switching * change
    }
}
