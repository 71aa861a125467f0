//! When to give a request up for one of the same chunk at a lower level.
//!
//! A chunk of a high bitrate that is under way when the network becomes slow holds playback up until it has arrived.
//! Players that check their requests while they run (dash.js' `AbandonRequestsRule`) ask for less instead. Here a request is given
//! up if, at the rate of the last second, what is missing arrives after the buffer is empty, and a lower level needs
//! fewer bytes than that.

use std::collections::VecDeque;
use std::time::Duration;

use swiftwater_units::{Bandwidth, Instant};

use crate::streaming::video::Chunk;

/// Time after the request before which it is not given up, and over which the rate is measured.
const WINDOW: Duration = Duration::from_secs(1);

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
    /// Times within the last second and bytes by then; the first one is at its beginning or before.
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

    /// What to request instead of `chunk` at `level`, with `buffered` play time left; `None` before the time of the check, or to
    /// go on.
    pub(super) fn check(
        &mut self,
        now: Instant,
        chunk: &Chunk,
        level: usize,
        buffered: Duration,
    ) -> Option<Replacement> {
        if now < self.check_at {
            return None;
        }
        while self.check_at <= now {
            self.check_at += INTERVAL;
        }
        self.forget(now);
        let before = self.totals.front().map_or(0, |(_, bytes)| *bytes);
        let rate = Bandwidth::from_transfer(self.received.saturating_sub(before), WINDOW);
        let missing = chunk.bytes_at(level).saturating_sub(self.received);
        let arrives_in = |bytes: u64| match bytes {
            0 => Duration::ZERO,
            _ if rate.is_zero() => Duration::MAX,
            _ => rate.time_to_send(bytes),
        };
        if arrives_in(missing) <= buffered {
            return None;
        }
        let is_in_time = |lower: &usize| arrives_in(chunk.bytes_at(*lower)) <= buffered;
        let level = (0..level).rev().find(is_in_time).unwrap_or(0);
        (chunk.bytes_at(level) < missing).then_some(Replacement { level, rate })
    }
}
