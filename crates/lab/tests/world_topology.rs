//! Chains, parking lots, ways back and access links.

use crate::support;

use support::{assert_near, dumbbell, flow, link, mbps, millis, run, secs, setup};
use swiftwater_lab::scenario::App;
use swiftwater_link::{Buffer, LinkConfig, Trace, TraceSample};

#[test]
fn the_narrower_link_of_a_chain_limits() {
    for (first, second) in [(50, 20), (20, 50)] {
        let links = vec![
            link("a", mbps(first), millis(5)),
            link("b", mbps(second), millis(10)),
        ];
        let mut setup = setup(8, links, vec![flow("flow", App::Bulk, 2)]);
        setup.warmup = secs(2);
        let measured = run(&setup);
        assert!(measured.value("flow.goodput_mbps") > 18.0);
        assert!(measured.value("flow.goodput_mbps") < 20.0);
        let (narrow, wide) = if first < second {
            ("a", "b")
        } else {
            ("b", "a")
        };
        let value = |link: &str, measure| measured.value(&format!("{link}.{measure}"));
        assert!(value(narrow, "utilisation") > 0.95);
        assert_near(
            value(wide, "utilisation"),
            value(narrow, "utilisation") * 0.4,
            0.02,
        );
        assert!(value(narrow, "queue_mean_bytes") > 10.0 * value(wide, "queue_mean_bytes"));
        // Propagation, and the transmission of a full packet at both and on access links.
        assert_near(measured.value("flow.rtt_min_ms"), 31.0, 0.02);
    }
}

#[test]
fn over_two_bottlenecks_a_flow_gets_less_than_over_one() {
    let links = vec![
        link("a", mbps(20), millis(5)),
        link("b", mbps(20), millis(5)),
    ];
    let long = flow("long", App::Bulk, 2);
    let mut left = flow("left", App::Bulk, 1);
    left.start = millis(3);
    let mut right = flow("right", App::Bulk, 2);
    (right.enter, right.start) = (1, millis(7));
    let mut setup = setup(20, links, vec![long, left, right]);
    setup.warmup = secs(4);
    let measured = run(&setup);
    let goodput = |name| measured.value(&format!("{name}.goodput_mbps"));
    assert!(goodput("long") < goodput("left") * 0.8);
    assert!(goodput("long") < goodput("right") * 0.8);
    for link in ["a", "b"] {
        assert!(measured.value(&format!("{link}.utilisation")) > 0.9);
    }
    // Each short flow uses one link only.
    assert!(measured.value("left.rtt_min_ms") < 12.0);
    assert!(measured.value("right.rtt_min_ms") < 12.0);
    assert!(measured.value("long.rtt_min_ms") > 20.0);
}

#[test]
fn traffic_on_the_way_back_delays_acknowledgements() {
    let mut there = flow("there", App::Bulk, 1);
    // Keeps its own queue short.
    there.controller = swiftwater_congestion::by_name("bbr1").unwrap();
    let alone = dumbbell(10, vec![there]);
    let mut both = alone.clone();
    // As much room for the way back.
    both.links[0].backward = both.links[0].forward.clone();
    let mut back = flow("back", App::Bulk, 1);
    (back.enter, back.exit) = (1, 0);
    both.flows.push(back);
    let (alone, both) = (run(&alone), run(&both));
    let rtt = |measured: &support::Measured| measured.value("there.rtt_mean_ms");
    assert!(
        rtt(&both) > rtt(&alone) + 5.0,
        "{} {}",
        rtt(&both),
        rtt(&alone)
    );
    // The reverse direction has its own capacity, of which acknowledgements use little.
    assert!(both.value("back.goodput_mbps") > 15.0);
    assert!(both.value("there.goodput_mbps") > 12.0);
}

#[test]
fn a_slow_access_link_moves_the_queue_to_the_host() {
    let mut slow = flow("flow", App::Bulk, 1);
    slow.access_rate = mbps(10);
    let mut setup = dumbbell(10, vec![slow]);
    setup.warmup = secs(2);
    let slow = run(&setup);
    assert!(slow.value("link.queue_max_bytes") <= 3_000.0);
    assert_near(slow.value("flow.goodput_mbps"), 9.6, 0.02);
    // The host's own queue has no limit, so that nothing is lost and the round trip grows.
    assert_near(slow.value("flow.lost_share") + 1.0, 1.0, 0.0);
    assert!(slow.value("flow.rtt_mean_ms") > 100.0);
    setup.flows[0].access_rate = mbps(1_000);
    let fast = run(&setup);
    assert!(fast.value("link.queue_mean_bytes") > 10_000.0);
    assert!(fast.value("flow.rtt_mean_ms") < 62.0);
}

#[test]
fn windows_leave_room_for_a_deep_buffer() {
    // 20 bandwidth-delay products: congestion control alone fills them.
    let mut setup = dumbbell(15, vec![flow("flow", App::Bulk, 1)]);
    setup.links[0].forward.buffer = Buffer::Bdp(20.0);
    let measured = run(&setup);
    assert!(measured.value("link.queue_max_bytes") > 19.9 * 75_000.0);
    assert!(measured.value("link.dropped_share") > 0.0);
}

#[test]
fn extra_round_trip_time_lies_on_the_access_links() {
    let mut far = flow("far", App::Bulk, 1);
    far.extra_rtt = millis(40);
    let measured = run(&dumbbell(2, vec![far, flow("near", App::Bulk, 1)]));
    let extra = measured.value("far.rtt_min_ms") - measured.value("near.rtt_min_ms");
    assert_near(extra, 40.0, 0.05);
}

#[test]
fn the_capacity_of_a_trace_is_that_of_the_measured_time() {
    let sample = |at, rate| TraceSample {
        at: secs(at),
        rate: Some(mbps(rate)),
        rtt: None,
        loss: None,
    };
    // One second of 10 and two of 40 Mbit/s, again and again: 30 in the mean.
    let samples = [sample(0, 10), sample(1, 40)];
    let trace = Trace::from_samples(&samples, Some(secs(2))).unwrap();
    let app = App::ConstantRate { rate: mbps(8) };
    let mut setup = dumbbell(4, vec![flow("flow", app, 1)]);
    setup.links[0].forward = LinkConfig::default()
        .rate(trace)
        .delay(millis(1))
        .trace_offset(millis(500));
    setup.links[0].backward.delay = millis(1);
    setup.rtt = millis(2);
    // From 2.5 s on: half a second of 40, one of 10, half a second of 40 Mbit/s.
    setup.warmup = secs(2);
    let measured = run(&setup);
    let headers = measured.value("link.utilisation") * 25.0 / measured.value("flow.goodput_mbps");
    assert!((1.03..1.06).contains(&headers), "{headers}");
    assert_near(measured.value("flow.goodput_mbps"), 8.0, 0.01);
}

#[test]
fn thousands_of_hosts_fit() {
    let mut many = flow("many", App::Transfer { bytes: 3_000 }, 1);
    many.count = 2_000;
    many.stagger = millis(3);
    let measured = run(&dumbbell(30, vec![many]));
    assert_near(measured.value("many.completed"), 2_000.0, 0.0);
    assert!(measured.outcome.simulated_s < 10.0);
}
