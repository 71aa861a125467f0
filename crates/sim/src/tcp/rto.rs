//! The retransmission timeout: RFC 6298 with the rules of variance of Linux (`tcp_rtt_estimator`).
//!
//! Linux differs from the RFC in three ways: the floor applies to the variance and not to the whole
//! timeout, so that a timeout is at least the smoothed round trip plus 200 ms; the variance rises at
//! once but falls only once a round trip; and a sample far below the mean raises it by less.

use std::time::Duration;

/// Before the first sample, and for the first SYN (RFC 6298, section 2.1).
pub const INITIAL_TIMEOUT: Duration = Duration::from_secs(1);
/// Floor of the variance term (`TCP_RTO_MIN`).
pub const MIN_TIMEOUT: Duration = Duration::from_millis(200);
/// Ceiling of the timeout, backed off or not (`TCP_RTO_MAX`).
pub const MAX_TIMEOUT: Duration = Duration::from_secs(120);

#[derive(Debug, Clone, Copy)]
struct Estimate {
    srtt_nanos: i64,
    /// Mean deviation, times four.
    deviation4_nanos: i64,
    /// Largest deviation since the round trip began, times four.
    highest4_nanos: i64,
    /// What the timeout adds to the smoothed round trip.
    variance4_nanos: i64,
    /// Offset whose acknowledgement ends the round trip.
    round_end: u64,
}

/// Estimator of the round trip, and the timeout with its exponential backoff.
#[derive(Debug, Clone, Default)]
pub struct RetransmissionTimeout {
    estimate: Option<Estimate>,
    backoffs: u32,
}

impl RetransmissionTimeout {
    /// No sample yet: the timeout is [`INITIAL_TIMEOUT`].
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes a round trip measured when all bytes before `acked` were acknowledged and all before
    /// `sent` had been sent. It ends the backoff.
    pub fn on_sample(&mut self, rtt: Duration, acked: u64, sent: u64) {
        let floor = nanos(MIN_TIMEOUT);
        let sample = nanos(rtt.min(MAX_TIMEOUT));
        self.backoffs = 0;
        let Some(estimate) = &mut self.estimate else {
            let variance = (2 * sample).max(floor);
            self.estimate = Some(Estimate {
                srtt_nanos: sample,
                deviation4_nanos: 2 * sample,
                highest4_nanos: variance,
                variance4_nanos: variance,
                round_end: sent,
            });
            return;
        };
        let error = sample - estimate.srtt_nanos;
        estimate.srtt_nanos += error / 8;
        let mut change = error.abs() - estimate.deviation4_nanos / 4;
        if error < 0 && change > 0 {
            // A shorter round trip must not lengthen the timeout as much as a longer one.
            change /= 8;
        }
        estimate.deviation4_nanos += change;
        estimate.highest4_nanos = estimate.highest4_nanos.max(estimate.deviation4_nanos);
        estimate.variance4_nanos = estimate.variance4_nanos.max(estimate.highest4_nanos);
        if acked > estimate.round_end {
            let fall = estimate.variance4_nanos - estimate.highest4_nanos;
            estimate.variance4_nanos -= fall / 4;
            estimate.round_end = sent;
            estimate.highest4_nanos = floor;
        }
    }

    /// The timer expired: the next timeout is twice as long.
    pub fn back_off(&mut self) {
        self.backoffs = self.backoffs.saturating_add(1);
    }

    /// How often the timer expired since the last sample.
    pub fn backoffs(&self) -> u32 {
        self.backoffs
    }

    /// The smoothed round trip, once there is a sample.
    pub fn smoothed(&self) -> Option<Duration> {
        self.estimate
            .map(|estimate| Duration::from_nanos(estimate.srtt_nanos.max(0) as u64))
    }

    /// From the transmission of the earliest unacknowledged byte until the timer expires.
    pub fn timeout(&self) -> Duration {
        let base = self.estimate.map_or(INITIAL_TIMEOUT, |estimate| {
            Duration::from_nanos((estimate.srtt_nanos + estimate.variance4_nanos).max(0) as u64)
        });
        let factor = 1_u32.checked_shl(self.backoffs).unwrap_or(u32::MAX);
        base.saturating_mul(factor).min(MAX_TIMEOUT)
    }
}

/// Durations here are at most [`MAX_TIMEOUT`], far below what an `i64` holds.
fn nanos(duration: Duration) -> i64 {
    duration.as_nanos() as i64
}
