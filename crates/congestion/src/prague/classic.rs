//! Does the bottleneck mark like a classic AQM? RFC 9331, section 4.3 requires a sender of ECT(1) to
//! notice, because beside classic flows its gentle answer would starve them.
//!
//! The rule: an L4S queue marks at about 1 ms, a classic one at 5 ms (CoDel) or more. So a period
//! indicates a classic queue if it had marks although no packet of it found the queue shorter than
//! [`PragueConfig::classic_depth`](super::PragueConfig::classic_depth), and against if it had marks
//! with less. Where a few packets take longer than that, at low rates, the depth is their time.
//! Eight such periods more than others decide; up to sixteen are counted, so that a single short
//! queue doesn't reverse it.
//!
//! It can't see a classic queue that is kept short by others, and takes a path whose base delay
//! rose (a new route) for a classic queue until its flow ends.

use std::time::Duration;

/// Periods for a classic queue, beyond those against, that decide.
const DECIDES: u32 = 8;
/// Periods counted.
const REMEMBERED: u32 = 2 * DECIDES;
/// Packets whose transmission time still passes for a short queue.
pub(super) const PACKETS: f64 = 4.0;

/// The evidence so far.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct ClassicQueue {
    score: u32,
    classic: bool,
}

impl ClassicQueue {
    /// A period with marks ended. `standing` is the least queueing delay in it.
    pub(super) fn observe(&mut self, standing: Duration, depth: Duration) {
        if standing > depth {
            self.score = (self.score + 1).min(REMEMBERED);
        } else {
            self.score = self.score.saturating_sub(1);
        }
        self.classic = match self.score {
            0 => false,
            DECIDES.. => true,
            _ => self.classic,
        };
    }

    /// True if marks are to be answered like losses.
    pub(super) fn is_classic(self) -> bool {
        self.classic
    }
}
