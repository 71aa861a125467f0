//! When data in flight arrive, and when copies of them would: estimates for re-injectors that copy what arrives
//! late.
//!
//! A range in flight arrives at the latest of: half of the least round-trip time less than its sending plus the
//! smoothed one; the bytes in flight up to it at the delivery rate of its path. By as much as the oldest range in
//! flight there is overdue, all are later. A copy arrives after half of the least round-trip time of its path, the
//! queue that the round-trip times there show, and the copies before it.

use std::time::Duration;

use swiftwater_quic::policy::{OutstandingRange, PathView};
use swiftwater_units::{Instant, PathId};

/// A path that copies may leave on.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Target {
    pub(crate) id: PathId,
    /// Seconds until the next copy arrives.
    delay: f64,
    /// Seconds for a byte.
    pace: f64,
    /// Bytes of window left.
    pub(crate) room: u64,
}

impl Target {
    pub(crate) fn new(now: Instant, path: &PathView) -> Self {
        let queue = path.smoothed_rtt.saturating_sub(path.min_rtt);
        let paced = path.pacing_release.saturating_since(now);
        Self {
            id: path.id,
            delay: (path.min_rtt / 2 + queue.max(paced)).as_secs_f64(),
            pace: 1.0 / rate(path),
            room: path.window_room().get(),
        }
    }

    /// A copy of `len` bytes leaves next.
    pub(crate) fn take(&mut self, len: u64) {
        self.room = self.room.saturating_sub(len);
        self.delay = self.arrival(len);
    }

    /// Seconds until a copy of `len` bytes that leaves next has arrived.
    pub(crate) fn arrival(&self, len: u64) -> f64 {
        self.delay + self.pace * len as f64
    }
}

/// Bytes per second.
fn rate(path: &PathView) -> f64 {
    (path.estimated_rate().as_bytes_per_sec() as f64).max(1.0)
}

/// When the ranges in flight on a path arrive, in the order of sending.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Arrivals {
    now: Instant,
    /// From the sending of a range to its arrival if nothing holds it up.
    transit: Duration,
    pace: f64,
    /// Seconds by which the path is overdue.
    overdue: f64,
    /// Bytes in flight up to the last range.
    ahead: u64,
}

impl Arrivals {
    /// Of a path whose oldest range in flight left at `oldest`.
    pub(crate) fn new(now: Instant, path: &PathView, oldest: Instant) -> Self {
        let expected = path.smoothed_rtt + path.rtt_var;
        let overdue = now.saturating_since(oldest).saturating_sub(expected);
        Self {
            now,
            transit: path.smoothed_rtt.saturating_sub(path.min_rtt / 2),
            pace: 1.0 / rate(path),
            overdue: overdue.as_secs_f64(),
            ahead: 0,
        }
    }

    /// Seconds until the next range has arrived.
    pub(crate) fn next(&mut self, range: &OutstandingRange) -> f64 {
        self.ahead += u64::from(range.len);
        let transit = (range.sent_at + self.transit).saturating_since(self.now);
        let queued = self.pace * self.ahead as f64;
        transit.as_secs_f64().max(queued) + self.overdue
    }
}
