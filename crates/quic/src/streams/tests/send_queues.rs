use std::collections::{BTreeMap, BTreeSet, VecDeque};

use proptest::prelude::*;
use swiftwater_units::StreamId;

use crate::streams::Priority;
use crate::streams::send_queues::SendQueues;

/// The rank of streams without a priority.
const RANK: u8 = Priority::new(3, true).rank();
const SEQUENTIAL: u8 = Priority::new(3, false).rank();

fn id(key: u32) -> StreamId {
    // Identifiers fall as keys rise, so that neither stands for the other.
    StreamId::from_wire(1000 - u64::from(key))
}

fn ready(keys: &[u32], rank: u8) -> SendQueues {
    let mut ready = SendQueues::default();
    for &key in keys {
        ready.insert(key, id(key), rank);
    }
    ready
}

/// The next `n` turns of `rank`, each of which sends `bytes`.
fn turns(ready: &mut SendQueues, rank: u8, n: usize, bytes: u64) -> Vec<u32> {
    let mut keys = Vec::new();
    for _ in 0..n {
        let key = ready.first_of(rank).unwrap();
        keys.push(key);
        ready.spend(key, bytes);
    }
    keys
}

#[test]
fn incremental_streams_take_turns_by_the_packet() {
    let mut ready = ready(&[7, 3, 5], RANK);
    assert_eq!(turns(&mut ready, RANK, 7, 1200), [7, 3, 5, 7, 3, 5, 7]);
}

#[test]
fn a_short_frame_leaves_the_rest_of_the_turn() {
    let mut ready = ready(&[0, 1], RANK);
    ready.spend(0, 10);
    assert_eq!(ready.first_of(RANK), Some(0));
    ready.spend(0, 1200);
    assert_eq!(ready.first_of(RANK), Some(1));
}

#[test]
fn bare_fins_cannot_keep_a_turn_for_ever() {
    let mut ready = ready(&[0, 1], RANK);
    assert!(turns(&mut ready, RANK, 2000, 0).contains(&1));
}

#[test]
fn other_streams_go_one_after_another_by_identifier() {
    let mut ready = ready(&[0, 1, 2], SEQUENTIAL);
    assert_eq!(turns(&mut ready, SEQUENTIAL, 3, 1200), [2, 2, 2]);
    ready.remove(2);
    assert_eq!(turns(&mut ready, SEQUENTIAL, 2, 1200), [1, 1]);
}

#[test]
fn ranks_follow_urgency_and_then_what_must_be_whole() {
    let mut all: Vec<Priority> = (0..=Priority::MAX_URGENCY)
        .flat_map(|urgency| {
            [true, false].map(|incremental| Priority {
                urgency,
                incremental,
            })
        })
        .collect();
    all.sort();
    assert!(all.is_sorted_by_key(|priority| priority.rank()));
    assert_eq!(all[0].rank(), 0);
    assert_eq!(Priority::new(200, true).rank(), 15);
}

/// The contents that the ready list should have, by searching.
#[derive(Default)]
struct Model {
    turns: BTreeMap<u8, VecDeque<u32>>,
    sequences: BTreeMap<u8, BTreeSet<(StreamId, u32)>>,
}

impl Model {
    fn insert(&mut self, key: u32, rank: u8) {
        let there = self
            .turns
            .get(&rank)
            .is_some_and(|queue| queue.contains(&key));
        if there {
            return;
        }
        self.remove(key);
        if rank % 2 == 1 {
            self.turns.entry(rank).or_default().push_back(key);
        } else {
            self.sequences
                .entry(rank)
                .or_default()
                .insert((id(key), key));
        }
    }

    fn remove(&mut self, key: u32) {
        for queue in self.turns.values_mut() {
            queue.retain(|&other| other != key);
        }
        for set in self.sequences.values_mut() {
            set.remove(&(id(key), key));
        }
    }

    fn first_of(&self, rank: u8) -> Option<u32> {
        let turn = self.turns.get(&rank).and_then(|queue| queue.front());
        let next = self.sequences.get(&rank).and_then(|set| set.first());
        turn.copied().or(next.map(|(_, key)| *key))
    }
}

#[derive(Clone, Debug)]
enum Op {
    Insert(u32, u8),
    Remove(u32),
    Spend(u8, u64),
}

proptest! {
    #[test]
    fn agrees_with_a_naive_list(
        ops in proptest::collection::vec(
            prop_oneof![
                (0..12u32, 0..4u8).prop_map(|(key, rank)| Op::Insert(key, rank)),
                (0..12u32).prop_map(Op::Remove),
                (0..4u8, 500..2000u64).prop_map(|(rank, bytes)| Op::Spend(rank, bytes)),
            ],
            1..200,
        ),
    ) {
        let mut ready = SendQueues::default();
        let mut model = Model::default();
        for op in ops {
            match op {
                Op::Insert(key, rank) => {
                    ready.insert(key, id(key), rank);
                    model.insert(key, rank);
                }
                Op::Remove(key) => {
                    ready.remove(key);
                    model.remove(key);
                }
                Op::Spend(rank, bytes) => {
                    if let Some(key) = ready.first_of(rank) {
                        ready.spend(key, bytes);
                        // The model doesn't follow what is left of a turn.
                        if ready.first_of(rank) != Some(key) {
                            model.turns.get_mut(&rank).unwrap().rotate_left(1);
                        }
                    }
                }
            }
            let firsts: Vec<_> = (0..16).map(|rank| ready.first_of(rank)).collect();
            let expected: Vec<_> = (0..16).map(|rank| model.first_of(rank)).collect();
            prop_assert_eq!(&firsts, &expected);
            let some = (0..16).filter(|rank| firsts[*rank].is_some());
            prop_assert_eq!(ready.ranks(), some.fold(0, |bits, rank| bits | 1 << rank));
            prop_assert_eq!(ready.is_empty(), ready.ranks() == 0);
        }
    }
}
