//! Counters of the fates of packets.

use swiftwater_units::{ByteCount, PacketCount};

/// A number of packets and the bytes in them.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Tally {
    /// Packets.
    pub packets: PacketCount,
    /// Their bytes on the wire: payload plus `LinkConfig::per_packet_overhead`.
    pub bytes: ByteCount,
}

impl Tally {
    pub(crate) fn add(&mut self, size: u32) {
        self.packets += PacketCount::new(1);
        self.bytes += ByteCount::new(u64::from(size));
    }

    pub(crate) fn remove(&mut self, size: u32) {
        self.packets -= PacketCount::new(1);
        self.bytes -= ByteCount::new(u64::from(size));
    }
}

/// Counters of the packets given to a link since its creation.
///
/// At any time, for packets and for bytes,
/// `enqueued + duplicated = delivered + dropped() + in transit` (`Link::in_transit`).
///
/// With drop-tail and RED, drops, marks, corruption and duplication are decided when the packet
/// enters the link and counted then, also for a random loss, which takes the packet only after it
/// has passed the queue. With the other disciplines all this is decided when the packet is
/// dequeued; only a packet that finds no space is dropped earlier.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Counters {
    /// Offered to the link, with any fate.
    pub enqueued: Tally,
    /// Delivered at the far end, copies included.
    pub delivered: Tally,
    /// Dropped because the queue was full.
    pub dropped_queue: Tally,
    /// Dropped by the queue's discipline although there was space.
    pub dropped_aqm: Tally,
    /// Lost at random after the queue, by the loss model or by the loss column of a trace.
    pub dropped_random: Tally,
    /// Dropped because they were larger than the MTU.
    pub dropped_mtu: Tally,
    /// Extra copies created.
    pub duplicated: Tally,
    /// Delivered after a packet that had been sent later (RFC 4737, section 3.3); part of
    /// `delivered`.
    pub reordered: Tally,
    /// Packets with flipped bits.
    pub corrupted: Tally,
    /// Packets whose codepoint the link changed from ECT to CE.
    pub ecn_marked: Tally,
}

impl Counters {
    /// All packets dropped, for any reason.
    pub fn dropped(&self) -> Tally {
        let parts = [
            self.dropped_queue,
            self.dropped_aqm,
            self.dropped_random,
            self.dropped_mtu,
        ];
        Tally {
            packets: parts.iter().map(|part| part.packets).sum(),
            bytes: parts.iter().map(|part| part.bytes).sum(),
        }
    }
}
