//! Recordings: what makes one, how one is played, scaled and written.

use std::sync::Arc;
use std::time::Duration;

use proptest::prelude::*;
use swiftwater_media::source::{Recorded, RecordedFrame, Recording, RecordingError, sample};
use swiftwater_media::{Frame, FrameKind, FrameSource};
use swiftwater_units::Bandwidth;

const fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

fn frame(at: Duration, size: u32, kind: FrameKind) -> RecordedFrame {
    RecordedFrame { at, size, kind }
}

/// Four frames of 3000, 1000, 500 and 500 bytes, 40 ms apart: 250 kbit/s.
fn small() -> Recording {
    let sizes = [3000, 1000, 500, 500];
    let frames = sizes.iter().enumerate().map(|(index, size)| {
        let kind = if index == 0 {
            FrameKind::Key
        } else {
            FrameKind::Delta
        };
        frame(ms(1000 + 40 * index as u64), *size, kind)
    });
    Recording::new(frames.collect(), None).expect("a stream")
}

fn take(source: &mut Recorded, count: usize) -> Vec<Frame> {
    (0..count)
        .map(|_| source.next_frame().expect("endless"))
        .collect()
}

#[test]
fn times_count_from_the_first_frame_and_the_last_lasts_as_long_as_others() {
    let recording = small();
    let times: Vec<_> = recording.frames().iter().map(|frame| frame.at).collect();
    assert_eq!(times, [ms(0), ms(40), ms(80), ms(120)]);
    assert_eq!(recording.period(), ms(160));
    assert_eq!(recording.bytes(), 5000);
    assert_eq!(recording.mean_rate(), Bandwidth::from_kbps(250));
}

#[test]
fn a_recording_is_played_in_a_loop() {
    let frames = take(&mut Recorded::new(Arc::new(small())), 10);
    let indices: Vec<_> = frames.iter().map(|frame| frame.index).collect();
    assert_eq!(indices, (0..10).collect::<Vec<_>>());
    assert_eq!(frames[4].at, ms(160));
    assert_eq!(frames[9].at, ms(2 * 160 + 40));
    assert_eq!((frames[4].size, frames[9].size), (3000, 1000));
    assert!(frames[8].is_key() && !frames[9].is_key());
}

#[test]
fn scaling_keeps_the_shape_and_hits_the_rate() {
    let source = Recorded::new(Arc::new(small()));
    let mut source = source.at_rate(Bandwidth::from_kbps(83));
    let frames = take(&mut source, 4000);
    let sent: u64 = frames.iter().map(|frame| u64::from(frame.size)).sum();
    // 83 kbit/s for 160 s.
    assert!(sent.abs_diff(83_000 / 8 * 160) <= 1, "{sent}");
    assert_eq!(frames[0].size, 996);
    assert_eq!(frames[1].size, 332);
}

#[test]
fn a_forced_key_frame_is_as_large_as_the_last_one() {
    let mut source = Recorded::new(Arc::new(small()));
    take(&mut source, 2);
    source.force_key_frame();
    let frames = take(&mut source, 3);
    assert_eq!((frames[0].kind, frames[0].size), (FrameKind::Key, 3000));
    assert_eq!((frames[1].kind, frames[1].size), (FrameKind::Delta, 500));
}

#[test]
fn a_truncated_recording_plays_for_that_long() {
    let short = small().truncated(ms(100)).unwrap();
    assert_eq!(short.frames().len(), 3);
    assert_eq!(short.period(), ms(100));
    assert_eq!(small().truncated(ms(0)), Err(RecordingError::Empty));
    assert_eq!(small().truncated(ms(9999)).unwrap(), small());
}

#[test]
fn tables_that_make_no_stream_are_refused() {
    let key = |at, size| frame(at, size, FrameKind::Key);
    assert_eq!(Recording::new(Vec::new(), None), Err(RecordingError::Empty));
    assert_eq!(
        Recording::new(vec![key(ms(0), 0)], None),
        Err(RecordingError::Empty)
    );
    assert_eq!(
        Recording::new(vec![key(ms(5), 1), key(ms(4), 1)], None),
        Err(RecordingError::TimeGoesBack(1))
    );
    assert_eq!(
        Recording::new(vec![key(ms(5), 1)], None),
        Err(RecordingError::NoDuration)
    );
    let month = Duration::from_secs(31 * 24 * 3600);
    assert_eq!(
        Recording::new(vec![key(ms(0), 1), key(month, 1)], None),
        Err(RecordingError::TooLong)
    );
    assert_eq!(
        Recording::new(vec![key(ms(0), 1)], Some(Duration::MAX)),
        Err(RecordingError::TooLong)
    );
}

#[test]
fn the_sample_is_ten_seconds_of_25_frames_per_second() {
    let sample = sample();
    assert_eq!(sample.frames().len(), 250);
    assert_eq!(sample.period(), Duration::from_secs(10));
    assert!(sample.frames()[0].kind == FrameKind::Key);
}

#[test]
fn a_wrong_line_of_a_table_is_named() {
    let parse = |text: &str| text.parse::<Recording>();
    let good = "at_us,bytes,kind\n0,10,key\n40000,5,delta\n";
    assert_eq!(parse(good).unwrap().bytes(), 15);
    assert_eq!(parse("0,10,key"), Err(RecordingError::Heading));
    assert_eq!(parse(""), Err(RecordingError::Heading));
    for wrong in ["0,10", "0,10,key,1", "-1,10,key", "0,ten,key", "0,10,I"] {
        let text = format!("{good}{wrong}\n");
        assert_eq!(parse(&text), Err(RecordingError::Line(4)), "{wrong}");
    }
}

prop_compose! {
    fn recording()(
        frames in proptest::collection::vec(
            (1_u64..1_000_000, 1_u32..1_000_000, any::<bool>()),
            2..50,
        )
    ) -> Recording {
        let mut at = 0;
        let frames = frames.into_iter().map(|(step, size, key)| {
            at += step;
            let kind = if key { FrameKind::Key } else { FrameKind::Delta };
            frame(Duration::from_micros(at), size, kind)
        });
        Recording::new(frames.collect(), None).expect("times go forward")
    }
}

proptest! {
    #[test]
    fn a_table_reads_as_it_was_written(recording in recording()) {
        let read: Recording = recording.to_string().parse().unwrap();
        prop_assert_eq!(read.frames(), recording.frames());
        prop_assert_eq!(read.period(), recording.period());
    }

    /// Over whole iterations of the loop, the rate is met to a byte.
    #[test]
    fn any_recording_is_scaled_to_any_rate(recording in recording(), kbps in 100_u64..100_000) {
        let (turns, count) = (3, recording.frames().len());
        let seconds = recording.period().as_secs_f64() * f64::from(turns);
        let smallest = recording.frames().iter().map(|frame| frame.size).min().unwrap_or(0);
        let due = seconds * kbps as f64 * 125.0;
        let scale = due / (recording.bytes() as f64 * f64::from(turns));
        prop_assume!(f64::from(smallest) * scale >= 2.0);
        let mut source = Recorded::new(Arc::new(recording)).at_rate(Bandwidth::from_kbps(kbps));
        let frames = take(&mut source, count * 3);
        prop_assume!(frames.iter().all(|frame| frame.size < u32::MAX));
        let sent: u64 = frames.iter().map(|frame| u64::from(frame.size)).sum();
        prop_assert!((sent as f64 - due).abs() <= 1.0 + due * 1e-9, "{sent} of {due}");
        prop_assert!(frames.windows(2).all(|pair| pair[0].at < pair[1].at));
    }

    #[test]
    fn any_text_is_read_or_refused(text in "(at_us,bytes,kind\n)?[0-9a-z,\n-]{0,60}") {
        let _ = text.parse::<Recording>();
    }
}
