//! Acknowledgement frames: ranges, their limits and what is left out when room ends.

#![allow(
    clippy::unwrap_used,
    reason = "a helper that fails is a test that fails"
)]

use std::collections::BTreeSet;
use std::ops::RangeInclusive;

use proptest::prelude::*;
use swiftwater_units::PathId;
use swiftwater_wire::frame::{Ack, FrameIter, types, write_ack};
use swiftwater_wire::{DecodeError, ErrorCode, Frame, MultipathVersion, Writer};

type Ranges = Vec<RangeInclusive<u64>>;

const ROOM: usize = 4096;
const VERSION: MultipathVersion = MultipathVersion::Rfc10069;

/// The frame's bytes and the number of ranges written.
fn write(
    path: Option<PathId>,
    ranges: &[RangeInclusive<u64>],
    delay: u64,
    ecn: Option<[u64; 3]>,
    max_size: usize,
) -> Option<(Vec<u8>, u64)> {
    let mut buf = vec![0xee; ROOM];
    let mut w = Writer::new(&mut buf);
    let count = write_ack(
        &mut w,
        (VERSION, path),
        ranges.iter().cloned(),
        delay,
        ecn,
        max_size,
    );
    let written = w.written();
    buf.truncate(written);
    if count.is_none() {
        assert_eq!(written, 0, "nothing is written when nothing fits");
    }
    count.map(|count| (buf, count))
}

fn read(bytes: &[u8]) -> (u64, Ack<'_>) {
    let mut frames = FrameIter::new(bytes);
    let Some(Ok((frame_type, Frame::Ack(ack)))) = frames.next() else {
        panic!("not an acknowledgement: {bytes:02x?}");
    };
    assert!(frames.next().is_none(), "bytes are left over");
    (frame_type, ack)
}

fn error(bytes: &[u8]) -> DecodeError {
    FrameIter::new(bytes).next().unwrap().unwrap_err().error
}

#[test]
fn single_packet() {
    let (bytes, count) = write(None, &[7..=7], 3, None, ROOM).unwrap();
    assert_eq!(bytes, [0x02, 7, 3, 0, 0]);
    assert_eq!(count, 1);
}

#[test]
fn gaps_and_lengths_are_coded_one_less() {
    // 10 to 12, 8, 0 to 5: one packet is missing, then two.
    let (bytes, count) = write(None, &[10..=12, 8..=8, 0..=5], 0, None, ROOM).unwrap();
    assert_eq!(bytes, [0x02, 12, 0, 2, 2, 0, 0, 1, 5]);
    assert_eq!(count, 3);
    let (_, ack) = read(&bytes);
    assert_eq!(ack.ranges().collect::<Ranges>(), [10..=12, 8..=8, 0..=5]);
}

#[test]
fn ecn_counts_and_path_select_the_type() {
    let ecn = Some([1, 2, 3]);
    let path = Some(PathId::new(9));
    for (path, ecn, frame_type) in [
        (None, None, types::ACK),
        (None, ecn, types::ACK_ECN),
        (path, None, types::PATH_ACK),
        (path, ecn, types::PATH_ACK_ECN),
    ] {
        let (bytes, _) = write(path, &[4..=5], 1, ecn, ROOM).unwrap();
        let (received_type, ack) = read(&bytes);
        assert_eq!(received_type, frame_type);
        assert_eq!(
            (ack.path, ack.ecn, ack.largest, ack.delay),
            (path, ecn, 5, 1)
        );
    }
}

#[test]
fn path_zero_is_a_path() {
    let (bytes, _) = write(Some(PathId::ZERO), &[4..=4], 0, None, ROOM).unwrap();
    assert_eq!(bytes, [0x3e, 0, 4, 0, 0, 0]);
}

#[test]
fn oldest_ranges_are_dropped_when_room_ends() {
    let ranges: Ranges = (0..50).rev().map(|i| i * 10..=i * 10 + 1).collect();
    let (whole, count) = write(None, &ranges, 0, None, ROOM).unwrap();
    assert_eq!(count, 50);
    let (cut, count) = write(None, &ranges, 0, None, 20).unwrap();
    // 6 bytes for the fixed part (the largest takes two) and 2 for each further range.
    assert_eq!((cut.len(), count), (20, 8));
    assert!(cut.len() < whole.len());
    assert_eq!(read(&cut).1.ranges().collect::<Ranges>(), ranges[..8]);
}

#[test]
fn a_larger_count_may_cost_the_last_range() {
    // With 64 further ranges the count itself needs a second byte.
    let ranges: Ranges = (0..100).rev().map(|i| i * 2..=i * 2).collect();
    let fixed = 1 + 2 + 1 + 1;
    let (bytes, count) = write(None, &ranges, 0, None, fixed + 1 + 2 * 64).unwrap();
    assert_eq!((bytes.len(), count), (fixed + 1 + 2 * 63, 64));
    let (bytes, count) = write(None, &ranges, 0, None, fixed + 2 + 2 * 64).unwrap();
    assert_eq!((bytes.len(), count), (fixed + 2 + 2 * 64, 65));
}

#[test]
fn nothing_is_written_if_the_first_range_does_not_fit() {
    assert!(write(None, &[7..=7], 3, None, 4).is_none());
    assert!(write(None, &[7..=7], 3, None, 5).is_some());
    assert!(write(None, &[7..=7], 3, None, 0).is_none());
    assert!(write(None, &[], 3, None, ROOM).is_none());
}

#[test]
fn the_writers_room_counts_too() {
    let mut buf = [0; 8];
    let mut w = Writer::new(&mut buf);
    w.u8(0x01);
    let ranges = [30..=30, 20..=20, 10..=10];
    assert_eq!(
        write_ack(
            &mut w,
            (VERSION, None),
            ranges.iter().cloned(),
            0,
            None,
            ROOM
        ),
        Some(2)
    );
    assert_eq!(w.written(), 8);
}

#[test]
fn values_beyond_62_bits_are_capped() {
    let max = (1 << 62) - 1;
    let (bytes, _) = write(None, &[0..=max], u64::MAX, Some([u64::MAX; 3]), ROOM).unwrap();
    let (_, ack) = read(&bytes);
    assert_eq!((ack.delay, ack.ecn), (max, Some([max; 3])));
    assert_eq!(ack.ranges().collect::<Ranges>(), [0..=max]);
}

#[test]
fn ranges_below_zero_are_refused() {
    let refused: [&[u8]; 4] = [
        &[0x02, 4, 0, 0, 5],       // the first range
        &[0x02, 4, 0, 1, 4, 0, 0], // the gap: nothing is below 0
        &[0x02, 4, 0, 1, 3, 0, 0], // the gap: 1 - 0 - 2
        &[0x02, 9, 0, 1, 0, 2, 6], // the second range: 9 - 2 - 2 - 6
    ];
    for bytes in refused {
        assert!(matches!(error(bytes), DecodeError::Invalid(_)), "{bytes:?}");
        assert_eq!(error(bytes).error_code(), ErrorCode::FRAME_ENCODING_ERROR);
    }
    let (_, ack) = read(&[0x02, 9, 0, 1, 0, 2, 5]);
    assert_eq!(ack.ranges().collect::<Ranges>(), [9..=9, 0..=5]);
}

#[test]
fn largest_gap_and_length_do_not_overflow() {
    let mut bytes = vec![0x02, 9, 0, 1, 0];
    bytes.extend([0xff; 16]);
    assert!(matches!(error(&bytes), DecodeError::Invalid(_)));
}

#[test]
fn a_range_count_that_the_bytes_cannot_hold_is_refused() {
    let mut bytes = vec![0x02, 0x80, 0xff, 0xff, 0xff, 0];
    bytes.extend([0xff; 8]);
    bytes.push(0);
    bytes.extend([0; 100]);
    assert_eq!(error(&bytes), DecodeError::UnexpectedEnd);
    assert_eq!(error(&[0x02, 9, 0, 1, 0, 2]), DecodeError::UnexpectedEnd);
}

#[test]
fn missing_ecn_counts_are_an_error() {
    assert_eq!(error(&[0x03, 9, 0, 0, 0, 1, 2]), DecodeError::UnexpectedEnd);
}

/// Descending ranges with at least one number between them, from small to huge.
fn ranges() -> impl Strategy<Value = Ranges> {
    let magnitude = || (0_u64..1 << 40, 0..40_u32).prop_map(|(n, shift)| n >> shift);
    let steps = prop::collection::vec((magnitude(), magnitude()), 1..80);
    (steps, 0_u64..1 << 20).prop_map(|(steps, mut smallest)| {
        let mut ranges = Ranges::new();
        for (gap, length) in steps {
            ranges.push(smallest..=smallest + length);
            smallest += length + 2 + gap;
        }
        ranges.reverse();
        ranges
    })
}

fn naive_ranges(set: &BTreeSet<u64>) -> Ranges {
    let mut ranges = Ranges::new();
    for &n in set.iter().rev() {
        match ranges.last_mut() {
            Some(last) if *last.start() == n + 1 => *last = n..=*last.end(),
            _ => ranges.push(n..=n),
        }
    }
    ranges
}

proptest! {
    #[test]
    fn a_set_of_packets_survives(set in prop::collection::btree_set(0_u64..300, 1..200)) {
        let (bytes, _) = write(None, &naive_ranges(&set), 0, None, ROOM).unwrap();
        let received: BTreeSet<u64> = read(&bytes).1.ranges().flatten().collect();
        prop_assert_eq!(received, set);
    }

    #[test]
    fn as_many_ranges_as_fit_and_no_more(
        ranges in ranges(),
        delay in 0_u64..1 << 20,
        ecn in prop::option::of(any::<[u32; 3]>().prop_map(|counts| counts.map(u64::from))),
        path in prop::option::of(any::<u32>().prop_map(PathId::new)),
        max_size in 0_usize..400,
    ) {
        let kept = match write(path, &ranges, delay, ecn, max_size) {
            Some((bytes, count)) => {
                prop_assert!(bytes.len() <= max_size);
                let (_, ack) = read(&bytes);
                prop_assert_eq!(ack.ranges().collect::<Ranges>(), &ranges[..count as usize]);
                prop_assert_eq!((ack.delay, ack.ecn, ack.path), (delay, ecn, path));
                count as usize
            }
            None => 0,
        };
        if kept < ranges.len() {
            let (one_more, _) = write(path, &ranges[..=kept], delay, ecn, ROOM).unwrap();
            prop_assert!(one_more.len() > max_size);
        }
    }

    #[test]
    fn a_frame_that_was_read_is_written_alike(ranges in ranges(), delay in 0_u64..1 << 20) {
        let (bytes, _) = write(None, &ranges, delay, Some([1, 2, 3]), ROOM).unwrap();
        let (_, ack) = read(&bytes);
        let frame = Frame::Ack(ack);
        let mut buf = vec![0; frame.size()];
        let mut w = Writer::new(&mut buf);
        frame.encode(&mut w);
        prop_assert_eq!(w.remaining(), 0);
        prop_assert_eq!(buf, bytes);
    }

    #[test]
    fn every_prefix_is_an_error(ranges in ranges(), path in prop::option::of(Just(PathId::new(300)))) {
        let (bytes, _) = write(path, &ranges, 1, Some([70, 2, 3]), ROOM).unwrap();
        for end in 1..bytes.len() {
            prop_assert_eq!(error(&bytes[..end]), DecodeError::UnexpectedEnd);
        }
    }
}
