//! Counts of the process, with the names used by Prometheus' client libraries, and the version. Metrics
//! that the system does not provide are left out.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use metrics::{Unit, describe_gauge, gauge};

const MEMORY: &str = "process_resident_memory_bytes";
const CPU: &str = "process_cpu_seconds_total";
const OPEN: &str = "process_open_fds";
const MOST: &str = "process_max_fds";
const START: &str = "process_start_time_seconds";
const BUILD: &str = "swiftwater_build_info";

/// Describes them, and sets those that never change.
pub(super) fn describe() {
    describe_gauge!(MEMORY, Unit::Bytes, "Memory of the process");
    describe_gauge!(CPU, Unit::Seconds, "Time on processors, user and system");
    describe_gauge!(OPEN, "File descriptors in use");
    describe_gauge!(MOST, "File descriptors that are permitted");
    describe_gauge!(
        START,
        Unit::Seconds,
        "When the process was started, since 1970"
    );
    describe_gauge!(BUILD, "1; the version is a label");
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    gauge!(START).set(now.unwrap_or(Duration::ZERO).as_secs_f64().floor());
    gauge!(BUILD, "version" => env!("CARGO_PKG_VERSION")).set(1.0);
}

/// Queries the system.
pub(super) fn refresh() {
    set(MEMORY, resident_bytes());
    set(OPEN, open_descriptors());
    set(MOST, most_descriptors());
    set(
        CPU,
        crate::cpu::process_time().map(|time| time.as_secs_f64()),
    );
}

fn set(name: &'static str, value: Option<f64>) {
    if let Some(value) = value {
        gauge!(name).set(value);
    }
}

#[cfg(target_os = "linux")]
fn resident_bytes() -> Option<f64> {
    let text = std::fs::read_to_string("/proc/self/statm").ok()?;
    let pages: f64 = text.split(' ').nth(1)?.parse().ok()?;
    Some(pages * rustix::param::page_size() as f64)
}

#[cfg(target_os = "linux")]
fn open_descriptors() -> Option<f64> {
    // One is the descriptor of the directory being read.
    let count = std::fs::read_dir("/proc/self/fd").ok()?.count();
    Some(count.saturating_sub(1) as f64)
}

#[cfg(not(target_os = "linux"))]
fn resident_bytes() -> Option<f64> {
    None
}

#[cfg(not(target_os = "linux"))]
fn open_descriptors() -> Option<f64> {
    None
}

#[cfg(unix)]
fn most_descriptors() -> Option<f64> {
    let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile);
    limit.current.map(|limit| limit as f64)
}

#[cfg(not(unix))]
fn most_descriptors() -> Option<f64> {
    None
}
