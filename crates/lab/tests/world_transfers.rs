//! Transfers: how long they take, and how they arrive.

use crate::support::{Measured, assert_near, flow, link, mbps, millis, run, secs, setup};
use swiftwater_lab::scenario::{App, Setup, SizeDistribution};
use swiftwater_link::LossModel;

/// A lone transfer over a link of 100 Mbit/s with a round trip of 100 ms, unpaced.
fn lone(bytes: u64) -> Setup {
    let mut lone = flow("lone", App::Transfer { bytes }, 1);
    lone.access_rate = mbps(10_000);
    lone.transport.pacing = Some(false);
    lone.transport.initial_window = Some(10);
    setup(10, vec![link("link", mbps(100), millis(50))], vec![lone])
}

#[test]
fn a_lone_transfer_takes_the_handshake_and_the_rounds_of_slow_start() {
    // Milliseconds: a full packet of 1500 bytes at 100 Mbit/s.
    let packet = 0.12;
    // Handshake: the client's datagram of 1200 bytes and the server's of about as much cross the
    // link, then the client has the keys.
    let handshake = 100.0 + 2.0 * packet;
    // Rounds of at most 10, 20 and 40 packets start a round trip apart. The next one starts when the
    // first two packets of the one before are acknowledged, and keeps the link busy to its end.
    for (packets, rounds, last) in [(8, 0.0, 8.0), (25, 1.0, 15.0), (60, 2.0, 30.0)] {
        let measured = run(&lone(packets * 1_430));
        let begin = handshake + rounds * (100.0 + 2.0 * packet);
        let expected = begin + last * packet + 50.0;
        let fct = measured.value("lone.fct_mean_ms");
        assert!(
            (fct - expected).abs() < 2.0 * packet,
            "{packets} packets took {fct} ms, expected {expected} ms"
        );
        // The run ends with it.
        assert_near(measured.outcome.simulated_s * 1e3, fct, 0.1);
    }
}

#[test]
fn a_round_trip_more_takes_a_longer_handshake_and_way() {
    let near = run(&lone(5_000)).value("lone.fct_mean_ms");
    let mut far = lone(5_000);
    far.flows[0].extra_rtt = millis(40);
    let far = run(&far).value("lone.fct_mean_ms");
    // A round trip and a half.
    assert!((far - near - 60.0).abs() < 0.1, "{near} {far}");
}

#[test]
fn what_ends_within_the_warm_up_is_not_measured() {
    let mut early = lone(5_000);
    early.warmup = secs(2);
    let measured = run(&early);
    for measure in [
        "lone.goodput_mbps",
        "lone.retransmitted_share",
        "lone.lost_share",
        "lone.fct_mean_ms",
        "link.dropped_share",
    ] {
        assert_eq!(measured.get(measure), None, "{measure}");
    }
    for measure in [
        "lone.started",
        "lone.completed",
        "link.utilisation",
        "link.queue_max_bytes",
        "goodput_mbps",
    ] {
        assert_eq!(measured.get(measure), Some(0.0), "{measure}");
    }
    assert!(measured.outcome.samples.is_empty());
    // Nor is the rest of the run waited for.
    assert!(measured.outcome.simulated_s < 3.0);
}

fn poisson(per_second: f64, limit: Option<u64>) -> Setup {
    let sizes = SizeDistribution::new(vec![(2_000.0, 0.5), (50_000.0, 0.9), (200_000.0, 1.0)]);
    let app = App::Poisson {
        sizes: sizes.unwrap(),
        per_second,
        limit,
        receivers: 3,
    };
    let mut group = flow("web", app, 1);
    group.count = 5;
    setup(20, vec![link("link", mbps(50), millis(10))], vec![group])
}

#[test]
fn transfers_arrive_at_their_rate_and_have_their_sizes() {
    let measured = run(&poisson(40.0, None));
    let started = measured.value("web.started");
    // Poisson: 800 with a standard deviation of 28.
    assert!((started - 800.0).abs() < 4.0 * 28.3, "{started}");
    let completed = measured.value("web.completed");
    assert!(completed <= started && completed > started - 20.0);
    let samples = &measured.outcome.samples;
    assert_near(samples.len() as f64, started, 0.0);
    assert!(samples.is_sorted_by(|a, b| a.start_s <= b.start_s));
    // Mean size by the distribution: 1/2 * 2000 + 2/5 * 26000 + 1/10 * 125000.
    let mean = samples
        .iter()
        .map(|each| each.size_bytes as f64)
        .sum::<f64>()
        / started;
    assert_near(mean, 23_900.0, 0.15);
    // Waits: exponential, so that the standard deviation is about the mean.
    let starts: Vec<_> = samples.iter().map(|each| each.start_s).collect();
    let waits: Vec<_> = starts.windows(2).map(|pair| pair[1] - pair[0]).collect();
    let mean = waits.iter().sum::<f64>() / waits.len() as f64;
    let squares = waits.iter().map(|wait| (wait - mean).powi(2)).sum::<f64>();
    assert_near((squares / waits.len() as f64).sqrt(), mean, 0.15);
    assert!(measured.value("web.slowdown_mean") > 1.0);
    assert!(measured.value("web.fct_p50_ms") <= measured.value("web.fct_p95_ms"));
    assert!(measured.value("web.fct_p95_ms") <= measured.value("web.fct_p99_ms"));
    // A handshake and half a round trip at least.
    assert!(measured.value("web.fct_p50_ms") > 30.0);
    assert_eq!(measured.get("web.fct_large_mean_ms"), None);
}

#[test]
fn a_limit_ends_the_run_when_all_are_complete() {
    let measured = run(&poisson(40.0, Some(100)));
    assert_near(measured.value("web.started"), 100.0, 0.0);
    assert_near(measured.value("web.completed"), 100.0, 0.0);
    let finish = |sample: &swiftwater_lab::record::Sample| {
        sample.start_s + sample.duration_ms.unwrap() / 1e3
    };
    let last = measured
        .outcome
        .samples
        .iter()
        .map(finish)
        .fold(0.0, f64::max);
    assert!((0.0..=0.01).contains(&(measured.outcome.simulated_s - last)));
    let bytes: u64 = measured
        .outcome
        .samples
        .iter()
        .map(|each| each.size_bytes)
        .sum();
    let first = 0.0;
    let goodput = bytes as f64 * 8.0 / (last - first) / 1e6;
    assert_near(measured.value("web.goodput_mbps"), goodput, 1e-3);
}

#[test]
fn arrivals_are_the_same_for_each_controller() {
    let mut setup = poisson(30.0, Some(50));
    let plan = |setup: &Setup| -> Vec<_> {
        let samples = run(setup).outcome.samples.into_iter();
        samples
            .map(|each| (each.start_s, each.size_bytes))
            .collect()
    };
    let cubic = plan(&setup);
    setup.flows[0].controller = swiftwater_congestion::by_name("newreno").unwrap();
    assert_eq!(plan(&setup), cubic);
}

#[test]
fn transfers_before_the_end_of_the_warm_up_are_left_out() {
    let whole = run(&poisson(40.0, None));
    let mut setup = poisson(40.0, None);
    setup.warmup = secs(10);
    let warm = run(&setup);
    let late = whole
        .outcome
        .samples
        .iter()
        .filter(|each| each.start_s >= 10.0);
    let late: Vec<_> = late.cloned().collect();
    assert_eq!(warm.outcome.samples, late);
    assert_eq!(warm.value("web.started") as usize, late.len());
}

#[test]
fn heavy_loss_delays_transfers_and_damages_none() {
    let mut setup = poisson(20.0, Some(200));
    setup.duration = secs(120);
    let clean = run(&setup);
    for way in 0..2 {
        let link = &mut setup.links[0];
        let way = if way == 0 {
            &mut link.forward
        } else {
            &mut link.backward
        };
        way.loss = LossModel::Bernoulli(0.1);
    }
    let lossy = run(&setup);
    assert_near(lossy.value("web.completed"), 200.0, 0.0);
    assert!(lossy.value("web.fct_mean_ms") > 2.0 * clean.value("web.fct_mean_ms"));
    assert_near(lossy.value("link.random_lost_share"), 0.1, 0.1);
    assert!(lossy.value("web.lost_share") > 0.08);
}

#[test]
fn a_transfer_that_is_cut_off_counts_as_started_only() {
    let mut setup = lone(50_000_000);
    setup.duration = secs(2);
    let measured: Measured = run(&setup);
    assert_near(measured.value("lone.started"), 1.0, 0.0);
    assert_near(measured.value("lone.completed") + 1.0, 1.0, 0.0);
    assert_eq!(measured.get("lone.fct_mean_ms"), None);
    assert_eq!(measured.outcome.samples[0].duration_ms, None);
}

#[test]
fn a_group_of_transfers_is_recorded_as_one_flow() {
    let mut setup = poisson(40.0, Some(100));
    let without = run(&setup);
    setup.record = Some(millis(10));
    let with = run(&setup);
    assert_eq!(with.outcome.measures, without.outcome.measures);
    assert_eq!(with.outcome.samples, without.outcome.samples);
    let flows = &with.outcome.series.flows;
    assert_eq!(flows.len(), 1);
    let last = flows[0].points.last().unwrap();
    // Everything acknowledged, including closed connections.
    let bytes: u64 = with
        .outcome
        .samples
        .iter()
        .map(|each| each.size_bytes)
        .sum();
    assert!(last.delivered_bytes > bytes * 9 / 10, "{last:?}");
    assert!(flows[0].points.iter().any(|point| point.inflight_bytes > 0));
}

#[test]
fn more_transfers_than_can_be_planned_are_refused() {
    let refusal = |per_second, limit| {
        let error = swiftwater_lab::world::simulate(&poisson(per_second, limit), 1);
        error.unwrap_err().to_string()
    };
    assert!(refusal(1e8, None).contains("ten million"));
    assert!(refusal(1e8, Some(1 << 40)).contains("ten million"));
    assert!(refusal(0.0, None).contains("rate of transfers"));
}
