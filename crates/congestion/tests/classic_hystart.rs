//! HyStart as first published, seen through CUBIC.

use std::time::Duration;

use crate::support::{MDS, Transport};
use swiftwater_congestion::{ClassicHyStartConfig, CubicConfig, SlowStartExit, by_name};
use swiftwater_units::Bandwidth;

fn cubic(config: ClassicHyStartConfig) -> Transport {
    let mut cubic = CubicConfig::default();
    cubic.base.hystart = SlowStartExit::HyStart(config);
    Transport::new(&cubic)
}

fn state(t: &Transport) -> &'static str {
    t.snapshot().state
}

/// The state after a few rounds at `base` and some at `base + rise` milliseconds.
fn state_after_rise(config: ClassicHyStartConfig, base: u64, rise: u64) -> &'static str {
    let mut t = cubic(config);
    t.rtt = Duration::from_millis(base);
    t.run_rounds(3);
    assert_eq!(state(&t), "slow_start");
    t.rtt = Duration::from_millis(base + rise);
    t.run_rounds(3);
    state(&t)
}

#[test]
fn a_rise_of_the_delay_ends_slow_start_within_the_round_and_without_a_conservative_phase() {
    let mut t = cubic(ClassicHyStartConfig::linux());
    t.run_rounds(3);
    let window = t.cwnd();
    t.rtt = Duration::from_millis(75);
    t.run_rounds(1);
    let mut states = Vec::new();
    assert!(t.run_until(2, |t| {
        states.push(state(t));
        state(t) == "congestion_avoidance"
    }));
    assert!(!states.contains(&"conservative_slow_start"));
    let ssthresh = t.snapshot().ssthresh.expect("slow start has ended");
    assert!(t.cwnd() - ssthresh.get() < MDS, "no step back");
    assert!(
        t.cwnd() < 3 * window,
        "one doubling, and the samples judged"
    );
}

#[test]
fn linux_needs_an_eighth_between_4_and_16_ms_and_ns3_a_whole_round_trip() {
    let (linux, ns3) = (ClassicHyStartConfig::linux(), ClassicHyStartConfig::ns3());
    for (config, base, rise, ends) in [
        (linux, 8, 3, false),
        (linux, 8, 5, true),
        (linux, 80, 9, false),
        (linux, 80, 11, true),
        (linux, 400, 15, false),
        (linux, 400, 17, true),
        (ns3, 50, 49, false),
        (ns3, 50, 51, true),
    ] {
        let state = state_after_rise(config, base, rise);
        let ended = state == "congestion_avoidance";
        assert_eq!(ended, ends, "{base} ms and {rise} ms more: {state}");
    }
}

#[test]
fn a_train_of_acks_as_long_as_the_round_trip_ends_slow_start() {
    // 100 packets a round trip of 50 ms, so an ACK every half millisecond.
    let rate = Bandwidth::from_bps(100 * MDS * 8 * 20);
    let wide = ClassicHyStartConfig {
        delay_min: Duration::from_secs(1),
        ..ClassicHyStartConfig::ns3()
    };
    let mut t = cubic(wide);
    t.rate = Some(rate);
    assert!(t.run_until(10, |t| state(t) == "congestion_avoidance"));
    let packets = t.packets();
    assert!(
        (100.0..=300.0).contains(&packets),
        "left with {packets} packets"
    );

    let mut t = cubic(ClassicHyStartConfig {
        ack_delta: Duration::from_micros(300),
        ..wide
    });
    t.rate = Some(rate);
    t.run_rounds(8);
    assert_eq!(state(&t), "slow_start", "such ACKs are no train");
}

#[test]
fn small_windows_are_not_judged() {
    let config = ClassicHyStartConfig {
        low_window: 100_000,
        ..ClassicHyStartConfig::linux()
    };
    assert_eq!(state_after_rise(config, 50, 100), "slow_start");
}

#[test]
fn both_sets_of_constants_have_a_name() {
    for name in ["classic", "ns3"] {
        for controller in ["cubic", "cubic-plus-paper", "newreno"] {
            assert!(by_name(&format!("{controller}:hystart={name}")).is_ok());
        }
    }
}
