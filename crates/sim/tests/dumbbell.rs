//! The dumbbell: what a lone flow and several flows make of a bottleneck, and how it is reported.

use std::time::Duration;

use swiftwater_link::{Buffer, EcnThreshold, LossModel};
use swiftwater_sim::{Cipher, Dumbbell, FlowSpec, Report, SimError};
use swiftwater_units::{Bandwidth, ByteCount};

fn flows(names: &[&str]) -> Vec<FlowSpec> {
    names
        .iter()
        .map(|name| FlowSpec::new(name).unwrap())
        .collect()
}

fn base(names: &[&str]) -> Dumbbell {
    Dumbbell {
        flows: flows(names),
        rate: Bandwidth::from_mbps(20).into(),
        duration: Duration::from_secs(8),
        ..Dumbbell::default()
    }
}

/// What holds for every run.
fn check(report: &Report, rate: f64) {
    let sum: f64 = report.flows.iter().map(|flow| flow.goodput_bps).sum();
    // Packets are 1500 bytes, of which 28 + QUIC's own are not goodput; starts differ by 10 ms.
    assert!(sum < rate * 0.975, "{report:?}");
    assert!(report.flows.iter().all(|flow| flow.intact));
    assert!(report.queue.mean_bytes <= report.queue.max_bytes as f64);
}

#[test]
fn a_lone_cubic_flow_fills_a_link_with_a_buffer_of_one_bdp() {
    let report = base(&["cubic"]).run().unwrap();
    check(&report, 20e6);
    let flow = &report.flows[0];
    assert_eq!(flow.cc, "cubic");
    assert!(flow.goodput_bps > 0.9 * 20e6, "{report:?}");
    assert!(report.utilisation.unwrap() <= 1.0, "{report:?}");
    // 20 Mbit/s times 30 ms are 75 kB.
    assert!(report.queue.max_bytes <= 75_000, "{report:?}");
    assert!(
        flow.srtt_ms_mean > 30.0 && flow.srtt_ms_mean < 62.0,
        "{report:?}"
    );
    assert_eq!(flow.finish_s, None);
}

#[test]
fn newreno_fills_it_too() {
    let report = base(&["newreno"]).run().unwrap();
    check(&report, 20e6);
    assert!(report.flows[0].goodput_bps > 0.9 * 20e6, "{report:?}");
}

#[test]
fn two_equal_flows_share_about_equally() {
    let mut dumbbell = base(&["newreno", "newreno"]);
    dumbbell.duration = Duration::from_secs(30);
    let report = dumbbell.run().unwrap();
    check(&report, 20e6);
    let shares: Vec<_> = report.flows.iter().map(|flow| flow.goodput_bps).collect();
    let sum = shares[0] + shares[1];
    assert!(sum > 0.9 * 20e6, "{report:?}");
    let jain = sum * sum / (2.0 * shares.iter().map(|share| share * share).sum::<f64>());
    assert!(jain > 0.9, "{report:?}");
}

#[test]
fn sized_flows_finish_and_end_the_run() {
    let mut dumbbell = base(&["cubic", "cubic"]);
    dumbbell.flows[0] = dumbbell.flows[0].clone().bytes(200_000);
    dumbbell.flows[1] = dumbbell.flows[1]
        .clone()
        .bytes(100_000)
        .start(Duration::from_secs(1));
    dumbbell.duration = Duration::from_secs(60);
    let report = dumbbell.run().unwrap();
    assert_eq!(report.flows[0].bytes, 200_000);
    assert_eq!(report.flows[1].bytes, 100_000);
    let finish = report.flows[1].finish_s.unwrap();
    assert!(finish > 1.0 && finish < 2.0, "{report:?}");
    let flow = &report.flows[1];
    let goodput = 8.0 * 100_000.0 / (finish - flow.start_s);
    assert!((flow.goodput_bps - goodput).abs() < 1.0, "{report:?}");
    assert!(report.simulated_s < 2.5, "{report:?}");
}

#[test]
fn random_loss_is_distinguished_from_queue_loss() {
    let mut dumbbell = base(&["cubic"]);
    dumbbell.buffer = Buffer::Unlimited;
    dumbbell.loss = LossModel::Bernoulli(0.01);
    let report = dumbbell.run().unwrap();
    check(&report, 20e6);
    assert_eq!(report.queue.dropped_packets, 0);
    assert!(report.random_losses > 20, "{report:?}");
    let share = report.flows[0].retransmitted_share;
    assert!(share > 0.004 && share < 0.03, "{report:?}");
}

#[test]
fn marks_keep_the_queue_short_without_loss() {
    let mut dumbbell = base(&["cubic"]);
    dumbbell.buffer = Buffer::Bdp(10.0);
    dumbbell.ecn_threshold = Some(EcnThreshold::Bytes(ByteCount::new(40_000)));
    let report = dumbbell.run().unwrap();
    check(&report, 20e6);
    assert!(report.ecn_marks > 0, "{report:?}");
    assert_eq!(report.queue.dropped_packets, 0, "{report:?}");
    assert!(report.queue.mean_bytes < 75_000.0, "{report:?}");
}

#[test]
fn a_seed_repeats_a_run_exactly_and_another_differs() {
    let run = |seed, cipher| {
        let mut dumbbell = base(&["cubic", "newreno"]);
        dumbbell.duration = Duration::from_secs(3);
        dumbbell.loss = LossModel::Bernoulli(0.001);
        dumbbell.seed = seed;
        dumbbell.cipher = cipher;
        dumbbell.run().unwrap()
    };
    assert_eq!(run(1, Cipher::Null), run(1, Cipher::Null));
    assert_eq!(run(1, Cipher::Tls), run(1, Cipher::Tls));
    assert_ne!(run(1, Cipher::Null), run(2, Cipher::Null));
}

#[test]
fn a_longer_round_trip_shows() {
    let mut dumbbell = base(&["cubic"]);
    dumbbell.flows[0] = dumbbell.flows[0]
        .clone()
        .extra_rtt(Duration::from_millis(70));
    dumbbell.duration = Duration::from_secs(2);
    let report = dumbbell.run().unwrap();
    assert!(report.flows[0].srtt_ms_mean > 100.0, "{report:?}");
}

#[test]
fn the_json_has_the_documented_fields() {
    let report = base(&["cubic"]).run().unwrap();
    let json = serde_json::to_value(&report).unwrap();
    let keys = |value: &serde_json::Value| -> Vec<String> {
        value.as_object().unwrap().keys().cloned().collect()
    };
    assert_eq!(keys(&json), ["flows", "queue", "wall_s"]);
    assert_eq!(
        keys(&json["queue"]),
        ["dropped_packets", "max_bytes", "mean_bytes"]
    );
    assert_eq!(
        keys(&json["flows"][0]),
        [
            "bytes",
            "cc",
            "finish_s",
            "goodput_bps",
            "paths",
            "retransmitted_share",
            "srtt_ms_mean"
        ]
    );
    assert!(json["flows"][0]["finish_s"].is_null());
}

#[test]
fn invalid_settings_are_refused_with_the_reason() {
    let refused = |change: fn(&mut Dumbbell)| {
        let mut dumbbell = base(&["cubic"]);
        change(&mut dumbbell);
        dumbbell.run().unwrap_err().to_string()
    };
    assert!(refused(|d| d.flows.clear()).contains("flows"));
    assert!(refused(|d| d.datagram_size = 100).contains("1200"));
    assert!(refused(|d| d.duration = Duration::ZERO).contains("duration"));
    assert!(refused(|d| d.loss = LossModel::Bernoulli(2.0)).contains("loss"));
    let error = FlowSpec::new("warp").unwrap_err();
    assert!(matches!(error, SimError::Controller(_)));
    assert!(error.to_string().contains("cubic"), "{error}");
}
