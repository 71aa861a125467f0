//! What a receiver can tell of its peer's losses: packet numbers that never came (RFC 9000, section 12.3).

use std::ops::AddAssign;

use swiftwater_units::PacketCount;

/// Packets of the peer in the application data packet number space of a path, as their receiver counts them: an estimate
/// of the loss on the way here, which acknowledgements tell only the sender.
///
/// A packet number is expected once three greater ones are in use: three is the distance within which the order of
/// packets may change (RFC 9002, section 6.1.1). It is missing until it arrives: a packet that comes later than that
/// counts as missing at first, and not any more once it has come. Therefore `missing` may fall, and
/// reordering alone leaves nothing behind. Numbers are counted from the least one that came.
///
/// What else the numbers tell, and what they don't:
///
/// - A number that the peer skips on purpose (RFC 9000, section 21.4) is missing. An endpoint of this crate skips its
///   second number, and then one in at least 256, ever fewer.
/// - Packets of all kinds count, those too that only acknowledge and probes of a path MTU that is too large. What came damaged,
///   or can't be decrypted, as early data that were refused, has not come. Copies made by the network don't count.
/// - Losses behind which fewer than three further numbers are in use are not known yet: those at the end of a transfer.
/// - An update of the keys changes nothing, since numbers go on (RFC 9001, section 6).
/// - With multipath each path has numbers of its own. A path that moves to another address keeps them.
/// - A packet that is older than the 256 last gaps remains missing, though it may come.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Arrivals {
    /// Packet numbers that should have come.
    pub expected: PacketCount,
    /// Of these, those that have not.
    pub missing: PacketCount,
}

impl Arrivals {
    /// What has changed since `earlier`. Packets that were missing then and have come meanwhile make up for others
    /// that are missing now, but the difference is never below zero.
    #[must_use]
    pub fn since(&self, earlier: &Self) -> Self {
        let expected = self.expected - earlier.expected;
        Self {
            expected,
            missing: (self.missing - earlier.missing).min(expected),
        }
    }

    /// Share of missing packets, 0 to 1; `None` if none were expected.
    pub fn missing_share(&self) -> Option<f64> {
        let share = self.missing.get() as f64 / self.expected.get() as f64;
        (self.expected.get() > 0).then_some(share)
    }
}

impl AddAssign for Arrivals {
    fn add_assign(&mut self, other: Self) {
        self.expected += other.expected;
        self.missing += other.missing;
    }
}
