//! Streams and datagrams that the application assigns to a path.

use std::collections::BTreeMap;
use std::time::Duration;

use swiftwater_quic::Event;
use swiftwater_quic::{DatagramOptions, Priority, ReadOutcome, StreamPathError, WriteError};
use swiftwater_sim::{Attachment, Direction, Pair, Verdict};
use swiftwater_units::{Dir, PathId, Side, StreamId};

use crate::support::paths::{self, SECOND};
use crate::support::{link, millis, secs};
use bytes::Bytes;

/// A connection whose first path has the shorter round-trip time, so that the scheduler prefers it.
fn with_two_paths() -> (Pair, Attachment) {
    // Each write is taken as a whole.
    let builder =
        paths::builder(link(20, 5)).both_configs(|config| config.unsent_window = 4_000_000.into());
    let (mut pair, second) = paths::with_two_paths(builder, link(20, 15));
    pair.advance(secs(1));
    (pair, second)
}

/// Bytes that the client sent on each path.
fn sent(pair: &Pair) -> [u64; 2] {
    [PathId::ZERO, SECOND].map(|id| paths::sent_on(pair, Side::Client, id))
}

fn write_all(pair: &mut Pair, id: StreamId, bytes: usize) {
    let mut stream = pair.client().send_stream(id);
    assert_eq!(stream.write(&vec![7; bytes]), Ok(bytes));
    stream.finish().unwrap();
}

/// Reads on the server until these streams end; when each ended, since the call.
fn read_to_end(pair: &mut Pair, streams: &[StreamId]) -> BTreeMap<StreamId, Duration> {
    let (start, mut ends) = (pair.now(), BTreeMap::new());
    while ends.len() < streams.len() {
        assert!(pair.now() - start < secs(30), "{ends:?}");
        pair.advance(millis(5));
        while pair.server().accept(Dir::Uni).is_some() {}
        let now = pair.now();
        for &id in streams {
            let mut buffer = vec![0; 65_536];
            loop {
                match pair.server().recv_stream(id).read(&mut buffer) {
                    Ok(ReadOutcome::Data(_)) => {}
                    Ok(ReadOutcome::Finished) => {
                        ends.insert(id, now - start);
                    }
                    _ => break,
                }
            }
        }
    }
    ends
}

#[test]
fn a_stream_leaves_on_its_path_and_no_other() {
    for path in [PathId::ZERO, SECOND] {
        let (mut pair, _) = with_two_paths();
        let id = pair.client().open(Dir::Uni).unwrap();
        assert_eq!(pair.client().set_stream_path(id, Some(path)), Ok(()));
        assert_eq!(pair.client().stream_path(id), Some(path));
        let before = sent(&pair);
        write_all(&mut pair, id, 600_000);
        read_to_end(&mut pair, &[id]);
        let after = sent(&pair);
        let at = usize::from(path == SECOND);
        assert!(after[at] - before[at] > 600_000, "{before:?} {after:?}");
        // Acknowledgements, PINGs.
        assert!(
            after[1 - at] - before[1 - at] < 20_000,
            "{before:?} {after:?}"
        );
    }
}

#[test]
fn streams_of_both_paths_and_of_none_leave_beside_one_another() {
    let (mut pair, _) = with_two_paths();
    let ids: Vec<_> = (0..3)
        .map(|_| pair.client().open(Dir::Uni).unwrap())
        .collect();
    for (id, path) in ids.iter().zip([Some(PathId::ZERO), Some(SECOND), None]) {
        assert_eq!(pair.client().set_stream_path(*id, path), Ok(()));
    }
    for id in &ids {
        write_all(&mut pair, *id, 500_000);
    }
    let ends = read_to_end(&mut pair, &ids);
    // 12 Mbit over two paths of 20 Mbit/s.
    assert!(ends.values().all(|end| *end < millis(900)), "{ends:?}");
}

#[test]
fn a_stream_whose_path_fails_goes_on_on_another() {
    let (mut pair, second) = with_two_paths();
    let id = pair.client().open(Dir::Uni).unwrap();
    assert_eq!(pair.client().set_stream_path(id, Some(SECOND)), Ok(()));
    write_all(&mut pair, id, 900_000);
    pair.advance(millis(100));
    for link in [second.uplink, second.downlink] {
        pair.network().tap(link, |_| Verdict::Drop);
    }
    let ends = read_to_end(&mut pair, &[id]);
    assert!(ends[&id] < secs(2), "{ends:?}");
    // It is no longer assigned once its path is abandoned.
    assert!(pair.run_until(|pair| {
        let abandoned = |event: &Event| matches!(event, Event::PathAbandoned { .. });
        pair.events(Side::Client).iter().any(abandoned)
    }));
    let next = pair.client().open(Dir::Uni).unwrap();
    let refused = pair.client().set_stream_path(next, Some(SECOND));
    assert_eq!(refused, Err(StreamPathError::NotOpen(SECOND)));
}

#[test]
fn data_that_wait_for_a_full_path_leave_on_any_when_they_are_released() {
    let (mut pair, _) = with_two_paths();
    let id = pair.client().open(Dir::Uni).unwrap();
    assert_eq!(pair.client().set_stream_path(id, Some(SECOND)), Ok(()));
    write_all(&mut pair, id, 900_000);
    pair.advance(millis(60));
    let before = sent(&pair);
    assert_eq!(pair.client().set_stream_path(id, None), Ok(()));
    assert_eq!(pair.client().stream_path(id), None);
    read_to_end(&mut pair, &[id]);
    assert!(sent(&pair)[0] - before[0] > 200_000);
}

#[test]
fn a_more_urgent_stream_for_any_path_goes_before_one_that_is_assigned() {
    let (mut pair, _) = with_two_paths();
    let ids: Vec<_> = (0..2)
        .map(|_| pair.client().open(Dir::Uni).unwrap())
        .collect();
    let urgent = Priority {
        urgency: 0,
        ..Priority::default()
    };
    pair.client()
        .send_stream(ids[1])
        .set_priority(urgent)
        .unwrap();
    assert_eq!(
        pair.client().set_stream_path(ids[0], Some(PathId::ZERO)),
        Ok(())
    );
    write_all(&mut pair, ids[0], 700_000);
    write_all(&mut pair, ids[1], 200_000);
    let ends = read_to_end(&mut pair, &ids);
    assert!(ends[&ids[1]] < ends[&ids[0]], "{ends:?}");
}

#[test]
fn datagrams_leave_on_their_path_and_on_others_once_it_has_failed() {
    let (mut pair, second) = with_two_paths();
    let send = |pair: &mut Pair| {
        let options = DatagramOptions::default().with_path(SECOND);
        let data = Bytes::from_static(&[7; 1_000]);
        let sent = pair.client().send_datagram_with(data, options);
        assert_eq!(sent, Ok(()));
        pair.advance(millis(10));
    };
    let before = sent(&pair);
    (0..100).for_each(|_| send(&mut pair));
    let after = sent(&pair);
    assert!(after[1] - before[1] > 100_000, "{before:?} {after:?}");
    assert!(after[0] - before[0] < 10_000, "{before:?} {after:?}");
    for link in [second.uplink, second.downlink] {
        pair.network().tap(link, |_| Verdict::Drop);
    }
    (0..100).for_each(|_| send(&mut pair));
    // All but those of the first probe timeout.
    assert!(sent(&pair)[0] - after[0] > 80_000);
    let mut received = 0;
    while pair.server().recv_datagram().is_some() {
        received += 1;
    }
    assert!(received > 180, "{received}");
}

#[test]
fn datagrams_of_two_paths_and_of_none_leave_beside_one_another() {
    let (mut pair, _) = with_two_paths();
    let before = sent(&pair);
    for nth in 0..60 {
        let mut options = DatagramOptions::default();
        options.path = [Some(SECOND), Some(PathId::ZERO), None][nth % 3];
        let data = Bytes::from_static(&[7; 500]);
        assert_eq!(pair.client().send_datagram_with(data, options), Ok(()));
    }
    pair.advance(millis(200));
    let after = sent(&pair);
    let bytes = |at: usize| after[at] - before[at];
    // Those of no path fill up packets of either.
    for at in [0, 1] {
        assert!((10_000..24_000).contains(&bytes(at)), "{} bytes", bytes(at));
    }
    assert!((30_000..36_000).contains(&(bytes(0) + bytes(1))));
    let received = std::iter::from_fn(|| pair.server().recv_datagram());
    assert_eq!(received.count(), 60);
}

#[test]
fn only_open_streams_and_paths_are_assigned() {
    let (mut pair, _) = with_two_paths();
    let id = pair.client().open(Dir::Uni).unwrap();
    let none = PathId::new(5);
    let refused = pair.client().set_stream_path(id, Some(none));
    assert_eq!(refused, Err(StreamPathError::NotOpen(none)));
    let unknown = StreamId::new(Side::Client, Dir::Uni, 99);
    let refused = pair.client().set_stream_path(unknown, Some(SECOND));
    assert_eq!(refused, Err(StreamPathError::Stream(WriteError::Closed)));
    let transfer = pair.start_transfer(1_000_000, Direction::ToServer);
    assert!(pair.run_until(|pair| pair.transfer_report(transfer).verified));
}
