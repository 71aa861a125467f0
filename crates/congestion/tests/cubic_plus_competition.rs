//! Cubic+: drains of flows that share a queue, and whether others fill it.

use std::time::Duration;

use crate::support::MDS;
use crate::support::script::{BASE_MS, Script, times};
use swiftwater_congestion::{CubicPlusConfig, Tunable};

/// A period of the scripts: one smoothed round-trip time, and the ACK after it.
const PERIOD: u64 = BASE_MS + 1;
/// The window after the first loss event.
const WINDOW: u64 = 70 * MDS;
/// What a drain leaves where the queue is twice the base round-trip time.
const LEFT: f64 = 1.0 / 3.0;
/// How long after its first drain the queue must be nearly empty: a round-trip time and four of the
/// base, which the script takes for the smoothed one.
const TEST: u64 = 5 * BASE_MS;

fn config(settings: &str) -> CubicPlusConfig {
    let mut config = CubicPlusConfig::paper();
    config
        .set_all("drain=bdp,k_high=1,drain_limit=1000,drain_backoff=64,compete_rtts=4")
        .and_then(|()| config.set_all(settings))
        .expect("settings of the test");
    config
}

/// A flow of 70 packets past its first event, that has just drained a queue of twice the base.
fn drained(settings: &str) -> Script {
    let mut s = Script::after_first_event(&config(settings));
    s.queue_of(2.0 * BASE_MS as f64);
    s.acks_for(PERIOD);
    assert_eq!(s.state(), "drain");
    assert!(s.cwnd().abs_diff(times(WINDOW, &[LEFT])) < MDS);
    s
}

fn drains(s: &Script) -> u64 {
    s.detail("drains") as u64
}

#[test]
fn a_drain_that_empties_the_queue_stands() {
    let mut s = drained("");
    s.rtt = Duration::from_millis(BASE_MS);
    s.acks_for(4 * TEST);
    assert_eq!(s.cwnd(), times(WINDOW, &[LEFT]));
    assert_eq!(drains(&s), 1);
}

#[test]
fn drains_that_do_not_empty_it_are_taken_back_and_paused() {
    let mut s = drained("");
    s.acks_for(TEST - PERIOD);
    assert!(s.cwnd() < WINDOW);
    s.acks_for(PERIOD);
    let in_test = drains(&s);
    assert_eq!((s.cwnd(), s.state()), (WINDOW, "drain-skip"));
    // The first pause, of eight round-trip times, and the period after it.
    s.acks_for(7 * BASE_MS);
    assert_eq!((s.cwnd(), drains(&s)), (WINDOW, in_test));
    s.acks_for(2 * PERIOD);
    assert_eq!(drains(&s), in_test + 1);
    // The next one is twice as long.
    s.acks_for(TEST);
    let in_test = drains(&s);
    s.acks_for(15 * BASE_MS);
    assert_eq!((s.cwnd(), drains(&s)), (WINDOW, in_test));
}

#[test]
fn without_the_test_drains_go_on() {
    let mut s = Script::after_first_event(&config("compete_rtts=0"));
    s.queue_of(2.0 * BASE_MS as f64);
    s.acks_for(4 * TEST);
    assert!(s.cwnd() < times(WINDOW, &[LEFT]));
}

#[test]
fn an_empty_queue_ends_the_pause() {
    let mut s = drained("");
    s.acks_for(TEST);
    assert_eq!(s.cwnd(), WINDOW);
    let before = drains(&s);
    s.rtt = Duration::from_millis(BASE_MS);
    s.acks_for(BASE_MS);
    s.queue_of(2.0 * BASE_MS as f64);
    s.acks_for(2 * PERIOD);
    assert!(drains(&s) > before);
}

#[test]
fn a_loss_before_the_queue_is_empty_reduces_the_window_from_before_the_drains() {
    let mut s = drained("");
    s.lose(5);
    assert_eq!(s.cwnd(), times(WINDOW, &[0.7]));
    // After it the drain has done its work, and counts.
    let mut s = drained("");
    let left = s.cwnd();
    s.rtt = Duration::from_millis(BASE_MS);
    s.acks_for(BASE_MS);
    s.lose(5);
    s.lose_more(20);
    assert!(s.cwnd() <= left);
}

#[test]
fn a_queue_that_another_flow_has_just_drained_is_drained_jointly() {
    for (settings, count) in [("joint_drain=on", 1), ("joint_drain=off", 0)] {
        let mut s = Script::after_first_event(&config(settings));
        s.queue_of(2.0 * BASE_MS as f64);
        s.acks_for(PERIOD / 4);
        s.rtt = Duration::from_millis(BASE_MS);
        s.acks_for(PERIOD);
        assert_eq!(drains(&s), count, "{settings}");
    }
}

#[test]
fn a_young_flow_drains_nothing() {
    let mut s = Script::after_first_event(&config("drain_age=3"));
    s.queue_of(2.0 * BASE_MS as f64);
    for _ in 0..2 {
        s.round_of(0);
        s.acks_for(2 * PERIOD);
    }
    assert_eq!(drains(&s), 0);
    s.round_of(0);
    s.acks_for(2 * PERIOD);
    assert!(drains(&s) > 0);
}

#[test]
fn after_a_drain_growth_can_start_from_a_plateau() {
    // Back to the window that made the queue, or not.
    for (settings, w_max) in [
        ("drain_plateau=off", WINDOW as f64),
        ("drain_plateau=on", 0.0),
    ] {
        let s = drained(settings);
        assert!(
            (s.detail("w_max") - w_max).abs() < 0.2 * WINDOW as f64,
            "{settings}"
        );
    }
}

#[test]
fn the_shipped_setting_drains_jointly_and_yields_to_what_fills_buffers() {
    let shipped = CubicPlusConfig::default();
    assert!(shipped.joint_drain && shipped.drain_plateau && !shipped.drain_in_slow_start);
    assert!(shipped.compete_rtts > 0.0 && shipped.drain_age > 0);
    // And the paper's does nothing of that.
    let paper = CubicPlusConfig::paper();
    assert!(!paper.joint_drain && !paper.drain_plateau && paper.drain_in_slow_start);
    assert!(paper.drain_age == 0 && paper.compete_rtts <= 0.0 && paper.spare_gain <= 0.0);
    assert!(!paper.recurrence && paper.shallow_beta <= paper.cubic.beta);
}
