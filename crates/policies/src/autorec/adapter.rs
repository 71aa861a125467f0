//! The redundancy adapter (AutoRec, section V-A): measures R and `T_unit` per decision interval and
//! chooses the redundancy level.
//!
//! What the paper leaves open is settled so: R is (packets declared lost)/(packets acknowledged or
//! declared lost) among those settled during the interval, whenever they left; an interval with too
//! few packets goes on; without a sample of `T_unit` in the interval the last one stays, and before
//! the first the time threshold of RFC 9002, section 6.1.2 stands for it.

use std::time::Duration;

use swiftwater_quic::policy::{PacketFate, PacketOutcome};
use swiftwater_units::Instant;

use super::config::AutoRecConfig;
use super::model::LossModel;

/// Least time threshold of RFC 9002 (its kGranularity).
const GRANULARITY: Duration = Duration::from_millis(1);

/// A slow average with less than this of a lost packet left in it counts as without loss.
const FORGOTTEN: f64 = 0.5;

/// What a decision came to.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Decision {
    /// `K_theta`.
    pub level: u32,
    /// R that it was made from, 0 to 1.
    pub loss_rate: f64,
    /// `T_unit` that it was made from.
    pub detection_time: Duration,
}

impl Decision {
    /// `T_thres` (formula 5).
    pub fn silence_threshold(&self) -> Duration {
        self.detection_time / (self.level + 1)
    }
}

/// What was seen in the present interval.
#[derive(Clone, Copy, Debug, Default)]
struct Interval {
    settled: u64,
    lost: u64,
    spurious: u64,
    detection_sum: Duration,
    detections: u32,
}

impl Interval {
    /// Packets that count as lost. A spurious loss may have been counted in an interval before.
    fn losses(&self, config: &AutoRecConfig) -> u64 {
        let spurious = if config.subtract_spurious {
            self.spurious
        } else {
            0
        };
        self.lost.saturating_sub(spurious)
    }
}

/// Sums that fade.
#[derive(Clone, Copy, Debug, Default)]
struct SlowLoss {
    settled: f64,
    lost: f64,
}

impl SlowLoss {
    /// Adds an interval of `length` and lets what was before fade: by half within `memory`.
    fn add(&mut self, length: Duration, memory: Duration, settled: u64, lost: u64) {
        // Not exponential, whose last digit depends on the machine, and close enough.
        let (length, memory) = (length.as_secs_f64(), memory.as_secs_f64());
        let keep = if memory > 0.0 {
            memory / (memory + length)
        } else {
            0.0
        };
        self.settled = self.settled * keep + settled as f64;
        self.lost = self.lost * keep + lost as f64;
    }

    fn rate(&self) -> f64 {
        if self.lost < FORGOTTEN {
            return 0.0;
        }
        self.lost / self.settled.max(1.0)
    }
}

/// Measures and decides. Feed it outcomes and first retransmissions; it says when a decision was
/// made.
#[derive(Clone, Debug)]
pub struct RedundancyAdapter {
    interval: Interval,
    /// When the interval began; `None` before the first outcome.
    since: Option<Instant>,
    slow: SlowLoss,
    /// Mean of the last interval that had samples.
    measured_detection_time: Option<Duration>,
    smoothed_rtt: Duration,
    loss_rate: f64,
    level: u32,
    decisions: u64,
}

impl RedundancyAdapter {
    /// An adapter that has seen nothing: level 0, or the fixed one.
    pub fn new(config: &AutoRecConfig) -> Self {
        Self {
            interval: Interval::default(),
            since: None,
            slow: SlowLoss::default(),
            measured_detection_time: None,
            smoothed_rtt: Duration::ZERO,
            loss_rate: 0.0,
            level: config.fixed_level.unwrap_or(0),
            decisions: 0,
        }
    }

    /// The decision that holds.
    pub fn decision(&self) -> Decision {
        Decision {
            level: self.level,
            loss_rate: self.loss_rate,
            detection_time: self.detection_time(),
        }
    }

    /// Decisions so far.
    pub fn decisions(&self) -> u64 {
        self.decisions
    }

    /// `T_unit` at present.
    fn detection_time(&self) -> Duration {
        self.measured_detection_time.unwrap_or_else(|| {
            let srtt = self.smoothed_rtt;
            (srtt + srtt / 8).max(srtt + GRANULARITY)
        })
    }

    /// A data range was retransmitted for the first time, `time` after its first transmission.
    pub fn on_detection(&mut self, time: Duration) {
        self.interval.detection_sum = self.interval.detection_sum.saturating_add(time);
        self.interval.detections = self.interval.detections.saturating_add(1);
    }

    /// Packets were acknowledged or declared lost on a path with this smoothed round-trip time.
    /// True if that ended the interval and a new decision holds.
    pub fn on_outcomes(
        &mut self,
        now: Instant,
        outcomes: &[PacketOutcome],
        smoothed_rtt: Duration,
        config: &AutoRecConfig,
    ) -> bool {
        self.smoothed_rtt = smoothed_rtt;
        let since = *self.since.get_or_insert(now);
        for outcome in outcomes {
            if config.exclude_replicas && outcome.repeated {
                continue;
            }
            match outcome.fate {
                PacketFate::Acked => self.interval.settled += 1,
                PacketFate::Lost => {
                    self.interval.settled += 1;
                    self.interval.lost += 1;
                }
                // Counted as settled when it was declared lost.
                PacketFate::Spurious => self.interval.spurious += 1,
            }
        }
        let length = (smoothed_rtt * config.interval_rtts).max(config.min_interval);
        let elapsed = now.saturating_since(since);
        let enough = config.carry_below.max(1);
        if elapsed < length || self.interval.settled < enough {
            return false;
        }
        self.decide(elapsed, config);
        self.since = Some(now);
        true
    }

    /// Ends the interval.
    fn decide(&mut self, elapsed: Duration, config: &AutoRecConfig) {
        let interval = std::mem::take(&mut self.interval);
        let lost = interval.losses(config);
        self.slow
            .add(elapsed, config.loss_memory, interval.settled, lost);
        if interval.detections > 0 {
            let mean = interval.detection_sum / interval.detections;
            self.measured_detection_time = Some(mean);
        }
        self.loss_rate = if lost == 0 && !config.loss_memory.is_zero() {
            self.slow.rate()
        } else {
            lost as f64 / interval.settled.max(1) as f64
        };
        self.apply(config);
    }

    /// Chooses the level anew from what the last interval showed.
    pub fn apply(&mut self, config: &AutoRecConfig) {
        let model = LossModel::new(self.loss_rate, self.detection_time());
        self.level = config
            .fixed_level
            .unwrap_or_else(|| model.choose(&config.tolerances, config.max_level).level);
        self.decisions += 1;
    }
}
