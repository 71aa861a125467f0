//! Queues that accept or drop packets at arrival and send them in order: drop-tail, and RED after
//! its decision.
//!
//! Departure times are known at arrival, so the queue holds no payload: the fast path.

use std::collections::VecDeque;

use swiftwater_units::Instant;

use super::buffer::Limit;
use super::delay::DelayRecorder;
use super::stats::{Occupancy, QueueStats};

/// Future departures.
#[derive(Debug)]
pub(crate) struct DropTail {
    limit: Limit,
    /// Departure time and size, in time order.
    waiting: VecDeque<(Instant, u32)>,
    occupancy: Occupancy,
    delays: DelayRecorder,
}

impl DropTail {
    pub(crate) fn new(limit: Limit, start: Instant) -> Self {
        Self {
            limit,
            waiting: VecDeque::new(),
            occupancy: Occupancy::new(start),
            delays: DelayRecorder::default(),
        }
    }

    pub(crate) fn bytes(&self) -> u64 {
        self.occupancy.bytes()
    }

    pub(crate) fn packets(&self) -> u64 {
        self.occupancy.packets()
    }

    /// Removes packets that departed by `now`.
    pub(crate) fn advance(&mut self, now: Instant) {
        while let Some(&(departure, size)) = self.waiting.front()
            && departure <= now
        {
            self.occupancy.remove(departure, size);
            self.waiting.pop_front();
        }
    }

    /// Whether a packet of `size` bytes is accepted now.
    pub(crate) fn admits(&self, size: u32) -> bool {
        let bytes = self.bytes().saturating_add(u64::from(size));
        self.waiting.is_empty() || self.limit.holds(bytes, self.packets() + 1)
    }

    /// Adds a packet that is dequeued at `turn` and departs at `departure`, not before any earlier
    /// one.
    pub(crate) fn push(&mut self, now: Instant, turn: Instant, departure: Instant, size: u32) {
        self.delays.record(now, turn);
        if departure > now {
            self.occupancy.add(now, size);
            self.waiting.push_back((departure, size));
        }
    }

    /// Statistics at `now`, which may lie after the last [`DropTail::advance`].
    pub(crate) fn stats(&self, now: Instant) -> QueueStats {
        let mut occupancy = self.occupancy;
        for &(departure, size) in self.waiting.iter().take_while(|(at, _)| *at <= now) {
            occupancy.remove(departure, size);
        }
        occupancy.stats(now, self.delays.stats())
    }

    /// Restarts the statistics; packets are kept.
    pub(crate) fn reset_stats(&mut self, now: Instant) {
        self.advance(now);
        self.occupancy.reset(now);
        self.delays.reset();
    }
}
