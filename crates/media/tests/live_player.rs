//! The live player compared with timelines computed by hand. Frames are 40 ms apart.

use std::time::Duration;

use proptest::prelude::*;
use swiftwater_media::player::{LiveConfig, LivePlayer, PlayerState};
use swiftwater_media::{Frame, FrameKind};
use swiftwater_units::Instant;

const fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

const fn at(millis: u64) -> Instant {
    Instant::from_millis(millis)
}

fn frame(index: u64) -> Frame {
    Frame {
        index,
        kind: FrameKind::Delta,
        size: 1000,
        at: ms(40 * index),
    }
}

fn player(start_buffer: u64, rebuffer: u64) -> LivePlayer {
    let config = LiveConfig {
        start_buffer: ms(start_buffer),
        rebuffer: ms(rebuffer),
    };
    LivePlayer::new(config, at(10), at(0))
}

/// A player that waits for 80 ms, and gets frame 0 to 4 each 50 ms after its encoding, frames 5 and 6
/// at 400 ms, frame 7 at 450 ms, frames 8 and 9 at 460 ms.
///
/// It starts with frame 2, at 130 ms, freezes at 330 ms for lack of frame 5, and continues at 450
/// ms, when frame 7 completes 80 ms of playback time. All is shown by 650 ms.
fn watched() -> LivePlayer {
    let mut player = player(80, 80);
    for index in 0..5 {
        player.on_frame(at(40 * index + 50), &frame(index));
    }
    for (time, index) in [(400, 5), (400, 6), (450, 7), (460, 8), (460, 9)] {
        player.on_frame(at(time), &frame(index));
    }
    player
}

#[test]
fn it_starts_when_the_buffer_is_filled() {
    let mut player = player(80, 80);
    player.on_frame(at(50), &frame(0));
    player.on_frame(at(90), &frame(1));
    assert_eq!(player.state(at(129)), PlayerState::Starting);
    assert_eq!(player.buffered(at(129)), ms(40));
    assert_eq!(player.report(at(129)).start_time, None);
    assert_eq!(player.report(at(129)).freezes.count, 0);
    player.on_frame(at(130), &frame(2));
    assert_eq!(player.state(at(130)), PlayerState::Playing);
    assert_eq!(player.report(at(130)).start_time, Some(ms(120)));
    assert_eq!(player.buffered(at(130)), ms(80));
    assert_eq!(player.dry_at(), Some(at(250)));
}

#[test]
fn without_a_start_buffer_it_starts_with_the_first_frame() {
    let mut player = player(0, 0);
    player.on_frame(at(50), &frame(0));
    assert_eq!(player.state(at(50)), PlayerState::Playing);
    // As late as could be without a freeze.
    player.on_frame(at(90), &frame(1));
    player.on_frame(at(130), &frame(2));
    assert_eq!(player.report(at(130)).freezes.count, 0);
    // Playback continues with the late frame at once.
    player.on_frame(at(171), &frame(3));
    let report = player.report(at(200));
    assert_eq!((report.freezes.count, report.freezes.total), (1, ms(1)));
    assert_eq!(report.latency, Some(ms(51)));
}

#[test]
fn it_freezes_when_a_frame_is_late_and_goes_on_when_filled_again() {
    let report = watched().report(at(600));
    assert_eq!(report.start_time, Some(ms(120)));
    assert_eq!(report.freezes.count, 1);
    assert_eq!(report.freezes.total, ms(120));
    assert_eq!(report.freezes.longest, ms(120));
    // 130 to 330 ms and 450 to 600 ms.
    assert_eq!(report.played, ms(350));
    assert_eq!(report.watched, ms(470));
    assert!((report.frozen_share() - 120.0 / 470.0).abs() < 1e-9);
    assert!((report.freezes_per_100_s() - 100.0 / 0.470).abs() < 1e-6);
    let frozen = report.frozen_per_100_s().as_secs_f64();
    assert!((frozen - 100.0 * 120.0 / 470.0).abs() < 1e-6);
}

#[test]
fn latency_grows_by_each_freeze() {
    let player = watched();
    // Frame 0 was shown at 130 ms, frame 5, encoded at 200 ms, at 450 ms.
    assert_eq!(player.report(at(600)).latency, Some(ms(250)));
    let mean = player.report(at(600)).mean_latency.unwrap().as_secs_f64();
    let expected = (0.130 * 0.200 + 0.250 * 0.150) / 0.350;
    assert!((mean - expected).abs() < 1e-6, "{mean}");
}

#[test]
fn a_freeze_that_goes_on_counts_so_far() {
    let player = watched();
    assert_eq!(player.dry_at(), Some(at(650)));
    assert_eq!(player.state(at(650)), PlayerState::Playing);
    assert_eq!(player.state(at(700)), PlayerState::Frozen);
    let report = player.report(at(700));
    assert_eq!(report.freezes.count, 2);
    assert_eq!(report.freezes.total, ms(170));
    assert_eq!(report.freezes.longest, ms(120));
    assert_eq!((report.played, report.watched), (ms(400), ms(570)));
    // The next frame was encoded at 400 ms.
    assert_eq!(report.latency, Some(ms(300)));
}

#[test]
fn a_stream_that_is_over_is_played_out() {
    let mut player = watched();
    player.on_end(at(470));
    assert_eq!(player.state(at(650)), PlayerState::Playing);
    assert_eq!(player.state(at(651)), PlayerState::Finished);
    let report = player.report(at(9000));
    assert_eq!(report.freezes.count, 1);
    assert_eq!((report.played, report.watched), (ms(400), ms(520)));
}

#[test]
fn a_stream_that_is_over_waits_for_no_buffer() {
    let mut starting = player(500, 500);
    starting.on_frame(at(50), &frame(0));
    starting.on_frame(at(90), &frame(1));
    starting.on_end(at(100));
    assert_eq!(starting.report(at(100)).start_time, Some(ms(90)));

    let mut frozen = player(0, 500);
    frozen.on_frame(at(50), &frame(0));
    frozen.on_frame(at(120), &frame(1));
    assert_eq!(frozen.state(at(150)), PlayerState::Frozen);
    frozen.on_end(at(150));
    // Missing from 90 ms on.
    assert_eq!(frozen.report(at(160)).freezes.total, ms(60));
    assert_eq!(frozen.state(at(160)), PlayerState::Playing);
}

#[test]
fn an_end_without_frames_is_nothing_to_see() {
    let mut player = player(0, 0);
    player.on_end(at(50));
    let report = player.report(at(100));
    assert_eq!(report.start_time, None);
    assert_eq!((report.played, report.watched), (ms(0), ms(0)));
    assert!(report.frozen_share().abs() < 1e-12);
}

#[test]
fn a_frame_that_is_left_out_is_no_freeze() {
    let mut player = player(0, 0);
    player.on_frame(at(50), &frame(0));
    player.on_frame(at(90), &frame(1));
    // Frame 2 never arrives, frame 3 arrives before its time (170 ms).
    player.on_frame(at(165), &frame(3));
    assert_eq!(player.report(at(180)).freezes.count, 0);
    // Frame 2 is of no use any more.
    player.on_frame(at(181), &frame(2));
    assert_eq!(player.dry_at(), Some(at(170 + 80)));
}

proptest! {
    /// Whatever the network does: the time watched is played or frozen, reports don't change the
    /// player, and what is counted never goes back.
    #[test]
    fn time_is_played_or_frozen(
        arrivals in proptest::collection::vec(0_u64..300, 1..80),
        start_buffer in 0_u64..400,
        rebuffer in 0_u64..400,
        rest in 0_u64..2000,
    ) {
        let mut player = player(start_buffer, rebuffer);
        let mut now = 0;
        let mut frozen = ms(0);
        for (index, delay) in arrivals.iter().enumerate() {
            // In order, and no earlier than encoded.
            now = (40 * index as u64 + delay).max(now);
            player.on_frame(at(now), &frame(index as u64));
            let report = player.report(at(now));
            prop_assert_eq!(report.played + report.freezes.total, report.watched);
            prop_assert!(report.freezes.total >= frozen);
            prop_assert!(report.freezes.longest <= report.freezes.total);
            frozen = report.freezes.total;
        }
        let report = player.report(at(now + rest));
        prop_assert_eq!(report.played + report.freezes.total, report.watched);
        player.on_end(at(now));
        let all = player.report(at(now + 100_000));
        prop_assert_eq!(player.state(at(now + 100_000)), PlayerState::Finished);
        prop_assert_eq!(all.played + all.freezes.total, all.watched);
        prop_assert_eq!(all.played, ms(40 * arrivals.len() as u64));
    }

    /// Frames that are late by less than the buffer have no effect.
    #[test]
    fn jitter_below_the_buffer_freezes_nothing(jitter in proptest::collection::vec(0_u64..200, 20..80)) {
        let mut player = player(200, 200);
        let mut now = 0;
        for (index, jitter) in jitter.iter().enumerate() {
            now = (40 * index as u64 + jitter).max(now);
            player.on_frame(at(now), &frame(index as u64));
        }
        prop_assert_eq!(player.report(at(now)).freezes.count, 0);
    }
}
