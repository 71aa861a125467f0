//! Processor time of this thread, so that other work on the machine doesn't count.

use std::time::Duration;

/// Processor time so far.
#[cfg(unix)]
pub(crate) fn processor_time() -> Duration {
    let spent = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    Duration::new(spent.tv_sec as u64, spent.tv_nsec as u32)
}

/// Where there is no such clock, time that passes.
#[cfg(not(unix))]
pub(crate) fn processor_time() -> Duration {
    use std::sync::LazyLock;
    use std::time::Instant;
    static START: LazyLock<Instant> = LazyLock::new(Instant::now);
    START.elapsed()
}
