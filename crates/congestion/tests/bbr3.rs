//! BBRv3: the example tests of draft-ietf-ccwg-bbr, appendix A, that a script can play, and the
//! rules about its bounds. BBRv2 is here where it differs.

use std::time::Duration;

use crate::feed::{Feed, MDS};
use swiftwater_units::Bandwidth;

fn mbps(mbps: u64) -> Bandwidth {
    Bandwidth::from_mbps(mbps)
}

/// In `probe_bw_up` for the first time.
fn probing(specification: &str) -> Feed {
    let mut feed = Feed::settled(specification);
    feed.until(&["probe_bw_up"], 150);
    feed
}

// Section: Startup and Drain.

#[test]
fn each_version_starts_with_its_gains() {
    for (name, pacing, cwnd, drain) in [
        ("bbr3", 2.77, 2.0, 0.5),
        ("bbr2", 2.885, 2.885, 1.0 / 2.885),
    ] {
        let mut feed = Feed::new(name);
        feed.ack();
        assert!((feed.detail("pacing_gain") - pacing).abs() < 1e-9);
        assert!((feed.detail("cwnd_gain") - cwnd).abs() < 1e-9);
        feed.inflight = Some(4 * feed.bdp());
        feed.until(&["drain"], 10);
        assert!((feed.detail("pacing_gain") - drain).abs() < 1e-9);
    }
}

/// Draft, A.2.
#[test]
fn losses_end_startup_even_when_app_limited() {
    for (name, detections) in [("bbr3", 6), ("bbr2", 8)] {
        let mut feed = Feed::new(name);
        feed.app_limited = true;
        feed.rounds(3);
        feed.inflight = Some(2 * feed.bdp());
        // One too few in a round.
        for _ in 0..detections - 1 {
            feed.lose(1, 1);
            feed.ack();
        }
        feed.rounds(2);
        assert_eq!(feed.state(), "startup", "{name}");
        feed.lossy_round(1);
        feed.ack();
        assert_eq!(feed.state(), "drain", "{name}");
        assert!(
            feed.detail("inflight_longterm") >= feed.bdp() as f64,
            "{name}"
        );
    }
}

#[test]
fn a_burst_of_losses_does_not_end_startup() {
    let mut feed = Feed::new("bbr3");
    feed.app_limited = true;
    feed.rounds(3);
    feed.lose(20, 1);
    feed.rounds(3);
    assert_eq!(feed.state(), "startup", "many packets, but one run");
}

#[test]
fn few_losses_do_not_end_startup_however_scattered() {
    let mut feed = Feed::new("bbr3");
    feed.app_limited = true;
    feed.rounds(3);
    feed.inflight = Some(1_000 * MDS);
    feed.lossy_round(1);
    feed.rounds(2);
    assert_eq!(feed.state(), "startup", "11 of 1000 packets");
}

/// Draft, A.3 and A.4.
#[test]
fn drain_ends_when_the_queue_is_gone_or_after_three_rounds() {
    let draining = |name: &str| {
        let mut feed = Feed::new(name);
        feed.inflight = Some(3 * feed.bdp());
        feed.until(&["drain"], 10);
        feed
    };
    for name in ["bbr2", "bbr3"] {
        let mut feed = draining(name);
        feed.inflight = Some(feed.bdp());
        feed.ack();
        assert!(feed.state().starts_with("probe_bw"), "{name}");
    }
    let mut feed = draining("bbr3");
    feed.rounds(3);
    assert_eq!(feed.state(), "drain");
    feed.rounds(2);
    assert_eq!(feed.state(), "probe_bw_down");
    let mut feed = draining("bbr2");
    feed.rounds(20);
    assert_eq!(feed.state(), "drain", "v2 waits for the queue");
}

// Section: the cycle.

#[test]
fn the_cycle_goes_down_cruise_refill_up() {
    for (name, down) in [("bbr3", 0.9), ("bbr2", 0.75)] {
        let mut feed = Feed::settled(name);
        feed.until(&["probe_bw_cruise"], 2);
        feed.until(&["probe_bw_refill"], 70);
        assert!((feed.detail("pacing_gain") - 1.0).abs() < 1e-9);
        feed.rounds(1);
        feed.until(&["probe_bw_up"], 1);
        assert!((feed.detail("pacing_gain") - 1.25).abs() < 1e-9);
        feed.inflight = Some(2 * feed.bdp());
        feed.cwnd_limited = false;
        feed.until(&["probe_bw_down"], 5);
        assert!((feed.detail("pacing_gain") - down).abs() < 1e-9);
        feed.rounds(2);
        assert_eq!(feed.state(), "probe_bw_down");
        feed.inflight = None;
        feed.until(&["probe_bw_cruise"], 1);
    }
}

/// Draft, A.7.
#[test]
fn down_lasts_until_the_queue_is_gone() {
    let mut feed = Feed::new("bbr3");
    feed.inflight = Some(feed.bdp() * 3 / 2);
    feed.until(&["probe_bw_down"], 20);
    feed.rounds(10);
    assert_eq!(feed.state(), "probe_bw_down");
    feed.inflight = None;
    feed.ack();
    assert_eq!(feed.state(), "probe_bw_cruise");
}

/// Draft, A.8.
#[test]
fn down_that_never_drains_leads_to_the_next_probe() {
    let mut feed = Feed::new("bbr3");
    feed.inflight = Some(feed.bdp() * 3 / 2);
    feed.until(&["probe_bw_down"], 20);
    let start = feed.now;
    while feed.state() == "probe_bw_down" {
        feed.ack();
    }
    assert_eq!(feed.state(), "probe_bw_refill");
    let waited = feed.now - start;
    // Two to three seconds, or 50 rounds of 40 ms for a product of 50 packets.
    assert!(waited > Duration::from_millis(1_900), "{waited:?}");
    assert!(waited < Duration::from_millis(3_100), "{waited:?}");
}

#[test]
fn the_wait_for_a_probe_is_random_between_two_and_three_seconds() {
    let mut waits = Vec::new();
    for seed in 0..20 {
        let mut feed = Feed::with_seed("bbr3", seed);
        // Many packets per round trip, few round trips: time decides.
        feed.rate = mbps(200);
        feed.rtt = Duration::from_millis(80);
        feed.settle();
        let start = feed.now;
        feed.until(&["probe_bw_refill"], 60);
        waits.push(feed.now - start);
    }
    waits.sort();
    assert!(waits[0] >= Duration::from_secs(2), "{waits:?}");
    assert!(waits[19] <= Duration::from_millis(3_010), "{waits:?}");
    assert!(
        waits[19].abs_diff(waits[0]) > Duration::from_millis(300),
        "{waits:?}"
    );
}

#[test]
fn a_small_flow_probes_as_often_as_reno_would_lose() {
    let mut feed = Feed::new("bbr3");
    feed.rate = Bandwidth::from_kbps(2_400);
    feed.settle();
    let start = feed.now;
    feed.until(&["probe_bw_refill"], 60);
    let rounds = (feed.now - start).as_secs_f64() / feed.rtt.as_secs_f64();
    // The product is 10 packets.
    assert!((8.0..12.5).contains(&rounds), "{rounds}");
}

/// Draft, A.5.
#[test]
fn a_plateau_ends_the_probe_of_v3_and_a_queue_that_of_v2() {
    let mut feed = probing("bbr3");
    feed.cwnd_limited = false;
    feed.rounds(2);
    assert_eq!(feed.state(), "probe_bw_up");
    feed.until(&["probe_bw_down"], 2);
    let mut feed = probing("bbr2");
    feed.rounds(8);
    assert_eq!(feed.state(), "probe_bw_up", "too little is in flight");
    feed.inflight = Some(2 * feed.bdp());
    feed.rounds(2);
    assert_eq!(feed.state(), "probe_bw_down");
}

#[test]
fn bandwidth_that_grows_keeps_the_probe_going() {
    let mut feed = probing("bbr3");
    for _ in 0..6 {
        feed.rate = feed.rate.scaled(1.3);
        feed.rounds(1);
        assert_eq!(feed.state(), "probe_bw_up");
    }
}

/// Draft, A.20.
#[test]
fn an_app_limited_refill_leaves_the_estimate() {
    let mut feed = Feed::settled("bbr3");
    feed.until(&["probe_bw_refill"], 150);
    let before = feed.max_mbps();
    feed.app_limited = true;
    feed.rate = mbps(1);
    feed.until(&["probe_bw_up"], 3);
    assert!((feed.max_mbps() - before).abs() < 1e-9);
}

/// Draft, A.9.
#[test]
fn probe_rtt_halves_what_is_in_flight_and_returns_to_cruise() {
    let mut feed = Feed::settled("bbr3");
    feed.rtt = Duration::from_millis(41);
    let start = feed.now;
    feed.until(&["probe_rtt"], 150);
    let waited = (feed.now - start).as_secs_f64();
    assert!((4.5..5.1).contains(&waited), "{waited}");
    assert!((feed.detail("cwnd_gain") - 0.5).abs() < 1e-9);
    feed.rounds(1);
    assert!(feed.cwnd().abs_diff(30_000) < 1_000, "{}", feed.cwnd());
    feed.inflight = Some(29_000);
    let start = feed.now;
    while feed.state() == "probe_rtt" {
        feed.ack();
    }
    let stayed = feed.now - start;
    assert!(stayed >= Duration::from_millis(200), "{stayed:?}");
    assert!(stayed < Duration::from_millis(260), "{stayed:?}");
    assert_eq!(feed.state(), "probe_bw_cruise");
}
