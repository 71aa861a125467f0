//! QoE signals: what they say survives encoding, and no payload of a peer does harm.

use std::time::Duration;

use proptest::prelude::*;
use swiftwater_quic::policy::{
    ChunkExpectation, FeedbackKind, FeedbackPayload, PathShare, PathShares, PlayerSignal,
    QoeSignal, RangeDeadline,
};
use swiftwater_units::{Bandwidth, ByteCount, PathId, StreamId};

fn player() -> PlayerSignal {
    PlayerSignal {
        stream: None,
        cached_bytes: ByteCount::new(250_000),
        cached_frames: 50,
        bitrate: Bandwidth::from_mbps(1),
        fps: 20.0,
        stalled: false,
    }
}

fn round_trip(signal: &QoeSignal) -> Option<QoeSignal> {
    let payload = signal.encode(64)?;
    QoeSignal::decode(signal.kind(), &payload)
}

#[test]
fn play_time_is_the_smaller_of_both_estimates() {
    let seconds = |signal: PlayerSignal| signal.play_time().map(|time| time.as_secs_f64());
    let signal = player();
    assert_eq!(seconds(signal), Some(2.0));
    assert_eq!(seconds(PlayerSignal { fps: 0.0, ..signal }), Some(2.0));
    assert_eq!(
        seconds(PlayerSignal {
            fps: 50.0,
            ..signal
        }),
        Some(1.0)
    );
    let slow = Bandwidth::from_kbps(1);
    let frames_first = PlayerSignal {
        fps: 25.0,
        bitrate: slow,
        ..signal
    };
    assert_eq!(seconds(frames_first), Some(2.0));
    let unknown = PlayerSignal {
        fps: f64::NAN,
        bitrate: Bandwidth::ZERO,
        ..signal
    };
    assert_eq!(seconds(unknown), None);
}

#[test]
fn times_are_rounded_up_to_milliseconds() {
    let signal = QoeSignal::Expectation(ChunkExpectation {
        chunk: 7,
        expected_time: Duration::from_micros(1_200_001),
    });
    let Some(QoeSignal::Expectation(received)) = round_trip(&signal) else {
        panic!("an expectation");
    };
    assert_eq!(received.expected_time, Duration::from_millis(1_201));
}

#[test]
fn paths_with_the_least_shares_are_left_out_of_a_small_message() {
    let path = |id: u32, share| PathShare {
        path: PathId::new(id),
        share,
        rate: Bandwidth::from_mbps(20),
        rtt: Duration::from_millis(40),
    };
    let paths = vec![path(0, 0.125), path(1, 0.625), path(2, 0.25)];
    let signal = QoeSignal::Shares(PathShares { chunk: 3, paths });
    let named = |size| {
        let payload = signal.encode(size)?;
        match QoeSignal::decode(QoeSignal::SHARES, &payload)? {
            QoeSignal::Shares(shares) => Some(
                shares
                    .paths
                    .iter()
                    .map(|share| share.path.get())
                    .collect::<Vec<_>>(),
            ),
            _ => None,
        }
    };
    assert_eq!(named(64), Some(vec![1, 2, 0]));
    assert_eq!(named(30), Some(vec![1, 2]));
    assert_eq!(named(2), Some(vec![]));
    assert_eq!(named(1), None);
}

#[test]
fn a_truncated_message_and_an_unknown_kind_say_nothing() {
    let payload = QoeSignal::Player(player()).encode(64).unwrap();
    let bytes = payload.as_bytes();
    for len in 0..bytes.len() {
        let cut = FeedbackPayload::new(&bytes[..len]).unwrap();
        assert_eq!(QoeSignal::decode(QoeSignal::PLAYER, &cut), None);
    }
    for kind in [0, 5, 15].map(|kind| FeedbackKind::new(kind).unwrap()) {
        assert_eq!(QoeSignal::decode(kind, &payload), None);
    }
}

#[test]
fn fields_of_a_later_version_are_skipped() {
    let payload = QoeSignal::Player(player()).encode(64).unwrap();
    let longer = [payload.as_bytes(), &[1, 2, 3]].concat();
    let longer = FeedbackPayload::new(&longer).unwrap();
    let decoded = QoeSignal::decode(QoeSignal::PLAYER, &longer);
    assert_eq!(decoded, Some(QoeSignal::Player(player())));
}

fn signals() -> impl Strategy<Value = QoeSignal> {
    let field = 0_u64..1 << 40;
    let player = (
        proptest::option::of(0_u64..1 << 40),
        field.clone(),
        0_u64..1 << 20,
        0_u64..1 << 34,
    )
        .prop_flat_map(|(stream, bytes, frames, bps)| {
            (0_u32..240_000, any::<bool>()).prop_map(move |(fps, stalled)| {
                QoeSignal::Player(PlayerSignal {
                    stream: stream.map(StreamId::from_wire),
                    cached_bytes: ByteCount::new(bytes),
                    cached_frames: frames,
                    bitrate: Bandwidth::from_bps(bps),
                    fps: f64::from(fps) / 1e3,
                    stalled,
                })
            })
        });
    let expectation = (field.clone(), 0_u64..1 << 32).prop_map(|(chunk, millis)| {
        QoeSignal::Expectation(ChunkExpectation {
            chunk,
            expected_time: Duration::from_millis(millis),
        })
    });
    let share = (0_u32..64, 0_u32..=1_000_000, 0_u64..1 << 28, 0_u64..1 << 28).prop_map(
        |(id, share, kbps, micros)| PathShare {
            path: PathId::new(id),
            share: f64::from(share) / 1e6,
            rate: Bandwidth::from_kbps(kbps),
            rtt: Duration::from_micros(micros),
        },
    );
    let shares =
        (0_u64..1 << 13, proptest::collection::vec(share, 0..4)).prop_map(|(chunk, mut paths)| {
            paths.sort_by(|a, b| b.share.total_cmp(&a.share).then(a.path.cmp(&b.path)));
            QoeSignal::Shares(PathShares { chunk, paths })
        });
    let deadline = (field.clone(), field.clone(), field, 0_u64..1 << 32).prop_map(
        |(stream, offset, len, millis)| {
            QoeSignal::Deadline(RangeDeadline {
                stream: StreamId::from_wire(stream),
                offset,
                len,
                deadline: Duration::from_millis(millis),
            })
        },
    );
    prop_oneof![player, expectation, shares, deadline]
}

proptest! {
    #[test]
    fn what_is_encoded_is_decoded(signal in signals()) {
        prop_assert_eq!(round_trip(&signal), Some(signal));
    }

    #[test]
    fn any_payload_is_read_or_refused(
        kind in 0_u8..16, bytes in proptest::collection::vec(any::<u8>(), 0..=64),
    ) {
        let payload = FeedbackPayload::new(&bytes).unwrap();
        let Some(signal) = QoeSignal::decode(FeedbackKind::new(kind).unwrap(), &payload) else {
            return Ok(());
        };
        prop_assert_eq!(signal.kind().get(), kind);
        // What was understood can be said again.
        prop_assert!(signal.encode(64).is_some());
    }
}
