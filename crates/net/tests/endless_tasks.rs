//! The watchdog of the other tests detects what it is for.

#![cfg(target_os = "linux")]

use std::process::Command;
use std::time::Duration;

use crate::watchdog;

/// Set in the process that is to loop.
const LOOPS: &str = "SWIFTWATER_TEST_LOOPS";

#[test]
fn a_task_that_never_yields_ends_the_process() {
    if std::env::var_os(LOOPS).is_some() {
        let _watched = watchdog::enter();
        tokio::spawn(async {
            loop {
                std::hint::spin_loop();
            }
        });
        std::thread::sleep(Duration::from_secs(300));
        return;
    }
    let output = Command::new(std::env::current_exe().unwrap())
        .args([
            "--exact",
            "endless_tasks::a_task_that_never_yields_ends_the_process",
        ])
        .arg("--nocapture")
        .env(LOOPS, "1")
        .output()
        .unwrap();
    let told = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success());
    assert!(told.contains("a worker loops for ever"), "{told}");
}

#[test]
fn tasks_that_yield_may_be_busy() {
    let _watched = watchdog::enter();
    let busy = tokio::spawn(async {
        let begun = std::time::Instant::now();
        while begun.elapsed() < Duration::from_secs(3) {
            tokio::task::yield_now().await;
        }
    });
    std::thread::sleep(Duration::from_millis(3_500));
    // The process was not ended.
    while !busy.is_finished() {
        std::thread::sleep(Duration::from_millis(10));
    }
}
