//! Short videos: files of frames, feeds, and the player that swipes through them.

use std::sync::Arc;
use std::time::Duration;

use proptest::prelude::*;
use swiftwater_media::source::sample;
use swiftwater_media::streaming::{
    Departure, FeedSpec, RangeRequest, ShortVideo, ShortVideoConfig, ShortVideoError,
    ShortVideoEvent, ShortVideoPlayer, Viewing,
};
use swiftwater_units::{Bandwidth, Instant};

const fn ms(millis: u64) -> Instant {
    Instant::from_millis(millis)
}

const fn span(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

/// 4 s of 100 frames, a first one of 10,000 bytes and others of 1000.
fn video() -> Arc<ShortVideo> {
    let rate = Bandwidth::from_bps(109_000 * 8 / 4);
    Arc::new(ShortVideo::constant(10_000, rate, 25.0, span(4000)).expect("a video"))
}

fn viewing(watch: Option<u64>) -> Viewing {
    Viewing {
        video: video(),
        watch: watch.map(span),
    }
}

fn config() -> ShortVideoConfig {
    ShortVideoConfig {
        request_bytes: 20_000,
        parallel: 2,
        ..ShortVideoConfig::default()
    }
}

fn requests(player: &mut ShortVideoPlayer, now: Instant) -> Vec<RangeRequest> {
    std::iter::from_fn(|| player.poll_request(now)).collect()
}

fn complete(player: &mut ShortVideoPlayer, now: Instant, request: &RangeRequest) {
    player.on_data(now, request.id, request.range.end - request.range.start);
    player.on_complete(now, request.id);
}

fn events(player: &mut ShortVideoPlayer) -> Vec<(Instant, ShortVideoEvent)> {
    std::iter::from_fn(|| player.poll_event()).collect()
}

#[test]
fn a_file_consists_of_frames() {
    let video = video();
    assert_eq!(
        (video.bytes(), video.frames(), video.first_frame()),
        (109_000, 100, 10_000)
    );
    assert_eq!((video.length(), video.interval()), (span(4000), span(40)));
    assert_eq!(video.rate(), Bandwidth::from_bps(218_000));
    assert_eq!(
        [9_999, 10_000, 11_999, 109_000].map(|bytes| video.frames_within(bytes)),
        [0, 1, 2, 100]
    );
    assert_eq!(
        [0, 1, 2, 100, 101].map(|n| video.bytes_of(n)),
        [0, 10_000, 11_000, 109_000, 109_000]
    );
}

#[test]
fn a_real_encode_is_a_file_too() {
    let video = ShortVideo::of_recording(&sample()).expect("a video");
    assert_eq!(video.first_frame(), 41_882);
    assert_eq!(
        (video.bytes(), video.length()),
        (sample().bytes(), sample().period())
    );
}

#[test]
fn invalid_videos_are_errors() {
    let rate = Bandwidth::from_mbps(1);
    let of = |first, fps, length| ShortVideo::constant(first, rate, fps, length).map(|_| ());
    assert_eq!(of(0, 25.0, span(1000)), Err(ShortVideoError::Empty));
    assert_eq!(of(1, 0.0, span(1000)), Err(ShortVideoError::FrameRate(0.0)));
    assert!(of(1, f64::NAN, span(1000)).is_err());
    assert_eq!(of(1, 25.0, Duration::MAX), Err(ShortVideoError::TooLong));
    assert_eq!(of(1 << 40, 25.0, span(1000)), Ok(()));
}

#[test]
fn requests_go_in_order_and_in_parallel_and_mark_the_first_frame() {
    let mut player = ShortVideoPlayer::new(config(), vec![viewing(None)], ms(0));
    let first = requests(&mut player, ms(0));
    let ranges: Vec<_> = first.iter().map(|request| request.range.clone()).collect();
    assert_eq!(ranges, [0..20_000, 20_000..40_000]);
    assert_eq!(first[0].first_frame, Some(0..10_000));
    assert_eq!(first[1].first_frame, None);
    // Its first frame is shown although the second request is complete first, and this one isn't.
    complete(&mut player, ms(100), &first[1]);
    player.on_data(ms(200), first[0].id, 9_999);
    assert_eq!(events(&mut player), []);
    player.on_data(ms(300), first[0].id, 1);
    assert_eq!(
        events(&mut player),
        [(ms(300), ShortVideoEvent::FirstFrame(0))]
    );
    assert_eq!(player.buffer().buffered(), span(40));
    player.on_data(ms(310), first[0].id, 10_000);
    // 31 frames in 40,000 bytes, 10 ms of which were played.
    assert_eq!(player.buffer().buffered(), span(31 * 40 - 10));
    assert_eq!(requests(&mut player, ms(310))[0].range, 40_000..60_000);
}

#[test]
fn the_first_frame_may_need_several_requests() {
    let large = ShortVideo::constant(50_000, Bandwidth::from_mbps(1), 25.0, span(4000));
    let large = Viewing {
        video: Arc::new(large.expect("a video")),
        watch: None,
    };
    let mut player = ShortVideoPlayer::new(
        ShortVideoConfig {
            parallel: 3,
            ..config()
        },
        vec![large],
        ms(0),
    );
    let parts: Vec<_> = requests(&mut player, ms(0))
        .into_iter()
        .map(|r| r.first_frame)
        .collect();
    assert_eq!(
        parts,
        [Some(0..20_000), Some(20_000..40_000), Some(40_000..50_000)]
    );
}

#[test]
fn a_stall_ends_with_enough_play_time() {
    let mut player = ShortVideoPlayer::new(config(), vec![viewing(None)], ms(0));
    let first = requests(&mut player, ms(0));
    player.on_data(ms(100), first[0].id, 20_000);
    // 11 frames are played by 540 ms; 12 are left until playback goes on.
    player.on_data(ms(1000), first[1].id, 11_999);
    assert!(player.signal().expect("a video").stalled);
    player.on_data(ms(1100), first[1].id, 1_001);
    let signal = player.signal().expect("a video");
    assert_eq!((signal.cached_frames, signal.stalled), (13, false));
    let report = player.report();
    assert_eq!((report.stalls, report.stalled), (1, span(560)));
    assert_eq!(report.first_frames, [span(100)]);
    let rate = report.rebuffer_rate().expect("something was played");
    assert!((rate - 560.0 / 440.0).abs() < 1e-9);
}

#[test]
fn no_more_is_requested_than_the_play_time_ahead() {
    let config = ShortVideoConfig {
        ahead: span(1000),
        ..config()
    };
    let mut player = ShortVideoPlayer::new(config, vec![viewing(None)], ms(0));
    let first = requests(&mut player, ms(0));
    // 11 frames, 440 ms, then 31 frames, 1240 ms.
    assert_eq!(first.len(), 2);
    complete(&mut player, ms(100), &first[0]);
    complete(&mut player, ms(100), &first[1]);
    assert_eq!(requests(&mut player, ms(100)), []);
    let room = ms(340) + Duration::from_nanos(1);
    assert_eq!(player.next_timer(), Some(room));
    assert_eq!(requests(&mut player, ms(340)), []);
    assert_eq!(requests(&mut player, room).len(), 1);
}

#[test]
fn a_swipe_cancels_requests_and_begins_the_next_video() {
    let feed = vec![viewing(Some(200)), viewing(None)];
    let mut player = ShortVideoPlayer::new(config(), feed, ms(0));
    let first = requests(&mut player, ms(0));
    player.on_data(ms(100), first[0].id, 20_000);
    assert_eq!(player.next_timer(), Some(ms(300)));
    player.on_timer(ms(300));
    assert_eq!(player.current(), 1);
    let cancelled: Vec<_> = std::iter::from_fn(|| player.poll_cancel()).collect();
    assert_eq!(cancelled, [first[0].id, first[1].id]);
    // Bytes of cancelled requests are ignored.
    player.on_data(ms(310), first[0].id, 20_000);
    let left = player.videos()[0];
    assert_eq!(left.departure, Departure::Swiped);
    assert_eq!((left.playback.played, left.received), (span(200), 20_000));
    // The first frame and four others are played.
    assert_eq!(left.unplayed, 6_000);
    assert_eq!(requests(&mut player, ms(310))[0].range, 0..20_000);
    assert_eq!(player.report().received, 20_000);
}

#[test]
fn a_preloaded_first_frame_is_shown_at_once() {
    let config = ShortVideoConfig {
        preload: 1,
        ahead: span(100),
        ..config()
    };
    let feed = vec![viewing(Some(200)), viewing(None)];
    let mut player = ShortVideoPlayer::new(config, feed, ms(0));
    let first = requests(&mut player, ms(0));
    assert!(!first[0].preload && first[1].preload);
    assert_eq!(
        (first[1].video, first[1].first_frame.clone()),
        (1, Some(0..10_000))
    );
    complete(&mut player, ms(100), &first[0]);
    complete(&mut player, ms(100), &first[1]);
    player.on_timer(ms(300));
    let expected = [
        (ms(100), ShortVideoEvent::FirstFrame(0)),
        (ms(300), ShortVideoEvent::Left(0, Departure::Swiped)),
        (ms(300), ShortVideoEvent::FirstFrame(1)),
    ];
    assert_eq!(events(&mut player), expected);
    assert_eq!(player.report().first_frames, [span(100), span(0)]);
}

#[test]
fn a_viewer_gives_up() {
    let config = ShortVideoConfig {
        give_up_after: Some(span(2000)),
        ..config()
    };
    let mut player = ShortVideoPlayer::new(config, vec![viewing(None), viewing(None)], ms(0));
    player.on_timer(ms(5000));
    let left = [0, 1].map(|n| {
        (
            ms(2000 * (n as u64 + 1)),
            ShortVideoEvent::Left(n, Departure::GaveUp),
        )
    });
    assert_eq!(events(&mut player), left);
    assert!(player.is_finished());
    assert_eq!(player.report().unseen, 2);
    assert_eq!(player.report().rebuffer_rate(), None);
    assert_eq!((player.next_timer(), player.signal()), (None, None));
}

#[test]
fn what_failed_is_requested_again_from_where_it_ended() {
    let mut player = ShortVideoPlayer::new(config(), vec![viewing(None)], ms(0));
    let first = requests(&mut player, ms(0));
    player.on_data(ms(100), first[0].id, 5_000);
    player.on_failure(ms(100), first[0].id);
    let again = requests(&mut player, ms(100));
    assert_eq!(again[0].range, 5_000..20_000);
    assert_eq!(again[0].first_frame, Some(5_000..10_000));
    // A response that is too short counts as a failure too.
    player.on_data(ms(200), again[0].id, 1_000);
    player.on_complete(ms(200), again[0].id);
    assert_eq!(requests(&mut player, ms(200))[0].range, 6_000..20_000);
    assert_eq!(player.ranges(), []);
    complete(&mut player, ms(300), &first[1]);
    assert_eq!(player.ranges()[0].took, span(300));
}

#[test]
fn more_bytes_than_requested_are_ignored() {
    let mut player = ShortVideoPlayer::new(config(), vec![viewing(None)], ms(0));
    let first = requests(&mut player, ms(0));
    player.on_data(ms(100), first[0].id, u64::MAX);
    assert_eq!(player.report().received, 20_000);
    assert_eq!(player.buffer().buffered(), span(11 * 40));
}

#[test]
fn a_feed_is_generated_from_a_seed() {
    let spec = FeedSpec {
        videos: 400,
        ..FeedSpec::default()
    };
    let feed = spec.generate(5).expect("a feed");
    assert_eq!(feed, spec.generate(5).expect("a feed"));
    assert_ne!(feed, spec.generate(6).expect("a feed"));
    let swiped = feed
        .iter()
        .filter(|viewing| viewing.watch.is_some())
        .count();
    assert!((160..240).contains(&swiped), "{swiped}");
    for viewing in &feed {
        let video = &viewing.video;
        assert!((span(9_960)..=span(30_040)).contains(&video.length()));
        assert!((1.49..3.01).contains(&video.rate().as_mbps_f64()));
        assert_eq!(video.first_frame(), 128 << 10);
    }
    // Without swipes the videos are the same.
    let watched = FeedSpec {
        swiped: 0.0,
        ..spec
    }
    .generate(5)
    .expect("a feed");
    assert!(
        watched
            .iter()
            .zip(&feed)
            .all(|(a, b)| a.video == b.video && a.watch.is_none())
    );
    let endless = FeedSpec {
        length: (Duration::MAX, Duration::MAX),
        ..spec
    };
    assert!(endless.generate(1).is_err());
}

/// A session over one link that serves requests in turns, `rates` bytes per 10 ms. Checks on the way
/// that not too much is requested.
fn run(config: ShortVideoConfig, feed: &[Viewing], rates: &[u64]) -> ShortVideoPlayer {
    let mut player = ShortVideoPlayer::new(config, feed.to_vec(), ms(0));
    let mut open: Vec<(u64, u64)> = Vec::new();
    for tick in 0..20_000 {
        let now = ms(10 * tick);
        player.on_timer(now);
        while let Some(id) = player.poll_cancel() {
            open.retain(|(own, _)| *own != id);
        }
        while let Some(request) = player.poll_request(now) {
            open.push((request.id, request.range.end - request.range.start));
            assert!(open.len() <= config.parallel);
        }
        if player.is_finished() {
            break;
        }
        let share = rates[tick as usize % rates.len()] / open.len().max(1) as u64;
        for (id, left) in &mut open {
            let bytes = share.min(*left);
            *left -= bytes;
            player.on_data(now, *id, bytes);
            if *left == 0 {
                player.on_complete(now, *id);
            }
        }
        open.retain(|(_, left)| *left > 0);
    }
    player
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]
    #[test]
    fn sessions_are_conserved_and_the_same_again(
        rates in proptest::collection::vec(0_u64..8000, 1..50),
        watches in proptest::collection::vec(proptest::option::of(0_u64..5000), 1..6),
        parallel in 1_usize..4, preload in 0_usize..3, ahead in 100_u64..6000,
    ) {
        let config = ShortVideoConfig { parallel, preload, ahead: span(ahead), ..config() };
        let feed: Vec<Viewing> = watches.iter().map(|watch| viewing(*watch)).collect();
        let mut player = run(config, &feed, &rates);
        let report = player.report();
        for left in player.videos() {
            let watch = feed[left.video].watch.unwrap_or(Duration::MAX);
            prop_assert!(left.playback.played <= watch.min(span(4000)));
            prop_assert!(left.unplayed <= left.received && left.received <= 109_000);
            if left.departure == Departure::Ended {
                prop_assert_eq!((left.playback.played, left.unplayed), (span(4000), 0));
            }
        }
        if rates.iter().sum::<u64>() / rates.len() as u64 > 1000 {
            prop_assert!(player.is_finished());
            prop_assert_eq!(report.first_frames.len() as u64 + report.unseen, feed.len() as u64);
        }
        let mut again = run(config, &feed, &rates);
        prop_assert_eq!(again.report(), report);
        prop_assert_eq!(again.ranges(), player.ranges());
        prop_assert_eq!(events(&mut again), events(&mut player));
    }
}
