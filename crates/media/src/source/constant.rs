//! A constant-rate encoder.

use super::FrameSource;
use super::encoding::{Encoding, RateControl};
use super::error::EncodingError;
use crate::frame::Frame;

/// An endless stream of constant rate: all delta frames of a group of pictures have the same size, up
/// to a byte (fractions of a byte are carried to the next frame).
///
/// Without larger key frames, frame n ends at byte `rate * (n + 1) / fps`, rounded down. A requested
/// key frame starts a new group of pictures; if it is larger than others, the frames after it are
/// smaller until the rate is met again.
#[derive(Clone, Debug)]
pub struct Constant(RateControl);

impl Constant {
    /// A stream with the settings `encoding`.
    pub fn new(encoding: Encoding) -> Result<Self, EncodingError> {
        RateControl::new(encoding).map(Self)
    }
}

impl FrameSource for Constant {
    fn next_frame(&mut self) -> Option<Frame> {
        Some(self.0.next(1.0))
    }

    fn force_key_frame(&mut self) {
        self.0.force_key_frame();
    }
}
