//! The bounds that BBRv3 and BBRv2 set in answer to losses and marks, with the example tests of
//! draft-ietf-ccwg-bbr, appendix A, about them.

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

/// With a long-term bound, set by losses in a probe.
fn bounded(specification: &str) -> Feed {
    let mut feed = probing(specification);
    feed.rounds(1);
    feed.inflight = Some(80_000);
    feed.lose_at(2, 2, Some(80_000));
    feed.ack();
    assert_eq!(feed.state(), "probe_bw_down");
    feed.inflight = None;
    feed
}

// Section: the long-term bound.

/// Draft, A.19.
#[test]
fn losses_in_a_probe_set_the_long_term_bound_and_end_it() {
    let mut feed = probing("bbr3");
    feed.rounds(1);
    feed.inflight = Some(100 * MDS);
    // Two of 100 packets are not yet too many.
    feed.lose_at(2, 2, Some(100 * MDS));
    assert_eq!(feed.state(), "probe_bw_up");
    feed.lose_at(1, 1, Some(100 * MDS));
    assert_eq!(feed.state(), "probe_bw_down");
    // 2 % of the 99 packets before it are 1.98, of which two are gone: it was crossed before.
    assert!((feed.detail("inflight_longterm") - 99.0 * MDS as f64).abs() < 1.0);
}

#[test]
fn the_bound_lies_where_within_a_packet_the_losses_crossed_the_threshold() {
    let mut feed = probing("bbr3");
    feed.rounds(1);
    // 48 packets before it, none lost; with this one it is a bit more than 2 %.
    feed.lose_at(1, 1, Some(49 * MDS));
    let before = 48.0 * MDS as f64;
    let expected = before + 0.02 * before / 0.98;
    let bound = feed.detail("inflight_longterm");
    assert!((bound - expected).abs() < 3.0, "{bound}, not {expected}");
}

#[test]
fn the_bound_never_falls_below_beta_of_the_model() {
    let mut feed = probing("bbr3");
    feed.rounds(1);
    feed.lose_at(5, 5, Some(20 * MDS));
    let bound = feed.detail("inflight_longterm") / feed.bdp() as f64;
    assert!((bound - 0.7).abs() < 0.01, "{bound}");
}

#[test]
fn a_probe_is_answered_once() {
    let mut feed = probing("bbr3");
    feed.rounds(1);
    feed.lose_at(9, 9, Some(80_000));
    let bound = feed.detail("inflight_longterm");
    feed.lose_at(9, 9, Some(30_000));
    assert!((feed.detail("inflight_longterm") - bound).abs() < 1e-9);
}

/// Draft, A.6.
#[test]
fn losses_of_an_app_limited_probe_end_it_but_set_no_bound() {
    let mut feed = probing("bbr3");
    feed.rounds(1);
    feed.app_limited = true;
    feed.lose_at(9, 9, Some(80_000));
    assert_eq!(feed.state(), "probe_bw_down");
    assert_eq!(feed.try_detail("inflight_longterm"), None);
    // That was the answer to this probe; losses of other packets of it get none.
    feed.app_limited = false;
    feed.lose_at(9, 9, Some(80_000));
    assert_eq!(feed.try_detail("inflight_longterm"), None);
}

#[test]
fn cruise_leaves_fifteen_percent_of_the_long_term_bound() {
    let mut feed = bounded("bbr3");
    let bound = feed.detail("inflight_longterm");
    feed.inflight = Some(40_000);
    feed.until(&["probe_bw_cruise"], 20);
    feed.rounds(2);
    let kept = feed.cwnd() as f64 / bound;
    assert!((kept - 0.85).abs() < 0.01, "{kept}");
}

#[test]
fn down_waits_for_headroom() {
    let mut feed = bounded("bbr3:headroom=0.5");
    // The queue is gone, but half of the bound is more than half full.
    feed.inflight = Some(50_000);
    feed.rounds(5);
    assert_eq!(feed.state(), "probe_bw_down");
    feed.inflight = Some(35_000);
    feed.ack();
    assert_eq!(feed.state(), "probe_bw_cruise");
}

#[test]
fn after_a_probe_that_was_too_high_the_next_is_precautionary() {
    let mut feed = bounded("bbr3");
    feed.until(&["probe_bw_up"], 150);
    let bound = feed.detail("inflight_longterm") as u64;
    feed.inflight = Some(bound - MDS);
    feed.ack();
    assert_eq!(feed.state(), "probe_bw_up");
    feed.inflight = Some(bound);
    feed.ack();
    assert_eq!(
        feed.state(),
        "probe_bw_down",
        "it stops at the level that lost"
    );
    // It was safe: the next probe follows at once, and stays at the bound.
    feed.rounds(2);
    assert!(
        ["probe_bw_refill", "probe_bw_up"].contains(&feed.state()),
        "{}",
        feed.state()
    );
    feed.until(&["probe_bw_up"], 2);
    feed.rounds(3);
    assert_eq!(feed.state(), "probe_bw_up");
    assert!(
        feed.detail("inflight_longterm") as u64 > bound,
        "and raises it"
    );
}

/// Draft, A.14.
#[test]
fn a_filled_bound_grows_by_1_2_4_packets_a_round() {
    let mut feed = bounded("bbr3");
    feed.until(&["probe_bw_up"], 150);
    let bound = feed.detail("inflight_longterm") as u64;
    feed.inflight = Some(bound);
    feed.ack();
    feed.until(&["probe_bw_up"], 10);
    // Less in flight than the bound, so that only what is acknowledged raises it. With the whole
    // window acknowledged each round, a round brings one step.
    feed.inflight = Some(bound / 2);
    feed.rate = Bandwidth::from_bps(feed.cwnd() * 8 * 25);
    let mut grown = Vec::new();
    let mut before = feed.detail("inflight_longterm");
    for _ in 0..5 {
        feed.rounds(1);
        let now = feed.detail("inflight_longterm");
        grown.push(((now - before) / MDS as f64).round() as u64);
        before = now;
    }
    let ratio = grown[4] as f64 / grown[2].max(1) as f64;
    // Four, less what the window itself has grown meanwhile.
    assert!(grown[0] <= 2 && (2.2..=4.5).contains(&ratio), "{grown:?}");
}

#[test]
fn a_level_that_was_safe_raises_the_bound_in_any_state() {
    let mut feed = bounded("bbr3");
    feed.inflight = Some(90_000);
    feed.rounds(3);
    assert!((feed.detail("inflight_longterm") - 90_000.0).abs() < 1.0);
}

// Section: the short-term bounds.

#[test]
fn losses_while_cruising_bound_the_short_term() {
    let mut feed = Feed::settled("bbr3");
    feed.until(&["probe_bw_cruise"], 20);
    feed.rate = mbps(4);
    feed.rounds(2);
    feed.lose(1, 1);
    feed.rounds(2);
    let bound = feed.detail("bw_shortterm_bps") / 12e6;
    assert!(
        (bound - 0.7).abs() < 0.01,
        "not below beta at once: {bound}"
    );
    for _ in 0..3 {
        feed.lose(1, 1);
        feed.rounds(2);
    }
    let bound = feed.detail("bw_shortterm_bps") / 4e6;
    assert!(
        (bound - 1.0).abs() < 0.01,
        "not below what is delivered: {bound}"
    );
    assert!((feed.detail("bandwidth_bps") - 4e6).abs() < 1e3);
    feed.until(&["probe_bw_refill"], 150);
    assert_eq!(
        feed.try_detail("bw_shortterm_bps"),
        None,
        "a probe discards them"
    );
}

#[test]
fn losses_while_accelerating_leave_the_short_term_alone() {
    let mut feed = Feed::new("bbr3");
    feed.rounds(2);
    feed.lossy_round(1);
    assert_eq!(feed.state(), "startup");
    assert_eq!(feed.try_detail("inflight_shortterm"), None);
    let mut feed = probing("bbr3");
    feed.inflight = Some(1_000 * MDS);
    feed.lossy_round(1);
    assert_eq!(feed.state(), "probe_bw_up");
    assert_eq!(feed.try_detail("inflight_shortterm"), None);
}

// Section: marks.

#[test]
fn a_mark_counts_as_a_loss_on_a_long_path() {
    let mut feed = Feed::settled("bbr3");
    feed.until(&["probe_bw_cruise"], 20);
    feed.rate = mbps(4);
    feed.rounds(2);
    feed.marks = 0.2;
    feed.rounds(3);
    assert!(feed.detail("bw_shortterm_bps") < 12e6);
    let mut feed = probing("bbr3");
    feed.marks = 0.2;
    feed.rounds(2);
    assert_eq!(feed.state(), "probe_bw_down");
    assert!(feed.try_detail("inflight_longterm").is_some());
}

#[test]
fn marks_are_answered_by_their_share_on_a_short_path() {
    for name in ["bbr2", "bbr3"] {
        let mut feed = Feed::new(name);
        feed.rtt = Duration::from_millis(4);
        feed.rate = mbps(120);
        feed.settle();
        feed.until(&["probe_bw_cruise"], 20);
        // Long unmarked: the share is small.
        feed.rounds(40);
        let share = feed.detail("ecn_alpha");
        assert!(share < 0.2, "{share}");
        feed.marks = 0.1;
        feed.rounds(3);
        assert_eq!(feed.state(), "probe_bw_cruise");
        let bound = feed.detail("inflight_shortterm");
        assert_eq!(
            feed.try_detail("bw_shortterm_bps"),
            None,
            "marks bound the volume only"
        );
        let alpha = feed.detail("ecn_alpha");
        feed.rounds(1);
        let cut = feed.detail("inflight_shortterm") / bound;
        assert!(
            (cut - (1.0 - alpha / 3.0)).abs() < 0.02,
            "{name}: {cut} at {alpha}"
        );
    }
}

#[test]
fn two_rounds_of_marks_end_startup_on_a_short_path() {
    let mut feed = Feed::new("bbr2");
    feed.rtt = Duration::from_millis(4);
    feed.app_limited = true;
    feed.rounds(3);
    feed.marks = 0.8;
    feed.inflight = Some(20 * feed.bdp());
    feed.rounds(3);
    assert_eq!(feed.state(), "drain");
}
