//! The sending half: frames, turns, fates, resets, stops.

use bytes::Bytes;
use swiftwater_wire::Frame;
use swiftwater_wire::frame::FrameIter;

use super::*;
use crate::error::WriteError;

/// A client without limits that matter here.
fn roomy() -> Streams {
    let large = ByteCount::new(1 << 24);
    client_with(&TransportConfig {
        max_concurrent_bidi_streams: 5000,
        stream_receive_window: large,
        receive_window: large,
        send_window: large,
        unsent_window: large,
        ..config()
    })
}

fn open_with(streams: &mut Streams, len: usize) -> StreamId {
    let id = streams.open(Dir::Bi).unwrap();
    assert_eq!(streams.write(id, &bytes_at(0, len)), Ok(len));
    id
}

fn ids_of(carried: &[Carried]) -> Vec<u64> {
    carried
        .iter()
        .map(|carried| match carried {
            Carried::Stream { id, .. } => id.index(),
            _ => panic!("{carried:?}"),
        })
        .collect()
}

#[test]
fn frames_carry_the_bytes_that_were_written() {
    let mut streams = roomy();
    let id = streams.open(Dir::Bi).unwrap();
    // Small writes, a large one and two chunks, long and short, come out as one run of bytes.
    let mut offset = 0;
    for len in [1, 2, 3, 100_000] {
        assert_eq!(streams.write(id, &bytes_at(offset, len)), Ok(len));
        offset += len as u64;
    }
    for len in [5000, 10] {
        let mut data = Bytes::from(bytes_at(offset, len));
        assert_eq!(streams.write_chunk(id, &mut data), Ok(len));
        assert!(data.is_empty());
        offset += len as u64;
    }
    streams.finish(id).unwrap();
    let mut expected = 0;
    let mut ended = false;
    while streams.can_send() {
        let (carried, packet) = packet(&mut streams, 1200);
        assert!(
            packet.len() == 1200 || !streams.can_send(),
            "packets are filled"
        );
        let frames: Vec<_> = FrameIter::new(&packet)
            .map(|frame| frame.unwrap().1)
            .collect();
        assert_eq!(frames.len(), carried.len());
        for (frame, carried) in frames.iter().zip(&carried) {
            let Frame::Stream(frame) = frame else {
                panic!("{frame:?}")
            };
            let len = frame.data.len();
            assert_eq!(
                *carried,
                stream_frame(id, frame.offset, len as u32, frame.fin)
            );
            assert_eq!(
                (frame.offset, frame.data),
                (expected, &bytes_at(expected, len)[..])
            );
            expected += len as u64;
            ended = frame.fin;
        }
    }
    assert_eq!((expected, ended), (offset, true));
    assert_eq!(streams.stats().sent_bytes, offset);
    assert_eq!(streams.stats().retransmitted_bytes, 0);
}

#[test]
fn a_partly_taken_chunk_keeps_the_rest() {
    let mut streams = client();
    let id = streams.open(Dir::Bi).unwrap();
    let mut data = Bytes::from(bytes_at(0, 1500));
    assert_eq!(streams.write_chunk(id, &mut data), Ok(1000));
    assert_eq!(data, bytes_at(1000, 500));
    assert_eq!(streams.write_chunk(id, &mut data), Ok(0));
    assert_eq!(data.len(), 500);
}

#[test]
fn equals_share_packet_by_packet() {
    let mut streams = roomy();
    for _ in 0..3 {
        open_with(&mut streams, 100_000);
    }
    let firsts: Vec<u64> = (0..6)
        .map(|_| ids_of(&packet(&mut streams, 1200).0)[0])
        .collect();
    assert_eq!(firsts, [0, 1, 2, 0, 1, 2]);
}

#[test]
fn short_streams_share_a_packet() {
    let mut streams = roomy();
    for _ in 0..5 {
        let id = open_with(&mut streams, 100);
        streams.finish(id).unwrap();
    }
    let (carried, _) = packet(&mut streams, 1200);
    assert_eq!(ids_of(&carried), [0, 1, 2, 3, 4]);
    assert!(!streams.can_send());
}

#[test]
fn thousands_of_streams_all_get_their_turn() {
    let mut streams = roomy();
    for _ in 0..3000 {
        open_with(&mut streams, 2000);
    }
    let mut first_packets: Vec<u64> = (0..3000)
        .map(|_| ids_of(&packet(&mut streams, 1200).0)[0])
        .collect();
    first_packets.sort_unstable();
    first_packets.dedup();
    assert!(
        first_packets.len() > 2900,
        "{} streams",
        first_packets.len()
    );
}

#[test]
fn higher_priority_goes_first_and_may_change() {
    let mut streams = roomy();
    let (low, high) = (open_with(&mut streams, 5000), open_with(&mut streams, 5000));
    let urgent = |urgency| Priority::new(urgency, true);
    streams.set_priority(high, urgent(2)).unwrap();
    assert_eq!(streams.priority(high), Ok(urgent(2)));
    assert_eq!(ids_of(&packet(&mut streams, 1200).0), [1]);
    assert_eq!(ids_of(&packet(&mut streams, 1200).0), [1]);
    streams.set_priority(low, urgent(0)).unwrap();
    assert_eq!(ids_of(&packet(&mut streams, 1200).0), [0]);
    // Lost data of a lower priority doesn't overtake.
    streams.on_frame_fate(&fate_of_carrier(Fate::Lost), high, 0..1000, false);
    assert_eq!(ids_of(&packet(&mut streams, 1200).0), [0]);
}

#[test]
fn lost_bytes_go_before_new_ones() {
    let mut streams = roomy();
    let id = open_with(&mut streams, 5000);
    packet(&mut streams, 1200);
    streams.on_frame_fate(&fate_of_carrier(Fate::Lost), id, 100..150, false);
    let (carried, _) = packet(&mut streams, 1200);
    assert_eq!(
        carried[0],
        again(stream_frame(id, 100, 50, false), Purpose::Retransmission)
    );
    assert_eq!(streams.stats().retransmitted_bytes, 50);
}

#[test]
fn room_too_small_for_a_frame_stays_empty() {
    let mut streams = roomy();
    let id = open_with(&mut streams, 5000);
    for room in 0..10 {
        assert_eq!(packet(&mut streams, room), (vec![], vec![]));
    }
    // But what is short anyway is sent in the room there is.
    let short = open_with(&mut streams, 3);
    streams
        .set_priority(short, Priority::new(0, false))
        .unwrap();
    assert_eq!(
        packet(&mut streams, 10).0,
        [stream_frame(short, 0, 3, false)]
    );
    assert!(streams.can_send());
    let _ = id;
}

#[test]
fn finished_is_reported_when_everything_was_acknowledged() {
    let mut streams = roomy();
    let id = open_with(&mut streams, 3000);
    streams.finish(id).unwrap();
    let carried = send_all(&mut streams);
    assert!(carried.len() >= 3);
    fate(&mut streams, &carried[1..], Fate::Acked);
    assert_eq!(events(&mut streams), []);
    fate(&mut streams, &carried[..1], Fate::Lost);
    let resent = send_all(&mut streams);
    assert_eq!(resent, [again(carried[0], Purpose::Retransmission)]);
    fate(&mut streams, &resent, Fate::Acked);
    assert_eq!(events(&mut streams), [StreamEvent::Finished { id }]);
    assert_eq!(streams.stats().send_buffered, 0);
    // Late news of the copy that was thought lost.
    fate(&mut streams, &carried, Fate::Acked);
    assert_eq!(events(&mut streams), []);
}

#[test]
fn copies_are_sent_of_what_is_in_flight() {
    let mut streams = roomy();
    let id = open_with(&mut streams, 3000);
    streams.finish(id).unwrap();
    assert_eq!(
        write_packet(1200, |w| assert_eq!(
            streams.fill_range(w, id, 0..3000),
            3000
        ))
        .0,
        []
    );
    send_all(&mut streams);
    streams.on_frame_fate(&fate_of_carrier(Fate::Acked), id, 100..1000, false);
    // In two packets.
    let mut next = 0;
    let (first, _) = write_packet(1200, |w| next = streams.fill_range(w, id, 0..3000));
    assert_eq!(
        first[0],
        again(stream_frame(id, 0, 100, false), Purpose::Replica)
    );
    assert!(matches!(
        first[1],
        Carried::Stream {
            offset: 1000,
            fin: false,
            ..
        }
    ));
    let mut end = 0;
    assert!(
        (2000..2200).contains(&next),
        "acknowledged bytes count as dealt with"
    );
    let (second, _) = write_packet(1200, |w| end = streams.fill_range(w, id, next..2300));
    assert_eq!((end, second.len()), (2300 - next, 1));
    let (third, _) = write_packet(1200, |w| end = streams.fill_range(w, id, 2300..3000));
    let tail = again(stream_frame(id, 2300, 700, true), Purpose::Replica);
    assert_eq!((third, end), (vec![tail], 700));
    // An acknowledgement of the copies is as good as any.
    fate(&mut streams, &first, Fate::Acked);
    fate(&mut streams, &second, Fate::Acked);
    fate(
        &mut streams,
        &[stream_frame(id, 2300, 700, true)],
        Fate::Acked,
    );
    assert_eq!(events(&mut streams), [StreamEvent::Finished { id }]);
    assert_eq!(
        write_packet(1200, |w| assert_eq!(streams.fill_range(w, id, 0..9), 9)).0,
        []
    );
}

#[test]
fn the_loss_of_a_copy_of_acknowledged_bytes_changes_nothing() {
    let mut streams = roomy();
    let id = open_with(&mut streams, 1000);
    let carried = send_all(&mut streams);
    let (copies, _) = write_packet(1200, |w| {
        assert_eq!(streams.fill_range(w, id, 0..1000), 1000);
    });
    fate(&mut streams, &carried, Fate::Acked);
    fate(&mut streams, &copies, Fate::Lost);
    assert!(!streams.can_send());
}

#[test]
fn a_reset_drops_everything_and_ends_when_acknowledged() {
    let mut streams = roomy();
    let id = streams.open(Dir::Uni).unwrap();
    streams.write(id, &bytes_at(0, 3000)).unwrap();
    let (carried, _) = packet(&mut streams, 1200);
    let Carried::Stream { len, .. } = carried[0] else {
        panic!()
    };
    streams.reset(id, u64::MAX).unwrap();
    let value = ControlValue::Reset {
        error: (1 << 62) - 1,
        final_size: u64::from(len),
    };
    assert_eq!(
        controls(&mut streams),
        [(ControlKey::ResetStream(id), value)]
    );
    assert!(!streams.can_send());
    assert_eq!(streams.stats().send_buffered, 0);
    assert_eq!(streams.write(id, b"x"), Err(WriteError::Closed));
    assert_eq!(streams.finish(id), Err(WriteError::Closed));
    assert_eq!(streams.reset(id, 0), Err(WriteError::Closed));
    // Fates of what was in flight don't matter any more.
    fate(&mut streams, &carried, Fate::Lost);
    assert!(!streams.can_send());
    streams.on_control_acked(ControlKey::StopSending(id));
    assert_eq!(streams.stats().open, 1);
    streams.on_control_acked(ControlKey::ResetStream(id));
    assert_eq!(streams.stats().open, 0);
    assert_eq!(events(&mut streams), []);
}

#[test]
fn a_finished_stream_can_be_reset_until_all_is_acknowledged() {
    let mut streams = roomy();
    let id = open_with(&mut streams, 100);
    streams.finish(id).unwrap();
    assert_eq!(streams.write(id, b"x"), Err(WriteError::Closed));
    assert_eq!(streams.finish(id), Err(WriteError::Closed));
    let carried = send_all(&mut streams);
    streams.reset(id, 3).unwrap();
    fate(&mut streams, &carried, Fate::Acked);
    assert_eq!(events(&mut streams), [], "a reset stream isn't finished");

    let id = open_with(&mut streams, 100);
    streams.finish(id).unwrap();
    let carried = send_all(&mut streams);
    fate(&mut streams, &carried, Fate::Acked);
    assert_eq!(streams.reset(id, 3), Err(WriteError::Closed));
}

#[test]
fn a_stop_of_the_peer_is_answered_with_a_reset() {
    let mut streams = roomy();
    let id = open_with(&mut streams, 3000);
    packet(&mut streams, 500);
    stop_sending(&mut streams, id, 9).unwrap();
    stop_sending(&mut streams, id, 10).unwrap();
    assert_eq!(events(&mut streams), [StreamEvent::Stopped { id, code: 9 }]);
    let controls = controls(&mut streams);
    assert!(
        matches!(
            controls[..],
            [(
                ControlKey::ResetStream(_),
                ControlValue::Reset {
                    error: 9,
                    final_size: 1..500
                }
            )]
        ),
        "{controls:?}"
    );
    assert_eq!(streams.write(id, b"x"), Err(WriteError::Stopped(9)));
    assert_eq!(streams.finish(id), Err(WriteError::Stopped(9)));
    assert_eq!(streams.reset(id, 0), Err(WriteError::Stopped(9)));
    assert!(!streams.can_send());
}

#[test]
fn a_stop_that_comes_before_the_stream_is_accepted_is_reported_then() {
    let mut streams = roomy();
    stop_sending(&mut streams, server_bidi(0), 9).unwrap();
    assert_eq!(events(&mut streams), [StreamEvent::Opened { dir: Dir::Bi }]);
    let id = streams.accept(Dir::Bi).unwrap();
    assert_eq!(events(&mut streams), [StreamEvent::Stopped { id, code: 9 }]);
}

#[test]
fn a_stop_after_everything_was_acknowledged_is_ignored() {
    let mut streams = roomy();
    let id = open_with(&mut streams, 10);
    streams.finish(id).unwrap();
    let carried = send_all(&mut streams);
    fate(&mut streams, &carried, Fate::Acked);
    events(&mut streams);
    stop_sending(&mut streams, id, 9).unwrap();
    assert_eq!(events(&mut streams), []);
    assert_eq!(controls(&mut streams), []);
}

#[test]
fn receiving_streams_cannot_be_written() {
    let mut streams = roomy();
    deliver(&mut streams, server_uni(0), 0, 1, false).unwrap();
    assert_eq!(streams.write(server_uni(0), b"x"), Err(WriteError::Closed));
    assert_eq!(
        streams.write(client_bidi(77), b"x"),
        Err(WriteError::Closed)
    );
}

#[test]
fn new_data_fill_the_room_beside_a_retransmission_that_does_not_fit() {
    let mut streams = roomy();
    open_with(&mut streams, 5000);
    let first = packet(&mut streams, 600).0;
    let second = packet(&mut streams, 1200).0;
    fate(&mut streams, &first, Fate::Lost);
    fate(&mut streams, &second, Fate::Lost);
    let (carried, bytes) = packet(&mut streams, 1200);
    // The second range is kept whole for the next packet.
    assert_eq!(carried[0], again(first[0], Purpose::Retransmission));
    let is_new = |carried: &Carried| matches!(carried, Carried::Stream { purpose: Purpose::New, len, .. } if *len > 500);
    assert!(carried.len() == 2 && is_new(&carried[1]), "{carried:?}");
    assert!(bytes.len() > 1190, "{}", bytes.len());
    let (carried, _) = packet(&mut streams, 1200);
    assert_eq!(carried, [again(second[0], Purpose::Retransmission)]);
}

#[test]
fn little_room_beside_a_retransmission_stays_empty() {
    let mut streams = roomy();
    open_with(&mut streams, 5000);
    let first = packet(&mut streams, 1150).0;
    let second = packet(&mut streams, 1200).0;
    fate(&mut streams, &first, Fate::Lost);
    fate(&mut streams, &second, Fate::Lost);
    let carried = packet(&mut streams, 1200).0;
    assert_eq!(carried, [again(first[0], Purpose::Retransmission)]);
}

#[test]
fn unsent_bytes_are_those_that_never_left() {
    let mut streams = roomy();
    let id = open_with(&mut streams, 5000);
    assert_eq!(streams.unsent_bytes(id), Ok(5000));
    let first = packet(&mut streams, 1200).0;
    let sent = streams.stats().sent_bytes;
    assert_eq!(streams.unsent_bytes(id), Ok(5000 - sent));
    fate(&mut streams, &first, Fate::Lost);
    assert_eq!(streams.unsent_bytes(id), Ok(5000 - sent));
}
