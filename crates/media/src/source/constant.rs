//! A constant-rate encoder.

use super::FrameSource;
use super::encoding::{Encoding, RateControl};
use super::error::EncodingError;
use crate::frame::Frame;

/// An endless stream of constant rate: every delta frame of a group of pictures has one size, up to a
/// byte (what doesn't fill a byte is carried to the next frame).
///
/// Without larger key frames, frame n ends at byte `rate * (n + 1) / fps`, rounded down. A key frame
/// that is asked for begins a new group of pictures; if it is larger than others, the frames after it
/// are smaller until the rate holds again.
#[derive(Clone, Debug)]
pub struct Constant(RateControl);

impl Constant {
    /// A stream as `encoding` says.
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
