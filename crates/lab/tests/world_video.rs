//! Live video over QUIC: what viewers see, and what it costs.

use std::time::Duration;

use crate::support::{Measured, assert_near, dumbbell, flow, millis, run, secs};
use swiftwater_lab::scenario::{App, Setup, VideoMode, VideoSpec};
use swiftwater_link::{Buffer, LossModel};
use swiftwater_media::player::LiveConfig;
use swiftwater_units::Bandwidth;

/// Viewers of a stream over a link of 20 Mbit/s with a round trip of 30 ms.
fn video(seconds: u64, source: &str, mode: VideoMode, deadline: Option<Duration>) -> Setup {
    let app = App::Video(VideoSpec {
        source: source.parse().expect("a source"),
        mode,
        deadline,
        abandon: true,
        player: LiveConfig::default(),
    });
    let mut setup = dumbbell(seconds, vec![flow("video", app, 1)]);
    // One that neither random loss nor a source below the link's rate slows down.
    setup.flows[0].controller = swiftwater_congestion::by_name("copa").expect("it is known");
    setup
}

fn spec(setup: &mut Setup) -> &mut VideoSpec {
    match &mut setup.flows[0].app {
        App::Video(spec) => spec,
        other => panic!("{other:?}"),
    }
}

#[test]
fn without_loss_a_stream_plays_without_a_freeze() {
    let deadline = Some(millis(100));
    let measured = run(&video(10, "cbr:4mbit,fps=50", VideoMode::Stream, deadline));
    let value = |name: &str| measured.value(&format!("video.{name}"));
    // Handshake and request, 500 ms in the buffer, and the way of the last frame in it: 10 kB at
    // 20 Mbit/s.
    let startup = value("startup_ms");
    assert!((560.0..575.0).contains(&startup), "{startup}");
    for zero in [
        "freezes_per_100s",
        "frozen_ms_per_100s",
        "frozen_share",
        "dmr",
        "dmr_per_second",
        "bwc",
        "bwc_with_retransmissions",
        "frames_abandoned",
    ] {
        assert!(value(zero).abs() < f64::EPSILON, "{zero}: {}", value(zero));
    }
    let delay = value("frame_delay_p50_ms");
    assert!((19.0..21.0).contains(&delay), "{delay}");
    assert!(value("frame_delay_p99_ms") <= value("frame_delay_max_ms"));
    // QUIC's headers, and little else.
    assert!((0.01..0.04).contains(&value("bwc_literal")));
    assert_near(value("goodput_mbps"), 4.0, 0.02);
}

#[test]
fn a_link_slower_than_the_stream_freezes_the_picture() {
    let mut setup = video(60, "cbr:2mbit,fps=25", VideoMode::Stream, None);
    setup.links[0].forward.rate = Bandwidth::from_kbps(1_000).into();
    setup.links[0].forward.buffer = Buffer::Unlimited;
    setup.warmup = secs(5);
    let measured = run(&setup);
    // What comes of each second of video takes 2 / carried seconds.
    let carried = measured.value("video.goodput_mbps");
    assert_near(
        measured.value("video.frozen_share"),
        1.0 - carried / 2.0,
        0.05,
    );
    // Half a second is filled at the link's speed, and emptied at the player's less the link's.
    let speed = carried / 2.0;
    let cycle = 0.5 / speed + 0.5 / (1.0 - speed);
    assert_near(measured.value("video.freezes_per_100s"), 100.0 / cycle, 0.1);
    assert_eq!(measured.get("video.dmr"), None);
    assert_eq!(measured.get("video.dmr_per_second"), None);
}

#[test]
fn frames_of_their_own_streams_miss_deadlines_only_by_loss() {
    let deadline = Some(millis(100));
    let mut setup = video(20, "cbr:4mbit,fps=60", VideoMode::Frames, deadline);
    setup.warmup = secs(2);
    let clean = run(&setup);
    assert_eq!(clean.get("video.dmr"), Some(0.0));
    assert_eq!(clean.get("video.frozen_share"), Some(0.0));
    assert!(clean.value("video.startup_ms") < 80.0);

    setup.links[0].forward.loss = LossModel::Bernoulli(0.1);
    let lossy = run(&setup);
    let missed = lossy.value("video.dmr");
    assert!((0.0005..0.3).contains(&missed), "{missed}");
    assert!(lossy.value("video.frames_abandoned") > 0.0);
    // What is let go is no longer sent again.
    let resent = lossy.value("video.bwc_with_retransmissions");
    assert!((0.05..0.2).contains(&resent), "{resent}");

    // With more time more frames are in time.
    spec(&mut setup).deadline = Some(millis(300));
    let patient = run(&setup);
    assert!(patient.value("video.dmr") < missed);
    assert!(patient.value("video.frame_delay_max_ms") > lossy.value("video.frame_delay_max_ms"));

    // No frame is abandoned: every frame arrives, even if late.
    spec(&mut setup).deadline = deadline;
    spec(&mut setup).abandon = false;
    let stubborn = run(&setup);
    assert_eq!(stubborn.get("video.frames_abandoned"), Some(0.0));
    assert!(stubborn.value("video.frame_delay_max_ms") > 100.0);
}

#[test]
fn an_abandoned_frame_could_not_meet_its_deadline() {
    let deadline = Some(millis(100));
    let mut setup = video(10, "cbr:4mbit,fps=60", VideoMode::Frames, deadline);
    setup.links[0].forward.loss = LossModel::Bernoulli(0.2);
    let measured = run(&setup);
    // A frame is abandoned when its copies could only arrive after the deadline; data in flight
    // then may still complete it.
    assert!(measured.value("video.frame_delay_max_ms") < 130.0);
    assert!(measured.value("video.frames_abandoned") > 0.0);
}

#[test]
fn the_warm_up_is_left_out() {
    let deadline = Some(millis(100));
    let mut setup = video(6, "cbr:2mbit,fps=50", VideoMode::Frames, deadline);
    // All is lost for a second.
    let text = "t_ms,rate_kbps,rtt_ms,loss\n0,,,0\n2000,,,1\n3000,,,0\n100000,,,0\n";
    let trace = swiftwater_link::Trace::parse_csv(text).expect("a trace");
    setup.links[0].forward.loss_trace = Some(trace);
    let whole = run(&setup);
    assert!(whole.value("video.dmr") > 0.15);
    assert!(whole.value("video.frozen_share") > 0.1);
    setup.warmup = secs(5);
    let late = run(&setup);
    assert_eq!(late.get("video.dmr"), Some(0.0));
    assert_eq!(late.get("video.freezes_per_100s"), Some(0.0));
    assert!(late.value("video.frame_delay_max_ms") < 40.0);
}

#[test]
fn viewers_are_summed_up_and_stop() {
    let mut setup = video(8, "sample,rate=1mbit", VideoMode::Stream, None);
    setup.flows[0].count = 3;
    setup.flows[0].stagger = millis(300);
    setup.flows[0].stop = Some(secs(5));
    setup.links[0].forward.loss = LossModel::Bernoulli(0.02);
    let [first, second] = [1, 1].map(|seed| Measured::new(&setup, seed));
    assert_eq!(first.outcome.measures, second.outcome.measures);
    assert_near(first.outcome.simulated_s, 5.0, 0.01);
    assert!(first.value("video.startup_ms") > 560.0);
    assert_near(first.value("video.goodput_mbps"), 3.0 * 0.94, 0.1);
}
