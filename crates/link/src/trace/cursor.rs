//! Iteration over a trace in time, repeating it.
//!
//! Positions are nanoseconds since the trace's first start; time never decreases.

use std::sync::Arc;

use swiftwater_units::Instant;

use super::Held;

/// Positions beyond this represent "never", so that arithmetic can't overflow.
const NEVER: u64 = u64::MAX / 2;

/// The relation between the driver's time and a trace's.
#[derive(Clone, Copy, Debug)]
struct Origin {
    start: Instant,
    offset: u64,
}

impl Origin {
    fn position(self, time: Instant) -> u64 {
        let elapsed = time.as_nanos().saturating_sub(self.start.as_nanos());
        elapsed.saturating_add(self.offset)
    }

    fn time(self, position: u64) -> Instant {
        if position >= NEVER {
            return Instant::FAR_FUTURE;
        }
        let elapsed = position.saturating_sub(self.offset);
        Instant::from_nanos(self.start.as_nanos().saturating_add(elapsed))
    }
}

/// A position in a trace of samples.
#[derive(Clone, Debug)]
pub(crate) struct SampleCursor {
    samples: Arc<[Held]>,
    period: u64,
    /// Nanobits transmitted in a period.
    capacity: u64,
    origin: Origin,
    /// Start of the current repetition.
    base: u64,
    /// The current sample.
    index: usize,
}

impl SampleCursor {
    pub(super) fn new(
        samples: Arc<[Held]>,
        period: u64,
        capacity: u64,
        start: Instant,
        offset: u64,
    ) -> Self {
        let origin = Origin { start, offset };
        Self {
            samples,
            period,
            capacity,
            origin,
            base: 0,
            index: 0,
        }
    }

    /// Half the round-trip time at `time`, in nanoseconds.
    pub(crate) fn half_rtt(&mut self, time: Instant) -> u64 {
        self.seek(self.origin.position(time));
        self.samples[self.index].rtt / 2
    }

    /// The loss probability at `time`.
    pub(crate) fn loss(&mut self, time: Instant) -> f64 {
        self.seek(self.origin.position(time));
        self.samples[self.index].loss
    }

    /// When `work` nanobits, started at `begin`, are complete; and the work that would fit in the
    /// rest of that last nanosecond.
    pub(crate) fn transmit(&mut self, begin: Instant, mut work: u64) -> (Instant, u64) {
        let mut at = self.origin.position(begin);
        if work == 0 || at >= NEVER {
            return (begin, 0);
        }
        self.seek(at);
        loop {
            let rate = self.samples[self.index].bps;
            let end = self.sample_end();
            let room = rate.saturating_mul(end - at);
            if work <= room {
                let nanos = work.div_ceil(rate);
                // `room` may be truncated to 64 bits, the product here isn't: it's below work +
                // rate.
                return (self.origin.time(at + nanos), rate * nanos - work);
            }
            work -= room;
            at = end;
            self.index += 1;
            if self.index == self.samples.len() {
                // Whole repetitions at once; one nanobit at least is left to finish with.
                let repetitions = (work - 1) / self.capacity.max(1);
                work -= repetitions * self.capacity;
                let skipped = repetitions.saturating_mul(self.period);
                self.base = end.saturating_add(skipped);
                if self.base >= NEVER {
                    self.base = NEVER;
                    self.index = 0;
                    return (Instant::FAR_FUTURE, 0);
                }
                at = self.base;
                self.index = 0;
            }
        }
    }

    fn sample_end(&self) -> u64 {
        let end = self
            .samples
            .get(self.index + 1)
            .map_or(self.period, |next| next.at);
        self.base + end
    }

    /// Advances to the sample at `position`.
    fn seek(&mut self, position: u64) {
        let position = position.min(NEVER);
        let mut within = position.saturating_sub(self.base);
        if within >= self.period {
            let repetitions = within / self.period;
            self.base += repetitions * self.period;
            within -= repetitions * self.period;
            self.index = 0;
        }
        self.index += steps(&self.samples[self.index..], within, |held| held.at);
    }
}

/// How many items to advance from the first of `items` to the last one not after `position`.
fn steps<T>(items: &[T], position: u64, at: impl Fn(&T) -> u64) -> usize {
    // Usually one of the next few: checked before a search.
    let near = items
        .iter()
        .take(8)
        .take_while(|item| at(item) <= position)
        .count();
    let passed = if near < 8 {
        near
    } else {
        items.partition_point(|item| at(item) <= position)
    };
    passed.saturating_sub(1)
}

/// A position in a trace of packet opportunities.
#[derive(Clone, Debug)]
pub(crate) struct OpportunityCursor {
    times: Arc<[u64]>,
    bytes: u32,
    period: u64,
    origin: Origin,
    base: u64,
    /// The next unused opportunity.
    next: usize,
    /// The opportunity in use and its remaining bytes.
    current: u64,
    left: u32,
}

impl OpportunityCursor {
    pub(super) fn new(
        times: Arc<[u64]>,
        bytes: u32,
        period: u64,
        start: Instant,
        offset: u64,
    ) -> Self {
        let origin = Origin { start, offset };
        Self {
            times,
            bytes,
            period,
            origin,
            base: 0,
            next: 0,
            current: 0,
            left: 0,
        }
    }

    /// When the last of `size` bytes, ready at `begin`, is sent.
    pub(crate) fn transmit(&mut self, begin: Instant, size: u32) -> Instant {
        let position = self.origin.position(begin);
        if size == 0 || position >= NEVER {
            return begin;
        }
        if position > self.current {
            self.left = 0;
            self.skip_to(position);
        }
        let mut size = size;
        while size > self.left {
            size -= self.left;
            self.current = self.base + self.times[self.next];
            if self.current >= NEVER {
                return Instant::FAR_FUTURE;
            }
            self.left = self.bytes;
            self.next += 1;
            if self.next == self.times.len() {
                self.next = 0;
                self.base += self.period;
            }
        }
        self.left -= size;
        self.origin.time(self.current)
    }

    /// When a transmission that is ready at `begin` starts: at once with the rest of an
    /// opportunity, or at the next one. Opportunities before `begin` are skipped.
    pub(crate) fn next_chance(&mut self, begin: Instant) -> Instant {
        let position = self.origin.position(begin);
        if position >= NEVER {
            return begin;
        }
        if position > self.current {
            self.left = 0;
            self.skip_to(position);
        } else if self.left > 0 {
            return begin;
        }
        let next = self.base + self.times[self.next];
        if next >= NEVER {
            return Instant::FAR_FUTURE;
        }
        self.origin.time(next).max(begin)
    }

    /// Skips opportunities before `position`.
    fn skip_to(&mut self, position: u64) {
        // An opportunity at the very end of a repetition still belongs to it, hence the strict
        // comparison.
        let within = position.saturating_sub(self.base);
        if within > self.period {
            let repetitions = (within - 1) / self.period;
            self.base += repetitions * self.period;
            self.next = 0;
        }
        let within = position.saturating_sub(self.base);
        let rest = &self.times[self.next..];
        self.next += rest.partition_point(|time| *time < within);
    }
}
