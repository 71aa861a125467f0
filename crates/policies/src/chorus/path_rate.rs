//! Bandwidth of each path, `B_p` of the Chorus paper: what the congestion controller estimates, or one
//! window per `smoothed_rtt` where it estimates nothing, smoothed.
//!
//! The paper names no weight; here it is 1/8 for each sample, one per 50 ms, as in `schedulers/rate_estimate.rs`. The
//! first samples are averaged evenly. That estimate isn't reused because it follows a larger sample at once, which suits
//! a comparison of arrival times before each datagram: it is right after the first burst. A share that is sent to the
//! player and holds for a whole response must not jump with one burst in either direction. Both skip samples of a path
//! that is less than half full: they say how much was offered to it, not what it delivers.

use swiftwater_quic::policy::PathView;
use swiftwater_tunable::ParameterValue;
use swiftwater_units::Instant;

use std::time::Duration;

use crate::schedulers::per_path::PerPath;

/// Time between two samples.
const SAMPLING: Duration = Duration::from_millis(50);
/// Samples that count together: the weight of one is 1/8.
const MEMORY: f64 = 8.0;
/// Shortest round-trip time that a window is divided by.
const LEAST_RTT: Duration = Duration::from_micros(1);

/// What the bandwidth of a path is read from.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum RateSource {
    /// The delivery rate that is measured on the path, one window per round trip before the first measurement: right for
    /// controllers of rates (BBR) and of windows, since a window that limits delivers one window per round trip.
    #[default]
    Delivery,
    /// One window per `smoothed_rtt`: the paper's reading for controllers of windows (CUBIC).
    Window,
}

impl ParameterValue for RateSource {
    fn read(text: &str) -> Option<Self> {
        match text {
            "delivery" => Some(Self::Delivery),
            "window" => Some(Self::Window),
            _ => None,
        }
    }

    fn write(&self) -> String {
        match self {
            Self::Delivery => "delivery",
            Self::Window => "window",
        }
        .to_owned()
    }

    fn accepts() -> String {
        "delivery or window".to_owned()
    }
}

/// Bandwidths of the paths of a connection.
#[derive(Clone, Debug, Default)]
pub struct PathRates {
    source: RateSource,
    rates: PerPath<Smoothed>,
}

#[derive(Clone, Copy, Debug)]
struct Smoothed {
    /// Bytes per second.
    rate: f64,
    /// Samples so far, as far as they count.
    samples: f64,
    sampled_at: Instant,
}

impl PathRates {
    /// No path is known.
    pub fn new(source: RateSource) -> Self {
        Self {
            source,
            rates: PerPath::default(),
        }
    }

    /// Reads the views of all paths; those that are not among them are forgotten.
    pub fn observe(&mut self, now: Instant, paths: &[PathView]) {
        self.rates.keep(paths);
        for path in paths {
            self.observe_path(now, path);
        }
    }

    /// Reads the view of one path.
    pub fn observe_path(&mut self, now: Instant, path: &PathView) {
        let is_half_full = path.bytes_in_flight.times(2) >= path.cwnd;
        if !path.has_rtt_sample || !is_half_full || path.bytes_in_flight.is_zero() {
            return;
        }
        let sample = self.sample(path);
        let smoothed = self.rates.get_or_insert_with(path.id, || Smoothed {
            rate: sample,
            samples: 1.0,
            sampled_at: now,
        });
        if now.saturating_since(smoothed.sampled_at) >= SAMPLING {
            smoothed.sampled_at = now;
            smoothed.samples = (smoothed.samples + 1.0).min(MEMORY);
            smoothed.rate += (sample - smoothed.rate) / smoothed.samples;
        }
    }

    /// Bandwidth of a path, bytes per second, above 0; what its view shows if no sample was taken.
    pub fn rate(&self, path: &PathView) -> f64 {
        let known = self.rates.get(path.id).map(|smoothed| smoothed.rate);
        known.unwrap_or_else(|| self.sample(path)).max(1.0)
    }

    fn sample(&self, path: &PathView) -> f64 {
        let window = path.cwnd.get() as f64 / path.smoothed_rtt.max(LEAST_RTT).as_secs_f64();
        match (self.source, path.delivery_rate) {
            (RateSource::Delivery, Some(rate)) => rate.as_bytes_per_sec() as f64,
            _ => window,
        }
    }
}
