//! Frames and capsules in any fragmentation, with arbitrary bytes (RFC 9114, section 7.1; RFC 9297,
//! section 3.2).

use bytes::Bytes;
use proptest::collection::vec;
use proptest::prelude::*;
use swiftwater_http::h3::capsule::{Capsule, CapsuleReader, TruncatedCapsule};
use swiftwater_http::h3::frame::{FrameParser, FrameType, Token, put_frame};
use swiftwater_http::h3::{Code, Priority, Settings, StreamType};

type Frames = Vec<(FrameType, Vec<u8>, bool)>;

/// The frames of a fragmented stream: type, payload, whether it is complete.
fn parse(pieces: &[&[u8]]) -> (Frames, bool) {
    let mut parser = FrameParser::default();
    let mut frames = Frames::new();
    for piece in pieces {
        let mut data = *piece;
        while let Some(token) = parser.next(&mut data) {
            match token {
                Token::Begin { frame_type, .. } => frames.push((frame_type, Vec::new(), false)),
                Token::Payload(payload) => {
                    assert!(!payload.is_empty());
                    frames.last_mut().unwrap().1.extend_from_slice(payload);
                }
                Token::End => frames.last_mut().unwrap().2 = true,
            }
        }
        assert!(data.is_empty(), "bytes left");
    }
    (frames, parser.is_between_frames())
}

/// `bytes` cut at these places.
fn cut<'a>(bytes: &'a [u8], places: &[prop::sample::Index]) -> Vec<&'a [u8]> {
    let mut places: Vec<_> = places
        .iter()
        .map(|place| place.index(bytes.len() + 1))
        .collect();
    places.sort_unstable();
    let mut pieces = Vec::new();
    let mut last = 0;
    for place in places {
        pieces.push(&bytes[last..place]);
        last = place;
    }
    pieces.push(&bytes[last..]);
    pieces
}

fn frame_type() -> impl Strategy<Value = FrameType> {
    prop_oneof![0_u64..0x50, 0xf_0700..0xf_0702_u64, 0..(1_u64 << 62)]
        .prop_map(FrameType::from_wire)
}

proptest! {
    #[test]
    fn frames_come_out_as_they_went_in(
        frames in vec((frame_type(), vec(any::<u8>(), 0..300)), 0..8),
        places in vec(any::<prop::sample::Index>(), 0..12),
    ) {
        let mut bytes = Vec::new();
        for (frame_type, payload) in &frames {
            put_frame(&mut bytes, *frame_type, payload);
        }
        let (parsed, complete) = parse(&cut(&bytes, &places));
        prop_assert!(complete);
        let expected: Frames = frames
            .into_iter()
            .map(|(frame_type, payload)| (frame_type, payload, true))
            .collect();
        prop_assert_eq!(parsed, expected);
    }

    #[test]
    fn pieces_make_no_difference(
        bytes in vec(any::<u8>(), 0..200),
        places in vec(any::<prop::sample::Index>(), 0..12),
    ) {
        prop_assert_eq!(parse(&cut(&bytes, &places)), parse(&[&bytes]));
    }

    #[test]
    fn capsules_come_out_as_they_went_in(
        capsules in vec((0..(1_u64 << 62), vec(any::<u8>(), 0..200)), 0..8),
        places in vec(any::<prop::sample::Index>(), 0..12),
        max in 0_u64..250,
    ) {
        let mut bytes = Vec::new();
        let capsules: Vec<_> = capsules
            .into_iter()
            .map(|(capsule_type, value)| Capsule { capsule_type, value: value.into() })
            .collect();
        for capsule in &capsules {
            capsule.encode(&mut bytes);
        }
        let mut reader = CapsuleReader::new(max);
        let mut read = Vec::new();
        for piece in cut(&bytes, &places) {
            let mut data = Bytes::copy_from_slice(piece);
            while let Some(capsule) = reader.next(&mut data) {
                read.push(capsule);
            }
            prop_assert!(data.is_empty());
        }
        prop_assert_eq!(reader.finish(), Ok(()));
        let (short, long): (Vec<_>, Vec<_>) = capsules
            .into_iter()
            .partition(|capsule| capsule.value.len() as u64 <= max);
        prop_assert_eq!(read, short);
        prop_assert_eq!(reader.skipped(), long.len() as u64);
    }

    #[test]
    fn settings_come_out_as_they_went_in(
        numbers in [0..(1_u64 << 62), 0..(1_u64 << 62), 0..(1_u64 << 62), 0..(1_u64 << 62)],
        section in any::<bool>(),
        flags in any::<[bool; 2]>(),
    ) {
        let settings = Settings {
            qpack_max_table_capacity: numbers[0],
            qpack_blocked_streams: numbers[1],
            max_field_section_size: section.then_some(numbers[2]),
            enable_connect_protocol: flags[0],
            h3_datagram: flags[1],
            webtransport_sessions: numbers[3],
        };
        prop_assert_eq!(Settings::from_bytes(&settings.to_bytes()), Some(settings));
    }

    #[test]
    fn whatever_a_peer_writes_is_read_without_panic(bytes in vec(any::<u8>(), 0..200)) {
        let _ = Settings::from_bytes(&bytes);
        let priority = Priority::parse(&bytes);
        prop_assert!(priority.urgency <= Priority::MAX_URGENCY);
        let mut data = Bytes::from(bytes);
        let mut reader = CapsuleReader::new(100);
        while reader.next(&mut data).is_some() {}
    }
}

#[test]
fn a_capsule_that_is_cut_off_is_noticed() {
    let mut bytes = Vec::new();
    Capsule::datagram(Bytes::from_static(b"12345")).encode(&mut bytes);
    for max in [2, 100] {
        for len in 0..=bytes.len() {
            let mut reader = CapsuleReader::new(max);
            let mut data = Bytes::copy_from_slice(&bytes[..len]);
            while reader.next(&mut data).is_some() {}
            let whole = len == 0 || len == bytes.len();
            assert_eq!(reader.finish(), whole.then_some(()).ok_or(TruncatedCapsule));
        }
    }
}

#[test]
fn types_are_their_numbers() {
    for n in (0..0x60).chain(0xf_06f0..0xf_0710) {
        assert_eq!(FrameType::from_wire(n).to_wire(), n);
        assert_eq!(StreamType::from_wire(n).to_wire(), n);
    }
}

#[test]
fn codes_have_their_names() {
    assert_eq!(Code::NO_ERROR.to_string(), "H3_NO_ERROR");
    assert_eq!(Code(0x10b).to_string(), "H3_REQUEST_REJECTED");
    assert_eq!(Code(0x33).to_string(), "H3_DATAGRAM_ERROR");
    assert_eq!(Code(0xabc).to_string(), "0xabc");
}
