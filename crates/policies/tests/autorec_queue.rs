//! The reinjection queue against a naive model: a vector that is walked.

use proptest::prelude::*;
use swiftwater_policies::autorec::ReinjectionQueue;
use swiftwater_quic::policy::DataRange;
use swiftwater_units::{Dir, Instant, Side, StreamId};

fn data_range(stream: u64, offset: u64, len: u32) -> DataRange {
    DataRange {
        stream: StreamId::new(Side::Server, Dir::Uni, stream),
        offset,
        len,
    }
}

/// A data range of the naive queue.
#[derive(Clone, Copy, Debug)]
struct Known {
    range: DataRange,
    replicas: u32,
    requested: bool,
    /// Since when it waits, if it does.
    waits_since: Option<Instant>,
}

/// All known data, those that wait in the order of their age.
#[derive(Debug, Default)]
struct Naive(Vec<Known>);

impl Naive {
    fn head(&self) -> Option<(DataRange, Instant)> {
        let known = self.waiting().next()?;
        Some((known.range, known.waits_since?))
    }

    fn overlaps(&self, range: &DataRange) -> bool {
        self.0.iter().any(|known| {
            let known = known.range;
            known.stream == range.stream
                && known.offset < range.offset + u64::from(range.len)
                && range.offset < known.offset + u64::from(known.len)
        })
    }

    fn place(&self, range: &DataRange) -> Option<usize> {
        self.0.iter().position(|known| {
            (known.range.stream, known.range.offset) == (range.stream, range.offset)
        })
    }

    fn tail(&mut self, place: usize, now: Instant, level: u32) {
        let mut known = self.0.remove(place);
        known.requested = false;
        known.waits_since = (known.replicas < level).then_some(now);
        self.0.push(known);
    }

    fn retransmitted(&mut self, range: DataRange, now: Instant, level: u32) {
        let place = self.place(&range).unwrap_or_else(|| {
            self.0.push(Known {
                range,
                replicas: 0,
                requested: false,
                waits_since: None,
            });
            self.0.len() - 1
        });
        if !self.0[place].requested {
            self.tail(place, now, level);
        }
    }

    fn replica_sent(&mut self, range: &DataRange, now: Instant, level: u32) {
        if let Some(place) = self.place(range) {
            self.0[place].replicas += 1;
            self.tail(place, now, level);
        }
    }

    fn split(&mut self, range: &DataRange, at: u32) {
        let Some(place) = self.place(range) else {
            return;
        };
        let known = &mut self.0[place];
        let mut rest = *known;
        rest.range.len -= at;
        rest.range.offset += u64::from(at);
        known.range.len = at;
        self.0.insert(place + 1, rest);
    }

    fn remove(&mut self, range: &DataRange) {
        if let Some(place) = self.place(range) {
            self.0.remove(place);
        }
    }

    fn set_level(&mut self, level: u32) {
        for known in &mut self.0 {
            if known.replicas >= level {
                known.waits_since = None;
            }
        }
    }

    fn waiting(&self) -> impl Iterator<Item = &Known> {
        self.0.iter().filter(|known| known.waits_since.is_some())
    }

    fn take_head(&mut self) -> Option<DataRange> {
        let known = self
            .0
            .iter_mut()
            .find(|known| known.waits_since.is_some())?;
        known.waits_since = None;
        known.requested = true;
        Some(known.range)
    }
}

/// One step; data are chosen among the known ones by a number.
#[derive(Clone, Debug)]
enum Step {
    Lose { stream: u64, offset: u64 },
    Retransmit(usize),
    Take,
    Send(usize),
    Recover(usize),
    Split(usize),
    Level(u32),
    Wait(u64),
}

fn step() -> impl Strategy<Value = Step> {
    let which = 0_usize..64;
    prop_oneof![
        4 => (0_u64..3, 0_u64..20).prop_map(|(stream, slot)| Step::Lose { stream, offset: slot * 1_000 }),
        2 => which.clone().prop_map(Step::Retransmit),
        4 => Just(Step::Take),
        4 => which.clone().prop_map(Step::Send),
        2 => which.clone().prop_map(Step::Recover),
        1 => which.prop_map(Step::Split),
        1 => (0_u32..5).prop_map(Step::Level),
        3 => (0_u64..30).prop_map(Step::Wait),
    ]
}

proptest! {
    #[test]
    fn the_queue_is_the_naive_one(steps in proptest::collection::vec(step(), 1..120)) {
        let mut queue = ReinjectionQueue::new();
        let mut naive = Naive::default();
        let (mut now, mut level) = (Instant::from_millis(1), 2);
        for step in steps {
            let pick = |which: usize| {
                let count = naive.0.len();
                (count > 0).then(|| naive.0[which % count])
            };
            match step {
                Step::Lose { stream, offset } => {
                    // Data don't overlap, and this may be what is left of one that was cut.
                    let range = data_range(stream, offset, 1_000);
                    if !naive.overlaps(&range) {
                        queue.on_retransmitted(&range, now, level);
                        naive.retransmitted(range, now, level);
                    }
                }
                Step::Retransmit(which) => if let Some(known) = pick(which) {
                    queue.on_retransmitted(&known.range, now, level);
                    naive.retransmitted(known.range, now, level);
                },
                Step::Take => prop_assert_eq!(queue.take_head(), naive.take_head()),
                Step::Send(which) => if let Some(known) = pick(which) {
                    prop_assert!(queue.on_replica_sent(&known.range, now, level));
                    naive.replica_sent(&known.range, now, level);
                },
                Step::Recover(which) => if let Some(known) = pick(which) {
                    prop_assert!(queue.remove(&known.range));
                    prop_assert!(!queue.remove(&known.range));
                    naive.remove(&known.range);
                },
                Step::Split(which) => if let Some(known) = pick(which)
                    && known.range.len > 1
                {
                    let at = known.range.len / 3 + 1;
                    if at < known.range.len {
                        queue.split(&known.range, at);
                        naive.split(&known.range, at);
                    }
                },
                Step::Level(to) => {
                    level = to;
                    queue.set_level(level);
                    naive.set_level(level);
                }
                Step::Wait(ms) => now += std::time::Duration::from_millis(ms),
            }
            let waiting = naive.waiting().count();
            prop_assert_eq!((queue.len(), queue.is_empty()), (waiting, waiting == 0));
            prop_assert_eq!(queue.known(), naive.0.len());
            let requested = naive.0.iter().filter(|known| known.requested).count();
            prop_assert_eq!(queue.requested(), requested);
            prop_assert_eq!(queue.head(), naive.head());
            for known in &naive.0 {
                prop_assert_eq!(queue.replicas(&known.range), Some(known.replicas));
            }
        }
    }
}

#[test]
fn unknown_data_is_nobodys() {
    let mut queue = ReinjectionQueue::new();
    let stranger = data_range(0, 0, 100);
    assert!(!queue.on_replica_sent(&stranger, Instant::ZERO, 3));
    assert!(!queue.remove(&stranger));
    queue.split(&stranger, 50);
    assert_eq!((queue.head(), queue.known()), (None, 0));
}

#[test]
fn a_second_retransmission_does_not_renew_the_budget() {
    let mut queue = ReinjectionQueue::new();
    let lost = data_range(0, 0, 1_000);
    queue.on_retransmitted(&lost, Instant::from_millis(1), 1);
    assert_eq!(queue.take_head(), Some(lost));
    queue.on_replica_sent(&lost, Instant::from_millis(2), 1);
    assert!(queue.is_empty());
    queue.on_retransmitted(&lost, Instant::from_millis(90), 1);
    assert!(queue.is_empty(), "its replica is gone");
    queue.on_retransmitted(&lost, Instant::from_millis(180), 2);
    assert_eq!(
        queue.head(),
        Some((lost, Instant::from_millis(180))),
        "a higher level grants one more"
    );
}
