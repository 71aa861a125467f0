//! The law of TECC, on its own and with a tunnel as a fluid.

use std::collections::VecDeque;
use std::time::Duration;

use swiftwater_congestion::{ExternalRate, RateLaw, RateLawConfig};
use swiftwater_units::{Bandwidth, ByteCount, Instant};

const PACKET: ByteCount = ByteCount::new(1_200);
/// From the tunnel to the client, to the server, and in its effect back.
const RTT: Duration = Duration::from_millis(100);
/// Between two reports.
const INTERVAL: u64 = 20;

fn at(ms: u64) -> Instant {
    Instant::ZERO + Duration::from_millis(ms)
}

fn report(mbps: f64, queue: f64) -> ExternalRate {
    let rate = Bandwidth::from_bps((mbps * 1e6) as u64);
    ExternalRate::new(rate, ByteCount::new(queue as u64), Duration::ZERO)
}

fn steady() -> RateLawConfig {
    RateLawConfig {
        startup: false,
        probe: false,
        // That of the calculation that the test repeats: 5 ms.
        target_intervals: 0.0,
        ..RateLawConfig::default()
    }
}

/// What a queue did after the tunnel's rate halved at 5 s.
#[derive(Debug)]
struct Queue {
    /// The largest delay, ms.
    peak: f64,
    /// Difference of largest and smallest delay in the last two seconds, ms.
    residual: f64,
    /// When the delay stayed within 5 ms of the target, seconds after the drop.
    settled: f64,
}

/// A tunnel of 20 Mbit/s that carries 10 from 5 s to 15 s, and a sender that follows the law.
fn fluid(config: RateLawConfig) -> Queue {
    let mut law = RateLaw::new(config);
    let (mut queue, mut sending) = (0.0_f64, VecDeque::new());
    let mut delays = Vec::new();
    for ms in 0..15_000_u64 {
        let capacity: f64 = if ms < 5_000 { 20.0 } else { 10.0 };
        if ms % INTERVAL == 0 {
            // All of the delay is between report and effect.
            sending.push_back((ms + 100, report(capacity, queue)));
        }
        while sending.front().is_some_and(|(due, _)| *due <= ms) {
            let (_, report) = sending.pop_front().unwrap();
            law.on_report(at(ms), &report, RTT, PACKET);
        }
        let sent = law.rate(at(ms), RTT, PACKET);
        let sent = sent.map_or(20.0, |rate| rate.as_bps() as f64 / 1e6);
        // Bytes per millisecond of a Mbit/s.
        queue = (queue + (sent - capacity) * 125.0).max(0.0);
        delays.push(queue / (capacity * 125.0));
    }
    let after = &delays[5_000..];
    let peak = after.iter().copied().fold(0.0, f64::max);
    let last = &delays[13_000..];
    let largest = last.iter().copied().fold(0.0, f64::max);
    let smallest = last.iter().copied().fold(f64::MAX, f64::min);
    let restless = after.iter().rposition(|delay| (delay - 5.0).abs() > 5.0);
    Queue {
        peak,
        residual: largest - smallest,
        settled: restless.map_or(0.0, |ms| ms as f64 / 1e3),
    }
}

#[test]
fn the_queue_is_stable_for_a_theta_of_a_round_trip_and_more() {
    for theta in [1.0, 1.57, 2.0, 2.72, 4.0] {
        let queue = fluid(RateLawConfig { theta, ..steady() });
        assert!(queue.residual < 1.0, "theta {theta}: {queue:?}");
        assert!(queue.settled < 3.0, "theta {theta}: {queue:?}");
    }
    let hasty = fluid(RateLawConfig {
        theta: 0.5,
        ..steady()
    });
    assert!(hasty.residual > 8.0, "{hasty:?}");
}

#[test]
fn the_peak_after_a_drop_is_set_by_the_round_trip_not_by_theta() {
    let peaks = [1.0, 2.0, 4.0].map(|theta| fluid(RateLawConfig { theta, ..steady() }).peak);
    for peak in peaks {
        assert!((90.0..160.0).contains(&peak), "{peaks:?}");
        assert!((peak - peaks[0]).abs() < 15.0, "{peaks:?}");
    }
}

#[test]
fn the_drop_rule_keeps_the_peak_low() {
    let with = fluid(steady());
    let without = fluid(RateLawConfig {
        drop_rule: false,
        ..steady()
    });
    assert!(with.peak < without.peak, "{with:?} {without:?}");
}

fn rate(law: &RateLaw, ms: u64) -> f64 {
    law.rate(at(ms), RTT, PACKET).unwrap().as_mbps_f64()
}

#[test]
fn rates_are_smoothed_more_upwards_than_downwards() {
    let mut law = RateLaw::new(steady());
    assert_eq!(law.rate(at(0), RTT, PACKET), None);
    // The queue is what may stand, so that only the rate counts.
    let give =
        |law: &mut RateLaw, mbps| law.on_report(at(0), &report(mbps, mbps * 625.0), RTT, PACKET);
    give(&mut law, 8.0);
    assert!((rate(&law, 0) - 8.0).abs() < 0.1);
    give(&mut law, 12.0);
    assert!((rate(&law, 0) - 9.0).abs() < 0.2, "{}", rate(&law, 0));
    give(&mut law, 8.0);
    assert!((rate(&law, 0) - 8.5).abs() < 0.2, "{}", rate(&law, 0));
    // A sudden fall is followed at once.
    give(&mut law, 3.0);
    assert!((rate(&law, 0) - 3.0).abs() < 0.2, "{}", rate(&law, 0));
}

#[test]
fn the_start_ends_with_a_queue_a_congestion_event_or_a_rate_that_does_not_grow() {
    let config = RateLawConfig::default();
    let start = || {
        let mut law = RateLaw::new(config);
        law.on_report(at(0), &report(8.0, 0.0), RTT, PACKET);
        assert!(law.in_startup());
        assert!(rate(&law, 0) > 15.9);
        law
    };
    let mut law = start();
    law.on_report(at(20), &report(8.0, 21_000.0), RTT, PACKET);
    assert!(!law.in_startup(), "a queue");

    let mut law = start();
    let mut event = report(8.0, 0.0);
    event.congestion = true;
    law.on_report(at(20), &event, RTT, PACKET);
    assert!(!law.in_startup(), "a congestion event");

    let mut law = start();
    for round in 1..=4_u64 {
        assert!(law.in_startup(), "round {round}");
        law.on_round();
        law.on_report(at(100 * round), &report(8.0, 0.0), RTT, PACKET);
    }
    assert!(!law.in_startup(), "three rounds without growth");
}

#[test]
fn one_round_in_eight_probes_while_the_tunnel_is_not_filled() {
    let config = RateLawConfig {
        startup: false,
        ..RateLawConfig::default()
    };
    let mut law = RateLaw::new(config);
    let mut idle = report(8.0, 0.0);
    idle.app_limited = true;
    let mut probes = 0;
    for round in 0..16_u64 {
        law.on_round();
        law.on_report(at(100 * round), &idle, RTT, PACKET);
        probes += u32::from(rate(&law, 100 * round) > 9.5);
    }
    assert_eq!(probes, 2);
}
