//! The delay signals of Cubic+: `RTT_base`, the recent `RTT_min`, and `dRTT` (Algorithm 1, lines 1
//! and 2).

use std::time::Duration;

use swiftwater_units::Instant;

use super::config::{CubicPlusConfig, RttMode};
use crate::sample::RttView;
use crate::windowed::Windowed;

/// Parts that a finite base window is divided into; older ones are discarded as a whole.
const SLICES: u32 = 16;

/// The smallest round-trip time of the path, over its life or over a window.
#[derive(Clone, Debug)]
enum Base {
    Lifetime(Option<Duration>),
    /// One minimum per slice of time, so that it stays small however long the window is.
    Recent {
        slice: Duration,
        minima: Windowed<u64, Duration>,
    },
}

impl Base {
    fn new(window: Option<Duration>) -> Self {
        window.map_or(Self::Lifetime(None), |window| Self::Recent {
            slice: window / SLICES,
            minima: Windowed::smallest(),
        })
    }

    fn enter(&mut self, now: Instant, rtt: Duration) {
        match self {
            Self::Lifetime(min) => *min = Some(min.map_or(rtt, |min| min.min(rtt))),
            Self::Recent { slice, minima } => {
                let length = u64::try_from(slice.as_nanos()).unwrap_or(u64::MAX).max(1);
                let at = now.as_nanos() / length;
                // The newest candidate of a slice is its minimum so far.
                let covered = minima
                    .newest()
                    .is_some_and(|(slice, min)| slice == at && min <= rtt);
                if !covered {
                    minima.enter(at, rtt);
                }
                minima.discard_before(at.saturating_sub(u64::from(SLICES)));
            }
        }
    }

    fn get(&self) -> Option<Duration> {
        match self {
            Self::Lifetime(min) => *min,
            Self::Recent { minima, .. } => minima.get(),
        }
    }
}

/// How long the queue is, as the round-trip times show it.
#[derive(Clone, Debug)]
pub(super) struct DelaySignal {
    mode: RttMode,
    weight: f64,
    base: Base,
    /// Round-trip times of the last half round trip.
    recent: Windowed<Instant, Duration>,
    /// `dRTT`, seconds.
    queue: f64,
    /// Newest sample of it, seconds.
    newest: f64,
}

impl DelaySignal {
    pub(super) fn new(config: &CubicPlusConfig) -> Self {
        Self {
            mode: config.rtt_mode,
            weight: config.a_rtt,
            base: Base::new(config.base_window),
            recent: Windowed::smallest(),
            queue: 0.0,
            newest: 0.0,
        }
    }

    /// An ACK brought these round-trip times.
    pub(super) fn on_ack(&mut self, now: Instant, rtt: &RttView) {
        if !rtt.has_sample {
            return;
        }
        self.base.enter(now, rtt.latest);
        self.recent.enter(now, rtt.latest);
        self.recent.discard_before(now - rtt.smoothed / 2);
        let min = self.recent.get().unwrap_or(rtt.latest);
        let sample = match self.mode {
            RttMode::Standing => min.saturating_sub(self.base.get().unwrap_or(min)),
            RttMode::Literal => rtt.latest.saturating_sub(min),
        };
        self.newest = sample.as_secs_f64();
        self.queue += self.weight * (self.newest - self.queue);
    }

    /// `RTT_base` in seconds; `None` before the first sample.
    pub(super) fn base(&self) -> Option<f64> {
        self.base.get().map(|base| base.as_secs_f64())
    }

    /// `dRTT` in seconds.
    pub(super) fn queue(&self) -> f64 {
        self.queue
    }

    /// The newest sample of `dRTT` in seconds.
    pub(super) fn newest(&self) -> f64 {
        self.newest
    }

    /// The queue that is there for certain, seconds: the smaller of `dRTT` and its newest sample.
    /// After a drain the sample falls at once, `dRTT` only as fast as ACKs move it.
    pub(super) fn certain(&self) -> f64 {
        self.queue.min(self.newest)
    }
}
