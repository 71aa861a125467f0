//! Cubic+: the delay signal, and when and how far a queue is drained, with windows worked out by
//! hand.

#![allow(
    clippy::float_cmp,
    reason = "counts, and values that must not have moved"
)]

use std::time::Duration;

use crate::support::MDS;
use crate::support::script::{BASE_MS, Script, times};
use swiftwater_congestion::{CubicPlusConfig, Tunable};

const START: u64 = 100 * MDS;
/// A period of the scripts: one smoothed round-trip time, and the ACK after it.
const PERIOD: u64 = BASE_MS + 1;
/// The factor of a drain at a long queue: `beta * delta`.
const DRAIN: f64 = 0.7 * 0.7;

fn config(settings: &str) -> CubicPlusConfig {
    let mut config = CubicPlusConfig::paper();
    config.set_all(settings).expect("settings of the test");
    config
}

/// A flow of 70 packets past its first event, with a period that has just begun and such a queue.
fn with_queue(settings: &str, ms: f64) -> Script {
    let mut s = Script::after_first_event(&config(settings));
    s.queue_of(ms);
    s
}

/// The states at the ends of the next `n` periods, and the windows there as multiples of now's.
fn periods(s: &mut Script, n: usize) -> Vec<(&'static str, u64)> {
    let mut seen = Vec::new();
    for _ in 0..n {
        let before = tally(s);
        let mut waited = 0;
        while tally(s) == before {
            s.acks_for(1);
            waited += 1;
            assert!(waited <= 12 * PERIOD, "no decision");
        }
        seen.push((s.state(), s.cwnd()));
    }
    seen
}

fn tally(s: &Script) -> f64 {
    s.detail("drains") + s.detail("drain_skips")
}

#[test]
fn the_standing_signal_is_the_mean_of_the_recent_minimum_over_the_base() {
    let mut s = Script::new(&config("drain=off"));
    let mut expected = 0.0;
    // Half a round trip later the old minimum is discarded; a short burst above it counts for
    // nothing.
    for (ms, sample) in [
        (60, 0.0),
        (60, 20e-3),
        (60, 20e-3),
        (90, 20e-3),
        (70, 30e-3),
        (55, 15e-3),
    ] {
        s.wait(11);
        s.rtt = Duration::from_millis(ms);
        s.ack();
        expected += 0.125 * (sample - expected);
        assert!((s.detail("drtt") - expected).abs() < 1e-9, "at {ms} ms");
    }
}

#[test]
fn the_literal_signal_does_not_see_a_standing_queue() {
    let mut s = Script::new(&config("drain=off,rtt_mode=literal"));
    let mut expected = 0.0;
    for (ms, sample) in [
        (60, 20e-3),
        // The base is out of the window now: only the rise over the recent minimum counts.
        (60, 0.0),
        (75, 15e-3),
        (70, 0.0),
        (85, 15e-3),
    ] {
        s.wait(11);
        s.rtt = Duration::from_millis(ms);
        s.ack();
        expected += 0.125 * (sample - expected);
        assert!((s.detail("drtt") - expected).abs() < 1e-9, "at {ms} ms");
    }
    // A queue that stands still is drained by the one and not by the other.
    let mut standing = with_queue("", 80.0);
    let mut literal = with_queue("rtt_mode=literal", 80.0);
    standing.acks_for(PERIOD);
    literal.acks_for(10 * PERIOD);
    assert_eq!(standing.state(), "drain");
    assert_eq!(literal.cwnd(), times(START, &[0.7]));
}

#[test]
fn a_rtt_is_the_weight_of_a_sample() {
    let mut s = Script::new(&config("drain=off,a_rtt=0.5"));
    s.rtt = Duration::from_millis(60);
    s.wait(25);
    s.ack();
    s.ack();
    assert!((s.detail("drtt") - 15e-3).abs() < 1e-9);
}

#[test]
fn a_base_window_discards_a_path_that_became_longer() {
    for (settings, queue) in [("base_window=2s,drain=off", 0.0), ("drain=off", 30e-3)] {
        let mut s = Script::new(&config(settings));
        s.rtt = Duration::from_millis(BASE_MS + 30);
        s.acks_for(4_000);
        assert!((s.detail("drtt") - queue).abs() < 1e-6, "{settings}");
    }
}

#[test]
fn two_drains_then_a_skip() {
    for (settings, factor) in [("", DRAIN), ("drain=text", 0.7), ("delta=0.9", 0.7 * 0.9)] {
        let mut s = with_queue(settings, 80.0);
        let window = s.cwnd();
        let expected = |drains: usize| times(window, &vec![factor; drains]).max(2 * MDS);
        assert_eq!(
            periods(&mut s, 7),
            [
                ("drain", expected(1)),
                ("drain", expected(2)),
                ("drain-skip", expected(2)),
                ("drain", expected(3)),
                ("drain", expected(4)),
                ("drain-skip", expected(4)),
                ("drain", expected(5)),
            ],
            "{settings}"
        );
        assert_eq!(s.cc.snapshot().ssthresh.unwrap().get(), s.cwnd());
    }
}

#[test]
fn a_drain_is_a_congestion_event_for_the_curve() {
    let mut s = with_queue("", 80.0);
    let window = s.cwnd() as f64;
    s.acks_for(PERIOD);
    assert_eq!(s.state(), "drain");
    assert_eq!(s.detail("cwnd_prior"), window);
    // Below the plateau of the first event: fast convergence.
    assert!((s.detail("w_max") - 0.85 * window).abs() < 1.0);
    // And growth begins a new epoch.
    s.wait(1);
    s.ack_packets(2);
    assert!(s.detail("k") > 0.0);
}

#[test]
fn no_drain_below_the_threshold_and_none_when_switched_off() {
    for (settings, queue) in [("", 59.0), ("k_high=inf", 500.0), ("drain=off", 500.0)] {
        let mut s = with_queue(settings, queue);
        s.acks_for(20 * PERIOD);
        assert_eq!(s.cwnd(), times(START, &[0.7]), "{settings}");
        assert_eq!(tally(&s), 0.0);
    }
}

#[test]
fn a_short_queue_ends_the_row_of_drains() {
    let mut s = with_queue("", 80.0);
    let modes: Vec<_> = periods(&mut s, 1).iter().map(|p| p.0).collect();
    assert_eq!(modes, ["drain"]);
    assert_eq!(s.detail("drains_in_a_row"), 1.0);
    s.queue_of(10.0);
    s.acks_for(2 * PERIOD);
    assert_eq!(s.detail("drains_in_a_row"), 0.0);
    assert_eq!(s.state(), "congestion_avoidance");
    // Two more drains before a skip, not one.
    s.queue_of(80.0);
    let modes: Vec<_> = periods(&mut s, 3).iter().map(|p| p.0).collect();
    assert_eq!(modes, ["drain", "drain", "drain-skip"]);
}

#[test]
fn drain_limit_is_the_length_of_the_row() {
    for (settings, expected) in [
        (
            "drain_limit=1",
            ["drain", "drain-skip", "drain", "drain-skip"],
        ),
        ("drain_limit=0", ["drain-skip"; 4]),
        ("drain_limit=3", ["drain", "drain", "drain", "drain-skip"]),
    ] {
        let mut s = with_queue(settings, 80.0);
        let modes: Vec<_> = periods(&mut s, 4).iter().map(|p| p.0).collect();
        assert_eq!(modes, expected, "{settings}");
    }
}

#[test]
fn a_period_with_a_loss_or_a_mark_is_not_decided() {
    let mut s = with_queue("newbeta=0.95", 80.0);
    for event in 0..6 {
        let window = s.cwnd();
        if event % 2 == 0 {
            s.lose(1);
        } else {
            s.mark();
        }
        let reduced = s.cwnd();
        assert!(reduced < window);
        // The rest of the period, but not a whole one more.
        s.acks_for(PERIOD + 5);
        assert_eq!(s.cwnd(), reduced);
    }
    assert_eq!(tally(&s), 0.0);
    s.acks_for(PERIOD);
    assert_eq!(s.state(), "drain");
}

#[test]
fn a_loss_between_leaves_the_row_as_it_is() {
    let mut s = with_queue("", 80.0);
    periods(&mut s, 2);
    s.lose(1);
    s.acks_for(PERIOD);
    let modes: Vec<_> = periods(&mut s, 1).iter().map(|p| p.0).collect();
    assert_eq!(modes, ["drain-skip"]);
}

#[test]
fn u4_no_decision_before_the_last_reduction_shows() {
    // Periods of a quarter of a round-trip time; a reduction takes a whole one to show.
    let mut s = with_queue("period_rtts=0.25", 80.0);
    periods(&mut s, 1);
    let (window, at) = (s.cwnd(), s.now);
    while s.cwnd() == window {
        s.acks_for(1);
    }
    let gap = (s.now - at).as_millis() as u64;
    assert!((BASE_MS..=BASE_MS + 2).contains(&gap), "{gap} ms");
}

#[test]
fn period_rtts_is_the_time_between_decisions() {
    let mut s = with_queue("period_rtts=5", 80.0);
    periods(&mut s, 1);
    let at = s.now;
    periods(&mut s, 1);
    let gap = (s.now - at).as_millis() as u64;
    assert_eq!(gap, 5 * BASE_MS);
}

#[test]
fn d10_a_drain_in_slow_start_ends_it() {
    let mut s = Script::new(&config(""));
    s.queue_of(80.0);
    s.acks_for(PERIOD);
    assert_eq!((s.cwnd(), s.state()), (times(START, &[DRAIN]), "drain"));
    assert_eq!(s.cc.snapshot().ssthresh.unwrap().get(), s.cwnd());
    s.settle();
    // The first loss is still a plain reduction.
    s.queue_of(0.0);
    let window = s.cwnd();
    s.lose(1);
    assert_eq!(s.cwnd(), times(window, &[0.7]));
    let mut s = Script::new(&config("drain_in_slow_start=off"));
    s.queue_of(80.0);
    s.acks_for(5 * PERIOD);
    assert_eq!((s.cwnd(), s.state()), (START, "slow_start"));
}

#[test]
fn a_flow_that_does_not_use_its_window_drains_nothing() {
    let mut s = with_queue("", 80.0);
    s.app_limited = true;
    s.acks_for(10 * PERIOD);
    assert_eq!(s.cwnd(), times(START, &[0.7]));
    s.app_limited = false;
    s.acks_for(2 * PERIOD);
    assert_eq!(s.state(), "drain");
}

#[test]
fn an_idle_time_is_no_period() {
    let mut s = with_queue("", 80.0);
    s.wait(60_000);
    s.with(|cc, now, env| cc.on_idle_restart(now, Duration::from_mins(1), env));
    s.ack();
    assert_eq!(s.cwnd(), times(START, &[0.7]));
    s.acks_for(PERIOD);
    assert_eq!(s.state(), "drain", "a whole period later");
}

#[test]
fn a_drain_is_not_undone_with_an_episode_before_it() {
    let mut s = with_queue("", 80.0);
    s.lose(1);
    let episode = s.episode;
    s.acks_for(2 * PERIOD);
    assert_eq!(s.state(), "drain");
    let window = s.cwnd();
    s.refute(episode);
    assert_eq!(s.cwnd(), window);
}

#[test]
fn drains_stop_at_the_minimum_window() {
    let mut s = with_queue("", 80.0);
    periods(&mut s, 30);
    assert_eq!(s.cwnd(), 2 * MDS);
}

#[test]
fn the_threshold_can_be_bounded_in_time() {
    for (settings, queue, drained) in [
        ("t_high_min=100ms", 80.0, false),
        ("t_high_min=100ms", 101.0, true),
        ("t_high_max=20ms", 21.0, true),
        ("t_high_max=20ms", 19.0, false),
        ("k_high=inf,t_high_max=20ms", 21.0, true),
    ] {
        let mut s = with_queue(settings, queue);
        s.acks_for(PERIOD);
        assert_eq!(s.state() == "drain", drained, "{settings} at {queue} ms");
    }
}

#[test]
fn the_bdp_rule_leaves_what_fits_the_path() {
    for (queue, factor) in [(10.0, 0.8), (20.0, 2.0 / 3.0), (80.0, DRAIN)] {
        let mut s = with_queue("drain=bdp,k_high=0.1", queue);
        let expected = times(s.cwnd(), &[factor]) as f64;
        s.acks_for(PERIOD);
        assert_eq!(s.state(), "drain");
        assert!(
            (s.cwnd() as f64 / expected - 1.0).abs() < 1e-3,
            "at {queue} ms"
        );
    }
}

#[test]
fn backoff_leaves_out_more_drains_each_time_they_were_in_vain() {
    let row = |s: &mut Script, n| {
        let row: String = periods(s, n)
            .iter()
            .map(|(mode, _)| if *mode == "drain" { 'D' } else { 's' })
            .collect();
        row
    };
    let mut s = with_queue("drain_backoff=4", 80.0);
    assert_eq!(row(&mut s, 19), "DDsDDssDDssssDDssss");
    // A short queue starts it anew.
    s.queue_of(0.0);
    s.acks_for(2 * PERIOD);
    s.queue_of(80.0);
    assert_eq!(row(&mut s, 4), "DDsD");
}

#[test]
fn drains_in_vain_can_be_taken_back() {
    let mut s = with_queue("drain_restore=on", 80.0);
    let (window, plateau) = (s.cwnd(), s.detail("w_max"));
    assert_eq!(
        periods(&mut s, 4),
        [
            ("drain", times(window, &[DRAIN])),
            ("drain", times(window, &[DRAIN, DRAIN])),
            ("drain-skip", window),
            ("drain", times(window, &[DRAIN])),
        ]
    );
    // After a congestion event of its own the flow has no claim to the old window.
    let mut s = with_queue("drain_restore=on", 80.0);
    assert_eq!(s.detail("w_max"), plateau);
    periods(&mut s, 1);
    s.lose(1);
    s.acks_for(PERIOD);
    let window = s.cwnd();
    assert_eq!(
        periods(&mut s, 2),
        [
            ("drain", times(window, &[DRAIN])),
            ("drain-skip", times(window, &[DRAIN])),
        ]
    );
}

#[test]
fn relief_distinguishes_a_queue_of_this_flow_from_that_of_others() {
    // Our own: the whole round-trip time shrinks with the window, and draining goes on until the
    // queue is short, however many drains that takes.
    let mut s = with_queue("drain_relief=0.75", 400.0);
    let mut queue = 400.0;
    let base = BASE_MS as f64;
    let mut drains = 0;
    while queue > 1.5 * base {
        assert_eq!(periods(&mut s, 1)[0].0, "drain", "at {queue} ms");
        queue = (base + queue) * DRAIN - base;
        s.queue_of(queue);
        drains += 1;
    }
    assert_eq!(drains, 3, "more than the two that the paper's rule allows");

    // That of others stays: one drain shows it, is taken back, and is not repeated soon.
    let mut s = with_queue("drain_relief=0.75,drain_restore=on,drain_backoff=4", 80.0);
    let window = s.cwnd();
    let seen = periods(&mut s, 5);
    let modes: Vec<_> = seen.iter().map(|(mode, _)| *mode).collect();
    assert_eq!(
        modes,
        ["drain", "drain-skip", "drain", "drain-skip", "drain-skip"]
    );
    assert_eq!(seen[0].1, times(window, &[DRAIN]));
    assert_eq!(seen[1].1, window);
    assert_eq!(seen[3].1, window);
}

#[test]
fn half_a_relief_is_not_of_this_flow_if_three_quarters_are_asked_for() {
    for (asked, next) in [("0.75", "drain-skip"), ("0.25", "drain")] {
        let mut s = with_queue(&format!("drain_relief={asked}"), 400.0);
        periods(&mut s, 1);
        // Half of what waits is our own.
        let relief = (BASE_MS as f64 + 400.0) * (1.0 - DRAIN) / 2.0;
        s.queue_of(400.0 - relief);
        assert_eq!(periods(&mut s, 1)[0].0, next, "asked for {asked}");
    }
}
