//! The feedback policy of a player, driven by hand: what it sends, how, and when it asks to be called.

use std::time::Duration;

use swiftwater_policies::FeedbackCatalogue;
use swiftwater_quic::policy::{
    FeedbackPolicy, Hints, OutgoingFeedback, PlayerSignal, QoeSignal, RangeDeadline,
};
use swiftwater_units::{Bandwidth, ByteCount, Instant, StreamId};

fn millis(n: u64) -> Duration {
    Duration::from_millis(n)
}

fn policy(specification: &str) -> Box<dyn FeedbackPolicy> {
    let factory = FeedbackCatalogue::standard().get(specification).unwrap();
    let mut policy = factory.feedback();
    policy.on_peer_limit(64);
    policy
}

fn poll(policy: &mut dyn FeedbackPolicy, at: u64, hints: &Hints) -> Vec<OutgoingFeedback> {
    let mut out = Vec::new();
    policy.poll(Instant::from_millis(at), &[], hints, &mut out);
    out
}

fn playing(frames: u64, stalled: bool) -> Hints {
    Hints {
        player: Some(PlayerSignal {
            stream: None,
            cached_bytes: ByteCount::new(1_000),
            cached_frames: frames,
            bitrate: Bandwidth::from_mbps(2),
            fps: 25.0,
            stalled,
        }),
        ..Hints::default()
    }
}

#[test]
fn changes_are_held_back_and_the_unchanged_is_repeated() {
    let policy = &mut *policy("player:min-interval=20ms,max-interval=100ms");
    assert_eq!(policy.next_deadline(), None);
    assert!(poll(policy, 0, &Hints::default()).is_empty());
    assert_eq!(policy.next_deadline(), None, "there is no player");
    assert_eq!(poll(policy, 1_000, &playing(5, false)).len(), 1);
    let deadline = |policy: &dyn FeedbackPolicy| policy.next_deadline().unwrap();
    assert_eq!(deadline(policy), Instant::from_millis(1_100));
    assert!(poll(policy, 1_019, &playing(6, false)).is_empty());
    assert_eq!(deadline(policy), Instant::from_millis(1_020));
    let sent = poll(policy, 1_020, &playing(7, false));
    let said = QoeSignal::decode(sent[0].kind, &sent[0].payload);
    assert_eq!(
        said,
        Some(QoeSignal::Player(playing(7, false).player.unwrap()))
    );
    assert!(poll(policy, 1_119, &playing(7, false)).is_empty());
    assert_eq!(poll(policy, 1_120, &playing(7, false)).len(), 1);
    poll(policy, 1_121, &Hints::default());
    assert_eq!(policy.next_deadline(), None, "the player is gone");
    assert_eq!(poll(policy, 1_122, &playing(7, false)).len(), 1);
}

#[test]
fn the_begin_and_the_end_of_a_stall_are_delivered_reliably() {
    let policy = &mut *policy("player");
    let mut is_reliable = |at, frames, stalled| {
        let sent = poll(policy, at, &playing(frames, stalled));
        assert_eq!(sent.len(), 1);
        assert!(sent[0].urgent);
        sent[0].ack_eliciting
    };
    assert!(is_reliable(0, 0, true), "the first one");
    assert!(!is_reliable(50, 3, true));
    assert!(is_reliable(100, 6, false));
    assert!(!is_reliable(150, 5, false));
    assert!(is_reliable(200, 0, true));
}

#[test]
fn a_deadline_is_sent_when_it_changed_and_only_if_it_fits() {
    let deadline = |len| Hints {
        range_deadline: Some(RangeDeadline {
            stream: StreamId::from_wire(3),
            offset: 0,
            len,
            deadline: millis(50),
        }),
        ..Hints::default()
    };
    let policy = &mut *policy("player");
    let sent = poll(policy, 0, &deadline(10));
    assert_eq!(sent.len(), 1);
    assert!(sent[0].ack_eliciting && sent[0].urgent);
    assert!(poll(policy, 1, &deadline(10)).is_empty());
    assert_eq!(poll(policy, 2, &deadline(20)).len(), 1);
    policy.on_peer_limit(4);
    assert_eq!(poll(policy, 3, &deadline(10)).len(), 1, "four bytes");
    assert!(poll(policy, 4, &deadline(1_000)).is_empty(), "five");
}

#[test]
fn there_is_none_by_default() {
    assert!(policy("none").is_inert());
    assert!(!policy("player").is_inert());
    assert!(
        FeedbackCatalogue::standard()
            .get("player:min-interval=0ms")
            .is_err()
    );
}
