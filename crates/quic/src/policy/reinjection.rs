//! What to send a second time before it is known to be lost.

use std::fmt;
use std::time::Duration;

use swiftwater_units::{ByteCount, Instant, PacketNumber, PathId, StreamId};
use thiserror::Error;

use super::hints::Hints;
use super::schedule::PathView;
use crate::streams::Priority;

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
    /// Window and pacer have room and there is nothing else to send: off-mode.
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

/// Data under repair: a range of a stream that was declared lost, or probed for, and isn't
/// acknowledged. Stream and offset identify it; no two data of a connection overlap.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct Datum {
    /// The stream.
    pub stream: StreamId,
    /// First byte.
    pub offset: u64,
    /// Bytes, at least 1.
    pub len: u32,
}

impl Datum {
    /// The request for one more copy of it, on whichever path.
    pub fn reinjection(&self) -> Reinjection {
        Reinjection {
            stream: self.stream,
            offset: self.offset,
            len: self.len,
            path: None,
        }
    }
}

/// What made the transport retransmit.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum RepairCause {
    /// The newest packet with the data was declared lost (RFC 9002, section 6.1).
    Loss,
    /// A probe timeout repeated the data, which may not be lost at all (section 6.2).
    Probe,
}

/// Which copy of a datum was acknowledged first.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Copied {
    /// The first transmission: the loss was spurious.
    Original,
    /// A retransmission; 1 is the first.
    Retransmission(u32),
    /// A replica that the re-injector asked for.
    Replica,
}

/// What happens to data under repair. Each event is told after it happened.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Repair {
    /// A retransmission of the datum left.
    Retransmitted {
        /// The datum.
        datum: Datum,
        /// When its first transmission left.
        first_sent_at: Instant,
        /// When it was first declared lost or probed for.
        lost_at: Instant,
        /// 1 for its first retransmission.
        round: u32,
        /// Why this one was made.
        cause: RepairCause,
        /// Priority of its stream.
        priority: Priority,
        /// When the receiver has no use for it any more, if the application said so.
        deadline: Option<Instant>,
    },
    /// A replica of the datum left.
    ReplicaSent {
        /// The datum.
        datum: Datum,
    },
    /// The datum no longer fits one packet: from now on its first `at` bytes are one datum, the rest
    /// another, both with its history.
    Split {
        /// The datum, whole.
        datum: Datum,
        /// Bytes of the first part.
        at: u32,
    },
    /// A copy of the datum was acknowledged.
    Recovered {
        /// The datum.
        datum: Datum,
        /// Which copy.
        by: Copied,
    },
    /// Nobody waits for the datum any more: its stream was reset or the connection closed.
    Abandoned {
        /// The datum.
        datum: Datum,
    },
}

/// What became of a packet.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum PacketFate {
    /// Acknowledged.
    Acked,
    /// Declared lost.
    Lost,
    /// Acknowledged after it had been declared lost.
    Spurious,
}

/// The fate of one 1-RTT packet that counted in flight.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct PacketOutcome {
    /// Path that carried it.
    pub path: PathId,
    /// Packet number.
    pub number: PacketNumber,
    /// When it was sent.
    pub sent_at: Instant,
    /// Bytes on the wire.
    pub size: u16,
    /// True if stream data in it had been sent before, as retransmission or replica.
    pub repeated: bool,
    /// What became of it.
    pub fate: PacketFate,
}

/// What a re-injector says of itself; every field is zero or `None` where it means nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct ReinjectorReport {
    /// Replicas per lost datum that it grants at present (K of AutoRec).
    pub redundancy_level: u32,
    /// Loss rate that it reckons with, 0 to 1.
    pub loss_rate: f64,
    /// Mean time from sending a datum to its retransmission that it reckons with (`T_unit`).
    pub detection_time: Option<Duration>,
    /// Silence after which it sends a copy even beside new data (`T_thres`).
    pub silence_threshold: Option<Duration>,
    /// Data that wait for a copy.
    pub queued: usize,
    /// Share of its budget in use, 0 to 1; `None` without a budget.
    pub budget_used: Option<f64>,
    /// Decisions on the level so far.
    pub decisions: u64,
}

/// A re-injector didn't accept a configuration.
#[derive(Clone, Debug, Eq, Error, PartialEq)]
#[error("{0}")]
pub struct ConfigureError(pub String);

/// Decides on copies of data in flight (AutoRec, XLINK, ...). It names ranges; `Streams` sends
/// them.
///
/// A range asked for leaves when window and pacer permit, after retransmissions and before new data;
/// two copies of the same bytes never share a packet, and bytes acknowledged meanwhile are not sent.
/// [`Repair::ReplicaSent`] tells that a copy of data under repair left.
pub trait Reinjector: Send + fmt::Debug {
    /// True if the policy never does anything, so that the views need not be built.
    fn is_inert(&self) -> bool {
        false
    }

    /// True if an [`Occasion::SpareRoom`] would bring a copy now. Asked before every pause; must be
    /// cheap.
    fn wants_spare_room(&self) -> bool {
        true
    }

    /// Which [`Occasion`]s other than `SpareRoom` and `Timer` it wants to be asked on; by default all.
    fn wants(&self, _occasion: Occasion) -> bool {
        true
    }

    /// True if the loss of a copy concerns data only if no newer copy is in flight; else every lost
    /// copy is retransmitted on its own.
    fn watches_newest(&self) -> bool {
        true
    }

    /// An ACK or a loss timer settled packets; `outcomes` are in rising order of packet numbers.
    fn on_outcomes(&mut self, _now: Instant, _outcomes: &[PacketOutcome], _path: &PathView) {}

    /// Something happened to data under repair.
    fn on_repair(&mut self, _now: Instant, _event: &Repair) {}

    /// Stream bytes left for the first time; `size` counts them without headers.
    fn on_new_data(&mut self, _now: Instant, _size: ByteCount) {}

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

    /// Changes parameters of the running policy, as `name=value,name=value`; on an error nothing
    /// changes.
    fn configure(&mut self, settings: &str) -> Result<(), ConfigureError> {
        Err(ConfigureError(format!(
            "this policy has no parameters, so `{settings}` can't be set"
        )))
    }

    /// What it reckons with at present.
    fn report(&self) -> ReinjectorReport {
        ReinjectorReport::default()
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
