//! Whatever is observed, the log is a log.

use std::time::Duration;

use proptest::prelude::*;
use swiftwater_qlog::{Limits, QlogObserver};
use swiftwater_quic::crypto::EncryptionLevel;
use swiftwater_quic::observe::{
    LossTrigger, Observation, Observer, Owner, Payload, Purpose, SentFrame,
};
use swiftwater_quic::policy::{Copied, DataRange, ReinjectorReport, RepairCause};
use swiftwater_quic::wire::ErrorCode;
use swiftwater_quic::{ConnectionError, DatagramFate, TransportError};
use swiftwater_units::{ByteCount, Instant, PacketNumber, PathId, Side, StreamId};

use crate::support::{Memory, events, info};

/// An observation that owns what it lends.
#[derive(Clone, Debug)]
enum Owned {
    Plain(Observation<'static>),
    Sent(PathId, EncryptionLevel, u64, usize, Vec<SentFrame>, Vec<u8>),
    Received(PathId, EncryptionLevel, u64, usize, Vec<u8>),
    Redundancy(ReinjectorReport),
    Closed(ConnectionError),
}

fn path() -> impl Strategy<Value = PathId> {
    prop_oneof![Just(PathId::ZERO), any::<u32>().prop_map(PathId::new)]
}

fn level() -> impl Strategy<Value = EncryptionLevel> {
    prop::sample::select(EncryptionLevel::ALL.to_vec())
}

fn duration() -> impl Strategy<Value = Duration> {
    (any::<u64>(), 0..1_000_000_000_u32).prop_map(|(secs, nanos)| Duration::new(secs, nanos))
}

fn frame() -> impl Strategy<Value = SentFrame> {
    let purpose = prop::sample::select(vec![
        Purpose::New,
        Purpose::Retransmission,
        Purpose::Replica,
    ]);
    prop_oneof![
        any::<u64>().prop_map(|n| SentFrame::Ack {
            largest: PacketNumber::new(n)
        }),
        (any::<u64>(), any::<u32>()).prop_map(|(offset, len)| SentFrame::Crypto { offset, len }),
        Just(SentFrame::Control),
        (
            any::<u64>(),
            any::<u64>(),
            any::<u32>(),
            any::<bool>(),
            purpose
        )
            .prop_map(|(id, offset, len, fin, purpose)| SentFrame::Stream {
                id: StreamId::from_wire(id),
                offset,
                len,
                fin,
                purpose,
            }),
    ]
}

/// Bytes of a packet: anything, or much of one kind of frame.
fn payload() -> impl Strategy<Value = Vec<u8>> {
    let frame = prop_oneof![
        prop::collection::vec(any::<u8>(), 0..20),
        Just(vec![0x01]),
        Just(vec![0x1d, 0x40, 0x7b, 3, 0xff, 0xff, b'x']),
        // An ACK of very many packets, each second one.
        Just(
            [
                vec![0x02, 0x80, 0x10, 0, 0, 3, 0x42, 0x58, 0],
                vec![0; 1200]
            ]
            .concat()
        ),
    ];
    let repeated = (frame, 1..300_usize).prop_map(|(frame, times)| frame.repeat(times));
    prop_oneof![prop::collection::vec(any::<u8>(), 0..1500), repeated]
}

fn data_range() -> impl Strategy<Value = DataRange> {
    (any::<u64>(), any::<u64>(), any::<u32>()).prop_map(|(stream, offset, len)| DataRange {
        stream: StreamId::from_wire(stream),
        offset,
        len,
    })
}

fn error() -> impl Strategy<Value = ConnectionError> {
    let transport = || {
        let code = prop_oneof![0..0x20_u64, 0x100..0x200_u64, any::<u64>()];
        (code, ".{0,400}").prop_map(|(code, reason)| TransportError::new(ErrorCode(code), reason))
    };
    prop_oneof![
        Just(ConnectionError::VersionMismatch),
        Just(ConnectionError::Reset),
        Just(ConnectionError::TimedOut),
        Just(ConnectionError::HandshakeTimedOut),
        any::<u64>().prop_map(|code| ConnectionError::LocallyClosed { code }),
        (any::<u64>(), prop::collection::vec(any::<u8>(), 0..600))
            .prop_map(|(code, reason)| ConnectionError::PeerApplication { code, reason }),
        transport().prop_map(ConnectionError::Transport),
        transport().prop_map(ConnectionError::PeerTransport),
    ]
}

fn report() -> impl Strategy<Value = ReinjectorReport> {
    let rest = (any::<usize>(), any::<Option<f64>>(), any::<u64>());
    let time = || prop::option::of(duration());
    (any::<u32>(), any::<f64>(), time(), time(), rest).prop_map(
        |(level, loss_rate, detection_time, silence_threshold, rest)| ReinjectorReport {
            redundancy_level: level,
            loss_rate,
            detection_time,
            silence_threshold,
            queued: rest.0,
            budget_used: rest.1,
            decisions: rest.2,
        },
    )
}

fn packet() -> impl Strategy<Value = Owned> {
    (path(), level(), any::<u64>(), any::<usize>(), any::<bool>()).prop_map(
        |(path, level, number, size, lost)| {
            let number = PacketNumber::new(number);
            Owned::Plain(if lost {
                Observation::PacketLost {
                    path,
                    level,
                    number,
                    size,
                    trigger: LossTrigger::TimeThreshold,
                }
            } else {
                Observation::PacketBuffered { level, size }
            })
        },
    )
}

fn metrics() -> impl Strategy<Value = Owned> {
    let rtts = (duration(), duration(), duration());
    (path(), rtts, any::<u64>(), any::<u64>(), any::<u32>()).prop_map(
        |(path, rtts, cwnd, in_flight, pto_count)| {
            Owned::Plain(Observation::Metrics {
                path,
                smoothed_rtt: rtts.0,
                latest_rtt: rtts.1,
                min_rtt: rtts.2,
                rtt_var: rtts.0,
                cwnd: ByteCount::new(cwnd),
                ssthresh: (cwnd % 2 == 0).then_some(ByteCount::new(in_flight)),
                pacing_rate: None,
                bytes_in_flight: ByteCount::new(in_flight),
                pto_count,
            })
        },
    )
}

fn repair() -> impl Strategy<Value = Owned> {
    let by = prop_oneof![
        Just(Copied::Original),
        Just(Copied::Replica),
        any::<u32>().prop_map(Copied::Retransmission)
    ];
    let counts = (any::<u32>(), any::<u32>(), any::<bool>());
    (data_range(), by, duration(), duration(), counts).prop_map(
        |(range, by, recovery_latency, detection_time, (retransmissions, replicas, lost))| {
            Owned::Plain(if lost {
                Observation::DataLost {
                    range,
                    detection_time,
                    cause: RepairCause::Probe,
                }
            } else {
                Observation::DataRecovered {
                    range,
                    by,
                    recovery_latency,
                    detection_time,
                    retransmissions,
                    replicas,
                }
            })
        },
    )
}

fn observation() -> impl Strategy<Value = Owned> {
    let frames = prop::collection::vec(frame(), 0..200);
    prop_oneof![
        (
            path(),
            level(),
            any::<u64>(),
            any::<usize>(),
            frames,
            payload()
        )
            .prop_map(|(path, level, n, size, frames, payload)| Owned::Sent(
                path, level, n, size, frames, payload
            )),
        (path(), level(), any::<u64>(), any::<usize>(), payload()).prop_map(
            |(path, level, n, size, payload)| Owned::Received(path, level, n, size, payload)
        ),
        packet(),
        metrics(),
        repair(),
        (path(), any::<u32>()).prop_map(|(path, count)| Owned::Plain(Observation::ProbeTimeout {
            path,
            level: EncryptionLevel::OneRtt,
            count
        })),
        any::<u64>().prop_map(|generation| Owned::Plain(Observation::KeyUpdated {
            generation,
            initiator: Owner::Remote
        })),
        (any::<Option<u64>>(), any::<bool>()).prop_map(|(key, is_lost)| {
            let fate = if is_lost {
                DatagramFate::Lost {
                    sent_at: Instant::ZERO,
                }
            } else {
                DatagramFate::Expired
            };
            Owned::Plain(Observation::DatagramFate { key, fate })
        }),
        report().prop_map(Owned::Redundancy),
        error().prop_map(Owned::Closed),
    ]
}

fn show(observer: &mut QlogObserver, now: Instant, owned: &Owned) {
    match owned {
        Owned::Plain(observation) => observer.observe(now, observation),
        Owned::Received(path, level, number, size, payload) => observer.observe(
            now,
            &Observation::PacketReceived {
                path: *path,
                level: *level,
                number: PacketNumber::new(*number),
                size: *size,
                payload: Payload::new(payload),
            },
        ),
        Owned::Sent(path, level, number, size, frames, payload) => observer.observe(
            now,
            &Observation::PacketSent {
                path: *path,
                level: *level,
                number: PacketNumber::new(*number),
                size: *size,
                ack_eliciting: true,
                frames,
                payload: Payload::new(payload),
                mtu_probe: false,
            },
        ),
        Owned::Redundancy(report) => observer.observe(now, &Observation::Redundancy { report }),
        Owned::Closed(reason) => observer.observe(now, &Observation::Closed { reason }),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn any_observations_make_a_valid_log(
        seen in prop::collection::vec((any::<u64>(), observation()), 0..40),
        log_bytes in prop_oneof![Just(u64::MAX), 0..100_000_u64],
    ) {
        let memory = Memory::default();
        let limits = Limits { log_bytes };
        let mut observer = QlogObserver::new(memory.clone(), &info(Side::Client), limits);
        for (now, owned) in &seen {
            show(&mut observer, Instant::from_nanos(*now), owned);
        }
        drop(observer);
        let bytes = memory.bytes();
        prop_assert!(bytes.len() as u64 <= log_bytes.max(4096), "{}", bytes.len());
        let events = events(&bytes);
        prop_assert!(seen.is_empty() || !events.is_empty());
    }
}
