//! One encoded video frame as used for delivery: index, kind, size and time, without the picture.

use std::time::Duration;

/// Whether a frame can be decoded alone.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum FrameKind {
    /// Decodable without another frame: a viewer may start or continue here after a gap.
    Key,
    /// Refers to frames before it.
    Delta,
}

/// An encoded frame: its index in the stream, kind, size and time.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub struct Frame {
    /// Number of frames before it in the stream, in sending (decoding) order.
    pub index: u64,
    /// Whether it can be decoded alone.
    pub kind: FrameKind,
    /// Size of the encoded frame in bytes; at least 1 from every source of this crate.
    pub size: u32,
    /// When its encoding was complete, since the start of the stream; never before the frame with
    /// the index before.
    pub at: Duration,
}

impl Frame {
    /// Whether the frame can be decoded alone.
    pub const fn is_key(&self) -> bool {
        matches!(self.kind, FrameKind::Key)
    }
}
