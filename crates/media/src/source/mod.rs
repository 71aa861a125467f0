//! Where frames come from. How they are sent does not live here.

use crate::frame::Frame;

/// A video encoder, or a stand-in for one: gives frames in sending order, with indices 0, 1, 2 ...
/// and times that never go back.
pub trait FrameSource: std::fmt::Debug + Send {
    /// The next frame; `None` when the stream is over, and from then on.
    fn next_frame(&mut self) -> Option<Frame>;

    /// Asks that the next frame be a key frame, as a sender does whose viewer can't go on. A source
    /// that has no say in it (a recording) ignores this.
    fn force_key_frame(&mut self) {}
}
