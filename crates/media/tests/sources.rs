//! Generators: rates held, key frames where they belong, the same stream for the same seed.

use std::time::Duration;

use proptest::prelude::*;
use swiftwater_media::source::{Constant, Encoding, EncodingError, Limited, Variable};
use swiftwater_media::{Frame, FrameKind, FrameSource};
use swiftwater_units::Bandwidth;

fn take(source: &mut impl FrameSource, count: usize) -> Vec<Frame> {
    (0..count)
        .map(|_| source.next_frame().expect("endless"))
        .collect()
}

fn bytes(frames: &[Frame]) -> u64 {
    frames.iter().map(|frame| u64::from(frame.size)).sum()
}

#[test]
fn constant_rate_is_exact_at_every_frame() {
    let encoding = Encoding::new(Bandwidth::from_mbps(4), 60.0);
    let frames = take(&mut Constant::new(encoding).unwrap(), 6000);
    let mut sent = 0;
    for (frame, n) in frames.iter().zip(1..) {
        sent += u64::from(frame.size);
        // 500 000 bytes/s, 60 frames/s.
        assert_eq!(sent, 500_000 * n / 60, "after {n} frames");
        assert_eq!(frame.index, n - 1);
    }
    assert_eq!(frames[60].at, Duration::from_secs(1));
    assert_eq!(frames[1].at, Duration::from_nanos(16_666_667));
}

#[test]
fn only_the_first_frame_is_a_key_frame_unless_configured() {
    let encoding = Encoding::new(Bandwidth::from_mbps(4), 60.0);
    let mut source = Constant::new(encoding).unwrap();
    let frames = take(&mut source, 200);
    assert!(frames[0].is_key());
    assert!(
        frames[1..]
            .iter()
            .all(|frame| frame.kind == FrameKind::Delta)
    );
    source.force_key_frame();
    let frames = take(&mut source, 200);
    assert!(frames[0].is_key());
    assert!(
        frames[1..]
            .iter()
            .all(|frame| frame.kind == FrameKind::Delta)
    );
}

#[test]
fn key_frames_are_larger_by_their_factor_and_the_rate_holds() {
    let encoding = Encoding::new(Bandwidth::from_mbps(3), 30.0).with_key_frames(30, 4.0);
    let frames = take(&mut Constant::new(encoding).unwrap(), 300);
    for (group, gop) in frames.chunks(30).enumerate() {
        assert!(gop[0].is_key());
        assert!(gop[1..].iter().all(|frame| !frame.is_key()));
        let ratio = f64::from(gop[0].size) / f64::from(gop[1].size);
        assert!((ratio - 4.0).abs() < 0.01, "{ratio}");
        let due = 375_000 * (group as u64 + 1);
        assert!(bytes(&frames[..30 * (group + 1)]).abs_diff(due) <= 1);
    }
}

#[test]
fn what_a_forced_key_frame_takes_is_given_back_within_a_group() {
    let encoding = Encoding::new(Bandwidth::from_mbps(3), 30.0).with_key_frames(30, 4.0);
    let mut source = Constant::new(encoding).unwrap();
    let before = bytes(&take(&mut source, 17));
    source.force_key_frame();
    let group = take(&mut source, 30);
    assert!(group[0].is_key());
    assert!(group[1..].iter().all(|frame| !frame.is_key()));
    // 12 500 bytes a frame.
    assert!((before + bytes(&group)).abs_diff(12_500 * 47) <= 1);
    assert!(source.next_frame().unwrap().is_key());
}

#[test]
fn variable_sizes_are_the_seeds() {
    let encoding = Encoding::new(Bandwidth::from_mbps(4), 30.0).with_key_frames(60, 5.0);
    let stream = |seed| take(&mut Variable::new(encoding, 0.3, seed).unwrap(), 500);
    assert_eq!(stream(1), stream(1));
    assert_ne!(stream(1), stream(2));
}

#[test]
fn variable_sizes_keep_the_mean_rate_and_spread_as_configured() {
    let encoding = Encoding::new(Bandwidth::from_mbps(4), 30.0).with_key_frames(60, 5.0);
    for seed in 0..5 {
        let frames = take(&mut Variable::new(encoding, 0.3, seed).unwrap(), 3000);
        let due = 100 * 500_000;
        let error = bytes(&frames) as f64 / f64::from(due) - 1.0;
        assert!(error.abs() < 0.005, "seed {seed}: {error}");
        // Of a group, so that the rate control's unit is the same for all.
        let spreads: f64 = frames.chunks(60).map(|gop| spread(&gop[1..])).sum();
        let sigma = spreads / 50.0;
        assert!((sigma - 0.3).abs() < 0.03, "seed {seed}: {sigma}");
    }
}

/// Before rate control can even out anything, too.
#[test]
fn variable_sizes_have_the_mean_of_a_group_over_many_seeds() {
    let encoding = Encoding::new(Bandwidth::from_mbps(4), 30.0).with_key_frames(60, 5.0);
    let first_group = |seed| bytes(&take(&mut Variable::new(encoding, 0.3, seed).unwrap(), 60));
    let sum: u64 = (0..400).map(first_group).sum();
    let error = sum as f64 / (400.0 * 1e6) - 1.0;
    assert!(error.abs() < 0.02, "{error}");
}

/// Standard deviation of the logarithm of sizes.
fn spread(frames: &[Frame]) -> f64 {
    let logs: Vec<f64> = frames.iter().map(|f| f64::from(f.size).ln()).collect();
    let mean = logs.iter().sum::<f64>() / logs.len() as f64;
    let squares: f64 = logs.iter().map(|log| (log - mean).powi(2)).sum();
    (squares / (logs.len() - 1) as f64).sqrt()
}

#[test]
fn a_limited_stream_ends_and_stays_over() {
    let encoding = Encoding::new(Bandwidth::from_mbps(1), 25.0);
    let mut source = Limited::new(Constant::new(encoding).unwrap(), Duration::from_secs(1));
    let frames: Vec<_> = std::iter::from_fn(|| source.next_frame()).collect();
    assert_eq!(frames.len(), 25);
    assert_eq!(bytes(&frames), 125_000);
    assert_eq!(source.next_frame(), None);
}

#[test]
fn settings_that_make_no_stream_are_refused() {
    let good = Encoding::new(Bandwidth::from_mbps(1), 25.0);
    let error = |encoding| Constant::new(encoding).unwrap_err();
    assert_eq!(
        error(Encoding { fps: 0.0, ..good }),
        EncodingError::FrameRate(0.0)
    );
    let bps = Encoding::new(Bandwidth::from_bps(100), 25.0);
    assert_eq!(error(bps), EncodingError::FrameSize(0.5));
    let gop = Some(0);
    assert_eq!(error(Encoding { gop, ..good }), EncodingError::EmptyGop);
    let small_keys = good.with_key_frames(30, 0.5);
    assert_eq!(error(small_keys), EncodingError::KeyFactor(0.5));
    assert!(matches!(
        error(Encoding {
            fps: f64::NAN,
            ..good
        }),
        EncodingError::FrameRate(_)
    ));
    assert_eq!(
        Variable::new(good, 3.0, 0).unwrap_err(),
        EncodingError::Sigma(3.0)
    );
}

proptest! {
    /// The rate is met at the end of every group, for all settings.
    #[test]
    fn constant_rate_holds_for_any_settings(
        kbps in 100_u64..50_000,
        fps in 1.0..120.0_f64,
        gop in 1_u32..200,
        key_factor in 1.0..20.0_f64,
    ) {
        let encoding = Encoding::new(Bandwidth::from_kbps(kbps), fps)
            .with_key_frames(gop, key_factor);
        let frames = take(&mut Constant::new(encoding).unwrap(), 3 * gop as usize);
        // No frame may be smaller than 1 byte.
        let smallest = encoding.mean_size() / key_factor;
        prop_assume!(smallest > 1.0);
        for end in [gop, 2 * gop, 3 * gop] {
            let due = encoding.mean_size() * f64::from(end);
            let sent = bytes(&frames[..end as usize]) as f64;
            prop_assert!((sent - due).abs() <= 1.001, "{sent} of {due}");
        }
        prop_assert!(frames.windows(2).all(|pair| pair[0].at < pair[1].at));
    }

    /// Key frames exactly when requested, and at the latest a group after the last one.
    #[test]
    fn key_frames_come_when_asked_for(
        gop in 1_u64..40,
        asked in proptest::collection::btree_set(0_u64..300, 0..10),
        seed in any::<u64>(),
    ) {
        let encoding = Encoding::new(Bandwidth::from_mbps(4), 30.0)
            .with_key_frames(gop as u32, 3.0);
        let mut source = Variable::new(encoding, 0.5, seed).unwrap();
        let mut last_key = 0;
        for index in 0..300 {
            if asked.contains(&index) {
                source.force_key_frame();
            }
            let frame = source.next_frame().unwrap();
            let due = index == 0 || asked.contains(&index) || index - last_key == gop;
            prop_assert_eq!(frame.is_key(), due, "frame {}", index);
            prop_assert!(frame.size > 0);
            if due {
                last_key = index;
            }
        }
    }
}
