//! HyStart++ (RFC 9406), seen through CUBIC: as in the RFC, and what the default judges otherwise.

use crate::support;

use std::time::Duration;

use support::{MDS, Transport};
use swiftwater_congestion::{CubicConfig, HyStartConfig, SlowStartExit};
use swiftwater_units::{Bandwidth, ByteCount};

const CSS: &str = "conservative_slow_start";

fn cubic(hystart: HyStartConfig) -> Transport {
    let mut config = CubicConfig::default();
    config.base.hystart = SlowStartExit::HyStartPlusPlus(hystart);
    Transport::new(&config)
}

fn state(t: &Transport) -> &'static str {
    t.snapshot().state
}

/// A flow with 40 packets of window whose round-trip time has just risen by a half.
fn delay_rises() -> Transport {
    let mut t = cubic(HyStartConfig::rfc9406());
    t.run_rounds(3);
    t.rtt = Duration::from_millis(75);
    t
}

#[test]
fn a_rise_of_the_delay_starts_conservative_slow_start() {
    let mut t = delay_rises();
    assert!(t.run_until(4, |t| state(t) == CSS));
    assert_eq!(t.snapshot().ssthresh, None);
    assert!((t.gain() - 2.0).abs() < f64::EPSILON);
}

#[test]
fn constant_delay_never_ends_slow_start() {
    let mut t = cubic(HyStartConfig::rfc9406());
    t.run_rounds(10);
    assert_eq!(state(&t), "slow_start");
    assert!(t.packets() > 5000.0);
}

#[test]
fn a_rise_below_the_threshold_does_not_count() {
    // An eighth of 50 ms is 6.25 ms.
    let mut t = cubic(HyStartConfig::rfc9406());
    t.run_rounds(3);
    t.rtt = Duration::from_millis(56);
    t.run_rounds(4);
    assert_eq!(state(&t), "slow_start");
}

#[test]
fn the_threshold_stays_between_4_and_16_ms() {
    for (base, rise, counts) in [
        (8, 3, false),
        (8, 4, true),
        (400, 15, false),
        (400, 16, true),
    ] {
        let mut t = cubic(HyStartConfig::rfc9406());
        t.rtt = Duration::from_millis(base);
        t.run_rounds(3);
        t.rtt = Duration::from_millis(base + rise);
        t.run_rounds(3);
        assert_eq!(state(&t) == CSS, counts, "{base} ms and {rise} ms more");
    }
}

#[test]
fn rounds_with_too_few_samples_judge_nothing() {
    // The rounds that see the rise have 80 and 160 samples.
    for (needed, noticed) in [(8, true), (80, true), (100, false)] {
        let mut t = cubic(HyStartConfig {
            n_rtt_sample: needed,
            ..HyStartConfig::rfc9406()
        });
        t.run_rounds(3);
        t.rtt = Duration::from_millis(75);
        t.run_rounds(2);
        assert_eq!(state(&t) == CSS, noticed, "{needed} samples needed");
    }
}

#[test]
fn conservative_slow_start_grows_at_a_quarter() {
    let mut t = delay_rises();
    assert!(t.run_until(4, |t| state(t) == CSS));
    t.run_rounds(1);
    let before = t.cwnd();
    t.run_rounds(1);
    let ratio = t.cwnd() as f64 / before as f64;
    assert!((1.2..=1.3).contains(&ratio), "grew by {ratio}");
}

#[test]
fn conservative_growth_below_one_byte_adds_up() {
    let mut t = delay_rises();
    assert!(t.run_until(4, |t| state(t) == CSS));
    let before = t.cwnd();
    let mut ack = support::ack(&t, 1);
    (ack.acked_bytes, ack.prior_inflight) = (ByteCount::new(1), t.cc.cwnd());
    ack.round.count = t.rounds;
    for _ in 0..400 {
        t.with_env(|cc, _, env| cc.on_ack(&ack, env));
    }
    assert_eq!(t.cwnd() - before, 100);
}

#[test]
fn five_conservative_rounds_end_slow_start() {
    let mut t = delay_rises();
    assert!(t.run_until(4, |t| state(t) == CSS));
    let entered = t.rounds;
    assert!(t.run_until(10, |t| state(t) != CSS));
    assert_eq!(t.rounds - entered, 5, "the round of entry counts");
    assert_eq!(state(&t), "congestion_avoidance");
    assert!(t.snapshot().ssthresh.unwrap().get() <= t.cwnd());
    assert_eq!(t.events, 0);
}

#[test]
fn a_false_alarm_returns_to_slow_start() {
    let mut t = delay_rises();
    assert!(t.run_until(4, |t| state(t) == CSS));
    t.run_rounds(2);
    t.rtt = Duration::from_millis(50);
    assert!(t.run_until(3, |t| state(t) == "slow_start"));
    t.run_rounds(1);
    let before = t.cwnd();
    t.run_rounds(1);
    assert!(t.cwnd() as f64 / before as f64 > 1.9);
}

#[test]
fn a_second_rise_after_a_false_alarm_is_noticed() {
    let mut t = delay_rises();
    assert!(t.run_until(4, |t| state(t) == CSS));
    t.rtt = Duration::from_millis(50);
    assert!(t.run_until(4, |t| state(t) == "slow_start"));
    t.run_rounds(1);
    t.rtt = Duration::from_millis(75);
    assert!(t.run_until(4, |t| state(t) == CSS));
}

#[test]
fn a_loss_ends_it_like_any_slow_start() {
    let mut t = delay_rises();
    assert!(t.run_until(4, |t| state(t) == CSS));
    t.one_loss();
    assert_eq!(state(&t), "recovery");
    t.run_rounds(2);
    assert_eq!(state(&t), "congestion_avoidance");
}

#[test]
fn only_the_first_slow_start_uses_it() {
    let mut t = delay_rises();
    t.rtt = Duration::from_millis(50);
    t.run_rounds(2);
    t.one_loss();
    t.with_env(|cc, now, env| cc.on_persistent_congestion(now, env));
    t.idle(Duration::from_millis(1));
    t.run_rounds(4);
    assert_eq!(state(&t), "slow_start");
    t.rtt = Duration::from_millis(100);
    while state(&t) != "congestion_avoidance" {
        assert_eq!(state(&t), "slow_start");
        t.step();
    }
}

#[test]
fn a_filling_queue_is_left_before_it_overflows() {
    // 20 Mbit/s and 50 ms: 104 packets in the pipe, and a queue that never overflows.
    let pipe = 104.0;
    let exit = |step_back| {
        let mut t = cubic(HyStartConfig {
            step_back,
            ..HyStartConfig::rfc9406()
        });
        t.rate = Some(Bandwidth::from_mbps(20));
        assert!(t.run_until(40, |t| state(t) == "congestion_avoidance"));
        assert_eq!(t.events, 0);
        assert!(t.packets() > pipe, "not before the pipe is full");
        t.packets()
    };
    // The rise shows one round late, then five rounds grow by a quarter each.
    assert!(exit(false) < 10.0 * pipe);
    assert!(exit(true) < 2.0 * pipe);
}

#[test]
fn the_growth_limit_bounds_what_one_ack_adds() {
    let mut t = cubic(HyStartConfig {
        growth_limit: Some(0),
        ..HyStartConfig::rfc9406()
    });
    t.run_rounds(3);
    assert_eq!(t.cwnd(), 10 * MDS);
}

/// CUBIC as configured by default.
fn default() -> Transport {
    Transport::new(&CubicConfig::default())
}

#[test]
fn a_queue_that_fills_within_a_round_is_seen_within_it() {
    // 20 Mbit/s and 50 ms: 104 packets in the pipe, and a queue that never overflows.
    let pipe = 104.0;
    let exit = |mut t: Transport| {
        t.rate = Some(Bandwidth::from_mbps(20));
        assert!(t.run_until(40, |t| state(t) == "congestion_avoidance"));
        assert_eq!(t.events, 0);
        t.packets() / pipe
    };
    let seen = exit(default());
    assert!((1.0..3.0).contains(&seen), "at {seen:.2} pipes");
    let late = exit(cubic(HyStartConfig::rfc9406()));
    assert!(late > 1.5 * seen, "{late:.2} against {seen:.2}");
}

#[test]
fn a_small_rise_is_checked_and_a_large_one_ends_slow_start_at_once() {
    // Over 50 ms, 12.5 ms count and 25 ms end it.
    for (rise, expected) in [(11, "slow_start"), (14, CSS), (26, "congestion_avoidance")] {
        let mut t = default();
        t.rate = Some(Bandwidth::from_mbps(1_000));
        t.run_rounds(4);
        t.rtt = Duration::from_millis(50 + rise);
        t.run_rounds(2);
        assert_eq!(state(&t), expected, "{rise} ms more");
        assert_eq!(t.events, 0);
    }
}

#[test]
fn a_small_rise_that_goes_is_a_false_alarm_by_default_too() {
    let mut t = default();
    t.rate = Some(Bandwidth::from_mbps(1_000));
    t.run_rounds(4);
    t.rtt = Duration::from_millis(64);
    assert!(t.run_until(4, |t| state(t) == CSS));
    t.rtt = Duration::from_millis(50);
    assert!(t.run_until(4, |t| state(t) == "slow_start"));
}
