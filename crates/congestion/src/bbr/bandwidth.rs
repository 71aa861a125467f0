//! The path's bandwidth as the largest of recent delivery-rate samples.

use swiftwater_units::Bandwidth;

use crate::windowed::Windowed;

/// Windowed maximum of delivery-rate samples (draft-ietf-ccwg-bbr, section 5.5.3).
///
/// Its clock counts rounds or probing cycles, not seconds, and only samples let values expire: a
/// flow that sends little keeps its older measurements.
#[derive(Clone, Debug, PartialEq)]
pub struct MaxBandwidth {
    samples: Windowed<u64, Bandwidth>,
    window: u64,
}

impl MaxBandwidth {
    /// No sample yet; each will count for `window` ticks of the clock after its own.
    pub fn new(window: u64) -> Self {
        Self {
            samples: Windowed::largest(),
            window,
        }
    }

    /// A sample at tick `now`. One that was limited by the application shows only that the path
    /// carries at least as much, so it counts only if it isn't below the estimate.
    pub fn on_sample(&mut self, now: u64, rate: Bandwidth, is_app_limited: bool) {
        if rate.is_zero() || (is_app_limited && rate < self.get()) {
            return;
        }
        self.samples.enter(now, rate);
        self.samples.discard_before(now.saturating_sub(self.window));
    }

    /// The estimate; zero before the first sample.
    pub fn get(&self) -> Bandwidth {
        self.samples.get().unwrap_or_default()
    }
}
