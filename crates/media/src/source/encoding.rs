//! Settings and rate control shared by the generators.

use std::time::Duration;

use swiftwater_units::Bandwidth;

use super::error::EncodingError;
use crate::frame::{Frame, FrameKind};

/// Largest mean frame, in bytes.
const MAX_MEAN: f64 = 67_108_864.0;

/// Settings of a generator.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Encoding {
    /// Mean rate of the encoded stream.
    pub rate: Bandwidth,
    /// Frames per second, 1 to 1000.
    pub fps: f64,
    /// Frames from one key frame to the next (group of pictures), at least 1; `None`: only the
    /// first frame and requested ones are key frames.
    pub gop: Option<u32>,
    /// Size of a key frame over that of a delta frame, 1 to 1000.
    pub key_factor: f64,
}

impl Encoding {
    /// A stream of `rate` and `fps` with frames of equal size, and only the first a key frame.
    pub const fn new(rate: Bandwidth, fps: f64) -> Self {
        Self {
            rate,
            fps,
            gop: None,
            key_factor: 1.0,
        }
    }

    /// With a key frame every `gop` frames, `key_factor` times as large as the others.
    #[must_use]
    pub const fn with_key_frames(self, gop: u32, key_factor: f64) -> Self {
        Self {
            gop: Some(gop),
            key_factor,
            ..self
        }
    }

    /// Mean size of a frame in bytes.
    pub fn mean_size(&self) -> f64 {
        self.rate.as_bps() as f64 / 8.0 / self.fps
    }

    /// Checks the ranges.
    pub fn validate(&self) -> Result<(), EncodingError> {
        if !(1.0..=1000.0).contains(&self.fps) {
            return Err(EncodingError::FrameRate(self.fps));
        }
        if !(1.0..=MAX_MEAN).contains(&self.mean_size()) {
            return Err(EncodingError::FrameSize(self.mean_size()));
        }
        if self.gop == Some(0) {
            return Err(EncodingError::EmptyGop);
        }
        if !(1.0..=1000.0).contains(&self.key_factor) {
            return Err(EncodingError::KeyFactor(self.key_factor));
        }
        Ok(())
    }

    /// Frames over which the rate control averages: a group of pictures, or about a second.
    fn span(&self) -> u32 {
        self.gop.unwrap_or((self.fps + 0.5) as u32).max(1)
    }
}

/// Rate control: assigns every span of frames (a group of pictures, or a second without one) its
/// share of bytes, less the excess of earlier spans, and divides them by weight. So the mean rate is
/// met for any spread of sizes and number of requested key frames, unless a span would have to shrink
/// to less than half.
#[derive(Clone, Debug)]
pub(super) struct RateControl {
    encoding: Encoding,
    index: u64,
    /// Bytes of all frames so far, and the fraction carried to the next one.
    made: u64,
    carry: f64,
    /// Size of a frame of weight 1 in this span, and the frames left in it.
    unit: f64,
    left: u32,
    forced: bool,
}

impl RateControl {
    pub(super) fn new(encoding: Encoding) -> Result<Self, EncodingError> {
        encoding.validate()?;
        Ok(Self {
            encoding,
            index: 0,
            made: 0,
            carry: 0.0,
            unit: 0.0,
            left: 0,
            forced: false,
        })
    }

    pub(super) fn force_key_frame(&mut self) {
        self.forced = true;
    }

    /// The next frame, `factor` times as large as the rate control's value (1 on average).
    pub(super) fn next(&mut self, factor: f64) -> Frame {
        let over = self.left == 0;
        let key = self.index == 0 || self.forced || (over && self.encoding.gop.is_some());
        if key || over {
            self.begin_span(key);
        }
        let weight = if key { self.encoding.key_factor } else { 1.0 };
        let wanted = self.unit * weight * factor + self.carry;
        // A millionth of a byte hides rounding errors where a size is a whole number.
        let size = ((wanted + 1e-6) as u32).max(1);
        self.carry = wanted - f64::from(size);
        self.made += u64::from(size);
        let nanos = (self.index as f64 * 1e9 / self.encoding.fps).round();
        let frame = Frame {
            index: self.index,
            kind: if key {
                FrameKind::Key
            } else {
                FrameKind::Delta
            },
            size,
            at: Duration::from_nanos(nanos as u64),
        };
        self.index += 1;
        self.left -= 1;
        self.forced = false;
        frame
    }

    fn begin_span(&mut self, key: bool) {
        let mean = self.encoding.mean_size();
        let frames = self.encoding.span();
        let first = if key { self.encoding.key_factor } else { 1.0 };
        let weights = first + f64::from(frames - 1);
        let due = mean * f64::from(frames);
        let excess = self.made as f64 + self.carry - mean * self.index as f64;
        self.unit = (due - excess).max(due / 2.0) / weights;
        self.left = frames;
    }
}
