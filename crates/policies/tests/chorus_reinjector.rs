//! Chorus: what of the end of a response is copied, where, and from when on.

use std::time::Duration;

use proptest::prelude::*;
use swiftwater_policies::chorus::reinjector::Stage;
use swiftwater_policies::chorus::{ChorusReinjector, ChorusReinjectorConfig};
use swiftwater_quic::policy::{
    ChunkExpectation, Hints, Occasion, OutstandingRange, PathChoice, PathStatus, PathView,
    QoeSignal, Rank, ReceivedFeedback, Reinjection, Reinjector, Rejection, RejectionReason,
    ResponseStart,
};
use swiftwater_units::{Bandwidth, ByteCount, Dir, Instant, PacketNumber, PathId, Side, StreamId};

const START: Instant = Instant::from_millis(5_000);
const SLOW: PathId = PathId::ZERO;
const FAST: PathId = PathId::new(1);
const SIZE: u64 = 100_000;

fn millis(n: u64) -> Duration {
    Duration::from_millis(n)
}

fn at(n: u64) -> Instant {
    START + millis(n)
}

fn stream(nth: u64) -> StreamId {
    StreamId::new(Side::Server, Dir::Uni, nth)
}

/// 10 Mbit/s with 200 ms, and 30 Mbit/s with 40 ms: the mean RTT of a byte is 80 ms.
fn views() -> [PathView; 2] {
    let view = |id, mbps, rtt| {
        PathView::builder(id)
            .rtt(millis(rtt))
            .cwnd(ByteCount::new(50_000))
            .delivery_rate(Some(Bandwidth::from_mbps(mbps)))
            .build()
    };
    [view(SLOW, 10, 200), view(FAST, 30, 40)]
}

fn range(path: PathId, nth: u64) -> OutstandingRange {
    let packet = PacketNumber::new(nth);
    OutstandingRange::new(path, packet, START, stream(0), nth * 1_000, 1_000)
}

/// The `nth` response.
fn response(nth: u64) -> Hints {
    Hints {
        response: Some(ResponseStart {
            stream: stream(nth),
            bytes: ByteCount::new(SIZE),
            requested_at: START,
        }),
        ..Hints::default()
    }
}

fn expectation(chunk: u64, expected: u64) -> ReceivedFeedback {
    let signal = QoeSignal::Expectation(ChunkExpectation {
        chunk,
        expected_time: millis(expected),
    });
    ReceivedFeedback {
        kind: signal.kind(),
        payload: signal.encode(64).unwrap(),
        sequence: chunk,
        path: SLOW,
        age: millis(20),
    }
}

/// A policy, and the application's hints.
struct World {
    policy: ChorusReinjector,
    hints: Hints,
    paths: Vec<PathView>,
}

impl World {
    fn new(change: impl FnOnce(&mut ChorusReinjectorConfig)) -> Self {
        let mut config = ChorusReinjectorConfig::default();
        change(&mut config);
        Self {
            policy: ChorusReinjector::new(config),
            hints: Hints::default(),
            paths: views().to_vec(),
        }
    }

    /// A response was announced, expected in so many milliseconds, and all of it has left.
    fn sent(expected: Option<u64>) -> Self {
        let mut world = Self::new(|_| {});
        world.send(expected);
        world
    }

    fn send(&mut self, expected: Option<u64>) {
        if let Some(expected) = expected {
            self.policy.on_feedback(START, &expectation(1, expected));
        }
        self.hints = response(0);
        assert!(self.ask(0, Occasion::Hints, 0, &[]).is_empty());
        assert_eq!(self.policy.stage(), Stage::Coarse);
        self.policy.on_new_data(START, ByteCount::new(SIZE));
        assert_eq!(self.policy.stage(), Stage::Fine);
    }

    fn ask(
        &mut self,
        time: u64,
        occasion: Occasion,
        unsent: u64,
        ranges: &[OutstandingRange],
    ) -> Vec<Reinjection> {
        let mut out = Vec::new();
        self.policy.on_unsent_data(at(time), ByteCount::new(unsent));
        self.policy.reinject(
            at(time),
            occasion,
            &mut ranges.iter().copied(),
            &self.paths,
            &self.hints,
            &mut out,
        );
        out
    }

    fn spare(&mut self, time: u64, ranges: &[OutstandingRange]) -> Vec<Reinjection> {
        self.ask(time, Occasion::SpareRoom, 0, ranges)
    }
}

#[test]
fn copies_begin_when_the_response_may_come_late() {
    let ranges = [range(SLOW, 0), range(FAST, 1)];
    let mut world = World::sent(Some(1_000));
    // E = 0.9 * 1000 - (0.25 * 200 + 0.75 * 40) = 820 ms.
    assert!(world.policy.can_use_spare_room());
    assert!(world.spare(100, &ranges).is_empty());
    assert_eq!(world.policy.next_deadline(), Some(at(820)));
    assert!(
        !world.policy.can_use_spare_room(),
        "until something changes"
    );
    assert!(world.ask(819, Occasion::Timer, 0, &ranges).is_empty());
    let copies = world.ask(820, Occasion::Timer, 0, &ranges);
    assert_eq!(world.policy.stage(), Stage::Copying);
    let named: Vec<_> = copies
        .iter()
        .map(|copy| (copy.offset, copy.target))
        .collect();
    assert_eq!(
        named,
        [(0, PathChoice::On(FAST)), (1_000, PathChoice::On(SLOW))]
    );
    assert!(copies.iter().all(|copy| copy.rank == Rank::AfterNewData));
    assert_eq!(world.policy.next_deadline(), None);
}

#[test]
fn longer_round_trips_bring_the_copies_forward() {
    let mut world = World::sent(Some(1_000));
    world.paths[0].smoothed_rtt = millis(1_000);
    // 0.9 * 1000 - (0.25 * 1000 + 0.75 * 40).
    assert!(world.spare(619, &[range(SLOW, 0)]).is_empty());
    assert_eq!(world.policy.next_deadline(), Some(at(620)));
    assert_eq!(
        world.ask(620, Occasion::Timer, 0, &[range(SLOW, 0)]).len(),
        1
    );
}

#[test]
fn without_an_expected_time_or_a_use_of_it_all_ends_are_copied() {
    let ranges = [range(SLOW, 0)];
    assert_eq!(World::sent(None).spare(1, &ranges).len(), 1);
    for expected_time in [true, false] {
        let mut world = World::new(|config| config.expected_time = expected_time);
        world.send(Some(1_000));
        assert_eq!(world.spare(1, &ranges).is_empty(), expected_time);
    }
    let mut eager = World::new(|config| config.beta = 0.0);
    eager.send(Some(1_000));
    assert_eq!(eager.spare(1, &ranges).len(), 1);
}

#[test]
fn nothing_is_copied_before_all_has_left() {
    let ranges = [range(SLOW, 0)];
    let mut world = World::sent(None);
    assert!(world.ask(1, Occasion::SpareRoom, 500, &ranges).is_empty());
    assert_eq!(world.spare(2, &ranges).len(), 1);
    // The application hasn't written all of it yet.
    let mut world = World::new(|_| {});
    world.hints = response(0);
    world.ask(0, Occasion::Hints, 0, &[]);
    world.policy.on_new_data(START, ByteCount::new(SIZE - 1));
    assert!(world.spare(1, &ranges).is_empty());
    world.policy.on_new_data(START, ByteCount::new(1));
    assert_eq!(world.spare(1, &ranges).len(), 1);
}

#[test]
fn an_expected_time_is_of_the_response_that_has_none() {
    // It arrives after the response began.
    let mut world = World::sent(None);
    world.policy.on_feedback(at(5), &expectation(1, 1_000));
    assert!(world.spare(10, &[range(SLOW, 0)]).is_empty());
    // The next one doesn't change it.
    world.policy.on_feedback(at(15), &expectation(2, 500));
    world.spare(20, &[range(SLOW, 0)]);
    assert_eq!(world.policy.next_deadline(), Some(at(820)));
    world.hints = response(1);
    world.ask(30, Occasion::Hints, 0, &[]);
    assert_eq!(world.policy.next_deadline(), Some(at(370)));
    // A message that isn't one is ignored.
    let mut other = expectation(3, 100);
    other.kind = QoeSignal::PLAYER;
    world.policy.on_feedback(at(40), &other);
    world.ask(50, Occasion::Feedback, 0, &[]);
    assert_eq!(world.policy.next_deadline(), Some(at(370)));
}

#[test]
fn a_datum_has_one_copy_on_a_path_that_can_carry_it() {
    let ranges = [range(SLOW, 0)];
    let mut world = World::sent(None);
    let copies = world.spare(1, &ranges);
    assert_eq!(copies.len(), 1);
    assert!(world.spare(2, &ranges).is_empty());
    let rejection = Rejection::new(copies[0], RejectionReason::NoPath);
    world.policy.on_rejected(at(3), &[rejection]);
    assert_eq!(world.spare(4, &ranges).len(), 1, "the copy didn't leave");
    assert!(
        World::sent(None)
            .spare(1, &[ranges[0].copies(1)])
            .is_empty()
    );
    let mut other = ranges[0];
    other.stream = stream(7);
    assert!(
        World::sent(None)
            .spare(1, &[other, ranges[0].copies(1)])
            .is_empty()
    );
    let changes: [fn(&mut PathView); 3] = [
        |path| path.pto_count = 1,
        |path| path.bytes_in_flight = ByteCount::new(49_001),
        |path| path.peer_status = PathStatus::Backup,
    ];
    for change in changes {
        let mut world = World::sent(None);
        change(&mut world.paths[1]);
        assert!(world.spare(1, &ranges).is_empty());
    }
    // No more than the window takes.
    let many: Vec<_> = (0..100).map(|n| range(SLOW, n)).collect();
    assert_eq!(World::sent(None).spare(1, &many).len(), 50);
}

#[test]
fn of_more_than_two_paths_the_one_with_the_least_rtt_is_taken() {
    let mut third = views()[1];
    third.id = PathId::new(2);
    third.smoothed_rtt = millis(30);
    let mut world = World::sent(None);
    world.paths.push(third);
    let copies = world.spare(1, &[range(SLOW, 0), range(third.id, 1)]);
    assert_eq!(copies[0].target, PathChoice::On(third.id));
    assert_eq!(copies[1].target, PathChoice::On(FAST));
}

#[test]
fn a_response_that_has_arrived_ends_and_the_next_begins() {
    let mut world = World::sent(Some(1_000));
    assert!(world.spare(100, &[]).is_empty());
    assert_eq!(world.policy.stage(), Stage::Idle);
    assert_eq!(world.policy.next_deadline(), None);
    assert!(!world.policy.can_use_spare_room());
    world.ask(200, Occasion::Hints, 0, &[]);
    assert_eq!(world.policy.stage(), Stage::Idle, "the same hint");
    world.hints = response(1);
    world.ask(300, Occasion::Hints, 0, &[]);
    assert_eq!(world.policy.stage(), Stage::Coarse);
}

#[test]
fn what_is_on_a_path_that_went_down_leaves_on_the_others_at_once() {
    let ranges = [range(SLOW, 0), range(FAST, 1)];
    for mut world in [World::new(|_| {}), World::sent(Some(10_000))] {
        let copies = world.ask(1, Occasion::PathDown(SLOW), 5_000, &ranges);
        assert_eq!(copies.len(), 1);
        assert_eq!(copies[0].target, PathChoice::Not(SLOW));
        assert_eq!(copies[0].rank, Rank::First);
    }
}

fn any_view(id: u32) -> impl Strategy<Value = PathView> {
    let numbers = (1_u64..2_000, 0_u64..20_000, 0_u64..20_000, 0_u32..2);
    let states = (any::<bool>(), any::<bool>());
    (numbers, states).prop_map(
        move |((rtt, cwnd, in_flight, pto_count), (backup, sample))| {
            PathView::builder(PathId::new(id))
                .rtt(millis(rtt))
                .cwnd(ByteCount::new(cwnd))
                .bytes_in_flight(ByteCount::new(in_flight))
                .pto_count(pto_count)
                .has_rtt_sample(sample)
                .local_status([PathStatus::Available, PathStatus::Backup][usize::from(backup)])
                .build()
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    /// A copy never leaves on the path of its origin, nor on one that isn't there or has no room; and no datum has two.
    #[test]
    fn copies_leave_on_other_paths(
        steps in prop::collection::vec(
            ((any_view(0), any_view(1), any_view(2)), 1_u8..8, prop::collection::vec((0_u32..3, 0_u64..8), 0..12)),
            1..12,
        ),
        expected in prop::option::of(0_u64..400),
    ) {
        let mut world = World::new(|_| {});
        world.send(expected);
        let mut asked = std::collections::BTreeSet::new();
        for (n, ((a, b, c), present, ranges)) in (1..).zip(steps) {
            let views = [a, b, c].into_iter().enumerate();
            world.paths = views.filter(|(n, _)| present & (1 << n) != 0).map(|(_, view)| view).collect();
            let mut by_offset = std::collections::BTreeMap::new();
            for (path, nth) in ranges {
                by_offset.insert(nth, range(PathId::new(path), nth));
            }
            let ranges: Vec<_> = by_offset.values().copied().collect();
            world.policy.on_outcomes(at(50 * n), &[], &world.paths[0]);
            let copies = world.spare(50 * n, &ranges);
            // What is no longer in flight may be sent and copied anew.
            asked.retain(|offset| by_offset.contains_key(&(offset / 1_000)));
            for copy in &copies {
                let origin = by_offset[&(copy.offset / 1_000)];
                let PathChoice::On(target) = copy.target else { panic!("{copy:?}") };
                prop_assert!(target != origin.path);
                let path = world.paths.iter().find(|path| path.id == target).unwrap();
                prop_assert!(path.pto_count == 0 && !path.is_backup());
                let on_it = copies.iter().filter(|other| other.target == copy.target);
                let bytes: u64 = on_it.map(|other| u64::from(other.len)).sum();
                prop_assert!(bytes <= path.window_room().get());
                prop_assert!(asked.insert(copy.offset), "{copy:?}");
            }
        }
    }
}
