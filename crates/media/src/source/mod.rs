//! Where frames come from: generators ([`Constant`], [`Variable`]), the frame table of a real encode
//! ([`Recording`], [`Recorded`]), and the text by which users name a source ([`SourceSpec`]).
//!
//! How frames are sent does not live here.

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

/// A video encoder, or a stand-in for one: gives frames in sending order, with indices 0, 1, 2 ...
/// and times that never go back.
pub trait FrameSource: std::fmt::Debug + Send {
    /// The next frame; `None` when the stream is over, and from then on.
    fn next_frame(&mut self) -> Option<Frame>;

    /// Asks that the next frame be a key frame, as a sender does whose viewer can't go on. A source
    /// that has no say in it ignores this.
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
