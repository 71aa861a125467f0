//! Constant rates, bursts and live streams.

use crate::support;

use std::time::Duration;

use support::{assert_near, dumbbell, flow, mbps, millis, run, secs};
use swiftwater_lab::scenario::{App, FlowSpec, Setup, Spread};
use swiftwater_link::{Buffer, LossModel};
use swiftwater_units::{Bandwidth, ByteCount};

#[test]
fn a_constant_rate_is_carried_without_a_queue() {
    let app = App::ConstantRate { rate: mbps(5) };
    let mut setup = dumbbell(10, vec![flow("flow", app, 1)]);
    setup.warmup = secs(1);
    setup.record = Some(secs(1));
    let measured = run(&setup);
    assert_near(measured.value("flow.goodput_mbps"), 5.0, 0.005);
    assert!(measured.value("flow.bin_cv") < 0.1);
    assert!(measured.value("link.queue_delay_mean_ms") < 1.0);
    assert_near(measured.value("flow.lost_share") + 1.0, 1.0, 0.0);
    // The application limits the flow: less than 10 % above 5 Mbit/s times 31 ms is in flight.
    for point in &measured.outcome.series.flows[0].points {
        assert!(point.inflight_bytes < 25_000, "{point:?}");
    }
}

#[test]
fn a_rate_above_the_links_waits_in_the_host() {
    let app = App::ConstantRate { rate: mbps(25) };
    let mut setup = dumbbell(10, vec![flow("flow", app, 1)]);
    setup.warmup = secs(2);
    let measured = run(&setup);
    assert!(measured.value("flow.goodput_mbps") > 18.0);
    assert!(measured.value("link.utilisation") > 0.95);
}

fn on_off(on: Spread, off: Spread, rate: Option<Bandwidth>) -> FlowSpec {
    flow("flow", App::OnOff { on, off, rate }, 1)
}

#[test]
fn bursts_have_their_duty_cycle() {
    let (on, off) = (Spread::Constant(millis(600)), Spread::Constant(millis(400)));
    let mut setup = dumbbell(10, vec![on_off(on, off, Some(mbps(8)))]);
    let measured = run(&setup);
    assert_near(measured.value("flow.goodput_mbps"), 0.6 * 8.0, 0.02);
    assert!(measured.value("flow.bin_min_mbps") < 0.01);
    // As much as possible: the link is busy while it lasts, except for slow start, and the rest of a
    // window spills into the pause.
    setup.flows = vec![on_off(on, off, None)];
    let measured = run(&setup);
    let goodput = measured.value("flow.goodput_mbps");
    assert!((9.0..=13.5).contains(&goodput), "{goodput}");
    assert!(measured.value("flow.bin_min_mbps") < 0.01);
}

#[test]
fn random_bursts_have_it_in_the_mean() {
    let (on, off) = (
        Spread::Exponential(millis(50)),
        Spread::Exponential(millis(150)),
    );
    let setup = dumbbell(60, vec![on_off(on, off, Some(mbps(4)))]);
    let measured = run(&setup);
    // A quarter of the time; about 300 cycles.
    assert_near(measured.value("flow.goodput_mbps"), 1.0, 0.2);
    let one = support::Measured::new(&setup, 2).value("flow.goodput_mbps");
    assert!((one - measured.value("flow.goodput_mbps")).abs() > 1e-6);
}

/// Viewers of a stream over a link of 20 Mbit/s with a round trip of 30 ms.
fn live(viewers: u32, rate: Bandwidth, first_frame: u64) -> Setup {
    let app = App::Live {
        rate,
        first_frame: ByteCount::new(first_frame),
        stall_after: millis(100),
        rebuffer: ByteCount::new(first_frame),
    };
    let mut group = flow("live", app, 1);
    group.count = viewers;
    group.stagger = millis(500);
    dumbbell(20, vec![group])
}

#[test]
fn without_loss_a_player_starts_after_two_round_trips_and_never_stalls() {
    let mut setup = live(3, mbps(2), 10_000);
    setup.flows[0].transport.pacing = Some(false);
    setup.links[0].forward.rate = mbps(100).into();
    setup.links[0].backward.rate = mbps(100).into();
    let measured = run(&setup);
    assert_near(measured.value("live.viewers"), 3.0, 0.0);
    // Handshake and request, with four datagrams of about 1200 bytes, then 10 kB, headers included.
    let expected = 60.0 + (4.0 * 1_228.0 + 10_000.0 * 1.04) * 8.0 / 100e3;
    let start = measured.value("live.start_mean_ms");
    assert!((start - expected).abs() < 0.5, "{start} {expected}");
    assert_near(measured.value("live.started_within_1s"), 1.0, 0.0);
    for none in ["stalls_per_100s", "stalled_share", "stall_time_share"] {
        assert_near(measured.value(&format!("live.{none}")) + 1.0, 1.0, 0.0);
    }
    assert_eq!(measured.outcome.samples.len(), 3);
    // Two viewers started later.
    let bytes = 3.0 * 10e3 + 0.25e6 * (20.0 + 19.5 + 19.0);
    assert_near(
        measured.value("live.goodput_mbps"),
        bytes * 8.0 / 20e6,
        0.01,
    );
}

#[test]
fn a_link_slower_than_the_stream_stalls_the_player() {
    let mut setup = live(1, mbps(2), 100_000);
    setup.duration = secs(60);
    let rate = Bandwidth::from_kbps(1_000);
    setup.links[0].forward.rate = rate.into();
    // Nothing is lost and the link is never idle: the stream arrives evenly.
    setup.links[0].forward.buffer = Buffer::Unlimited;
    let measured = run(&setup);
    // What the link carries of the stream, Mbit/s.
    let carried = measured.value("live.goodput_mbps");
    assert!((0.9..0.97).contains(&carried), "{carried}");
    // For each 100 kB: filling the buffer takes 0.8 Mbit / carried, draining it 0.8 Mbit / the
    // rest.
    let (fill, drain) = (0.8 / carried, 0.8 / (2.0 - carried));
    assert_near(
        measured.value("live.stalls_per_100s"),
        100.0 / (fill + drain),
        0.08,
    );
    assert_near(
        measured.value("live.stall_time_share"),
        fill / (fill + drain),
        0.05,
    );
    assert_near(measured.value("live.stalled_share"), 1.0, 0.0);
    // Handshake and request, with four datagrams of about 1200 bytes, then the first frame.
    let expected = 60.0 + 4.0 * 1_228.0 * 8.0 / 1e3 + 800.0 / carried;
    assert_near(measured.value("live.start_mean_ms"), expected, 0.03);
}

#[test]
fn loss_slows_the_start() {
    let mut setup = live(20, mbps(1), 100_000);
    let clean = run(&setup);
    setup.links[0].forward.loss = LossModel::Bernoulli(0.2);
    let lossy = run(&setup);
    assert!(lossy.value("live.start_mean_ms") > 1.5 * clean.value("live.start_mean_ms"));
    assert!(lossy.value("live.started_within_1s") <= clean.value("live.started_within_1s"));
    assert!(lossy.value("live.start_p95_ms") > lossy.value("live.start_mean_ms"));
}

#[test]
fn a_viewer_stops() {
    let mut setup = live(1, mbps(2), 50_000);
    setup.flows[0].stop = Some(Duration::from_secs(5));
    let measured = run(&setup);
    assert_near(measured.outcome.simulated_s, 5.0, 0.01);
    assert_near(measured.value("live.goodput_mbps"), 2.0 + 0.08, 0.02);
}
