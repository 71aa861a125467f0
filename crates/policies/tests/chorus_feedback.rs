//! Chorus: what the sender tells the player, and when.

use std::time::Duration;

use swiftwater_policies::FeedbackCatalogue;
use swiftwater_quic::policy::{
    ChunkExpectation, FeedbackPolicy, Hints, PathShares, PathStatus, PathView, QoeSignal,
    ReceivedFeedback, ResponseStart,
};
use swiftwater_units::{Bandwidth, ByteCount, Dir, Instant, PathId, Side, StreamId};

fn millis(n: u64) -> Duration {
    Duration::from_millis(n)
}

fn view(id: u32, mbps: u64, rtt: u64) -> PathView {
    PathView::builder(PathId::new(id))
        .rtt(millis(rtt))
        .delivery_rate(Some(Bandwidth::from_mbps(mbps)))
        .build()
}

fn in_flight(mut path: PathView, bytes: u64) -> PathView {
    path.bytes_in_flight = ByteCount::new(bytes);
    path
}

fn response(nth: u64) -> Hints {
    Hints {
        response: Some(ResponseStart {
            stream: StreamId::new(Side::Server, Dir::Uni, nth),
            bytes: ByteCount::new(1_000_000),
            requested_at: Instant::ZERO,
        }),
        ..Hints::default()
    }
}

struct World {
    policy: Box<dyn FeedbackPolicy>,
    hints: Hints,
    paths: Vec<PathView>,
}

impl World {
    fn new(specification: &str) -> Self {
        let catalogue = FeedbackCatalogue::standard();
        Self {
            policy: catalogue.get(specification).unwrap().feedback(),
            hints: Hints::default(),
            paths: vec![view(0, 10, 20), view(1, 30, 80)],
        }
    }

    fn poll(&mut self, time: u64) -> Option<PathShares> {
        let mut out = Vec::new();
        let now = Instant::from_millis(time);
        self.policy.poll(now, &self.paths, &self.hints, &mut out);
        assert!(out.len() <= 1);
        let message = out.first()?;
        assert!(message.ack_eliciting && message.urgent);
        match QoeSignal::decode(message.kind, &message.payload) {
            Some(QoeSignal::Shares(shares)) => Some(shares),
            other => panic!("{other:?}"),
        }
    }

    /// Times of messages from one to another, asked every 10 ms.
    fn times(&mut self, from: u64, to: u64) -> Vec<u64> {
        let asked = (from..=to).step_by(10);
        asked.filter(|time| self.poll(*time).is_some()).collect()
    }
}

#[test]
fn shares_of_the_paths_are_sent_from_the_start_of_a_response_on() {
    let mut world = World::new("chorus");
    assert!(world.poll(1_000).is_none(), "no response yet");
    assert_eq!(world.policy.next_deadline(), None);
    world.hints = response(0);
    let shares = world.poll(1_100).unwrap();
    assert_eq!(shares.chunk, 0);
    let facts: Vec<_> = shares
        .paths
        .iter()
        .map(|path| (path.path.get(), path.share, path.rate.as_bps(), path.rtt))
        .collect();
    // The largest share is first.
    let expected = [
        (1, 0.75, 30_000_000, millis(80)),
        (0, 0.25, 10_000_000, millis(20)),
    ];
    assert_eq!(facts, expected);
    assert_eq!(
        world.policy.next_deadline(),
        Some(Instant::from_millis(1_300))
    );
}

#[test]
fn messages_go_on_while_data_are_in_flight_and_a_second_longer() {
    let mut world = World::new("chorus");
    world.hints = response(0);
    let idle = world.paths.clone();
    world.paths[1] = in_flight(idle[1], 30_000);
    assert_eq!(world.times(0, 1_990).len(), 10);
    // The policy's own messages are in flight, no more.
    world.paths = vec![in_flight(idle[0], 200), idle[1]];
    assert_eq!(
        world.times(2_000, 6_000),
        [2_000, 2_200, 2_400, 2_600, 2_800]
    );
    assert_eq!(world.policy.next_deadline(), None);
    // Other data don't start it again; another response does.
    world.paths = idle;
    world.hints = response(1);
    assert_eq!(world.times(7_000, 9_000).len(), 6);
}

#[test]
fn interval_and_linger_are_parameters() {
    let mut world = World::new("chorus:interval=50ms,linger=0ms");
    world.hints = response(0);
    let idle = world.paths.clone();
    world.paths[0] = in_flight(idle[0], 30_000);
    assert_eq!(world.times(0, 490).len(), 10);
    world.paths = idle;
    assert!(world.times(500, 900).is_empty());
    assert!(
        FeedbackCatalogue::standard()
            .get("chorus:interval=9ms")
            .is_err()
    );
    assert!(
        FeedbackCatalogue::standard()
            .get("chorus:interval=7s")
            .is_err()
    );
}

#[test]
fn the_chunk_is_the_one_that_the_player_named_and_backups_have_no_share() {
    let mut world = World::new("chorus");
    let signal = QoeSignal::Expectation(ChunkExpectation {
        chunk: 17,
        expected_time: millis(900),
    });
    let message = ReceivedFeedback {
        kind: signal.kind(),
        payload: signal.encode(64).unwrap(),
        sequence: 0,
        path: PathId::ZERO,
        age: millis(1),
    };
    world.policy.on_feedback(Instant::ZERO, &message);
    world.hints = response(0);
    world.paths[1].peer_status = PathStatus::Backup;
    let shares = world.poll(1_000).unwrap();
    assert_eq!(shares.chunk, 17);
    assert_eq!(shares.paths.len(), 1);
    assert!((shares.paths[0].share - 1.0).abs() < 1e-9);
    // Without a path to share there is nothing to say.
    world.paths[0].peer_status = PathStatus::Backup;
    assert!(world.poll(2_000).is_none());
}
