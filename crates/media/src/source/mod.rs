//! Sources of video frames: generators ([`Constant`], [`Variable`]), the frame table of a real
//! encode ([`Recording`], [`Recorded`]), and the text by which users name a source ([`SourceSpec`]).
//!
//! Sending is implemented elsewhere.

mod constant;
mod demux;
mod encoding;
mod error;
mod limited;
mod recorded;
mod recording;
mod sample;
mod spec;
mod table;
mod text;
mod variable;

pub use constant::Constant;
pub use demux::{DemuxError, read_mp4};
pub use encoding::Encoding;
pub use error::{EncodingError, RecordingError, SourceError, SpecError};
pub use limited::Limited;
pub use recorded::Recorded;
pub use recording::{MAX_FRAMES, MAX_PERIOD, RecordedFrame, Recording};
pub use sample::sample;
pub use spec::{SourceKind, SourceSpec};
pub use variable::Variable;

use crate::frame::Frame;

/// A video encoder, or a model of one: returns frames in sending order, with indices 0, 1, 2 ...
/// and non-decreasing times.
pub trait FrameSource: std::fmt::Debug + Send {
    /// The next frame; `None` at the end of the stream, and from then on.
    fn next_frame(&mut self) -> Option<Frame>;

    /// Requests that the next frame be a key frame, for a viewer that can't continue otherwise.
    /// Sources without that capability ignore it.
    fn force_key_frame(&mut self) {}
}

impl<S: FrameSource + ?Sized> FrameSource for Box<S> {
    fn next_frame(&mut self) -> Option<Frame> {
        (**self).next_frame()
    }

    fn force_key_frame(&mut self) {
        (**self).force_key_frame();
    }
}
