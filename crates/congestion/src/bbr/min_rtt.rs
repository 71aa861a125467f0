//! The path's round-trip propagation delay, and when it has to be measured anew.

use std::time::Duration;

use swiftwater_units::Instant;

/// What a sample as low as the lowest so far does.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Refresh {
    /// It confirms the minimum, so that no measurement is needed for a while (Linux's BBRv1).
    EqualOrLower,
    /// Nothing: only a lower one counts (BBRv2, BBRv3).
    Lower,
}

/// Minimum of the round-trip times (draft-ietf-ccwg-bbr, section 5.3.4.3, "`UpdateMinRTT`").
///
/// Two minima run side by side. That of the last `interval` says when `ProbeRTT` is due; that of
/// the last `window` is the estimate. With a window longer than the interval, the estimate from the
/// last `ProbeRTT` still stands while the next one drains the queue: a target that is a share of
/// the estimated bandwidth-delay product needs that, because the first sample after the minimum has
/// expired includes the very queue that is to be drained.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MinRtt {
    interval: Duration,
    window: Duration,
    refresh: Refresh,
    /// Minimum since the last `ProbeRTT` became due, and when it was seen.
    recent: Option<Duration>,
    recent_at: Instant,
    min: Option<Duration>,
    min_at: Instant,
    due: bool,
}

impl MinRtt {
    /// Nothing measured yet.
    pub fn new(now: Instant, interval: Duration, window: Duration, refresh: Refresh) -> Self {
        Self {
            interval,
            window,
            refresh,
            recent: None,
            recent_at: now,
            min: None,
            min_at: now,
            due: false,
        }
    }

    /// An ACK arrived `sample` after the newest packet it acknowledges had left. The delay that the
    /// peer says it held the ACK back is not subtracted: it might say too much.
    pub fn on_sample(&mut self, now: Instant, sample: Duration) {
        self.due = now > self.recent_at + self.interval;
        if self.due || self.replaces(sample, self.recent) {
            (self.recent, self.recent_at) = (Some(sample), now);
        }
        let expired = now > self.min_at + self.window;
        if let Some(recent) = self.recent
            && (expired || self.replaces(recent, self.min))
        {
            (self.min, self.min_at) = (Some(recent), self.recent_at);
        }
    }

    /// True if the last sample found that there was no low one for an interval.
    pub fn probe_is_due(&self) -> bool {
        self.due
    }

    /// `ProbeRTT` ended: the next one is due an interval from now.
    pub fn on_probe_done(&mut self, now: Instant) {
        self.recent_at = now;
        self.due = false;
    }

    /// The estimate; `None` before the first sample.
    pub fn get(&self) -> Option<Duration> {
        self.min
    }

    fn replaces(&self, sample: Duration, old: Option<Duration>) -> bool {
        match self.refresh {
            Refresh::EqualOrLower => old.is_none_or(|old| sample <= old),
            Refresh::Lower => old.is_none_or(|old| sample < old),
        }
    }
}
