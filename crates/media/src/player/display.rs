//! Model of video conferences: frames are shown as soon as possible, and a freeze is an unusually
//! long gap.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use swiftwater_units::Instant;

use super::freezes::Freezes;
use crate::frame::Frame;

/// Number of gaps in the reference mean.
const HISTORY: usize = 30;

/// Initial frames whose gaps are not evaluated.
const SKIPPED_FRAMES: u64 = 31;

/// Most complete frames that wait for an earlier one. At 60 frames/s this is over a minute, longer
/// than a sender continues without a key frame.
const MAX_WAITING: usize = 4096;

/// Playback results.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct DisplayReport {
    /// Frames shown.
    pub shown: u64,
    /// Frames skipped, complete or not, because a later key frame was shown first.
    pub skipped: u64,
    /// Freezes. The whole gap counts as frozen.
    pub freezes: Freezes,
    /// Time covered by the evaluated gaps: from the 31st frame shown on.
    pub judged: Duration,
}

impl DisplayReport {
    /// Share of the time that was frozen ("video frozen"), 0 to 1.
    pub fn frozen_share(&self) -> f64 {
        self.freezes.share(self.judged)
    }
}

/// A display without a play-out buffer, as in the Ringmaster platform: frames are shown in order,
/// each when it is complete and its predecessor was shown; a complete key frame is shown at once,
/// and those before it are skipped.
///
/// Freezes follow WebRTC's statistics: a gap between two frames shown is one if it exceeds both 3 d
/// and d + 150 ms, d being the mean of the 30 gaps before. The first 31 frames are not evaluated.
#[derive(Clone, Debug, Default)]
pub struct FrameDisplay {
    /// Index of the frame to show next.
    next: u64,
    waiting: BTreeMap<u64, Frame>,
    last_shown: Option<Instant>,
    gaps: VecDeque<Duration>,
    shown: u64,
    skipped: u64,
    freezes: Freezes,
    judged: Duration,
}

impl FrameDisplay {
    /// A display that waits for frame 0, or a key frame.
    pub fn new() -> Self {
        Self::default()
    }

    /// Index of the frame that it waits for.
    pub const fn next_index(&self) -> u64 {
        self.next
    }

    /// A frame is complete at `now`, not before the previous call; in any order. A frame that was
    /// shown or skipped is ignored. Returns how many frames become visible.
    pub fn on_complete(&mut self, now: Instant, frame: &Frame) -> u64 {
        if frame.index < self.next {
            return 0;
        }
        if frame.is_key() && frame.index > self.next {
            self.skipped += frame.index - self.next;
            self.next = frame.index;
            self.waiting = self.waiting.split_off(&frame.index);
        }
        self.waiting.insert(frame.index, *frame);
        let before = self.shown;
        while self.waiting.remove(&self.next).is_some() {
            self.next += 1;
            self.show(now);
        }
        // The frame furthest ahead is the least likely to be shown in order.
        if self.waiting.len() > MAX_WAITING {
            self.waiting.pop_last();
        }
        self.shown - before
    }

    /// Results by `now`. A gap in progress counts if it is a freeze by now; otherwise a permanently
    /// frozen picture would not count.
    pub fn report(&self, now: Instant) -> DisplayReport {
        let mut freezes = self.freezes;
        let mut judged = self.judged;
        if let Some(last) = self.last_shown {
            let gap = now.saturating_since(last);
            if self.is_freeze(gap) {
                freezes.add(gap);
                judged += gap;
            }
        }
        DisplayReport {
            shown: self.shown,
            skipped: self.skipped,
            freezes,
            judged,
        }
    }

    fn show(&mut self, now: Instant) {
        if let Some(last) = self.last_shown.replace(now) {
            let gap = now.saturating_since(last);
            if self.is_freeze(gap) {
                self.freezes.add(gap);
            }
            if self.is_judged() {
                self.judged += gap;
            }
            if self.gaps.len() == HISTORY {
                self.gaps.pop_front();
            }
            self.gaps.push_back(gap);
        }
        self.shown += 1;
    }

    /// Whether the gap after the last frame shown is evaluated.
    const fn is_judged(&self) -> bool {
        self.shown >= SKIPPED_FRAMES
    }

    fn is_freeze(&self, gap: Duration) -> bool {
        let usual = self.gaps.iter().sum::<Duration>() / HISTORY as u32;
        self.is_judged() && gap > (3 * usual).max(usual + Duration::from_millis(150))
    }
}
