//! Calls that must return. A loop without an end can't be stopped from outside; this ends the process, with
//! the call's name, so that the fuzzer keeps the input.
//!
//! What counts is processor time of the main thread, which runs the cases: a machine that is busy otherwise
//! is no fault. libFuzzer's own `-timeout` stays as the net below.

use std::fs;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, Once};
use std::thread;
use std::time::Duration;

/// Processor time that one call may take; real ones take microseconds.
const ALLOWED: Duration = Duration::from_secs(2);
/// Interval of checks.
const PERIOD: Duration = Duration::from_millis(250);

/// Counts calls: odd while one is in progress.
static TURN: AtomicU64 = AtomicU64::new(0);
static NAME: Mutex<&str> = Mutex::new("");
static STARTED: Once = Once::new();

/// Makes a call and sees that it returns.
pub fn call<T>(name: &'static str, call: impl FnOnce() -> T) -> T {
    STARTED.call_once(|| drop(thread::spawn(watch)));
    if let Ok(mut current) = NAME.lock() {
        *current = name;
    }
    TURN.fetch_add(1, Ordering::Relaxed);
    let result = call();
    TURN.fetch_add(1, Ordering::Relaxed);
    result
}

/// Processor time of the main thread; zero where the system doesn't say.
fn processor_time() -> Duration {
    let text = fs::read_to_string("/proc/self/schedstat").unwrap_or_default();
    let nanos = text.split(' ').next().and_then(|nanos| nanos.parse().ok());
    Duration::from_nanos(nanos.unwrap_or(0))
}

fn watch() {
    let mut seen = TURN.load(Ordering::Relaxed);
    let mut since = processor_time();
    loop {
        thread::sleep(PERIOD);
        let turn = TURN.load(Ordering::Relaxed);
        if turn != seen || turn % 2 == 0 {
            seen = turn;
            since = processor_time();
        } else if processor_time().saturating_sub(since) > ALLOWED {
            let name = NAME.lock().map_or("a call", |name| *name);
            eprintln!("{name} does not return: {ALLOWED:?} of processor time and no end");
            std::process::abort();
        }
    }
}
