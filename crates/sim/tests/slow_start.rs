//! The end of CUBIC's first slow start, into a queue of 50 ms on 50 Mbit/s and 24 ms.
//!
//! The kernel's CUBIC of Linux 6.18 on the same link (`cargo run -p swiftwater-net --features tun
//! --example kernel_tcp -- cubic 50mbit 24ms 312500 none FLOWS BYTES 4`) drops nothing in most runs,
//! up to 35 packets in some with one flow, and 14 to 16 in each with two flows of 5 MB.

use std::time::Duration;

use swiftwater_link::{Buffer, Jitter};
use swiftwater_sim::{Dumbbell, FlowSpec, Report};
use swiftwater_units::Bandwidth;

/// Bytes of each flow.
const SIZES: [u64; 6] = [500_000, 700_000, 1_000_000, 1_500_000, 2_000_000, 5_000_000];

/// What the kernel drops in each run.
fn dropped_by_the_kernel(flows: usize, bytes: u64) -> u64 {
    if (flows, bytes) == (2, 5_000_000) {
        14
    } else {
        0
    }
}

/// `flows` transfers of `bytes` each that start together.
fn transfers(controller: &str, flows: usize, bytes: u64, seed: u64) -> Report {
    let flow = FlowSpec::new(controller).unwrap().bytes(bytes);
    let report = Dumbbell {
        flows: vec![flow; flows],
        rate: Bandwidth::from_mbps(50).into(),
        rtt: Duration::from_millis(24),
        buffer: Buffer::Bytes(312_500.into()),
        duration: Duration::from_secs(20),
        seed,
        ..Dumbbell::default()
    };
    report.run().unwrap()
}

#[test]
fn slow_start_ends_before_the_queue_overflows() {
    for flows in [1, 2] {
        for bytes in SIZES {
            for seed in 1..=3 {
                let report = transfers("cubic", flows, bytes, seed);
                let dropped = report.queue.dropped_packets;
                assert!(
                    dropped <= 2 * dropped_by_the_kernel(flows, bytes),
                    "{dropped}: {flows} flows of {bytes} bytes, seed {seed}"
                );
            }
        }
    }
}

#[test]
fn an_early_end_of_slow_start_costs_no_time() {
    let goodput = |controller: &str, bytes| {
        let report = transfers(controller, 1, bytes, 1);
        report.flows[0].goodput_bps
    };
    for bytes in SIZES {
        let early = goodput("cubic", bytes);
        let rfc = goodput("cubic:hystart=rfc9406", bytes);
        assert!(early > 0.99 * rfc, "{bytes} bytes: {early:.3e}, {rfc:.3e}");
    }
}

#[test]
fn as_in_rfc_9406_the_queue_overflows() {
    let report = transfers("cubic:hystart=rfc9406", 1, 2_000_000, 1);
    assert!(report.queue.dropped_packets > 50);
}

#[test]
fn jitter_does_not_end_slow_start_early() {
    // A link that is never full, and jitter of one direction of up to one and a half round-trip times.
    let goodput = |controller: &str, rtt_ms, jitter_ms, seed| {
        let flow = FlowSpec::new(controller).unwrap().bytes(4_000_000);
        let report = Dumbbell {
            flows: vec![flow],
            rate: Bandwidth::from_mbps(400).into(),
            rtt: Duration::from_millis(rtt_ms),
            jitter: Jitter::Uniform(Duration::from_millis(jitter_ms)),
            seed,
            ..Dumbbell::default()
        };
        report.run().unwrap().flows[0].goodput_bps
    };
    for (rtt_ms, jitter_ms) in [(40, 5), (40, 10), (20, 30)] {
        let mut total = 0.0;
        for seed in 1..=10 {
            let rfc = goodput("cubic:hystart=rfc9406", rtt_ms, jitter_ms, seed);
            total += goodput("cubic", rtt_ms, jitter_ms, seed) / rfc;
        }
        let mean = total / 10.0;
        assert!(
            mean > 0.9,
            "{rtt_ms} ms, {jitter_ms} ms of jitter: {mean:.2}"
        );
    }
}
