//! Deadline misses against a timeline worked out by hand.

use std::time::Duration;

use swiftwater_media::player::DeadlineMeter;
use swiftwater_media::{Frame, FrameKind};
use swiftwater_units::Instant;

const EPOCH: Instant = Instant::from_millis(5000);

/// Frames of 10 frames per second.
fn frame(index: u64) -> Frame {
    Frame {
        index,
        kind: FrameKind::Delta,
        size: 1000,
        at: Duration::from_millis(100 * index),
    }
}

/// `count` frames were encoded; each but the `missing` ones is complete `delay` ms later.
fn meter(count: u64, missing: &[u64], delay: u64) -> DeadlineMeter {
    let mut meter = DeadlineMeter::new(EPOCH, Duration::from_millis(100));
    for index in 0..count {
        meter.on_encoded(&frame(index));
        if !missing.contains(&index) {
            complete(&mut meter, index, delay);
        }
    }
    meter
}

fn complete(meter: &mut DeadlineMeter, index: u64, delay: u64) {
    let frame = frame(index);
    meter.on_complete(EPOCH + frame.at + Duration::from_millis(delay), &frame);
}

const END: Instant = Instant::from_millis(60_000);

#[test]
fn frames_that_are_late_or_never_complete_are_missed() {
    let mut meter = meter(25, &[3, 4, 5, 12, 24], 50);
    complete(&mut meter, 5, 100);
    complete(&mut meter, 12, 101);
    let report = meter.report(END);
    assert_eq!((report.frames, report.missed), (25, 4));
    assert!((report.miss_rate() - 0.16).abs() < 1e-12);
}

#[test]
fn frames_before_their_deadline_are_not_judged() {
    let meter = meter(25, &[3, 4, 12, 24], 50);
    // Frame 20 is due 2.1 s after the epoch.
    let report = meter.report(EPOCH + Duration::from_millis(2100));
    assert_eq!((report.frames, report.missed), (21, 3));
    let report = meter.report(EPOCH + Duration::from_millis(2099));
    assert_eq!((report.frames, report.missed), (20, 3));
}

#[test]
fn the_rate_per_second_is_the_mean_over_seconds() {
    // Seconds: 2 of 10 skipped, 1 of 10, none of 4 (the last frame ends no gap).
    let report = meter(25, &[3, 4, 12, 24], 50).report(END);
    assert!((report.per_second - 0.1).abs() < 1e-12, "{report:?}");
}

#[test]
fn a_gap_counts_in_the_second_that_ends_it() {
    // Seconds: none of 8 (frames 0 to 7), 4 of 12 (frames 8 to 11 missed, 12 to 19 shown).
    let report = meter(20, &[8, 9, 10, 11], 50).report(END);
    assert!((report.per_second - 1.0 / 6.0).abs() < 1e-12, "{report:?}");
}

#[test]
fn all_missed_is_all_missed_but_has_no_rate_per_second() {
    let report = meter(10, &[], 101).report(END);
    assert!((report.miss_rate() - 1.0).abs() < 1e-12);
    assert!(report.per_second.abs() < 1e-12);
}

#[test]
fn unknown_frames_change_nothing() {
    let mut meter = meter(5, &[2], 50);
    let before = meter.report(END);
    complete(&mut meter, 99, 10);
    complete(&mut meter, u64::MAX / 1_000_000_000, 10);
    meter.on_encoded(&frame(4));
    meter.on_encoded(&frame(77));
    assert_eq!(meter.report(END), before);
    assert_eq!(meter.due(&frame(2)), EPOCH + Duration::from_millis(300));
}

#[test]
fn no_frames_no_misses() {
    let report = meter(0, &[], 0).report(END);
    assert_eq!((report.frames, report.missed), (0, 0));
    assert!(report.miss_rate().abs() < 1e-12);
}
