//! A source with a limited duration.

use std::time::Duration;

use super::FrameSource;
use crate::frame::Frame;

/// The frames of another source that are encoded before a given time.
#[derive(Clone, Debug)]
pub struct Limited<S> {
    source: S,
    length: Duration,
    over: bool,
}

impl<S: FrameSource> Limited<S> {
    /// The frames of `source` with a time below `length`.
    pub const fn new(source: S, length: Duration) -> Self {
        Self {
            source,
            length,
            over: false,
        }
    }
}

impl<S: FrameSource> FrameSource for Limited<S> {
    fn next_frame(&mut self) -> Option<Frame> {
        if self.over {
            return None;
        }
        let frame = self
            .source
            .next_frame()
            .filter(|frame| frame.at < self.length);
        self.over = frame.is_none();
        frame
    }

    fn force_key_frame(&mut self) {
        self.source.force_key_frame();
    }
}
