//! CUBIC as RFC 9438 has it.

use crate::support;

use std::time::Duration;

use support::{Fate, MDS, Supply, Transport};
use swiftwater_congestion::blocks::{CubicCurve, CubicFunction, Curve, RenoEstimate};
use swiftwater_congestion::{ClassicHyStartConfig, CubicConfig, SlowStartExit};
use swiftwater_units::{ByteCount, Instant};

/// CUBIC with standard slow start, so that every exit is a loss.
fn plain() -> CubicConfig {
    let mut config = CubicConfig::default();
    config.base.hystart = SlowStartExit::Loss;
    config
}

/// A flow out of recovery after its first loss, at about `packets` packets, with this round trip.
fn avoidance(config: &CubicConfig, packets: u64, rtt_ms: u64) -> Transport {
    let mut t = Transport::new(config);
    t.rtt = Duration::from_millis(rtt_ms);
    assert!(t.run_until(20, |t| t.packets() >= packets as f64 / 0.7));
    t.one_loss();
    while t.snapshot().state == "recovery" {
        t.step();
    }
    t
}

#[test]
fn t1_deterministic_loss_gives_the_average_window_of_the_formula() {
    // The formula of RFC 9438, section 5.1, has no fast convergence.
    let config = CubicConfig {
        fast_convergence: false,
        ..plain()
    };
    for rtt in [Duration::from_micros(30_600), Duration::from_millis(100)] {
        for n in [100_u32, 1_000, 10_000, 100_000] {
            let per_loss = f64::from(n);
            let cubic = 1.054 * (rtt.as_secs_f64() * per_loss).powf(0.75);
            let expected = cubic.max(1.22 * per_loss.sqrt());
            let average = support::average_window(&config, n.into(), rtt, expected);
            let ratio = average / expected;
            println!("{rtt:?}, one in {n}: {average:.1} packets, {ratio:.3} of the formula");
            assert!(
                (0.85..=1.15).contains(&ratio),
                "{rtt:?}, one in {n}: ratio {ratio:.3}"
            );
        }
    }
}

#[test]
fn fast_convergence_costs_a_lone_flow_little() {
    let (rtt, expected) = (Duration::from_millis(100), 1.054 * 1_000_f64.powf(0.75));
    let average = support::average_window(&plain(), 10_000, rtt, expected);
    assert!(
        (0.8..=1.0).contains(&(average / expected)),
        "{average} of {expected}"
    );
}

#[test]
fn the_window_returns_to_w_max_after_k_seconds() {
    let mut t = avoidance(&plain(), 400, 100);
    t.step();
    let (w_max, k) = (t.detail("w_max"), t.detail("k"));
    let expected_k = ((w_max - t.cwnd() as f64) / MDS as f64 / 0.4).cbrt();
    assert!((k - expected_k).abs() < 0.01, "{k} and {expected_k}");
    t.run_for(Duration::from_secs_f64(k));
    assert!(
        (t.cwnd() as f64 / w_max - 1.0).abs() < 0.01,
        "{} of {w_max}",
        t.cwnd()
    );
}

#[test]
fn the_window_follows_the_cubic_function_one_round_trip_ahead() {
    let mut t = avoidance(&plain(), 400, 100);
    t.step();
    let start = t.cwnd() as f64;
    let function = CubicFunction::new(start, t.detail("w_max"), 0.4, MDS as f64);
    for _ in 0..8 {
        t.run_for(Duration::from_secs(1));
        let now = Duration::from_secs_f64(t.detail("t"));
        let expected = function.at(now + t.rtt);
        let ratio = t.cwnd() as f64 / expected;
        assert!((0.98..=1.02).contains(&ratio), "{ratio} at {now:?}");
    }
}

#[test]
fn growth_is_concave_before_the_plateau_and_convex_after_it() {
    let mut t = avoidance(&plain(), 400, 100);
    t.step();
    let k = t.detail("k");
    let mut gains = Vec::new();
    for _ in 0..9 {
        let before = t.cwnd();
        t.run_for(Duration::from_secs_f64(k / 4.0));
        gains.push(t.cwnd() - before);
    }
    assert!(gains[0] > gains[1] && gains[1] > gains[2], "{gains:?}");
    assert!(gains[8] > gains[7] && gains[7] > gains[6], "{gains:?}");
}

#[test]
fn small_windows_grow_as_reno_would() {
    // At 10 ms cubic growth is far below Reno's.
    let mut t = avoidance(&plain(), 100, 10);
    t.step();
    let (before, prior) = (t.packets(), t.detail("cwnd_prior") / MDS as f64);
    t.run_rounds(8);
    let gain = (t.packets() - before) / 8.0;
    assert!(t.packets() < prior);
    assert!((gain - 0.529).abs() < 0.05, "{gain} packets a round");
    // Back where the loss was, the increase is Reno's own.
    assert!(t.run_until(200, |t| t.packets() > prior + 0.5));
    let before = t.packets();
    t.run_rounds(8);
    let gain = (t.packets() - before) / 8.0;
    assert!((gain - 1.0).abs() < 0.05, "{gain} packets a round");
}

#[test]
fn the_reno_estimate_switches_its_increase_at_the_prior_window() {
    let mut estimate = RenoEstimate::starting_at(7_000.0);
    estimate.on_acked(7_000.0, 7_000.0, 1_000.0, 0.7, 10_000.0);
    assert!((estimate.window() - 7_529.4).abs() < 0.1);
    let mut estimate = RenoEstimate::starting_at(10_000.0);
    estimate.on_acked(10_000.0, 10_000.0, 1_000.0, 0.7, 10_000.0);
    assert!((estimate.window() - 11_000.0).abs() < 0.1);
}

#[test]
fn fast_convergence_lowers_the_plateau_of_a_flow_that_did_not_get_back() {
    for (fast_convergence, room) in [(true, 0.85), (false, 1.0)] {
        let mut t = avoidance(
            &CubicConfig {
                fast_convergence,
                ..plain()
            },
            400,
            100,
        );
        t.run_rounds(2);
        let before_window = t.detail("w_max");
        t.next_packet(Fate::Lose);
        let events = t.events;
        let mut before = t.cwnd();
        while t.events == events {
            before = t.cwnd();
            t.step();
        }
        assert!((before as f64) < before_window);
        assert!((t.detail("w_max") / before as f64 - room).abs() < 1e-9);
        assert_eq!(t.cwnd(), ByteCount::new(before).scaled(0.7).get());
    }
}

#[test]
fn a_lossless_exit_from_slow_start_continues_from_its_plateau() {
    let mut t = Transport::new(&CubicConfig::default());
    t.run_rounds(3);
    t.rtt = Duration::from_millis(75);
    assert!(t.run_until(12, |t| t.snapshot().state == "congestion_avoidance"));
    let exit = t.snapshot().ssthresh.unwrap().get();
    t.step();
    assert!(t.detail("k").abs() < f64::EPSILON);
    assert!((t.detail("w_max") - exit as f64).abs() < 1.0);
    assert!((t.detail("cwnd_prior") - exit as f64).abs() < 1.0);
    // W_est is at the prior window already, so the increase is Reno's own.
    let before = t.packets();
    t.run_rounds(2);
    let gain = (t.packets() - before) / 2.0;
    assert!((gain - 1.0).abs() < 0.1, "{gain} packets a round");
}

#[test]
fn a_slow_start_exit_discards_an_older_plateau() {
    let mut curve = CubicCurve::new(0.7, 0.4, true);
    curve.on_reduction(ByteCount::new(400 * MDS));
    let exit = ByteCount::new(100 * MDS);
    curve.on_slow_start_exit(exit);
    let mut t = Transport::new(&plain());
    let ack = support::ack(&t, 1);
    t.with_env(|_, _, env| {
        curve.grow(exit, ByteCount::new(MDS), 1.0, &ack, env);
    });
    assert_eq!(curve.w_max(), Some(exit.get() as f64));
    assert_eq!(curve.k(), Some(0.0));
}

#[test]
fn persistent_congestion_restarts_on_the_plateau_found_by_slow_start() {
    let mut t = avoidance(&plain(), 100, 50);
    t.with_env(|cc, now, env| cc.on_persistent_congestion(now, env));
    assert_eq!(t.cwnd(), 2 * MDS);
    assert_eq!(t.snapshot().state, "slow_start");
    let ssthresh = t.snapshot().ssthresh.unwrap().get();
    t.idle(Duration::from_millis(1));
    assert!(t.run_until(20, |t| t.snapshot().state == "congestion_avoidance"));
    t.step();
    assert!(t.detail("k").abs() < f64::EPSILON);
    assert!((t.detail("w_max") / ssthresh as f64 - 1.0).abs() < 0.02);
}

#[test]
fn t3_idle_time_is_no_growing_time() {
    let mut t = avoidance(&plain(), 100, 50);
    t.run_rounds(10);
    let (window, time) = (t.cwnd(), t.detail("t"));
    t.idle(Duration::from_secs(60));
    // The packets still in flight were acknowledged while the window was in use.
    let after = t.cwnd();
    assert!(after as f64 <= 1.05 * window as f64);
    t.run_rounds(1);
    assert!(t.detail("t") - time < 0.5, "the minute doesn't count");
    assert!(t.cwnd() as f64 <= 1.05 * after as f64);
}

#[test]
fn t3_application_limited_time_is_no_growing_time() {
    let mut t = avoidance(&plain(), 100, 50);
    t.run_rounds(10);
    t.supply = Supply::App(20);
    t.run_rounds(3);
    let (window, time) = (t.cwnd(), t.detail("t"));
    t.run_for(Duration::from_mins(1));
    assert_eq!(t.cwnd(), window);
    t.supply = Supply::Unlimited;
    t.run_rounds(2);
    assert!(t.detail("t") - time < 0.5);
    assert!(t.cwnd() as f64 <= 1.5 * window as f64);
}

#[test]
fn t4_ten_days_of_mostly_application_limited_sending() {
    let mut t = avoidance(&plain(), 20, 50);
    t.rtt = Duration::from_secs(10);
    let ten_days = Instant::ZERO + Duration::from_hours(240);
    let mut last = t.cwnd();
    while t.now < ten_days {
        let bulk = t.rounds.is_multiple_of(10) && t.packets() < 1000.0;
        t.supply = if bulk {
            Supply::Unlimited
        } else {
            Supply::App(9)
        };
        t.run_rounds(1);
        assert!(t.cwnd() >= last && t.cwnd() as f64 <= 1.55 * last as f64);
        last = t.cwnd();
    }
    assert!(t.cwnd() < 2000 * MDS);
}

#[test]
fn t5_a_packet_overtaken_by_five_costs_nothing_for_long() {
    let mut t = avoidance(&plain(), 100, 50);
    t.run_rounds(10);
    let (events, window, state) = (t.events, t.cwnd(), t.snapshot().state);
    let (w_max, k) = (t.detail("w_max"), t.detail("k"));
    t.next_packet(Fate::Behind(5));
    assert!(t.run_until(5, |t| t.events > events));
    assert!(t.cwnd() < window, "it is taken for lost at first");
    let began = t.rounds;
    assert!(t.run_until(2, |t| t.cwnd() >= window));
    assert!(t.rounds - began <= 1);
    assert_eq!(t.snapshot().state, state);
    assert!((t.detail("w_max") - w_max).abs() < 1e-9 && (t.detail("k") - k).abs() < 1e-9);
}

#[test]
fn larger_datagrams_rescale_the_cubic_function() {
    let mut t = avoidance(&plain(), 400, 100);
    t.step();
    let (k, w_max) = (t.detail("k"), t.detail("w_max"));
    t.mds = 2 * MDS;
    t.with_env(|cc, _, env| cc.on_max_datagram_size_change(env));
    assert!((t.detail("w_max") - w_max).abs() < 1e-9);
    assert!(
        (t.detail("k") - k / 2f64.cbrt()).abs() < 1e-9,
        "half as many segments to go"
    );
}

#[test]
fn parameters_out_of_range_are_moved_into_it() {
    let wild = CubicConfig {
        beta: -3.0,
        c: f64::NAN,
        ..plain()
    };
    let mut t = avoidance(&wild, 100, 50);
    t.run_rounds(5);
    assert!(t.cwnd() >= 2 * MDS && t.gain() > 0.0);
}

#[test]
fn without_the_reno_friendly_region_short_round_trips_get_the_cubic_function_only() {
    let after_100_rounds = |reno_friendly| {
        let config = CubicConfig {
            reno_friendly,
            ..plain()
        };
        let mut t = avoidance(&config, 14, 10);
        t.run_rounds(100);
        (t.packets(), t.detail("w_max") / MDS as f64)
    };
    let (with, _) = after_100_rounds(true);
    let (without, plateau) = after_100_rounds(false);
    assert!(
        without <= plateau + 1.0,
        "{without} packets, plateau {plateau}"
    );
    assert!(
        with > 1.5 * plateau,
        "Reno has {with} packets, plateau {plateau}"
    );
}

#[test]
fn early_growth_is_5_percent_a_round_until_the_first_reduction() {
    let growth_of_10_rounds = |early_growth| {
        let mut config = CubicConfig {
            early_growth,
            ..CubicConfig::default()
        };
        config.base.hystart = SlowStartExit::HyStart(ClassicHyStartConfig::linux());
        let mut t = Transport::new(&config);
        t.run_rounds(3);
        t.rtt = Duration::from_millis(75);
        assert!(t.run_until(4, |t| t.snapshot().state == "congestion_avoidance"));
        let before = t.packets();
        t.run_rounds(10);
        let first = t.packets() / before;
        t.one_loss();
        while t.snapshot().state == "recovery" {
            t.step();
        }
        let before = t.packets();
        t.run_rounds(10);
        (first, t.packets() / before)
    };
    let (with, after) = growth_of_10_rounds(true);
    assert!((1.5..=1.8).contains(&with), "grew by {with}");
    let (without, _) = growth_of_10_rounds(false);
    assert!(without < 1.3, "grew by {without}");
    assert!(after < 1.35, "after a loss: {after}");
}
