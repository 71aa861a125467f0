//! How long packets wait in a queue.

use std::time::Duration;

use hdrhistogram::Histogram;
use swiftwater_units::{Instant, PacketCount};

/// Significant decimal digits of percentiles.
const DIGITS: u8 = 2;

/// How long packets waited: from their arrival until the transmitter turned to them (the sojourn
/// time of RFC 8289, section 3.1), their own transmission not included.
///
/// Dropped packets don't count. Drop-tail and RED know the time at arrival and count the packet
/// then; the others when the transmitter takes it.
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
    /// Delays above zero, in nanoseconds; `None` before the first, as on links that never queue.
    histogram: Option<Box<Histogram<u32>>>,
}

impl DelayRecorder {
    /// A packet waited from `from` to `to`; not at all if that is earlier.
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
            // It grows as needed, to all of 64 bits: there's no error.
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
        // The histogram lacks the packets that didn't wait at all.
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
