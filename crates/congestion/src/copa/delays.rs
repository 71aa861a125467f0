//! The three round-trip times of Copa: the least over seconds, the least over half a round trip
//! (the *standing* one, which ACK compression and jitter don't raise), and the greatest over a few
//! round trips (paper, sections 2.1 and 2.2).

use std::time::Duration;

use swiftwater_units::Instant;

use super::CopaConfig;
use crate::sample::RttView;
use crate::windowed::Windowed;

/// A value that follows a better one within this share of the window isn't kept: it would
/// matter for that share of the window at most, and the memory stays bounded.
const GRAIN: u32 = 64;

/// An extremum over a sliding window of time, to a 64th of the window.
#[derive(Clone, Debug, PartialEq)]
struct Extremum {
    values: Windowed<Instant, Duration>,
    last: Option<(Instant, Duration)>,
    largest: bool,
}

impl Extremum {
    fn new(largest: bool) -> Self {
        Self {
            values: if largest {
                Windowed::largest()
            } else {
                Windowed::smallest()
            },
            last: None,
            largest,
        }
    }

    fn enter(&mut self, now: Instant, value: Duration, window: Duration) {
        let is_covered = self.last.is_some_and(|(at, last)| {
            let better = if self.largest {
                last >= value
            } else {
                last <= value
            };
            better && now.saturating_since(at) < window / GRAIN
        });
        if !is_covered {
            self.values.enter(now, value);
            self.last = Some((now, value));
        }
        self.values.discard_before(now - window);
    }

    fn get(&self) -> Option<Duration> {
        self.values.get()
    }
}

/// Copa's measurements of the path's round-trip times.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Delays {
    config: CopaConfig,
    min: Extremum,
    standing: Extremum,
    max: Extremum,
}

impl Delays {
    pub(super) fn new(config: CopaConfig) -> Self {
        Self {
            config,
            min: Extremum::new(false),
            standing: Extremum::new(false),
            max: Extremum::new(true),
        }
    }

    /// Takes in the sample of an ACK.
    pub(super) fn observe(&mut self, now: Instant, rtt: &RttView) {
        if !rtt.has_sample {
            return;
        }
        let CopaConfig {
            min_rtt_window,
            standing_window,
            max_rtt_window,
            ..
        } = self.config;
        self.min.enter(now, rtt.latest, min_rtt_window);
        self.standing
            .enter(now, rtt.latest, scaled(rtt.smoothed, standing_window));
        self.max
            .enter(now, rtt.latest, scaled(rtt.smoothed, max_rtt_window));
    }

    /// `RTTmin`.
    pub(super) fn min(&self) -> Option<Duration> {
        self.min.get()
    }

    /// `RTTstanding`.
    pub(super) fn standing(&self) -> Option<Duration> {
        self.standing.get()
    }

    /// `dq`, the time that packets stand in the queue; zero if nothing is known.
    pub(super) fn queueing(&self) -> Duration {
        match (self.standing(), self.min()) {
            (Some(standing), Some(min)) => standing.saturating_sub(min),
            _ => Duration::ZERO,
        }
    }

    /// True if the queue is nearly empty: it holds less than a tenth (by default) of what it held
    /// at its fullest in the last round trips (paper, section 2.2).
    pub(super) fn is_nearly_empty(&self) -> bool {
        let (Some(min), Some(max)) = (self.min(), self.max.get()) else {
            return true;
        };
        self.queueing() <= scaled(max.saturating_sub(min), self.config.empty_threshold)
    }
}

/// `time` times `factor`, which is neither negative nor NaN; at most what a `Duration` holds.
pub(super) fn scaled(time: Duration, factor: f64) -> Duration {
    Duration::try_from_secs_f64(time.as_secs_f64() * factor).unwrap_or(Duration::MAX)
}
