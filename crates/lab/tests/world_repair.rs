//! Measures of the repair of lost data.

use crate::support::{Measured, assert_near, dumbbell, flow, mbps, run, secs};
use swiftwater_lab::scenario::{App, Setup};
use swiftwater_link::LossModel;

/// A stream of 4 Mbit/s over a link of 20 Mbit/s that loses a share of packets.
fn lossy_stream(seconds: u64, loss: f64) -> Setup {
    let app = App::ConstantRate { rate: mbps(4) };
    let mut setup = dumbbell(seconds, vec![flow("flow", app, 1)]);
    setup.flows[0].controller = swiftwater_congestion::by_name("bbr1").expect("it is known");
    setup.links[0].forward.loss = LossModel::Bernoulli(loss);
    setup.warmup = secs(1);
    setup
}

#[test]
fn without_loss_nothing_is_repaired() {
    let measured = run(&lossy_stream(5, 0.0));
    for none in [
        "recovery_latency_ms",
        "recovery_latency_p95_ms",
        "recovery_latency_max_ms",
        "rdr",
        "rdr_by_time",
        "detection_time_ms",
        "f_over_t",
        "replicas_per_loss",
        "replicas_useful_share",
        "spurious_share",
    ] {
        assert_eq!(measured.get(&format!("flow.{none}")), None, "{none}");
    }
    for zero in ["redundancy_cost", "redundancy_level_mean", "budget_max_10s"] {
        assert_eq!(measured.get(&format!("flow.{zero}")), Some(0.0), "{zero}");
    }
}

#[test]
fn plain_retransmission_has_the_latency_of_the_model() {
    let measured = run(&lossy_stream(31, 0.1));
    let value = |name: &str| measured.value(&format!("flow.{name}"));
    // A lost retransmission is found after as long as the loss before it: F(0) = T / (1 - R) at
    // most; T is above a round trip of 30 ms. Of lost data, a tenth is lost again.
    let (detection, latency) = (value("detection_time_ms"), value("recovery_latency_ms"));
    assert!((30.0..60.0).contains(&detection), "{detection}");
    assert_near(value("f_over_t"), latency / detection, 1e-9);
    assert!(
        (0.7..1.5).contains(&value("f_over_t")),
        "{latency} {detection}"
    );
    assert_near(value("rdr"), 0.1, 0.25);
    assert!(value("rdr_by_time") <= value("rdr"));
    assert!(latency <= value("recovery_latency_p95_ms"));
    assert!(value("recovery_latency_p95_ms") <= 1.001 * value("recovery_latency_max_ms"));
    for none in [
        "redundancy_cost",
        "replicas_per_loss",
        "redundancy_level_mean",
        "budget_max_10s",
    ] {
        assert!(value(none).abs() < f64::EPSILON, "{none}");
    }
    assert_eq!(measured.get("flow.replicas_useful_share"), None);
}

#[test]
fn replicas_are_counted_against_what_they_repair() {
    let mut setup = lossy_stream(31, 0.1);
    let plain = run(&setup);
    setup.flows[0].recovery =
        swiftwater_policies::by_name("autorec-paper:alpha=0ms,beta=0.2,gamma=1").expect("known");
    setup.record = Some(secs(1));
    let measured = run(&setup);
    let value = |name: &str| measured.value(&format!("flow.{name}"));
    // Two replicas for each loss at a loss rate of a tenth.
    let level = value("redundancy_level_mean");
    assert!((1.0..=3.0).contains(&level), "{level}");
    assert_near(value("replicas_per_loss"), level, 0.25);
    assert_near(
        value("redundancy_cost"),
        0.1 * value("replicas_per_loss"),
        0.25,
    );
    assert!(value("budget_max_10s") >= value("redundancy_cost"));
    assert!(value("budget_max_10s") < 2.0 * value("redundancy_cost"));
    // One of ten lost data ranges needs a replica, and most that need one get it in time.
    let useful = value("replicas_useful_share");
    assert!((0.02..0.1).contains(&useful), "{useful}");
    assert!(value("rdr") < 0.5 * plain.value("flow.rdr"));
    assert!(value("recovery_latency_ms") < 0.7 * plain.value("flow.recovery_latency_ms"));
    let points = &measured.outcome.series.flows[0].points;
    let last = points.last().expect("recorded");
    assert!(last.redundancy_level.is_some_and(|level| level <= 10.0));
    assert!(last.loss_rate.is_some_and(|rate| rate < 0.5));
    assert!(last.detection_time_ms.is_some_and(|time| time > 30.0));
}

#[test]
fn the_warm_up_is_left_out() {
    let mut setup = lossy_stream(6, 0.2);
    let whole = run(&setup);
    // Nothing is lost once the warm-up is over: the trace turns good at 3 s.
    setup.links[0].forward.loss = LossModel::None;
    let text = "t_ms,rate_kbps,rtt_ms,loss\n0,,,0.2\n3000,,,0\n100000,,,0\n";
    let trace = swiftwater_link::Trace::parse_csv(text).expect("a trace");
    setup.links[0].forward.loss_trace = Some(trace);
    let early = run(&setup);
    setup.warmup = secs(4);
    let late = run(&setup);
    assert!(whole.value("flow.rdr") > 0.0 && early.value("flow.rdr") > 0.0);
    assert_eq!(late.get("flow.rdr"), None);
    assert_eq!(late.get("flow.recovery_latency_max_ms"), None);
}

#[test]
fn the_same_seed_gives_the_same_measures() {
    let setup = lossy_stream(4, 0.05);
    let [first, second] = [1, 1].map(|seed| Measured::new(&setup, seed).outcome);
    assert_eq!(first.measures, second.measures);
    let other = Measured::new(&setup, 2).outcome;
    assert_ne!(first.measures, other.measures);
}
