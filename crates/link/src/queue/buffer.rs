//! Capacity of a queue, and the fixed threshold of ECN marking.

use std::fmt;
use std::time::Duration;

use swiftwater_units::{ByteCount, PacketCount};

/// The size of a queue, packet in service included.
///
/// A packet that finds the queue empty is always accepted, however small the limit: it is
/// transmitted at once.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum Buffer {
    /// No limit.
    #[default]
    Unlimited,
    /// A number of bytes (payload plus per-packet overhead).
    Bytes(ByteCount),
    /// A number of packets.
    Packets(PacketCount),
    /// A multiple of the bandwidth-delay product, resolved to bytes at the creation of the link:
    /// the rate (the mean of a trace) times `LinkConfig::bdp_rtt`.
    Bdp(f64),
}

impl fmt::Display for Buffer {
    /// The format that `FromStr` reads.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unlimited => f.write_str("unlimited"),
            Self::Bytes(bytes) => write!(f, "{}B", bytes.get()),
            Self::Packets(packets) => write!(f, "{}p", packets.get()),
            Self::Bdp(factor) => write!(f, "{factor}bdp"),
        }
    }
}

/// When ECN-capable packets are marked: if the queue found by an arriving packet, without that
/// packet, is above this.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum EcnThreshold {
    /// A number of bytes.
    Bytes(ByteCount),
    /// A number of packets.
    Packets(PacketCount),
    /// A waiting time until transmission starts.
    Delay(Duration),
}

/// A resolved [`Buffer`].
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limit {
    pub(crate) bytes: u64,
    pub(crate) packets: u64,
}

impl Limit {
    /// Whether `bytes` and `packets` are within the limit.
    pub(crate) fn holds(self, bytes: u64, packets: u64) -> bool {
        bytes <= self.bytes && packets <= self.packets
    }
}
