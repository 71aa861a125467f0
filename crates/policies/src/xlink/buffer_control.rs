//! The control by two thresholds: whether the player's buffer is so low that copies are worth their cost.
//!
//! XLINK's double-threshold control. The play time that is left is what the player reported, less the time since, and less
//! the time that the report was on the way. Before the first report, until playback runs, and while
//! reports fail to come, nothing is known of the buffer, and data are copied.

use std::time::Duration;

use swiftwater_quic::policy::{PathView, PlayerSignal};
use swiftwater_units::Instant;

use super::XlinkConfig;
use super::play_times::{PlayTimes, Thresholds};

/// How long copies are urgent because the player is silent.
const URGENT_SILENCE: Duration = Duration::from_secs(10);
/// Intervals between reports after which the player counts as silent.
const SILENT_AFTER: u32 = 3;

/// By how much a time has passed when it is over.
const TICK: Duration = Duration::from_millis(1);

/// Whether data in flight are to be copied.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Need {
    /// No, and without a new report not before this time.
    None {
        /// `None`: not before a report.
        until: Option<Instant>,
    },
    /// Yes.
    Normal,
    /// Yes, and a stall is near.
    Urgent,
}

/// What the player reported last.
#[derive(Clone, Copy, Debug)]
struct Report {
    received_at: Instant,
    /// How old it was then.
    age: Duration,
    play_time: Option<Duration>,
    stalled: bool,
}

/// See the module's documentation.
#[derive(Clone, Debug, Default)]
pub struct BufferControl {
    report: Option<Report>,
    /// A report said that playback runs.
    has_played: bool,
    /// When data were first sent.
    started_at: Option<Instant>,
    play_times: PlayTimes,
}

impl BufferControl {
    /// Data left.
    pub fn on_data(&mut self, now: Instant) {
        self.started_at.get_or_insert(now);
    }

    /// The player reported its state `age` ago.
    pub fn on_report(&mut self, now: Instant, age: Duration, state: &PlayerSignal) {
        self.has_played |= !state.stalled;
        let play_time = state.play_time();
        if let Some(play_time) = play_time.filter(|_| self.has_played) {
            self.play_times.record(play_time);
        }
        self.report = Some(Report {
            received_at: now,
            age,
            play_time,
            stalled: state.stalled,
        });
    }

    /// The thresholds in force.
    pub fn thresholds(&self, config: &XlinkConfig) -> Thresholds {
        self.play_times.thresholds(config)
    }

    /// Whether data in flight on `paths` are to be copied now.
    pub fn decide(&self, now: Instant, config: &XlinkConfig, paths: &[PathView]) -> Need {
        if !config.control {
            return Need::Normal;
        }
        let Some(report) = self.report else {
            return match self.started_at {
                _ if !config.start => Need::None { until: None },
                Some(start) => after_silence_of(now.saturating_since(start)),
                None => Need::Urgent,
            };
        };
        let silent_at = report.received_at + config.report_interval * SILENT_AFTER;
        if now > silent_at {
            return after_silence_of(now - silent_at);
        }
        if !self.has_played && !config.start {
            return Need::None { until: None };
        }
        if report.stalled {
            return Need::Urgent;
        }
        let Some(play_time) = report.play_time else {
            return Need::Normal;
        };
        let passed = now.saturating_since(report.received_at) + report.age;
        let left = play_time.saturating_sub(passed);
        let Thresholds { th1, th2 } = self.thresholds(config);
        let bound = longest_delivery(config, paths).clamp(th1, th2);
        if left < th1 {
            Need::Urgent
        } else if left < bound {
            Need::Normal
        } else {
            let until = left.saturating_sub(bound).min(URGENT_SILENCE) + TICK;
            Need::None {
                until: Some((now + until).min(silent_at + TICK)),
            }
        }
    }
}

fn after_silence_of(time: Duration) -> Need {
    if time <= URGENT_SILENCE {
        Need::Urgent
    } else {
        Need::Normal
    }
}

/// The longest time that data in flight may take yet.
fn longest_delivery(config: &XlinkConfig, paths: &[PathView]) -> Duration {
    let holding = paths.iter().filter(|path| !path.bytes_in_flight.is_zero());
    let variation = |path: &PathView| {
        let seconds = path.rtt_var.as_secs_f64() * config.variance;
        Duration::try_from_secs_f64(seconds).unwrap_or_default()
    };
    let times = holding.map(|path| path.smoothed_rtt + variation(path));
    times.max().unwrap_or_default()
}
