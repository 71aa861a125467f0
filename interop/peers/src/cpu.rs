//! Processor time of this process.

use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

/// User and system time of the whole process so far.
#[must_use]
pub fn process_time() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    let seconds = u64::try_from(time.tv_sec).unwrap_or(0);
    let nanos = u32::try_from(time.tv_nsec).unwrap_or(0);
    Duration::new(seconds, nanos)
}
