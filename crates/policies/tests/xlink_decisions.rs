//! XLINK's re-injector, driven by hand: when it copies, what, where to, in which place, within what budget.

#[path = "support/xlink.rs"]
mod host;

use swiftwater_quic::Priority;
use swiftwater_quic::policy::{
    Hints, NextData, Occasion, OutstandingRange, PathChoice, PathStatus, PathView, PlayerSignal,
    QoeSignal, Rank, ReceivedFeedback, Rejection, RejectionReason,
};
use swiftwater_units::{Bandwidth, ByteCount};

use host::*;

/// True if a player that reported this play time `ago` milliseconds ago has data copied.
fn copies_at(settings: &str, play_time: u64, ago: u64) -> bool {
    let mut host = Host::new(settings);
    host.report(millis(play_time), false);
    host.now += millis(ago);
    !host.ask().is_empty()
}

#[test]
fn two_thresholds_and_the_longest_delivery_decide() {
    // The slow path holds data: 400 ms and once 100 ms of variation; a report is 10 ms old on arrival.
    let at = |play_time| copies_at("", play_time, 0);
    assert!(at(0));
    assert!(at(200), "below th1");
    assert!(at(500), "490 ms are less than 500 ms");
    assert!(!at(520));
    assert!(!at(10_000), "above th2");
    assert!(copies_at("variance=3", 700, 0), "690 ms, 700 ms");
    assert!(!copies_at("variance=3", 720, 0));
    assert!(!copies_at("variance=0", 450, 0), "440 ms, 400 ms");
    assert!(!copies_at("th2=300ms", 400, 0), "above th2");
    assert!(copies_at("th1=1s", 900, 0), "below th1");
    assert!(copies_at("control=off", 10_000, 0));
}

#[test]
fn paths_without_data_in_flight_don_t_count_for_the_longest_delivery() {
    let mut host = Host::new("");
    host.paths[1].bytes_in_flight = ByteCount::ZERO;
    host.paths[0].bytes_in_flight = ByteCount::ZERO;
    host.report(millis(300), false);
    assert!(host.ask().is_empty(), "nothing but th1 counts");
    host.paths[0].bytes_in_flight = ByteCount::new(1_000);
    assert_eq!(host.ask().len(), 1);
}

#[test]
fn play_time_runs_down_between_reports() {
    assert!(!copies_at("", 1_600, 1_050), "540 ms are left");
    assert!(copies_at("", 1_600, 1_100), "490 ms are left");
    // It asks to be called then.
    let mut host = Host::new("");
    host.report(millis(1_600), false);
    assert!(host.ask().is_empty());
    let wait = host.policy.next_deadline().unwrap() - host.now;
    assert!((millis(1_090)..=millis(1_095)).contains(&wait), "{wait:?}");
    host.now += wait;
    assert_eq!(host.ask_on(Occasion::Timer).len(), 1);
}

#[test]
fn a_stall_the_start_and_silence_bring_copies() {
    let mut host = Host::new("");
    assert_eq!(host.ask().len(), 1, "nothing is known of the player");
    assert!(Host::new("start=off").ask().is_empty());
    let mut host = Host::new("");
    host.report(millis(10_000), true);
    assert_eq!(host.ask().len(), 1, "playback has not begun");
    let mut host = Host::new("");
    host.report(millis(10_000), false);
    assert!(host.ask().is_empty());
    host.report(millis(10_000), true);
    assert_eq!(host.ask().len(), 1, "a stall");
    assert!(!copies_at("", 10_000, 1_499));
    assert!(copies_at("", 10_000, 1_501), "three reports are missing");
    assert!(!copies_at("report-interval=2s", 10_000, 5_999));
    // A player of unknown rates.
    let mut host = Host::new("");
    let state = PlayerSignal {
        stream: None,
        cached_bytes: ByteCount::new(1_000_000),
        cached_frames: 1_000,
        bitrate: Bandwidth::from_bps(0),
        fps: 0.0,
        stalled: false,
    };
    host.say(&QoeSignal::Player(state));
    assert_eq!(host.ask().len(), 1);
}

#[test]
fn copies_leave_on_another_path_of_least_round_trip_time_with_room() {
    let target = |change: &dyn Fn(&mut Vec<PathView>)| {
        let mut host = Host::new("gain=none");
        host.paths.push(path(THIRD, 50, 5));
        change(&mut host.paths);
        let copies = host.ask();
        copies.first().map(|copy| copy.target)
    };
    assert_eq!(target(&|_| {}), Some(PathChoice::On(FAST)));
    let full = |paths: &mut Vec<PathView>| paths[1].bytes_in_flight = ByteCount::new(100_500);
    assert_eq!(target(&full), Some(PathChoice::On(THIRD)));
    let silent = |paths: &mut Vec<PathView>| paths[1].pto_count = 1;
    assert_eq!(target(&silent), Some(PathChoice::On(THIRD)));
    let backup = |paths: &mut Vec<PathView>| paths[1].peer_status = PathStatus::Backup;
    assert_eq!(target(&backup), Some(PathChoice::On(THIRD)));
    assert_eq!(target(&|paths| paths.truncate(1)), None);
    assert_eq!(target(&|paths| paths.truncate(0)), None);
    // Data on the fastest path.
    let mut host = Host::new("gain=none");
    host.ranges[0].path = FAST;
    assert_eq!(host.ask()[0].target, PathChoice::On(SLOW));
}

#[test]
fn only_what_arrives_sooner_is_copied_unless_told_otherwise() {
    let mut host = Host::new("");
    host.ranges[0].path = FAST;
    assert!(host.ask().is_empty(), "the slow path takes 200 ms");
    let again = host.policy.next_deadline();
    assert_eq!(again, Some(host.now + millis(5)), "it looks again");
    // The acknowledgement was due after 25 ms: the path is expected to stay late by as much.
    host.now += millis(245);
    assert!(host.ask().is_empty());
    host.now += millis(10);
    assert_eq!(host.ask().len(), 1);
    let of = |settings: &str| {
        let mut host = Host::new(settings);
        host.ranges[0].path = FAST;
        host.now += millis(150);
        host.ask().len()
    };
    assert_eq!(of("gain=none"), 1);
    assert_eq!(of(""), 0);
}

#[test]
fn what_arrives_last_is_copied_first() {
    let of = |settings: &str| {
        let mut host = Host::new(settings);
        for nth in 1..4 {
            host.now += millis(1);
            host.sent(SLOW, 1, nth);
        }
        named(&host.ask())
    };
    assert_eq!(of(""), [(1, 3), (1, 2), (1, 1), (1, 0)]);
    let oldest = [(1, 0), (1, 1), (1, 2), (1, 3)];
    assert_eq!(of("latest-first=off"), oldest);
}

#[test]
fn a_datum_has_one_copy() {
    let mut host = Host::new("");
    let copies = host.ask();
    assert_eq!(copies.len(), 1);
    assert!(host.ask().is_empty());
    // Its copy, and the rest of a retransmission that another packet carries.
    host.sent(FAST, 1, 0);
    host.ranges[1].len = 300;
    host.sent(SLOW, 1, 0).offset = 999;
    host.now += millis(600);
    assert!(host.ask().is_empty(), "bytes of them are the same");
    // Lost, and so not in flight for a while.
    let ranges = std::mem::take(&mut host.ranges);
    host.ask();
    host.now += secs(2);
    host.ask();
    host.ranges = ranges;
    assert!(host.ask().is_empty());
    assert!(
        Host::new("")
            .ask_with(|host| host.ranges[0].copies = 1)
            .is_empty()
    );
}

#[test]
fn a_rejected_copy_is_asked_for_again() {
    let mut host = Host::new("");
    let copies = host.ask();
    let rejection = Rejection::new(copies[0], RejectionReason::NoPath);
    host.policy.on_rejected(host.now, &[rejection]);
    assert_eq!(host.policy.report().budget_used, Some(0.0));
    assert_eq!(named(&host.ask()), [(1, 0)]);
    // Half of it left before.
    let mut rest = copies[0];
    (rest.offset, rest.len) = (500, 500);
    let rejection = Rejection::new(rest, RejectionReason::NoPath);
    host.policy.on_rejected(host.now, &[rejection]);
    assert!(
        host.ask().is_empty(),
        "the range holds bytes that have a copy"
    );
    host.sent(SLOW, 1, 0).offset = 500;
    assert_eq!(host.ask()[0].offset, 500);
}

#[test]
fn what_is_in_flight_on_a_path_that_went_down_leaves_at_once() {
    let mut host = Host::new("budget=0,urgent-budget=0");
    host.report(millis(10_000), false);
    host.sent(FAST, 1, 1);
    let copies = host.ask_on(Occasion::PathDown(SLOW));
    assert_eq!(named(&copies), [(1, 0)]);
    assert_eq!(copies[0].target, PathChoice::Not(SLOW));
    assert_eq!(copies[0].rank, Rank::First);
    assert!(host.policy.is_asked_on(Occasion::PathDown(SLOW)));
    host.policy.configure("control=off,budget=none").unwrap();
    host.now += millis(600);
    assert_eq!(named(&host.ask()), [(1, 1)], "it has a copy");
}

/// The rank of a copy of `priority` at a level while `next` waits; `None` without a copy.
fn rank(level: &str, next: Option<NextData>, change: fn(&mut OutstandingRange)) -> Option<Rank> {
    let mut host = Host::new(&format!("level={level}"));
    change(&mut host.ranges[0]);
    host.next = next;
    let copies = host.ask_on(Occasion::Ack);
    copies.first().map(|copy| copy.rank)
}

#[test]
fn levels_place_copies_among_other_data() {
    let urgent = Priority::new(1, true);
    let of_urgent: fn(&mut OutstandingRange) = |range| range.priority = Priority::new(1, true);
    let of_frame: fn(&mut OutstandingRange) = |range| range.first_frame = true;
    let plain: fn(&mut OutstandingRange) = |_| {};
    let next = |urgency| Some(NextData::new(stream(4), Priority::new(urgency, true)));
    assert_eq!(rank("plain", None, of_urgent), Some(Rank::AfterNewData));
    assert_eq!(rank("plain", next(5), of_urgent), None);
    assert_eq!(rank("plain", None, of_frame), Some(Rank::AfterNewData));
    for level in ["stream", "frame"] {
        let with_priority = Some(Rank::WithPriority(urgent));
        assert_eq!(rank(level, None, of_urgent), with_priority);
        assert_eq!(rank(level, next(5), of_urgent), with_priority);
        assert_eq!(rank(level, next(1), of_urgent), None, "its own wait");
        assert_eq!(rank(level, next(0), of_urgent), None);
        assert_eq!(rank(level, next(3), plain), None);
    }
    let default = Some(Rank::WithPriority(Priority::default()));
    assert_eq!(rank("stream", None, of_frame), default);
    assert_eq!(rank("stream", next(3), of_frame), None);
    assert_eq!(rank("frame", next(0), of_frame), Some(Rank::First));
    let more = next(0).map(|next| next.first_frame(true));
    assert_eq!(rank("frame", more, of_frame), None, "more of it waits");
}

#[test]
fn of_streams_that_leave_one_after_another_the_earlier_is_more_urgent() {
    let serial: fn(&mut OutstandingRange) = |range| range.priority = Priority::new(3, false);
    let next = |of| Some(NextData::new(stream(of), Priority::new(3, false)));
    assert!(rank("stream", next(4), serial).is_some());
    assert!(rank("stream", next(1), serial).is_none());
    assert!(rank("stream", next(0), serial).is_none());
}

#[test]
fn the_first_frame_goes_first_and_ignores_the_buffer() {
    let mut host = Host::new("");
    host.sent(SLOW, 0, 9).priority = Priority::new(0, true);
    host.sent(SLOW, 0, 3);
    host.sent(SLOW, 5, 1).first_frame = true;
    assert_eq!(named(&host.ask()), [(5, 1), (0, 9), (0, 3), (1, 0)]);
    let of = |level: &str| {
        let mut host = Host::new(&format!("level={level}"));
        host.report(millis(10_000), false);
        host.sent(SLOW, 5, 1).first_frame = true;
        named(&host.ask())
    };
    assert_eq!(of("frame"), [(5, 1)]);
    assert!(of("stream").is_empty());
    // As the hint about the connection says.
    let mut host = Host::new("");
    host.report(millis(10_000), false);
    host.sent(SLOW, 0, 1);
    host.sent(SLOW, 0, 2);
    let hints = Hints {
        first_frame: Some(ByteCount::new(2_000)),
        ..Hints::default()
    };
    let mut out = Vec::new();
    host.policy.reinject(
        host.now,
        Occasion::SpareRoom,
        &mut host.ranges.iter().copied(),
        &host.paths,
        &hints,
        &mut out,
    );
    assert_eq!(named(&out), [(0, 1)]);
}

#[test]
fn at_the_level_plain_the_oldest_is_first() {
    let mut host = Host::new("level=plain,latest-first=off");
    host.now += millis(1);
    host.sent(SLOW, 5, 1).first_frame = true;
    host.sent(SLOW, 0, 9).priority = Priority::new(0, true);
    assert_eq!(named(&host.ask()), [(1, 0), (5, 1), (0, 9)]);
}

/// Thousands of bytes that are copied of 200 ranges in flight, of a megabyte sent.
fn copied(settings: &str, change: impl FnOnce(&mut Host)) -> usize {
    let mut host = Host::new(settings);
    for nth in 1..200 {
        host.sent(SLOW, 1, nth);
    }
    for path in &mut host.paths {
        path.cwnd = ByteCount::new(10_000_000);
    }
    change(&mut host);
    host.ask().len()
}

#[test]
fn the_budget_is_hard_and_larger_for_what_is_urgent() {
    let normal = |host: &mut Host| host.report(millis(400), false);
    let urgent = |host: &mut Host| host.report(millis(100), false);
    assert_eq!(copied("", normal), 50);
    assert_eq!(copied("", urgent), 150);
    assert_eq!(copied("", |_| {}), 150, "the start");
    assert_eq!(copied("budget=0.02", normal), 20);
    assert_eq!(copied("budget=0.02,urgent-budget=0.1", urgent), 100);
    assert_eq!(copied("budget=0.02,urgent-budget=0", urgent), 20);
    assert_eq!(copied("budget=none", normal), 200);
    assert_eq!(copied("budget=0", normal), 0);
    let frame = |host: &mut Host| {
        normal(host);
        for range in &mut host.ranges[..60] {
            range.first_frame = true;
        }
    };
    assert_eq!(copied("", frame), 60, "the others have no budget left");
    // Silence is urgent for ten seconds, and what left before has left the window by then.
    let later = |after: u64| {
        move |host: &mut Host| {
            host.report(millis(9_000), false);
            host.now += millis(after);
            host.policy.on_new_data(host.now, ByteCount::new(100_000));
        }
    };
    assert_eq!(copied("", later(11_000)), 15);
    assert_eq!(copied("", later(12_000)), 5);
}

#[test]
fn the_budget_comes_back_as_time_passes() {
    let mut host = Host::new("budget=0.001,urgent-budget=0.001");
    assert_eq!(host.ask().len(), 1);
    host.sent(SLOW, 1, 1);
    assert!(host.ask().is_empty());
    assert_eq!(host.policy.report().budget_used, Some(1.0));
    host.now += millis(9_900);
    assert!(host.ask().is_empty());
    host.now += millis(150);
    host.policy.on_new_data(host.now, ByteCount::new(1_000_000));
    // Of the tenth of a second that is leaving the window, the copy counts and the data don't.
    assert!(host.ask().is_empty());
    host.now += millis(300);
    assert_eq!(host.ask().len(), 1);
}

#[test]
fn thresholds_follow_the_distribution_of_play_times() {
    let tuned = |settings: &str, play_time: u64| {
        let mut host = Host::new(settings);
        // 10, 20, ... 1000 hundredths of a second, ten times.
        for n in 0..1_000 {
            host.report(millis(100 * (n % 100)), false);
        }
        host.report(millis(play_time), false);
        host.paths[0].smoothed_rtt = secs(3);
        !host.ask().is_empty()
    };
    // 95 % exceed 500 ms, 80 % 2 s; 10 ms have passed, and the delivery takes 3.1 s.
    assert!(tuned("", 500));
    assert!(tuned("", 1_900));
    assert!(!tuned("", 2_100), "above th2");
    assert!(tuned("tune=off", 2_100));
    assert!(tuned("th2-share=0.7", 2_100));
    assert!(!tuned("th1-share=1,th2-share=1", 100), "both are 0");
}

#[test]
fn acknowledgements_bring_a_look_every_five_milliseconds() {
    let mut host = Host::new("");
    host.ranges.clear();
    assert!(host.policy.can_use_spare_room());
    host.ask();
    assert!(!host.policy.can_use_spare_room(), "nothing has changed");
    host.sent(SLOW, 1, 0);
    host.now += millis(4);
    assert!(host.ask_on(Occasion::Ack).is_empty());
    host.now += millis(1);
    assert_eq!(host.ask_on(Occasion::Ack).len(), 1);
    host.report(millis(100), false);
    assert!(host.policy.can_use_spare_room());
    // On a single path, none.
    host.paths.truncate(1);
    host.ask();
    assert!(!host.policy.is_asked_on(Occasion::Ack));
    assert!(host.policy.is_asked_on(Occasion::Feedback));
}

#[test]
fn feedback_that_is_malformed_or_of_no_player_changes_nothing() {
    let mut host = Host::new("");
    host.report(millis(10_000), false);
    let feedback = ReceivedFeedback {
        kind: QoeSignal::PLAYER,
        payload: swiftwater_quic::policy::FeedbackPayload::new(&[0xff; 3]).unwrap(),
        sequence: 9,
        path: FAST,
        age: millis(10),
    };
    host.policy.on_feedback(host.now, &feedback);
    host.say(&QoeSignal::Expectation(
        swiftwater_quic::policy::ChunkExpectation {
            chunk: 1,
            expected_time: millis(1),
        },
    ));
    assert!(host.ask().is_empty());
    // The longest play time that can be said.
    let state = PlayerSignal {
        stream: None,
        cached_bytes: ByteCount::new(u64::MAX),
        cached_frames: u64::MAX,
        bitrate: Bandwidth::from_bps(1),
        fps: 0.001,
        stalled: false,
    };
    host.say(&QoeSignal::Player(state));
    assert!(host.ask().is_empty());
}
