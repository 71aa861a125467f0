//! Estimated rate and delay of each path, for schedulers that compare arrival times.

use std::time::Duration;

use swiftwater_quic::policy::PathView;
use swiftwater_units::{ByteCount, Instant, PathId};

use super::finish_time::PathCapacity;
use super::per_path::PerPath;

/// Least time between two readings of the paths' rates.
const READING: Duration = Duration::from_millis(1);
/// Time between two steps down.
const STEP: Duration = Duration::from_millis(50);
/// Smoothed round-trip time, in least ones, above which a queue shows.
const QUEUED: f64 = 1.25;
/// Weight of a sample in a step down.
const WEIGHT: f64 = 1.0 / 8.0;

/// Rates of the paths of a connection, and what is under way on them.
///
/// A path without samples is assumed to deliver one window per smoothed round-trip time. Its rate is the
/// largest of that and the delivery-rate samples, of which the first are of a few packets, lowered by an
/// eighth of the difference to the newest sample every 50 ms, but only while the path is at least half full:
/// what a path delivers that is used little says nothing about what it could. It is at most one window per
/// least round-trip time. Until a queue has shown on it while it was half full, a path has delivered all that was sent, and
/// its window doubles if it is filled: it is taken to deliver two windows per least round-trip time, since what is thought
/// to be slow would never be tried.
#[derive(Clone, Debug, Default)]
pub(super) struct RateEstimates {
    estimates: PerPath<Estimate>,
    /// When the rates are to be read again.
    read_at: Instant,
}

#[derive(Clone, Copy, Debug)]
struct Estimate {
    /// Bytes per second.
    rate: f64,
    /// True once what was sent has been more than what the path delivers.
    is_limited: bool,
    /// When the rate last had the chance to step down; `None` before the first sample.
    stepped_at: Option<Instant>,
    /// When a link of that rate has transmitted what was sent.
    free_at: Instant,
}

impl Estimate {
    fn take(&mut self, now: Instant, sample: f64, path: &PathView) {
        let is_half_full = path.bytes_in_flight.times(2) >= path.cwnd;
        let queued = QUEUED * path.min_rtt.as_secs_f64();
        self.is_limited |= is_half_full && path.smoothed_rtt.as_secs_f64() > queued;
        self.rate = self.rate.max(sample);
        let stepped_at = *self.stepped_at.get_or_insert(now);
        if now.saturating_since(stepped_at) >= STEP {
            self.stepped_at = Some(now);
            if is_half_full {
                self.rate += WEIGHT * (sample - self.rate);
            }
        }
    }
}

impl RateEstimates {
    /// Reads the views that the next questions are about.
    pub(super) fn observe(&mut self, now: Instant, paths: &[PathView]) {
        if now < self.read_at {
            return;
        }
        self.read_at = now + READING;
        self.estimates.keep(paths);
        for path in paths {
            let assumed = window_per(path, path.smoothed_rtt);
            let sample = path.delivery_rate;
            let sample = sample.map(|rate| rate.as_bytes_per_sec() as f64);
            let estimate = self.estimates.get_or_insert_with(path.id, || Estimate {
                rate: sample.unwrap_or(assumed),
                is_limited: false,
                stepped_at: None,
                free_at: now,
            });
            if let Some(sample) = sample {
                estimate.take(now, sample, path);
            } else {
                estimate.rate = assumed;
            }
            let window = window_per(path, path.min_rtt);
            estimate.rate = match sample {
                Some(_) if !estimate.is_limited => 2.0 * window,
                _ => estimate.rate.min(window).max(1.0),
            };
        }
    }

    /// A datagram of `bytes` left on a path.
    pub(super) fn on_sent(&mut self, now: Instant, path: PathId, bytes: ByteCount) {
        if let Some(estimate) = self.estimates.get_mut(path) {
            let time = Duration::try_from_secs_f64(bytes.get() as f64 / estimate.rate);
            estimate.free_at = estimate.free_at.max(now) + time.unwrap_or(Duration::MAX);
        }
    }

    /// Rate of the path, and the time until a byte that is sent next arrives, after
    /// [`RateEstimates::observe`]. The time is half of the least round-trip time, and the largest of four: what
    /// a link of that rate needs for what was sent and is still in flight, what the path needs for what is in
    /// flight beyond one round trip, the queue that the round-trip times show, and the pacer's delay.
    pub(super) fn capacity(&self, now: Instant, path: &PathView) -> PathCapacity {
        let (rate, free_at) = self.estimates.get(path.id).map_or_else(
            || (window_per(path, path.smoothed_rtt).max(1.0), now),
            |estimate| (estimate.rate, estimate.free_at),
        );
        let least = path.min_rtt.as_secs_f64();
        let in_flight = path.bytes_in_flight.get() as f64 / rate;
        let unsent = free_at.saturating_since(now).as_secs_f64().min(in_flight);
        let queue = path.smoothed_rtt.saturating_sub(path.min_rtt);
        let paced = path.pacing_release.saturating_since(now);
        let shown = queue.max(paced).as_secs_f64();
        PathCapacity {
            rate,
            delay: least / 2.0 + unsent.max(in_flight - least).max(shown),
        }
    }
}

/// One window of the path in `time`, bytes per second.
fn window_per(path: &PathView, time: Duration) -> f64 {
    path.cwnd.get() as f64 / time.as_secs_f64().max(1e-6)
}
