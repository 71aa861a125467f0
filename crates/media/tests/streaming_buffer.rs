//! The play-out buffer, by timelines computed by hand, and its conservation.

use std::time::Duration;

use proptest::prelude::*;
use swiftwater_media::player::PlayerState;
use swiftwater_media::streaming::{BufferConfig, PlayBuffer};
use swiftwater_units::Instant;

const fn s(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

const fn at(seconds: u64) -> Instant {
    Instant::from_millis(1000 * seconds)
}

fn buffer(maximum: u64, start: u64, resume: u64) -> PlayBuffer {
    let config = BufferConfig {
        maximum: s(maximum),
        start: s(start),
        resume: s(resume),
    };
    PlayBuffer::new(config, at(1))
}

#[test]
fn playback_starts_at_the_threshold_stalls_and_goes_on() {
    let mut buffer = buffer(30, 8, 8);
    buffer.add(at(3), s(4), 1000);
    assert_eq!(buffer.state(), PlayerState::Starting);
    assert_eq!(buffer.waiting_since(), Some(at(1)));
    buffer.add(at(5), s(4), 1000);
    assert_eq!(buffer.state(), PlayerState::Playing);
    assert_eq!(buffer.next_change(), Some(at(13) + Duration::from_nanos(1)));
    buffer.advance(at(13));
    assert_eq!(
        (buffer.state(), buffer.buffered()),
        (PlayerState::Playing, s(0))
    );
    buffer.advance(at(14));
    assert_eq!(
        (buffer.state(), buffer.waiting_since()),
        (PlayerState::Frozen, Some(at(13)))
    );
    assert_eq!(buffer.report().stalls.total, s(1));
    buffer.add(at(15), s(4), 1000);
    assert_eq!(buffer.state(), PlayerState::Frozen);
    buffer.add(at(17), s(4), 1000);
    let report = buffer.report();
    assert_eq!(report.start_time, Some(s(4)));
    assert_eq!((report.stalls.count, report.stalls.total), (1, s(4)));
    assert_eq!((report.arrived, report.played), (s(16), s(8)));
    let changes: Vec<_> = std::iter::from_fn(|| buffer.poll_change()).collect();
    let states = [
        PlayerState::Playing,
        PlayerState::Frozen,
        PlayerState::Playing,
    ];
    assert_eq!(
        changes,
        [at(5), at(13), at(17)]
            .into_iter()
            .zip(states)
            .collect::<Vec<_>>()
    );
}

#[test]
fn arrival_at_the_last_moment_is_no_stall() {
    let mut buffer = buffer(30, 0, 0);
    buffer.add(at(2), s(4), 1);
    buffer.add(at(6), s(4), 1);
    buffer.advance(at(7));
    assert_eq!(buffer.report().stalls.count, 0);
    assert_eq!(buffer.report().played, s(5));
}

#[test]
fn a_video_at_its_end_is_played_out() {
    let mut buffer = buffer(30, 20, 0);
    buffer.add(at(2), s(4), 1);
    buffer.end(at(3));
    assert_eq!(buffer.state(), PlayerState::Playing);
    assert_eq!(buffer.next_change(), Some(at(7)));
    buffer.add(at(4), s(4), 1);
    buffer.advance(at(60));
    assert_eq!(buffer.state(), PlayerState::Finished);
    assert_eq!(
        (buffer.report().played, buffer.report().stalls.count),
        (s(4), 0)
    );
    assert!(!buffer.has_room());
}

#[test]
fn the_bytes_of_what_is_played_in_part_count_in_part() {
    let mut buffer = buffer(30, 0, 0);
    assert_eq!(buffer.buffered_bytes(), 0);
    buffer.add(at(2), s(4), 1000);
    buffer.add(at(2), s(4), 400);
    buffer.advance(at(3));
    assert_eq!(buffer.buffered_bytes(), 1150);
    buffer.advance(at(8));
    assert_eq!(buffer.buffered_bytes(), 200);
    buffer.advance(at(20));
    assert_eq!((buffer.buffered_bytes(), buffer.bytes_arrived()), (0, 1400));
}

#[test]
fn there_is_room_below_the_maximum() {
    let mut buffer = buffer(8, 0, 0);
    buffer.add(at(2), s(4), 1);
    assert!(buffer.has_room());
    assert_eq!(buffer.room_at(), Some(at(2)));
    buffer.add(at(2), s(5), 1);
    assert!(!buffer.has_room());
    let room = at(3) + Duration::from_nanos(1);
    assert_eq!(buffer.room_at(), Some(room));
    buffer.advance(at(3));
    assert!(!buffer.has_room());
    buffer.advance(room);
    assert!(buffer.has_room());
}

#[test]
fn thresholds_above_the_maximum_start_at_the_maximum() {
    let mut buffer = buffer(4, 20, 20);
    buffer.add(at(2), s(4), 1);
    assert_eq!(buffer.state(), PlayerState::Playing);
}

proptest! {
    /// Played and buffered are what has arrived; played and stalled are the time since the start.
    #[test]
    fn play_time_is_conserved(
        steps in proptest::collection::vec((0_u64..8000, 0_u64..6000, 0_u64..9999), 1..60),
        start in 0_u64..10, resume in 0_u64..10,
    ) {
        let mut buffer = buffer(12, start, resume);
        let mut now = at(1);
        let (mut arrived, mut bytes) = (Duration::ZERO, 0);
        for (pause, duration, size) in steps {
            now += Duration::from_millis(pause);
            let duration = Duration::from_millis(duration);
            arrived += duration;
            bytes += size;
            buffer.add(now, duration, size);
            let report = buffer.report();
            prop_assert_eq!(report.arrived, arrived);
            prop_assert_eq!(report.played + buffer.buffered(), arrived);
            prop_assert_eq!(buffer.bytes_arrived(), bytes);
            prop_assert!(buffer.buffered_bytes() <= bytes);
            match report.start_time {
                None => prop_assert_eq!(report.played, Duration::ZERO),
                Some(first) => {
                    let since = now - (at(1) + first);
                    prop_assert_eq!(report.played + report.stalls.total, since);
                }
            }
        }
    }

    /// Looking more often changes nothing.
    #[test]
    fn it_does_not_matter_how_often_time_is_advanced(
        steps in proptest::collection::vec((0_u64..8000, 0_u64..6000), 1..40),
    ) {
        let (mut coarse, mut fine) = (buffer(12, 3, 3), buffer(12, 3, 3));
        let mut now = at(1);
        for (pause, duration) in steps {
            for _ in 0..4 {
                now += Duration::from_millis(pause / 4);
                fine.advance(now);
            }
            coarse.add(now, Duration::from_millis(duration), 7);
            fine.add(now, Duration::from_millis(duration), 7);
            prop_assert_eq!(coarse.report(), fine.report());
            prop_assert_eq!(coarse.poll_change(), fine.poll_change());
        }
    }
}
