//! Model of real-time communication: a frame must be complete within a deadline.

use std::time::Duration;

use swiftwater_units::Instant;

use crate::frame::Frame;

/// Deadline misses.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DeadlineReport {
    /// Frames whose deadline has passed.
    pub frames: u64,
    /// Those that weren't complete in time.
    pub missed: u64,
    /// Deadline miss rate as computed by Hairpin's scripts, 0 to 1: see [`DeadlineMeter::report`].
    pub per_second: f64,
}

impl DeadlineReport {
    /// Deadline miss rate over the run: frames missed over frames, 0 to 1; 0 without frames.
    pub fn miss_rate(&self) -> f64 {
        if self.frames == 0 {
            return 0.0;
        }
        self.missed as f64 / self.frames as f64
    }
}

/// Counts the frames that are not complete within a deadline after their encoding.
///
/// Only completeness is evaluated, as in the papers that use this measure: a frame that is complete
/// in time counts as shown even if a reference frame was missed. This is the network's part of the
/// impairment; a real decoder shows less until the next key frame.
#[derive(Clone, Debug)]
pub struct DeadlineMeter {
    epoch: Instant,
    deadline: Duration,
    /// Encoded frames by index: their time, and whether they were complete in time.
    frames: Vec<(Duration, bool)>,
}

impl DeadlineMeter {
    /// A meter of a stream whose frame times count from `epoch`, with frames due within `deadline`
    /// of their encoding.
    pub const fn new(epoch: Instant, deadline: Duration) -> Self {
        Self {
            epoch,
            deadline,
            frames: Vec::new(),
        }
    }

    /// The latest time at which a frame is in time.
    pub fn due(&self, frame: &Frame) -> Instant {
        self.epoch + frame.at + self.deadline
    }

    /// A frame was encoded. Frames must be passed in order from index 0 and without gaps; others
    /// are ignored.
    pub fn on_encoded(&mut self, frame: &Frame) {
        if frame.index == self.frames.len() as u64 {
            self.frames.push((frame.at, false));
        }
    }

    /// A frame was complete at `now`. A frame that wasn't encoded is ignored.
    pub fn on_complete(&mut self, now: Instant, frame: &Frame) {
        let index = usize::try_from(frame.index).unwrap_or(usize::MAX);
        if let Some((at, in_time)) = self.frames.get_mut(index) {
            *in_time |= now <= self.epoch + *at + self.deadline;
        }
    }

    /// Misses by `now`, of the frames whose deadline has passed (is not after `now`).
    ///
    /// The rate per second uses, as Hairpin's scripts do, only the sequence of frames in time: in
    /// each second of encoding times, the indices skipped over the indices advanced, and the mean of
    /// that over the seconds. A gap counts in the second of the frame that ends it. Hence seconds
    /// without a frame in time have no rate, and misses after the last frame in time aren't counted.
    pub fn report(&self, now: Instant) -> DeadlineReport {
        let past = |at: Duration| self.epoch + at + self.deadline <= now;
        let frames = self.frames.partition_point(|(at, _)| past(*at));
        let frames = &self.frames[..frames];
        let missed = frames.iter().filter(|(_, in_time)| !in_time).count();
        DeadlineReport {
            frames: frames.len() as u64,
            missed: missed as u64,
            per_second: per_second(frames),
        }
    }
}

fn per_second(frames: &[(Duration, bool)]) -> f64 {
    let (mut seconds, mut rates) = (0_u64, 0.0);
    // For the current second.
    let (mut second, mut skipped, mut advanced) = (0, 0_u64, 0_u64);
    let mut gap = 0;
    for (at, in_time) in frames {
        if !in_time {
            gap += 1;
            continue;
        }
        if at.as_secs() != second && advanced > 0 {
            rates += skipped as f64 / advanced as f64;
            seconds += 1;
            (skipped, advanced) = (0, 0);
        }
        second = at.as_secs();
        skipped += gap;
        advanced += gap + 1;
        gap = 0;
    }
    if advanced > 0 {
        rates += skipped as f64 / advanced as f64;
        seconds += 1;
    }
    if seconds == 0 {
        0.0
    } else {
        rates / seconds as f64
    }
}
