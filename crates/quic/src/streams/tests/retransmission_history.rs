//! Copies of ranges on several paths: when a range is sent again.

use std::collections::BTreeMap;
use std::ops::Range;

use proptest::prelude::*;

use super::*;
use crate::idle_memory::IdleMemory;
use crate::policy::{Copied, Repair};
use crate::streams::range_history::RangeUse;
use crate::streams::retransmission_history::{RepairEvent, RetransmissionHistory};

const STREAM: StreamId = StreamId::new(Side::Client, Dir::Bi, 0);
const FAST: PathId = PathId::ZERO;
const SLOW: PathId = PathId::new(1);

fn carrier(path: PathId, number: u64) -> Carrier {
    Carrier {
        path,
        number: PacketNumber::new(number),
        sent_at: Instant::from_nanos(number),
    }
}

fn lose(
    history: &mut RetransmissionHistory,
    carrier: Carrier,
    range: Range<u64>,
    fate: Fate,
) -> Vec<Range<u64>> {
    let mut resend = Vec::new();
    let fate = CarrierFate {
        now: Instant::from_nanos(1000),
        carrier,
        fate,
        live_copies_defer_retransmission: true,
    };
    history.on_lost(&fate, STREAM, range, &mut resend);
    resend
}

fn send(
    history: &mut RetransmissionHistory,
    carrier: Carrier,
    range: Range<u64>,
    purpose: Purpose,
) {
    let usage = RangeUse {
        purpose,
        priority: Priority::default(),
        deadline: None,
    };
    history.on_sent(&carrier, STREAM, range, &usage);
}

fn recovered_by(history: &mut RetransmissionHistory) -> Vec<Copied> {
    std::iter::from_fn(|| history.poll_event())
        .filter_map(|event| match event {
            RepairEvent::Policy(Repair::Recovered { by, .. }) => Some(by),
            _ => None,
        })
        .collect()
}

#[test]
fn the_loss_of_the_newest_copy_waits_for_an_older_one_on_another_path() {
    let mut history = RetransmissionHistory::default();
    let range = 0..1000;
    assert_eq!(
        lose(&mut history, carrier(FAST, 1), range.clone(), Fate::Lost),
        vec![Range {
            start: 0,
            end: 1000
        }]
    );
    send(
        &mut history,
        carrier(SLOW, 1),
        range.clone(),
        Purpose::Retransmission,
    );
    send(
        &mut history,
        carrier(FAST, 9),
        range.clone(),
        Purpose::Replica,
    );
    // The fast path finds its loss out first.
    assert_eq!(
        lose(&mut history, carrier(FAST, 9), range.clone(), Fate::Lost),
        []
    );
    assert_eq!(
        lose(&mut history, carrier(SLOW, 1), range, Fate::Lost),
        vec![Range {
            start: 0,
            end: 1000
        }]
    );
}

#[test]
fn packets_of_one_number_on_two_paths_are_two_copies() {
    let mut history = RetransmissionHistory::default();
    let range = 0..1000;
    lose(&mut history, carrier(FAST, 1), range.clone(), Fate::Lost);
    send(
        &mut history,
        carrier(FAST, 7),
        range.clone(),
        Purpose::Retransmission,
    );
    send(
        &mut history,
        carrier(SLOW, 7),
        range.clone(),
        Purpose::Replica,
    );
    assert_eq!(
        lose(&mut history, carrier(SLOW, 7), range.clone(), Fate::Lost),
        []
    );
    history.on_acked(&carrier(FAST, 7), STREAM, range);
    assert_eq!(
        recovered_by(&mut history),
        [Copied::Retransmission(1)],
        "not the replica"
    );
    assert!(history.is_empty());
}

#[test]
fn a_replica_that_is_lost_leaves_the_first_transmission_in_flight() {
    let mut history = RetransmissionHistory::default();
    send(&mut history, carrier(FAST, 4), 0..1000, Purpose::Replica);
    assert_eq!(
        lose(&mut history, carrier(FAST, 4), 0..1000, Fate::Lost),
        []
    );
    assert_eq!(
        lose(&mut history, carrier(SLOW, 1), 0..1000, Fate::Lost),
        vec![Range {
            start: 0,
            end: 1000
        }]
    );
}

#[test]
fn a_replica_of_two_packets_leaves_two_ranges() {
    let mut history = RetransmissionHistory::default();
    send(&mut history, carrier(FAST, 4), 0..1000, Purpose::Replica);
    // The first transmissions were [0, 600) and [600, 1000) in packets 1 and 2 of the slow path.
    assert_eq!(lose(&mut history, carrier(SLOW, 1), 0..600, Fate::Lost), []);
    assert_eq!(
        lose(&mut history, carrier(FAST, 4), 0..1000, Fate::Lost),
        vec![Range { start: 0, end: 600 }]
    );
    assert_eq!(
        lose(&mut history, carrier(SLOW, 2), 600..1000, Fate::Lost),
        vec![Range {
            start: 600,
            end: 1000
        }]
    );
}

#[test]
fn what_a_probe_repeats_may_still_arrive() {
    let mut history = RetransmissionHistory::default();
    assert_eq!(
        lose(&mut history, carrier(SLOW, 1), 0..1000, Fate::Probed),
        vec![Range {
            start: 0,
            end: 1000
        }]
    );
    send(
        &mut history,
        carrier(FAST, 1),
        0..1000,
        Purpose::Retransmission,
    );
    assert_eq!(
        lose(&mut history, carrier(FAST, 1), 0..1000, Fate::Lost),
        [],
        "the first transmission is in flight"
    );
    history.on_acked(&carrier(SLOW, 1), STREAM, 0..1000);
    assert_eq!(recovered_by(&mut history), [Copied::Original]);
    history.release_idle_memory();
    assert!(history.is_empty());
}

#[derive(Clone, Debug)]
enum Op {
    /// Sends what waits, or else a replica, on a path.
    Send(bool),
    /// The nth packet in flight is lost.
    Lose(usize),
    /// A probe timeout repeats the nth packet in flight.
    Probe(usize),
}

proptest! {
    /// A range is sent again exactly when none of its copies is in flight, whichever path carried
    /// them and in whichever order their losses are found out.
    #[test]
    fn a_range_is_sent_again_when_no_copy_is_live(
        ops in proptest::collection::vec(
            prop_oneof![
                3 => any::<bool>().prop_map(Op::Send),
                3 => (0..4usize).prop_map(Op::Lose),
                1 => (0..4usize).prop_map(Op::Probe),
            ],
            1..60,
        ),
    ) {
        let range = 0..1000;
        let mut history = RetransmissionHistory::default();
        let mut next = BTreeMap::from([(FAST, 1), (SLOW, 0)]);
        let mut live = vec![carrier(FAST, 0)];
        let mut waits = false;
        for op in ops {
            match op {
                Op::Send(slow) => {
                    let path = if slow { SLOW } else { FAST };
                    let number = next.get_mut(&path).unwrap();
                    let carrier = carrier(path, *number);
                    *number += 1;
                    let purpose = if waits { Purpose::Retransmission } else { Purpose::Replica };
                    send(&mut history, carrier, range.clone(), purpose);
                    live.push(carrier);
                    waits = false;
                }
                Op::Lose(nth) if nth < live.len() => {
                    let lost = live.remove(nth);
                    let resend = lose(&mut history, lost, range.clone(), Fate::Lost);
                    let is_due = live.is_empty() && !waits;
                    prop_assert_eq!(!resend.is_empty(), is_due);
                    waits |= is_due;
                }
                Op::Probe(nth) if nth < live.len() => {
                    let resend = lose(&mut history, live[nth], range.clone(), Fate::Probed);
                    prop_assert_eq!(!resend.is_empty(), !waits);
                    waits = true;
                }
                Op::Lose(_) | Op::Probe(_) => {}
            }
        }
    }
}
