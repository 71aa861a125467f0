//! The cost of delivering a stream in bytes, by each definition in use.

use std::iter::Sum;
use std::ops::{Add, AddAssign};

use swiftwater_units::ByteCount;

/// Bytes sent by a stream's sender, each counted once.
///
/// "Bandwidth cost" (BWC) is defined in three ways in the literature; all three are implemented, so
/// that numbers can be compared with each source. Ratios may exceed 1, and are `None` while nothing
/// was sent.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Cost {
    /// Bytes of frames, sent for the first time.
    pub source_bytes: ByteCount,
    /// Bytes sent in advance of known or repeated losses: repair packets of erasure codes in every
    /// round, replicas.
    pub redundancy_bytes: ByteCount,
    /// Bytes of frames retransmitted because they were declared lost.
    pub retransmitted_bytes: ByteCount,
    /// Headers of the packets that carry all these; the sender defines the counted layers.
    pub header_bytes: ByteCount,
}

impl Cost {
    /// All bytes sent.
    pub fn total(&self) -> ByteCount {
        self.source_bytes + self.redundancy_bytes + self.retransmitted_bytes + self.header_bytes
    }

    /// Redundant bytes over source bytes, retransmissions left out: the definition that matches the
    /// AutoRec paper's numbers (one repair packet for six data packets costs 16.7 %).
    pub fn redundancy_over_source(&self) -> Option<f64> {
        ratio(self.redundancy_bytes, self.source_bytes)
    }

    /// All bytes except first transmissions of frames, over all bytes sent: the literal reading of
    /// the AutoRec paper ("non-video-frame bytes over total bytes").
    pub fn non_video_over_total(&self) -> Option<f64> {
        let total = self.total();
        ratio(total - self.source_bytes, total)
    }

    /// Redundant and retransmitted bytes over source bytes: the definition of Hairpin's scripts.
    pub fn resent_over_source(&self) -> Option<f64> {
        let resent = self.redundancy_bytes + self.retransmitted_bytes;
        ratio(resent, self.source_bytes)
    }
}

fn ratio(part: ByteCount, of: ByteCount) -> Option<f64> {
    (!of.is_zero()).then(|| part.get() as f64 / of.get() as f64)
}

impl Add for Cost {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            source_bytes: self.source_bytes + other.source_bytes,
            redundancy_bytes: self.redundancy_bytes + other.redundancy_bytes,
            retransmitted_bytes: self.retransmitted_bytes + other.retransmitted_bytes,
            header_bytes: self.header_bytes + other.header_bytes,
        }
    }
}

impl AddAssign for Cost {
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}

impl Sum for Cost {
    fn sum<I: Iterator<Item = Self>>(iter: I) -> Self {
        iter.fold(Self::default(), Add::add)
    }
}
