//! The order of sending, across urgencies.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;
use crate::streams::stream_scheduler::{
    Permitted, QueueMembership, ScheduledStream, StreamScheduler, Transmission,
};

const SHARE: u32 = 16;

fn rank(urgency: u8, incremental: bool) -> u8 {
    Priority::new(urgency, incremental).rank()
}

fn set(turns: &mut StreamScheduler, key: u32, rank: u8, repair: bool, fresh: bool) {
    turns.set(
        key,
        StreamId::from_wire(u64::from(key)),
        rank,
        QueueMembership {
            retransmissions: repair,
            new_data: fresh,
        },
    );
}

fn next(turns: &StreamScheduler, credit: bool) -> Option<ScheduledStream> {
    turns.next(Permitted {
        new_data: credit,
        ..Permitted::ALL
    })
}

/// What each stream got of `total` bytes in frames of `frame` bytes.
fn shares(turns: &mut StreamScheduler, total: u64, frame: u64) -> BTreeMap<u32, u64> {
    let mut shares = BTreeMap::new();
    let mut sent = 0;
    while sent < total
        && let Some(turn) = next(turns, true)
    {
        turns.spend(turn, frame);
        *shares.entry(turn.key).or_default() += frame;
        sent += frame;
    }
    shares
}

#[test]
fn no_stream_starves_beside_endless_urgent_ones() {
    let mut turns = StreamScheduler::new(SHARE);
    for key in 0..8 {
        set(&mut turns, key, rank(key as u8, key % 2 == 0), false, true);
    }
    let shares = shares(&mut turns, 10_000_000, 1100);
    let least = 10_000_000 / u64::from(SHARE) / 7;
    for key in 1..8 {
        let got = shares[&key];
        assert!(got * 10 >= least * 9, "{key}: {got} of {least}");
    }
    assert!(shares[&0] >= 9_300_000, "{shares:?}");
}

#[test]
fn a_share_below_two_keeps_strictly_to_urgency() {
    for share in [0, 1] {
        let mut turns = StreamScheduler::new(share);
        set(&mut turns, 0, rank(2, true), false, true);
        set(&mut turns, 1, rank(1, true), false, true);
        assert_eq!(shares(&mut turns, 1_000_000, 1000).len(), 1);
    }
}

#[test]
fn relief_costs_nothing_among_equals() {
    let mut turns = StreamScheduler::new(SHARE);
    for key in 0..5 {
        set(&mut turns, key, rank(3, true), false, true);
    }
    let shares = shares(&mut turns, 5_000_000, 1000);
    let (least, most) = (shares.values().min(), shares.values().max());
    assert!(most.unwrap() - least.unwrap() <= 2 * 1024, "{shares:?}");
}

#[test]
fn relieved_streams_keep_their_own_order() {
    // Of two files that wait behind something endless, the first is whole before the second begins.
    let mut turns = StreamScheduler::new(SHARE);
    set(&mut turns, 0, rank(0, true), false, true);
    set(&mut turns, 1, rank(5, false), false, true);
    set(&mut turns, 2, rank(5, false), false, true);
    let shares = shares(&mut turns, 1_000_000, 1000);
    assert!(shares[&1] > 50_000);
    assert!(!shares.contains_key(&2));
}

#[test]
fn an_endless_sequence_leaves_a_share_to_incremental_equals() {
    let mut turns = StreamScheduler::new(SHARE);
    set(&mut turns, 0, rank(3, false), false, true);
    set(&mut turns, 1, rank(3, true), false, true);
    let shares = shares(&mut turns, 1_600_000, 1024);
    assert!((90_000..110_000).contains(&shares[&1]), "{shares:?}");
}

#[test]
fn repairs_go_first_within_an_urgency_whatever_their_kind() {
    let mut turns = StreamScheduler::new(0);
    set(&mut turns, 0, rank(3, false), false, true);
    set(&mut turns, 1, rank(3, true), true, true);
    let chosen = next(&turns, true).unwrap();
    assert_eq!(
        (chosen.transmission, chosen.key),
        (Transmission::Retransmission, 1)
    );
    // But not across urgencies.
    set(&mut turns, 2, rank(2, true), false, true);
    let chosen = next(&turns, true).unwrap();
    assert_eq!((chosen.transmission, chosen.key), (Transmission::New, 2));
    // Without credit only repairs are left, then nothing.
    let chosen = next(&turns, false).unwrap();
    assert_eq!(
        (chosen.transmission, chosen.key),
        (Transmission::Retransmission, 1)
    );
    set(&mut turns, 1, rank(3, true), false, true);
    assert_eq!(next(&turns, false), None);
    assert!(turns.has_new_data());
}

#[test]
fn retransmissions_can_be_passed_over() {
    let mut turns = StreamScheduler::new(0);
    set(&mut turns, 0, rank(3, true), true, false);
    assert_eq!(turns.next(Permitted::NEW_DATA), None);
    set(&mut turns, 1, rank(5, true), false, true);
    let chosen = turns.next(Permitted::NEW_DATA).unwrap();
    assert_eq!((chosen.transmission, chosen.key), (Transmission::New, 1));
    assert_eq!(chosen.urgency(), 5);
}

#[derive(Clone, Debug)]
enum Op {
    Set(u32, u8, bool, bool),
    Forget(u32),
    Spend(bool, u64),
}

proptest! {
    /// Against a search through all streams: the chosen stream has something to send, is of the best urgency unless
    /// it is a relief, and reliefs are no more and no fewer than the share says.
    #[test]
    fn agrees_with_a_search(
        ops in proptest::collection::vec(
            prop_oneof![
                2 => (0..10u32, 0..16u8, any::<bool>(), any::<bool>())
                    .prop_map(|(key, rank, repair, fresh)| Op::Set(key, rank, repair, fresh)),
                1 => (0..10u32).prop_map(Op::Forget),
                8 => (any::<bool>(), 1..1400u64).prop_map(|(credit, bytes)| Op::Spend(credit, bytes)),
            ],
            1..300,
        ),
    ) {
        const SHARE: u32 = 4;
        let mut turns = StreamScheduler::new(SHARE);
        let mut model: BTreeMap<u32, (u8, bool, bool)> = BTreeMap::new();
        let (mut by_urgency, mut relieved) = (0, 0);
        for op in ops {
            match op {
                Op::Set(key, rank, repair, fresh) => {
                    set(&mut turns, key, rank, repair, fresh);
                    model.insert(key, (rank, repair, fresh));
                }
                Op::Forget(key) => {
                    turns.discard(key);
                    model.remove(&key);
                }
                Op::Spend(credit, bytes) => {
                    let repairs = model.values().filter(|stream| stream.1);
                    let fresh = model.values().filter(|stream| credit && stream.2);
                    let best_repair = repairs.map(|stream| stream.0 / 2).min();
                    let best_fresh = fresh.map(|stream| stream.0 / 2).min();
                    let best = best_repair.into_iter().chain(best_fresh).min();
                    let Some(turn) = next(&turns, credit) else {
                        prop_assert_eq!(best, None);
                        continue;
                    };
                    let best = best.unwrap();
                    let (rank, repair, fresh) = model[&turn.key];
                    let has_something = match turn.transmission {
                        Transmission::Retransmission => repair,
                        Transmission::New => fresh && credit,
                    };
                    prop_assert!(has_something);
                    if rank / 2 == best {
                        by_urgency += bytes;
                    } else {
                        relieved += bytes;
                        // At most a quantum, and a frame more, for every three by urgency.
                        prop_assert!(relieved <= (by_urgency / (3 * 1024) + 1) * (1024 + 1400));
                    }
                    turns.spend(turn, bytes);
                }
            }
        }
    }
}
