//! Prague: the rules of the draft, with windows and averages computed by hand.

use crate::direct::{Direct, MDS};
use swiftwater_congestion::{EctCodepoint, PragueConfig, by_name};
use swiftwater_units::ByteCount;

/// A flow of 100 packets past slow start, on a path of 50 ms, that has seen a mark.
fn past_slow_start(config: PragueConfig) -> Direct {
    let mut flow = Direct::new(&config, 200);
    flow.set_rtt(50.0);
    flow.ack_of_new_round();
    let before = flow.cwnd();
    flow.marked = 1;
    flow.ce(true);
    flow.marked = 0;
    assert_eq!(flow.cwnd(), before / 2);
    // The measurement begins with packets sent from now on.
    flow.wait(60.0);
    flow.ack_of_new_round();
    flow
}

/// A round trip in which `marked` of `acked` packets are marked; the marks come first.
fn round(flow: &mut Direct, acked: u64, marked: u64) {
    flow.wait(50.0);
    (flow.acked, flow.marked) = (acked, marked);
    if marked > 0 {
        flow.ce(true);
    }
    flow.ack_of_new_round();
}

#[test]
fn packets_are_sent_ect1() {
    let flow = Direct::new(&PragueConfig::default(), 10);
    assert_eq!(flow.cc.ecn_codepoint(), EctCodepoint::Ect1);
}

#[test]
fn the_first_mark_halves_the_window_and_ends_slow_start() {
    let mut flow = Direct::new(&PragueConfig::default(), 10);
    flow.set_rtt(50.0);
    flow.acked = 10;
    flow.ack_of_new_round();
    assert_eq!((flow.cwnd(), flow.state()), (20 * MDS, "slow_start"));
    assert!(flow.detail("alpha").abs() < 1e-9, "nothing is known yet");
    flow.marked = 1;
    flow.ce(true);
    assert_eq!(flow.cwnd(), 10 * MDS);
    assert!((flow.detail("alpha") - 1.0).abs() < 1e-9);
}

#[test]
fn alpha_moves_by_a_sixteenth_of_the_difference_each_round_trip() {
    let mut flow = past_slow_start(PragueConfig::default());
    // An ACK that begins a round closes the measurement of the one before it.
    let (mut alpha, mut before): (f64, u32) = (1.0, 0);
    for marked in [5, 5, 0, 20, 10] {
        round(&mut flow, 20, u64::from(marked));
        alpha += (f64::from(before) / 20.0 - alpha) / 16.0;
        assert!((flow.detail("alpha") - alpha).abs() < 1e-9, "{marked}");
        before = marked;
    }
}

#[test]
fn the_window_falls_by_half_of_alpha() {
    let mut flow = past_slow_start(PragueConfig::default());
    for _ in 0..60 {
        round(&mut flow, 10, 0);
    }
    let alpha = flow.detail("alpha");
    assert!((alpha - (15.0_f64 / 16.0).powi(60)).abs() < 1e-9);
    let before = flow.cwnd();
    flow.marked = 1;
    flow.ce(true);
    let expected = ByteCount::new(before).scaled(1.0 - alpha / 2.0).get();
    assert_eq!(flow.cwnd(), expected);
    assert!(flow.cwnd() > before * 98 / 100);
}

#[test]
fn marks_reduce_once_a_round_trip() {
    let mut flow = past_slow_start(PragueConfig::default());
    flow.marked = 1;
    flow.ce(true);
    let after = flow.cwnd();
    for _ in 0..5 {
        flow.ce(false);
    }
    assert_eq!(flow.cwnd(), after);
}

#[test]
fn only_unmarked_packets_grow_the_window() {
    let mut flow = past_slow_start(PragueConfig::default());
    let mut expected = flow.cwnd() as f64;
    flow.acked = 4;
    // A whole ACK, then one of which three packets in four count, then none.
    for (marked, counts) in [(0, 4.0), (1, 3.0), (4, 0.0)] {
        flow.marked = marked;
        flow.ack();
        expected += counts * (MDS * MDS) as f64 / expected;
        assert!((flow.cwnd() as f64 - expected).abs() <= 1.0, "{marked}");
    }
}

#[test]
fn marks_do_not_hold_up_growth() {
    let mut flow = past_slow_start(PragueConfig::default());
    flow.marked = 1;
    flow.ce(true);
    (flow.marked, flow.sent_after_recovery_start) = (0, false);
    let before = flow.cwnd();
    flow.ack();
    assert!(flow.cwnd() > before);
}

#[test]
fn a_loss_halves_the_window_and_holds_up_growth_for_a_round_trip() {
    let mut flow = past_slow_start(PragueConfig::default());
    let before = flow.cwnd();
    flow.lose(true);
    assert_eq!(flow.cwnd(), before / 2);
    flow.sent_after_recovery_start = false;
    flow.wait(20.0);
    flow.ack();
    flow.lose(false);
    assert_eq!(flow.cwnd(), before / 2);
    flow.wait(31.0);
    flow.ack();
    assert!(flow.cwnd() > before / 2);
}

#[test]
fn a_loss_in_a_round_trip_that_had_marks_is_not_missed() {
    let mut flow = past_slow_start(PragueConfig::default());
    flow.marked = 1;
    flow.ce(true);
    let after_mark = flow.cwnd();
    // The transport counts it to the event that the mark opened.
    flow.lose(false);
    assert_eq!(flow.cwnd(), after_mark / 2);
    flow.lose(false);
    assert_eq!(flow.cwnd(), after_mark / 2);
}

#[test]
fn a_spurious_loss_is_undone_and_a_mark_is_not() {
    let mut flow = past_slow_start(PragueConfig::default());
    let before = flow.cwnd();
    flow.lose(true);
    flow.refute();
    assert_eq!(flow.cwnd(), before);
    flow.wait(60.0);
    flow.marked = 1;
    flow.ce(true);
    let reduced = flow.cwnd();
    assert!(reduced < before);
    flow.refute();
    assert_eq!(flow.cwnd(), reduced);
}

#[test]
fn measuring_restarts_when_slow_start_ends() {
    let mut flow = Direct::new(&PragueConfig::default(), 200);
    flow.set_rtt(50.0);
    flow.ack_of_new_round();
    (flow.acked, flow.marked) = (10, 10);
    flow.ce(true);
    let after = flow.cwnd();
    // The rest of the flight that overshot: no second cut, and no part in alpha.
    for _ in 0..4 {
        flow.wait(10.0);
        flow.ce(true);
        flow.ack_of_new_round();
    }
    assert_eq!(flow.cwnd(), after);
    assert!((flow.detail("alpha") - 1.0).abs() < 1e-9);
    flow.wait(20.0);
    flow.ce(true);
    assert_eq!(flow.cwnd(), after / 2);
}

/// On a path of 5 ms, as if it were one of 25 ms from the start.
fn near() -> Direct {
    let config = PragueConfig {
        rtt_transition: 0,
        ..PragueConfig::default()
    };
    let mut flow = past_slow_start(config);
    flow.set_rtt(5.0);
    flow.ack();
    flow
}

#[test]
fn a_short_path_grows_as_if_it_were_longer() {
    let mut flow = near();
    let mut expected = flow.cwnd() as f64;
    let start = expected;
    flow.acked = 10;
    for _ in 0..20 {
        flow.ack();
        // (5/25)^2 of a packet for each window.
        expected += 10.0 * (MDS * MDS) as f64 / expected / 25.0;
    }
    assert!((flow.cwnd() as f64 - expected).abs() <= 20.0, "{expected}");
    assert!(expected - start > 90.0);
}

#[test]
fn a_short_path_reduces_once_in_25_ms() {
    let mut flow = near();
    flow.marked = 1;
    flow.wait(25.0);
    flow.ce(true);
    let mut reductions = Vec::new();
    for step in 1..=20 {
        let before = flow.cwnd();
        flow.wait(5.0);
        flow.ce(true);
        if flow.cwnd() < before {
            reductions.push(step);
        }
    }
    assert_eq!(reductions, [5, 10, 15, 20]);
}

#[test]
fn a_short_flow_may_use_that_it_is_near() {
    let mut flow = past_slow_start(PragueConfig {
        rtt_transition: 3,
        ..PragueConfig::default()
    });
    flow.set_rtt(5.0);
    flow.acked = 10;
    let mut gains = Vec::new();
    for _ in 0..4 {
        let before = flow.cwnd();
        flow.ack_of_new_round();
        gains.push(flow.cwnd() - before);
    }
    let whole = 10 * MDS / 100;
    assert!(gains[..2].iter().all(|gain| gain.abs_diff(whole) < 10));
    assert!(gains[2..].iter().all(|gain| gain.abs_diff(whole / 25) < 2));
}

/// Round trips with marks, of which none found less than `millis` of queue.
fn marked_rounds(flow: &mut Direct, rounds: u32, millis: f64) {
    flow.set_rtt(50.0 + millis);
    for _ in 0..rounds {
        flow.wait(60.0);
        (flow.acked, flow.marked) = (20, 2);
        flow.ack_of_new_round();
    }
}

#[test]
fn marks_with_a_standing_queue_mean_a_classic_bottleneck() {
    let mut flow = past_slow_start(PragueConfig::default());
    marked_rounds(&mut flow, 40, 1.0);
    assert!(flow.detail("classic").abs() < 1e-9);
    // Nine: the first only ends the last period of before.
    marked_rounds(&mut flow, 8, 8.0);
    assert!(flow.detail("classic").abs() < 1e-9);
    marked_rounds(&mut flow, 1, 8.0);
    assert!((flow.detail("classic") - 1.0).abs() < 1e-9);
    let before = flow.cwnd();
    flow.ce(true);
    assert_eq!(flow.cwnd(), before / 2);
    // One short queue doesn't reverse it, many do.
    marked_rounds(&mut flow, 3, 0.5);
    assert!((flow.detail("classic") - 1.0).abs() < 1e-9);
    marked_rounds(&mut flow, 12, 0.5);
    assert!(flow.detail("classic").abs() < 1e-9);
}

#[test]
fn a_standing_queue_without_marks_says_nothing_of_the_bottleneck() {
    let mut flow = past_slow_start(PragueConfig::default());
    flow.set_rtt(90.0);
    for _ in 0..40 {
        round(&mut flow, 20, 0);
    }
    assert!(flow.detail("classic").abs() < 1e-9);
}

#[test]
fn the_fallback_can_be_switched_off() {
    let mut flow = past_slow_start(PragueConfig {
        classic_fallback: false,
        ..PragueConfig::default()
    });
    marked_rounds(&mut flow, 40, 8.0);
    assert!(flow.detail("classic").abs() < 1e-9);
    let before = flow.cwnd();
    flow.ce(true);
    assert!(flow.cwnd() > before * 8 / 10);
}

#[test]
fn it_paces_at_the_windows_own_rate_without_bursts() {
    let flow = past_slow_start(PragueConfig::default());
    let pacing = flow.cc.pacing(&flow.rtt);
    assert_eq!((pacing.rate, pacing.gain), (None, 1.0));
    // 100 packets in 50 ms are 0.5 packets in a 4096th of a second.
    assert_eq!(pacing.quantum, Some(ByteCount::new(MDS)));
}

#[test]
fn persistent_congestion_discards_what_was_measured() {
    let mut flow = past_slow_start(PragueConfig::default());
    marked_rounds(&mut flow, 40, 8.0);
    flow.persistent_congestion();
    assert_eq!((flow.cwnd(), flow.state()), (2 * MDS, "slow_start"));
    assert!(flow.detail("alpha").abs() < 1e-9);
    assert!(flow.detail("classic").abs() < 1e-9);
}

#[test]
fn parameters_have_names() {
    assert!(by_name("prague:gain=0.125,rtt_target=0ms,classic_fallback=off").is_ok());
    assert!(by_name("prague:gain=2").is_err());
}
