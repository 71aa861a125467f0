//! What to send a second time before it is known to be lost.

use swiftwater_units::{Instant, PacketNumber, PathId, StreamId};

use super::hints::Hints;
use super::schedule::PathView;

/// A stream range in flight, as the ledger knows it.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct OutstandingRange {
    /// Path that carried it last.
    pub path: PathId,
    /// Packet that carried it last.
    pub packet: PacketNumber,
    /// When that packet was sent.
    pub sent_at: Instant,
    /// The stream.
    pub stream: StreamId,
    /// First byte.
    pub offset: u64,
    /// Bytes.
    pub len: u32,
    /// True if the stream ends with this range.
    pub fin: bool,
    /// True if the packet that carried it was itself a retransmission.
    pub retransmission: bool,
}

/// Why a [`Reinjector`] is asked.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Occasion {
    /// There is room to send and nothing new to send.
    SpareRoom,
    /// An ACK was processed.
    Ack,
    /// Lost data was queued for retransmission.
    LossRetransmitted,
    /// The deadline that the re-injector asked for has come.
    Timer,
    /// The application gave new hints.
    Hints,
}

/// One range to send again. The range may be part of an outstanding one; bytes already acknowledged
/// are skipped when it is sent.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Reinjection {
    /// The stream.
    pub stream: StreamId,
    /// First byte.
    pub offset: u64,
    /// Bytes.
    pub len: u32,
    /// Path to use; `None` leaves it to the scheduler.
    pub path: Option<PathId>,
}

/// Decides on copies of data in flight (AutoRec, XLINK, ...). It names ranges; `Streams` sends
/// them.
pub trait Reinjector: Send {
    /// True if the policy never does anything, so that the views need not be built.
    fn is_inert(&self) -> bool {
        false
    }

    /// Appends ranges to send again to `out`. `outstanding` walks the ranges in flight, oldest
    /// first.
    fn reinject(
        &mut self,
        now: Instant,
        occasion: Occasion,
        outstanding: &mut dyn Iterator<Item = OutstandingRange>,
        paths: &[PathView],
        hints: &Hints,
        out: &mut Vec<Reinjection>,
    );

    /// When to be asked with [`Occasion::Timer`].
    fn next_deadline(&self) -> Option<Instant> {
        None
    }
}

/// No re-injection.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoReinjection;

impl Reinjector for NoReinjection {
    fn is_inert(&self) -> bool {
        true
    }

    fn reinject(
        &mut self,
        _now: Instant,
        _occasion: Occasion,
        _outstanding: &mut dyn Iterator<Item = OutstandingRange>,
        _paths: &[PathView],
        _hints: &Hints,
        _out: &mut Vec<Reinjection>,
    ) {
    }
}
