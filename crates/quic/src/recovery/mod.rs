//! Recovery of one path: RTT, probe timeout, bytes in flight, delivery-rate samples, rounds, loss
//! episodes, congestion controller, pacer (RFC 9002).
//!
//! What was sent and what it carried is the ledger's (`space::ledger`), which also decides *which*
//! packets are lost; this module keeps the path's numbers and reports to the controller. It never sees a
//! frame or a packet's bytes.

mod backoff;
mod episodes;
mod loss_judgement;
mod pacer;
mod path;
mod rate_sample;
mod results;
mod rounds;
mod rtt;
mod settings;
#[cfg(test)]
mod tests;
mod timeouts;

pub(crate) use loss_judgement::{LossJudgement, MAX_WAIT_PTOS};
pub(crate) use path::PathRecovery;

use std::time::Duration;

use swiftwater_congestion::EpisodeId;
use swiftwater_units::{ByteCount, Instant, PacketCount, PacketNumber};

/// State of the path's delivery accounting when a packet was sent; kept in the ledger
/// (draft-ietf-ccwg-bbr, section 4.5.2).
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct DeliverySnapshot {
    pub(crate) delivered: u64,
    pub(crate) delivered_at: Instant,
    pub(crate) first_sent_at: Instant,
    pub(crate) tx_in_flight: u64,
    pub(crate) lost: u64,
    pub(crate) ce: u64,
    pub(crate) is_app_limited: bool,
    /// Position among the path's congestion episodes and address changes: later packets never have
    /// a smaller one. Orders packets where send times tie.
    pub(crate) period: u64,
}

/// Why a packet that counts in flight is sent.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum SendPurpose {
    /// Its frames wait to be delivered.
    Data,
    /// A probe timeout expired.
    TimeoutProbe,
    /// To find out whether the path carries its size.
    MtuProbe,
}

/// A newly acknowledged packet that counted in flight, as the ledger has it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AckedPacket {
    pub(crate) number: PacketNumber,
    pub(crate) sent_at: Instant,
    pub(crate) size: u16,
    pub(crate) snapshot: DeliverySnapshot,
    /// Set if the packet had been declared lost: it no longer counts in flight, and the loss was
    /// spurious.
    pub(crate) lost_in: Option<EpisodeId>,
}

/// A packet in flight that was declared lost by the ledger.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LostRecord {
    pub(crate) number: PacketNumber,
    pub(crate) sent_at: Instant,
    pub(crate) size: u16,
    pub(crate) snapshot: DeliverySnapshot,
}

/// What the ledger needs to decide on losses.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LossThresholds {
    /// `kPacketThreshold`.
    pub(crate) packets: u64,
    /// Time threshold, already multiplied with the RTT.
    pub(crate) delay: Duration,
}

/// Totals of a path since it was opened, address changes included.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(crate) struct RecoveryStats {
    /// Bytes sent in packets that count in flight.
    pub(crate) sent: ByteCount,
    /// Packets sent that count in flight.
    pub(crate) sent_packets: PacketCount,
    /// Stream bytes among them that had been sent before.
    pub(crate) retransmitted: ByteCount,
    /// Of these, copies of what was still in flight.
    pub(crate) copies: ByteCount,
    /// Bytes of them acknowledged, late acknowledgements included.
    pub(crate) delivered: ByteCount,
    /// Bytes declared lost; not lowered when a loss turns out to be spurious.
    pub(crate) lost_bytes: ByteCount,
    /// Packets declared lost.
    pub(crate) lost_packets: PacketCount,
    /// Packets declared lost and acknowledged afterwards.
    pub(crate) spurious_packets: PacketCount,
    /// Loss and CE episodes opened.
    pub(crate) congestion_events: u64,
    /// Loss episodes that turned out to be spurious as a whole.
    pub(crate) spurious_events: u64,
    /// Times that persistent congestion was established.
    pub(crate) persistent_congestions: u64,
    /// Probe timeouts, over all time.
    pub(crate) pto_count: u64,
    /// Packets that the peer reported as marked CE.
    pub(crate) ce_packets: PacketCount,
}
