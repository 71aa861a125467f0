//! What may wait at a proxy that reports.

use std::time::Duration;

use swiftwater_tecc::queue_limit;
use swiftwater_units::{Bandwidth, ByteCount};

#[test]
fn the_limit_of_the_queue_follows_the_rate() {
    let millis = Duration::from_millis;
    // 64 KiB on a slow path, and while nothing is known.
    let least = ByteCount::new(64 << 10);
    assert_eq!(queue_limit(Bandwidth::ZERO, Duration::ZERO), least);
    assert_eq!(queue_limit(Bandwidth::from_mbps(1), millis(30)), least);
    // 300 ms of the rate on a short path, two round trips on a long one.
    let rate = Bandwidth::from_mbps(8);
    assert_eq!(queue_limit(rate, millis(30)), ByteCount::new(300_000));
    assert_eq!(queue_limit(rate, millis(600)), ByteCount::new(1_200_000));
    let largest = queue_limit(Bandwidth::from_bps(u64::MAX), Duration::from_secs(3_600));
    assert!(largest > least);
}
