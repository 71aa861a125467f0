//! Datagrams as applications see them: options for sending, fates, what was received.

use bytes::Bytes;
use swiftwater_units::{ByteCount, Instant, PacketNumber, PathId};

use crate::policy::Priority;

/// How a datagram is sent.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct DatagramOptions {
    /// Name of the datagram in [`Event::DatagramFate`](crate::Event::DatagramFate), chosen by the
    /// application and not sent; it need not be unique. `None` (the default) for no such event.
    pub key: Option<u64>,
    /// When the receiver has no use for the datagram any more: it is dropped if it was not sent by
    /// then. `None` (the default) for never.
    pub deadline: Option<Instant>,
    /// 0 (first) to 7 (last), as of streams; larger values count as 7. Default 3, as of streams
    /// (RFC 9218, section 4.1).
    ///
    /// Datagrams of one urgency and [group](Self::group) leave in the order in which they were queued, more urgent ones
    /// before.
    /// Beside streams of the same urgency datagrams get every other turn of about 1 KiB, so at least half
    /// of the bytes if they need them, however many streams there are. The more urgent of both go first,
    /// except that one turn in [`starvation_share`](crate::TransportConfig) goes to the others: datagrams
    /// without end don't starve streams, nor the other way round.
    pub urgency: u8,
    /// The only path that it may leave on. If the path is not open or its probes go unanswered, now or while
    /// the datagram waits, it may leave on any, as with `None` (the default).
    pub path: Option<PathId>,
    /// Groups of one urgency take turns of some 2 kB, however much each has queued. Of a full queue a group has room for
    /// its part at least, up to twice the queue's size in all. Default 0; HTTP/3 has a group for each request.
    pub group: u64,
    /// Bytes of its [group](Self::group) and urgency that may wait, this one included, each counted as its payload and 64
    /// bytes; beyond them it is refused as by a full queue. One may always wait. `None` (the default) for no such limit.
    pub group_limit: Option<ByteCount>,
}

impl Default for DatagramOptions {
    fn default() -> Self {
        Self {
            key: None,
            deadline: None,
            urgency: 3,
            path: None,
            group: 0,
            group_limit: None,
        }
    }
}

impl DatagramOptions {
    /// The same with a key.
    #[must_use]
    pub const fn with_key(mut self, key: u64) -> Self {
        self.key = Some(key);
        self
    }

    /// The same for one path.
    #[must_use]
    pub const fn with_path(mut self, path: PathId) -> Self {
        self.path = Some(path);
        self
    }

    /// The same with a deadline.
    #[must_use]
    pub const fn with_deadline(mut self, deadline: Instant) -> Self {
        self.deadline = Some(deadline);
        self
    }

    /// The same with an urgency.
    #[must_use]
    pub const fn with_urgency(mut self, urgency: u8) -> Self {
        self.urgency = urgency;
        self
    }

    /// The same in a group.
    #[must_use]
    pub const fn with_group(mut self, group: u64) -> Self {
        self.group = group;
        self
    }

    /// The same with a limit on what waits in its group.
    #[must_use]
    pub const fn with_group_limit(mut self, limit: ByteCount) -> Self {
        self.group_limit = Some(limit);
        self
    }

    /// The urgency, cut to 7.
    pub(super) fn level(&self) -> u8 {
        self.urgency.min(Priority::MAX_URGENCY)
    }
}

/// A datagram that arrived.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct ReceivedDatagram {
    /// The payload.
    pub data: Bytes,
    /// The path that it arrived on.
    pub path: PathId,
    /// Number of the packet that carried it, in the application packet number space of `path`. It gives
    /// the order of sending, and gaps show what may have been lost.
    pub packet: PacketNumber,
}
