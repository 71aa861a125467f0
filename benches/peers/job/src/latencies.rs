//! How long operations took.

use std::time::Duration;

/// Collects durations; each is kept, in 4 bytes.
#[derive(Clone, Debug, Default)]
pub struct Latencies(Vec<u32>);

impl Latencies {
    /// One more.
    pub fn record(&mut self, took: Duration) {
        let nanoseconds = u32::try_from(took.as_nanos()).unwrap_or(u32::MAX);
        self.0.push(nanoseconds);
    }

    /// Takes those of another collection.
    pub fn merge(&mut self, other: &Self) {
        self.0.extend_from_slice(&other.0);
    }

    /// How many there are.
    pub fn count(&self) -> u64 {
        self.0.len() as u64
    }

    /// The one that `percent` of all don't exceed, microseconds; 0 without any.
    pub(crate) fn percentile(&mut self, percent: usize) -> f64 {
        if self.0.is_empty() {
            return 0.0;
        }
        let index = (self.0.len() * percent / 100).min(self.0.len() - 1);
        let (_, nanoseconds, _) = self.0.select_nth_unstable(index);
        f64::from(*nanoseconds) / 1e3
    }
}
