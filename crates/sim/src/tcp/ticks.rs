//! How late the kernel's timers are. They are kept in a wheel (`kernel/time/timer.c`): a timer expires
//! on a tick, and the further away it is the coarser: of 1 tick below 63, 8 below 504, 64 below 4032,
//! and so on. A timeout of 300 ms comes up to 32 ms late at 250 ticks a second.

use std::time::Duration;

use swiftwater_units::Instant;

/// Ticks in the finest level, and the factor between levels as a shift.
const LEVEL_SIZE: u64 = 63;
const LEVEL_SHIFT: u32 = 3;
const LEVELS: u32 = 8;

/// The clock that timers run on.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Ticks {
    tick: Duration,
}

impl Ticks {
    /// A clock that ticks every `tick`; zero for timers that expire when they are due.
    pub fn new(tick: Duration) -> Self {
        Self { tick }
    }

    /// When a timer expires that is set at `now` for `at`.
    pub fn expiry(self, now: Instant, at: Instant) -> Instant {
        let tick = self.tick.as_nanos() as u64;
        if tick == 0 || at == Instant::FAR_FUTURE {
            return at;
        }
        let present = now.as_nanos() / tick;
        let delta = (at.saturating_since(now).as_nanos() as u64).div_ceil(tick);
        let level = (0..LEVELS).find(|level| delta < LEVEL_SIZE << (level * LEVEL_SHIFT));
        let shift = level.unwrap_or(LEVELS) * LEVEL_SHIFT;
        let slot = (present + delta + (1 << shift)) >> shift;
        Instant::from_nanos((slot << shift).saturating_mul(tick)).max(at)
    }
}
