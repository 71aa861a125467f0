//! The lines that the runner reads: the test runs itself as the program that writes them.

#![allow(missing_docs, clippy::unwrap_used, reason = "tests")]

use std::process::{Command, Stdio};
use std::time::Duration;

use serde_json::{Value, json};
use swiftwater_peers_job::{Latencies, events};

const WRITES: &str = "WRITES_EVENTS";

/// Writes every event there is.
fn write() {
    events::ready();
    events::start();
    events::bulk_done(1 << 40, Duration::from_millis(1500));
    let mut latencies = Latencies::default();
    (1..=99).for_each(|n| latencies.record(Duration::from_micros(n)));
    let mut more = Latencies::default();
    // Longer than can be counted.
    more.record(Duration::from_hours(1));
    latencies.merge(&more);
    events::requests_done(latencies, Duration::from_secs(2));
    events::requests_done(Latencies::default(), Duration::from_secs(1));
    events::handshakes_done(7, Duration::from_secs(1));
    events::hold_done(9);
    events::wait_for_end();
}

#[test]
fn each_event_is_a_line_of_json() {
    if std::env::var_os(WRITES).is_some() {
        write();
        return;
    }
    let output = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "each_event_is_a_line_of_json", "--nocapture"])
        .env(WRITES, "1")
        .stdin(Stdio::null())
        .output()
        .unwrap();
    assert!(output.status.success());
    let output = String::from_utf8(output.stdout).unwrap();
    // The test's frame writes, too; its words may be in front of the first event.
    let read: Vec<Value> = (output.lines())
        .filter_map(|line| serde_json::from_str(&line[line.find('{')?..]).ok())
        .collect();
    let longest = f64::from(u32::MAX) / 1e3;
    let expected = [
        json!({ "event": "ready" }),
        json!({ "event": "start" }),
        json!({ "event": "done", "bytes": 1_u64 << 40, "seconds": 1.5, "checksum_ok": true }),
        json!({
            "event": "done", "operations": 100, "seconds": 2.0,
            "p50_us": 51.0, "p99_us": longest, "checksum_ok": true,
        }),
        json!({
            "event": "done", "operations": 0, "seconds": 1.0,
            "p50_us": 0.0, "p99_us": 0.0, "checksum_ok": true,
        }),
        json!({ "event": "done", "count": 7, "seconds": 1.0 }),
        json!({ "event": "done", "connections": 9 }),
    ];
    assert_eq!(read, expected);
}
