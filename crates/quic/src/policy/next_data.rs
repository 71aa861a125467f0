//! What leaves next, as re-injectors are shown it.

use swiftwater_units::StreamId;

use super::Priority;

/// Stream data that wait and are next.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct NextData {
    /// Their stream.
    pub stream: StreamId,
    /// Their priority; that of the stream unless the application gave the range another.
    pub priority: Priority,
    /// True if some of them belong to the first video frame, as [`OutstandingRange::first_frame`](super::OutstandingRange::first_frame).
    pub first_frame: bool,
}

impl NextData {
    /// Data of `stream` and `priority`, not of a first frame.
    pub fn new(stream: StreamId, priority: Priority) -> Self {
        Self {
            stream,
            priority,
            first_frame: false,
        }
    }

    /// Sets [`NextData::first_frame`].
    #[must_use]
    pub fn first_frame(mut self, first_frame: bool) -> Self {
        self.first_frame = first_frame;
        self
    }
}
