//! Copa: the rules of the NSDI paper, with windows computed by hand.

use std::time::Duration;

use crate::direct::{Direct, MDS};
use crate::support::{Supply, Transport};
use swiftwater_congestion::{CopaConfig, EctCodepoint, by_name};
use swiftwater_units::{Bandwidth, ByteCount};

/// A flow of 100 packets past slow start that has seen `RTTmin` = 50 ms.
fn past_slow_start(config: CopaConfig) -> Direct {
    let mut flow = Direct::new(&config, 100);
    flow.set_rtt(50.0);
    flow.ack_of_idler();
    flow.lose(true);
    assert_eq!((flow.cwnd(), flow.state()), (100 * MDS, "default"));
    flow
}

/// A round-trip time that has lasted long enough to be the standing one.
fn stand(flow: &mut Direct, millis: f64) {
    flow.set_rtt(millis);
    // Half a round-trip time ago everything was as it is now.
    for _ in 0..4 {
        flow.wait(millis / 4.0);
        flow.ack_of_idler();
    }
}

/// One step of a window of `w` bytes with velocity `v`: `v/(delta*w)` packets for each packet.
fn step(w: f64, v: f64, delta: f64) -> f64 {
    v * (MDS * MDS) as f64 / (delta * w)
}

#[test]
fn slow_start_doubles_until_the_rate_exceeds_the_target() {
    let mut t = Transport::new(&CopaConfig::default());
    t.run_rounds(2);
    assert!((20.0..22.0).contains(&t.packets()), "{}", t.packets());
    // 10 Mbit/s and 50 ms are 52 packets: more than that stands in the queue.
    t.rate = Some(Bandwidth::from_mbps(10));
    assert!(t.run_until(8, |t| t.snapshot().state != "slow_start"));
    assert!(t.packets() > 52.0 && t.packets() < 120.0, "{}", t.packets());
}

#[test]
fn a_loss_ends_slow_start_and_takes_nothing() {
    let mut flow = Direct::new(&CopaConfig::default(), 10);
    flow.set_rtt(50.0);
    flow.ack();
    assert_eq!((flow.cwnd(), flow.state()), (11 * MDS, "slow_start"));
    flow.lose(true);
    assert_eq!((flow.cwnd(), flow.state()), (11 * MDS, "default"));
}

#[test]
fn below_the_target_each_packet_adds_v_over_delta_windows() {
    let mut flow = past_slow_start(CopaConfig::default());
    let mut expected = 120_000.0;
    for _ in 0..20 {
        flow.ack();
        expected += step(expected, 1.0, 0.5);
        assert_eq!(flow.cwnd(), expected as u64);
    }
    // 20 steps of 24 bytes, a little less as the window grows.
    assert_eq!(flow.cwnd(), 120_479);
}

#[test]
fn above_the_target_each_packet_takes_as_much() {
    let mut flow = past_slow_start(CopaConfig::default());
    // 100 packets at delta 0.5: the target is met with a queue of two packets, 1.02 ms.
    stand(&mut flow, 60.0);
    let mut expected = flow.cwnd() as f64;
    for _ in 0..20 {
        flow.ack();
        expected -= step(expected, 1.0, 0.5);
        assert!((flow.cwnd() as f64 - expected).abs() < 1.0);
    }
}

#[test]
fn the_target_is_one_over_delta_dq() {
    // cwnd/RTTstanding <= 1/(delta*dq): for 100 packets and 50 ms, dq up to 50/49 ms.
    for (dq, rises) in [
        (0.0, true),
        (1.0, true),
        (1.02, true),
        (1.021, false),
        (5.0, false),
    ] {
        let mut flow = past_slow_start(CopaConfig::default());
        flow.set_rtt(50.0 + dq);
        flow.wait(30.0);
        flow.ack_of_idler();
        let before = flow.cwnd();
        flow.ack();
        assert_eq!(flow.cwnd() > before, rises, "dq {dq} ms");
    }
}

#[test]
fn a_smaller_delta_permits_a_longer_queue() {
    let config = CopaConfig {
        delta: 0.05,
        ..CopaConfig::default()
    };
    let mut flow = past_slow_start(config);
    // Twenty packets of queue: 100 packets in 62.5 ms are 12.5 ms of dq.
    stand(&mut flow, 62.0);
    let before = flow.cwnd();
    flow.ack();
    let gained = flow.cwnd() as f64 - before as f64;
    assert!((gained - step(before as f64, 1.0, 0.05)).abs() <= 1.0);
    stand(&mut flow, 63.0);
    let before = flow.cwnd();
    flow.ack();
    assert!(flow.cwnd() < before);
}

#[test]
fn velocity_doubles_from_the_third_repetition_of_a_direction_on() {
    let mut flow = past_slow_start(CopaConfig::default());
    let mut velocities = Vec::new();
    for _ in 0..7 {
        flow.ack();
        flow.ack();
        flow.wait(50.0);
        flow.ack_of_new_round();
        velocities.push(flow.detail("velocity"));
    }
    assert_eq!(velocities, [1.0, 1.0, 1.0, 2.0, 4.0, 8.0, 16.0]);
}

/// A flow that has risen for so long that its velocity is 8.
fn rising_fast(config: CopaConfig) -> Direct {
    let mut flow = past_slow_start(config);
    for _ in 0..6 {
        flow.ack();
        flow.wait(50.0);
        flow.ack_of_new_round();
    }
    assert!((flow.detail("velocity") - 8.0).abs() < 1e-9);
    flow
}

#[test]
fn velocity_is_not_used_against_its_direction() {
    let mut flow = rising_fast(CopaConfig::default());
    stand(&mut flow, 80.0);
    let before = flow.cwnd() as f64;
    flow.ack();
    let lost = before - flow.cwnd() as f64;
    assert!((lost - step(before, 1.0, 0.5)).abs() <= 1.0, "{lost}");
}

#[test]
fn by_the_letter_of_the_paper_velocity_lasts_to_the_end_of_the_round_trip() {
    let mut flow = rising_fast(CopaConfig {
        turn_at_once: false,
        ..CopaConfig::default()
    });
    stand(&mut flow, 80.0);
    let before = flow.cwnd() as f64;
    for _ in 0..40 {
        flow.ack();
    }
    assert!(before - flow.cwnd() as f64 > 30.0 * step(before, 8.0, 0.5));
    flow.ack_of_new_round();
    assert!((flow.detail("velocity") - 1.0).abs() < 1e-9);
}

#[test]
fn velocity_moves_a_window_by_its_own_size_in_a_round_trip_at_most() {
    let mut flow = past_slow_start(CopaConfig::default());
    let mut velocity: f64 = 0.0;
    for _ in 0..8 {
        let before = flow.cwnd();
        flow.wait(50.0);
        flow.ack_of_new_round();
        for _ in 1..before.div_ceil(MDS) {
            flow.ack();
        }
        velocity = velocity.max(flow.detail("velocity"));
        assert!(
            flow.cwnd() <= 2 * before + MDS,
            "{before} to {}",
            flow.cwnd()
        );
    }
    // It would be 32 after eight round trips, but for small windows a smaller one is the limit.
    assert!(velocity > 8.0, "{velocity}");
    let mut small = past_slow_start(CopaConfig {
        delta: 0.01,
        ..CopaConfig::default()
    });
    small.acked = 2;
    for _ in 0..8 {
        small.wait(50.0);
        small.ack_of_new_round();
        let limit = (0.01 * small.cwnd() as f64 / MDS as f64).max(1.0);
        assert!(small.detail("velocity") <= limit + 1e-9);
    }
}

#[test]
fn one_late_packet_does_not_raise_the_standing_time() {
    let mut flow = past_slow_start(CopaConfig::default());
    stand(&mut flow, 50.0);
    flow.rtt.latest = Duration::from_millis(200);
    flow.ack();
    assert!((flow.detail("rtt_standing") - 0.05).abs() < 1e-9);
    // Half a round-trip time without anything better does.
    for _ in 0..30 {
        flow.wait(1.0);
        flow.ack();
    }
    assert!((flow.detail("rtt_standing") - 0.2).abs() < 1e-9);
}

#[test]
fn the_least_time_is_discarded_after_its_window() {
    let mut flow = past_slow_start(CopaConfig::default());
    flow.set_rtt(80.0);
    let mut seconds = 0.0;
    while (flow.detail("rtt_min") - 0.05).abs() < 1e-9 {
        flow.wait(100.0);
        seconds += 0.1;
        flow.ack_of_idler();
        assert!(seconds < 20.0);
    }
    assert!((10.0..10.3).contains(&seconds), "{seconds}");
    assert!((flow.detail("rtt_min") - 0.08).abs() < 1e-9);
}

/// Lets `rtts` round trips pass with a queue that stays full.
fn with_full_queue(flow: &mut Direct, rtts: u32) {
    flow.set_rtt(100.0);
    for _ in 0..rtts {
        for _ in 0..9 {
            flow.wait(10.0);
            flow.ack();
        }
        flow.wait(10.0);
        flow.ack_of_new_round();
    }
}

#[test]
fn five_round_trips_without_an_empty_queue_lead_to_competitive_mode() {
    let mut flow = past_slow_start(CopaConfig::default());
    // The queue fills half a round trip after the last empty one is out of the window.
    with_full_queue(&mut flow, 5);
    assert_eq!(flow.state(), "default");
    with_full_queue(&mut flow, 1);
    assert_eq!(flow.state(), "competitive");
    let mut never = past_slow_start(CopaConfig {
        competitive: false,
        ..CopaConfig::default()
    });
    with_full_queue(&mut never, 50);
    assert_eq!(never.state(), "default");
    assert!((never.detail("delta") - 0.5).abs() < 1e-9);
}

/// A flow in competitive mode; `1/delta`.
fn competing() -> (Direct, f64) {
    let mut flow = past_slow_start(CopaConfig::default());
    with_full_queue(&mut flow, 8);
    assert_eq!(flow.state(), "competitive");
    let inverse = 1.0 / flow.detail("delta");
    assert!(inverse > 2.0);
    (flow, inverse)
}

#[test]
fn competitive_mode_adds_a_packet_of_queue_each_round_trip() {
    let (mut flow, before) = competing();
    with_full_queue(&mut flow, 10);
    assert!((1.0 / flow.detail("delta") - before - 10.0).abs() < 1e-6);
}

#[test]
fn competitive_mode_halves_its_queue_on_a_loss_and_not_its_window() {
    let (mut flow, _) = competing();
    with_full_queue(&mut flow, 10);
    let (window, before) = (flow.cwnd(), 1.0 / flow.detail("delta"));
    flow.lose(true);
    assert!((1.0 / flow.detail("delta") - before / 2.0).abs() < 1e-6);
    // More losses of the same event change nothing, and the round trip doesn't count.
    flow.lose(false);
    assert_eq!(flow.cwnd(), window);
    flow.ack_of_new_round();
    assert!((1.0 / flow.detail("delta") - before / 2.0).abs() < 1e-6);
    for _ in 0..10 {
        flow.lose(true);
    }
    assert!((flow.detail("delta") - 0.5).abs() < 1e-9, "never above");
}

#[test]
fn an_empty_queue_ends_competitive_mode() {
    let (mut flow, _) = competing();
    flow.set_rtt(54.0);
    flow.wait(10.0);
    flow.ack();
    // A tenth of 100 - 50 ms is 5 ms, and the standing time is now 54 ms.
    assert_eq!(flow.state(), "default");
    assert!((flow.detail("delta") - 0.5).abs() < 1e-9);
}

#[test]
fn idle_time_is_no_sign_of_a_full_queue() {
    let mut flow = past_slow_start(CopaConfig::default());
    with_full_queue(&mut flow, 2);
    flow.idle(60_000.0);
    flow.ack();
    assert_eq!(flow.state(), "default");
}

#[test]
fn losses_neither_cut_the_window_nor_hold_up_growth_in_default_mode() {
    let mut flow = past_slow_start(CopaConfig::default());
    flow.sent_after_recovery_start = false;
    let before = flow.cwnd();
    for _ in 0..10 {
        flow.lose(true);
        flow.ack();
    }
    assert!(flow.cwnd() > before);
}

#[test]
fn an_underused_window_may_shrink_but_not_grow() {
    let mut flow = past_slow_start(CopaConfig::default());
    for _ in 0..50 {
        flow.wait(1.0);
        flow.ack_of_idler();
    }
    assert_eq!(flow.cwnd(), 100 * MDS);
    stand(&mut flow, 80.0);
    flow.ack_of_idler();
    assert!(flow.cwnd() < 100 * MDS);
}

#[test]
fn it_paces_at_twice_the_window_per_standing_time_packet_by_packet() {
    let mut flow = past_slow_start(CopaConfig::default());
    stand(&mut flow, 60.0);
    let pacing = flow.cc.pacing(&flow.rtt);
    let rate = Bandwidth::from_transfer(2 * flow.cwnd(), Duration::from_millis(60));
    assert_eq!(pacing.rate, Some(rate));
    assert_eq!(pacing.quantum, Some(ByteCount::new(MDS)));
    // Without a sample the transport's assumption has to do.
    let fresh = Direct::new(&CopaConfig::default(), 10);
    assert_eq!(fresh.cc.pacing(&fresh.rtt).rate, None);
}

#[test]
fn persistent_congestion_starts_afresh() {
    let (mut flow, _) = competing();
    flow.persistent_congestion();
    assert_eq!((flow.cwnd(), flow.state()), (2 * MDS, "slow_start"));
    assert!((flow.detail("delta") - 0.5).abs() < 1e-9);
    assert!(flow.detail("rtt_min").abs() < 1e-9);
    flow.ack();
    assert_eq!(flow.cwnd(), 3 * MDS);
}

#[test]
fn growth_runs_at_most_half_ahead_of_what_was_in_flight() {
    let mut t = Transport::new(&CopaConfig::default());
    t.one_loss();
    t.supply = Supply::Blocked(60);
    t.run_rounds(2_000);
    assert_eq!(t.cwnd(), 90 * MDS);
}

#[test]
fn it_uses_no_marks_because_it_would_not_respond_to_them() {
    let mut flow = past_slow_start(CopaConfig::default());
    assert_eq!(flow.cc.ecn_codepoint(), EctCodepoint::NotEct);
    flow.ce(true);
    assert_eq!(flow.cwnd(), 100 * MDS);
}

#[test]
fn parameters_out_of_range_are_moved_into_it() {
    let wild = CopaConfig {
        delta: -3.0,
        standing_window: f64::NAN,
        velocity_rounds: 0,
        min_rtt_window: Duration::ZERO,
        ..CopaConfig::default()
    };
    let mut flow = Direct::new(&wild, 10);
    assert!((flow.detail("delta") - 0.001).abs() < 1e-9);
    flow.set_rtt(50.0);
    flow.ack();
    assert_eq!(flow.cwnd(), 11 * MDS);
    assert!(by_name("copa:delta=0.04,competitive=off").is_ok());
    assert!(by_name("copa:delta=0").is_err());
}
