//! Round trips of all frames, and every rule that a single frame can break.

#![allow(
    clippy::unwrap_used,
    reason = "a helper that fails is a test that fails"
)]

use proptest::prelude::*;
use swiftwater_units::{Dir, PathId, StreamId};
use swiftwater_wire::frame::{
    self, ConnectionClose, Crypto, Feedback, FeedbackKind, FrameError, FrameIter, NewConnectionId,
    ResetStream, ResetStreamAt, StopSending, Stream, types,
};
use swiftwater_wire::{
    ConnectionId, DecodeError, ErrorCode, Frame, MultipathVersion, ResetToken, VarInt, Writer,
};

const MAX: u64 = VarInt::MAX.get();
static DATA: [u8; 300] = [0xa5; 300];

fn encode(frame: &Frame<'_>) -> Vec<u8> {
    let mut buf = vec![0xee; frame.size()];
    let mut w = Writer::new(&mut buf);
    frame.encode(&mut w);
    assert_eq!(w.remaining(), 0, "size() is exact for {frame:?}");
    buf
}

fn decode_all(bytes: &[u8]) -> Vec<Result<(u64, Frame<'_>), FrameError>> {
    FrameIter::new(bytes).collect()
}

/// The only frame in `bytes`.
fn decode(bytes: &[u8]) -> Result<Frame<'_>, DecodeError> {
    let mut frames = decode_all(bytes);
    assert_eq!(frames.len(), 1, "{bytes:02x?}");
    frames
        .remove(0)
        .map(|(_, frame)| frame)
        .map_err(|error| error.error)
}

fn assert_invalid(bytes: &[u8]) {
    let error = decode(bytes).unwrap_err();
    assert!(
        matches!(error, DecodeError::Invalid(_)),
        "{error:?} for {bytes:02x?}"
    );
    assert_eq!(error.error_code(), ErrorCode::FRAME_ENCODING_ERROR);
}

/// Encodes consecutive varints.
fn varints(values: &[u64]) -> Vec<u8> {
    let mut buf = vec![0; values.len() * 8];
    let mut w = Writer::new(&mut buf);
    for &value in values {
        w.varint(value);
    }
    let len = w.written();
    buf.truncate(len);
    buf
}

fn integer() -> impl Strategy<Value = u64> + Clone {
    (0..=MAX, 0..62_u32).prop_map(|(n, shift)| n >> shift)
}

fn data() -> impl Strategy<Value = &'static [u8]> {
    (0..=DATA.len()).prop_map(|len| &DATA[..len])
}

fn path() -> impl Strategy<Value = PathId> {
    (any::<u32>(), 0..32_u32).prop_map(|(n, shift)| PathId::new(n >> shift))
}

fn stream_id() -> impl Strategy<Value = StreamId> {
    integer().prop_map(StreamId::from_wire)
}

fn dir() -> impl Strategy<Value = Dir> {
    prop_oneof![Just(Dir::Bi), Just(Dir::Uni)]
}

/// An offset from which `data` still ends in range.
fn offset_for(offset: u64, data: &[u8]) -> u64 {
    offset.min(MAX - data.len() as u64)
}

fn stream_frame() -> impl Strategy<Value = Frame<'static>> {
    (stream_id(), integer(), any::<bool>(), data()).prop_map(|(id, offset, fin, data)| {
        Frame::Stream(Stream {
            id,
            offset: offset_for(offset, data),
            fin,
            data,
        })
    })
}

fn new_cid_frame() -> impl Strategy<Value = Frame<'static>> {
    let cid = prop::collection::vec(any::<u8>(), 1..=20);
    (
        prop::option::of(path()),
        integer(),
        integer(),
        cid,
        any::<[u8; 16]>(),
    )
        .prop_map(|(path, a, b, cid, token)| {
            Frame::NewConnectionId(NewConnectionId {
                path,
                sequence: a.max(b),
                retire_prior_to: a.min(b),
                cid: ConnectionId::new(&cid).unwrap(),
                reset_token: ResetToken(token),
            })
        })
}

fn close_frame() -> impl Strategy<Value = Frame<'static>> {
    let close = prop_oneof![
        (integer(), integer(), data()).prop_map(|(error, frame_type, reason)| {
            ConnectionClose::Transport {
                error: ErrorCode(error),
                frame_type,
                reason,
            }
        }),
        (integer(), data())
            .prop_map(|(error, reason)| ConnectionClose::Application { error, reason }),
    ];
    close.prop_map(Frame::ConnectionClose)
}

fn limit_frame() -> impl Strategy<Value = Frame<'static>> {
    let count = || 0..=frame::MAX_STREAMS;
    prop_oneof![
        integer().prop_map(|limit| Frame::MaxData { limit }),
        (stream_id(), integer()).prop_map(|(id, limit)| Frame::MaxStreamData { id, limit }),
        (dir(), count()).prop_map(|(dir, count)| Frame::MaxStreams { dir, count }),
        integer().prop_map(|limit| Frame::DataBlocked { limit }),
        (stream_id(), integer()).prop_map(|(id, limit)| Frame::StreamDataBlocked { id, limit }),
        (dir(), count()).prop_map(|(dir, limit)| Frame::StreamsBlocked { dir, limit }),
    ]
}

fn path_frame() -> impl Strategy<Value = Frame<'static>> {
    prop_oneof![
        (path(), integer()).prop_map(|(path, code)| Frame::PathAbandon {
            path,
            error: ErrorCode(code),
            reason: &[],
        }),
        (path(), integer(), any::<bool>()).prop_map(|(path, sequence, backup)| Frame::PathStatus {
            path,
            sequence,
            backup
        }),
        path().prop_map(|max| Frame::MaxPathId { max }),
        path().prop_map(|max| Frame::PathsBlocked { max }),
        (path(), integer()).prop_map(|(path, next_sequence)| Frame::PathCidsBlocked {
            path,
            next_sequence
        }),
        (prop::option::of(path()), integer())
            .prop_map(|(path, sequence)| Frame::RetireConnectionId { path, sequence }),
    ]
}

/// Every frame but acknowledgements (`acks.rs`) and padding, whose prefixes are padding.
fn feedback_frame() -> impl Strategy<Value = Frame<'static>> {
    let payload = (0..=frame::MAX_FEEDBACK_SIZE).prop_map(|len| &DATA[..len]);
    (0..16_u8, integer(), payload, any::<bool>()).prop_map(
        |(kind, sequence, payload, ack_eliciting)| {
            Frame::Feedback(Feedback {
                kind: FeedbackKind::new(kind).unwrap(),
                sequence,
                payload,
                ack_eliciting,
            })
        },
    )
}

fn any_frame() -> impl Strategy<Value = Frame<'static>> {
    prop_oneof![
        Just(Frame::Ping),
        Just(Frame::HandshakeDone),
        Just(Frame::ImmediateAck),
        (integer(), integer(), integer(), integer()).prop_map(
            |(sequence, ack_eliciting_threshold, max_ack_delay, reordering_threshold)| {
                Frame::AckFrequency(frame::AckFrequency {
                    sequence,
                    ack_eliciting_threshold,
                    max_ack_delay,
                    reordering_threshold,
                })
            }
        ),
        (stream_id(), integer(), integer()).prop_map(|(id, error, final_size)| {
            Frame::ResetStream(ResetStream {
                id,
                error,
                final_size,
            })
        }),
        (stream_id(), integer(), integer(), integer()).prop_map(|(id, error, a, b)| {
            Frame::ResetStreamAt(ResetStreamAt {
                id,
                error,
                final_size: a.max(b),
                reliable_size: a.min(b),
            })
        }),
        (stream_id(), integer())
            .prop_map(|(id, error)| Frame::StopSending(StopSending { id, error })),
        (integer(), data()).prop_map(|(offset, data)| {
            Frame::Crypto(Crypto {
                offset: offset_for(offset, data),
                data,
            })
        }),
        data()
            .prop_filter("a token is not empty", |token| !token.is_empty())
            .prop_map(|token| Frame::NewToken { token }),
        stream_frame(),
        limit_frame(),
        new_cid_frame(),
        any::<[u8; 8]>().prop_map(|data| Frame::PathChallenge { data }),
        any::<[u8; 8]>().prop_map(|data| Frame::PathResponse { data }),
        close_frame(),
        data().prop_map(|data| Frame::Datagram { data }),
        feedback_frame(),
        path_frame(),
    ]
}

proptest! {
    #[test]
    fn frames_round_trip(frames in prop::collection::vec(any_frame(), 1..12)) {
        let bytes: Vec<u8> = frames.iter().flat_map(encode).collect();
        let expected: Vec<_> =
            frames.into_iter().map(|frame| Ok((frame.frame_type(), frame))).collect();
        prop_assert_eq!(decode_all(&bytes), expected);
    }

    #[test]
    fn every_prefix_of_a_frame_is_an_error(frame in any_frame()) {
        let bytes = encode(&frame);
        for end in 1..bytes.len() {
            prop_assert_eq!(decode(&bytes[..end]), Err(DecodeError::UnexpectedEnd));
        }
    }

    /// Whatever arrives, reading ends, and what was read can be written and read again.
    #[test]
    fn any_bytes_are_read_without_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        check_payload(&bytes);
    }

    /// The same for bytes that are nearly right.
    #[test]
    fn damaged_frames_are_read_without_panic(
        frames in prop::collection::vec(any_frame(), 1..4),
        at in any::<prop::sample::Index>(),
        value in any::<u8>(),
    ) {
        let mut bytes: Vec<u8> = frames.iter().flat_map(encode).collect();
        let at = at.index(bytes.len());
        bytes[at] = value;
        check_payload(&bytes);
    }

    #[test]
    fn stream_headers_and_data_make_a_stream_frame(frame in stream_frame()) {
        let Frame::Stream(stream) = frame else { unreachable!() };
        let Stream { id, offset, fin, data } = stream;

        let mut buf = [0; 400];
        let mut w = Writer::new(&mut buf);
        frame::write_stream_header(&mut w, id, offset, data.len(), fin);
        prop_assert_eq!(w.written(), frame::stream_header_size(id, offset, data.len()));
        w.bytes(data);
        let len = w.written();
        prop_assert_eq!(&buf[..len], encode(&Frame::Stream(stream)));

        // Peers may leave the length of the last frame out.
        let mut w = Writer::new(&mut buf);
        w.varint(0x08 | if offset == 0 { 0 } else { 0x04 } | u64::from(fin));
        w.varint(id.get());
        if offset != 0 {
            w.varint(offset);
        }
        w.bytes(data);
        let len = w.written();
        prop_assert_eq!(decode(&buf[..len]), Ok(Frame::Stream(stream)));
    }

    #[test]
    fn crypto_headers_and_data_make_a_crypto_frame(offset in integer(), data in data()) {
        let offset = offset_for(offset, data);
        let mut buf = [0; 400];
        let mut w = Writer::new(&mut buf);
        frame::write_crypto_header(&mut w, offset, data.len());
        prop_assert_eq!(w.written(), frame::crypto_header_size(offset, data.len()));
        w.bytes(data);
        let len = w.written();
        prop_assert_eq!(decode(&buf[..len]), Ok(Frame::Crypto(Crypto { offset, data })));
    }
}

fn check_payload(bytes: &[u8]) {
    let frames = decode_all(bytes);
    let errors = frames.iter().filter(|frame| frame.is_err()).count();
    assert!(errors <= 1, "nothing follows an error");
    for (frame_type, frame) in frames.into_iter().flatten() {
        let version = MultipathVersion::of_frame(frame_type).unwrap_or_default();
        let mut again = vec![0; frame.size_in(version)];
        frame.encode_in(version, &mut Writer::new(&mut again));
        assert_eq!(decode(&again), Ok(frame));
    }
}

#[test]
fn an_empty_payload_has_no_frames() {
    assert!(decode_all(&[]).is_empty());
}

#[test]
fn padding_of_any_length_ends_where_another_frame_begins() {
    for length in 1..100 {
        let mut bytes = vec![0; length];
        let padding = Ok((types::PADDING, Frame::Padding { length }));
        assert!(FrameIter::new(&bytes).eq([padding.clone()]));
        bytes.extend([1, 0, 0]);
        let after = [
            padding,
            Ok((types::PING, Frame::Ping)),
            Ok((types::PADDING, Frame::Padding { length: 2 })),
        ];
        assert!(FrameIter::new(&bytes).eq(after));
    }
}

#[test]
fn padding_in_a_row_is_one_frame() {
    assert_eq!(
        decode_all(&[0, 0, 0, 1, 0]),
        [
            Ok((types::PADDING, Frame::Padding { length: 3 })),
            Ok((types::PING, Frame::Ping)),
            Ok((types::PADDING, Frame::Padding { length: 1 })),
        ]
    );
    assert_eq!(encode(&Frame::Padding { length: 4 }), [0; 4]);
}

#[test]
fn nothing_follows_an_error() {
    let unknown = FrameError {
        frame_type: 0x21,
        error: DecodeError::UnknownFrame(0x21),
    };
    assert_eq!(
        decode_all(&[1, 0x21, 1, 1]),
        [Ok((types::PING, Frame::Ping)), Err(unknown)]
    );
    assert_eq!(unknown.error.error_code(), ErrorCode::FRAME_ENCODING_ERROR);
}

#[test]
fn errors_name_the_frame() {
    let cut = FrameError {
        frame_type: types::RESET_STREAM,
        error: DecodeError::UnexpectedEnd,
    };
    assert_eq!(decode_all(&[0x04, 1, 2]), [Err(cut)]);
    let cut_type = FrameError {
        frame_type: 0,
        error: DecodeError::UnexpectedEnd,
    };
    assert_eq!(decode_all(&[0x40]), [Err(cut_type)]);
}

#[test]
fn frame_types_must_be_shortest() {
    let longer: [(&[u8], u64); 4] = [
        (&[0x40, 0x01], types::PING),
        (&[0x40, 0x00], types::PADDING),
        (&[0x80, 0, 0x3e, 0x7a, 1], types::MAX_PATH_ID),
        (&[0xc0, 0, 0, 0, 0, 0, 0, 0x1e], types::HANDSHAKE_DONE),
    ];
    for (bytes, frame_type) in longer {
        let error = DecodeError::NonMinimalFrameType(frame_type);
        assert_eq!(decode_all(bytes), [Err(FrameError { frame_type, error })]);
        assert_eq!(error.error_code(), ErrorCode::PROTOCOL_VIOLATION);
    }
}

#[test]
fn other_integers_need_not_be_shortest() {
    assert_eq!(decode(&[0x10, 0x40, 0x05]), Ok(Frame::MaxData { limit: 5 }));
}

#[test]
fn unknown_types_are_errors() {
    for frame_type in [
        0x20,
        0x2f,
        0x32,
        0x3d,
        0x40,
        0xae,
        0x3e74,
        0x3e7d,
        0x1522_8bff,
        0x1522_8c0d,
        MAX,
    ] {
        let mut bytes = varints(&[frame_type]);
        bytes.extend([0; 40]);
        assert_eq!(decode(&bytes), Err(DecodeError::UnknownFrame(frame_type)));
    }
}

#[test]
fn stream_bits_select_the_fields() {
    let id = StreamId::from_wire(4);
    let stream = |offset, fin, data| {
        Ok(Frame::Stream(Stream {
            id,
            offset,
            fin,
            data,
        }))
    };
    assert_eq!(decode(&[0x08, 4, 7, 8]), stream(0, false, &[7, 8]));
    assert_eq!(decode(&[0x09, 4, 7, 8]), stream(0, true, &[7, 8]));
    assert_eq!(decode(&[0x0a, 4, 1, 7]), stream(0, false, &[7]));
    assert_eq!(decode(&[0x0b, 4, 1, 7]), stream(0, true, &[7]));
    assert_eq!(decode(&[0x0c, 4, 9, 7, 8]), stream(9, false, &[7, 8]));
    assert_eq!(decode(&[0x0d, 4, 9]), stream(9, true, &[]));
    assert_eq!(decode(&[0x0e, 4, 9, 1, 7]), stream(9, false, &[7]));
    assert_eq!(decode(&[0x0f, 4, 9, 0]), stream(9, true, &[]));
}

#[test]
fn the_type_is_reported_as_received() {
    let (frame_type, _) = FrameIter::new(&[0x0c, 4, 0]).next().unwrap().unwrap();
    assert_eq!(frame_type, 0x0c);
}

#[test]
fn stream_data_ends_within_62_bits() {
    let mut bytes = varints(&[0x0e, 4, MAX, 0]);
    assert!(decode(&bytes).is_ok());
    bytes = varints(&[0x0e, 4, MAX, 1]);
    bytes.push(7);
    assert_invalid(&bytes);
    bytes = varints(&[0x0c, 4, MAX]);
    bytes.push(7);
    assert_invalid(&bytes);
}

#[test]
fn crypto_data_ends_within_62_bits() {
    let mut bytes = varints(&[types::CRYPTO, MAX, 0]);
    assert!(decode(&bytes).is_ok());
    bytes = varints(&[types::CRYPTO, MAX, 1]);
    bytes.push(7);
    assert_invalid(&bytes);
}

#[test]
fn stream_counts_end_at_2_to_the_60() {
    for frame_type in types::MAX_STREAMS_BIDI..=types::STREAMS_BLOCKED_UNI {
        if matches!(frame_type, types::DATA_BLOCKED | types::STREAM_DATA_BLOCKED) {
            continue;
        }
        assert!(decode(&varints(&[frame_type, 1 << 60])).is_ok());
        assert_invalid(&varints(&[frame_type, (1 << 60) + 1]));
    }
}

#[test]
fn a_new_token_is_not_empty() {
    assert_invalid(&[0x07, 0]);
    assert_eq!(decode(&[0x07, 1, 9]), Ok(Frame::NewToken { token: &[9] }));
}

#[test]
fn new_connection_ids_have_1_to_20_bytes() {
    for prefix in [
        &[types::NEW_CONNECTION_ID][..],
        &[types::PATH_NEW_CONNECTION_ID, 3],
    ] {
        for (length, valid) in [(0, false), (1, true), (20, true), (21, false), (255, false)] {
            let mut bytes = varints(prefix);
            bytes.extend([5, 2, length]);
            bytes.extend(vec![1; usize::from(length)]);
            bytes.extend([2; 16]);
            if valid {
                assert!(decode(&bytes).is_ok());
            } else {
                assert_invalid(&bytes);
            }
        }
    }
}

#[test]
fn retire_prior_to_is_at_most_the_sequence_number() {
    let mut bytes = vec![0x18, 5, 5, 1, 9];
    bytes.extend([2; 16]);
    assert!(decode(&bytes).is_ok());
    bytes[2] = 6;
    assert_invalid(&bytes);
}

#[test]
fn both_datagram_forms_are_read() {
    assert_eq!(
        decode(&[0x30, 1, 2, 3]),
        Ok(Frame::Datagram { data: &[1, 2, 3] })
    );
    assert_eq!(decode(&[0x30]), Ok(Frame::Datagram { data: &[] }));
    assert_eq!(
        decode_all(&[0x31, 2, 1, 2, 1]),
        [
            Ok((types::DATAGRAM_LEN, Frame::Datagram { data: &[1, 2] })),
            Ok((types::PING, Frame::Ping)),
        ]
    );
}

#[test]
fn path_identifiers_have_32_bits() {
    let too_large = u64::from(u32::MAX) + 1;
    for frame_type in [types::PATH_ACK, types::PATH_ACK_ECN]
        .into_iter()
        .chain(types::PATH_ABANDON..=types::PATH_CIDS_BLOCKED)
    {
        let mut bytes = varints(&[frame_type, too_large]);
        bytes.extend([0; 30]);
        let error = decode(&bytes).unwrap_err();
        assert_eq!(error, DecodeError::PathIdTooLarge(too_large));
        assert_eq!(error.error_code(), ErrorCode::PROTOCOL_VIOLATION);
    }
    let max = PathId::new(u32::MAX);
    let bytes = varints(&[types::MAX_PATH_ID, u64::from(u32::MAX)]);
    assert_eq!(decode(&bytes), Ok(Frame::MaxPathId { max }));
}

#[test]
fn path_frames_have_the_drafts_numbers() {
    let path = PathId::new(2);
    let retire = |path| Frame::RetireConnectionId { path, sequence: 7 };
    let status = |backup| Frame::PathStatus {
        path,
        sequence: 7,
        backup,
    };
    let vectors = [
        (
            Frame::PathAbandon {
                path,
                error: ErrorCode(7),
                reason: &[],
            },
            vec![0x7e, 0x75, 2, 7],
        ),
        (status(true), vec![0x7e, 0x76, 2, 7]),
        (status(false), vec![0x7e, 0x77, 2, 7]),
        (retire(Some(path)), vec![0x7e, 0x79, 2, 7]),
        (retire(None), vec![0x19, 7]),
        (Frame::MaxPathId { max: path }, vec![0x7e, 0x7a, 2]),
        (Frame::PathsBlocked { max: path }, vec![0x7e, 0x7b, 2]),
        (
            Frame::PathCidsBlocked {
                path,
                next_sequence: 7,
            },
            vec![0x7e, 0x7c, 2, 7],
        ),
    ];
    for (frame, bytes) in vectors {
        assert_eq!(encode(&frame), bytes, "{frame:?}");
        assert_eq!(decode(&bytes), Ok(frame));
    }
}

#[test]
fn only_padding_acks_and_closes_elicit_no_ack() {
    let close = ConnectionClose::Application {
        error: 0,
        reason: &[],
    };
    let silent = [
        Frame::Padding { length: 1 },
        decode(&[0x02, 0, 0, 0, 0]).unwrap(),
        decode(&[0x3e, 0, 0, 0, 0, 0]).unwrap(),
        Frame::ConnectionClose(close),
    ];
    for frame in silent {
        assert!(!frame.is_ack_eliciting(), "{frame:?}");
    }
    let eliciting = [
        Frame::Ping,
        Frame::HandshakeDone,
        Frame::Datagram { data: &[] },
        Frame::PathResponse { data: [0; 8] },
        Frame::MaxData { limit: 0 },
        Frame::PathsBlocked { max: PathId::ZERO },
    ];
    for frame in eliciting {
        assert!(frame.is_ack_eliciting(), "{frame:?}");
    }
}

#[test]
fn feedback_has_16_kinds_and_64_bytes_at_most() {
    for (frame_type, ack_eliciting) in [
        (types::FEEDBACK, true),
        (types::FEEDBACK_NOT_ELICITING, false),
    ] {
        let frame = |kind, len: u64| {
            let mut bytes = varints(&[frame_type, kind, 9, len]);
            bytes.extend(&DATA[..len as usize]);
            bytes
        };
        let bytes = frame(15, 64);
        let Frame::Feedback(feedback) = decode(&bytes).unwrap() else {
            panic!("not FEEDBACK")
        };
        assert_eq!(feedback.kind.get(), 15);
        assert_eq!((feedback.sequence, feedback.payload), (9, &DATA[..64]));
        let read = Frame::Feedback(feedback);
        assert_eq!(read.is_ack_eliciting(), ack_eliciting);
        assert_eq!(read.frame_type(), frame_type);
        assert!(decode(&frame(0, 0)).is_ok());
        assert_invalid(&frame(16, 0));
        assert_invalid(&frame(256, 0));
        assert_invalid(&frame(0, 65));
    }
    assert_eq!(FeedbackKind::new(16), None);
}
