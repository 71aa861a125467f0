//! Stream events for the application.

use swiftwater_units::{Dir, StreamId};

/// Something that happened on a stream. Edge-triggered.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum StreamEvent {
    /// The peer opened streams of this kind; accept until `None`.
    Opened {
        /// Which kind.
        dir: Dir,
    },
    /// There is data, an end or a reset to read after a read had to wait.
    Readable {
        /// The stream.
        id: StreamId,
    },
    /// There is room to write after a write had to wait.
    Writable {
        /// The stream.
        id: StreamId,
    },
    /// The peer has acknowledged everything that was written, the end included.
    Finished {
        /// The stream.
        id: StreamId,
    },
    /// The peer stopped reading.
    Stopped {
        /// The stream.
        id: StreamId,
        /// The application's code.
        code: u64,
    },
    /// The time set with [`SendStream::set_expiry`](crate::SendStream::set_expiry) came before the
    /// peer had acknowledged everything, and the rest was abandoned.
    Expired {
        /// The stream.
        id: StreamId,
        /// The error code of the reset.
        code: u64,
    },
    /// More streams of this kind can be opened after an open had to wait.
    Available {
        /// Which kind.
        dir: Dir,
    },
}
