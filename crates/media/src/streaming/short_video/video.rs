//! One short video as a file.

use std::time::Duration;

use swiftwater_units::Bandwidth;

use crate::source::Recording;
use crate::streaming::error::ShortVideoError;

/// Longest short video.
pub const MAX_SHORT_VIDEO: Duration = Duration::from_secs(3600);

/// A file of video frames in order of display: where each of them ends.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct ShortVideo {
    /// Offset of the end of each frame; ascending, not empty.
    ends: Vec<u64>,
    interval: Duration,
}

impl ShortVideo {
    /// A video of `length` at `fps` frames per second, whose first frame has `first_frame` bytes and
    /// whose others are of equal size, so that the whole has the bitrate `rate` (if the first frame
    /// alone doesn't exceed that).
    pub fn constant(
        first_frame: u64,
        rate: Bandwidth,
        fps: f64,
        length: Duration,
    ) -> Result<Self, ShortVideoError> {
        if !(1.0..=1000.0).contains(&fps) {
            return Err(ShortVideoError::FrameRate(fps));
        }
        if length > MAX_SHORT_VIDEO {
            return Err(ShortVideoError::TooLong);
        }
        let frames = ((length.as_secs_f64() * fps).round() as u64).max(1);
        let others = frames - 1;
        let rest = rate
            .bytes_in(length)
            .saturating_sub(first_frame)
            .max(others);
        let end = |frame: u64| {
            let share = u128::from(rest) * u128::from(frame) / u128::from(others.max(1));
            first_frame.saturating_add(u64::try_from(share).unwrap_or(u64::MAX))
        };
        let ends = (0..frames).map(end).collect();
        Self::new(ends, Duration::from_secs_f64(1.0 / fps))
    }

    /// The frames of a real encode, each shown for the mean duration, in the order of sending.
    pub fn of_recording(recording: &Recording) -> Result<Self, ShortVideoError> {
        if recording.period() > MAX_SHORT_VIDEO {
            return Err(ShortVideoError::TooLong);
        }
        let mut end = 0;
        let ends: Vec<u64> = recording
            .frames()
            .iter()
            .map(|frame| {
                end += u64::from(frame.size);
                end
            })
            .collect();
        let frames = u32::try_from(ends.len()).unwrap_or(u32::MAX);
        let interval = recording.period().checked_div(frames).unwrap_or_default();
        Self::new(ends, interval)
    }

    fn new(ends: Vec<u64>, interval: Duration) -> Result<Self, ShortVideoError> {
        let first = ends.first().copied().unwrap_or(0);
        let ascending = ends.windows(2).all(|pair| pair[0] < pair[1]);
        if first == 0 || !ascending || interval.is_zero() {
            return Err(ShortVideoError::Empty);
        }
        Ok(Self { ends, interval })
    }

    /// Size of the file.
    pub fn bytes(&self) -> u64 {
        self.ends.last().copied().unwrap_or(0)
    }

    /// Size of the first frame.
    pub fn first_frame(&self) -> u64 {
        self.ends.first().copied().unwrap_or(0)
    }

    /// Number of frames.
    pub fn frames(&self) -> u64 {
        self.ends.len() as u64
    }

    /// Duration of one frame.
    pub const fn interval(&self) -> Duration {
        self.interval
    }

    /// Play time.
    pub fn length(&self) -> Duration {
        self.play_time(self.frames())
    }

    /// Mean bitrate.
    pub fn rate(&self) -> Bandwidth {
        Bandwidth::from_transfer(self.bytes(), self.length())
    }

    /// Frames that are complete with the first `bytes` of the file.
    pub fn frames_within(&self, bytes: u64) -> u64 {
        self.ends.partition_point(|end| *end <= bytes) as u64
    }

    /// Bytes of the first `frames` frames.
    pub fn bytes_of(&self, frames: u64) -> u64 {
        let last = usize::try_from(frames)
            .unwrap_or(usize::MAX)
            .min(self.ends.len());
        last.checked_sub(1).map_or(0, |last| self.ends[last])
    }

    /// Play time of `frames` frames.
    pub fn play_time(&self, frames: u64) -> Duration {
        // At most an hour of frames of 1 ms, so it fits.
        self.interval * u32::try_from(frames).unwrap_or(u32::MAX)
    }
}
