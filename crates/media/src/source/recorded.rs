//! A recording as a source.

use std::sync::Arc;
use std::time::Duration;

use swiftwater_units::Bandwidth;

use super::FrameSource;
use super::recording::Recording;
use crate::frame::{Frame, FrameKind};

/// A recording played in an endless loop, its sizes optionally scaled to a rate.
///
/// A recording can't encode a picture again. When a key frame is requested, the next frame becomes
/// one with the size of the last key frame (or keeps its own if that is larger); the additional
/// bytes exceed the rate.
#[derive(Clone, Debug)]
pub struct Recorded {
    recording: Arc<Recording>,
    scale: f64,
    /// Remainder of scaling, carried to the next frame.
    carry: f64,
    index: u64,
    position: usize,
    /// When the current iteration of the loop started.
    begun: Duration,
    key_size: u32,
    forced: bool,
}

impl Recorded {
    /// The recording at its own rate.
    pub fn new(recording: Arc<Recording>) -> Self {
        Self {
            recording,
            scale: 1.0,
            carry: 0.0,
            index: 0,
            position: 0,
            begun: Duration::ZERO,
            key_size: 0,
            forced: false,
        }
    }

    /// With all sizes scaled so that the mean rate is `rate`; no frame is smaller than 1 byte.
    #[must_use]
    pub fn at_rate(mut self, rate: Bandwidth) -> Self {
        let own = self.recording.bytes() as f64 * 8.0 / self.recording.period().as_secs_f64();
        self.scale = rate.as_bps() as f64 / own;
        self
    }
}

impl FrameSource for Recorded {
    fn next_frame(&mut self) -> Option<Frame> {
        if self.position == self.recording.frames().len() {
            self.position = 0;
            self.begun = self.begun.saturating_add(self.recording.period());
        }
        let frame = self.recording.frames()[self.position];
        let wanted = f64::from(frame.size) * self.scale + self.carry;
        // The cast saturates. A millionth of a byte hides rounding errors at whole numbers.
        let mut size = ((wanted + 1e-6) as u32).max(1);
        self.carry = (wanted - f64::from(size)).min(1.0);
        let mut kind = frame.kind;
        if self.forced {
            size = size.max(self.key_size);
            kind = FrameKind::Key;
        }
        if kind == FrameKind::Key {
            self.key_size = size;
        }
        self.forced = false;
        let next = Frame {
            index: self.index,
            kind,
            size,
            at: self.begun.saturating_add(frame.at),
        };
        self.index += 1;
        self.position += 1;
        Some(next)
    }

    fn force_key_frame(&mut self) {
        self.forced = true;
    }
}
