//! `RESET_STREAM_AT` that breaks its rules (draft-ietf-quic-reliable-stream-reset-09).

use swiftwater_quic::wire::frame::{self, types};
use swiftwater_quic::wire::{ErrorCode, Frame};
use swiftwater_quic::{ReadError, ReadOutcome, TransportConfig};
use swiftwater_units::{ByteCount, Dir, Side, StreamId};

use crate::attack::{Attack, Setup, on, on_server};

const SIDES: [Side; 2] = [Side::Client, Side::Server];
const ID: StreamId = StreamId::new(Side::Client, Dir::Bi, 0);

fn stream(offset: u64, data: &[u8], fin: bool) -> Frame<'_> {
    Frame::Stream(frame::Stream {
        id: ID,
        offset,
        fin,
        data,
    })
}

fn reset(error: u64, final_size: u64) -> Frame<'static> {
    Frame::ResetStream(frame::ResetStream {
        id: ID,
        error,
        final_size,
    })
}

fn reset_at_of(id: StreamId, error: u64, final_size: u64, reliable_size: u64) -> Frame<'static> {
    Frame::ResetStreamAt(frame::ResetStreamAt {
        id,
        error,
        final_size,
        reliable_size,
    })
}

fn reset_at(error: u64, final_size: u64, reliable_size: u64) -> Frame<'static> {
    reset_at_of(ID, error, final_size, reliable_size)
}

/// Each frame in a packet of its own; the last one must close the connection with `code`.
fn assert_refused(frames: &[Frame<'_>], code: ErrorCode) {
    let mut attack = on(Side::Server);
    let (last, before) = frames.split_last().unwrap();
    for frame in before {
        attack.send_frames(std::slice::from_ref(frame));
        attack.assert_open();
    }
    attack.send_frames(std::slice::from_ref(last));
    attack.assert_closed(code, last.frame_type());
}

#[test]
fn a_reliable_size_above_the_final_size_is_refused() {
    for side in SIDES {
        let mut attack = on(side);
        let id = StreamId::new(!side, Dir::Uni, 0);
        attack.send_frames(&[reset_at_of(id, 7, 10, 10)]);
        attack.assert_open();
        attack.send_frames(&[reset_at_of(id, 7, 10, 11)]);
        attack.assert_closed(ErrorCode::FRAME_ENCODING_ERROR, types::RESET_STREAM_AT);
    }
}

#[test]
fn final_sizes_do_not_change() {
    let cases: [&[Frame<'_>]; 7] = [
        &[reset_at(7, 3, 2), reset_at(7, 4, 2)],
        &[reset_at(7, 3, 2), reset_at(7, 2, 2)],
        &[reset_at(7, 3, 2), reset(7, 4)],
        &[reset_at(7, 3, 2), stream(0, b"abcd", false)],
        &[reset_at(7, 3, 2), stream(0, b"ab", true)],
        &[stream(0, b"abc", false), reset_at(7, 2, 1)],
        &[stream(0, b"abc", true), reset_at(7, 4, 1)],
    ];
    for case in cases {
        assert_refused(case, ErrorCode::FINAL_SIZE_ERROR);
    }
}

#[test]
fn codes_do_not_change() {
    for last in [reset_at(8, 3, 1), reset_at(8, 3, 3), reset(8, 3)] {
        assert_refused(&[reset_at(7, 3, 2), last], ErrorCode::STREAM_STATE_ERROR);
    }
    let plain_first = [reset(7, 3), reset_at(8, 3, 0)];
    assert_refused(&plain_first, ErrorCode::STREAM_STATE_ERROR);
}

#[test]
fn partial_resets_are_bound_by_flow_control() {
    let transport = TransportConfig {
        stream_receive_window: ByteCount::new(1000),
        max_stream_receive_window: ByteCount::new(1000),
        receive_window: ByteCount::new(1500),
        max_receive_window: ByteCount::new(1500),
        ..TransportConfig::default()
    };
    let victim = || {
        on_server(Setup {
            transport: transport.clone(),
            ..Setup::default()
        })
    };
    let flow = ErrorCode::FLOW_CONTROL_ERROR;
    let mut attack = victim();
    attack.send_frames(&[reset_at(7, 1001, 1)]);
    attack.assert_closed(flow, types::RESET_STREAM_AT);
    // What a reset abandons is free again; its reliable size is not.
    let second = StreamId::new(Side::Client, Dir::Bi, 1);
    let mut attack = victim();
    attack.send_frames(&[reset_at(7, 1000, 600)]);
    attack.send_frames(&[reset_at_of(second, 7, 1000, 1000)]);
    attack.assert_closed(flow, types::RESET_STREAM_AT);
}

#[test]
fn streams_without_that_direction_or_not_opened_are_refused() {
    for side in SIDES {
        let mut attack = on(side);
        let ours = attack.victim.connection().open(Dir::Uni).unwrap();
        attack.send_frames(&[reset_at_of(ours, 7, 0, 0)]);
        attack.assert_closed(ErrorCode::STREAM_STATE_ERROR, types::RESET_STREAM_AT);
        let mut attack = on(side);
        let unopened = StreamId::new(side, Dir::Bi, 0);
        attack.send_frames(&[reset_at_of(unopened, 7, 0, 0)]);
        attack.assert_closed(ErrorCode::STREAM_STATE_ERROR, types::RESET_STREAM_AT);
    }
}

#[test]
fn the_frame_is_refused_if_it_was_not_offered() {
    let mut attack = on_server(Setup {
        transport: TransportConfig {
            reset_stream_at: false,
            ..TransportConfig::default()
        },
        ..Setup::default()
    });
    attack.send_frames(&[reset_at(7, 3, 2)]);
    attack.assert_closed(ErrorCode::PROTOCOL_VIOLATION, types::RESET_STREAM_AT);
}

/// Reads the stream to its end; returns the bytes.
fn read(attack: &mut Attack) -> (Vec<u8>, Result<ReadOutcome, ReadError>) {
    let mut data = Vec::new();
    let mut buf = [0; 64];
    let mut stream = attack.victim.connection().recv_stream(ID);
    loop {
        match stream.read(&mut buf) {
            Ok(ReadOutcome::Data(n)) => data.extend_from_slice(&buf[..n]),
            end => return (data, end),
        }
    }
}

#[test]
fn a_reliable_size_that_rises_is_ignored() {
    let mut attack = on(Side::Server);
    attack.send_frames(&[
        stream(0, b"ab", false),
        reset_at(7, 10, 4),
        reset_at(7, 10, 2),
        reset_at(7, 10, 6),
    ]);
    attack.assert_open();
    assert_eq!(attack.victim.connection().accept(Dir::Bi), Some(ID));
    assert_eq!(
        read(&mut attack),
        (b"ab".to_vec(), Err(ReadError::Reset(7)))
    );
    // Late news of a stream that is over.
    attack.send_frames(&[reset_at(7, 10, 9), reset_at(9, 11, 9)]);
    attack.assert_open();
}

#[test]
fn reliable_bytes_that_never_come_hold_no_more_than_the_window() {
    // Each stream's first byte is reliable, which never comes, and has all others sent.
    let window = 100_000;
    let mut attack = on_server(Setup {
        transport: TransportConfig {
            max_concurrent_uni_streams: 10_000,
            receive_window: ByteCount::new(window),
            max_receive_window: ByteCount::new(window),
            ..TransportConfig::default()
        },
        ..Setup::default()
    });
    for index in 0..1000 {
        let id = StreamId::new(Side::Client, Dir::Uni, index);
        let data = Frame::Stream(frame::Stream {
            id,
            offset: 1,
            fin: false,
            data: &[1; 1000],
        });
        attack.send_frames(&[data]);
        attack.send_frames(&[reset_at_of(id, 7, 1001, 1)]);
    }
    attack.assert_open();
    let held = attack.victim.connection().stats().receive_buffered;
    assert_eq!(held, ByteCount::new(1000), "a byte for each reset");
}
