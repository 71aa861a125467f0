//! What to send a second time before it is known to be lost.

use std::fmt;
use std::time::Duration;

use swiftwater_units::{ByteCount, Instant, PacketNumber, PathId, StreamId};
use thiserror::Error;

use super::Priority;
use super::feedback::ReceivedFeedback;
use super::hints::Hints;
use super::next_data::NextData;
use super::path_view::PathView;

/// A stream range in flight, as its newest packet carries it.
///
/// Further fields may come; tests and other hosts make one with [`OutstandingRange::new`] and its
/// setters.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct OutstandingRange {
    /// Path of the packet.
    pub path: PathId,
    /// The packet.
    pub packet: PacketNumber,
    /// When the packet was sent.
    pub sent_at: Instant,
    /// The stream.
    pub stream: StreamId,
    /// First byte.
    pub offset: u64,
    /// Bytes.
    pub len: u32,
    /// True if the stream ends with this range.
    pub fin: bool,
    /// True if the packet was itself a retransmission or a copy.
    pub retransmission: bool,
    /// Priority of the data; that of the stream unless the application gave the range another.
    pub priority: Priority,
    /// When the receiver has no use for the data any more, if the application set such a time.
    pub deadline: Option<Instant>,
    /// Replicas of the range that were sent so far.
    pub copies: u32,
    /// True if the application said of some of the data that they belong to the first video frame
    /// ([`RangeHints::first_frame`](crate::RangeHints::first_frame)).
    pub first_frame: bool,
}

impl OutstandingRange {
    /// `len` bytes of `stream` from `offset` on, sent for the first time in `packet` on `path` at
    /// `sent_at`, of default priority.
    pub fn new(
        path: PathId,
        packet: PacketNumber,
        sent_at: Instant,
        stream: StreamId,
        offset: u64,
        len: u32,
    ) -> Self {
        Self {
            path,
            packet,
            sent_at,
            stream,
            offset,
            len,
            fin: false,
            retransmission: false,
            priority: Priority::default(),
            deadline: None,
            copies: 0,
            first_frame: false,
        }
    }

    /// Sets [`OutstandingRange::fin`].
    #[must_use]
    pub fn fin(mut self, fin: bool) -> Self {
        self.fin = fin;
        self
    }

    /// Sets [`OutstandingRange::retransmission`].
    #[must_use]
    pub fn retransmission(mut self, retransmission: bool) -> Self {
        self.retransmission = retransmission;
        self
    }

    /// Sets [`OutstandingRange::priority`].
    #[must_use]
    pub fn priority(mut self, priority: Priority) -> Self {
        self.priority = priority;
        self
    }

    /// Sets [`OutstandingRange::deadline`].
    #[must_use]
    pub fn deadline(mut self, deadline: Option<Instant>) -> Self {
        self.deadline = deadline;
        self
    }

    /// Sets [`OutstandingRange::copies`].
    #[must_use]
    pub fn copies(mut self, copies: u32) -> Self {
        self.copies = copies;
        self
    }

    /// Sets [`OutstandingRange::first_frame`].
    #[must_use]
    pub fn first_frame(mut self, first_frame: bool) -> Self {
        self.first_frame = first_frame;
        self
    }

    /// The request for one more copy of it, on whichever path.
    pub fn reinjection(&self) -> Reinjection {
        Reinjection::new(self.stream, self.offset, self.len)
    }
}

/// Why a [`Reinjector`] is asked.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
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
    /// The peer's feedback arrived, see [`Reinjector::on_feedback`].
    Feedback,
    /// A path ceased to be usable ([`PathView::is_usable`]): either end abandons it, or it moved to an address that is
    /// not validated yet. What is in flight on it may be lost. Once for each time. A path whose probes go unanswered
    /// stays usable, see [`PathView::pto_count`]: what is in flight on it leaves on others whatever the policy.
    PathDown(PathId),
    /// A path became usable: its addresses are validated. Once for each time; not for a path that is usable when the
    /// connection begins.
    PathUp(PathId),
}

/// Which paths may carry a copy.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum PathChoice {
    /// Any: the scheduler chooses.
    #[default]
    Any,
    /// Any but this one, which carried the original.
    Not(PathId),
    /// This one only.
    On(PathId),
}

impl PathChoice {
    /// True if path `id` is among them.
    pub fn permits(self, id: PathId) -> bool {
        match self {
            Self::Any => true,
            Self::Not(other) => other != id,
            Self::On(only) => only == id,
        }
    }
}

/// Place of a copy among other stream data.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum Rank {
    /// Before all other stream data, retransmissions included.
    First,
    /// After retransmissions, before new data.
    #[default]
    BeforeNewData,
    /// As a retransmission of a stream of this priority: before new data of streams that are as
    /// urgent or less, after that of more urgent ones.
    WithPriority(Priority),
    /// Once no new data wait.
    AfterNewData,
}

/// One range to send again. The range may be part of an outstanding one; bytes already acknowledged
/// are skipped when it is sent.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct Reinjection {
    /// The stream.
    pub stream: StreamId,
    /// First byte.
    pub offset: u64,
    /// Bytes.
    pub len: u32,
    /// Paths that may carry the copy.
    pub target: PathChoice,
    /// Its place among other data.
    pub rank: Rank,
}

impl Reinjection {
    /// A copy of `len` bytes of `stream` from `offset` on, on any path, before new data.
    pub fn new(stream: StreamId, offset: u64, len: u32) -> Self {
        Self {
            stream,
            offset,
            len,
            target: PathChoice::Any,
            rank: Rank::BeforeNewData,
        }
    }

    /// Sets [`Reinjection::target`].
    #[must_use]
    pub fn target(mut self, target: PathChoice) -> Self {
        self.target = target;
        self
    }

    /// Sets [`Reinjection::rank`].
    #[must_use]
    pub fn rank(mut self, rank: Rank) -> Self {
        self.rank = rank;
        self
    }

    /// The range itself, without target and rank.
    pub fn data_range(&self) -> DataRange {
        DataRange {
            stream: self.stream,
            offset: self.offset,
            len: self.len,
        }
    }
}

/// Why a [`Reinjection`] was not or not wholly carried out.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum RejectionReason {
    /// Too many copies wait to be sent.
    QueueFull,
    /// The range is no part of the stream's data: it ends beyond 2^64, or the stream or the range
    /// isn't there (any more): acknowledged or reset while the copy waited.
    RangeGone,
    /// No usable path is among those that may carry it.
    NoPath,
    /// The range was retransmitted, while the copy waited, on the path that would have carried the copy; only
    /// copies with a target other than [`PathChoice::Any`].
    Retransmitted,
}

/// A [`Reinjection`] that brings no copy.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct Rejection {
    /// What was asked for, or the rest of it.
    pub copy: Reinjection,
    /// Why it isn't sent.
    pub reason: RejectionReason,
}

impl Rejection {
    /// `copy` is not sent for `reason`.
    pub fn new(copy: Reinjection, reason: RejectionReason) -> Self {
        Self { copy, reason }
    }
}

/// A data range under repair: bytes of a stream that were declared lost, or probed for, and aren't
/// acknowledged. Stream and offset identify it; no two ranges of a connection overlap.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct DataRange {
    /// The stream.
    pub stream: StreamId,
    /// First byte.
    pub offset: u64,
    /// Bytes, at least 1.
    pub len: u32,
}

impl DataRange {
    /// The request for one more copy of it, on whichever path.
    pub fn reinjection(&self) -> Reinjection {
        Reinjection::new(self.stream, self.offset, self.len)
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

/// Which copy of a data range was acknowledged first.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Copied {
    /// The first transmission: the loss was spurious.
    Original,
    /// A retransmission; 1 is the first.
    Retransmission(u32),
    /// A replica that the re-injector asked for.
    Replica,
}

/// What happens to data under repair. Each event is reported after it happened.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Repair {
    /// A retransmission of the data range left.
    Retransmitted {
        /// The data range.
        range: DataRange,
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
        /// When the receiver has no use for it any more, if the application set such a time.
        deadline: Option<Instant>,
    },
    /// A replica of the data range left.
    ReplicaSent {
        /// The data range.
        range: DataRange,
    },
    /// The data range no longer fits one packet: from now on its first `at` bytes are one range,
    /// the rest another, both with its history.
    Split {
        /// The data range, whole.
        range: DataRange,
        /// Bytes of the first part.
        at: u32,
    },
    /// A copy of the data range was acknowledged.
    Recovered {
        /// The data range.
        range: DataRange,
        /// Which copy.
        by: Copied,
    },
    /// The data range is not needed any more: its stream was reset or the connection closed.
    Abandoned {
        /// The data range.
        range: DataRange,
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

/// State of a re-injector for statistics and logs; every field is zero or `None` where it means
/// nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct ReinjectorReport {
    /// Replicas per lost data range that are granted at present (K of AutoRec).
    pub redundancy_level: u32,
    /// Estimated loss rate, 0 to 1.
    pub loss_rate: f64,
    /// Estimated mean time from sending a data range to its retransmission (`T_unit`).
    pub detection_time: Option<Duration>,
    /// Time since the last copy of a data range after which another is sent even beside new data
    /// (`T_thres`).
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
/// A range asked for leaves when window and pacer of a permitted path let it go, in the place that
/// its [`Rank`] gives it;
/// two copies of the same bytes never share a packet, and bytes acknowledged meanwhile are not sent.
/// [`Repair::ReplicaSent`] reports that a copy of data under repair left,
/// [`Reinjector::on_rejected`] that one will not.
pub trait Reinjector: Send + fmt::Debug {
    /// True if the policy never does anything, so that the views need not be built.
    fn is_inert(&self) -> bool {
        false
    }

    /// True if an [`Occasion::SpareRoom`] would bring a copy now. Asked before every pause; must be
    /// cheap.
    fn can_use_spare_room(&self) -> bool {
        true
    }

    /// True if it is to be asked on this [`Occasion`], which is neither `SpareRoom` nor `Timer`; by
    /// default on all.
    fn is_asked_on(&self, _occasion: Occasion) -> bool {
        true
    }

    /// True if lost data are retransmitted only when no copy of them is in flight any more; false if
    /// the loss of each copy brings a retransmission of its own.
    fn live_copies_defer_retransmission(&self) -> bool {
        true
    }

    /// An ACK or a loss timer settled packets; `outcomes` are in rising order of packet numbers.
    fn on_outcomes(&mut self, _now: Instant, _outcomes: &[PacketOutcome], _path: &PathView) {}

    /// Something happened to data under repair.
    fn on_repair(&mut self, _now: Instant, _event: &Repair) {}

    /// These copies, asked for by the last [`Reinjector::reinject`] or before, will not be sent. No
    /// [`Repair::ReplicaSent`] follows for them, and a policy that still needs them has to ask again.
    fn on_rejected(&mut self, _now: Instant, _rejections: &[Rejection]) {}

    /// The peer's feedback arrived; [`Occasion::Feedback`] follows.
    fn on_feedback(&mut self, _now: Instant, _feedback: &ReceivedFeedback) {}

    /// Stream bytes left for the first time; `size` counts them without headers.
    fn on_new_data(&mut self, _now: Instant, _size: ByteCount) {}

    /// Stream bytes that wait to be sent for the first time, over all streams and paths; reported
    /// before each [`Reinjector::reinject`].
    fn on_unsent_data(&mut self, _now: Instant, _waiting: ByteCount) {}

    /// The stream data that leave next, lost or new, if any wait; reported before each
    /// [`Reinjector::reinject`]. What waits behind them is as urgent or less.
    fn on_next_data(&mut self, _now: Instant, _next: Option<NextData>) {}

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

    /// Its state for statistics.
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
