//! BBR on links: how much it carries and queues, and what losses, pauses and changes do to it.

mod held_back;
mod lone_flow;
mod recorder;
mod supply;

use std::time::Duration;

use swiftwater_sim::{Dumbbell, FlowSpec};
use swiftwater_units::{Bandwidth, Instant};

use recorder::{Log, Recorded};

const RTT: Duration = Duration::from_millis(30);

fn at(millis: u64) -> Instant {
    Instant::from_millis(millis)
}

/// One endless flow over `mbps` Mbit/s, 30 ms and a buffer of one bandwidth-delay product.
fn lone_flow(specification: &str, mbps: u64, secs: u64) -> (Dumbbell, Log) {
    let (controller, log) = Recorded::new(specification);
    let mut flow = FlowSpec::new("cubic").unwrap();
    flow.controller = controller;
    let dumbbell = Dumbbell {
        flows: vec![flow],
        rate: Bandwidth::from_mbps(mbps).into(),
        duration: Duration::from_secs(secs),
        ..Dumbbell::default()
    };
    (dumbbell, log)
}

/// The share of a link of `mbps` Mbit/s that what was delivered from `from` to `to` took, headers
/// of IP and UDP included.
fn share(log: &Log, mbps: u64, from: Instant, to: Instant) -> f64 {
    let bits = log.delivered(from, to) as f64 * 8.0 * 1_500.0 / 1_472.0;
    bits / (to - from).as_secs_f64() / (mbps as f64 * 1e6)
}
