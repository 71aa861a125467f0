//! `chorus+`: the whole response in view, and copies only of what arrives too late.

use std::time::Duration;

use swiftwater_policies::reinjector_by_name;
use swiftwater_policies::scheduler_by_name;
use swiftwater_quic::Priority;
use swiftwater_quic::policy::{
    ChunkExpectation, Demand, Hints, Occasion, OutstandingRange, PathChoice, PathDecision,
    PathView, QoeSignal, ReceivedFeedback, Reinjection, Reinjector, ResponseStart,
};
use swiftwater_units::{Bandwidth, ByteCount, Dir, Instant, PacketNumber, PathId, Side, StreamId};

const NOW: Instant = Instant::from_millis(5_000);
const SLOW: PathId = PathId::ZERO;
const FAST: PathId = PathId::new(1);

fn millis(n: u64) -> Duration {
    Duration::from_millis(n)
}

fn stream(nth: u64) -> StreamId {
    StreamId::new(Side::Server, Dir::Uni, nth)
}

fn view(id: PathId, mbps: u64, rtt: u64) -> PathView {
    PathView::builder(id)
        .rtt(millis(rtt))
        .rtt_var(millis(1))
        .cwnd(ByteCount::new(100_000))
        .delivery_rate(Some(Bandwidth::from_mbps(mbps)))
        .build()
}

/// A response of so many bytes, requested so many milliseconds ago.
fn response(bytes: u64, ago: u64) -> Hints {
    Hints {
        response: Some(ResponseStart {
            stream: stream(0),
            bytes: ByteCount::new(bytes),
            requested_at: NOW - millis(ago),
        }),
        ..Hints::default()
    }
}

#[test]
fn what_isn_t_written_yet_counts_as_waiting() {
    // The fast path is full; within the 100 ms that the slow one takes it delivers all that was written.
    let mut fast = view(FAST, 8, 20);
    fast.bytes_in_flight = fast.cwnd;
    let paths = [view(SLOW, 8, 400), fast];
    let written = Demand::nothing()
        .new_data(ByteCount::new(20_000))
        .next_stream(stream(0), Priority::default());
    let decide = |scheduler: &str, hints: &Hints| {
        let mut scheduler = scheduler_by_name(scheduler).unwrap();
        scheduler.on_hints(NOW, hints);
        scheduler.next(NOW, &paths, &written)
    };
    let large = response(5_000_000, 0);
    assert_eq!(decide("weighted", &large), PathDecision::Blocked);
    assert_eq!(decide("chorus+:whole=off", &large), PathDecision::Blocked);
    assert_eq!(decide("chorus+", &Hints::default()), PathDecision::Blocked);
    assert_eq!(
        decide("chorus+", &response(20_000, 0)),
        PathDecision::Blocked
    );
    let decision = decide("chorus+", &large);
    assert!(
        matches!(decision, PathDecision::Path { id: SLOW, .. }),
        "{decision:?}"
    );
}

#[test]
fn what_has_left_no_longer_counts() {
    let mut fast = view(FAST, 8, 20);
    fast.bytes_in_flight = fast.cwnd;
    let paths = [view(SLOW, 8, 400), fast];
    let mut scheduler = scheduler_by_name("chorus+").unwrap();
    scheduler.on_hints(NOW, &response(1_000_000, 0));
    let written = Demand::nothing()
        .new_data(ByteCount::new(20_000))
        .next_stream(stream(0), Priority::default());
    let free = [view(SLOW, 8, 400), view(FAST, 8, 20)];
    let first = scheduler.next(NOW, &free, &written);
    assert!(
        matches!(first, PathDecision::Path { id: FAST, .. }),
        "{first:?}"
    );
    for _ in 0..900 {
        scheduler.on_sent(NOW, FAST, ByteCount::new(1_200));
    }
    let second = scheduler.next(NOW + millis(1_100), &paths, &written);
    assert_eq!(second, PathDecision::Blocked, "the end");
}

/// A message of the player, on the way for 10 ms.
fn expectation(expected: u64) -> ReceivedFeedback {
    let signal = QoeSignal::Expectation(ChunkExpectation {
        chunk: 1,
        expected_time: millis(expected),
    });
    ReceivedFeedback {
        kind: signal.kind(),
        payload: signal.encode(64).unwrap(),
        sequence: 0,
        path: SLOW,
        age: millis(10),
    }
}

/// A policy with a budget of 50 kB that was told when the response is expected.
fn policy(specification: &str, expected: Option<u64>, age: u64) -> Box<dyn Reinjector> {
    let mut policy = reinjector_by_name(specification).unwrap();
    policy.on_new_data(NOW, ByteCount::new(2_000_000));
    if let Some(expected) = expected {
        policy.on_feedback(NOW - millis(age), &expectation(expected));
    }
    policy
}

/// Of ten ranges that arrive in 0 to 90 ms on the slow path, the numbers of those that are copied; the request arrived
/// 100 ms ago.
fn ask(policy: &mut dyn Reinjector, occasion: Occasion) -> Vec<u64> {
    let range = |nth: u64| {
        let sent_at = NOW - millis(100 - 10 * nth);
        let packet = PacketNumber::new(nth);
        OutstandingRange::new(SLOW, packet, sent_at, stream(0), nth * 1_000, 1_000)
    };
    let paths = [view(SLOW, 8, 200), view(FAST, 80, 20)];
    let hints = response(2_000_000, 100);
    let mut out: Vec<Reinjection> = Vec::new();
    let mut ranges = (0..10).map(range);
    policy.on_unsent_data(NOW, ByteCount::ZERO);
    policy.reinject(NOW, occasion, &mut ranges, &paths, &hints, &mut out);
    assert!(out.iter().all(|copy| copy.target == PathChoice::On(FAST)));
    out.iter().map(|copy| copy.offset / 1_000).collect()
}

/// The same after the response was announced.
fn copied(policy: &mut dyn Reinjector) -> Vec<u64> {
    if policy.is_asked_on(Occasion::Hints) {
        assert!(ask(policy, Occasion::Hints).is_empty());
    }
    ask(policy, Occasion::SpareRoom)
}

#[test]
fn what_gains_is_copied_and_near_the_expected_time_whatever_gains_at_all() {
    let of = |specification: &str, expected| copied(&mut *policy(specification, expected, 105));
    let all = copied(&mut *policy("tail-copies:gain=0ms", None, 0));
    let gaining = copied(&mut *policy("tail-copies:gain=40ms", None, 0));
    assert_eq!(all, [9, 8, 7, 6, 5, 4, 3, 2]);
    assert!(gaining.len() > 2 && gaining.len() < 6, "{gaining:?}");
    assert_eq!(of("chorus+:gain=40ms", None), gaining);
    // 100 ms have passed; beta leaves 99 of 110.
    assert_eq!(of("chorus+:gain=40ms", Some(110)), all);
    assert_eq!(of("chorus+:gain=10s", Some(110)), all);
    assert_eq!(of("chorus+:gain=40ms", Some(112)), gaining);
    assert_eq!(of("chorus+:gain=40ms,beta=0", Some(300)), all);
    let off = of("chorus+:gain=40ms,expected-time=off", Some(110));
    assert_eq!(off, gaining);
    assert!(of("chorus+:share=0", Some(110)).is_empty());
}

#[test]
fn the_budget_limits_what_is_copied_near_the_expected_time() {
    let of = |specification: &str| copied(&mut *policy(specification, Some(110), 105)).len();
    assert_eq!(of("chorus+:depth=3000"), 3);
    assert_eq!(of("chorus+:depth=1000"), 1);
}

#[test]
fn an_expected_time_that_arrives_long_after_a_response_began_is_of_the_next() {
    // Four times its age, 40 ms, is what it may be late.
    for (after, is_of_this) in [(39, true), (41, false)] {
        let mut policy = policy("chorus+:gain=10s", None, 0);
        ask(&mut *policy, Occasion::Hints);
        policy.on_feedback(NOW - millis(100 - after), &expectation(110));
        let copies = ask(&mut *policy, Occasion::SpareRoom);
        assert_eq!(copies.is_empty(), !is_of_this, "{after} ms");
    }
}
