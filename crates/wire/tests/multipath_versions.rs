//! The frames of the multipath extension in its versions (draft-ietf-quic-multipath-21, section 4; -10, section
//! 7).

#![allow(
    clippy::unwrap_used,
    reason = "a helper that fails is a test that fails"
)]

use proptest::prelude::*;
use swiftwater_units::PathId;
use swiftwater_wire::frame::{
    FrameError, FrameIter, NewConnectionId, types, types::draft10, write_ack,
};
use swiftwater_wire::{
    ConnectionId, DecodeError, ErrorCode, Frame, MultipathVersion, ResetToken, VarInt, Writer,
};

use MultipathVersion::{Draft10, Rfc10069};

const DRAFT_TYPES: [u64; 8] = [
    draft10::PATH_ACK,
    draft10::PATH_ACK_ECN,
    draft10::PATH_ABANDON,
    draft10::PATH_STATUS_BACKUP,
    draft10::PATH_STATUS_AVAILABLE,
    draft10::PATH_NEW_CONNECTION_ID,
    draft10::PATH_RETIRE_CONNECTION_ID,
    draft10::MAX_PATH_ID,
];
static REASON: [u8; 70] = [b'x'; 70];

fn encode(version: MultipathVersion, frame: &Frame<'_>) -> Vec<u8> {
    let mut buf = vec![0xee; frame.size_in(version)];
    let mut w = Writer::new(&mut buf);
    frame.encode_in(version, &mut w);
    assert_eq!(w.remaining(), 0, "size_in() is exact for {frame:?}");
    buf
}

fn decode(bytes: &[u8]) -> Result<(u64, Frame<'_>), FrameError> {
    let mut frames = FrameIter::new(bytes);
    let frame = frames.next().unwrap();
    assert_eq!(frames.next(), None, "{bytes:02x?}");
    frame
}

/// 0x15228c00 and what is added to it as a varint of four bytes.
fn draft_frame(last: u8, fields: &[u8]) -> Vec<u8> {
    [&[0x95, 0x22, 0x8c, last], fields].concat()
}

#[test]
fn frames_of_draft_10_have_its_numbers() {
    let path = PathId::new(2);
    let status = |backup| Frame::PathStatus {
        path,
        sequence: 7,
        backup,
    };
    let cid = NewConnectionId {
        path: Some(path),
        sequence: 7,
        retire_prior_to: 1,
        cid: ConnectionId::new(&[9]).unwrap(),
        reset_token: ResetToken([4; 16]),
    };
    let new_cid = [&[2, 7, 1, 1, 9][..], &[4; 16]].concat();
    let abandon = |reason| Frame::PathAbandon {
        path,
        error: ErrorCode(7),
        reason,
    };
    let vectors = [
        (abandon(&[]), draft_frame(5, &[2, 7, 0])),
        (abandon(b"gone"), draft_frame(5, b"\x02\x07\x04gone")),
        (status(true), draft_frame(7, &[2, 7])),
        (status(false), draft_frame(8, &[2, 7])),
        (Frame::NewConnectionId(cid), draft_frame(9, &new_cid)),
        (
            Frame::RetireConnectionId {
                path: Some(path),
                sequence: 7,
            },
            draft_frame(0x0a, &[2, 7]),
        ),
        (Frame::MaxPathId { max: path }, draft_frame(0x0c, &[2])),
    ];
    for (frame, bytes) in vectors {
        assert_eq!(encode(Draft10, &frame), bytes, "{frame:?}");
        let frame_type = frame.frame_type_in(Draft10);
        assert_eq!(MultipathVersion::of_frame(frame_type), Some(Draft10));
        assert_eq!(decode(&bytes), Ok((frame_type, frame)));
    }
}

#[test]
fn acknowledgements_of_draft_10_have_its_numbers() {
    for (ecn, last, counts) in [(None, 0, &[][..]), (Some([1, 2, 3]), 1, &[1, 2, 3][..])] {
        let mut buf = [0; 32];
        let mut w = Writer::new(&mut buf);
        let ranges = [4..=5].into_iter();
        let named = (Draft10, Some(PathId::new(9)));
        assert_eq!(
            write_ack(&mut w, named, ranges.clone(), 1, ecn, 32),
            Some(1)
        );
        let written = w.written();
        let expected = draft_frame(last, &[&[9, 5, 1, 0, 1][..], counts].concat());
        assert_eq!(buf[..written], expected);
        let (frame_type, frame) = decode(&expected).unwrap();
        assert_eq!(frame_type, draft10::PATH_ACK + u64::from(last));
        assert_eq!(encode(Draft10, &frame), expected);
        // Without a path it is the ACK of RFC 9000.
        let mut w = Writer::new(&mut buf);
        write_ack(&mut w, (Draft10, None), ranges.clone(), 1, ecn, 32).unwrap();
        assert_eq!(buf[0], 2 + last);
        // One byte less than it needs is not enough.
        let mut w = Writer::new(&mut buf);
        let room = expected.len() - 1;
        assert_eq!(write_ack(&mut w, named, ranges, 1, ecn, room), None);
    }
}

#[test]
fn each_type_belongs_to_one_version() {
    let rfc = [types::PATH_ACK, types::PATH_ACK_ECN]
        .into_iter()
        .chain(types::PATH_ABANDON..=types::PATH_CIDS_BLOCKED);
    for frame_type in rfc {
        assert_eq!(MultipathVersion::of_frame(frame_type), Some(Rfc10069));
    }
    for frame_type in DRAFT_TYPES {
        assert_eq!(MultipathVersion::of_frame(frame_type), Some(Draft10));
    }
    // Numbers of other drafts, and what xquic adds (0x15228cff).
    for last in [0x02, 0x03, 0x04, 0x06, 0x0b, 0x0d, 0x0e, 0xff] {
        let frame_type = draft10::PATH_ACK + last;
        assert_eq!(MultipathVersion::of_frame(frame_type), None);
        let bytes = draft_frame(last as u8, &[0; 30]);
        let error = decode(&bytes).unwrap_err().error;
        assert_eq!(error, DecodeError::UnknownFrame(frame_type));
    }
    for frame_type in [types::ACK, types::NEW_CONNECTION_ID, types::ACK_FREQUENCY] {
        assert_eq!(MultipathVersion::of_frame(frame_type), None);
    }
}

#[test]
fn path_identifiers_have_32_bits_in_draft_10() {
    let too_large = u64::from(u32::MAX) + 1;
    for frame_type in DRAFT_TYPES {
        let mut buf = [0; 64];
        let mut w = Writer::new(&mut buf);
        w.varint(frame_type);
        w.varint(too_large);
        let error = decode(&buf).unwrap_err();
        assert_eq!(error.error, DecodeError::PathIdTooLarge(too_large));
        assert_eq!(error.error_code(), ErrorCode::MP_PROTOCOL_VIOLATION);
    }
    let code = ErrorCode::MP_PROTOCOL_VIOLATION;
    assert_eq!(code.0, 0x1001_d76d_3ded_42f3);
    assert_eq!(code.name(), Some("MP_PROTOCOL_VIOLATION"));
}

fn path() -> impl Strategy<Value = PathId> {
    (any::<u32>(), 0..32_u32).prop_map(|(n, shift)| PathId::new(n >> shift))
}

fn integer() -> impl Strategy<Value = u64> {
    (0..=VarInt::MAX.get(), 0..62_u32).prop_map(|(n, shift)| n >> shift)
}

/// A frame that both versions have.
fn frame() -> impl Strategy<Value = Frame<'static>> {
    let cid = (path(), integer(), integer(), 1..=20_usize);
    prop_oneof![
        (path(), integer(), 0..REASON.len()).prop_map(|(path, code, len)| Frame::PathAbandon {
            path,
            error: ErrorCode(code),
            reason: &REASON[..len],
        }),
        (path(), integer(), any::<bool>()).prop_map(|(path, sequence, backup)| {
            Frame::PathStatus {
                path,
                sequence,
                backup,
            }
        }),
        path().prop_map(|max| Frame::MaxPathId { max }),
        (path(), integer()).prop_map(|(path, sequence)| Frame::RetireConnectionId {
            path: Some(path),
            sequence,
        }),
        cid.prop_map(|(path, a, b, len)| Frame::NewConnectionId(NewConnectionId {
            path: Some(path),
            sequence: a.max(b),
            retire_prior_to: a.min(b),
            cid: ConnectionId::new(&REASON[..len]).unwrap(),
            reset_token: ResetToken([7; 16]),
        })),
    ]
}

proptest! {
    #[test]
    fn frames_of_draft_10_round_trip(frames in prop::collection::vec(frame(), 1..8)) {
        let bytes: Vec<u8> = frames.iter().flat_map(|frame| encode(Draft10, frame)).collect();
        let expected: Vec<_> = frames
            .into_iter()
            .map(|frame| Ok((frame.frame_type_in(Draft10), frame)))
            .collect();
        prop_assert_eq!(FrameIter::new(&bytes).collect::<Vec<_>>(), expected);
    }

    #[test]
    fn every_prefix_of_a_frame_of_draft_10_is_an_error(frame in frame()) {
        let bytes = encode(Draft10, &frame);
        for end in 1..bytes.len() {
            let error = decode(&bytes[..end]).unwrap_err().error;
            prop_assert_eq!(error, DecodeError::UnexpectedEnd);
        }
    }

    /// What is read in one version can be written in the other, without the reason phrase that only one has.
    #[test]
    fn frames_translate_between_versions(frame in frame()) {
        let bytes = encode(Rfc10069, &frame);
        let (_, read) = decode(&bytes).unwrap();
        let again = encode(Draft10, &read);
        let (_, read_again) = decode(&again).unwrap();
        prop_assert_eq!(read, read_again);
    }
}
