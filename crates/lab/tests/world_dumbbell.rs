//! One bottleneck: the same as the simulator's own dumbbell, and the same again for the same seed.

use std::time::Duration;

use crate::support::{Measured, assert_near, dumbbell, flow, mbps, millis, run, secs};
use swiftwater_lab::scenario::{App, Setup};
use swiftwater_lab::world;
use swiftwater_link::LossModel;
use swiftwater_sim::{Dumbbell, FlowSpec};

/// Two bulk flows of different controllers, some loss, random starts.
fn two_flows(seconds: u64) -> Setup {
    let mut first = flow("first", App::Bulk, 1);
    first.start_jitter = millis(10);
    let mut second = flow("second", App::Bulk, 1);
    second.start_jitter = millis(10);
    second.start = millis(500);
    second.extra_rtt = millis(20);
    second.controller = swiftwater_congestion::by_name("newreno").unwrap();
    let mut setup = dumbbell(seconds, vec![first, second]);
    setup.links[0].forward.loss = LossModel::Bernoulli(0.000_5);
    setup
}

#[test]
fn the_lab_runs_what_the_dumbbell_runs() {
    let setup = two_flows(8);
    let lab = Measured::new(&setup, 7);
    let dumbbell = Dumbbell {
        flows: vec![
            FlowSpec::new("cubic").unwrap(),
            FlowSpec::new("newreno")
                .unwrap()
                .start(millis(500))
                .extra_rtt(millis(20)),
        ],
        rate: mbps(20).into(),
        loss: LossModel::Bernoulli(0.000_5),
        duration: secs(8),
        seed: 7,
        ..Dumbbell::default()
    };
    let report = dumbbell.run().unwrap();
    for (name, flow) in ["first", "second"].iter().zip(&report.flows) {
        let value = |measure| lab.value(&format!("{name}.{measure}"));
        // The very same packets: only rounding differs.
        assert_near(value("goodput_mbps") * 1e6, flow.goodput_bps, 1e-9);
        assert_near(value("retransmitted_share"), flow.retransmitted_share, 1e-9);
        // Sampled at other times.
        assert_near(value("rtt_mean_ms"), flow.srtt_ms_mean, 0.01);
    }
    assert_near(
        lab.value("link.queue_mean_bytes"),
        report.queue.mean_bytes,
        1e-9,
    );
    assert_near(
        lab.value("link.queue_max_bytes"),
        report.queue.max_bytes as f64,
        0.0,
    );
    assert_near(
        lab.value("link.utilisation"),
        report.utilisation.unwrap(),
        1e-6,
    );
    assert_near(lab.outcome.simulated_s, 8.0, 0.0);
}

#[test]
fn percentiles_of_the_round_trip_time_lie_among_the_samples() {
    // A queue in the last of ten seconds only: the mean stays low, the 95th percentile does not.
    let mut late = flow("late", App::Bulk, 1);
    late.start = secs(9);
    let steady = App::ConstantRate { rate: mbps(5) };
    let measured = run(&dumbbell(10, vec![flow("steady", steady, 1), late]));
    let value = |measure: &str| measured.value(&format!("steady.{measure}"));
    let (min, mean, p95) = (
        value("rtt_min_ms"),
        value("rtt_mean_ms"),
        value("rtt_p95_ms"),
    );
    // 30 ms on the way and at most as much in the queue.
    assert!((30.0..31.0).contains(&min), "{min}");
    assert!(
        min <= mean && mean < p95 && p95 < 65.0,
        "{min} {mean} {p95}"
    );
}

#[test]
fn a_seed_repeats_a_run_and_another_differs() {
    let setup = two_flows(2);
    let outcome = |seed| world::simulate(&setup, seed).unwrap();
    assert_eq!(outcome(1), outcome(1));
    assert_ne!(outcome(1).measures, outcome(2).measures);
}

#[test]
fn recording_changes_nothing() {
    let mut setup = two_flows(3);
    let without = world::simulate(&setup, 1).unwrap();
    assert_eq!(without.series.flows, []);
    setup.record = Some(millis(7));
    let with = world::simulate(&setup, 1).unwrap();
    assert_eq!(with.measures, without.measures);
    assert_eq!(
        (with.tasks, with.simulated_s),
        (without.tasks, without.simulated_s)
    );
}

#[test]
fn the_recorder_sees_flows_and_links() {
    let mut setup = two_flows(3);
    setup.record = Some(millis(50));
    let with = run(&setup);
    let series = &with.outcome.series;
    assert_eq!(series.links.len(), 1);
    assert_eq!(series.links[0].points.len(), 60);
    let names: Vec<_> = series
        .flows
        .iter()
        .map(|flow| flow.group.as_str())
        .collect();
    assert_eq!(names, ["first", "second"]);
    for flow in &series.flows {
        let last = flow.points.last().unwrap();
        assert_near(last.t_s, 3.0, 0.0);
        assert!(
            last.cwnd_bytes > 10_000 && last.delivered_bytes > 500_000,
            "{last:?}"
        );
        assert!(
            last.smoothed_rtt_ms >= 30.0 && last.pacing_mbps.is_some(),
            "{last:?}"
        );
        assert!(!last.state.is_empty(), "{last:?}");
        assert!(flow.points.is_sorted_by_key(|point| point.delivered_bytes));
    }
    // The second one starts half a second later.
    assert!(series.flows[1].points[0].t_s > 0.5);
    // The goodputs of the points make up that of the measure.
    let flow = &series.flows[0];
    let sum: f64 = flow
        .points
        .iter()
        .map(|point| point.goodput_mbps * 0.05)
        .sum();
    assert_near(sum / 3.0, with.value("first.goodput_mbps"), 0.01);
}

#[test]
fn the_warm_up_is_left_out() {
    let setup = |warmup| {
        let mut setup = dumbbell(4, vec![flow("flow", App::Bulk, 1)]);
        setup.links[0].forward.delay = millis(100);
        setup.warmup = warmup;
        setup.bin = millis(500);
        setup
    };
    let whole = run(&setup(Duration::ZERO));
    let warm = run(&setup(secs(2)));
    // The link idles during the handshake and while the window grows.
    assert!(whole.value("flow.goodput_mbps") < 19.0);
    assert!(warm.value("flow.goodput_mbps") > whole.value("flow.goodput_mbps") + 0.5);
    assert!(warm.value("flow.bin_min_mbps") > 0.0);
    assert!(whole.value("flow.bin_min_mbps") < warm.value("flow.bin_min_mbps") / 2.0);
    assert!(warm.value("flow.bin_cv") < whole.value("flow.bin_cv"));
    // Four seconds are four seconds: what warm-up and measured time carry adds up.
    let mut first = setup(Duration::ZERO);
    first.duration = secs(2);
    let first = run(&first).value("goodput_mbps") * 2.0;
    assert_near(
        first + warm.value("goodput_mbps") * 2.0,
        whole.value("goodput_mbps") * 4.0,
        1e-9,
    );
}

#[test]
fn a_stop_ends_a_flow_and_the_run() {
    let mut bulk = flow("bulk", App::Bulk, 1);
    bulk.stop = Some(secs(2));
    let measured = run(&dumbbell(60, vec![bulk]));
    assert_near(measured.outcome.simulated_s, 2.0, 0.01);
    assert!(measured.value("bulk.goodput_mbps") > 15.0);
}

#[test]
fn shares_and_fairness() {
    let mut many = flow("many", App::Bulk, 1);
    many.count = 3;
    many.start_jitter = millis(100);
    let one = flow("one", App::Bulk, 1);
    let mut setup = dumbbell(20, vec![many, one]);
    setup.warmup = secs(5);
    let measured = run(&setup);
    let shares = measured.value("many.share") + measured.value("one.share");
    assert_near(shares, 1.0, 1e-9);
    assert!(measured.value("many.jain") > 0.8 && measured.value("many.jain") <= 1.0);
    assert!(measured.value("jain") > 0.8 && measured.value("jain") <= 1.0);
    assert!(measured.value("convergence_s") < 15.0);
    let sum = measured.value("many.goodput_mbps") + measured.value("one.goodput_mbps");
    assert_near(measured.value("goodput_mbps"), sum, 0.01);
}

#[test]
fn nonsense_is_refused() {
    let refused = |change: fn(&mut Setup)| {
        let mut setup = dumbbell(1, vec![flow("flow", App::Bulk, 1)]);
        change(&mut setup);
        world::simulate(&setup, 1).unwrap_err().to_string()
    };
    assert!(refused(|setup| setup.flows[0].exit = 2).contains("exit"));
    assert!(refused(|setup| setup.flows[0].exit = 0).contains("exit"));
    assert!(refused(|setup| setup.flows.clear()).contains("flows"));
    assert!(refused(|setup| setup.flows[0].count = 0).contains("number"));
    assert!(refused(|setup| setup.warmup = secs(1)).contains("duration"));
    assert!(refused(|setup| setup.bin = Duration::ZERO).contains("interval"));
    assert!(refused(|setup| setup.links[0].forward.rate = mbps(0).into()).contains("rate"));
}
