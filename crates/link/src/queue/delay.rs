//! Waiting time of packets in a queue.

use std::time::Duration;

use hdrhistogram::Histogram;
use swiftwater_units::{Instant, PacketCount};

/// Significant decimal digits of percentiles.
const DIGITS: u8 = 2;

/// Waiting time of packets: from arrival to dequeue (the sojourn time of RFC 8289, section 3.1),
/// their own transmission not included.
///
/// Dropped packets are not included. With drop-tail and RED the time is known at arrival, and the
/// packet is counted then; with the others at dequeue.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct DelayStats {
    /// Packets counted.
    pub packets: PacketCount,
    /// Mean over packets.
    pub mean: Duration,
    /// The longest.
    pub max: Duration,
    /// The delay that 99 % of packets didn't exceed, correct to 1 %.
    pub p99: Duration,
}

/// Collects [`DelayStats`] in bounded memory.
#[derive(Clone, Debug, Default)]
pub(crate) struct DelayRecorder {
    packets: u64,
    total: u128,
    max: u64,
    /// Delays above zero, in nanoseconds; `None` before the first, as on links without a queue.
    histogram: Option<Box<Histogram<u32>>>,
}

impl DelayRecorder {
    /// Records a waiting time from `from` to `to`; zero if that is earlier.
    pub(crate) fn record(&mut self, from: Instant, to: Instant) {
        let nanos = to.as_nanos().saturating_sub(from.as_nanos());
        self.packets += 1;
        if nanos == 0 {
            return;
        }
        self.total += u128::from(nanos);
        self.max = self.max.max(nanos);
        if self.histogram.is_none() {
            // Only an invalid number of digits is an error.
            self.histogram = Histogram::new(DIGITS).ok().map(Box::new);
        }
        if let Some(histogram) = &mut self.histogram {
            // It grows automatically, to all 64 bits, so there is no error.
            let _ = histogram.record(nanos);
        }
    }

    pub(crate) fn stats(&self) -> DelayStats {
        let mean = self.total.checked_div(u128::from(self.packets));
        DelayStats {
            packets: PacketCount::new(self.packets),
            mean: Duration::from_nanos(mean.unwrap_or(0) as u64),
            max: Duration::from_nanos(self.max),
            p99: Duration::from_nanos(self.p99()),
        }
    }

    fn p99(&self) -> u64 {
        let Some(histogram) = &self.histogram else {
            return 0;
        };
        // The histogram does not contain packets without waiting time.
        let rank = self.packets - self.packets / 100;
        let zeros = self.packets - histogram.len();
        if rank <= zeros {
            return 0;
        }
        let quantile = (rank - zeros) as f64 / histogram.len() as f64;
        histogram.value_at_quantile(quantile).min(self.max)
    }

    pub(crate) fn reset(&mut self) {
        *self = Self::default();
    }
}
