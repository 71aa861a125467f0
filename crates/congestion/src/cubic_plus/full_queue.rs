//! Not in the paper: distinguishes a loss in a full buffer from a random one where the buffer is too shallow
//! for the thresholds of delay.
//!
//! A buffer that overflows shows the same delay at each overflow, its largest, however small that
//! is. Random losses come at any delay. So a loss while the delay is near the largest seen is taken
//! for what it most likely is. The paper's own test, a short queue and few losses, holds for each
//! overflow of a shallow buffer as well; the window then grows until the losses are frequent, at the
//! expense of flows that react. The price: with random losses a window that has just built the
//! longest queue so far is reduced at the next one.

use std::collections::VecDeque;
use std::time::Duration;

use swiftwater_units::Instant;

use crate::sample::RttView;
use crate::windowed::Windowed;

/// Stretches between loss events over which the largest delay is kept: long enough to have
/// seen the buffer full, short enough to discard a delay that was no queue's.
const STRETCHES: usize = 8;

/// Delay, as a share of the base round-trip time, below which there is no queue to be full: the
/// sender's own bursts.
const NO_QUEUE: f64 = 0.05;

/// Packets of the flow that must have been in the queue at the largest delay for it to be that of a
/// queue.
const KNOWN_PACKETS: f64 = 8.0;

/// The largest delays seen, and that of now.
#[derive(Clone, Debug)]
pub(super) struct FullQueue {
    share: f64,
    /// Round-trip times of the last half round trip. Their minimum counts: a queue that overflows
    /// stands for that long, jitter doesn't.
    recent: Windowed<Instant, Duration>,
    /// The largest of these minima since the last loss event.
    peak: Duration,
    /// The same of the stretches before, oldest first.
    peaks: VecDeque<Duration>,
}

impl FullQueue {
    pub(super) fn new(share: f64) -> Self {
        Self {
            share,
            recent: Windowed::smallest(),
            peak: Duration::ZERO,
            peaks: VecDeque::with_capacity(STRETCHES),
        }
    }

    /// An ACK brought these round-trip times.
    pub(super) fn on_ack(&mut self, now: Instant, rtt: &RttView) {
        if rtt.has_sample {
            self.recent.enter(now, rtt.latest);
            self.recent.discard_before(now - rtt.smoothed / 2);
            let standing = self.recent.get().unwrap_or(rtt.latest);
            self.peak = self.peak.max(standing);
        }
    }

    /// A loss event, or another reduction of the window: a stretch ends.
    pub(super) fn end_stretch(&mut self) {
        if self.peaks.len() == STRETCHES {
            self.peaks.pop_front();
        }
        self.peaks.push_back(std::mem::take(&mut self.peak));
    }

    /// The longest queue seen, in seconds, on a path of base round-trip time `base` seconds.
    pub(super) fn longest(&self, base: f64) -> f64 {
        let largest = self.peaks.iter().copied().fold(self.peak, Duration::max);
        (largest.as_secs_f64() - base).max(0.0)
    }

    /// True if a queue was seen that is long enough to judge losses by, with a window of so many
    /// packets.
    pub(super) fn is_known(&self, base: f64, packets: f64) -> bool {
        self.longest(base) > base * NO_QUEUE.max(KNOWN_PACKETS / packets)
    }

    /// True if the buffer looks full, on a path of base round-trip time `base` seconds.
    pub(super) fn looks_full(&self, base: f64) -> bool {
        let queue = |rtt: Duration| (rtt.as_secs_f64() - base).max(0.0);
        let now = self.recent.get().map_or(0.0, queue);
        now > NO_QUEUE * base && now >= self.share * self.longest(base)
    }
}
