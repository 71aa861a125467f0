use std::collections::{BTreeMap, VecDeque};

use proptest::prelude::*;

use crate::streams::ready::Ready;

/// The next `n` turns, each of which sends `bytes`.
fn turns(ready: &mut Ready, n: usize, bytes: u64) -> Vec<u32> {
    let mut keys = Vec::new();
    for _ in 0..n {
        let (key, _) = ready.first().unwrap();
        keys.push(key);
        ready.spend(key, bytes);
    }
    keys
}

#[test]
fn equals_take_turns_by_the_packet() {
    let mut ready = Ready::default();
    for key in [7, 3, 5] {
        ready.insert(key, 0);
    }
    assert_eq!(turns(&mut ready, 7, 1200), [7, 3, 5, 7, 3, 5, 7]);
}

#[test]
fn a_short_frame_leaves_the_rest_of_the_turn() {
    let mut ready = Ready::default();
    ready.insert(0, 0);
    ready.insert(1, 0);
    ready.spend(0, 10);
    assert_eq!(ready.first(), Some((0, 0)));
    ready.spend(0, 1200);
    assert_eq!(ready.first(), Some((1, 0)));
}

#[test]
fn bare_fins_cannot_keep_a_turn_for_ever() {
    let mut ready = Ready::default();
    ready.insert(0, 0);
    ready.insert(1, 0);
    assert!(turns(&mut ready, 2000, 0).contains(&1));
}

#[test]
fn higher_priority_goes_first() {
    let mut ready = Ready::default();
    ready.insert(0, 0);
    ready.insert(1, i32::MIN);
    ready.insert(2, 5);
    ready.insert(3, i32::MAX);
    let mut order = Vec::new();
    while let Some((key, _)) = ready.first() {
        order.push(key);
        ready.remove(key);
    }
    assert_eq!(order, [3, 2, 0, 1]);
    assert!(ready.is_empty());
}

fn forget(model: &mut BTreeMap<i32, VecDeque<u32>>, key: u32) {
    for queue in model.values_mut() {
        queue.retain(|&other| other != key);
    }
}

#[derive(Clone, Debug)]
enum Op {
    Insert(u32, i32),
    Remove(u32),
    Spend(u64),
}

proptest! {
    #[test]
    fn agrees_with_a_map_of_queues(
        ops in proptest::collection::vec(
            prop_oneof![
                (0..12u32, -1..2i32).prop_map(|(key, priority)| Op::Insert(key, priority)),
                (0..12u32).prop_map(Op::Remove),
                (500..2000u64).prop_map(Op::Spend),
            ],
            1..200,
        ),
    ) {
        let mut ready = Ready::default();
        let mut model: BTreeMap<i32, VecDeque<u32>> = BTreeMap::new();
        for op in ops {
            match op {
                Op::Insert(key, priority) => {
                    ready.insert(key, priority);
                    if !model.get(&priority).is_some_and(|queue| queue.contains(&key)) {
                        forget(&mut model, key);
                        model.entry(priority).or_default().push_back(key);
                    }
                }
                Op::Remove(key) => {
                    ready.remove(key);
                    forget(&mut model, key);
                }
                Op::Spend(bytes) => {
                    if let Some((key, priority)) = ready.first() {
                        ready.spend(key, bytes);
                        // The model doesn't follow what is left of a turn.
                        if ready.first() != Some((key, priority)) {
                            model.get_mut(&priority).unwrap().rotate_left(1);
                        }
                    }
                }
            }
            model.retain(|_, queue| !queue.is_empty());
            let first = model.last_key_value().map(|(&priority, queue)| (queue[0], priority));
            prop_assert_eq!(ready.first(), first);
        }
    }
}
