//! What a case is made of, and how cases are drawn.
//!
//! A plan that failed is printed as it would be written in `regressions.rs`, give or take imports.

use std::time::Duration;

use proptest::prelude::*;
use swiftwater_sim::Direction;
use swiftwater_units::{Dir, Side};

/// What a path does to ECN marks.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Marks {
    Kept,
    Cleared,
    AllCongested,
}

/// One direction of the path. What is random, except jitter and duplicates, ends when the network
/// heals.
#[derive(Clone, Debug)]
pub(crate) struct Wire {
    pub(crate) delay_ms: u64,
    pub(crate) jitter_ms: u64,
    pub(crate) rate_kbps: Option<u64>,
    /// Only with a rate.
    pub(crate) buffer_packets: Option<u64>,
    /// Percent.
    pub(crate) loss: u32,
    /// Percent.
    pub(crate) duplicate: u32,
    /// Percent.
    pub(crate) corrupt: u32,
    /// Percent that arrive `late_ms` later.
    pub(crate) late: u32,
    pub(crate) late_ms: u64,
    /// Queue length from which packets are marked.
    pub(crate) mark_above: Option<u64>,
    pub(crate) marks: Marks,
}

impl Default for Wire {
    fn default() -> Self {
        Self {
            delay_ms: 10,
            jitter_ms: 0,
            rate_kbps: None,
            buffer_packets: None,
            loss: 0,
            duplicate: 0,
            corrupt: 0,
            late: 0,
            late_ms: 0,
            mark_above: None,
            marks: Marks::Kept,
        }
    }
}

/// One end's configuration.
#[derive(Clone, Debug)]
pub(crate) struct Settings {
    pub(crate) bidi_streams: u64,
    pub(crate) uni_streams: u64,
    pub(crate) stream_window: u64,
    pub(crate) window: u64,
    /// The windows may grow to so many times their size.
    pub(crate) growth: u64,
    pub(crate) send_window: u64,
    pub(crate) idle_ms: Option<u64>,
    pub(crate) keep_alive_ms: Option<u64>,
    pub(crate) key_update_interval: u64,
    pub(crate) datagram_frames: Option<u64>,
    pub(crate) datagram_queue: u64,
    pub(crate) cid_limit: u64,
    pub(crate) ack_threshold: u64,
    pub(crate) max_ack_delay_ms: u64,
    pub(crate) packet_size: u16,
    pub(crate) packet_threshold: u64,
    pub(crate) initial_rtt_ms: u64,
    pub(crate) initial_window: Option<u64>,
    pub(crate) pacing: bool,
    pub(crate) ecn: bool,
    pub(crate) newreno: bool,
    /// Recovery policies, as named by the catalogue.
    pub(crate) recovery: &'static str,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            bidi_streams: 100,
            uni_streams: 100,
            stream_window: 1 << 20,
            window: 3 << 19,
            growth: 16,
            send_window: 16 << 20,
            idle_ms: None,
            keep_alive_ms: None,
            key_update_interval: 1 << 23,
            datagram_frames: Some(65_535),
            datagram_queue: 1 << 20,
            cid_limit: 4,
            ack_threshold: 2,
            max_ack_delay_ms: 25,
            packet_size: 1200,
            packet_threshold: 3,
            initial_rtt_ms: 333,
            initial_window: None,
            pacing: true,
            ecn: true,
            newreno: false,
            recovery: "arq",
        }
    }
}

impl Settings {
    pub(crate) fn idle(&self) -> Option<Duration> {
        self.idle_ms.map(Duration::from_millis)
    }
}

/// One operation. Streams are chosen among those that the side knows, round and round.
#[derive(Clone, Debug)]
pub(crate) enum Op {
    Open(Side, Dir),
    Accept(Side, Dir),
    Write(Side, usize, usize),
    Finish(Side, usize),
    Reset(Side, usize, u64),
    Stop(Side, usize, u64),
    Priority(Side, usize, i32),
    Read(Side, usize, usize),
    SendDatagram(Side, usize),
    ReadDatagrams(Side),
    /// Milliseconds.
    Advance(u64),
    /// Lets so many events happen.
    Step(u32),
    DropNext(Direction, u32),
    CorruptNext(Direction, u32),
    /// The client's NAT gives it another port, or another address.
    Rebind {
        ip: bool,
    },
    UpdateKeys(Side),
    Rotate(Side),
    Ping(Side),
    /// Changes the redundancy that the recovery policy may cause, percent, if it has a bound.
    Redundancy(Side, u32),
    Close(Side),
    /// A captured datagram arrives again.
    Replay {
        to: Direction,
        index: usize,
        /// With a bit flipped.
        damaged: bool,
        /// From an address that nobody has.
        stranger: bool,
    },
    /// Random bytes arrive, after the start of a captured datagram.
    Garbage {
        to: Direction,
        index: usize,
        keep: usize,
        len: usize,
    },
}

/// A case.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    pub(crate) seed: u64,
    /// To the server, to the client.
    pub(crate) wires: [Wire; 2],
    /// Client, server.
    pub(crate) ends: [Settings; 2],
    pub(crate) retry: bool,
    /// Most datagrams in a batch.
    pub(crate) segments: usize,
    /// Every stream is ended when the network heals.
    pub(crate) finish_all: bool,
    pub(crate) ops: Vec<Op>,
}

impl Default for Plan {
    fn default() -> Self {
        Self {
            seed: 1,
            wires: [Wire::default(), Wire::default()],
            ends: [Settings::default(), Settings::default()],
            retry: false,
            segments: 10,
            finish_all: true,
            ops: Vec::new(),
        }
    }
}

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
        prop_oneof![2 => Just(1200_u16), 1 => 1200..1500_u16],
        prop_oneof![3 => Just(3_u64), 1 => 3..10_u64],
        prop_oneof![3 => Just(None), 1 => (2_400..100_000_u64).prop_map(Some)],
        (any::<bool>(), any::<bool>(), any::<bool>(), recovery()),
    );
    (streams, timing, packets).prop_map(
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
                packet_size,
                packet_threshold,
                initial_window,
                (pacing, ecn, newreno, recovery),
            ),
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
            packet_threshold,
            initial_rtt_ms,
            initial_window,
            pacing,
            ecn,
            newreno,
            recovery,
        },
    )
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
        1 => (side(), 0..16_usize, 0..9_u64).prop_map(|(side, stream, code)| Op::Stop(side, stream, code)),
        1 => (side(), 0..16_usize, -2..3_i32).prop_map(|(side, stream, to)| Op::Priority(side, stream, to)),
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
        prop_oneof![3 => Just(false), 1 => Just(true)],
        prop_oneof![Just(1_usize), 1..12_usize],
        any::<bool>(),
        // Mostly time for the handshake, so that streams are there for the rest.
        prop_oneof![1 => Just(0_u64), 2 => 500..3_000_u64],
        proptest::collection::vec(op, 1..100),
    )
        .prop_map(
            |(seed, (up, down), (client, server), retry, segments, finish_all, wait, mut ops)| {
                ops.insert(0, Op::Advance(wait));
                Plan {
                    seed,
                    wires: [up, down],
                    ends: [client, server],
                    retry,
                    segments,
                    finish_all,
                    ops,
                }
            },
        )
}
