//! Copies of the end of the data on a faster path: which ranges, when, within what budget.

use std::time::Duration;

use swiftwater_policies::reinjector_by_name;
use swiftwater_policies::scheduler_by_name;
use swiftwater_policies::testkit::{Network, ScriptedPath, TransferReport};
use swiftwater_quic::policy::{
    Hints, Occasion, OutstandingRange, PathChoice, PathStatus, PathView, Rank, Reinjection,
    Reinjector, Rejection, RejectionReason,
};
use swiftwater_units::{Bandwidth, ByteCount, Dir, Instant, PacketNumber, PathId, Side, StreamId};

const NOW: Instant = Instant::from_millis(5_000);
const SLOW: PathId = PathId::ZERO;
const FAST: PathId = PathId::new(1);

fn millis(n: u64) -> Duration {
    Duration::from_millis(n)
}

/// 8 Mbit/s and 200 ms; a range of 1000 bytes takes a millisecond.
fn slow() -> PathView {
    PathView::builder(SLOW)
        .rtt(millis(200))
        .rtt_var(millis(1))
        .delivery_rate(Some(Bandwidth::from_mbps(8)))
        .build()
}

/// 80 Mbit/s and 20 ms, with room for 100,000 bytes.
fn fast() -> PathView {
    PathView::builder(FAST)
        .rtt(millis(20))
        .rtt_var(millis(1))
        .cwnd(ByteCount::new(100_000))
        .delivery_rate(Some(Bandwidth::from_mbps(80)))
        .build()
}

/// The `nth` range of 1000 bytes, sent on the slow path `ago` milliseconds ago.
fn range(nth: u64, ago: u64) -> OutstandingRange {
    let stream = StreamId::new(Side::Server, Dir::Uni, 0);
    let packet = PacketNumber::new(nth);
    OutstandingRange::new(SLOW, packet, NOW - millis(ago), stream, nth * 1_000, 1_000)
}

/// A policy with a budget for `kilobytes` of copies.
fn policy(specification: &str, kilobytes: u64) -> Box<dyn Reinjector> {
    let mut policy = reinjector_by_name(specification).unwrap();
    policy.on_new_data(NOW, ByteCount::new(kilobytes * 100_000 / 3 + 1));
    policy
}

fn ask(
    policy: &mut dyn Reinjector,
    unsent: u64,
    ranges: &[OutstandingRange],
    paths: &[PathView],
) -> Vec<Reinjection> {
    let mut out = Vec::new();
    policy.on_unsent_data(NOW, ByteCount::new(unsent));
    let mut ranges = ranges.iter().copied();
    let hints = Hints::default();
    policy.reinject(
        NOW,
        Occasion::SpareRoom,
        &mut ranges,
        paths,
        &hints,
        &mut out,
    );
    out
}

fn offsets(copies: &[Reinjection]) -> Vec<u64> {
    copies.iter().map(|copy| copy.offset / 1_000).collect()
}

#[test]
fn the_newest_ranges_are_copied_as_long_as_copies_arrive_sooner() {
    // Of a round trip of 200 ms, 150 to 10 ms have passed: ranges arrive in 0 to 90 ms.
    let ranges: Vec<_> = (0..15).map(|n| range(n, 150 - 10 * n)).collect();
    let paths = [slow(), fast()];
    let copies = ask(&mut *policy("tail-copies:gain=0ms", 50), 0, &ranges, &paths);
    // A copy takes 10 ms and a tenth of one for each before it: more than the 10 ms of range 6.
    assert_eq!(offsets(&copies), [14, 13, 12, 11, 10, 9, 8, 7]);
    for copy in &copies {
        assert_eq!(copy.target, PathChoice::On(FAST));
        assert_eq!(copy.rank, Rank::AfterNewData);
    }
    let copies = ask(
        &mut *policy("tail-copies:gain=50ms", 50),
        0,
        &ranges,
        &paths,
    );
    assert_eq!(offsets(&copies), [14, 13, 12], "50 ms sooner");
}

#[test]
fn a_path_that_is_overdue_is_expected_to_stay_so() {
    // Nothing came for 150 ms longer than a round trip.
    let ranges = [range(0, 351), range(1, 350)];
    let of = |gain: &str| {
        let mut policy = policy(&format!("tail-copies:gain={gain}"), 50);
        ask(&mut *policy, 0, &ranges, &[slow(), fast()])
    };
    assert_eq!(offsets(&of("100ms")), [1, 0]);
    assert!(of("200ms").is_empty());
}

#[test]
fn bytes_in_flight_before_a_range_count() {
    let ranges: Vec<_> = (0..300).map(|n| range(n, 100)).collect();
    let copies = ask(
        &mut *policy("tail-copies:gain=0ms", 50),
        0,
        &ranges,
        &[slow(), fast()],
    );
    assert_eq!(copies.len(), 50, "all that the budget permits");
    assert_eq!(copies[0].offset, 299_000);
}

#[test]
fn there_is_one_copy_of_a_datum_and_none_while_new_data_wait() {
    let ranges = [range(0, 10)];
    let paths = [slow(), fast()];
    let mut policy = policy("tail-copies", 50);
    assert!(ask(&mut *policy, 1, &ranges, &paths).is_empty());
    assert!(policy.can_use_spare_room(), "once nothing waits");
    let copies = ask(&mut *policy, 0, &ranges, &paths);
    assert_eq!(copies.len(), 1);
    assert!(!policy.can_use_spare_room());
    assert!(policy.next_deadline().is_some(), "it looks again");
    assert!(ask(&mut *policy, 0, &ranges, &paths).is_empty());
    // The copy didn't leave.
    policy.on_rejected(NOW, &[Rejection::new(copies[0], RejectionReason::NoPath)]);
    assert_eq!(ask(&mut *policy, 0, &ranges, &paths).len(), 1);
    assert!(ask(&mut *policy, 0, &[ranges[0].copies(1)], &paths).is_empty());
}

#[test]
fn copies_need_another_path_that_answers_and_has_room() {
    let ranges = [range(0, 10)];
    let of = |paths: &[PathView]| ask(&mut *policy("tail-copies", 50), 0, &ranges, paths).len();
    assert_eq!(of(&[slow(), fast()]), 1);
    assert_eq!(of(&[slow()]), 0);
    let with = |change: fn(&mut PathView)| {
        let mut other = fast();
        change(&mut other);
        of(&[slow(), other])
    };
    assert_eq!(with(|path| path.pto_count = 1), 0);
    assert_eq!(
        with(|path| path.bytes_in_flight = ByteCount::new(99_500)),
        0
    );
    assert_eq!(with(|path| path.peer_status = PathStatus::Backup), 0);
    assert_eq!(with(|path| path.min_rtt = millis(400)), 0);
    let off = &mut *policy("tail-copies:share=0", 50);
    assert!(!off.can_use_spare_room());
    assert!(ask(off, 0, &ranges, &[slow(), fast()]).is_empty());
}

fn transfer(recovery: &str, kilobytes: u64) -> TransferReport {
    let path = |mbps, rtt| {
        let rate = Bandwidth::from_mbps(mbps);
        let window = ByteCount::new(rate.bytes_in(millis(rtt)) * 5 / 4);
        ScriptedPath::new(rate, millis(rtt) / 2).cwnd(window)
    };
    Network::new([path(20, 20), path(1, 400)])
        .scheduler(scheduler_by_name("min-rtt").unwrap())
        .reinjector(reinjector_by_name(recovery).unwrap())
        .transfer(ByteCount::new(1_000 * kilobytes), Duration::from_secs(60))
}

#[test]
fn the_end_of_a_transfer_does_not_wait_for_the_slow_path() {
    let seconds = |report: &TransferReport| report.completed_in.unwrap().as_secs_f64();
    let (plain, copied) = (
        transfer("failover", 300),
        transfer("tail-copies:share=1", 300),
    );
    assert!(
        seconds(&copied) < 0.6 * seconds(&plain),
        "{} {}",
        seconds(&copied),
        seconds(&plain)
    );
    assert_eq!(
        copied.paths[1].replicas,
        ByteCount::ZERO,
        "none on the slow path"
    );
    // Three hundredths of the data.
    let copied = transfer("tail-copies", 3_000);
    let replicas = copied.replicas().get();
    assert!((1_000..=90_000).contains(&replicas), "{replicas}");
}
