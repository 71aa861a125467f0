//! What holds of XLINK's re-injector whatever happens: where copies go, how many, at what cost.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use proptest::prelude::*;
use swiftwater_policies::reinjector_by_name;
use swiftwater_quic::Priority;
use swiftwater_quic::policy::{
    Hints, NextData, Occasion, OutstandingRange, PathChoice, PathPhase, PathView, PlayerSignal,
    QoeSignal, ReceivedFeedback, Reinjection, Reinjector, Rejection, RejectionReason,
};
use swiftwater_units::{Bandwidth, ByteCount, Dir, Instant, PacketNumber, PathId, Side, StreamId};

const WINDOW: Duration = Duration::from_secs(10);
/// Bytes of a range.
const LEN: u32 = 1_000;

/// Policies, with the most that copies may cost; infinity: no limit.
const POLICIES: [(&str, f64); 6] = [
    ("xlink", 0.15),
    (
        "xlink:level=plain,gain=none,budget=0.1,urgent-budget=0",
        0.1,
    ),
    ("xlink:level=stream,control=off", 0.05),
    ("xlink:start=off,th2=60s,variance=8", 0.15),
    ("xlink:gain=none,urgent-budget=0.3", 0.3),
    ("xlink-paper", f64::INFINITY),
];

#[derive(Clone, Copy, Debug)]
enum Step {
    Wait(u64),
    /// New data of a stream leave on a path.
    Send {
        path: u32,
        stream: u64,
        first_frame: bool,
    },
    /// Data left that are in flight no more: the budget counts them.
    Past(u64),
    /// The range at this place is acknowledged, or sent again on a path.
    Acked(usize),
    SentAgain {
        at: usize,
        path: u32,
    },
    /// A path appears, changes or vanishes.
    Path(u32, Option<PathView>),
    Down(u32),
    Report {
        play_time: u64,
        stalled: bool,
    },
    /// Asks while these data wait.
    Ask {
        occasion: Occasion,
        next: Option<(u64, u8)>,
    },
    /// Copies of the last answer will not be sent.
    Reject(usize),
}

fn any_view() -> impl Strategy<Value = PathView> {
    (
        1_u64..800,
        0_u64..200,
        0_u64..50_000,
        0_u64..60_000,
        0_u32..3,
        0_u8..4,
    )
        .prop_map(|(rtt, variance, cwnd, in_flight, pto_count, phase)| {
            PathView::builder(PathId::ZERO)
                .rtt(Duration::from_millis(rtt))
                .rtt_var(Duration::from_millis(variance))
                .cwnd(ByteCount::new(cwnd))
                .bytes_in_flight(ByteCount::new(in_flight))
                .pto_count(pto_count / 2)
                .phase(match phase {
                    0 => PathPhase::Closing,
                    _ => PathPhase::Active,
                })
                .build()
        })
}

fn any_step() -> impl Strategy<Value = Step> {
    let path = || 0_u32..4;
    let occasion = prop_oneof![
        Just(Occasion::SpareRoom),
        Just(Occasion::Ack),
        Just(Occasion::Timer),
        Just(Occasion::Feedback),
    ];
    let next = prop::option::of((0_u64..5, 0_u8..8));
    prop_oneof![
        2 => (0_u64..4_000).prop_map(Step::Wait),
        1 => (0_u64..20).prop_map(Step::Wait),
        6 => (path(), 0_u64..5, prop::bool::weighted(0.2))
            .prop_map(|(path, stream, first_frame)| Step::Send { path, stream, first_frame }),
        2 => (0_u64..60_000).prop_map(Step::Past),
        2 => (0_usize..64).prop_map(Step::Acked),
        1 => (0_usize..64, path()).prop_map(|(at, path)| Step::SentAgain { at, path }),
        2 => (path(), prop::option::weighted(0.8, any_view())).prop_map(|(id, view)| Step::Path(id, view)),
        1 => path().prop_map(Step::Down),
        2 => (0_u64..6_000, any::<bool>())
            .prop_map(|(play_time, stalled)| Step::Report { play_time, stalled }),
        6 => (occasion, next).prop_map(|(occasion, next)| Step::Ask { occasion, next }),
        1 => (0_usize..8).prop_map(Step::Reject),
    ]
}

fn stream(nth: u64) -> StreamId {
    StreamId::new(Side::Server, Dir::Uni, nth)
}

type Datum = (StreamId, u64);

struct Model {
    policy: Box<dyn Reinjector>,
    share: f64,
    now: Instant,
    paths: BTreeMap<u32, PathView>,
    ranges: Vec<OutstandingRange>,
    offsets: BTreeMap<u64, u64>,
    copied: BTreeSet<Datum>,
    sent: Vec<(Instant, u64)>,
    copies: Vec<(Instant, Datum)>,
    last: Vec<Reinjection>,
    packets: u64,
}

impl Model {
    fn new((name, share): (&str, f64), views: Vec<PathView>) -> Self {
        let mut model = Self {
            policy: reinjector_by_name(name).unwrap(),
            share,
            now: Instant::from_millis(5_000),
            paths: BTreeMap::new(),
            ranges: Vec::new(),
            offsets: BTreeMap::new(),
            copied: BTreeSet::new(),
            sent: Vec::new(),
            copies: Vec::new(),
            last: Vec::new(),
            packets: 0,
        };
        for (id, view) in (0..).zip(views) {
            model.set_path(id, Some(view));
        }
        model
    }

    fn set_path(&mut self, id: u32, view: Option<PathView>) {
        match view {
            Some(mut view) => {
                view.id = PathId::new(id);
                self.paths.insert(id, view);
            }
            None => {
                self.paths.remove(&id);
            }
        }
    }

    fn new_data(&mut self, bytes: u64) {
        self.sent.push((self.now, bytes));
        self.policy.on_new_data(self.now, ByteCount::new(bytes));
    }

    fn put_in_flight(&mut self, path: u32, of: StreamId, offset: u64, first_frame: bool) {
        let packet = PacketNumber::new(self.packets);
        self.packets += 1;
        let priority = Priority::new((of.index() % 8) as u8, of.index().is_multiple_of(2));
        let path = PathId::new(path);
        self.ranges.push(
            OutstandingRange::new(path, packet, self.now, of, offset, LEN)
                .priority(priority)
                .first_frame(first_frame),
        );
    }

    fn take(&mut self, at: usize) -> Option<OutstandingRange> {
        let at = at.checked_rem(self.ranges.len())?;
        Some(self.ranges.remove(at))
    }

    fn step(&mut self, step: Step) {
        match step {
            Step::Wait(ms) => self.now += Duration::from_millis(ms),
            Step::Send {
                path,
                stream: nth,
                first_frame,
            } => {
                let next = self.offsets.entry(nth).or_default();
                let offset = std::mem::replace(next, *next + u64::from(LEN));
                self.new_data(u64::from(LEN));
                self.put_in_flight(path, stream(nth), offset, first_frame);
            }
            Step::Past(bytes) => self.new_data(bytes),
            Step::Acked(at) => {
                self.take(at);
            }
            Step::SentAgain { at, path } => {
                if let Some(range) = self.take(at) {
                    self.put_in_flight(path, range.stream, range.offset, range.first_frame);
                }
            }
            Step::Path(id, view) => self.set_path(id, view),
            Step::Down(id) => {
                let copies = self.ask(Occasion::PathDown(PathId::new(id)));
                self.check_in_flight(&copies);
                for copy in copies {
                    assert_eq!(copy.target, PathChoice::Not(PathId::new(id)));
                    self.copied.insert((copy.stream, copy.offset));
                }
            }
            Step::Report { play_time, stalled } => self.report(play_time, stalled),
            Step::Ask { occasion, next } => {
                let next = next
                    .map(|(of, urgency)| NextData::new(stream(of), Priority::new(urgency, false)));
                self.policy.on_next_data(self.now, next);
                let copies = self.ask(occasion);
                self.check(&copies);
                self.last = copies;
            }
            Step::Reject(count) => self.reject(count),
        }
    }

    fn report(&mut self, play_time: u64, stalled: bool) {
        let signal = QoeSignal::Player(PlayerSignal {
            stream: None,
            cached_bytes: ByteCount::ZERO,
            cached_frames: play_time,
            bitrate: Bandwidth::from_bps(0),
            fps: 1_000.0,
            stalled,
        });
        let feedback = ReceivedFeedback {
            kind: signal.kind(),
            payload: signal.encode(64).unwrap(),
            sequence: 0,
            path: PathId::ZERO,
            age: Duration::from_millis(10),
        };
        self.policy.on_feedback(self.now, &feedback);
    }

    fn ask(&mut self, occasion: Occasion) -> Vec<Reinjection> {
        let paths: Vec<_> = self.paths.values().copied().collect();
        let mut out = Vec::new();
        self.policy.reinject(
            self.now,
            occasion,
            &mut self.ranges.iter().copied(),
            &paths,
            &Hints::default(),
            &mut out,
        );
        out
    }

    /// What is asked for is in flight, as a whole.
    fn check_in_flight(&self, copies: &[Reinjection]) {
        for copy in copies {
            let is_it = |range: &&OutstandingRange| range.data_key() == (copy.stream, copy.offset);
            let range = self.ranges.iter().find(is_it).expect("it is in flight");
            assert_eq!(range.len, copy.len);
        }
    }

    fn check(&mut self, copies: &[Reinjection]) {
        self.check_in_flight(copies);
        let mut taken: BTreeMap<PathId, u64> = BTreeMap::new();
        for copy in copies {
            let datum = (copy.stream, copy.offset);
            assert!(self.copied.insert(datum), "a second copy of {datum:?}");
            let PathChoice::On(target) = copy.target else {
                panic!("a copy for {:?}", copy.target);
            };
            let of_datum = |range: &&OutstandingRange| range.data_key() == datum;
            for range in self.ranges.iter().filter(of_datum) {
                assert_ne!(range.path, target, "the path of its origin");
            }
            let path = self.paths.get(&target.get()).expect("a path that is there");
            assert!(path.is_usable() && !path.is_backup() && path.pto_count == 0);
            *taken.entry(target).or_default() += u64::from(copy.len);
            assert!(
                taken[&target] <= path.window_room().get(),
                "more than its room"
            );
            self.copies.push((self.now, datum));
        }
        if !copies.is_empty() && self.share.is_finite() {
            let is_recent = |at: Instant| at + WINDOW > self.now;
            let sent = self.sent.iter().filter(|(at, _)| is_recent(*at));
            let sent: u64 = sent.map(|(_, bytes)| bytes).sum();
            let copied = self.copies.iter().filter(|(at, _)| is_recent(*at)).count();
            let copied = copied as f64 * f64::from(LEN);
            assert!(copied <= self.share * sent as f64, "{copied} of {sent}");
        }
    }

    fn reject(&mut self, count: usize) {
        let rejected: Vec<_> = self.last.drain(..count.min(self.last.len())).collect();
        let rejections: Vec<_> = rejected
            .iter()
            .map(|&copy| Rejection::new(copy, RejectionReason::NoPath))
            .collect();
        self.policy.on_rejected(self.now, &rejections);
        for copy in rejected {
            let datum = (copy.stream, copy.offset);
            self.copied.remove(&datum);
            self.copies.retain(|(_, known)| *known != datum);
        }
    }
}

trait DataKey {
    fn data_key(&self) -> Datum;
}

impl DataKey for OutstandingRange {
    fn data_key(&self) -> Datum {
        (self.stream, self.offset)
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_024))]

    /// Copies are of data in flight, one of each datum, on another path that is there and has room, and the budget
    /// holds over the ten seconds that end with any copy, whatever happens between two questions.
    #[test]
    fn copies_are_single_on_other_paths_and_within_the_budget(
        policy in prop::sample::select(POLICIES.to_vec()),
        views in prop::collection::vec(any_view(), 1..4),
        steps in prop::collection::vec(any_step(), 1..200),
    ) {
        let mut model = Model::new(policy, views);
        for step in steps {
            model.step(step);
        }
    }
}

/// The property above would hold of a policy that does nothing.
#[test]
fn a_model_that_sends_sees_copies() {
    let mut model = Model::new(POLICIES[0], Vec::new());
    for (id, rtt) in [(0, 400), (1, 20)] {
        let view = PathView::builder(PathId::ZERO).rtt(Duration::from_millis(rtt));
        model.set_path(id, Some(view.build()));
    }
    model.step(Step::Past(100_000));
    for stream in 0..5 {
        let (path, first_frame) = (0, false);
        model.step(Step::Send {
            path,
            stream,
            first_frame,
        });
    }
    let (occasion, next) = (Occasion::SpareRoom, None);
    model.step(Step::Ask { occasion, next });
    assert_eq!(model.copies.len(), 5);
    assert_eq!(model.last.len(), 5);
}
