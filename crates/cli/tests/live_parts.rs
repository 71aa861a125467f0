//! Parts of the live demo: frames on the stream, the viewer, quantiles, words.

use std::time::Duration;

use proptest::prelude::*;
use swiftwater::units::Instant;
use swiftwater_cli::demo::live::recoveries::{Recovered, mean, quantile};
use swiftwater_cli::demo::live::row::{LiveRow, verdict};
use swiftwater_cli::demo::live::schedule::{Schedule, header, read_header};
use swiftwater_cli::demo::live::summary::{conclusion, table};
use swiftwater_cli::demo::live::time_series::{Sample, loss};
use swiftwater_cli::demo::live::viewer::{Freeze, Viewer};
use swiftwater_cli::exit::Exit;
use swiftwater_media::player::{LiveConfig, PlayerState};
use swiftwater_media::source::SourceSpec;
use swiftwater_media::{Frame, FrameKind};

fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

fn at(ms: u64) -> Instant {
    Instant::from_millis(ms)
}

fn schedule(source: &str, seconds: u64, seed: u64) -> Schedule {
    let spec: SourceSpec = source.parse().expect("a source");
    Schedule::new(&spec, Duration::from_secs(seconds), seed).expect("it has frames")
}

#[test]
fn a_schedule_is_the_beginning_of_its_source() {
    let sample = schedule("sample", 2, 1);
    assert_eq!(sample.frames().len(), 50);
    assert!(sample.frames()[0].is_key());
    assert_eq!(sample.end(), ms(1960));
    let constant = schedule("cbr:800kbit,fps=10", 3, 1);
    assert_eq!(constant.frames().len(), 30);
    assert_eq!(constant.mean_rate().as_bps(), 800_000);
    let short = schedule("cbr:800kbit,fps=10,for=1s", 3, 1);
    assert_eq!(short.frames().len(), 10);
}

#[test]
fn payloads_differ_by_seed_and_frame() {
    let (one, other) = (schedule("sample", 1, 1), schedule("sample", 1, 2));
    let bytes = |schedule: &Schedule, index: usize| {
        let mut bytes = [0; 64];
        schedule.payload(&schedule.frames()[index]).fill(&mut bytes);
        bytes
    };
    assert_eq!(bytes(&one, 3), bytes(&one, 3));
    assert_ne!(bytes(&one, 3), bytes(&one, 4));
    assert_ne!(bytes(&one, 3), bytes(&other, 3));
}

proptest! {
    #[test]
    fn headers_are_read_as_written(
        index: u64, key: bool, size: u32, nanos in 0..u64::MAX,
    ) {
        let kind = if key { FrameKind::Key } else { FrameKind::Delta };
        let frame = Frame { index, kind, size, at: Duration::from_nanos(nanos) };
        prop_assert_eq!(read_header(&header(&frame)), Some(frame));
    }

    #[test]
    fn no_header_is_misread(bytes: [u8; 21]) {
        match read_header(&bytes) {
            Some(frame) => prop_assert_eq!(header(&frame), bytes),
            None => prop_assert!(bytes[8] > 1),
        }
    }

    #[test]
    fn a_payload_is_the_same_in_any_pieces(
        pieces in prop::collection::vec(1_usize..40, 1..20),
        damaged in prop::option::of(any::<prop::sample::Index>()),
    ) {
        let schedule = schedule("sample", 1, 7);
        let frame = &schedule.frames()[0];
        let total = pieces.iter().sum();
        let mut bytes = vec![0; total];
        schedule.payload(frame).fill(&mut bytes);
        if let Some(place) = damaged {
            bytes[place.index(total)] ^= 0x10;
        }
        let mut payload = schedule.payload(frame);
        let mut rest = &bytes[..];
        let mut intact = true;
        for size in pieces {
            let (piece, more) = rest.split_at(size);
            intact &= payload.matches(piece);
            rest = more;
        }
        prop_assert_eq!(intact, damaged.is_none());
    }

    #[test]
    fn quantiles_lie_among_the_latencies(
        latencies in prop::collection::vec((0_u64..500, 1_u32..1500), 1..50),
        share in 0.0..1.0,
    ) {
        let mut sorted: Vec<Recovered> = latencies
            .into_iter()
            .map(|(latency, bytes)| Recovered { latency: ms(latency), bytes })
            .collect();
        sorted.sort_unstable();
        let (first, last) = (sorted[0].latency, sorted[sorted.len() - 1].latency);
        let value = quantile(&sorted, share).expect("there are some");
        prop_assert!(first <= value && value <= last);
        prop_assert_eq!(quantile(&sorted, 1.0), Some(last));
        let mean = mean(&sorted).expect("there are some");
        // Rounded to nanoseconds.
        prop_assert!(first <= mean + ms(1) && mean <= last + ms(1));
    }
}

#[test]
fn bytes_count_the_same_in_quantiles() {
    let one = |latency, bytes| Recovered {
        latency: ms(latency),
        bytes,
    };
    let sorted = [one(10, 900), one(100, 100)];
    assert_eq!(quantile(&sorted, 0.9), Some(ms(10)));
    assert_eq!(quantile(&sorted, 0.91), Some(ms(100)));
    assert_eq!(mean(&sorted), Some(ms(19)));
    assert_eq!((quantile(&[], 0.5), mean(&[])), (None, None));
}

/// Frames every 40 ms; the viewer requests at 100 ms, the stream starts at 130 ms.
fn frame(index: u64) -> Frame {
    Frame {
        index,
        kind: FrameKind::Delta,
        size: 100,
        at: ms(40 * index),
    }
}

#[test]
fn a_viewer_keeps_what_it_saw() {
    let config = LiveConfig {
        start_buffer: ms(80),
        rebuffer: ms(40),
    };
    let mut viewer = Viewer::new(config, at(100));
    assert_eq!(viewer.state(at(100)), None);
    let begun = at(130);
    // Each frame 30 ms after its capture; play starts with the third, at 240 ms.
    for index in 0..3 {
        viewer.on_frame(at(160 + 40 * index), begun, &frame(index), true);
    }
    assert_eq!(viewer.state(at(240)), Some(PlayerState::Playing));
    // Frame 3 is due at 360 ms and arrives at 400; with frame 4, 40 ms are buffered again.
    viewer.on_frame(at(400), begun, &frame(3), true);
    assert_eq!(viewer.state(at(400)), Some(PlayerState::Frozen));
    assert!(viewer.freezes().is_empty(), "it is not over");
    let lasting = Freeze {
        since: at(360),
        until: at(402),
    };
    assert!(
        viewer.freezes_by(at(402)).eq([lasting]),
        "but it can be seen"
    );
    viewer.on_frame(at(405), begun, &frame(4), false);
    assert_eq!(viewer.state(at(405)), Some(PlayerState::Playing));
    assert_eq!(
        viewer.freezes(),
        [Freeze {
            since: at(360),
            until: at(405),
        }]
    );
    assert!(
        viewer
            .freezes_by(at(406))
            .eq(viewer.freezes().iter().copied())
    );
    viewer.on_end(at(410));
    let report = viewer.report(at(1000)).expect("it saw something");
    assert_eq!(report.start_time, Some(ms(140)));
    assert_eq!((report.freezes.count, report.freezes.total), (1, ms(45)));
    assert_eq!(viewer.delays(), [30, 30, 30, 150, 115].map(ms));
    assert_eq!((viewer.frames(), viewer.bytes()), (5, 500));
    assert_eq!(viewer.differing(), 1, "the last one was damaged");
    assert!(viewer.is_complete());
}

fn row(recovery: &str) -> LiveRow {
    LiveRow {
        recovery: recovery.to_owned(),
        frames_received: 1,
        verified: true,
        complete: true,
        startup_ms: Some(300.0),
        ..LiveRow::default()
    }
}

#[test]
fn the_conclusion_is_made_of_what_was_measured() {
    let plain = LiveRow {
        repeated_data: 7,
        recovery_mean_ms: Some(80.4),
        freezes: 2,
        frozen_ms: 310.0,
        ..row("arq")
    };
    let other = LiveRow {
        repeated_data: 9,
        recovery_mean_ms: Some(90.6),
        redundancy_cost: 0.123,
        ..row("other")
    };
    let words = conclusion(&plain, &other).join(" ");
    // The viewer's results come first.
    assert!(
        words.starts_with("other: no freeze instead of 2 freezes of 310 ms in all; "),
        "{words}"
    );
    for part in [
        "(9 times; 7 with arq)",
        "91 ms later on average instead of 80 ms",
        "12.3 % more data",
    ] {
        assert!(words.contains(part), "no '{part}' in: {words}");
    }
    // Without a repeated loss there is no latency, and none is made up.
    let words = conclusion(&row("arq"), &other).join(" ");
    assert!(words.contains("Too few") && !words.contains("91 ms"));
    let failed = LiveRow {
        error: Some("lost".to_owned()),
        ..row("arq")
    };
    assert!(conclusion(&failed, &other)[0].contains("nothing to compare"));
    let table = table(&[plain.clone(), other.clone()]);
    let lines: Vec<&str> = table.lines().collect();
    assert_eq!(lines.len(), 17, "{table}");
    assert!(lines[0].contains("arq (plain)"), "{table}");
    assert_eq!(lines[1], "What the viewer got");
    assert!(
        lines[2].contains("frozen") && lines[2].contains("310 ms"),
        "{table}"
    );
    assert!(lines[3].contains("frame delay"), "{table}");
    assert!(table.contains("12.3 %") && table.contains("1 (all, verified)"));
}

#[test]
fn the_conclusion_hides_no_missing_frames() {
    let plain = LiveRow {
        frames: 750,
        frames_received: 703,
        complete: false,
        frame_p95_ms: Some(900.0),
        recovery_mean_ms: Some(1181.0),
        startup_ms: Some(300.0),
        ..row("arq")
    };
    let other = LiveRow {
        frames_received: 226,
        frame_p95_ms: Some(100.0),
        recovery_mean_ms: Some(474.0),
        startup_ms: None,
        recovery: "other".to_owned(),
        ..plain.clone()
    };
    let words = conclusion(&plain, &other).join(" ");
    for part in [
        "226 of 750 frames arrived in the time instead of 703",
        "no picture instead of no freeze",
    ] {
        assert!(words.contains(part), "no '{part}' in: {words}");
    }
    // Frames that were not received have no delays.
    assert!(!words.contains("95 % of frames"), "{words}");
    let table = table(&[plain.clone(), other]);
    assert!(table.contains("226 of 750 (in part)"), "{table}");
    // What is the same is said once.
    assert!(conclusion(&plain, &plain)[0].contains("no freeze with either"));
}

#[test]
fn the_first_failure_decides_how_it_ends() {
    assert!(verdict(&[row("a"), row("b")]).is_ok());
    let failed = LiveRow {
        error: Some("lost".to_owned()),
        exit: Some(Exit::Connection),
        ..row("b")
    };
    let failure = verdict(&[row("a"), failed]).expect_err("b failed");
    assert_eq!(failure.exit, Exit::Connection);
    assert!(failure.message().contains("b: lost"));
    let differs = LiveRow {
        verified: false,
        ..row("c")
    };
    let failure = verdict(&[differs]).expect_err("c differs");
    assert_eq!(failure.exit, Exit::Differs);
}

#[test]
fn loss_over_time_is_that_of_two_seconds() {
    // Ten samples a second, ten packets between them; all are lost in the third second.
    let sample = |n: u64| Sample {
        at: n as f64 / 10.0,
        buffer_ms: 0.0,
        state: None,
        level: 0,
        packets: (10 * n, 10 * n.clamp(20, 30) - 200),
    };
    let samples: Vec<Sample> = (0..60).map(sample).collect();
    let points = loss(&samples);
    // Where nothing was sent yet there is no share.
    assert_eq!(points.len(), 59);
    let at = |time: f64| {
        let point = points.iter().find(|(at, _)| (at - time).abs() < 1e-9);
        point.expect("there is a sample").1
    };
    assert!(at(1.9).abs() < 1e-9);
    assert!((at(3.0) - 50.0).abs() < 1e-9);
    assert!((at(4.0) - 50.0).abs() < 1e-9);
    assert!(at(5.5).abs() < 1e-9);
}
