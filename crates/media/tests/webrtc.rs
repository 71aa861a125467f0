//! WebRTC-like protection: how many repair packets, by loss, round-trip time and time.

#![allow(
    clippy::float_cmp,
    reason = "shares of nothing and of everything are exact"
)]

use std::time::Duration;

use swiftwater_media::protection::webrtc::{WebRtcFec, WebRtcVariant};
use swiftwater_units::Instant;

const RTT: Duration = Duration::from_millis(30);

#[test]
fn six_packets_get_two_now_and_one_in_2014() {
    // 4 Mbit/s at 60 frames/s.
    for loss in [0.005, 0.01, 0.05] {
        assert_eq!(WebRtcVariant::Now.repair_packets(6, loss, RTT, false), 2);
        assert_eq!(WebRtcVariant::Year14.repair_packets(6, loss, RTT, false), 1);
    }
}

#[test]
fn no_loss_no_repair() {
    for variant in [WebRtcVariant::Now, WebRtcVariant::Year14] {
        for loss in [0.0, -1.0, f64::NAN] {
            assert_eq!(variant.repair_packets(6, loss, RTT, false), 0);
            assert_eq!(variant.repair_packets(6, loss, RTT, true), 0);
        }
    }
}

#[test]
fn on_short_paths_only_key_frames_are_protected() {
    let rtt = Duration::from_millis(19);
    for variant in [WebRtcVariant::Now, WebRtcVariant::Year14] {
        assert_eq!(variant.repair_packets(6, 0.05, rtt, false), 0);
        assert!(variant.repair_packets(6, 0.05, rtt, true) > 0);
    }
}

#[test]
fn variants_agree_on_long_paths() {
    let rtt = Duration::from_millis(100);
    for packets in 1..60 {
        assert_eq!(
            WebRtcVariant::Now.repair_packets(packets, 0.1, rtt, false),
            WebRtcVariant::Year14.repair_packets(packets, 0.1, rtt, false),
        );
    }
}

#[test]
fn half_of_all_packets_is_the_most() {
    // 128 of 255 of all packets, that is as much again as the source.
    assert_eq!(WebRtcVariant::Now.repair_packets(100, 0.9, RTT, false), 100);
    assert_eq!(WebRtcVariant::Now.repair_packets(100, 0.9, RTT, true), 100);
}

#[test]
fn the_worst_of_ten_seconds_counts() {
    let mut fec = WebRtcFec::new(WebRtcVariant::Now);
    let at = |second: u64| Instant::from_millis(second * 1000);
    fec.on_outcomes(at(0), 90, 10);
    // The second isn't over.
    assert_eq!(fec.on_frame(Instant::from_millis(999), 6, RTT, false), 0);
    for second in 1..=10 {
        assert!((fec.loss_rate(at(second)) - 0.1).abs() < 1e-12, "{second}");
        fec.on_outcomes(at(second), 100, 0);
    }
    assert_eq!(fec.loss_rate(at(11)), 0.0);
    assert_eq!(fec.on_frame(at(11), 6, RTT, false), 0);
}

#[test]
fn a_long_pause_resets_the_estimate() {
    let mut fec = WebRtcFec::new(WebRtcVariant::Now);
    fec.on_outcomes(Instant::ZERO, 0, 5);
    assert_eq!(fec.loss_rate(Instant::from_millis(1_000)), 1.0);
    assert_eq!(fec.loss_rate(Instant::from_millis(1_000_000)), 0.0);
}
