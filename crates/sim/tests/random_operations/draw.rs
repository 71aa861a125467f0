//! How cases are drawn.

use proptest::prelude::*;
use swiftwater_quic::wire::{VERSION_1, VERSION_2};
use swiftwater_quic::{MultipathVersions, Priority};
use swiftwater_sim::Direction;
use swiftwater_units::{Dir, Side};

use super::plan::{Early, Marks, Op, Plan, Settings, Wire};

fn side() -> impl Strategy<Value = Side> {
    prop_oneof![Just(Side::Client), Just(Side::Server)]
}

fn dir() -> impl Strategy<Value = Dir> {
    prop_oneof![Just(Dir::Bi), Just(Dir::Uni)]
}

fn direction() -> impl Strategy<Value = Direction> {
    prop_oneof![Just(Direction::ToServer), Just(Direction::ToClient)]
}

/// Mostly nothing, sometimes up to `most`.
fn rarely(most: u32) -> impl Strategy<Value = u32> {
    prop_oneof![3 => Just(0), 1 => 0..=most]
}

fn marks() -> impl Strategy<Value = Marks> {
    prop_oneof![
        6 => Just(Marks::Kept),
        1 => Just(Marks::Cleared),
        1 => Just(Marks::AllCongested),
    ]
}

fn wire() -> impl Strategy<Value = Wire> {
    let shape = (
        prop_oneof![Just(0_u64), 1..50_u64, 1..400_u64],
        prop_oneof![3 => Just(0_u64), 1 => 0..60_u64],
        prop_oneof![1 => Just(None), 1 => (200..20_000_u64).prop_map(Some)],
        prop_oneof![1 => Just(None), 1 => (2..60_u64).prop_map(Some)],
        prop_oneof![3 => Just(None), 1 => (1..20_u64).prop_map(Some)],
    );
    let harm = (
        prop_oneof![2 => Just(0_u32), 2 => 0..10_u32, 1 => 0..=40_u32],
        rarely(30),
        rarely(20),
        rarely(40),
        0..200_u64,
        marks(),
    );
    (shape, harm).prop_map(
        |(
            (delay_ms, jitter_ms, rate_kbps, buffer_packets, mark_above),
            (loss, duplicate, corrupt, late, late_ms, marks),
        )| Wire {
            delay_ms,
            jitter_ms,
            rate_kbps,
            buffer_packets,
            loss,
            duplicate,
            corrupt,
            late,
            late_ms,
            mark_above,
            marks,
        },
    )
}

/// A size from tiny to the default.
fn window() -> impl Strategy<Value = u64> {
    prop_oneof![1 => 50..500_u64, 2 => 500..20_000_u64, 2 => Just(1 << 20)]
}

fn versions() -> impl Strategy<Value = &'static [u32]> {
    prop_oneof![
        4 => Just([VERSION_1].as_slice()),
        2 => Just([VERSION_1, VERSION_2].as_slice()),
        2 => Just([VERSION_2, VERSION_1].as_slice()),
        1 => Just([VERSION_2].as_slice()),
    ]
}

/// What there was no room for in the tuples of [`settings`].
fn more_settings() -> impl Strategy<Value = Settings> {
    (
        versions(),
        prop_oneof![3 => Just(8_usize), 1 => 4..=20_usize, 1 => Just(0)],
        prop_oneof![5 => Just(true), 1 => Just(false)],
        any::<bool>(),
        prop_oneof![3 => Just(65_527_u16), 1 => 1_200..10_000_u16],
        0..4_u8,
        prop_oneof![5 => Just(None), 1 => (100..20_000_u64).prop_map(Some)],
        any::<bool>(),
    )
        .prop_map(
            |(
                versions,
                cid_len,
                migration,
                ack_frequency,
                largest,
                handshake_copies,
                receive_rate_kbps,
                half_rtt,
            )| Settings {
                versions,
                cid_len,
                migration,
                ack_frequency,
                largest,
                handshake_copies,
                receive_rate_kbps,
                half_rtt,
                ..Settings::default()
            },
        )
}

fn settings() -> impl Strategy<Value = Settings> {
    let streams = (
        prop_oneof![0..4_u64, Just(100)],
        prop_oneof![0..4_u64, Just(100)],
        window(),
        window(),
        prop_oneof![Just(1_u64), 1..20_u64],
        prop_oneof![1 => 50..5_000_u64, 3 => Just(1 << 20)],
    );
    let timing = (
        prop_oneof![3 => Just(None), 1 => (500..40_000_u64).prop_map(Some)],
        prop_oneof![3 => Just(None), 1 => (50..10_000_u64).prop_map(Some)],
        prop_oneof![2 => Just(1_u64 << 23), 1 => 1..40_u64],
        1..12_u64,
        0..200_u64,
        prop_oneof![Just(333_u64), 1..1_000_u64],
    );
    let packets = (
        prop_oneof![1 => Just(None), 1 => (1..1_500_u64).prop_map(Some), 3 => Just(Some(65_535))],
        prop_oneof![1 => 1..4_000_u64, 2 => Just(1 << 20)],
        2..=8_u64,
        (
            prop_oneof![2 => Just(1200_u16), 1 => 1200..1500_u16],
            prop_oneof![2 => Just(1472_u16), 1 => 1200..10_000_u16],
        ),
        prop_oneof![3 => Just(3_u64), 1 => 3..10_u64],
        prop_oneof![3 => Just(None), 1 => (2_400..100_000_u64).prop_map(Some)],
        (
            any::<bool>(),
            any::<bool>(),
            any::<bool>(),
            recovery(),
            multipath(),
        ),
    );
    (streams, timing, packets, more_settings()).prop_map(
        |(
            (bidi_streams, uni_streams, stream_window, window, growth, send_window),
            (
                idle_ms,
                keep_alive_ms,
                key_update_interval,
                ack_threshold,
                max_ack_delay_ms,
                initial_rtt_ms,
            ),
            (
                datagram_frames,
                datagram_queue,
                cid_limit,
                (packet_size, bound),
                packet_threshold,
                initial_window,
                (pacing, ecn, newreno, recovery, multipath),
            ),
            more,
        )| Settings {
            bidi_streams,
            uni_streams,
            stream_window,
            window,
            growth,
            send_window,
            idle_ms,
            keep_alive_ms,
            key_update_interval,
            datagram_frames,
            datagram_queue,
            cid_limit,
            ack_threshold,
            max_ack_delay_ms,
            packet_size,
            search_up_to: Some(bound),
            packet_threshold,
            initial_rtt_ms,
            initial_window,
            pacing,
            ecn,
            newreno,
            recovery,
            multipath,
            ..more
        },
    )
}

fn early() -> impl Strategy<Value = Early> {
    prop_oneof![
        3 => Just(Early::Stranger),
        2 => Just(Early::Accepted),
        1 => Just(Early::Rejected),
        1 => Just(Early::Lowered),
    ]
}

/// Mostly the version of the RFC.
fn multipath() -> impl Strategy<Value = Option<MultipathVersions>> {
    prop_oneof![
        2 => Just(None),
        3 => Just(Some(MultipathVersions::Rfc10069)),
        1 => Just(Some(MultipathVersions::Draft10)),
        1 => Just(Some(MultipathVersions::Both)),
    ]
}

/// Mostly none, else one that has much to do.
fn recovery() -> impl Strategy<Value = &'static str> {
    prop_oneof![
        4 => Just("arq"),
        1 => Just("art"),
        1 => Just("autorec"),
        1 => Just("autorec:level=10"),
        1 => Just("autorec-paper:alpha=0ms,beta=1,gamma=1"),
        1 => Just("autorec-paper:watch=each,level=3"),
        1 => Just("autorec+:alpha=0ms,beta=1,gamma=1"),
    ]
}

fn stream_op() -> impl Strategy<Value = Op> {
    let amount = || prop_oneof![3 => 1..3_000_usize, 1 => 1..60_000_usize];
    prop_oneof![
        8 => (side(), dir()).prop_map(|(side, dir)| Op::Open(side, dir)),
        6 => (side(), dir()).prop_map(|(side, dir)| Op::Accept(side, dir)),
        12 => (side(), 0..16_usize, amount()).prop_map(|(side, stream, n)| Op::Write(side, stream, n)),
        3 => (side(), 0..16_usize).prop_map(|(side, stream)| Op::Finish(side, stream)),
        1 => (side(), 0..16_usize, 0..9_u64).prop_map(|(side, stream, code)| Op::Reset(side, stream, code)),
        2 => (side(), 0..16_usize, 0..9_u64, 0..20_000_u64)
            .prop_map(|(side, stream, code, reliable)| Op::ResetAt(side, stream, code, reliable)),
        1 => (side(), 0..16_usize, 0..9_u64).prop_map(|(side, stream, code)| Op::Stop(side, stream, code)),
        1 => (side(), 0..16_usize, 1..6_u8, any::<bool>()).prop_map(|(side, stream, urgency, incremental)| {
            Op::Priority(side, stream, Priority::new(urgency, incremental))
        }),
        1 => (side(), 0..16_usize, 0..500_u64)
            .prop_map(|(side, stream, millis)| Op::Deadline(side, stream, millis)),
        1 => (side(), 0..16_usize, 0..2_000_u64, prop_oneof![Just(0_u64), 0..20_000_u64])
            .prop_map(|(side, stream, millis, reliable)| Op::Expire(side, stream, millis, reliable)),
        8 => (side(), 0..16_usize, amount()).prop_map(|(side, stream, n)| Op::Read(side, stream, n)),
        3 => (side(), 0..1_600_usize).prop_map(|(side, len)| Op::SendDatagram(side, len)),
        2 => side().prop_map(Op::ReadDatagrams),
    ]
}

fn network_op() -> impl Strategy<Value = Op> {
    let replay = (direction(), 0..400_usize, any::<bool>(), 0..6_u8).prop_map(
        |(to, index, damaged, stranger)| Op::Replay {
            to,
            index,
            damaged,
            stranger: stranger == 0,
        },
    );
    // The null cipher hides nothing: what is kept must be too short to end in a reset token.
    let garbage = (direction(), 0..400_usize, 0..30_usize, 0..1_300_usize).prop_map(
        |(to, index, keep, len)| Op::Garbage {
            to,
            index,
            keep,
            len,
        },
    );
    prop_oneof![
        12 => prop_oneof![3 => 0..60_u64, 3 => 0..500_u64, 1 => 0..6_000_u64].prop_map(Op::Advance),
        6 => (1..12_u32).prop_map(Op::Step),
        2 => (direction(), 1..8_u32).prop_map(|(to, n)| Op::DropNext(to, n)),
        1 => (direction(), 1..4_u32).prop_map(|(to, n)| Op::CorruptNext(to, n)),
        2 => any::<bool>().prop_map(|ip| Op::Rebind { ip }),
        2 => (direction(), prop_oneof![1200..1600_usize, Just(9_000)])
            .prop_map(|(to, size)| Op::Shrink(to, size)),
        4 => (any::<bool>(), any::<bool>()).prop_map(|(away, at_once)| Op::Migrate { away, at_once }),
        4 => any::<bool>().prop_map(|away| Op::OpenPath { away }),
        // Both ends at once could abandon all paths.
        2 => (0..4_usize).prop_map(|nth| Op::AbandonPath(Side::Client, nth)),
        2 => (side(), 0..4_usize, any::<bool>())
            .prop_map(|(side, nth, backup)| Op::PathStatus(side, nth, backup)),
        1 => (side(), prop_oneof![Just(None), (100..20_000_u64).prop_map(Some)])
            .prop_map(|(side, rate)| Op::ReceiveRate(side, rate)),
        2 => side().prop_map(Op::UpdateKeys),
        2 => side().prop_map(Op::Rotate),
        1 => side().prop_map(Op::Ping),
        1 => (side(), 0..100_u32).prop_map(|(side, percent)| Op::Redundancy(side, percent)),
        3 => replay,
        1 => garbage,
    ]
}

/// Any case.
pub(crate) fn plan() -> impl Strategy<Value = Plan> {
    let op = prop_oneof![
        100 => stream_op(),
        66 => network_op(),
        1 => side().prop_map(Op::Close),
    ];
    (
        any::<u64>(),
        (wire(), wire()),
        (settings(), settings()),
        (
            prop_oneof![3 => Just(false), 1 => Just(true)],
            any::<bool>(),
            prop_oneof![3 => Just(false), 1 => Just(true)],
            early(),
        ),
        prop_oneof![Just(1_usize), 1..12_usize],
        any::<bool>(),
        // Mostly time for the handshake, so that streams are there for the rest.
        prop_oneof![1 => Just(0_u64), 2 => 500..3_000_u64],
        proptest::collection::vec(op, 1..100),
    )
        .prop_map(
            |(
                seed,
                (up, down),
                (mut client, mut server),
                (retry, searches, preferred, early),
                segments,
                finish_all,
                wait,
                mut ops,
            )| {
                ops.insert(0, Op::Advance(wait));
                // Only clients do without connection IDs.
                server.cid_len = server.cid_len.max(4);
                if !searches {
                    client.search_up_to = None;
                    server.search_up_to = None;
                }
                Plan {
                    seed,
                    wires: [up, down],
                    ends: [client, server],
                    retry,
                    early,
                    preferred,
                    segments,
                    finish_all,
                    ops,
                }
            },
        )
}
