//! XLINK over the real stack: what the client says of its player reaches the server's re-injector, which
//! copies data in flight on another path while the buffer is low.

use std::sync::Arc;
use std::time::Duration;

use swiftwater_link::LinkConfig;
use swiftwater_policies::schedulers::MinRttConfig;
use swiftwater_policies::{Policies, XlinkConfig};
use swiftwater_quic::policy::{ChunkExpectation, Hints, PlayerSignal, QoeSignal, RangeDeadline};
use swiftwater_quic::{RangeHints, ReadOutcome};
use swiftwater_sim::{Direction, Pair};
use swiftwater_units::{Bandwidth, ByteCount, Dir, Side, StreamId};

use crate::support::paths::{self, SECOND};
use crate::support::{link, millis, secs};

/// A connection with a path of 20 Mbit/s and 20 ms, and one of 5 Mbit/s and 120 ms, whose server accepts
/// feedback of `accepted` bytes.
fn with_two_paths(sender: XlinkConfig, accepted: u8) -> Pair {
    two_paths_of([link(20, 10), link(5, 60)], sender, accepted)
}

fn two_paths_of([first, second]: [LinkConfig; 2], sender: XlinkConfig, accepted: u8) -> Pair {
    let server = Policies::reinjecting(sender).with_scheduler(Arc::new(MinRttConfig::default()));
    let builder = paths::builder(first)
        .client_config(|config| config.policies = Arc::new(Policies::player()))
        .server_config(move |config| {
            config.policies = Arc::new(server);
            config.max_feedback_size = accepted;
        });
    let (mut pair, _) = paths::with_two_paths(builder, second);
    pair.advance(secs(1));
    pair
}

/// A player at 25 frames per second that has `ms` milliseconds buffered.
fn player(ms: u64, stalled: bool) -> PlayerSignal {
    PlayerSignal {
        stream: None,
        cached_bytes: ByteCount::new(ms * 250),
        cached_frames: ms / 40,
        bitrate: Bandwidth::from_mbps(2),
        fps: 25.0,
        stalled,
    }
}

/// The application of the client shows what its player has buffered.
fn set_player(pair: &mut Pair, state: Option<PlayerSignal>) {
    let now = pair.now();
    let hints = Hints {
        player: state,
        ..Hints::default()
    };
    pair.client().update_hints(now, |all| *all = hints);
}

/// Bytes of copies that the server sent.
fn copies(pair: &Pair) -> u64 {
    let stats = pair.stats(Side::Server);
    stats.paths.iter().map(|path| path.copies.get()).sum()
}

/// Downloads of 400 kB, each complete before the next; returns the bytes of copies that they brought.
fn download(pair: &mut Pair, times: u64) -> u64 {
    let before = copies(pair);
    for _ in 0..times {
        assert!(pair.transfer(400_000, Direction::ToClient).verified);
    }
    copies(pair) - before
}

#[test]
fn a_low_buffer_brings_copies_and_a_full_one_none() {
    let mut pair = with_two_paths(XlinkConfig::default(), 64);
    set_player(&mut pair, Some(player(10_000, false)));
    pair.advance(millis(200));
    assert_eq!(download(&mut pair, 10), 0, "ten seconds are buffered");
    set_player(&mut pair, Some(player(80, false)));
    pair.advance(millis(200));
    let copied = download(&mut pair, 10);
    assert!(
        copied > 0,
        "{}",
        paths::sent_on(&pair, Side::Server, SECOND)
    );
    // Urgent: 15 % of what left in the last ten seconds.
    assert!(copied <= 20 * 400_000 * 15 / 100, "{copied}");
    set_player(&mut pair, Some(player(10_000, false)));
    pair.advance(millis(200));
    assert_eq!(download(&mut pair, 10), 0, "it is full again");
    assert_eq!(pair.stats(Side::Server).invalid_decisions, 0);
    assert_eq!(pair.stats(Side::Client).invalid_decisions, 0);
}

/// Time that 30 downloads of 100 kB take over paths of 10 Mbit/s with 40 and 120 ms, to a player with little buffered.
fn time_of_downloads(urgent_budget: f64) -> Duration {
    let config = XlinkConfig {
        urgent_budget,
        budget: Some(0.0),
        ..XlinkConfig::default()
    };
    let mut pair = two_paths_of([link(10, 20), link(10, 60)], config, 64);
    set_player(&mut pair, Some(player(80, false)));
    pair.advance(millis(200));
    let mut time = Duration::ZERO;
    for _ in 0..30 {
        let start = pair.now();
        assert!(pair.transfer(100_000, Direction::ToClient).verified);
        time += pair.now() - start;
        pair.advance(millis(50));
    }
    assert_eq!(copies(&pair) > 0, urgent_budget > 0.0);
    time
}

#[test]
fn downloads_of_a_player_with_little_buffered_are_faster() {
    let (with, without) = (time_of_downloads(0.15), time_of_downloads(0.0));
    assert!(with < without.mul_f64(0.95), "{with:?} {without:?}");
}

#[test]
fn until_playback_runs_data_are_copied_and_a_switch_ends_that() {
    let of = |config| {
        let mut pair = with_two_paths(config, 64);
        set_player(&mut pair, Some(player(0, true)));
        pair.advance(millis(200));
        download(&mut pair, 10)
    };
    let config = XlinkConfig::default();
    assert!(of(config) > 0);
    let start = false;
    assert_eq!(of(XlinkConfig { start, ..config }), 0);
    let (budget, urgent_budget) = (Some(0.0), 0.0);
    let without = XlinkConfig {
        budget,
        urgent_budget,
        ..config
    };
    assert_eq!(of(without), 0);
}

#[test]
fn the_first_frame_is_copied_whatever_is_buffered() {
    let of = |hints: RangeHints| {
        let mut pair = with_two_paths(XlinkConfig::default(), 64);
        set_player(&mut pair, Some(player(10_000, false)));
        pair.advance(millis(200));
        let before = copies(&pair);
        let id = pair.server().open(Dir::Uni).unwrap();
        let mut left = 400_000_usize;
        while left > 0 {
            let data = vec![7; left.min(4_000)];
            left -= pair
                .server()
                .send_stream(id)
                .write_with(&data, hints)
                .unwrap();
            pair.advance(millis(1));
            read_all(&mut pair, id);
        }
        pair.advance(secs(1));
        read_all(&mut pair, id);
        copies(&pair) - before
    };
    assert_eq!(of(RangeHints::default()), 0);
    let copied = of(RangeHints::default().as_first_frame());
    assert!((1_000..=60_000).contains(&copied), "{copied}");
}

/// Reads what is there of a stream on the client.
fn read_all(pair: &mut Pair, id: StreamId) {
    let mut buffer = vec![0; 65_536];
    while let Ok(ReadOutcome::Data(_)) = pair.client().recv_stream(id).read(&mut buffer) {}
}

#[test]
fn without_feedback_transfers_work_and_none_is_sent() {
    let mut pair = with_two_paths(XlinkConfig::default(), 0);
    set_player(&mut pair, Some(player(10_000, false)));
    pair.advance(secs(2));
    // The start never ends: nothing is known of the player.
    assert!(download(&mut pair, 10) > 0);
    assert!(pair.server().recv_feedback().is_none());
    assert_eq!(pair.stats(Side::Client).invalid_decisions, 0);
}

#[test]
fn a_path_that_dies_while_data_are_copied_costs_nothing_but_time() {
    let server = Policies::xlink();
    let builder = paths::builder(link(20, 10))
        .client_config(|config| config.policies = Arc::new(Policies::player()))
        .server_config(move |config| {
            config.policies = Arc::new(server);
            config.max_feedback_size = 64;
        });
    let (mut pair, second) = paths::with_two_paths(builder, link(20, 20));
    set_player(&mut pair, Some(player(80, false)));
    pair.advance(millis(200));
    let id = pair.start_transfer(1_000_000, Direction::ToClient);
    pair.advance(millis(150));
    paths::kill(&mut pair, second);
    assert!(pair.finish_transfers());
    let report = pair.transfer_report(id);
    // 400 ms are left on the other path, and a probe timeout.
    assert!(report.finish - report.start < secs(2), "{report:?}");
    assert!(download(&mut pair, 3) <= 3 * 400_000);
    assert_eq!(pair.stats(Side::Server).invalid_decisions, 0);
}

/// A connection on one path whose server accepts feedback of `accepted` bytes.
fn with_a_player(accepted: u8) -> Pair {
    let mut pair = Pair::builder()
        .link(link(20, 10))
        .client_config(|config| config.policies = Arc::new(Policies::player()))
        .server_config(move |config| config.max_feedback_size = accepted)
        .build()
        .unwrap();
    assert!(pair.connect());
    pair.advance(millis(200));
    pair
}

/// FEEDBACK frames that the client sent: no other frame without a counter of its own is in use here.
fn frames(pair: &Pair) -> u64 {
    pair.stats(Side::Client).frames_sent.of("other")
}

/// What the server was told and hasn't read.
fn signals(pair: &mut Pair) -> Vec<QoeSignal> {
    let mut signals = Vec::new();
    while let Some(message) = pair.server().recv_feedback() {
        signals.push(QoeSignal::decode(message.kind, &message.payload).unwrap());
    }
    signals
}

#[test]
fn the_state_of_the_player_leaves_as_often_as_it_should() {
    let mut pair = with_a_player(64);
    pair.advance(secs(2));
    assert_eq!(frames(&pair), 0, "there is no player");
    for n in 0..100 {
        set_player(&mut pair, Some(player(4_000 + 40 * n, false)));
        pair.advance(millis(10));
    }
    let changing = frames(&pair);
    assert!((18..=21).contains(&changing), "{changing} in a second");
    let last = player(4_000 + 40 * 99, false);
    pair.advance(millis(100));
    assert_eq!(signals(&mut pair), [QoeSignal::Player(last)]);
    let before = frames(&pair);
    pair.advance(secs(5));
    let unchanged = frames(&pair) - before;
    assert!((9..=11).contains(&unchanged), "{unchanged} in five seconds");
    set_player(&mut pair, None);
    let before = frames(&pair);
    pair.advance(secs(5));
    assert!(frames(&pair) <= before + 1, "the player is gone");
}

#[test]
fn expectations_and_deadlines_leave_once_and_at_once() {
    let mut pair = with_a_player(64);
    let expectation = ChunkExpectation {
        chunk: 7,
        expected_time: millis(1_500),
    };
    let deadline = RangeDeadline {
        stream: StreamId::from_wire(3),
        offset: 1_000,
        len: 500,
        deadline: millis(300),
    };
    let now = pair.now();
    let hints = Hints {
        expectation: Some(expectation),
        range_deadline: Some(deadline),
        ..Hints::default()
    };
    pair.client().update_hints(now, |all| *all = hints.clone());
    // One way takes 10 ms.
    pair.advance(millis(12));
    let wanted = [
        QoeSignal::Expectation(expectation),
        QoeSignal::Deadline(deadline),
    ];
    assert_eq!(signals(&mut pair), wanted);
    let now = pair.now();
    pair.client().update_hints(now, |all| *all = hints);
    pair.advance(secs(3));
    assert_eq!(frames(&pair), 2, "nothing changed");
    assert!(signals(&mut pair).is_empty());
}

#[test]
fn what_the_peer_does_not_accept_is_not_sent() {
    // An expectation takes three bytes here, the state of the player more.
    for (accepted, sent) in [(0, 0), (2, 0), (3, 1)] {
        let mut pair = with_a_player(accepted);
        let now = pair.now();
        let hints = Hints {
            player: Some(player(4_000, false)),
            expectation: Some(ChunkExpectation {
                chunk: 7,
                expected_time: millis(1_500),
            }),
            ..Hints::default()
        };
        pair.client().update_hints(now, |all| *all = hints);
        pair.advance(secs(2));
        assert_eq!(frames(&pair), sent, "{accepted}");
        assert_eq!(pair.stats(Side::Client).invalid_decisions, 0);
        assert!(pair.transfer(100_000, Direction::ToClient).verified);
    }
}
