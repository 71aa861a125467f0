use proptest::prelude::*;

use super::bytes_at;
use crate::streams::assembler::{Assembler, TooManyGaps};

const LIMIT: u64 = 4096;

fn insert(assembler: &mut Assembler, offset: u64, len: usize) {
    assembler
        .insert(offset, &bytes_at(offset, len), LIMIT)
        .unwrap();
}

#[test]
fn bytes_behind_a_gap_wait_for_it() {
    let mut assembler = Assembler::default();
    insert(&mut assembler, 10, 5);
    assert_eq!(assembler.readable(), 0);
    assert!(!assembler.is_empty());
    insert(&mut assembler, 0, 10);
    assert_eq!(assembler.readable(), 15);
    assert_eq!(assembler.peek(), bytes_at(0, 15));
}

#[test]
fn what_was_read_is_ignored() {
    let mut assembler = Assembler::default();
    insert(&mut assembler, 0, 10);
    assembler.consume(10);
    assembler.insert(0, &[0xff; 10], LIMIT).unwrap();
    assert!(assembler.is_empty());
    // StreamHalf old, half new.
    insert(&mut assembler, 5, 10);
    assert_eq!(assembler.peek(), bytes_at(10, 5));
}

#[test]
fn consuming_more_than_there_is_stops_at_the_gap() {
    let mut assembler = Assembler::default();
    insert(&mut assembler, 0, 10);
    insert(&mut assembler, 20, 10);
    assembler.consume(100);
    assert_eq!(assembler.offset(), 10);
    assert!(!assembler.is_empty());
}

#[test]
fn the_ring_never_exceeds_what_flow_control_permits() {
    let mut assembler = Assembler::default();
    for (offset, len, limit) in [(0, 10, 100), (50, 10, 100), (99, 1, 100), (0, 100, 100)] {
        assembler
            .insert(offset, &bytes_at(offset, len), limit)
            .unwrap();
        assert!(
            assembler.capacity() as u64 <= limit,
            "{} bytes",
            assembler.capacity()
        );
    }
    assembler.release();
    assert_eq!(assembler.capacity(), 0);
}

#[test]
fn a_steady_reader_needs_no_more_memory() {
    let mut assembler = Assembler::default();
    let mut capacities = std::collections::BTreeSet::new();
    for packet in 0..1000u64 {
        let offset = packet * 1000;
        assembler
            .insert(offset, &bytes_at(offset, 1000), offset + 100_000)
            .unwrap();
        capacities.insert(assembler.capacity());
        assembler.consume(1000);
    }
    assert_eq!(capacities.len(), 1, "{capacities:?}");
}

#[test]
fn gaps_are_capped() {
    let limit = 1 << 20;
    let mut assembler = Assembler::default();
    let mut results = (0..limit / 2).map(|n| assembler.insert(2 * n + 1, &[1], limit));
    assert_eq!(
        results.position(|result| result == Err(TooManyGaps)),
        Some(1024)
    );
}

#[test]
fn alternate_packets_of_a_full_window_fit() {
    let limit = 16 << 20;
    let mut assembler = Assembler::default();
    for n in 0..limit / 1200 / 2 {
        assembler
            .insert((2 * n + 1) * 1200, &[1; 1200], limit)
            .unwrap();
    }
}

#[derive(Clone, Debug)]
enum Op {
    Insert { offset: u64, len: usize },
    Next { len: usize },
    Read { len: usize },
    Consume { len: u64 },
    Trim,
}

fn op() -> impl Strategy<Value = Op> {
    prop_oneof![
        4 => (0..4800u64, 0..600usize).prop_map(|(offset, len)| Op::Insert { offset, len }),
        2 => (1..2000usize).prop_map(|len| Op::Next { len }),
        2 => (0..300usize).prop_map(|len| Op::Read { len }),
        2 => (0..5000u64).prop_map(|len| Op::Consume { len }),
        1 => Just(Op::Trim),
    ]
}

proptest! {
    /// Against one flag per byte. Pieces overlap, repeat and come in any order; the window slides.
    #[test]
    fn agrees_with_a_map_of_bytes(ops in proptest::collection::vec(op(), 1..120)) {
        const WINDOW: u64 = 5000;
        let mut assembler = Assembler::default();
        let mut have = vec![false; 700_000];
        let mut read = 0u64;
        for op in ops {
            let contiguous = |read: u64| {
                have[read as usize..].iter().take_while(|&&have| have).count() as u64
            };
            let ready = contiguous(read);
            match op {
                Op::Insert { .. } | Op::Next { .. } => {
                    let (offset, len) = match op {
                        // Some of it may have been read.
                        Op::Insert { offset, len } => ((read + offset).saturating_sub(100), len),
                        Op::Next { len } => (read + ready, len),
                        _ => unreachable!(),
                    };
                    let limit = read + WINDOW;
                    let len = len.min(limit.saturating_sub(offset) as usize);
                    assembler.insert(offset, &bytes_at(offset, len), limit).unwrap();
                    have[offset as usize..offset as usize + len].fill(true);
                }
                Op::Read { len } => {
                    let mut buf = vec![0; len];
                    let n = assembler.read(&mut buf);
                    prop_assert_eq!(n as u64, ready.min(len as u64));
                    prop_assert_eq!(&buf[..n], &bytes_at(read, n));
                    read += n as u64;
                }
                Op::Consume { len } => {
                    let piece = assembler.peek();
                    prop_assert_eq!(piece, &bytes_at(read, piece.len()));
                    prop_assert_eq!(piece.is_empty(), ready == 0);
                    assembler.consume(len);
                    read += ready.min(len);
                }
                Op::Trim => assembler.trim(),
            }
            let ready = have[read as usize..].iter().take_while(|&&have| have).count() as u64;
            prop_assert_eq!(assembler.offset(), read);
            prop_assert_eq!(assembler.readable(), ready);
            prop_assert_eq!(assembler.is_empty(), !have[read as usize..].contains(&true));
            prop_assert!(assembler.capacity() as u64 <= WINDOW);
        }
    }
}
