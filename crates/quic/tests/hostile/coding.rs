//! Bytes of frames, well formed or not.

#![allow(
    clippy::unwrap_used,
    dead_code,
    reason = "each user takes a part; a failed unwrap is a failed test"
)]

use std::ops::RangeInclusive;

use swiftwater_quic::wire::frame::{self, Ack};
use swiftwater_quic::wire::{ConnectionId, Frame, MultipathVersion, Writer};

/// True if `ack` acknowledges `number`.
pub(crate) fn acknowledges(ack: &Ack<'_>, number: u64) -> bool {
    ack.ranges().any(|range| range.contains(&number))
}

/// A connection ID with these bytes.
pub(crate) fn cid(bytes: &[u8]) -> ConnectionId {
    ConnectionId::new(bytes).unwrap()
}

/// The shortest encoding of `n`.
pub(crate) fn varint(n: u64) -> Vec<u8> {
    let mut buf = [0; 8];
    let mut w = Writer::new(&mut buf);
    w.varint(n);
    let len = w.written();
    buf[..len].to_vec()
}

/// Several varints one after another.
pub(crate) fn varints(values: &[u64]) -> Vec<u8> {
    values.iter().flat_map(|&n| varint(n)).collect()
}

/// The bytes of frames.
pub(crate) fn encode(frames: &[Frame<'_>]) -> Vec<u8> {
    let mut out = vec![0; frames.iter().map(Frame::size).sum()];
    let mut w = Writer::new(&mut out);
    for frame in frames {
        frame.encode(&mut w);
    }
    out
}

/// Packet numbers as the ranges of an ACK frame, largest first.
pub(crate) fn ranges(mut numbers: Vec<u64>) -> Vec<RangeInclusive<u64>> {
    numbers.sort_unstable();
    numbers.dedup();
    let mut ranges: Vec<RangeInclusive<u64>> = Vec::new();
    for number in numbers {
        match ranges.last_mut() {
            Some(last) if *last.end() + 1 == number => *last = *last.start()..=number,
            _ => ranges.push(number..=number),
        }
    }
    ranges.reverse();
    ranges
}

/// The bytes of an ACK frame with `ranges`, largest first.
pub(crate) fn ack(ranges: &[std::ops::RangeInclusive<u64>], ecn: Option<[u64; 3]>) -> Vec<u8> {
    let mut out = vec![0; 64 + 16 * ranges.len()];
    let mut w = Writer::new(&mut out);
    let room = w.remaining();
    frame::write_ack(
        &mut w,
        (MultipathVersion::default(), None),
        ranges.iter().cloned(),
        0,
        ecn,
        room,
    )
    .unwrap();
    let len = w.written();
    out.truncate(len);
    out
}
