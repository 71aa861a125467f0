//! Flow control, stream limits, stream states, final sizes (RFC 9000, sections 2 to 4).

use swiftwater_quic::wire::frame::{self, types};
use swiftwater_quic::wire::{ErrorCode, Frame};
use swiftwater_quic::{ReadOutcome, TransportConfig};
use swiftwater_units::{ByteCount, Dir, Side, StreamId};

use crate::attack::{Attack, Setup, on, on_client, on_server};

const SIDES: [Side; 2] = [Side::Client, Side::Server];

fn stream(id: StreamId, offset: u64, data: &[u8], fin: bool) -> Frame<'_> {
    Frame::Stream(frame::Stream {
        id,
        offset,
        fin,
        data,
    })
}

fn reset(id: StreamId, final_size: u64) -> Frame<'static> {
    Frame::ResetStream(frame::ResetStream {
        id,
        error: 7,
        final_size,
    })
}

/// A victim that grants 1000 bytes for a stream, 3000 in all, and four streams of each kind.
fn stingy(side: Side) -> Attack {
    let transport = TransportConfig {
        stream_receive_window: ByteCount::new(1000),
        max_stream_receive_window: ByteCount::new(1000),
        receive_window: ByteCount::new(3000),
        max_receive_window: ByteCount::new(3000),
        max_concurrent_bidi_streams: 4,
        max_concurrent_uni_streams: 4,
        ..TransportConfig::default()
    };
    let setup = Setup {
        transport,
        ..Setup::default()
    };
    match side {
        Side::Server => on_server(setup),
        Side::Client => on_client(setup),
    }
}

#[test]
fn a_stream_may_be_filled_to_its_limit_and_not_a_byte_further() {
    for side in SIDES {
        for dir in Dir::ALL {
            let id = StreamId::new(!side, dir, 0);
            let mut attack = stingy(side);
            attack.send_frames(&[stream(id, 0, &[1; 1000], false)]);
            attack.assert_open();
            attack.send_frames(&[stream(id, 1000, &[1], false)]);
            // OFF and LEN are set.
            attack.assert_closed(ErrorCode::FLOW_CONTROL_ERROR, types::STREAM | 6);
        }
    }
}

#[test]
fn stream_limit_counts_offsets_not_bytes() {
    let id = StreamId::new(Side::Client, Dir::Bi, 0);
    let mut attack = stingy(Side::Server);
    attack.send_frames(&[stream(id, 999, &[1, 2], false)]);
    attack.assert_closed(ErrorCode::FLOW_CONTROL_ERROR, types::STREAM | 6);
    // An empty frame beyond the limit is beyond the limit.
    let mut attack = stingy(Side::Server);
    attack.send_frames(&[stream(id, 1001, &[], false)]);
    attack.assert_closed(ErrorCode::FLOW_CONTROL_ERROR, types::STREAM | 6);
}

#[test]
fn the_connection_may_be_filled_to_its_limit_and_not_a_byte_further() {
    for side in SIDES {
        let id = |index| StreamId::new(!side, Dir::Uni, index);
        let mut attack = stingy(side);
        for index in 0..3 {
            attack.send_frames(&[stream(id(index), 0, &[1; 1000], false)]);
        }
        attack.assert_open();
        attack.send_frames(&[stream(id(3), 0, &[1], false)]);
        attack.assert_closed(ErrorCode::FLOW_CONTROL_ERROR, types::STREAM | 2);
    }
}

#[test]
fn gaps_count_towards_the_connections_limit() {
    let id = |index| StreamId::new(Side::Client, Dir::Uni, index);
    let mut attack = stingy(Side::Server);
    for index in 0..3 {
        attack.send_frames(&[stream(id(index), 999, &[1], false)]);
    }
    attack.assert_open();
    attack.send_frames(&[stream(id(3), 0, &[1], false)]);
    attack.assert_closed(ErrorCode::FLOW_CONTROL_ERROR, types::STREAM | 2);
}

#[test]
fn resets_are_bound_by_flow_control_too() {
    let id = |index| StreamId::new(Side::Client, Dir::Bi, index);
    let mut attack = stingy(Side::Server);
    attack.send_frames(&[reset(id(0), 1001)]);
    attack.assert_closed(ErrorCode::FLOW_CONTROL_ERROR, types::RESET_STREAM);

    // Final sizes of streams whose reset was not read yet count for the connection.
    let mut attack = stingy(Side::Server);
    let data = [1; 1000];
    attack.send_frames(&[stream(id(0), 0, &data, false)]);
    attack.send_frames(&[stream(id(1), 0, &data, false)]);
    attack.send_frames(&[stream(id(2), 0, &data, false)]);
    attack.assert_open();
    attack.send_frames(&[reset(id(3), 1)]);
    attack.assert_closed(ErrorCode::FLOW_CONTROL_ERROR, types::RESET_STREAM);
}

#[test]
fn offsets_at_the_end_of_the_number_space_are_refused() {
    let id = StreamId::new(Side::Client, Dir::Bi, 0);
    let mut attack = on(Side::Server);
    attack.send_frames(&[stream(id, (1 << 62) - 2, &[1], false)]);
    attack.assert_closed(ErrorCode::FLOW_CONTROL_ERROR, types::STREAM | 6);
    let mut attack = on(Side::Server);
    attack.send_frames(&[reset(id, (1 << 62) - 1)]);
    attack.assert_closed(ErrorCode::FLOW_CONTROL_ERROR, types::RESET_STREAM);
}

#[test]
fn every_frame_that_names_a_stream_beyond_the_limit_is_refused() {
    for side in SIDES {
        for dir in Dir::ALL {
            let last = StreamId::new(!side, dir, 3);
            let beyond = StreamId::new(!side, dir, 4);
            let mut attack = stingy(side);
            attack.send_frames(&[stream(last, 0, &[1], false)]);
            attack.assert_open();
            attack.send_frames(&[stream(beyond, 0, &[1], false)]);
            attack.assert_closed(ErrorCode::STREAM_LIMIT_ERROR, types::STREAM | 2);

            let mut frames = vec![
                reset(beyond, 0),
                Frame::StreamDataBlocked {
                    id: beyond,
                    limit: 0,
                },
            ];
            if dir == Dir::Bi {
                frames.push(Frame::StopSending(frame::StopSending {
                    id: beyond,
                    error: 0,
                }));
                frames.push(Frame::MaxStreamData {
                    id: beyond,
                    limit: 1,
                });
            }
            for frame in frames {
                let mut attack = stingy(side);
                let frame_type = frame.frame_type();
                attack.send_frames(&[frame]);
                attack.assert_closed(ErrorCode::STREAM_LIMIT_ERROR, frame_type);
            }
        }
    }
}

#[test]
fn the_largest_stream_identifier_is_beyond_the_limit() {
    for low_bits in 0..4 {
        let id = StreamId::from_wire(((1 << 62) - 4) | low_bits);
        let mut attack = on(Side::Server);
        attack.send_frames(&[stream(id, 0, &[1], false)]);
        let code = if id.initiator() == Side::Client {
            ErrorCode::STREAM_LIMIT_ERROR
        } else {
            ErrorCode::STREAM_STATE_ERROR
        };
        attack.assert_closed(code, types::STREAM | 2);
    }
}

#[test]
fn frames_against_the_direction_of_a_stream_are_refused() {
    for side in SIDES {
        // The victim receives only.
        let theirs = StreamId::new(!side, Dir::Uni, 0);
        for frame in [
            Frame::StopSending(frame::StopSending {
                id: theirs,
                error: 0,
            }),
            Frame::MaxStreamData {
                id: theirs,
                limit: 1 << 20,
            },
        ] {
            let mut attack = on(side);
            let frame_type = frame.frame_type();
            attack.send_frames(&[frame]);
            attack.assert_closed(ErrorCode::STREAM_STATE_ERROR, frame_type);
        }
        // The victim sends only.
        for frame in 0..3 {
            let mut attack = on(side);
            let ours = attack.victim.connection().open(Dir::Uni).unwrap();
            let frame = match frame {
                0 => stream(ours, 0, &[1], false),
                1 => reset(ours, 0),
                _ => Frame::StreamDataBlocked { id: ours, limit: 0 },
            };
            let frame_type = frame.frame_type();
            attack.send_frames(&[frame]);
            attack.assert_closed(ErrorCode::STREAM_STATE_ERROR, frame_type);
        }
    }
}

#[test]
fn frames_for_streams_that_the_victim_has_not_opened_are_refused() {
    for side in SIDES {
        for dir in Dir::ALL {
            let id = StreamId::new(side, dir, 0);
            let mut frames = vec![
                Frame::StopSending(frame::StopSending { id, error: 0 }),
                Frame::MaxStreamData { id, limit: 1 << 20 },
            ];
            if dir == Dir::Bi {
                frames.extend([
                    stream(id, 0, &[1], false),
                    reset(id, 0),
                    Frame::StreamDataBlocked { id, limit: 0 },
                ]);
            }
            for frame in frames {
                let mut attack = on(side);
                let frame_type = frame.frame_type();
                attack.send_frames(&[frame]);
                attack.assert_closed(ErrorCode::STREAM_STATE_ERROR, frame_type);
            }
        }
    }
}

#[test]
fn final_sizes_do_not_change() {
    let id = StreamId::new(Side::Client, Dir::Bi, 0);
    let cases: [&[Frame<'_>]; 8] = [
        // Data beyond the end; another end, earlier, later; the same by reset.
        &[stream(id, 0, b"abc", true), stream(id, 3, b"d", false)],
        &[stream(id, 0, b"abc", true), stream(id, 0, b"ab", true)],
        &[stream(id, 0, b"abc", true), stream(id, 0, b"abcd", true)],
        &[stream(id, 0, b"abc", true), reset(id, 2)],
        &[stream(id, 0, b"abc", true), reset(id, 4)],
        // An end below what was sent already.
        &[stream(id, 0, b"abc", false), stream(id, 0, b"ab", true)],
        &[stream(id, 0, b"abc", false), reset(id, 2)],
        &[reset(id, 3), reset(id, 4)],
    ];
    for case in cases {
        let mut attack = on(Side::Server);
        for frame in case {
            attack.send_frames(std::slice::from_ref(frame));
        }
        attack.assert_closed(
            ErrorCode::FINAL_SIZE_ERROR,
            case.last().unwrap().frame_type(),
        );
    }
}

#[test]
fn repetition_of_ends_and_data_is_harmless() {
    let id = StreamId::new(Side::Client, Dir::Bi, 0);
    let mut attack = on(Side::Server);
    let frames = [
        stream(id, 0, b"abc", true),
        stream(id, 0, b"abc", true),
        stream(id, 1, b"b", false),
        stream(id, 3, b"", true),
        reset(id, 3),
        reset(id, 3),
    ];
    attack.send_frames(&frames);
    attack.assert_open();
    assert_eq!(attack.victim.connection().accept(Dir::Bi), Some(id));
    let mut buf = [0; 8];
    let mut received = attack.victim.connection().recv_stream(id);
    assert_eq!(received.read(&mut buf), Ok(ReadOutcome::Data(3)));
    assert_eq!(&buf[..3], b"abc");
    assert_eq!(received.read(&mut buf), Ok(ReadOutcome::Finished));
    // The stream is over now; late copies change nothing.
    attack.send_frames(&frames);
    attack.assert_open();
}

#[test]
fn limits_that_fall_are_ignored() {
    let mut attack = on(Side::Server);
    let id = attack.victim.connection().open(Dir::Bi).unwrap();
    attack.send_frames(&[
        Frame::MaxData { limit: 0 },
        Frame::MaxStreamData { id, limit: 0 },
        Frame::MaxStreams {
            dir: Dir::Bi,
            count: 0,
        },
    ]);
    let written = attack.victim.connection().send_stream(id).write(&[1; 500]);
    assert_eq!(written, Ok(500));
    attack.pass(std::time::Duration::from_millis(100));
    assert!(
        attack
            .peer
            .count(|frame| matches!(frame, Frame::Stream(stream) if stream.data.len() == 500))
            > 0
    );
}

#[test]
fn victims_keep_the_peers_limits() {
    let mut attack = on(Side::Server);
    // 256 KiB a stream and 1 MiB in all, ten streams.
    let mut ids = Vec::new();
    while let Some(id) = attack.victim.connection().open(Dir::Uni) {
        ids.push(id);
    }
    assert_eq!(ids.len(), 10);
    // As often as there may be room in the send window.
    for _ in 0..20 {
        for &id in &ids {
            let data = vec![1; 1 << 20];
            let _ = attack.victim.connection().send_stream(id).write(&data);
        }
        attack.pass(std::time::Duration::from_secs(1));
    }
    let mut ends = [0; 10];
    for packet in &attack.peer.packets {
        for (_, frame) in packet.frames() {
            if let Frame::Stream(stream) = frame {
                let end = &mut ends[stream.id.index() as usize];
                *end = (*end).max(stream.offset + stream.data.len() as u64);
            }
        }
    }
    assert!(ends.iter().all(|&end| end <= 1 << 18), "{ends:?}");
    assert_eq!(ends.iter().sum::<u64>(), 1 << 20);
}

/// The sender must not change what it sent; if it does, each byte is read once, as it came in one of
/// the copies (RFC 9000, section 2.2).
#[test]
fn overlapping_data_that_differs_is_read_once() {
    let id = StreamId::new(Side::Client, Dir::Bi, 0);
    let mut attack = on(Side::Server);
    let held = attack.victim.meter.held();
    // Every way of overlapping, and a thousand times the same.
    attack.send_frames(&[stream(id, 10, &[1; 20], false)]);
    for n in 0..1000_u64 {
        let (value, len) = (n as u8, 1 + n % 40);
        let data = vec![value; len as usize];
        attack.send_frames(&[stream(id, n % 60, &data, false)]);
    }
    attack.send_frames(&[stream(id, 0, &[9; 10], false)]);
    let grown = attack.victim.meter.held() - held;
    assert!(grown <= 128 << 10, "{grown}");
    assert_eq!(attack.victim.connection().accept(Dir::Bi), Some(id));
    let mut buf = [0; 200];
    let mut received = attack.victim.connection().recv_stream(id);
    let end = 99;
    let mut read = 0;
    while let Ok(ReadOutcome::Data(n)) = received.read(&mut buf) {
        read += n;
    }
    assert_eq!(read, end);
    // What was read does not come back.
    attack.send_frames(&[stream(id, 0, &[8; 99], false)]);
    let mut received = attack.victim.connection().recv_stream(id);
    assert_eq!(received.read(&mut buf), Ok(ReadOutcome::Blocked));
    attack.assert_open();
}
