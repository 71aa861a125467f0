//! Cubic+: what a loss event does in each branch of the decision, with windows worked out by hand.

#![allow(
    clippy::float_cmp,
    reason = "counts, and values that must not have moved"
)]

use std::time::Duration;

use crate::support::MDS;
use crate::support::script::{BASE_MS, Script, times};
use swiftwater_congestion::{CubicPlusConfig, DrainRule, LossFilter, Tunable};

const START: u64 = 100 * MDS;

fn config(settings: &str) -> CubicPlusConfig {
    let mut config = CubicPlusConfig {
        drain: DrainRule::Off,
        ..CubicPlusConfig::paper()
    };
    config.set_all(settings).expect("settings of the test");
    config
}

fn after_first_event(settings: &str) -> Script {
    Script::after_first_event(&config(settings))
}

/// Rounds with one packet in `one_in` lost, without a new event, until the loss ratio has settled.
fn settle_losses(s: &mut Script, one_in: u64) {
    for _ in 0..160 {
        s.round_of(10 * one_in);
        s.lose_more(10);
    }
    s.round_of(0);
    let ratio = s.detail("loss_ratio");
    assert!((ratio * one_in as f64 - 1.0).abs() < 1e-3, "{ratio}");
}

#[test]
fn the_preset_has_the_papers_values_as_this_project_reads_them() {
    let listed: Vec<_> = CubicPlusConfig::paper()
        .parameters()
        .into_iter()
        .map(|p| format!("{}={}", p.name, p.value))
        .collect();
    for expected in [
        "rtt_mode=standing",
        "filter=text",
        "drain=algo",
        "a_rtt=0.125",
        "a_loss=0.125",
        "base_window=none",
        "k_low=0.25",
        "t_low_min=2ms",
        "k_high=1.5",
        "l_ratio=0.02",
        "newbeta=0.7",
        "shallow_n=3",
        "delta=0.7",
        "period_rtts=1",
        "drain_limit=2",
        "drain_in_slow_start=on",
        "beta=0.7",
        "c=0.4",
        "prr=off",
        "t_high_min=0ms",
        "t_high_max=none",
        "hold_growth=off",
        "drain_backoff=1",
        "drain_restore=off",
        "full_queue=off",
    ] {
        assert!(
            listed.iter().any(|l| l == expected),
            "{expected} {listed:?}"
        );
    }
}

#[test]
fn a_threshold_can_be_infinite_and_nothing_out_of_range_is_taken() {
    let config = config("k_high=inf,k_low=inf,base_window=10s,t_high_max=100ms");
    assert!(config.k_high.is_infinite());
    assert_eq!(config.base_window, Some(Duration::from_secs(10)));
    for wrong in [
        "k_high=-1",
        "l_ratio=1.5",
        "shallow_n=0",
        "a_rtt=0",
        "filter=maybe",
        "rtt_mode=Literal",
        "drain=on",
    ] {
        let mut config = CubicPlusConfig::paper();
        assert!(config.set_all(wrong).is_err(), "{wrong}");
    }
    let wild = CubicPlusConfig {
        a_rtt: f64::NAN,
        k_high: -3.0,
        shallow_n: 0,
        base_window: Some(Duration::ZERO),
        ..CubicPlusConfig::paper()
    };
    let mut s = Script::after_first_event(&wild);
    s.queue_of(5.0);
    s.lose(1);
    assert!(s.cwnd() >= 2 * MDS && s.detail("drtt").is_finite());
}

#[test]
fn u14_the_first_event_is_a_plain_cubic_decrease() {
    let mut s = Script::new(&config(""));
    assert_eq!((s.cwnd(), s.state()), (START, "slow_start"));
    s.lose(1);
    assert_eq!(s.cwnd(), times(START, &[0.7]));
    assert_eq!(s.cc.snapshot().ssthresh.unwrap().get(), s.cwnd());
    assert_eq!(s.state(), "recovery");
    // The same with no queue at all and the next event: it is taken for random.
    s.settle();
    s.lose(1);
    assert_eq!((s.cwnd(), s.state()), (times(START, &[0.7]), "random-hold"));
}

#[test]
fn u14_a_mark_is_a_first_event_too_and_a_refuted_loss_is_none() {
    let mut s = Script::new(&config(""));
    s.mark();
    s.settle();
    s.lose(1);
    assert_eq!(s.cwnd(), times(START, &[0.7]), "the loss is held");
    let mut s = Script::new(&config(""));
    s.lose(1);
    s.refute(1);
    assert_eq!((s.cwnd(), s.state()), (START, "slow_start"));
    s.lose(1);
    assert_eq!(s.cwnd(), times(START, &[0.7]), "slow start must end");
}

#[test]
fn branch_1_a_loss_at_a_long_queue_reduces_by_newbeta() {
    let mut s = after_first_event("newbeta=0.6");
    // T_high is 60 ms.
    s.queue_of(61.0);
    s.lose(1);
    assert_eq!(s.cwnd(), times(START, &[0.7, 0.6]));
    assert_eq!(s.cc.snapshot().ssthresh.unwrap().get(), s.cwnd());
    // Below it the same loss is random.
    let mut s = after_first_event("newbeta=0.6");
    s.queue_of(59.0);
    s.lose(1);
    assert_eq!((s.cwnd(), s.state()), (times(START, &[0.7]), "random-hold"));
}

#[test]
fn branch_1_ends_the_count_of_losses_in_a_shallow_buffer() {
    let mut s = after_first_event("");
    settle_losses(&mut s, 20);
    for held in 1..=2 {
        s.lose(1);
        assert_eq!(s.detail("shallow_count"), f64::from(held));
        s.settle();
    }
    s.queue_of(61.0);
    s.lose(1);
    assert_eq!(s.detail("shallow_count"), 0.0);
    assert_eq!(s.cwnd(), times(START, &[0.7, 0.7]));
}

#[test]
fn u7_a_held_loss_keeps_window_threshold_plateau_and_epoch() {
    let mut s = after_first_event("");
    // Some growth, so that there is an epoch.
    for _ in 0..400 {
        s.wait(1);
        s.ack_packets(2);
    }
    let before = s.cc.snapshot();
    let (w_max, k, t) = (s.detail("w_max"), s.detail("k"), s.detail("t"));
    assert!(before.cwnd.get() > times(START, &[0.7]));
    s.lose(1);
    s.lose_more(1);
    let after = s.cc.snapshot();
    assert_eq!((after.cwnd, after.ssthresh), (before.cwnd, before.ssthresh));
    assert_eq!(after.state, "random-hold");
    assert_eq!((s.detail("w_max"), s.detail("k")), (w_max, k));
    // No growth for what was sent before.
    for _ in 0..BASE_MS - 1 {
        s.wait(1);
        s.ack_packets(2);
        assert_eq!(s.cc.cwnd(), before.cwnd);
        assert_eq!(s.state(), "random-hold");
    }
    assert_eq!(s.detail("t"), t, "the time of recovery doesn't count");
    s.wait(1);
    s.ack_packets(2);
    assert_eq!(s.state(), "congestion_avoidance");
    assert_eq!(s.detail("k"), k, "the same epoch");
    assert!(s.detail("t") > t && s.detail("t") - t < 0.002);
    s.wait(400);
    s.ack_packets(20);
    assert!(s.cc.cwnd() > before.cwnd, "and growth goes on");
}

#[test]
fn growth_can_go_on_after_a_held_loss_but_not_after_a_reduction() {
    let grown = |settings: &str, queue: f64| {
        let mut s = after_first_event(settings);
        s.queue_of(queue);
        s.wait(2_000);
        s.ack_packets(2);
        s.lose(1);
        let (window, state) = (s.cwnd(), s.state());
        s.wait(BASE_MS / 2);
        s.ack_packets(40);
        assert_eq!(s.state(), state, "the episode is still open");
        s.cwnd() > window
    };
    assert!(!grown("", 0.0));
    assert!(grown("hold_growth=on", 0.0));
    assert!(!grown("hold_growth=on", 61.0), "a reduction is one");
    // Nor after a mark, within the episode or later.
    for settle in [false, true] {
        let mut s = after_first_event("hold_growth=on");
        s.lose(1);
        if settle {
            s.settle();
        }
        s.mark();
        let window = s.cwnd();
        s.wait(BASE_MS / 2);
        s.ack_packets(40);
        assert_eq!(s.cwnd(), window);
    }
}

#[test]
fn branch_3_of_three_losses_in_a_shallow_buffer_one_reduces() {
    let mut s = after_first_event("");
    settle_losses(&mut s, 20);
    let modes = ["periodic-hold", "periodic-hold", "periodic-decrease"];
    let mut expected = times(START, &[0.7]);
    for event in 0..9 {
        s.lose(1);
        if event % 3 == 2 {
            expected = times(expected, &[0.7]);
        }
        assert_eq!((s.cwnd(), s.state()), (expected, modes[event % 3]));
        s.settle();
        assert_eq!(s.state(), "congestion_avoidance");
        settle_losses(&mut s, 20);
    }
    assert_eq!(s.detail("periodic_holds"), 6.0);
    assert_eq!(s.detail("periodic_decreases"), 3.0);
}

#[test]
fn u6_a_burst_is_one_event() {
    let mut s = after_first_event("");
    settle_losses(&mut s, 20);
    s.lose(1);
    for _ in 0..10 {
        s.lose_more(3);
    }
    assert_eq!(s.detail("shallow_count"), 1.0);
    assert_eq!(s.cwnd(), times(START, &[0.7]));
}

#[test]
fn shallow_n_is_how_many_losses_a_reduction_takes() {
    let mut s = after_first_event("shallow_n=1");
    settle_losses(&mut s, 20);
    s.lose(1);
    assert_eq!(
        (s.cwnd(), s.state()),
        (times(START, &[0.7, 0.7]), "periodic-decrease")
    );
}

#[test]
fn branch_4_frequent_losses_at_a_moderate_queue_are_cubics() {
    let mut s = after_first_event("");
    settle_losses(&mut s, 20);
    // T_low is 10 ms.
    s.queue_of(11.0);
    s.lose(1);
    assert_eq!(
        (s.cwnd(), s.state()),
        (times(START, &[0.7, 0.7]), "recovery")
    );
    assert_eq!(s.detail("shallow_count"), 0.0);
    let mut s = after_first_event("");
    settle_losses(&mut s, 20);
    s.queue_of(9.0);
    s.lose(1);
    assert_eq!(s.state(), "periodic-hold");
}

#[test]
fn t_low_has_a_floor_in_time() {
    // A quarter of 40 ms, unless the factor is so small that the floor counts.
    for (settings, queue, held) in [
        ("k_low=0.01,t_low_min=3ms", 2.0, true),
        ("k_low=0.01,t_low_min=3ms", 4.0, false),
        ("k_low=0,t_low_min=0ms", 0.0, false),
    ] {
        let mut s = after_first_event(settings);
        settle_losses(&mut s, 20);
        s.queue_of(queue);
        s.lose(1);
        assert_eq!(
            s.state() == "periodic-hold",
            held,
            "{settings} at {queue} ms"
        );
    }
}

#[test]
fn without_the_filter_no_loss_is_random() {
    let mut s = after_first_event("filter=off");
    s.lose(1);
    assert_eq!(s.state(), "periodic-hold", "no queue: shallow");
    s.settle();
    s.queue_of(30.0);
    s.lose(1);
    assert_eq!(s.state(), "recovery");
    assert_eq!(s.cwnd(), times(START, &[0.7, 0.7]));
}

#[test]
fn the_filter_of_algorithm_1_reduces_by_the_queues_share() {
    for (queue, factor, state) in [
        (0.0, 1.0, "random-hold"),
        (4.0, 0.9, "random-hold"),
        (9.0, 0.775, "random-hold"),
        // From T_low on it is CUBIC's.
        (11.0, 0.7, "recovery"),
    ] {
        let mut s = after_first_event("filter=algo");
        s.queue_of(queue);
        let expected = times(s.cwnd(), &[factor]) as f64;
        s.lose(1);
        assert_eq!(s.state(), state, "at {queue} ms");
        // The mean of the delay is a little below the queue.
        let cwnd = s.cwnd() as f64;
        assert!((cwnd / expected - 1.0).abs() < 1e-4, "{cwnd} {expected}");
        assert_eq!(s.cc.snapshot().ssthresh.unwrap().get(), s.cwnd());
    }
    // Never below beta.
    let mut s = after_first_event("filter=algo,k_low=1");
    s.queue_of(30.0);
    s.lose(1);
    assert_eq!(
        (s.cwnd(), s.state()),
        (times(START, &[0.7, 0.7]), "random-hold")
    );
}

#[test]
fn the_loss_ratio_is_the_mean_over_rounds_of_packets_lost_over_packets_sent() {
    let mut s = after_first_event("");
    s.round_of(0);
    // The loss of the first event was alone in a round in which nothing was sent.
    let mut expected = 0.125;
    assert!((s.detail("loss_ratio") - expected).abs() < 1e-12);
    for (sent, lost) in [(100, 3), (50, 0), (200, 20), (7, 0)] {
        s.round_of(sent);
        s.lose_more(lost);
        expected = 0.875 * expected + 0.125 * lost as f64 / sent as f64;
        s.round_of(0);
        assert!((s.detail("loss_ratio") - expected).abs() < 1e-12);
    }
    // A round in which nothing was sent or lost says nothing.
    s.round_of(0);
    assert!((s.detail("loss_ratio") - expected).abs() < 1e-12);
}

#[test]
fn l_is_the_border_between_random_and_not() {
    for (one_in, state) in [(60, "random-hold"), (40, "periodic-hold")] {
        let mut s = after_first_event("");
        settle_losses(&mut s, one_in);
        s.lose(1);
        assert_eq!(s.state(), state, "one loss in {one_in} packets");
    }
    let mut s = after_first_event("l_ratio=0");
    s.lose(1);
    assert_eq!(
        s.state(),
        "periodic-hold",
        "a ratio of zero is not below zero"
    );
}

#[test]
fn u15_a_burst_in_the_running_round_counts_at_once() {
    let mut s = after_first_event("");
    settle_losses(&mut s, 1_000);
    // 0.875 * 0.001 + 0.125 * 16/100 is above L = 0.02.
    s.round_of(100);
    s.lose(16);
    assert_eq!(s.state(), "periodic-hold");
    // 15 of 100 are not.
    let mut s = after_first_event("");
    settle_losses(&mut s, 1_000);
    s.round_of(100);
    s.lose(15);
    assert_eq!(s.state(), "random-hold");
    // In a round that has hardly begun they don't say anything yet.
    let mut s = after_first_event("");
    settle_losses(&mut s, 1_000);
    s.round_of(9);
    s.lose(9);
    assert_eq!(s.state(), "random-hold");
    // And a round without losses doesn't lower the mean before it ends.
    let mut s = after_first_event("");
    settle_losses(&mut s, 48);
    s.round_of(1_000);
    s.lose(1);
    assert_eq!(s.state(), "periodic-hold");
}

#[test]
fn u11_persistent_congestion_clears_the_loss_signals_and_keeps_the_delay() {
    let mut s = after_first_event("");
    settle_losses(&mut s, 20);
    s.queue_of(5.0);
    s.lose(1);
    let delay = s.detail("drtt");
    assert!(delay > 0.004 && s.detail("shallow_count") == 1.0);
    s.with(|cc, now, env| cc.on_persistent_congestion(now, env));
    assert_eq!((s.cwnd(), s.state()), (2 * MDS, "slow_start"));
    assert_eq!(s.detail("loss_ratio"), 0.0);
    assert_eq!(s.detail("shallow_count"), 0.0);
    assert_eq!(s.detail("drtt"), delay);
    // The next event is a first one again.
    s.settle();
    s.ack_packets(2);
    let window = s.cwnd();
    assert!(window > 3 * MDS);
    s.lose(1);
    assert_eq!(s.cwnd(), times(window, &[0.7]).max(2 * MDS));
}

#[test]
fn d9_a_mark_reduces_as_in_cubic_once_a_round() {
    let mut s = after_first_event("");
    s.mark();
    s.mark();
    assert_eq!(
        (s.cwnd(), s.state()),
        (times(START, &[0.7, 0.7]), "recovery")
    );
    s.settle();
    s.mark();
    assert_eq!(s.cwnd(), times(START, &[0.7, 0.7, 0.7]));
    assert_eq!(s.detail("shallow_count"), 0.0);
}

#[test]
fn d9_a_mark_within_a_held_episode_reduces_after_all() {
    let mut s = after_first_event("");
    s.lose(1);
    assert_eq!(s.state(), "random-hold");
    s.wait(5);
    s.mark();
    assert_eq!(s.cwnd(), times(START, &[0.7, 0.7]));
    s.mark();
    assert_eq!(s.cwnd(), times(START, &[0.7, 0.7]), "once");
    // Nothing is left to be undone.
    s.refute(s.episode);
    assert_eq!(s.cwnd(), times(START, &[0.7, 0.7]));
}

#[test]
fn a_refuted_loss_gives_back_what_it_took_and_no_more() {
    // A reduction comes back.
    let mut s = after_first_event("");
    s.queue_of(61.0);
    s.lose(1);
    assert_eq!(s.cwnd(), times(START, &[0.7, 0.7]));
    s.refute(s.episode);
    assert_eq!(s.cwnd(), times(START, &[0.7]));
    // A held loss took only its place in the count.
    let mut s = after_first_event("");
    settle_losses(&mut s, 20);
    s.lose(1);
    s.settle();
    s.lose(1);
    assert_eq!(s.detail("shallow_count"), 2.0);
    let window = s.cwnd();
    s.refute(s.episode);
    assert_eq!((s.detail("shallow_count"), s.cwnd()), (1.0, window));
    assert_eq!(s.state(), "congestion_avoidance");
    // The last of three gives back its reduction and the count before it.
    s.lose(1);
    s.settle();
    s.lose(1);
    assert_eq!(s.cwnd(), times(window, &[0.7]));
    s.refute(s.episode);
    assert_eq!((s.detail("shallow_count"), s.cwnd()), (2.0, window));
}

#[test]
fn the_full_queue_option_takes_no_loss_at_the_largest_delay_for_random() {
    let shallow = |settings: &str| {
        let mut s = after_first_event(settings);
        // The buffer holds 4 ms; the paper's signals see no difference from an idle path.
        s.queue_of(4.0);
        s.lose(1);
        s
    };
    assert_eq!(shallow("").state(), "random-hold");
    let mut s = shallow("full_queue=on");
    assert_eq!(
        (s.cwnd(), s.state()),
        (times(START, &[0.7, 0.7]), "recovery")
    );
    // At half of that delay, and without any, a loss is still random.
    for queue in [2.0, 0.0] {
        s.settle();
        s.queue_of(queue);
        s.lose(1);
        assert_eq!(s.state(), "random-hold", "at {queue} ms");
    }
    s.settle();
    s.queue_of(3.1);
    s.lose(1);
    assert_eq!(s.state(), "recovery", "three quarters");
    // Jitter below a twentieth of the base is no queue.
    let mut s = after_first_event("full_queue=on");
    s.queue_of(1.9);
    s.lose(1);
    assert_eq!(s.state(), "random-hold");
    let filter = config("full_queue=on,filter=algo").filter;
    assert_eq!(filter, LossFilter::Algo);
}
