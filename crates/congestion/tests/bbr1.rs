//! What BBRv1 does that the later versions don't: the cycle of gains, the policer, the preset for
//! live video.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::feed::{ACKS, Feed, MDS};
use swiftwater_congestion::{Bbr1Config, ControllerFactory, Tunable};
use swiftwater_units::{Bandwidth, PacketCount};

#[test]
fn startup_and_drain_pace_with_linuxs_gains() {
    let mut feed = Feed::new("bbr1");
    feed.ack();
    assert!((feed.detail("pacing_gain") - 2.885).abs() < 1e-9);
    assert!((feed.detail("cwnd_gain") - 2.885).abs() < 1e-9);
    feed.inflight = Some(3 * feed.bdp());
    feed.until(&["drain"], 10);
    assert!((feed.detail("pacing_gain") - 1.0 / 2.885).abs() < 1e-9);
    feed.rounds(5);
    assert_eq!(feed.state(), "drain", "until the queue is gone");
    feed.inflight = None;
    feed.ack();
    assert!(feed.state().starts_with("probe_bw"));
    assert!((feed.detail("cwnd_gain") - 2.0).abs() < 1e-9);
}

/// The gains of the cycle, a phase each.
fn phases(feed: &mut Feed, n: usize) -> Vec<f64> {
    let mut gains = Vec::new();
    let mut last = feed.state();
    let mut since = feed.now;
    while gains.len() < n {
        feed.ack();
        // A phase of gain one lasts a round trip; of the others the state has the name.
        let cruised = last == "probe_bw_cruise" && feed.now - since > feed.rtt;
        if feed.state() != last || cruised {
            gains.push(match last {
                "probe_bw_up" => 1.25,
                "probe_bw_down" => 0.75,
                _ => 1.0,
            });
            (last, since) = (feed.state(), feed.now);
        }
    }
    gains
}

#[test]
fn the_cycle_has_one_probe_one_drain_and_six_cruises() {
    let mut feed = Feed::settled("bbr1");
    // As much in flight as the probe asks for, and more than drains at once.
    feed.inflight = Some(2 * feed.bdp());
    feed.until(&["probe_bw_up"], 20);
    let gains = phases(&mut feed, 16);
    let expected = [1.25, 0.75, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0];
    assert_eq!(gains, [expected, expected].concat());
}

#[test]
fn the_cycle_starts_anywhere_but_in_the_drain() {
    let mut starts = BTreeMap::new();
    for seed in 0..200 {
        let mut feed = Feed::with_seed("bbr1", seed);
        feed.settle();
        *starts.entry(feed.state()).or_insert(0) += 1;
    }
    assert_eq!(starts.get("probe_bw_down"), None);
    // One phase of seven probes, six cruise.
    assert!((15..50).contains(&starts["probe_bw_up"]), "{starts:?}");
}

#[test]
fn a_probe_goes_on_until_enough_is_in_flight_or_lost() {
    let mut feed = Feed::settled("bbr1");
    feed.until(&["probe_bw_up"], 20);
    feed.rounds(10);
    assert_eq!(
        feed.state(),
        "probe_bw_up",
        "1.25 times the product isn't in flight"
    );
    feed.lose(1, 1);
    feed.ack();
    assert_ne!(feed.state(), "probe_bw_up");
}

#[test]
fn a_policer_is_found_and_kept_to_for_48_rounds() {
    let mut feed = Feed::settled("bbr1:lt_bw=on");
    feed.inflight = Some(2 * feed.bdp());
    feed.rate = Bandwidth::from_mbps(6);
    // 30 % of what is delivered is lost, round after round.
    let lost = feed.bdp() * 3 / 10 / MDS / u64::from(ACKS) + 1;
    let mut rounds = 0;
    while feed.detail("policed_bps") < 1.0 {
        feed.lossy_round(lost);
        rounds += 1;
        assert!(rounds < 30);
    }
    assert!(
        rounds >= 8,
        "two intervals of four rounds at least: {rounds}"
    );
    let policed = feed.detail("policed_bps") / 6e6;
    assert!((0.9..1.1).contains(&policed), "{policed}");
    assert!(
        (feed.detail("pacing_gain") - 1.0).abs() < 1e-9,
        "no probing"
    );
    feed.rounds(40);
    assert!(feed.detail("policed_bps") > 1.0);
    feed.rounds(12);
    assert!(
        feed.detail("policed_bps") < 1.0,
        "after 48 rounds it is tested again"
    );
}

#[test]
fn losses_below_a_fifth_are_no_policer() {
    let mut feed = Feed::settled("bbr1:lt_bw=on");
    for _ in 0..40 {
        feed.lose(5, 5);
        feed.rounds(1);
    }
    assert!(feed.detail("policed_bps") < 1.0, "a tenth is lost");
    for name in ["bbr1", "bbr1-xquic"] {
        let mut feed = Feed::settled(name);
        for _ in 0..40 {
            feed.lossy_round(3);
        }
        assert!(feed.detail("policed_bps") < 1.0, "{name}: off by default");
    }
}

#[test]
fn marks_are_no_signal_to_v1() {
    let mut feed = Feed::settled("bbr1");
    let mut marked = Feed::settled("bbr1");
    marked.marks = 1.0;
    feed.rounds(20);
    marked.rounds(20);
    assert_eq!(feed.cwnd(), marked.cwnd());
}

#[test]
fn probe_rtt_keeps_four_packets_or_a_share_of_the_product() {
    for (specification, kept) in [
        ("bbr1", 4 * MDS),
        ("bbr1-xquic", 45_000),
        ("bbr1:probe_rtt_gain=0.5", 30_000),
        ("bbr1-xquic:probe_rtt_gain=none", 4 * MDS),
    ] {
        let mut feed = Feed::settled(specification);
        feed.rtt = Duration::from_millis(42);
        feed.inflight = Some(60_000);
        feed.until(&["probe_rtt"], 300);
        feed.rounds(1);
        let cwnd = feed.cwnd();
        // In Linux's setting the estimate expires with the interval, and includes the queue.
        assert!(cwnd.abs_diff(kept) <= kept / 15, "{specification}: {cwnd}");
    }
}

#[test]
fn the_preset_is_what_it_is_said_to_be() {
    let preset = Bbr1Config::xquic();
    assert_eq!(preset.initial_window(), Some(PacketCount::new(32)));
    assert_eq!(preset.probe_rtt_interval, Duration::from_millis(2_500));
    assert!(preset.min_rtt_window > preset.probe_rtt_interval);
    assert_eq!(Bbr1Config::default().initial_window(), None);
    let mut config = Bbr1Config::default();
    config.set("initial_window", "24").unwrap();
    assert_eq!(config.initial_window(), Some(PacketCount::new(24)));
}

#[test]
fn from_the_expected_bandwidth_on_gains_are_small_and_startup_ends_at_once() {
    let specification = "bbr1-xquic:expected_bandwidth=5mbit";
    let mut feed = Feed::new(specification);
    feed.rate = Bandwidth::from_mbps(4);
    feed.rounds(2);
    assert_eq!(feed.state(), "startup");
    feed.rate = Bandwidth::from_mbps(6);
    feed.inflight = Some(3 * feed.bdp());
    feed.ack();
    assert_eq!(feed.state(), "drain");
    feed.inflight = Some(feed.bdp());
    feed.until(&["probe_bw_up"], 20);
    assert!((feed.detail("pacing_gain") - 1.1).abs() < 1e-9);
    feed.inflight = Some(2 * feed.bdp());
    feed.until(&["probe_bw_down"], 20);
    assert!((feed.detail("pacing_gain") - 0.9).abs() < 1e-9);
    // Below it again, the gains are those of Linux.
    feed.rate = Bandwidth::from_mbps(4);
    feed.rounds(12);
    feed.until(&["probe_bw_up"], 20);
    assert!((feed.detail("pacing_gain") - 1.25).abs() < 1e-9);
}

#[test]
fn no_sample_counts_for_more_than_the_maximum_expected() {
    let mut feed = Feed::new("bbr1:max_expected_bandwidth=5mbit");
    feed.rounds(3);
    assert!((feed.max_mbps() - 5.0).abs() < 1e-9);
    feed.rate = Bandwidth::from_mbps(5);
    feed.until(&["probe_bw_up"], 40);
    assert!((feed.detail("pacing_gain") - 1.1).abs() < 1e-9);
}

#[test]
fn values_outside_their_range_are_moved_to_the_bound() {
    let wild = Bbr1Config {
        startup_gain: f64::NAN,
        cwnd_gain: 1e9,
        probe_rtt_gain: Some(-3.0),
        bandwidth_window: 0,
        pacing_margin: 7.0,
        ..Bbr1Config::default()
    };
    let mut feed = Feed::of(&wild, 1);
    feed.rounds(30);
    assert!(feed.cwnd() < 20 * feed.bdp());
    assert!(feed.pacing_mbps() > 0.0);
}

/// Rounds until the pipe counts as full, `most` at most, with `lossy` in place of a round.
fn rounds_to_full(specification: &str, most: u32, lossy: impl Fn(&mut Feed)) -> u32 {
    let mut feed = Feed::new(specification);
    feed.inflight = Some(3 * feed.bdp());
    (0..most)
        .find(|_| {
            lossy(&mut feed);
            feed.detail("full_pipe") > 0.5
        })
        .unwrap_or(most)
}

/// One loss, and then a round without.
fn conserved_round(feed: &mut Feed) {
    feed.lose(1, 1);
    feed.rounds(1);
}

#[test]
fn rounds_of_conserved_packets_are_a_weak_sign_of_a_full_pipe() {
    // Recovery ends and begins again each round, so that packets are always conserved.
    let linux = rounds_to_full("bbr1:recovery_counts=on", 30, conserved_round);
    assert!(linux < 6, "{linux} rounds");
    for name in ["bbr1", "bbr1-xquic"] {
        let rounds = rounds_to_full(name, 30, conserved_round);
        assert!((2 * linux..15).contains(&rounds), "{name}: {rounds} rounds");
    }
}

#[test]
fn many_losses_are_a_sign_of_a_full_pipe_in_any_round() {
    let rounds = |specification: &str| {
        rounds_to_full(specification, 30, |feed| {
            feed.lose(8, 1);
            feed.rounds(1);
        })
    };
    assert!(rounds("bbr1") <= rounds("bbr1:recovery_counts=on") + 1);
}

#[test]
fn one_loss_delays_the_end_of_startup_by_one_round() {
    let without = rounds_to_full("bbr1", 30, |feed| feed.rounds(1));
    let mut feed = Feed::new("bbr1");
    feed.inflight = Some(3 * feed.bdp());
    feed.rounds(1);
    feed.lose(1, 1);
    feed.until(&["drain"], 2 + without);
}

#[test]
fn losses_that_do_not_stop_end_startup_like_none() {
    // One recovery: packets are conserved in its first round only.
    let steady = rounds_to_full("bbr1", 30, |feed| {
        feed.lossy_round(3);
    });
    assert!(steady < 8, "{steady} rounds");
}

#[test]
fn what_recovery_holds_back_of_a_small_source_counts_as_limited_by_it() {
    for (specification, app_limited, marked) in [
        ("bbr1", true, true),
        ("bbr1-xquic", true, true),
        ("bbr1", false, false),
        ("bbr1:recovery_counts=on", true, false),
    ] {
        let mut feed = Feed::settled(specification);
        feed.rounds(5);
        feed.app_limited = app_limited;
        feed.rounds(1);
        feed.inflight = Some(feed.bdp() / 4);
        feed.lose(1, 1);
        // The window is cut to what is in flight: the application can be no less limited.
        feed.app_limited = false;
        feed.ack();
        assert_eq!(feed.cc.uses_app_limited_mark(), marked, "{specification}");
        feed.rounds(3);
        assert!(!feed.cc.uses_app_limited_mark(), "the window is back");
    }
}

#[test]
fn a_source_that_grew_is_no_longer_taken_for_small() {
    let mut feed = Feed::settled("bbr1");
    feed.rounds(5);
    feed.app_limited = true;
    feed.rounds(1);
    feed.app_limited = false;
    feed.inflight = Some(feed.bdp() / 4);
    feed.rounds(4);
    feed.lose(1, 1);
    feed.ack();
    assert!(!feed.cc.uses_app_limited_mark());
}

#[test]
fn a_source_that_grows_in_a_recovery_without_end_is_not_taken_for_small_for_good() {
    let mut feed = Feed::settled("bbr1");
    feed.rounds(5);
    feed.app_limited = true;
    feed.rounds(1);
    feed.app_limited = false;
    feed.inflight = Some(feed.bdp() / 4);
    // As much is lost as arrives, so that the window stays small.
    let lost = feed.bdp() / u64::from(ACKS) / MDS;
    feed.lossy_round(lost);
    assert!(feed.cc.uses_app_limited_mark());
    for _ in 0..4 {
        feed.lossy_round(lost);
    }
    assert!(!feed.cc.uses_app_limited_mark());
}
