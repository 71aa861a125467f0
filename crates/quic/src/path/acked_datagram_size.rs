//! The largest datagram that was acknowledged on a path lately: beside path validation, evidence
//! whether the path carries datagrams at all, and full-sized ones (RFC 9000, section 14.2).

use swiftwater_units::PacketNumber;

use crate::datagram_size::MIN_MAX_DATAGRAM_SIZE;
use crate::recovery::AckedPacket;

/// Acknowledged sizes of one path.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct AckedDatagramSize {
    /// The first packet that counts; earlier ones were sent on another path, or before a change.
    first: PacketNumber,
    largest_acked: u16,
}

impl AckedDatagramSize {
    /// Counts from the packet `first` on.
    pub(crate) fn starting_at(first: PacketNumber) -> Self {
        Self {
            first,
            largest_acked: 0,
        }
    }

    /// Packets were acknowledged.
    pub(crate) fn on_acked(&mut self, packets: &[AckedPacket]) {
        let here = packets.iter().filter(|packet| packet.number >= self.first);
        let largest = here.map(|packet| packet.size).max().unwrap_or(0);
        self.largest_acked = self.largest_acked.max(largest);
    }

    /// True if a datagram arrived that is as large as each path must carry.
    pub(crate) fn is_full(&self) -> bool {
        self.largest_acked >= MIN_MAX_DATAGRAM_SIZE
    }

    /// True if anything arrived.
    pub(crate) fn is_any(&self) -> bool {
        self.largest_acked > 0
    }
}
