//! Schedulers over scripted paths: whole transfers of a bulk or a few datagrams.

use std::time::Duration;

use swiftwater_policies::scheduler_by_name;
use swiftwater_policies::testkit::{Network, ScriptedPath, TransferReport};
use swiftwater_policies::{Policies, reinjector_by_name};
use swiftwater_quic::policy::PolicyFactory;
use swiftwater_units::{Bandwidth, ByteCount, PathId};

/// Schedulers that use all paths.
const SPREADING: [&str; 5] = ["min-rtt", "round-robin", "weighted", "ecf", "blest"];
const FIRST: PathId = PathId::ZERO;
const SECOND: PathId = PathId::new(1);

fn millis(n: u64) -> Duration {
    Duration::from_millis(n)
}

/// A path of this rate in Mbit/s and this RTT in milliseconds, with a window a quarter larger than their
/// product.
fn path(mbps: u64, rtt: u64) -> ScriptedPath {
    let rate = Bandwidth::from_mbps(mbps);
    let window = rate.bytes_in(millis(rtt)) * 5 / 4;
    ScriptedPath::new(rate, millis(rtt) / 2).cwnd(ByteCount::new(window))
}

fn transfer_with(
    (scheduler, recovery): (&str, &str),
    kilobytes: u64,
    paths: &[ScriptedPath],
) -> TransferReport {
    let report = Network::new(paths.to_vec())
        .scheduler(scheduler_by_name(scheduler).unwrap())
        .reinjector(reinjector_by_name(recovery).unwrap())
        .transfer(ByteCount::new(1_000 * kilobytes), Duration::from_secs(60));
    assert_eq!(report.invalid_decisions, 0, "{scheduler}");
    report
}

fn transfer(scheduler: &str, kilobytes: u64, paths: &[ScriptedPath]) -> TransferReport {
    transfer_with((scheduler, "arq"), kilobytes, paths)
}

fn seconds(report: &TransferReport) -> f64 {
    report.completed_in.expect("complete").as_secs_f64()
}

/// What `kilobytes` with their headers take at this rate.
fn ideal(kilobytes: u64, mbps: u64) -> f64 {
    kilobytes as f64 * 1.04 * 8e-3 / mbps as f64
}

#[test]
fn bulk_gets_the_sum_of_the_rates() {
    let (fast, slow) = (path(80, 20), path(10, 80));
    let sums: [(&[ScriptedPath], u64); 3] = [
        (&[fast, slow], 90),
        (&[path(20, 20), path(10, 80), path(5, 40)], 35),
        (
            &[path(20, 20), path(10, 80), path(5, 40), path(15, 140)],
            50,
        ),
    ];
    for (paths, rate) in sums {
        for scheduler in SPREADING {
            let time = seconds(&transfer(scheduler, 10_000, paths));
            let efficiency = ideal(10_000, rate) / time;
            assert!(efficiency > 0.9, "{scheduler} {rate}: {efficiency}");
            let back: Vec<_> = paths.iter().rev().cloned().collect();
            let back = seconds(&transfer(scheduler, 10_000, &back));
            assert!((back - time).abs() < 1e-9, "{scheduler} {time} {back}");
        }
    }
}

#[test]
fn shares_of_weighted_are_those_of_the_rates() {
    let report = transfer("weighted", 10_000, &[path(80, 20), path(10, 80)]);
    let share = report.share(SECOND);
    assert!((share - 1.0 / 9.0).abs() < 0.01, "{share}");
    let report = transfer("weighted", 4_000, &[path(10, 30), path(10, 30)]);
    assert!((report.share(FIRST) - 0.5).abs() < 0.01);
}

#[test]
fn the_end_of_a_transfer_is_not_left_to_a_slow_path() {
    let paths = [path(20, 20), path(1, 400)];
    let alone = seconds(&transfer("first-path", 300, &paths[..1]));
    let min_rtt = seconds(&transfer("min-rtt", 300, &paths));
    assert!(min_rtt > 4.0 * alone, "{min_rtt} {alone}");
    for scheduler in ["ecf", "blest", "weighted"] {
        let report = transfer(scheduler, 300, &paths);
        assert!(seconds(&report) < 1.01 * alone, "{scheduler}");
        assert!(report.share(SECOND) < 1e-9, "{scheduler}");
        // Of three megabytes it carries a part.
        let report = transfer(scheduler, 3_000, &paths);
        assert!(report.share(SECOND) > 0.02, "{scheduler}");
    }
    let eager = seconds(&transfer("blest:lambda=0", 300, &paths));
    assert!(
        (eager - min_rtt).abs() < 1e-9,
        "without an estimate it is min-rtt"
    );
}

#[test]
fn weighted_is_near_the_better_path_for_every_size() {
    for (fast, slow) in [(path(80, 20), path(10, 80)), (path(20, 20), path(10, 120))] {
        for kilobytes in [100, 300, 1_000, 3_000] {
            let alone = seconds(&transfer(
                "first-path",
                kilobytes,
                std::slice::from_ref(&fast),
            ));
            let paths = [fast.clone(), slow.clone()];
            let weighted = seconds(&transfer("weighted", kilobytes, &paths));
            let min_rtt = seconds(&transfer("min-rtt", kilobytes, &paths));
            assert!(weighted < 1.15 * alone, "{kilobytes}: {weighted} {alone}");
            assert!(weighted <= min_rtt, "{kilobytes}: {weighted} {min_rtt}");
        }
    }
}

#[test]
fn a_lossy_path_carries_next_to_nothing() {
    let paths = [path(10, 20).lose_every(3), path(10, 40)];
    for scheduler in ["min-rtt", "weighted"] {
        let share = transfer(scheduler, 10_000, &paths).share(FIRST);
        assert!(share < 0.05, "{scheduler}: {share}");
    }
    let share = transfer("min-rtt:loss-high=1", 10_000, &paths).share(FIRST);
    assert!(share > 0.4, "without the threshold: {share}");
    // A tenth is no reason to leave half of the capacity unused.
    let paths = [path(10, 20).lose_every(10), path(10, 40)];
    let share = transfer("min-rtt", 10_000, &paths).share(FIRST);
    assert!(share > 0.4, "{share}");
}

#[test]
fn a_path_that_loses_no_longer_is_used_again() {
    let losing = || path(10, 20).lose((0..400).filter(|n| n % 3 == 0));
    let paths = [losing(), path(10, 40)];
    let share = transfer("min-rtt", 5_000, &paths).share(FIRST);
    assert!(share < 0.1, "{share}");
    let share = transfer("min-rtt:retry=300ms", 5_000, &paths).share(FIRST);
    assert!(share > 0.2, "{share}");
}

#[test]
fn redundant_data_arrive_by_the_first_path_that_works() {
    let pair = ("redundant", "redundant");
    let (near, far) = (path(10, 20), path(10, 40));
    // Twenty datagrams, of which the near path loses some or all.
    let alone = seconds(&transfer("first-path", 20, std::slice::from_ref(&far)));
    for broken in [
        near.clone().outage(millis(0)..millis(9_000)),
        near.clone().lose([3, 7, 19]),
    ] {
        let paths = [broken, far.clone()];
        let report = transfer_with(pair, 20, &paths);
        assert!(seconds(&report) <= alone, "{} {alone}", seconds(&report));
        assert_eq!(report.replicas().get(), 20_000, "each datum once more");
        let plain = seconds(&transfer("min-rtt", 20, &paths));
        assert!(plain > alone + 0.015, "{plain} {alone}");
    }
    // The scheduler alone sends nothing twice.
    let report = transfer_with(("redundant", "arq"), 20, &[near, far]);
    assert_eq!(report.sent().get(), 20_000);
}

#[test]
fn redundant_bulk_is_as_fast_as_the_best_path() {
    let pair = ("redundant", "redundant");
    let best = path(10, 20);
    let alone = seconds(&transfer("first-path", 2_000, std::slice::from_ref(&best)));
    let equal = transfer_with(pair, 2_000, &[best.clone(), path(10, 40)]);
    assert!(seconds(&equal) < 1.02 * alone);
    assert!(equal.replicas().get() > 1_900_000, "{:?}", equal.replicas());
    // A slow path skips what was acknowledged before its turn.
    let slow = transfer_with(pair, 2_000, &[best.clone(), path(1, 40)]);
    assert!(seconds(&slow) < 1.05 * alone, "{} {alone}", seconds(&slow));
    assert!(slow.share(SECOND) < 0.15);
    // An outage of one goes unnoticed.
    let outage = best.outage(millis(300)..millis(9_000));
    let report = transfer_with(pair, 2_000, &[outage, path(10, 40)]);
    assert!(seconds(&report) < 1.05 * alone, "{}", seconds(&report));
    // Standby paths carry no copies, and `max-copies` limits those on the others.
    let standby = path(10, 40).backup();
    let report = transfer_with(pair, 200, &[path(10, 20), standby]);
    assert_eq!(report.replicas(), ByteCount::ZERO);
    let three = [path(10, 20), path(10, 30), path(10, 40)];
    let copies = |recovery| {
        let report = transfer_with(("redundant", recovery), 20, &three);
        report
            .paths
            .iter()
            .map(|path| path.replicas.get())
            .sum::<u64>()
    };
    assert_eq!(copies("redundant"), 40_000);
    assert_eq!(copies("redundant:max-copies=1"), 20_000);
}

#[test]
fn both_halves_of_redundant_transmission_come_together() {
    let policies = Policies::redundant();
    let debug = format!("{:?}", policies.scheduler());
    assert!(debug.contains("Redundant"), "{debug}");
    assert!(!policies.reinjector().is_inert());
}
