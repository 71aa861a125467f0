//! CPU time used by the process, for `perf`.

use std::time::Duration;

/// User and system time of the whole process; `None` where the system doesn't provide it.
pub fn process_time() -> Option<Duration> {
    read(Clock::Process)
}

/// User and system time of the calling thread; `None` where the system doesn't provide it.
pub fn thread_time() -> Option<Duration> {
    read(Clock::Thread)
}

#[derive(Clone, Copy)]
enum Clock {
    Process,
    Thread,
}

#[cfg(unix)]
fn read(clock: Clock) -> Option<Duration> {
    use rustix::time::{ClockId, clock_gettime};
    let id = match clock {
        Clock::Process => ClockId::ProcessCPUTime,
        Clock::Thread => ClockId::ThreadCPUTime,
    };
    let time = clock_gettime(id);
    let seconds = u64::try_from(time.tv_sec).ok()?;
    let nanos = u32::try_from(time.tv_nsec).ok()?;
    Some(Duration::new(seconds, nanos))
}

#[cfg(not(unix))]
fn read(_: Clock) -> Option<Duration> {
    None
}

/// CPU seconds per 10^9 bytes; `None` if nothing was moved or the time is unknown.
pub fn seconds_per_gigabyte(cpu: Option<Duration>, bytes: u64) -> Option<f64> {
    let cpu = cpu?.as_secs_f64();
    (bytes > 0).then(|| cpu / (bytes as f64 / 1e9))
}
