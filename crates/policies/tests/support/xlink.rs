//! A host of XLINK's re-injector, driven by hand.
#![allow(
    dead_code,
    unreachable_pub,
    reason = "each test binary uses a part of it"
)]

use std::time::Duration;

use swiftwater_policies::reinjector_by_name;
use swiftwater_quic::policy::{
    Hints, NextData, Occasion, OutstandingRange, PathView, PlayerSignal, QoeSignal,
    ReceivedFeedback, Reinjection, Reinjector,
};
use swiftwater_units::{Bandwidth, ByteCount, Dir, Instant, PacketNumber, PathId, Side, StreamId};

pub const START: Instant = Instant::from_millis(5_000);
pub const SLOW: PathId = PathId::ZERO;
pub const FAST: PathId = PathId::new(1);
pub const THIRD: PathId = PathId::new(2);

pub fn millis(n: u64) -> Duration {
    Duration::from_millis(n)
}

/// A path with data in flight and room for 100,000 bytes.
pub fn path(id: PathId, rtt: u64, variance: u64) -> PathView {
    PathView::builder(id)
        .rtt(millis(rtt))
        .rtt_var(millis(variance))
        .cwnd(ByteCount::new(101_000))
        .bytes_in_flight(ByteCount::new(1_000))
        .build()
}

pub fn paths() -> [PathView; 2] {
    [path(SLOW, 400, 100), path(FAST, 20, 5)]
}

pub fn stream(nth: u64) -> StreamId {
    StreamId::new(Side::Server, Dir::Uni, nth)
}

/// A policy, the time, and what is in flight.
pub struct Host {
    pub policy: Box<dyn Reinjector>,
    pub now: Instant,
    pub ranges: Vec<OutstandingRange>,
    pub paths: Vec<PathView>,
    pub next: Option<NextData>,
    sequence: u64,
}

impl Host {
    /// A megabyte was sent, of which a range of 1000 bytes is in flight on the slow path.
    pub fn new(settings: &str) -> Self {
        let mut policy = reinjector_by_name(&format!("xlink:{settings}")).unwrap();
        policy.on_new_data(START, ByteCount::new(1_000_000));
        let mut host = Self {
            policy,
            now: START,
            ranges: Vec::new(),
            paths: paths().to_vec(),
            next: None,
            sequence: 0,
        };
        host.sent(SLOW, 1, 0);
        host
    }

    /// The `nth` range of 1000 bytes of a stream leaves.
    pub fn sent(&mut self, path: PathId, of: u64, nth: u64) -> &mut OutstandingRange {
        let packet = PacketNumber::new(self.ranges.len() as u64);
        let range = OutstandingRange::new(path, packet, self.now, stream(of), nth * 1_000, 1_000);
        self.ranges.push(range);
        self.ranges.last_mut().unwrap()
    }

    /// A report of the player, 10 ms on the way.
    pub fn report(&mut self, play_time: Duration, stalled: bool) {
        let frames = play_time.as_millis() as u64 / 10;
        let state = PlayerSignal {
            stream: None,
            cached_bytes: ByteCount::ZERO,
            cached_frames: frames,
            bitrate: Bandwidth::from_bps(0),
            fps: 100.0,
            stalled,
        };
        self.say(&QoeSignal::Player(state));
    }

    pub fn say(&mut self, signal: &QoeSignal) {
        self.sequence += 1;
        let feedback = ReceivedFeedback {
            kind: signal.kind(),
            payload: signal.encode(64).unwrap(),
            sequence: self.sequence,
            path: FAST,
            age: millis(10),
        };
        self.policy.on_feedback(self.now, &feedback);
    }

    pub fn ask_on(&mut self, occasion: Occasion) -> Vec<Reinjection> {
        let mut out = Vec::new();
        let unsent = if self.next.is_some() { 50_000 } else { 0 };
        self.policy.on_unsent_data(self.now, ByteCount::new(unsent));
        self.policy.on_next_data(self.now, self.next);
        self.policy.reinject(
            self.now,
            occasion,
            &mut self.ranges.iter().copied(),
            &self.paths,
            &Hints::default(),
            &mut out,
        );
        out
    }

    pub fn ask(&mut self) -> Vec<Reinjection> {
        self.ask_on(Occasion::SpareRoom)
    }
}

/// The ranges named, by stream and thousands of bytes.
pub fn named(copies: &[Reinjection]) -> Vec<(u64, u64)> {
    let name = |copy: &Reinjection| (copy.stream.index(), copy.offset / 1_000);
    copies.iter().map(name).collect()
}

pub fn secs(n: u64) -> Duration {
    Duration::from_secs(n)
}

impl Host {
    pub fn ask_with(mut self, change: impl FnOnce(&mut Self)) -> Vec<Reinjection> {
        change(&mut self);
        self.ask()
    }
}
