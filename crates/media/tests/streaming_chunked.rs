//! The player of chunked video, driven as a client drives it, over networks given as rates.

use std::sync::Arc;
use std::time::Duration;

use proptest::prelude::*;
use swiftwater_media::streaming::adaptation::{Adaptation, AdaptationKind, Situation};
use swiftwater_media::streaming::predictor::{PathEstimate, PredictorKind, ServerReport};
use swiftwater_media::streaming::{
    BufferConfig, ChunkRequest, ChunkedConfig, ChunkedEvent, ChunkedPlayer, ChunkedVideo, Ladder,
    Variation,
};
use swiftwater_units::{Bandwidth, Instant, PathId};

const fn s(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

const fn ms(millis: u64) -> Instant {
    Instant::from_millis(millis)
}

fn constant(chunks: usize) -> Arc<ChunkedVideo> {
    Arc::new(ChunkedVideo::constant(Ladder::chorus(), s(4), chunks).expect("a video"))
}

/// Always the same level.
#[derive(Debug)]
struct Fixed(usize);

impl Adaptation for Fixed {
    fn choose(&mut self, _: &Situation<'_>) -> usize {
        self.0
    }
}

fn fixed(config: ChunkedConfig, chunks: usize, level: usize) -> ChunkedPlayer {
    let predictor = PredictorKind::default().build();
    let adaptation = Box::new(Fixed(level));
    ChunkedPlayer::new(config, constant(chunks), adaptation, predictor, ms(0))
}

fn complete(player: &mut ChunkedPlayer, now: Instant, request: ChunkRequest) {
    player.on_data(now, PathId::ZERO, request.bytes);
    player.on_complete(now);
}

/// Downloads at `now` until the buffer is full. Returns the number of chunks.
fn download_at_once(player: &mut ChunkedPlayer, now: Instant) -> u64 {
    let mut chunks = 0;
    while let Some(request) = player.poll_request(now) {
        complete(player, now, request);
        chunks += 1;
    }
    chunks
}

/// Runs a session over a network of two paths of equal rate, whose sum is `mbps` of the current
/// second. Returns the player, and the buffered play time at each request.
fn run(mut player: ChunkedPlayer, mbps: &[u64]) -> (ChunkedPlayer, Vec<Duration>) {
    let mut now = ms(0);
    let mut levels_of_buffer = Vec::new();
    while !player.is_finished() {
        if let Some(request) = player.poll_request(now) {
            levels_of_buffer.push(player.buffer().buffered());
            let mut left = request.bytes;
            while left > 0 && !player.is_finished() {
                let second = now.saturating_since(ms(0)).as_secs() as usize;
                let rate = mbps[second % mbps.len()];
                now += Duration::from_millis(100);
                let arrived = left.min(rate * 12_500);
                left -= arrived;
                player.on_data(now, PathId::ZERO, arrived / 2);
                player.on_data(now, PathId::new(1), arrived - arrived / 2);
            }
            player.on_server_report(&halves(now));
            player.on_complete(now);
        } else if let Some(next) = player.next_timer() {
            now = now.max(next);
            player.on_timer(now);
        } else {
            break;
        }
    }
    (player, levels_of_buffer)
}

fn halves(received: Instant) -> ServerReport {
    let path = |path| PathEstimate {
        path: PathId::new(path),
        share: 0.5,
        rate: Bandwidth::from_mbps(5),
        rtt: Duration::from_millis(40),
    };
    ServerReport {
        received,
        paths: vec![path(0), path(1)],
    }
}

fn events(player: &mut ChunkedPlayer) -> Vec<(Instant, ChunkedEvent)> {
    std::iter::from_fn(|| player.poll_event()).collect()
}

#[test]
fn a_session_by_hand() {
    let mut player = fixed(ChunkedConfig::default(), 2, 1);
    let request = player.poll_request(ms(0)).expect("the first chunk");
    assert_eq!(
        (request.index, request.level, request.bytes),
        (0, 1, 1_250_000)
    );
    assert_eq!((request.predicted, request.expected), (None, None));
    assert_eq!(player.poll_request(ms(10)), None);
    complete(&mut player, ms(1000), request);
    // 10 Mbit/s, so that the next chunk is expected in a second.
    let request = player.poll_request(ms(1000)).expect("the second chunk");
    assert_eq!(request.predicted, Some(Bandwidth::from_mbps(10)));
    assert_eq!(request.expected, Some(s(1)));
    complete(&mut player, ms(7000), request);
    player.on_timer(ms(60_000));
    assert!(player.is_finished());
    let report = player.report();
    assert_eq!(report.playback.start_time, Some(s(1)));
    assert_eq!(report.playback.stalls.total, s(2));
    assert_eq!(
        (report.qoe.bitrate_mbps, report.qoe.switching_mbps),
        (5.0, 0.0)
    );
    assert!((report.score - (5.0 - 32.0)).abs() < 1e-9);
    assert!((report.mean_bitrate_mbps() - 2.5).abs() < 1e-9);
    let errors = report.prediction.expect("one prediction");
    // 10 Mbit/s predicted, 1.667 Mbit/s come true.
    assert!((errors.mean - 5.0).abs() < 1e-6 && errors.over_estimated > 0.999);
    assert_eq!(player.records()[1].stall, s(2));
    let expected = [
        (ms(1000), ChunkedEvent::FirstFrame),
        (ms(5000), ChunkedEvent::Stalled),
        (ms(7000), ChunkedEvent::Resumed),
        (ms(11_000), ChunkedEvent::Finished),
    ];
    assert_eq!(events(&mut player), expected);
}

#[test]
fn a_full_buffer_pauses_requests_until_a_check() {
    let mut player = fixed(ChunkedConfig::default(), 100, 0);
    // Requests below 30 s: the eighth chunk is requested with 28 s and makes 32 s.
    assert_eq!(download_at_once(&mut player, ms(200)), 8);
    assert_eq!(player.buffer().buffered(), s(32));
    // Below 30 s just after 2.2 s, and the checks are at 0, 0.5, 1 s ...
    assert_eq!(player.next_timer(), Some(ms(2500)));
    assert_eq!(player.poll_request(ms(2499)), None);
    assert_eq!(download_at_once(&mut player, ms(2500)), 1);
    let pauses = events(&mut player);
    let pauses = pauses
        .iter()
        .filter(|(_, event)| *event == ChunkedEvent::Paused);
    let times: Vec<_> = pauses.map(|(time, _)| *time).collect();
    assert_eq!(times, [ms(200), ms(2500)]);
}

#[test]
fn without_checks_requests_go_on_as_soon_as_there_is_room() {
    let config = ChunkedConfig {
        check_interval: Duration::ZERO,
        ..ChunkedConfig::default()
    };
    let mut player = fixed(config, 100, 0);
    download_at_once(&mut player, ms(200));
    assert_eq!(
        player.next_timer(),
        Some(ms(2200) + Duration::from_nanos(1))
    );
}

#[test]
fn the_viewer_leaves_at_the_end_of_the_session() {
    let mut player = fixed(ChunkedConfig::chorus(), 3, 0);
    let mut chunks = 0;
    let mut now = ms(0);
    while !player.is_finished() {
        chunks += download_at_once(&mut player, now);
        now = player.next_timer().expect("a timer");
        player.on_timer(now);
    }
    assert_eq!(now, ms(300_000));
    // Five minutes with 30 s ahead: the number of chunks of the published upper bound.
    assert_eq!(chunks, 83);
    assert_eq!(player.records()[82].index, 82);
    assert_eq!(player.report().playback.played, s(300));
    assert_eq!(player.poll_request(now), None);
    assert_eq!(player.next_timer(), None);
}

#[test]
fn a_late_timer_does_not_prolong_the_session() {
    let config = ChunkedConfig {
        session: Some(s(10)),
        ..ChunkedConfig::default()
    };
    let mut player = fixed(config, 1, 0);
    player.poll_request(ms(0)).expect("a request");
    player.on_timer(ms(12_000));
    assert!(player.is_finished());
    // Too late.
    player.on_complete(ms(13_000));
    assert_eq!(player.report().chunks, 0);
    assert_eq!(events(&mut player), [(ms(10_000), ChunkedEvent::Finished)]);
}

#[test]
fn a_failed_request_is_made_again_after_a_wait() {
    let mut player = fixed(ChunkedConfig::default(), 1, 0);
    player.poll_request(ms(0)).expect("a request");
    player.on_data(ms(100), PathId::ZERO, 5);
    player.on_failure(ms(200));
    assert_eq!(player.poll_request(ms(699)), None);
    assert_eq!(player.next_timer(), Some(ms(700)));
    let request = player.poll_request(ms(700)).expect("the same chunk");
    assert_eq!(request.index, 0);
    complete(&mut player, ms(1000), request);
    let report = player.report();
    assert_eq!(
        (report.failures, report.chunks, report.bytes),
        (1, 1, request.bytes)
    );
    assert_eq!(player.records()[0].took, Duration::from_millis(300));
}

fn abandoning() -> ChunkedConfig {
    ChunkedConfig {
        abandon: true,
        ..ChunkedConfig::default()
    }
}

#[test]
fn a_request_that_would_be_answered_too_late_is_given_up() {
    // 4 s are buffered, and 8 MB requested, of which 60 kB arrive in each tenth of a second: 4.8 Mbit/s.
    let mut player = fixed(abandoning(), 4, 4);
    let first = player.poll_request(ms(0)).expect("a request");
    complete(&mut player, ms(0), first);
    let second = player.poll_request(ms(0)).expect("a request");
    events(&mut player);
    let at = |tenth: u64, player: &mut ChunkedPlayer| {
        player.on_progress(ms(100 * tenth), 60_000);
        player.poll_abandoned()
    };
    for tenth in 1..20 {
        assert_eq!(at(tenth, &mut player), None);
    }
    assert_eq!(player.next_timer(), Some(ms(2_000)), "the first look");
    assert_eq!(
        at(20, &mut player),
        None,
        "the lowest level takes 0.8 s of 2"
    );
    assert_eq!(player.next_timer(), Some(ms(2_250)), "the next look");
    for tenth in 21..25 {
        assert_eq!(at(tenth, &mut player), None);
    }
    assert_eq!(at(25, &mut player), Some(second.index));
    assert_eq!(player.poll_abandoned(), None, "once");
    assert!(!player.has_request());
    // 1.5 s are left. To go on is worth 16 - 16 * 9, the lower levels 8 - 16 * 5 - 8, 5 - 16 * 2.7 - 11, 2.5 - 16 * 0.6 - 13.5
    // and 1 - 15.
    let third = player.poll_request(ms(2_500)).expect("a request");
    assert_eq!((third.index, third.level), (second.index, 0));
    assert_eq!(third.predicted, Some(Bandwidth::from_kbps(4_800)));
    let abandoned = ChunkedEvent::Abandoned { from: 4, to: 0 };
    assert!(events(&mut player).contains(&(ms(2_500), abandoned)));
    complete(&mut player, ms(3_000), third);
    assert_eq!(player.records().len(), 2);
    assert_eq!(player.records()[1].level, 0);
}

#[test]
fn what_arrives_in_time_or_can_not_be_smaller_is_not_given_up() {
    let run = |config, level, bytes_per_tenth: u64, tenths: u64| {
        let mut player = fixed(config, 4, level);
        let first = player.poll_request(ms(0)).expect("a request");
        complete(&mut player, ms(0), first);
        player.poll_request(ms(0)).expect("a request");
        for tenth in 1..=tenths {
            player.on_progress(ms(100 * tenth), bytes_per_tenth);
            if player.poll_abandoned().is_some() {
                return Some(tenth);
            }
        }
        None
    };
    // 8 MB at 24 Mbit/s arrive in 2.7 s, of 4 s.
    assert_eq!(run(abandoning(), 4, 300_000, 26), None);
    // At 14 Mbit/s they come 0.6 s too late, which is worth the bitrate.
    assert_eq!(run(abandoning(), 4, 175_000, 45), None);
    // The lowest level, and what lacks less than the lowest level needs (500 kB).
    assert_eq!(run(abandoning(), 0, 1_000, 100), None);
    assert_eq!(run(abandoning(), 1, 38_000, 20), None);
    // Little arrives: at the first look. Nothing: how long the others take is not known, either.
    assert_eq!(run(abandoning(), 4, 1_000, 100), Some(20));
    assert_eq!(run(abandoning(), 4, 0, 100), None);
    // Not asked for.
    assert_eq!(run(ChunkedConfig::default(), 4, 1_000, 100), None);
}

#[test]
fn a_chunk_without_bytes_is_a_failure() {
    let mut player = fixed(ChunkedConfig::default(), 1, 0);
    player.poll_request(ms(0)).expect("a request");
    player.on_complete(ms(100));
    let report = player.report();
    assert_eq!((report.failures, report.chunks), (1, 0));
    assert_eq!(player.next_timer(), Some(ms(600)));
}

#[test]
fn a_buffer_of_no_size_holds_one_chunk() {
    let config = ChunkedConfig {
        buffer: BufferConfig {
            maximum: Duration::ZERO,
            ..BufferConfig::default()
        },
        check_interval: Duration::ZERO,
        ..ChunkedConfig::default()
    };
    let mut player = fixed(config, 3, 0);
    assert_eq!(download_at_once(&mut player, ms(200)), 1);
    assert_eq!(player.next_timer(), Some(ms(4200)));
    assert_eq!(download_at_once(&mut player, ms(4200)), 1);
    assert_eq!(player.report().playback.stalls.count, 0);
}

#[test]
fn what_comes_without_a_request_is_ignored() {
    let mut player = fixed(ChunkedConfig::default(), 1, 0);
    player.on_data(ms(1), PathId::ZERO, 1000);
    player.on_complete(ms(2));
    player.on_failure(ms(3));
    assert_eq!((player.report().chunks, player.report().failures), (0, 0));
}

#[test]
fn the_signal_is_the_buffer() {
    let mut player = fixed(ChunkedConfig::default(), 9, 1);
    assert!(player.signal().stalled);
    let request = player.poll_request(ms(0)).expect("a request");
    complete(&mut player, ms(1000), request);
    player.on_timer(ms(2000));
    let signal = player.signal();
    assert_eq!(
        (signal.cached_bytes.get(), signal.cached_frames),
        (937_500, 72)
    );
    assert_eq!(signal.bitrate, Bandwidth::from_kbps(2500));
    assert_eq!(signal.play_time(), Some(s(3)));
    assert!(!signal.stalled);
    player.on_timer(ms(9000));
    assert_eq!(player.signal().play_time(), Some(s(0)));
    assert!(player.signal().stalled);
}

#[test]
fn a_steady_network_gets_a_steady_bitrate_from_each_algorithm() {
    for kind in AdaptationKind::ALL {
        let predictor = PredictorKind::ReceiveRate.build();
        let config = ChunkedConfig::chorus();
        let player = ChunkedPlayer::new(config, constant(149), kind.build(), predictor, ms(0));
        let (player, _) = run(player, &[10]);
        let report = player.report();
        // A stall of 0.4 s costs less than a change from 16 to 8 Mbit/s, so that model predictive
        // control may choose it.
        let allowed = if kind == AdaptationKind::Mpc { 400 } else { 0 };
        let stalled = report.playback.stalls.total;
        assert!(
            stalled <= Duration::from_millis(allowed),
            "{kind}: {stalled:?}"
        );
        let mean = report.mean_bitrate_mbps();
        assert!((7.0..=10.5).contains(&mean), "{kind}: {mean}");
    }
}

proptest! {
    #[test]
    fn sessions_are_conserved_and_the_same_again(
        mbps in proptest::collection::vec(0_u64..30, 1..40),
        adaptation in 0_usize..3, predictor in 0_usize..5, maximum in 1_u64..40, seed in 0_u64..99,
    ) {
        let config = ChunkedConfig {
            buffer: BufferConfig { maximum: s(maximum), ..BufferConfig::default() },
            session: Some(s(120)),
            looped: true,
            ..ChunkedConfig::default()
        };
        let video = Variation::BIG_BUCK_BUNNY.video(Ladder::chorus(), s(4), seed);
        let video = Arc::new(video.expect("a video"));
        let session = || {
            let adaptation = AdaptationKind::ALL[adaptation].build();
            let predictor = PredictorKind::ALL[predictor].build();
            let video = video.clone();
            run(ChunkedPlayer::new(config, video, adaptation, predictor, ms(0)), &mbps)
        };
        let (mut player, at_requests) = session();
        let report = player.report();
        let playback = report.playback;
        prop_assert_eq!(playback.played + player.buffer().buffered(), playback.arrived);
        prop_assert_eq!(playback.arrived, s(4) * report.chunks as u32);
        let start = playback.start_time.unwrap_or(s(120));
        prop_assert_eq!(start + playback.played + playback.stalls.total, s(120));
        // Nothing is requested beyond the maximum.
        prop_assert!(at_requests.iter().all(|buffered| *buffered < s(maximum)));
        prop_assert_eq!(player.records().iter().map(|record| record.bytes).sum::<u64>(), report.bytes);
        let of_chunks: Duration = player.records().iter().map(|record| record.stall).sum();
        prop_assert!(of_chunks <= playback.stalls.total);
        let again = session();
        prop_assert_eq!(again.0.report(), report);
        prop_assert_eq!(again.0.records(), player.records());
        let mut again = again.0;
        prop_assert_eq!(events(&mut again), events(&mut player));
    }
}
