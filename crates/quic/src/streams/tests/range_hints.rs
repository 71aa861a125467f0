//! Hints about ranges.

use proptest::prelude::*;

use super::*;
use crate::idle_memory::IdleMemory;
use crate::streams::RangeHints;

fn millis(millis: u64) -> Instant {
    Instant::from_nanos(millis * 1_000_000)
}

/// A client that has written 2,000 bytes to a stream.
fn writer() -> (Streams, StreamId) {
    let large = ByteCount::new(1 << 20);
    let mut streams = client_with(&TransportConfig {
        stream_receive_window: large,
        receive_window: large,
        ..config()
    });
    let id = streams.open(Dir::Bi).unwrap();
    streams.write(id, &bytes_at(0, 2000)).unwrap();
    (streams, id)
}

#[test]
fn ranges_without_hints_have_those_of_their_stream() {
    let (mut streams, id) = writer();
    let urgent = Priority::new(1, false);
    streams.set_priority(id, urgent).unwrap();
    streams.set_deadline(id, Some(millis(5))).unwrap();
    let of_stream = RangeHints::default()
        .with_priority(urgent)
        .with_deadline(millis(5));
    assert_eq!(streams.hints_of(id, 0..2000), of_stream);
    let first = RangeHints::default().as_first_frame();
    streams.set_range_hints(id, 100..200, first).unwrap();
    assert_eq!(streams.hints_of(id, 0..100), of_stream);
    assert_eq!(streams.hints_of(id, 199..300), of_stream.as_first_frame());
    assert_eq!(streams.hints_of(id, 200..300), of_stream);
}

#[test]
fn a_range_of_several_has_the_most_urgent_of_each() {
    let (mut streams, id) = writer();
    let late = RangeHints::default()
        .with_priority(Priority::new(0, true))
        .with_deadline(millis(9));
    let soon = RangeHints::default()
        .with_priority(Priority::new(5, true))
        .with_deadline(millis(3));
    streams.set_range_hints(id, 0..500, late).unwrap();
    streams.set_range_hints(id, 500..900, soon).unwrap();
    assert_eq!(
        streams.hints_of(id, 400..600),
        late.with_deadline(millis(3))
    );
    assert_eq!(streams.hints_of(id, 600..700), soon);
}

#[test]
fn bytes_written_with_hints_have_them() {
    let (mut streams, id) = writer();
    let hints = RangeHints::default().with_deadline(millis(7));
    assert_eq!(streams.write_with(id, &bytes_at(2000, 300), hints), Ok(300));
    assert_eq!(streams.hints_of(id, 1999..2000).deadline, None);
    assert_eq!(streams.hints_of(id, 2299..2400).deadline, Some(millis(7)));
    assert_eq!(streams.hints_of(id, 2300..2400).deadline, None);
}

#[test]
fn delivered_ranges_are_discarded() {
    let (mut streams, id) = writer();
    let hints = RangeHints::default().with_deadline(millis(7));
    streams.set_range_hints(id, 0..1000, hints).unwrap();
    send_all(&mut streams);
    streams.on_frame_fate(&fate_of_carrier(Fate::Acked), id, 0..1000, false);
    assert_eq!(streams.hints_of(id, 0..1000).deadline, None);
    streams.release_idle_memory();
    let (_, stream) = streams.stream(id).unwrap();
    assert!(stream.send.as_ref().unwrap().range_hints.get().is_none());
}

#[test]
fn retransmissions_show_the_hints_of_their_range() {
    use crate::policy::Repair;
    use crate::streams::RepairEvent;

    let (mut streams, id) = writer();
    let hints = RangeHints::default()
        .with_priority(Priority::new(0, false))
        .with_deadline(millis(7));
    streams.set_range_hints(id, 0..100, hints).unwrap();
    let first = packet(&mut streams, 1200).0;
    fate(&mut streams, &first, Fate::Lost);
    packet(&mut streams, 1200);
    let shown = std::iter::from_fn(|| streams.poll_repair()).find_map(|event| match event {
        RepairEvent::Policy(Repair::Retransmitted {
            priority, deadline, ..
        }) => Some((priority, deadline)),
        _ => None,
    });
    assert_eq!(shown, Some((Priority::new(0, false), Some(millis(7)))));
}

proptest! {
    /// Against hints for every byte.
    #[test]
    fn agrees_with_hints_by_byte(
        ops in proptest::collection::vec((0..60u64, 0..20u64, 0..4u64), 1..40),
        asked in (0..60u64, 1..20u64),
    ) {
        let (mut streams, id) = writer();
        let mut by_byte = vec![None; 80];
        for (start, len, deadline) in ops {
            let deadline = (deadline > 0).then(|| millis(deadline));
            let hints = RangeHints { deadline, ..RangeHints::default() };
            streams.set_range_hints(id, start..start + len, hints).unwrap();
            by_byte[start as usize..(start + len) as usize].fill(deadline);
        }
        let (start, end) = (asked.0, asked.0 + asked.1);
        let expected = by_byte[start as usize..end as usize].iter().flatten().min();
        prop_assert_eq!(streams.hints_of(id, start..end).deadline, expected.copied());
    }
}
