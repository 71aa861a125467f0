//! Receive-rate limiting: how fast the peer's credit (`MAX_DATA`) grows.
//!
//! Credit follows a schedule: at rate `r` it grows by `r * t` in time `t`, so the average keeps to the
//! rate, whatever the grants' timing. A peer that uses less gathers no more than what is on its way
//! at that rate and [`BURST`] beyond. Grants come in steps of [`STEP`], or of a packet where that is
//! more. Windows still bound what is unread, and limits of single streams are left alone.

use std::time::Duration;

use swiftwater_units::{Bandwidth, Instant};

use crate::config::TransportConfig;

/// Time between two grants, unless a packet takes longer than that.
const STEP: Duration = Duration::from_millis(10);

/// Smallest grant, bytes: with less the peer would send packets that aren't full.
const MIN_STEP: u64 = 1500;

/// What a peer that sends less than it may can save up, beyond a round trip and a quarter.
const BURST: Duration = Duration::from_millis(20);

/// Credit that was given before a limit was set cannot be taken back. The schedule makes up for at
/// most this much of it, so that the peer isn't silenced for long.
const MAX_DEBT: Duration = Duration::from_secs(1);

/// The first grant to a peer, before the round-trip time is known.
const FIRST_GRANT: Duration = Duration::from_millis(100);

/// The first grant is no less than this, bytes, so that requests are not held up.
const MIN_FIRST_GRANT: u64 = 16 * 1024;

/// The schedule of a limited connection.
#[derive(Clone, Copy, Debug)]
pub(super) struct CreditSchedule {
    rate: Bandwidth,
    /// The credit that is due at `since`.
    base: u64,
    since: Instant,
}

impl CreditSchedule {
    /// A schedule from `now` on, when `received` bytes have arrived and the peer may send up to
    /// `limit`. `rate` is not zero.
    pub(super) fn new(
        rate: Bandwidth,
        now: Instant,
        rtt: Duration,
        received: u64,
        limit: u64,
    ) -> Self {
        let in_flight = received.saturating_add(rate.bytes_in(rtt));
        let debt = rate.bytes_in(MAX_DEBT);
        Self {
            rate,
            base: in_flight.max(limit.saturating_sub(debt)),
            since: now,
        }
    }

    /// Up to where the peer may send, as of `now`, when `received` bytes have arrived and it has been
    /// given `given`.
    pub(super) fn limit(&mut self, now: Instant, rtt: Duration, received: u64, given: u64) -> u64 {
        // What was given stays given, so the schedule goes on from there.
        let most = self.most(rtt, received).max(given);
        if self.due(now) > most {
            self.base = most;
            self.since = now;
        }
        self.due(now)
    }

    /// When [`CreditSchedule::limit`] will be `limit` if nothing arrives before; `None` if never.
    pub(super) fn time_of(&self, limit: u64, rtt: Duration, received: u64) -> Option<Instant> {
        let bytes = limit.saturating_sub(self.base);
        (limit <= self.most(rtt, received)).then(|| self.since + self.rate.time_to_send(bytes))
    }

    /// The most that the peer may be ahead of what has arrived. With less than a round trip's worth
    /// it could not reach the rate.
    fn most(&self, rtt: Duration, received: u64) -> u64 {
        let ahead = self.rate.bytes_in(rtt + rtt / 4 + BURST);
        received.saturating_add(ahead.max(2 * MIN_STEP))
    }

    fn due(&self, at: Instant) -> u64 {
        let bytes = self.rate.bytes_in(at.saturating_since(self.since));
        self.base.saturating_add(bytes)
    }

    /// Bytes of one grant.
    pub(super) fn step(&self) -> u64 {
        self.rate.bytes_in(STEP).max(MIN_STEP)
    }
}

/// `initial_max_data` of the local transport parameters: the window, or less at a limited rate.
pub(crate) fn first_limit(config: &TransportConfig) -> u64 {
    let window = config.receive_window.get();
    match config.receive_rate {
        None => window,
        Some(rate) => window.min(rate.bytes_in(FIRST_GRANT).max(MIN_FIRST_GRANT)),
    }
}
