//! The distribution of reported play times, and the thresholds that follow from it.

use std::collections::BTreeMap;
use std::time::Duration;

use super::XlinkConfig;

/// Width of a bucket of the histogram.
const BUCKET: Duration = Duration::from_millis(10);
/// Play times beyond are counted as this one.
const LONGEST: Duration = Duration::from_secs(60);
/// Samples before thresholds are taken from the distribution.
const LEAST_SAMPLES: u64 = 1_000;
/// Samples at which all counts are halved, so that old ones lose weight.
const MOST_SAMPLES: u64 = 4_000;

/// The two thresholds of the control.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Thresholds {
    /// Below it data are copied.
    pub th1: Duration,
    /// Above it none are; at least `th1`.
    pub th2: Duration,
}

/// A decaying histogram of play times, with buckets of 10 ms up to 60 s.
#[derive(Clone, Debug, Default)]
pub struct PlayTimes {
    counts: BTreeMap<u16, u32>,
    samples: u64,
    /// Samples ever.
    seen: u64,
}

impl PlayTimes {
    /// Counts a report.
    pub fn record(&mut self, play_time: Duration) {
        let bucket = play_time.min(LONGEST).as_millis() / BUCKET.as_millis();
        *self.counts.entry(bucket as u16).or_default() += 1;
        self.samples += 1;
        self.seen = self.seen.saturating_add(1);
        if self.samples >= MOST_SAMPLES {
            self.counts.retain(|_, count| {
                *count /= 2;
                *count > 0
            });
            self.samples = self.counts.values().map(|count| u64::from(*count)).sum();
        }
    }

    /// The play time that this share of the samples exceed, to 10 ms.
    pub fn exceeded_by(&self, share: f64) -> Duration {
        let rank = (1.0 - share) * self.samples as f64;
        let mut below = 0;
        let at = self.counts.iter().find(|(_, count)| {
            below += u64::from(**count);
            below as f64 > rank
        });
        // Of all samples: the longest of them.
        let at = at.or_else(|| self.counts.iter().next_back());
        at.map_or(Duration::ZERO, |(bucket, _)| BUCKET * u32::from(*bucket))
    }

    /// The thresholds of `config`: its own, or tuned once there are 1000 samples.
    pub fn thresholds(&self, config: &XlinkConfig) -> Thresholds {
        let (th1, th2) = if config.tune && self.seen >= LEAST_SAMPLES {
            (
                self.exceeded_by(config.th1_share),
                self.exceeded_by(config.th2_share),
            )
        } else {
            (config.th1, config.th2)
        };
        Thresholds {
            th1,
            th2: th2.max(th1),
        }
    }
}
