//! Whether the machine kept up: what it stopped for in between can't be compared.

use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// How long the watching thread sleeps.
const INTERVAL: Duration = Duration::from_millis(5);
/// A wake-up this late spoils what was measured meanwhile.
const TOLERANCE: Duration = Duration::from_millis(40);

/// Wake-ups that were too late since the program began.
static LATE: AtomicU64 = AtomicU64::new(0);

/// Starts to watch, until the program ends.
pub(crate) fn start() {
    thread::spawn(|| {
        loop {
            let before = Instant::now();
            thread::sleep(INTERVAL);
            if before.elapsed() > INTERVAL + TOLERANCE {
                LATE.fetch_add(1, Ordering::Relaxed);
            }
        }
    });
}

/// Wake-ups that were too late so far.
pub(crate) fn late() -> u64 {
    LATE.load(Ordering::Relaxed)
}
