//! The frame table of a real encode.

use std::time::Duration;

use swiftwater_units::Bandwidth;

use super::error::RecordingError;
use crate::frame::FrameKind;

/// Most frames of a recording: nine hours of 60 frames per second, about 50 MB of memory.
pub const MAX_FRAMES: usize = 2_000_000;

/// Longest recording: 30 days.
pub const MAX_PERIOD: Duration = Duration::from_secs(30 * 24 * 3600);

/// One frame of a recording.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct RecordedFrame {
    /// When it is to be decoded, since the first frame. Frames are in this order, which is that of
    /// sending; with bidirectional prediction the order of display differs.
    pub at: Duration,
    /// Size in bytes, at least 1.
    pub size: u32,
    /// Whether it can be decoded alone.
    pub kind: FrameKind,
}

/// Sizes, kinds and times of the frames of an encoded video; not the pictures.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Recording {
    frames: Vec<RecordedFrame>,
    period: Duration,
}

impl Recording {
    /// A recording of `frames`, whose last one is shown for `last`; if that is zero or unknown, for
    /// the mean duration of frames. Times are counted from that of the first frame; frames of 0
    /// bytes are left out.
    pub fn new(frames: Vec<RecordedFrame>, last: Option<Duration>) -> Result<Self, RecordingError> {
        let mut frames = frames;
        frames.retain(|frame| frame.size > 0);
        if frames.len() > MAX_FRAMES {
            return Err(RecordingError::TooManyFrames);
        }
        let Some(start) = frames.first().map(|frame| frame.at) else {
            return Err(RecordingError::Empty);
        };
        let mut latest = start;
        for (index, frame) in frames.iter_mut().enumerate() {
            if frame.at < latest {
                return Err(RecordingError::TimeGoesBack(index));
            }
            latest = frame.at;
            frame.at = frame.at.saturating_sub(start);
        }
        let span = latest.saturating_sub(start);
        if span > MAX_PERIOD {
            return Err(RecordingError::TooLong);
        }
        // At most MAX_FRAMES, so it fits.
        let intervals = (frames.len() - 1) as u32;
        let last = last
            .filter(|last| !last.is_zero())
            .or_else(|| span.checked_div(intervals))
            .unwrap_or_default();
        if last > MAX_PERIOD {
            return Err(RecordingError::TooLong);
        }
        let period = span + last;
        if period.is_zero() {
            return Err(RecordingError::NoDuration);
        }
        Ok(Self { frames, period })
    }

    /// The frames in sending order; at least one.
    pub fn frames(&self) -> &[RecordedFrame] {
        &self.frames
    }

    /// Its play time: the period of playing in a loop.
    pub const fn period(&self) -> Duration {
        self.period
    }

    /// Bytes of all frames.
    pub fn bytes(&self) -> u64 {
        self.frames.iter().map(|frame| u64::from(frame.size)).sum()
    }

    /// Its mean rate, rounded down to a bit per second.
    pub fn mean_rate(&self) -> Bandwidth {
        Bandwidth::from_transfer(self.bytes(), self.period)
    }

    /// The first `length` of it: the frames with a smaller time.
    pub fn truncated(&self, length: Duration) -> Result<Self, RecordingError> {
        let end = self.frames.partition_point(|frame| frame.at < length);
        let kept = &self.frames[..end];
        let last = kept
            .last()
            .map(|last| length.min(self.period).saturating_sub(last.at));
        Self::new(kept.to_vec(), last)
    }
}
