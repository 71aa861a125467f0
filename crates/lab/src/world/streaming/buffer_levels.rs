//! Play time that a player has buffered, over the time of its session.

use std::time::Duration;

use swiftwater_units::Instant;

/// Time between two samples.
const INTERVAL: Duration = Duration::from_millis(100);

/// Samples of the buffered play time, from the first picture on.
#[derive(Debug, Default)]
pub(super) struct BufferLevels {
    /// When the level was last known, and what it was.
    last: Option<(Instant, Duration)>,
    next: Instant,
    samples: Vec<Duration>,
}

impl BufferLevels {
    /// The player has `buffered` of play time now. In between it plays what it has.
    pub(super) fn on_level(&mut self, now: Instant, buffered: Duration) {
        let Some((since, level)) = self.last else {
            if !buffered.is_zero() {
                self.last = Some((now, buffered));
                self.next = now;
            }
            return;
        };
        while self.next < now {
            let played = self.next.saturating_since(since);
            self.samples.push(level.saturating_sub(played));
            self.next += INTERVAL;
        }
        self.last = Some((now, buffered));
    }

    pub(super) fn samples(&self) -> &[Duration] {
        &self.samples
    }
}
