//! Round-trip time estimation of the sender (RFC 9002, section 5).

use std::time::Duration;

/// Timer granularity (RFC 9002, section 6.1.2).
const GRANULARITY: Duration = Duration::from_millis(1);

/// Estimates from samples of the round-trip time.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct RttEstimate {
    /// Smoothed round-trip time, gain 1/8.
    pub smoothed: Duration,
    /// Its mean deviation, gain 1/4.
    pub variation: Duration,
    /// The latest sample.
    pub latest: Duration,
    /// The smallest sample; `None` without one.
    pub min: Option<Duration>,
}

impl RttEstimate {
    /// No samples; assumes `initial`.
    pub fn new(initial: Duration) -> Self {
        Self {
            smoothed: initial,
            variation: initial / 2,
            latest: initial,
            min: None,
        }
    }

    /// A new sample.
    pub fn on_sample(&mut self, sample: Duration) {
        self.latest = sample;
        let Some(min) = self.min else {
            self.min = Some(sample);
            self.smoothed = sample;
            self.variation = sample / 2;
            return;
        };
        self.min = Some(min.min(sample));
        let deviation = self.smoothed.abs_diff(sample);
        self.variation = (self.variation * 3 + deviation) / 4;
        self.smoothed = (self.smoothed * 7 + sample) / 8;
    }

    /// Time threshold of loss detection: 9/8 of the round-trip time (RFC 9002, section 6.1.2).
    pub fn loss_delay(&self) -> Duration {
        (self.smoothed.max(self.latest) * 9 / 8).max(GRANULARITY)
    }

    /// The probe timeout (RFC 9002, section 6.2.1); the receiver doesn't delay acknowledgements.
    pub fn probe_timeout(&self) -> Duration {
        self.smoothed + (self.variation * 4).max(GRANULARITY)
    }
}
