//! The limit of copies during congestion: what shows congestion, and what AutoRec does then.

use swiftwater_policies::{CongestionGuard, CongestionGuardConfig, CopyLimit};
use swiftwater_quic::policy::{Occasion, PathPhase, PathView};
use swiftwater_units::{Bandwidth, ByteCount, PathId};

use crate::support::{ReinjectorDriver, at, data_range, drive, millis};

const CONFIG: CongestionGuardConfig = CongestionGuardConfig {
    is_on: true,
    max_rtt: Some(1.5),
    max_backlog: Some(1.0),
    queue_copies: 1,
    backlog_copies: 0,
    head_copies: 1,
};

/// `queue_copies` and `backlog_copies`.
const QUEUE: CopyLimit = CopyLimit { head: 1, others: 1 };
const BACKLOG: CopyLimit = CopyLimit { head: 1, others: 0 };

/// A path of 8 Mbit/s with a minimum RTT of 40 ms: 40,000 bytes leave in it.
fn path(latest: u64) -> PathView {
    PathView::builder(PathId::ZERO)
        .rtt(millis(40))
        .latest_rtt(millis(latest))
        .delivery_rate(Some(Bandwidth::from_mbps(8)))
        .pacing_rate(Some(Bandwidth::from_mbps(6)))
        .build()
}

/// The same, changed.
fn changed(latest: u64, change: impl FnOnce(&mut PathView)) -> PathView {
    let mut path = path(latest);
    change(&mut path);
    path
}

fn limit_with(config: CongestionGuardConfig, unsent: u64, paths: &[PathView]) -> CopyLimit {
    let mut guard = CongestionGuard::new(config);
    guard.on_unsent_data(ByteCount::new(unsent));
    guard.limit(paths)
}

fn limit(unsent: u64, paths: &[PathView]) -> CopyLimit {
    limit_with(CONFIG, unsent, paths)
}

#[test]
fn a_long_round_trip_shows_a_queue_in_the_network() {
    assert_eq!(
        limit(0, &[path(60)]),
        CopyLimit::NONE,
        "1.5 times the least"
    );
    assert_eq!(limit(0, &[path(61)]), QUEUE);
    let unsampled = changed(61, |path| path.has_rtt_sample = false);
    assert_eq!(limit(0, &[unsampled]), CopyLimit::NONE);
    let disregarded = CongestionGuardConfig {
        max_rtt: None,
        ..CONFIG
    };
    assert_eq!(limit_with(disregarded, 0, &[path(61)]), CopyLimit::NONE);
}

#[test]
fn unsent_data_show_a_queue_in_the_sender() {
    // By the larger one of delivery rate and pacing rate.
    assert_eq!(limit(40_000, &[path(40)]), CopyLimit::NONE);
    assert_eq!(limit(40_001, &[path(40)]), BACKLOG);
    let paced = changed(40, |path| path.pacing_rate = Some(Bandwidth::from_mbps(16)));
    assert_eq!(limit(40_001, &[paced]), CopyLimit::NONE);
    let disregarded = CongestionGuardConfig {
        max_backlog: None,
        ..CONFIG
    };
    assert_eq!(
        limit_with(disregarded, 40_001, &[path(40)]),
        CopyLimit::NONE
    );
}

#[test]
fn without_rates_the_window_stands_for_them() {
    let unknown = changed(40, |path| {
        path.delivery_rate = None;
        path.pacing_rate = None;
        path.cwnd = ByteCount::new(20_000);
    });
    assert_eq!(limit(20_000, &[unknown]), CopyLimit::NONE);
    assert_eq!(limit(20_100, &[unknown]), BACKLOG);
}

#[test]
fn both_together_leave_the_smaller_limit() {
    assert_eq!(limit(40_001, &[path(61)]), BACKLOG);
    let strict = CongestionGuardConfig {
        queue_copies: 0,
        backlog_copies: 2,
        head_copies: 3,
        ..CONFIG
    };
    let both = limit_with(strict, 40_001, &[path(61)]);
    assert_eq!(both, CopyLimit { head: 3, others: 0 });
}

#[test]
fn the_head_is_never_limited_more_than_the_rest() {
    let config = CongestionGuardConfig {
        queue_copies: 2,
        head_copies: 0,
        ..CONFIG
    };
    let limit = limit_with(config, 0, &[path(61)]);
    assert_eq!(limit, CopyLimit { head: 2, others: 2 });
    assert!(limit.permits(1, true) && limit.permits(1, false));
    assert!(!limit.permits(2, true) && !limit.permits(2, false));
}

#[test]
fn a_copy_may_leave_on_the_path_with_room() {
    assert_eq!(limit(0, &[path(61), path(60)]), CopyLimit::NONE);
    assert_eq!(limit(0, &[path(61), path(70)]), QUEUE);
    let closing = changed(60, |path| path.phase = PathPhase::Closing);
    assert_eq!(limit(0, &[path(61), closing]), QUEUE);
    assert_eq!(limit(0, &[closing]), CopyLimit::NONE);
    assert_eq!(limit(0, &[]), CopyLimit::NONE);
}

#[test]
fn switched_off_it_limits_nothing() {
    let off = CongestionGuardConfig {
        is_on: false,
        ..CONFIG
    };
    assert_eq!(limit_with(off, 1_000_000, &[path(500)]), CopyLimit::NONE);
    assert!(!CongestionGuardConfig::off().is_on);
    let mut guard = CongestionGuard::new(off);
    guard.configure(CONFIG);
    assert_eq!(guard.limit(&[path(500)]), QUEUE);
}

#[test]
fn a_copy_held_back_is_tried_again_within_a_round_trip() {
    let guard = CongestionGuard::new(CONFIG);
    let paths = [
        path(400),
        changed(400, |path| path.smoothed_rtt = millis(80)),
    ];
    assert_eq!(
        guard.retry_at(at(100), &paths),
        at(105),
        "an eighth of 40 ms"
    );
    let short = changed(400, |path| path.smoothed_rtt = millis(1));
    assert_eq!(guard.retry_at(at(100), &[short]), at(102));
    assert_eq!(guard.retry_at(at(100), &[]), at(102));
}

/// A driver with three ranges under repair that wait for copies; the threshold of silence is 30 ms.
fn three_lost(specification: &str) -> ReinjectorDriver {
    let mut driver = drive(specification);
    driver.retransmit(data_range(9));
    driver.interval(5);
    driver.recovered(data_range(9));
    for nth in [2, 0, 1] {
        driver.retransmit(data_range(nth));
    }
    driver.wait(30);
    driver
}

/// The least RTT of a driver's path is 50 ms.
fn congest(driver: &mut ReinjectorDriver) {
    driver.path.latest_rtt = millis(150);
}

#[test]
fn lost_data_have_one_copy_each_while_a_queue_stands_in_the_network() {
    let mut driver = three_lost("autorec:level=2,guard-rtt=2,guard-queue-copies=1");
    congest(&mut driver);
    let all = [data_range(2), data_range(0), data_range(1)];
    assert_eq!(driver.send(Occasion::Timer), all);
    driver.wait(30);
    assert_eq!(driver.send(Occasion::Timer), [], "each had its copy");
    assert_eq!(driver.deadline_in(), Some(7), "an eighth of the RTT");
    assert_eq!(driver.report().queued, 3, "they wait");
    assert_eq!(driver.send(Occasion::SpareRoom), [], "in off-mode too");
    driver.path.latest_rtt = driver.path.min_rtt;
    driver.wait(7);
    assert_eq!(driver.send(Occasion::Timer), all, "congestion is over");
}

#[test]
fn only_the_first_missing_bytes_have_a_copy_while_new_data_wait() {
    let mut driver =
        three_lost("autorec:level=2,guard-backlog=1,guard-backlog-copies=0,guard-head-copies=1");
    driver.unsent = ByteCount::new(1_000_000);
    assert_eq!(driver.send(Occasion::Timer), [data_range(0)]);
    driver.wait(30);
    assert_eq!(driver.send(Occasion::Timer), [], "it had its copy");
    driver.recovered(data_range(0));
    driver.wait(8);
    assert_eq!(
        driver.send(Occasion::Timer),
        [data_range(1)],
        "the next in the stream"
    );
    driver.unsent = ByteCount::ZERO;
    driver.wait(8);
    assert_eq!(driver.send(Occasion::Timer), [data_range(2)]);
}

#[test]
fn the_published_algorithm_has_no_guard() {
    for specification in ["autorec-paper:level=2", "autorec:level=2,guard=off"] {
        let mut driver = three_lost(specification);
        driver.unsent = ByteCount::new(1_000_000);
        congest(&mut driver);
        for _ in 0..2 {
            assert_eq!(driver.send(Occasion::Timer).len(), 3);
            driver.wait(30);
        }
    }
}
