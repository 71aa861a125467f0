//! How much a queue holds, and the fixed threshold of ECN marking.

use std::fmt;
use std::time::Duration;

use swiftwater_units::{ByteCount, PacketCount};

/// The size of a queue, packet in service included.
///
/// A packet that finds the queue empty is always accepted, however small the limit: an idle
/// transmitter needs no room to wait in.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum Buffer {
    /// No limit.
    #[default]
    Unlimited,
    /// At most so many bytes (payload plus per-packet overhead).
    Bytes(ByteCount),
    /// At most so many packets.
    Packets(PacketCount),
    /// A multiple of the bandwidth-delay product, resolved to bytes when the link is made: the
    /// rate (the mean of a trace) times `LinkConfig::bdp_rtt`.
    Bdp(f64),
}

impl fmt::Display for Buffer {
    /// The form that `FromStr` reads.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unlimited => f.write_str("unlimited"),
            Self::Bytes(bytes) => write!(f, "{}B", bytes.get()),
            Self::Packets(packets) => write!(f, "{}p", packets.get()),
            Self::Bdp(factor) => write!(f, "{factor}bdp"),
        }
    }
}

/// When ECN-capable packets are marked: the queue an arriving packet finds, itself not included,
/// is above this.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum EcnThreshold {
    /// More than so many bytes.
    Bytes(ByteCount),
    /// More than so many packets.
    Packets(PacketCount),
    /// The packet will wait longer than this before the transmitter turns to it.
    Delay(Duration),
}

/// A resolved [`Buffer`].
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limit {
    pub(crate) bytes: u64,
    pub(crate) packets: u64,
}

impl Limit {
    /// Whether `bytes` and `packets` are within it.
    pub(crate) fn holds(self, bytes: u64, packets: u64) -> bool {
        bytes <= self.bytes && packets <= self.packets
    }
}
