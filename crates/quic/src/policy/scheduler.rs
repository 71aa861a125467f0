//! Which path carries the next datagram.

use std::fmt;

use swiftwater_units::{ByteCount, Instant, PathId, StreamId};

use super::Priority;
use super::hints::Hints;
use super::path_view::PathView;
use super::reinjection::{PathChoice, Rank};

/// Copies of one target that wait to be sent.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct CopyDemand {
    /// Where they may go.
    pub target: PathChoice,
    /// Their place among other data.
    pub rank: Rank,
    /// Bytes of stream data; some of them may be acknowledged by now, and are then not sent.
    pub bytes: ByteCount,
}

impl CopyDemand {
    /// `bytes` of copies for `target`, of the default rank.
    pub fn new(target: PathChoice, bytes: ByteCount) -> Self {
        Self {
            target,
            rank: Rank::default(),
            bytes,
        }
    }

    /// Adds the copies to those of the same target and rank in `demand`.
    pub fn add_to(self, demand: &mut Vec<Self>) {
        let is_same = |known: &&mut Self| known.target == self.target && known.rank == self.rank;
        match demand.iter_mut().find(is_same) {
            Some(known) => known.bytes += self.bytes,
            None => demand.push(self),
        }
    }

    /// Sets [`CopyDemand::rank`].
    #[must_use]
    pub fn rank(mut self, rank: Rank) -> Self {
        self.rank = rank;
        self
    }
}

/// What waits to be sent.
///
/// Further fields may come; tests and other hosts make one with [`Demand::nothing`] and its setters.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
#[non_exhaustive]
pub struct Demand<'a> {
    /// True if control frames wait, or ends of streams without data.
    pub control: bool,
    /// Payload of DATAGRAM frames.
    pub datagram_bytes: ByteCount,
    /// Stream bytes that were never sent and that flow control permits.
    pub new_bytes: ByteCount,
    /// Stream bytes that were declared lost, on whichever path.
    pub retransmission_bytes: ByteCount,
    /// Copies that the re-injector asked for, by target and rank; no two entries share both.
    pub copies: &'a [CopyDemand],
    /// The stream whose data are next; `None` if no stream data wait or it isn't known.
    pub next_stream: Option<StreamId>,
    /// The most urgent priority among the stream data that wait; `None` if none wait or it isn't
    /// known.
    pub priority: Option<Priority>,
    /// The earliest time after which some of the data are of no use to the receiver, if the
    /// application named one.
    pub deadline: Option<Instant>,
}

impl<'a> Demand<'a> {
    /// Nothing waits.
    pub fn nothing() -> Self {
        Self::default()
    }

    /// Sets [`Demand::control`].
    #[must_use]
    pub fn control(mut self, waits: bool) -> Self {
        self.control = waits;
        self
    }

    /// Sets [`Demand::datagram_bytes`].
    #[must_use]
    pub fn datagrams(mut self, bytes: ByteCount) -> Self {
        self.datagram_bytes = bytes;
        self
    }

    /// Sets [`Demand::new_bytes`].
    #[must_use]
    pub fn new_data(mut self, bytes: ByteCount) -> Self {
        self.new_bytes = bytes;
        self
    }

    /// Sets [`Demand::retransmission_bytes`].
    #[must_use]
    pub fn retransmissions(mut self, bytes: ByteCount) -> Self {
        self.retransmission_bytes = bytes;
        self
    }

    /// Sets [`Demand::copies`].
    #[must_use]
    pub fn copies(mut self, copies: &'a [CopyDemand]) -> Self {
        self.copies = copies;
        self
    }

    /// Sets [`Demand::next_stream`] and [`Demand::priority`].
    #[must_use]
    pub fn next_stream(mut self, stream: StreamId, priority: Priority) -> Self {
        self.next_stream = Some(stream);
        self.priority = Some(priority);
        self
    }

    /// Sets [`Demand::deadline`].
    #[must_use]
    pub fn deadline(mut self, at: Instant) -> Self {
        self.deadline = Some(at);
        self
    }

    /// Bytes of stream data and datagrams that wait, copies included.
    pub fn bytes(&self) -> ByteCount {
        self.copies.iter().fold(
            self.datagram_bytes + self.new_bytes + self.retransmission_bytes,
            |sum, copy| sum + copy.bytes,
        )
    }

    /// True if anything waits that path `id` may carry.
    pub fn suits(&self, id: PathId) -> bool {
        self.control
            || !self.datagram_bytes.is_zero()
            || !self.new_bytes.is_zero()
            || !self.retransmission_bytes.is_zero()
            || self
                .copies
                .iter()
                .any(|copy| !copy.bytes.is_zero() && copy.target.permits(id))
    }
}

/// A [`Scheduler`]'s answer.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum PathDecision {
    /// The next datagrams carry data on this path.
    Path {
        /// The path.
        id: PathId,
        /// Bytes of datagrams that may follow one another before the scheduler is asked again. One
        /// datagram always may; zero therefore means: ask for each. Window, pacer and
        /// anti-amplification limit of the path apply in addition.
        max_bytes: ByteCount,
    },
    /// No path can carry data now: each is held back by its window or its pacer. The
    /// scheduler is asked again when one of these has changed.
    Blocked,
    /// No data before this time, unless something else happens first.
    Wait(Instant),
}

impl PathDecision {
    /// One datagram on path `id`.
    pub fn once(id: PathId) -> Self {
        Self::Path {
            id,
            max_bytes: ByteCount::ZERO,
        }
    }

    /// As many datagrams on path `id` as window and pacer let go.
    pub fn batch(id: PathId) -> Self {
        Self::Path {
            id,
            max_bytes: ByteCount::MAX,
        }
    }
}

/// Chooses the path of each datagram.
///
/// Asked whenever the connection looks for data to send and the budget of the last answer is used
/// up. The answer concerns data only: acknowledgements, path validation and probes on timeout go
/// where the protocol requires. An answer that names no path of `paths` counts as invalid, and so does
/// [`PathDecision::Blocked`] while a path is ready ([`PathView::is_ready`]) and nothing is in flight
/// whose acknowledgement would change that: the connection takes the first path then.
pub trait Scheduler: Send + fmt::Debug {
    /// True if the answer is always the first path without a limit, so that the views need not be
    /// built.
    fn is_inert(&self) -> bool {
        false
    }

    /// The choice for the next datagram. `paths` is never empty and sorted by identifier.
    fn next(&mut self, now: Instant, paths: &[PathView], demand: &Demand<'_>) -> PathDecision;

    /// A datagram of `bytes` left on `path`: after [`PathDecision::Path`], of which `bytes` may be more or less than
    /// what was permitted, or without a decision, such as acknowledgements and probes.
    fn on_sent(&mut self, _now: Instant, _path: PathId, _bytes: ByteCount) {}

    /// Path `path` became usable ([`PathView::is_usable`]), or ceased to be; once for each time, and not for a path
    /// that is usable when the connection begins.
    fn on_path_change(&mut self, _now: Instant, _path: PathId, _is_usable: bool) {}

    /// The application gave new hints.
    fn on_hints(&mut self, _now: Instant, _hints: &Hints) {}

    /// The peer's feedback arrived.
    fn on_feedback(&mut self, _now: Instant, _feedback: &super::ReceivedFeedback) {}
}

/// The first path, always.
#[derive(Clone, Copy, Debug, Default)]
pub struct SinglePath;

impl Scheduler for SinglePath {
    fn is_inert(&self) -> bool {
        true
    }

    fn next(&mut self, _now: Instant, paths: &[PathView], _demand: &Demand<'_>) -> PathDecision {
        PathDecision::batch(paths.first().map_or(PathId::ZERO, |path| path.id))
    }
}
