//! The display and the freeze rule of WebRTC's statistics, against timelines worked out by hand.

use std::time::Duration;

use swiftwater_media::player::FrameDisplay;
use swiftwater_media::{Frame, FrameKind};
use swiftwater_units::Instant;

fn frame(index: u64, kind: FrameKind) -> Frame {
    Frame {
        index,
        kind,
        size: 1000,
        at: Duration::from_millis(40 * index),
    }
}

fn delta(index: u64) -> Frame {
    frame(index, FrameKind::Delta)
}

const fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

/// A display that has shown `count` frames, one every 40 ms from time zero, and the time of the last.
fn regular(count: u64) -> (FrameDisplay, Instant) {
    let mut display = FrameDisplay::new();
    for index in 0..count {
        assert_eq!(
            display.on_complete(Instant::from_millis(40 * index), &delta(index)),
            1
        );
    }
    (display, Instant::from_millis(40 * (count - 1)))
}

#[test]
fn frames_are_shown_in_order_and_at_once() {
    let mut display = FrameDisplay::new();
    let now = Instant::from_millis(1);
    assert_eq!(display.on_complete(now, &delta(0)), 1);
    assert_eq!(display.on_complete(now, &delta(2)), 0);
    assert_eq!(display.on_complete(now, &delta(3)), 0);
    assert_eq!(display.next_index(), 1);
    assert_eq!(display.on_complete(now, &delta(1)), 3);
    assert_eq!(display.on_complete(now, &delta(1)), 0);
    let report = display.report(now);
    assert_eq!((report.shown, report.skipped), (4, 0));
}

#[test]
fn a_complete_key_frame_is_shown_at_once_and_those_before_it_never() {
    let mut display = FrameDisplay::new();
    let now = Instant::from_millis(1);
    display.on_complete(now, &delta(0));
    display.on_complete(now, &delta(2));
    display.on_complete(now, &delta(7));
    assert_eq!(display.on_complete(now, &frame(6, FrameKind::Key)), 2);
    assert_eq!(display.on_complete(now, &delta(1)), 0);
    assert_eq!(display.next_index(), 8);
    let report = display.report(now);
    assert_eq!((report.shown, report.skipped), (3, 5));
}

#[test]
fn a_gap_of_150_ms_more_than_usual_is_no_freeze_yet() {
    let (mut display, last) = regular(31);
    display.on_complete(last + ms(190), &delta(31));
    let report = display.report(last + ms(190));
    assert_eq!(report.freezes.count, 0);
    assert_eq!(report.judged, ms(190));
}

#[test]
fn a_longer_gap_is_a_freeze_as_a_whole() {
    let (mut display, last) = regular(61);
    display.on_complete(last + ms(200), &delta(61));
    let report = display.report(last + ms(200));
    assert_eq!(report.freezes.count, 1);
    assert_eq!(report.freezes.total, ms(200));
    // 30 regular gaps and the freeze.
    assert_eq!(report.judged, ms(1400));
    assert!((report.frozen_share() - 1.0 / 7.0).abs() < 1e-12);
}

#[test]
fn slow_streams_freeze_at_three_usual_gaps() {
    let mut display = FrameDisplay::new();
    for index in 0..31 {
        display.on_complete(Instant::from_millis(100 * index), &delta(index));
    }
    let last = Instant::from_millis(3000);
    let mut at_limit = display.clone();
    at_limit.on_complete(last + ms(300), &delta(31));
    assert_eq!(at_limit.report(last + ms(300)).freezes.count, 0);
    display.on_complete(last + ms(301), &delta(31));
    assert_eq!(display.report(last + ms(301)).freezes.longest, ms(301));
}

#[test]
fn what_is_usual_is_the_mean_of_the_last_30_gaps() {
    // A gap of 3040 ms and then 29 of 40 ms, 140 ms on average: the limit is 420 ms.
    let mut display = FrameDisplay::new();
    display.on_complete(Instant::ZERO, &delta(0));
    for index in 1..31 {
        let time = Instant::from_millis(3000 + 40 * index);
        display.on_complete(time, &delta(index));
    }
    let last = Instant::from_millis(4200);
    assert_eq!(display.report(last + ms(420)).freezes.count, 0);
    assert_eq!(display.report(last + ms(421)).freezes.count, 1);
    // With one gap more of 40 ms, the first is forgotten: the limit is 190 ms.
    display.on_complete(last + ms(40), &delta(31));
    assert_eq!(display.report(last + ms(40 + 190)).freezes.count, 0);
    assert_eq!(display.report(last + ms(40 + 191)).freezes.count, 1);
}

#[test]
fn the_first_31_frames_are_not_judged() {
    let (mut display, last) = regular(30);
    display.on_complete(last + ms(5000), &delta(30));
    let report = display.report(last + ms(5000));
    assert_eq!(report.freezes.count, 0);
    assert_eq!(report.judged, ms(0));
}

#[test]
fn a_gap_without_end_counts_when_it_is_a_freeze() {
    let (display, last) = regular(31);
    assert_eq!(display.report(last + ms(190)).freezes.count, 0);
    let report = display.report(last + ms(10_000));
    assert_eq!(report.freezes.total, ms(10_000));
    assert!((report.frozen_share() - 1.0).abs() < 1e-12);
}

#[test]
fn frames_that_wait_in_vain_are_few() {
    let mut display = FrameDisplay::new();
    let now = Instant::ZERO;
    for index in 1..20_000 {
        assert_eq!(display.on_complete(now, &delta(index)), 0);
    }
    let shown = display.on_complete(now, &delta(0));
    assert!((1000..10_000).contains(&shown), "{shown}");
}
