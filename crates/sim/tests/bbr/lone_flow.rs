//! A flow that always has data and the link for itself.

use std::time::Duration;

use swiftwater_link::{Buffer, EcnThreshold, LossModel, Rate, Trace, TraceSample};
use swiftwater_sim::FlowSpec;
use swiftwater_units::{Bandwidth, Instant};

use super::{RTT, at, lone_flow, share};

/// Share of the link used from second 1 on, and the mean queue there, in bandwidth-delay products.
fn steady(specification: &str, mbps: u64, secs: u64) -> (f64, f64) {
    let (dumbbell, log) = lone_flow(specification, mbps, secs);
    let mut run = dumbbell.build().unwrap();
    run.advance_to(at(1_000));
    let bottleneck = run.bottleneck();
    run.network().reset_queue_stats(bottleneck);
    run.advance_to(run.end());
    let queue = run.network().queue_stats(bottleneck).mean_bytes;
    let bdp = Bandwidth::from_mbps(mbps).bytes_in(RTT) as f64;
    (share(&log, mbps, at(1_000), run.end()), queue / bdp)
}

#[test]
fn a_lone_flow_fills_the_link_with_a_short_queue() {
    for name in ["bbr1", "bbr1-xquic", "bbr2", "bbr3"] {
        for mbps in [10, 50] {
            let (used, queue) = steady(name, mbps, 12);
            assert!(used > 0.95, "{name} uses {used:.3} of {mbps} Mbit/s");
            assert!(queue < 0.3, "{name} queues {queue:.2} at {mbps} Mbit/s");
        }
    }
}

#[test]
fn probe_rtt_comes_as_often_as_configured() {
    let check = |specification: &str, interval: f64| {
        let (dumbbell, log) = lone_flow(specification, 10, (interval * 2.6) as u64 + 1);
        dumbbell.run().unwrap();
        let visits = log.visits("probe_rtt");
        assert!(visits.len() >= 2, "{specification}: {visits:?}");
        for pair in visits.windows(2) {
            // From one entry to the next: the stay, then the interval.
            let gap = (pair[1] - pair[0]).as_secs_f64();
            let stay = 0.2..0.2 + 8.0 * RTT.as_secs_f64();
            assert!(stay.contains(&(gap - interval)), "{specification}: {gap}");
        }
    };
    check("bbr1", 10.0);
    check("bbr1-xquic", 2.5);
    check("bbr1:probe_rtt_interval=4s", 4.0);
    check("bbr3", 5.0);
    // BBRv2 treats an equal round-trip time as a confirmation, and measures one when its queue
    // drains.
    let (dumbbell, log) = lone_flow("bbr2", 10, 18);
    dumbbell.run().unwrap();
    let visits = log.visits("probe_rtt");
    let gaps = visits.windows(2).map(|pair| pair[1] - pair[0]);
    assert!(!visits.is_empty() && gaps.min().is_none_or(|gap| gap > Duration::from_secs(5)));
}

#[test]
fn probe_rtt_drains_to_what_is_configured() {
    let least = |specification: &str| {
        let (dumbbell, log) = lone_flow(specification, 20, 12);
        dumbbell.run().unwrap();
        let entries = log.entries();
        let probing = entries.iter().filter(|entry| entry.state == "probe_rtt");
        probing.map(|entry| entry.inflight).min().unwrap()
    };
    let bdp = Bandwidth::from_mbps(20).bytes_in(RTT) as f64;
    assert!(least("bbr1") <= 4 * 1_472);
    let shallow = least("bbr1-xquic") as f64 / bdp;
    assert!((0.6..0.8).contains(&shallow), "{shallow}");
    let half = least("bbr3") as f64 / bdp;
    assert!((0.4..0.6).contains(&half), "{half}");
}

/// Goodput under `loss` over that without loss, 15 s at 20 Mbit/s.
fn kept(name: &str, loss: f64) -> f64 {
    let goodput = |loss| {
        let (mut dumbbell, _) = lone_flow(name, 20, 15);
        dumbbell.loss = loss;
        dumbbell.run().unwrap().flows[0].goodput_bps
    };
    goodput(LossModel::Bernoulli(loss)) / goodput(LossModel::None)
}

#[test]
fn one_percent_of_random_loss_costs_little() {
    for name in ["bbr1", "bbr1-xquic", "bbr3"] {
        let kept = kept(name, 0.01);
        assert!(kept >= 0.85, "{name} keeps {kept:.3}");
    }
}

#[test]
fn five_percent_of_random_loss_make_v3_yield_and_v1_not() {
    assert!(kept("bbr1", 0.05) > 0.85);
    assert!(kept("bbr3", 0.05) < 0.5);
}

/// The least that is delivered in 100 ms during a stay in `ProbeRTT`, as a share of the link.
fn worst_dip(specification: &str, mbps: u64) -> f64 {
    let (dumbbell, log) = lone_flow(specification, mbps, 24);
    dumbbell.run().unwrap();
    let bin = Duration::from_millis(100);
    let visits = log.visits("probe_rtt");
    assert!(!visits.is_empty());
    let bins = visits
        .iter()
        .flat_map(|&visit| (0..4_u32).map(move |n| visit + bin * n));
    let inside = bins.filter(|&from| from + bin <= Instant::ZERO + dumbbell.duration);
    inside
        .map(|from| share(&log, mbps, from, from + bin))
        .fold(f64::INFINITY, f64::min)
}

#[test]
fn the_live_video_preset_dips_less_at_the_same_cost() {
    let (linux, _) = steady("bbr1", 20, 24);
    let (preset, _) = steady("bbr1-xquic", 20, 24);
    assert!(preset >= linux - 0.005, "{preset:.4} against {linux:.4}");
    let dip = worst_dip("bbr1-xquic", 20);
    assert!(
        dip >= 0.6,
        "{dip:.3} of the link is left in the worst 100 ms"
    );
    assert!(worst_dip("bbr1", 20) < 0.4, "what the preset is for");
}

#[test]
fn an_expected_bandwidth_makes_probing_gentle_and_a_maximum_caps() {
    let lost = |specification: &str| {
        let (mut dumbbell, log) = lone_flow(specification, 20, 12);
        dumbbell.buffer = Buffer::Bdp(0.2);
        let report = dumbbell.run().unwrap();
        let used = share(&log, 20, at(1_000), at(12_000));
        (report.queue.dropped_packets, used)
    };
    let (plain, _) = lost("bbr1-xquic");
    let (gentle, used) = lost("bbr1-xquic:expected_bandwidth=8mbit");
    assert!(gentle * 2 < plain, "{gentle} of {plain} losses");
    assert!(used > 0.9, "{used:.3}");
    let (few, capped) = lost("bbr1-xquic:max_expected_bandwidth=10mbit");
    assert!(few * 10 < plain, "{few} of {plain} losses");
    assert!((0.45..0.53).contains(&capped), "{capped:.3}");
}

#[test]
fn marks_keep_the_queue_short_where_they_are_answered() {
    for (name, rtt_ms, threshold) in [
        ("bbr2", 4, 10_000_u64),
        ("bbr3", 4, 10_000),
        ("bbr3", 30, 40_000),
    ] {
        let (mut dumbbell, _) = lone_flow(name, 50, 8);
        dumbbell.rtt = Duration::from_millis(rtt_ms);
        dumbbell.buffer = Buffer::Bytes(500_000.into());
        dumbbell.ecn_threshold = Some(EcnThreshold::Bytes(threshold.into()));
        let report = dumbbell.run().unwrap();
        assert!(report.ecn_marks > 100, "{name}: {report:?}");
        assert!(
            report.queue.mean_bytes < threshold as f64,
            "{name}: {report:?}"
        );
        assert!(report.utilisation.unwrap() > 0.93, "{name}: {report:?}");
    }
}

#[test]
fn equal_flows_share_about_equally() {
    for name in ["bbr1", "bbr1-xquic", "bbr2", "bbr3"] {
        let (mut dumbbell, _) = lone_flow(name, 20, 25);
        dumbbell.flows = vec![FlowSpec::new(name).unwrap(); 2];
        let report = dumbbell.run().unwrap();
        let rates: Vec<_> = report.flows.iter().map(|flow| flow.goodput_bps).collect();
        let sum = rates[0] + rates[1];
        let jain = sum * sum / (2.0 * (rates[0] * rates[0] + rates[1] * rates[1]));
        assert!(jain > 0.9, "{name}: {rates:?}");
        assert!(sum > 0.9 * 20e6, "{name}: {rates:?}");
    }
}

/// A link whose rate changes once.
fn changing(from_mbps: u64, to_mbps: u64, when: Duration) -> Rate {
    let sample = |at, mbps| TraceSample {
        at,
        rate: Some(Bandwidth::from_mbps(mbps)),
        ..TraceSample::default()
    };
    let samples = [sample(Duration::ZERO, from_mbps), sample(when, to_mbps)];
    Rate::Trace(Trace::from_samples(&samples, Some(Duration::from_secs(60))).unwrap())
}

/// Draft, A.14.
#[test]
fn ten_times_the_bandwidth_is_found() {
    for name in ["bbr1", "bbr2", "bbr3"] {
        let (mut dumbbell, log) = lone_flow(name, 10, 12);
        dumbbell.rate = changing(5, 50, Duration::from_secs(4));
        dumbbell.buffer = Buffer::Unlimited;
        dumbbell.run().unwrap();
        let before = share(&log, 5, at(2_000), at(4_000));
        assert!(before > 0.9, "{name}: {before:.3} of 5 Mbit/s");
        let after = share(&log, 50, at(10_500), at(12_000));
        assert!(after > 0.9, "{name}: {after:.3} of 50 Mbit/s");
    }
}

/// Draft, A.15.
#[test]
fn a_tenth_of_the_bandwidth_is_adapted_to() {
    for name in ["bbr1", "bbr2", "bbr3"] {
        let (mut dumbbell, log) = lone_flow(name, 10, 20);
        dumbbell.rate = changing(50, 5, Duration::from_secs(4));
        dumbbell.buffer = Buffer::Bytes(200_000.into());
        dumbbell.run().unwrap();
        let last = log.entries().pop().unwrap();
        let estimate = last.detail("max_bandwidth_bps") / 5e6;
        assert!((0.8..1.3).contains(&estimate), "{name}: {estimate:.2}");
        let used = share(&log, 5, at(12_000), at(20_000));
        assert!(used > 0.9, "{name}: {used:.3}");
    }
}

/// Draft, A.13.
#[test]
fn a_path_shorter_than_a_packet_is_kept_busy_by_four() {
    for name in ["bbr1", "bbr2", "bbr3"] {
        let (mut dumbbell, log) = lone_flow(name, 1, 8);
        dumbbell.rtt = Duration::from_millis(4);
        dumbbell.buffer = Buffer::Bytes(50_000.into());
        dumbbell.run().unwrap();
        let used = share(&log, 1, at(2_000), at(8_000));
        assert!(used > 0.9, "{name}: {used:.3}");
        let late = log
            .entries()
            .into_iter()
            .filter(|entry| entry.now > at(2_000));
        assert!(late.map(|entry| entry.cwnd).min().unwrap() >= 4 * 1_472);
    }
}
