//! Round-trip time estimation (RFC 9002, section 5) and the timeouts derived from it.

use std::time::Duration;

use swiftwater_congestion::RttView;
use swiftwater_units::Instant;

/// `kGranularity`: no timer is set shorter than this.
pub(super) const GRANULARITY: Duration = Duration::from_millis(1);

/// Estimator of one path's round-trip time.
#[derive(Clone, Copy, Debug)]
pub(super) struct RttEstimator {
    view: RttView,
    /// The last sample as measured; the loss delay needs it, `view.latest` is adjusted.
    latest_raw: Duration,
    first_sample_at: Option<Instant>,
    /// Packets sent earlier went to another address and say nothing about this one.
    valid_from: Instant,
    /// Sum and number of all samples as measured, former addresses included.
    total: Duration,
    samples: u32,
}

impl RttEstimator {
    /// No sample yet: `initial` is assumed (RFC 9002, section 6.2.2).
    pub(super) fn new(valid_from: Instant, initial: Duration) -> Self {
        Self {
            view: RttView {
                latest: initial,
                smoothed: initial,
                var: initial / 2,
                min: initial,
                min_at: valid_from,
                has_sample: false,
            },
            latest_raw: Duration::ZERO,
            first_sample_at: None,
            valid_from,
            total: Duration::ZERO,
            samples: 0,
        }
    }

    /// A fresh estimator for another address; only the mean goes on.
    pub(super) fn renewed(&self, now: Instant, initial: Duration) -> Self {
        let (total, samples) = (self.total, self.samples);
        Self {
            total,
            samples,
            ..Self::new(now, initial)
        }
    }

    /// What was known holds again, but which way packets sent before `now`
    /// went is unknown. `interim` is the estimator that was used meanwhile; its samples stay in the mean.
    pub(super) fn resumed(mut self, now: Instant, interim: &Self) -> Self {
        self.valid_from = now;
        self.total = interim.total;
        self.samples = interim.samples;
        self
    }

    /// A packet sent at `sent_at` was acknowledged now. True if this was the first sample.
    pub(super) fn on_sample(
        &mut self,
        now: Instant,
        sent_at: Instant,
        ack_delay: Duration,
    ) -> bool {
        if sent_at < self.valid_from {
            return false;
        }
        let latest = now.saturating_since(sent_at);
        self.latest_raw = latest;
        if self.samples < u32::MAX {
            self.samples += 1;
            self.total = self.total.saturating_add(latest);
        }
        if self.first_sample_at.is_none() {
            self.first_sample_at = Some(now);
            self.view = RttView {
                latest,
                smoothed: latest,
                var: latest / 2,
                min: latest,
                min_at: now,
                has_sample: true,
            };
            return true;
        }
        let view = &mut self.view;
        if latest <= view.min {
            view.min = latest;
            view.min_at = now;
        }
        // A peer may overstate its delay, but can't push the sample below what was really seen.
        let adjusted = match latest.checked_sub(ack_delay) {
            Some(adjusted) if adjusted >= view.min => adjusted,
            _ => latest,
        };
        view.latest = adjusted;
        view.var = ewma(view.var, view.smoothed.abs_diff(adjusted), 4);
        view.smoothed = ewma(view.smoothed, adjusted, 8);
        false
    }

    /// Persistent congestion: the path may have changed, so the old minimum no longer binds
    /// (RFC 9002, section 5.2).
    pub(super) fn discard_min(&mut self, now: Instant) {
        if self.view.has_sample {
            self.view.min = self.latest_raw;
            self.view.min_at = now;
        }
    }

    pub(super) fn view(&self) -> RttView {
        self.view
    }

    pub(super) fn first_sample_at(&self) -> Option<Instant> {
        self.first_sample_at
    }

    /// Mean of the samples as measured; zero before the first.
    pub(super) fn mean(&self) -> Duration {
        self.total / self.samples.max(1)
    }

    /// `min_rtt`, if one was measured.
    pub(super) fn min(&self) -> Option<Duration> {
        self.view.has_sample.then_some(self.view.min)
    }

    /// The time threshold of loss detection: `eighths / 8` of the RTT (RFC 9002, section 6.1.2).
    pub(super) fn loss_delay(&self, eighths: u32) -> Duration {
        let rtt = self.view.smoothed.max(self.latest_raw);
        (rtt.saturating_mul(eighths) / 8).max(GRANULARITY)
    }

    /// The probe timeout without `max_ack_delay` and back-off (RFC 9002, section 6.2.1).
    pub(super) fn pto_base(&self) -> Duration {
        self.view
            .smoothed
            .saturating_add(self.view.var.saturating_mul(4).max(GRANULARITY))
    }
}

/// `old + (new - old) / weight`, in whole nanoseconds.
fn ewma(old: Duration, new: Duration, weight: u32) -> Duration {
    let step = old.abs_diff(new) / weight;
    if new >= old {
        old.saturating_add(step)
    } else {
        old.saturating_sub(step)
    }
}
