//! Partial reliability: `RESET_STREAM_AT` in both directions, and streams that expire.

use super::*;
use crate::error::{ReadError, WriteError};
use crate::observe::ResetCause;

const ID: StreamId = StreamId::new(Side::Server, Dir::Uni, 0);

fn accepted() -> Streams {
    let mut streams = client();
    deliver(&mut streams, ID, 0, 0, false).unwrap();
    assert_eq!(streams.accept(Dir::Uni), Some(ID));
    events(&mut streams);
    streams
}

/// A stream on which `len` bytes were written.
fn written(streams: &mut Streams, len: usize) -> StreamId {
    let id = streams.open(Dir::Uni).unwrap();
    assert_eq!(streams.write(id, &bytes_at(0, len)), Ok(len));
    id
}

fn queued_value(streams: &mut Streams, id: StreamId) -> Option<ControlValue> {
    controls(streams)
        .into_iter()
        .find_map(|(key, value)| (key == ControlKey::ResetStream(id)).then_some(value))
}

fn partial(error: u64, final_size: u64, reliable_size: u64) -> ControlValue {
    ControlValue::ResetAt {
        error,
        final_size,
        reliable_size,
    }
}

/// Packets of so many bytes of room, until nothing is left.
fn send_in(streams: &mut Streams, room: usize) -> Vec<Vec<Carried>> {
    let mut packets = Vec::new();
    while streams.can_send() {
        packets.push(packet(streams, room).0);
    }
    packets
}

#[test]
fn what_is_reliable_is_read_before_the_reset() {
    let mut streams = accepted();
    reset_at(&mut streams, ID, 7, 500, 200).unwrap();
    assert_eq!(read_all(&mut streams, ID, 0), (0, ReadOutcome::Blocked));
    deliver(&mut streams, ID, 100, 150, false).unwrap();
    assert_eq!(events(&mut streams).len(), 0, "there is a gap");
    deliver(&mut streams, ID, 0, 120, false).unwrap();
    let mut buf = [0; 300];
    assert_eq!(streams.read(ID, &mut buf), Ok(ReadOutcome::Data(200)));
    assert_eq!(buf[..200], bytes_at(0, 200));
    assert_eq!(streams.read(ID, &mut buf), Err(ReadError::Reset(7)));
    assert_eq!(streams.stats().open, 0);
    assert_eq!(streams.stats().receive_buffered, 0);
}

#[test]
fn what_a_reset_abandons_is_credited_at_once() {
    let mut streams = accepted();
    deliver(&mut streams, ID, 300, 600, false).unwrap();
    assert_eq!(streams.stats().receive_buffered, 900);
    reset_at(&mut streams, ID, 7, 950, 400).unwrap();
    assert_eq!(streams.stats().receive_buffered, 400);
    // A lower reliable size gives back more, a higher one is old news.
    reset_at(&mut streams, ID, 7, 950, 350).unwrap();
    assert_eq!(streams.stats().receive_buffered, 350);
    reset_at(&mut streams, ID, 7, 950, 800).unwrap();
    assert_eq!(streams.stats().receive_buffered, 350);
    // What was lost below it and comes late counts no further.
    deliver(&mut streams, ID, 0, 950, true).unwrap();
    assert_eq!(streams.stats().receive_buffered, 350);
    let mut buf = [0; 1000];
    assert_eq!(streams.read(ID, &mut buf), Ok(ReadOutcome::Data(350)));
    assert_eq!(streams.stats().receive_buffered, 0);
    assert_eq!(streams.read(ID, &mut buf), Err(ReadError::Reset(7)));
}

#[test]
fn a_plain_reset_lowers_the_reliable_size_to_nothing() {
    let mut streams = accepted();
    deliver(&mut streams, ID, 0, 100, false).unwrap();
    reset_at(&mut streams, ID, 7, 500, 200).unwrap();
    reset(&mut streams, ID, 7, 500).unwrap();
    assert_eq!(streams.stats().receive_buffered, 0);
    assert_eq!(streams.read(ID, &mut [0; 9]), Err(ReadError::Reset(7)));
}

#[test]
fn a_reader_beyond_the_reliable_size_gets_the_reset_at_once() {
    let mut streams = accepted();
    deliver(&mut streams, ID, 0, 300, false).unwrap();
    assert_eq!(streams.read(ID, &mut [0; 250]), Ok(ReadOutcome::Data(250)));
    reset_at(&mut streams, ID, 7, 300, 200).unwrap();
    assert_eq!(streams.read(ID, &mut [0; 9]), Err(ReadError::Reset(7)));
    assert_eq!(streams.stats().receive_buffered, 0);
}

#[test]
fn memory_beyond_the_reliable_size_is_given_back() {
    let mut streams = accepted();
    deliver(&mut streams, ID, 1, 999, false).unwrap();
    reset_at(&mut streams, ID, 7, 1000, 1).unwrap();
    let (_, stream) = streams.stream(ID).unwrap();
    assert_eq!(stream.recv.as_ref().unwrap().capacity(), 0);
}

#[test]
fn a_code_that_changes_is_an_error() {
    let mut streams = accepted();
    reset_at(&mut streams, ID, 7, 500, 200).unwrap();
    let wrong = ErrorCode::STREAM_STATE_ERROR;
    assert_code(reset_at(&mut streams, ID, 8, 500, 100), wrong);
    assert_code(reset(&mut streams, ID, 8, 500), wrong);
}

#[test]
fn a_final_size_that_changes_is_an_error() {
    let mut streams = accepted();
    reset_at(&mut streams, ID, 7, 500, 200).unwrap();
    let wrong = ErrorCode::FINAL_SIZE_ERROR;
    assert_code(reset_at(&mut streams, ID, 7, 501, 200), wrong);
    assert_code(reset_at(&mut streams, ID, 7, 499, 200), wrong);
    assert_code(reset(&mut streams, ID, 7, 501), wrong);
    assert_code(deliver(&mut streams, ID, 0, 499, true), wrong);
    assert_code(deliver(&mut streams, ID, 499, 2, false), wrong);
}

#[test]
fn the_final_size_is_subject_to_flow_control() {
    let mut streams = accepted();
    let flow = ErrorCode::FLOW_CONTROL_ERROR;
    assert_code(reset_at(&mut streams, ID, 7, 1001, 10), flow);
}

#[test]
fn a_stop_asks_for_an_end_while_reliable_bytes_are_missing() {
    let mut streams = accepted();
    reset_at(&mut streams, ID, 7, 500, 200).unwrap();
    streams.stop(ID, 5).unwrap();
    let stop = (ControlKey::StopSending(ID), ControlValue::Code(5));
    assert!(controls(&mut streams).contains(&stop));
    assert_eq!(streams.stats().receive_buffered, 0);
    // The peer may answer with a code of its choice.
    reset(&mut streams, ID, 5, 500).unwrap();
    assert_eq!(streams.stats().open, 0);
}

#[test]
fn the_first_bytes_are_delivered_and_the_rest_is_not() {
    let mut streams = client();
    let id = written(&mut streams, 900);
    let packets = send_in(&mut streams, 200);
    fate(&mut streams, &packets.concat(), Fate::Lost);
    streams.reset_at(id, 9, 250).unwrap();
    assert_eq!(queued_value(&mut streams, id), Some(partial(9, 900, 250)));
    assert_eq!(streams.write(id, b"x"), Err(WriteError::Closed));
    assert_eq!(streams.stats().send_buffered, 250);
    let resent = send_all(&mut streams);
    let bytes: u64 = resent
        .iter()
        .map(|carried| match carried {
            Carried::Stream {
                offset, len, fin, ..
            } => {
                assert!(offset + u64::from(*len) <= 250 && !fin);
                u64::from(*len)
            }
            other => panic!("{other:?}"),
        })
        .sum();
    assert_eq!(bytes, 250);
    fate(&mut streams, &resent, Fate::Acked);
    assert_eq!(streams.stats().open, 1, "the reset isn't acknowledged");
    streams.on_control_acked(ControlKey::ResetStream(id));
    assert_eq!(streams.stats().open, 0);
    assert_eq!(events(&mut streams), [], "not everything was delivered");
    assert_eq!(streams.stats().send_buffered, 0);
}

#[test]
fn a_reset_waits_until_what_is_reliable_was_sent() {
    let mut streams = client();
    let id = written(&mut streams, 900);
    packet(&mut streams, 150);
    streams.reset_at(id, 9, 400).unwrap();
    assert_eq!(queued_value(&mut streams, id), None);
    // The final size is the reliable size: nothing beyond it was sent, nor ever will be.
    let rest = send_all(&mut streams);
    assert_eq!(queued_value(&mut streams, id), Some(partial(9, 400, 400)));
    let end = rest.iter().map(|carried| match carried {
        Carried::Stream { offset, len, .. } => offset + u64::from(*len),
        _ => 0,
    });
    assert_eq!(end.max(), Some(400));
}

#[test]
fn a_reset_may_follow_a_fin() {
    for fin_sent in [false, true] {
        let mut streams = client();
        let id = written(&mut streams, 900);
        let sent = if fin_sent { 900 } else { 0 };
        streams.finish(id).unwrap();
        let carried = if fin_sent {
            send_all(&mut streams)
        } else {
            vec![]
        };
        streams.reset_at(id, 9, 100).unwrap();
        let resent = send_all(&mut streams);
        assert_eq!(resent.len(), usize::from(!fin_sent));
        assert_eq!(
            queued_value(&mut streams, id),
            Some(partial(9, sent.max(100), 100))
        );
        fate(&mut streams, &carried, Fate::Acked);
        fate(&mut streams, &resent, Fate::Acked);
        streams.on_control_acked(ControlKey::ResetStream(id));
        assert_eq!(streams.stats().open, 0);
    }
}

#[test]
fn later_resets_only_lower_the_reliable_size() {
    let mut streams = client();
    let id = written(&mut streams, 900);
    send_all(&mut streams);
    streams.reset_at(id, 9, 500).unwrap();
    assert_eq!(queued_value(&mut streams, id), Some(partial(9, 900, 500)));
    streams.reset_at(id, 9, 600).unwrap();
    assert_eq!(queued_value(&mut streams, id), None);
    streams.reset_at(id, 10, 200).unwrap();
    assert_eq!(
        queued_value(&mut streams, id),
        Some(partial(9, 900, 200)),
        "the first code stays"
    );
    streams.reset(id, 11).unwrap();
    let plain = ControlValue::Reset {
        error: 9,
        final_size: 900,
    };
    assert_eq!(queued_value(&mut streams, id), Some(plain));
    assert_eq!(streams.reset_at(id, 9, 1), Err(WriteError::Closed));
    assert!(!streams.can_send());
    streams.on_control_acked(ControlKey::ResetStream(id));
    assert_eq!(streams.stats().open, 0);
}

#[test]
fn a_stop_sending_ends_a_partial_reset_with_the_first_code() {
    let mut streams = client();
    let id = written(&mut streams, 900);
    send_all(&mut streams);
    streams.reset_at(id, 9, 500).unwrap();
    stop_sending(&mut streams, id, 77).unwrap();
    let plain = ControlValue::Reset {
        error: 9,
        final_size: 900,
    };
    assert_eq!(queued_value(&mut streams, id), Some(plain));
    assert_eq!(
        events(&mut streams),
        [],
        "the application gave it up before"
    );
}

#[test]
fn a_peer_that_does_not_support_partial_resets_gets_none() {
    let config = TransportConfig {
        reset_stream_at: false,
        ..config()
    };
    let mut streams = client_with(&config);
    let id = written(&mut streams, 100);
    assert_eq!(
        streams.reset_at(id, 9, 50),
        Err(WriteError::ResetAtUnsupported)
    );
    assert_eq!(streams.write(id, b"x"), Ok(1));
    streams.reset_at(id, 9, 0).unwrap();
    let plain = ControlValue::Reset {
        error: 9,
        final_size: 0,
    };
    assert_eq!(queued_value(&mut streams, id), Some(plain));
}

#[test]
fn a_reliable_size_beyond_what_was_written_is_a_plain_reset() {
    let mut streams = client();
    let id = written(&mut streams, 0);
    streams.reset_at(id, 9, 50).unwrap();
    let plain = ControlValue::Reset {
        error: 9,
        final_size: 0,
    };
    assert_eq!(queued_value(&mut streams, id), Some(plain));
    assert_eq!(streams.reset_at(id, 9, 50), Err(WriteError::Closed));
}

#[test]
fn copies_of_what_was_abandoned_are_not_sent() {
    let mut streams = client();
    let id = written(&mut streams, 900);
    send_all(&mut streams);
    streams.reset_at(id, 9, 300).unwrap();
    let (carried, _) = write_packet(1200, |w| assert_eq!(streams.fill_range(w, id, 0..900), 900));
    assert_eq!(
        carried,
        [again(stream_frame(id, 0, 300, false), Purpose::Replica)]
    );
}

fn at(ms: u64) -> Instant {
    Instant::from_millis(ms)
}

fn expiry(ms: u64, reliable_size: u64) -> Expiry {
    Expiry {
        at: at(ms),
        code: 5,
        reliable_size,
    }
}

#[test]
fn a_stream_expires_but_for_its_header() {
    let mut streams = client();
    let id = written(&mut streams, 900);
    streams.finish(id).unwrap();
    streams.set_expiry(id, Some(expiry(100, 40))).unwrap();
    packet(&mut streams, 200);
    assert_eq!(streams.next_expiry(), Some(at(100)));
    streams.expire(at(99));
    assert_eq!(queued_value(&mut streams, id), None);
    streams.expire(at(100));
    let Some(ControlValue::ResetAt {
        error: 5,
        final_size,
        reliable_size: 40,
    }) = queued_value(&mut streams, id)
    else {
        panic!("no partial reset");
    };
    assert!((100..200).contains(&final_size));
    assert_eq!(events(&mut streams), [StreamEvent::Expired { id, code: 5 }]);
    assert_eq!(streams.next_expiry(), None);
    let stats = streams.stats();
    assert_eq!((stats.expired_streams, stats.expired_bytes), (1, 860));
    let notice = streams.poll_notice().unwrap();
    assert_eq!(
        (notice.cause, notice.reliable_size),
        (ResetCause::Expired, 40)
    );
}

#[test]
fn without_the_extension_the_whole_stream_expires() {
    let config = TransportConfig {
        reset_stream_at: false,
        ..config()
    };
    let mut streams = client_with(&config);
    let id = written(&mut streams, 900);
    streams.set_expiry(id, Some(expiry(100, 40))).unwrap();
    streams.expire(at(100));
    let plain = ControlValue::Reset {
        error: 5,
        final_size: 0,
    };
    assert_eq!(queued_value(&mut streams, id), Some(plain));
    assert_eq!(streams.stats().expired_bytes, 900);
}

#[test]
fn what_was_delivered_or_taken_back_does_not_expire() {
    let mut streams = client();
    let delivered = written(&mut streams, 100);
    streams.set_expiry(delivered, Some(expiry(100, 0))).unwrap();
    streams.finish(delivered).unwrap();
    let carried = send_all(&mut streams);
    fate(&mut streams, &carried, Fate::Acked);
    assert_eq!(streams.next_expiry(), None);
    let kept = written(&mut streams, 100);
    streams.set_expiry(kept, Some(expiry(100, 0))).unwrap();
    streams.set_expiry(kept, Some(expiry(300, 0))).unwrap();
    assert_eq!(streams.next_expiry(), Some(at(300)));
    streams.set_expiry(kept, None).unwrap();
    assert_eq!(streams.next_expiry(), None);
    events(&mut streams);
    streams.expire(at(1000));
    assert_eq!(events(&mut streams), []);
    assert_eq!(streams.stats().expired_streams, 0);
}
