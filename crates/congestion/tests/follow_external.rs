//! What `follow-external` makes of the reports of a tunnel.

use std::time::Duration;

use crate::direct::Direct;
use swiftwater_congestion::{ExternalRate, by_name};
use swiftwater_units::{Bandwidth, ByteCount};

/// The rate of a sender 100 ms away from a tunnel that grants 8 Mbit/s, behind whose queue its packets wait for `wait`, so
/// that round trips take 100 ms and the wait.
fn paced(specification: &str, wait: u64) -> f64 {
    let factory = by_name(specification).unwrap();
    let mut flow = Direct::new(factory.as_ref(), 10);
    flow.set_rtt(100.0);
    flow.ack_of_new_round();
    flow.set_rtt((100 + wait) as f64);
    // The delivery rate that is seen limits what a report is trusted with.
    for _ in 0..200 {
        flow.wait(1.0);
        flow.ack();
    }
    let rate = Bandwidth::from_mbps(8);
    let queue = ByteCount::new(rate.bytes_in(Duration::from_millis(wait)));
    flow.report(&ExternalRate::new(rate, queue, Duration::ZERO));
    flow.paced_mbps()
}

#[test]
fn a_queue_is_drained_in_two_round_trips_without_the_wait_in_it() {
    // A megabyte a second, less what is above the target, an interval of 20 ms, over `theta`.
    let law = |wait: f64, theta: f64| 8.0 * (1.0 - (wait - 20.0) / theta);
    let without_start = "follow-external:startup=off";
    for wait in [40, 100] {
        let rate = paced(without_start, wait);
        assert!((rate - law(wait as f64, 200.0)).abs() < 0.1, "{rate}");
        let rate = paced(&format!("{without_start},exclude-queue=off"), wait);
        let theta = 2.0 * (100 + wait) as f64;
        assert!((rate - law(wait as f64, theta)).abs() < 0.1, "{rate}");
    }
}
