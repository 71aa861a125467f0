//! What delivering a stream cost, in bytes, by each definition in use.

use std::iter::Sum;
use std::ops::{Add, AddAssign};

use swiftwater_units::ByteCount;

/// Bytes sent by a stream's sender, each counted in one place.
///
/// "Bandwidth cost" (BWC) is defined in three ways by those who compare protection schemes; all three
/// are here, so that numbers can be compared with each source. Ratios may exceed 1, and are `None`
/// while nothing was sent.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Cost {
    /// Bytes of frames, each sent the first time.
    pub source_bytes: ByteCount,
    /// Bytes sent so that losses do no harm before they are known or again lost: repair packets of
    /// erasure codes in every round, replicas.
    pub redundancy_bytes: ByteCount,
    /// Bytes of frames sent again because they were taken for lost.
    pub retransmitted_bytes: ByteCount,
    /// Headers of the packets that carry all these. Of which layers: what the sender counts.
    pub header_bytes: ByteCount,
}

impl Cost {
    /// All bytes sent.
    pub fn total(&self) -> ByteCount {
        self.source_bytes + self.redundancy_bytes + self.retransmitted_bytes + self.header_bytes
    }

    /// Redundant bytes over source bytes, retransmissions left out: the definition that the AutoRec
    /// paper's numbers fit (one repair packet for six data packets costs 16.7 %).
    pub fn redundancy_over_source(&self) -> Option<f64> {
        ratio(self.redundancy_bytes, self.source_bytes)
    }

    /// All that is not a frame's first transmission over all bytes sent: the AutoRec paper's wording
    /// ("non-video-frame bytes over total bytes"), taken at its word.
    pub fn non_video_over_total(&self) -> Option<f64> {
        let total = self.total();
        ratio(total - self.source_bytes, total)
    }

    /// Redundant and retransmitted bytes over source bytes: how Hairpin's own scripts count.
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
