//! Mistakes that other implementations made and repaired, one test for each rule they teach.

use crate::support;

use std::time::Duration;

use support::{Fate, MDS, Supply, Transport};
use swiftwater_congestion::blocks::{CubicCurve, CubicFunction, Curve, RenoCurve};
use swiftwater_congestion::{
    ControllerFactory, CubicConfig, EpisodeId, HyStartConfig, MAX_WINDOW, NewRenoConfig, RttView,
    SlowStartExit, by_name,
};
use swiftwater_units::{Bandwidth, ByteCount, Instant};

/// The algorithms whose window follows losses; the rules for BBR are in files of its own.
fn names() -> Vec<String> {
    let mut names = swiftwater_congestion::names();
    names.retain(|name| !name.starts_with("bbr"));
    names
}
/// Algorithms whose window a single loss does not lower, by design.
const LOSS_IS_NO_SIGNAL: [&str; 1] = ["copa"];

fn cubic() -> Transport {
    let mut config = CubicConfig::default();
    config.base.hystart = SlowStartExit::Loss;
    Transport::new(&config)
}

/// Cubic+ that reduces at each loss as CUBIC does, but by a decision of its own, and drains nothing.
fn reacting_cubic_plus() -> Transport {
    Transport::new(
        by_name("cubic-plus:hystart=off,filter=off,shallow_n=1,drain=off,spare_gain=0")
            .expect("a specification")
            .as_ref(),
    )
}

/// Cubic+ as it is by default, after slow start that ends by loss. These paths never have a queue, so that
/// without the switch its windows would grow into spare capacity without end.
fn cubic_plus() -> Transport {
    Transport::new(
        by_name("cubic-plus:hystart=off,spare_gain=0")
            .expect("a specification")
            .as_ref(),
    )
}

fn newreno() -> Transport {
    Transport::new(&NewRenoConfig::default())
}

/// Past the first loss, out of recovery, with at least `packets` packets of window.
fn in_avoidance(mut t: Transport, packets: f64) -> Transport {
    assert!(t.run_until(20, |t| t.packets() >= packets / 0.5));
    t.one_loss();
    while t.snapshot().state == "recovery" {
        t.step();
    }
    t
}

/// The windows before and after the next congestion event, which is made to happen.
fn next_reduction(t: &mut Transport) -> (u64, u64) {
    t.next_packet(Fate::Lose);
    let (events, mut before) = (t.events, t.cwnd());
    while t.events == events {
        before = t.cwnd();
        t.step();
    }
    (before, t.cwnd())
}

// Section: congestion events.

#[test]
fn cubic_beta_applies_to_the_old_window_not_the_lowered_w_max() {
    for flow in [cubic(), reacting_cubic_plus()] {
        let mut t = in_avoidance(flow, 200.0);
        // Below the plateau, so fast convergence lowers w_max.
        let plateau = t.detail("w_max");
        let (before, after) = next_reduction(&mut t);
        assert!((before as f64) < plateau);
        assert_eq!(after, ByteCount::new(before).scaled(0.7).get());
        assert_eq!(t.snapshot().ssthresh.unwrap().get(), after);
        assert!((t.detail("w_max") - 0.85 * before as f64).abs() < 1.0);
    }
}

#[test]
fn fast_convergence_is_applied_when_w_max_was_not_regained_and_only_then() {
    for flow in [cubic(), reacting_cubic_plus()] {
        let mut t = in_avoidance(flow, 40.0);
        let plateau = t.detail("w_max");
        assert!(t.run_until(2_000, |t| t.cwnd() as f64 > plateau));
        let (before, _) = next_reduction(&mut t);
        assert!((t.detail("w_max") - before as f64).abs() < 1.0);
        let (before, _) = next_reduction(&mut t);
        assert!((t.detail("w_max") - 0.85 * before as f64).abs() < 1.0);
    }
}

#[test]
fn w_max_below_the_window_means_k_zero_and_no_negative_root() {
    let function = CubicFunction::new(10_000.0, 8_500.0, 0.4, MDS as f64);
    assert!(function.k().abs() < f64::EPSILON);
    assert!((function.at(Duration::ZERO) - 10_000.0).abs() < f64::EPSILON);
    // At the minimum window the reduced window is not below w_max.
    let mut t = cubic();
    t.black_out(10);
    let before = t.cwnd();
    t.run_rounds(10);
    assert!(t.cwnd() > before);
}

/// Details that persistent congestion leaves alone: the delay of the path, and totals.
const LASTING: [&str; 3] = ["rtt_base", "drtt", "cubic_decreases"];

#[test]
fn one_routine_resets_everything_after_persistent_congestion() {
    for name in &names() {
        let mut t = Transport::new(by_name(name).unwrap().as_ref());
        t.run_rounds(4);
        t.one_loss();
        t.with_env(|cc, now, env| cc.on_persistent_congestion(now, env));
        assert_eq!(t.cwnd(), 2 * MDS, "{name}");
        // Growth may begin at once: no recovery is left that would hold it up.
        assert_eq!(t.snapshot().state, "slow_start", "{name}");
        let fresh = Transport::new(by_name(name).unwrap().as_ref());
        let forgotten = |t: &Transport| {
            let mut details = t.snapshot().details;
            details.retain(|(key, _)| !LASTING.contains(key));
            details
        };
        assert_eq!(forgotten(&t), forgotten(&fresh), "{name}");
    }
}

#[test]
fn persistent_congestion_is_never_undone() {
    for name in &names() {
        let mut t = Transport::new(by_name(name).unwrap().as_ref());
        t.run_rounds(4);
        t.one_loss();
        t.with_env(|cc, now, env| {
            cc.on_persistent_congestion(now, env);
            cc.on_spurious(EpisodeId(1), now, env);
        });
        assert_eq!(t.cwnd(), 2 * MDS, "{name}");
    }
}

#[test]
fn initial_and_minimum_window_are_the_environments() {
    for name in &names() {
        let mut t = Transport::new(by_name(name).unwrap().as_ref());
        assert_eq!(t.cwnd(), 10 * MDS, "{name}");
        t.black_out(10);
        if !LOSS_IS_NO_SIGNAL.contains(&name.as_str()) {
            assert_eq!(t.cwnd(), 2 * MDS, "{name}");
        }
        t.with_env(|cc, now, env| cc.on_persistent_congestion(now, env));
        assert_eq!(t.cwnd(), 2 * MDS, "{name}");
    }
}

// Section: spurious losses.

#[test]
fn one_spurious_loss_does_not_collapse_the_window() {
    for t in [cubic(), newreno(), reacting_cubic_plus()] {
        let mut t = in_avoidance(t, 60.0);
        t.run_rounds(3);
        let window = t.cwnd();
        t.next_packet(Fate::Behind(5));
        let events = t.events;
        assert!(t.run_until(4, |t| t.events > events));
        assert!(t.cwnd() < window);
        t.run_rounds(1);
        assert!(t.cwnd() >= window);
    }
}

#[test]
fn a_spurious_loss_in_slow_start_leads_back_to_slow_start() {
    for flow in [cubic(), cubic_plus()] {
        let mut t = flow;
        t.run_rounds(3);
        t.next_packet(Fate::Behind(6));
        assert!(t.run_until(4, |t| t.events > 0));
        t.run_rounds(2);
        assert_eq!(t.snapshot().state, "slow_start");
        assert_eq!(t.snapshot().ssthresh, None);
    }
}

#[test]
fn undo_needs_every_packet_of_the_episode() {
    let mut t = in_avoidance(newreno(), 60.0);
    t.run_rounds(3);
    let window = t.cwnd();
    // Two packets of one flight are declared lost, one of them rightly.
    let mut sent = 0;
    t.fate = Box::new(move |_| {
        sent += 1;
        match sent {
            1 => Fate::Behind(5),
            2 => Fate::Lose,
            _ => Fate::Arrive,
        }
    });
    let events = t.events;
    assert!(t.run_until(4, |t| t.events > events));
    t.run_rounds(3);
    assert!(t.cwnd() < 2 * window / 3);
}

#[test]
fn undo_is_for_the_last_episode_only() {
    for flow in [cubic(), reacting_cubic_plus()] {
        let mut t = in_avoidance(flow, 60.0);
        let first = EpisodeId(t.events);
        t.one_loss();
        let reduced = t.cwnd();
        t.with_env(|cc, now, env| cc.on_spurious(first, now, env));
        assert_eq!(t.cwnd(), reduced, "a later loss was real");
    }
}

#[test]
fn undo_never_lowers_the_window() {
    for flow in [cubic(), reacting_cubic_plus()] {
        let mut t = in_avoidance(flow, 20.0);
        t.rtt = Duration::from_millis(10);
        let saved = t.detail("cwnd_prior") as u64;
        assert!(t.run_until(500, |t| t.cwnd() > saved + 5 * MDS));
        let (window, episode) = (t.cwnd(), EpisodeId(t.events));
        t.with_env(|cc, now, env| cc.on_spurious(episode, now, env));
        assert_eq!(t.cwnd(), window);
    }
}

#[test]
fn ecn_events_are_never_undone() {
    for flow in [cubic(), cubic_plus()] {
        let mut t = in_avoidance(flow, 60.0);
        t.next_packet(Fate::Mark);
        let events = t.events;
        assert!(t.run_until(4, |t| t.events > events));
        let (reduced, episode) = (t.cwnd(), EpisodeId(t.events));
        t.with_env(|cc, now, env| cc.on_spurious(episode, now, env));
        assert_eq!(t.cwnd(), reduced);
    }
}

#[test]
fn a_mark_within_a_loss_episode_confirms_it() {
    for flow in [cubic(), cubic_plus(), reacting_cubic_plus()] {
        let mut t = in_avoidance(flow, 60.0);
        let mut sent = 0;
        t.fate = Box::new(move |_| {
            sent += 1;
            match sent {
                1 => Fate::Behind(5),
                // Arrives after the loss was declared and before the late packet.
                5 => Fate::Mark,
                _ => Fate::Arrive,
            }
        });
        let (window, undone) = (t.cwnd(), t.undone);
        t.run_rounds(3);
        assert_eq!(t.undone, undone + 1, "the loss itself was refuted");
        assert!(t.cwnd() < window);
    }
}

#[test]
fn time_spent_in_a_refuted_episode_is_no_probing_time() {
    for flow in [cubic(), cubic_plus(), reacting_cubic_plus()] {
        let mut t = in_avoidance(flow, 60.0);
        t.run_rounds(3);
        let time = t.detail("t");
        t.one_loss();
        t.now += Duration::from_secs(5);
        let episode = EpisodeId(t.events);
        t.with_env(|cc, now, env| cc.on_spurious(episode, now, env));
        assert_eq!(t.snapshot().state, "congestion_avoidance");
        let mut ack = support::ack(&t, 1);
        (ack.prior_inflight, ack.round.count) = (t.cc.cwnd(), t.rounds + 1);
        t.with_env(|cc, _, env| cc.on_ack(&ack, env));
        assert!(t.detail("t") - time < 0.5);
    }
}

// Section: growth.

#[test]
fn growth_credit_is_kept_not_cut_to_whole_datagrams() {
    // Acks of one datagram each earn 12 bytes at a window of 100 datagrams; none may be dropped.
    let mut curve = RenoCurve::new(0.5);
    let mut t = newreno();
    let mut grown = 0;
    let ack = support::ack(&t, 1);
    t.with_env(|_, _, env| {
        for _ in 0..700 {
            let window = ByteCount::new(700 * MDS + 77);
            grown += (curve.grow(window, ByteCount::new(MDS), 1.0, &ack, env) - window).get();
        }
    });
    assert_eq!(grown, 700 * MDS * MDS / (700 * MDS + 77));
}

#[test]
fn cubic_growth_below_one_byte_adds_up() {
    // Two seconds after its plateau the function is 3,840 bytes above a window of 7,000 packets, so
    // an ACK is worth half a byte.
    let mut curve = CubicCurve::new(0.7, 0.4, true);
    let mut t = cubic();
    let start = ByteCount::new(7_000 * MDS);
    let (mut window, mut ack) = (start, support::ack(&t, 1));
    curve.on_slow_start_exit(window);
    t.with_env(|_, _, env| {
        for n in 0..1_000 {
            ack.now = Instant::from_millis(if n == 0 { 0 } else { 2_000 });
            window = curve.grow(window, ByteCount::new(MDS), 1.0, &ack, env);
        }
    });
    let grown = (window - start).get();
    assert!((400..600).contains(&grown), "{grown} bytes");
}

#[test]
fn avoidance_never_adds_more_than_a_datagram_a_round_even_after_hystart() {
    let mut config = NewRenoConfig::default();
    config.base.hystart = SlowStartExit::HyStartPlusPlus(HyStartConfig::default());
    let mut t = Transport::new(&config);
    t.run_rounds(3);
    t.rtt = Duration::from_millis(75);
    assert!(t.run_until(12, |t| t.snapshot().state == "congestion_avoidance"));
    for _ in 0..20 {
        let before = t.cwnd();
        t.run_rounds(1);
        assert!(t.cwnd() - before <= MDS + MDS / 20);
    }
}

#[test]
fn cubic_target_is_at_most_half_above_the_window() {
    for flow in [cubic(), reacting_cubic_plus()] {
        // A long time without ACKs and with packets in flight, then an ACK: the function is far ahead.
        let mut t = in_avoidance(flow, 60.0);
        t.run_rounds(2);
        t.fill();
        let before = t.cwnd();
        t.now += Duration::from_hours(1);
        t.step();
        assert!(
            t.cwnd() - before <= MDS / 2 + 1,
            "half a datagram for a datagram"
        );
        t.run_rounds(1);
        assert!(t.cwnd() as f64 <= 1.6 * before as f64);
    }
}

#[test]
fn hystart_exit_may_step_back_to_the_window_before_the_delay_rose() {
    let exit = |step_back| {
        let mut config = CubicConfig::default();
        config.base.hystart = SlowStartExit::HyStartPlusPlus(HyStartConfig {
            step_back,
            ..HyStartConfig::rfc9406()
        });
        let mut t = Transport::new(&config);
        t.rate = Some(Bandwidth::from_mbps(20));
        assert!(t.run_until(12, |t| t.snapshot().state == "conservative_slow_start"));
        let at_rise = t.cwnd();
        assert!(t.run_until(12, |t| t.snapshot().state == "congestion_avoidance"));
        t.snapshot().ssthresh.unwrap().get() as f64 / at_rise as f64
    };
    assert!(exit(false) > 2.5, "five rounds at a quarter");
    assert!((0.4..0.6).contains(&exit(true)), "one round earlier");
}

// Section: use of the window.

#[test]
fn no_algorithm_grows_an_underused_window() {
    for name in &names() {
        let mut t = Transport::new(by_name(name).unwrap().as_ref());
        for offered in [3, 8] {
            t.supply = Supply::App(offered);
            t.run_rounds(100);
            assert_eq!(t.cwnd(), 10 * MDS, "{name} in slow start");
        }
        t.supply = Supply::Unlimited;
        let mut t = in_avoidance(t, 40.0);
        t.supply = Supply::App(t.cwnd() * 9 / 10 / MDS);
        t.run_rounds(2);
        let before = t.cwnd();
        t.run_rounds(100);
        assert_eq!(t.cwnd(), before, "{name} in congestion avoidance");
    }
}

#[test]
fn a_round_that_filled_the_window_once_counts_as_limited() {
    // Bursts that fill the window, each followed by a pause: small requests.
    for name in &names() {
        let mut t = Transport::new(by_name(name).unwrap().as_ref());
        for _ in 0..6 {
            t.supply = Supply::Unlimited;
            t.fill();
            t.supply = Supply::App(0);
            t.idle(Duration::from_millis(200));
        }
        assert!(t.packets() > 100.0, "{name} has {} packets", t.packets());
    }
}

#[test]
fn what_was_in_flight_a_round_ago_still_counts() {
    // The window was filled; then a round begins with the last packet of the burst.
    let mut t = cubic();
    let mut ack = support::ack(&t, 1);
    for (round, prior) in [(5, 10), (6, 1)] {
        (ack.round.count, ack.prior_inflight) = (round, ByteCount::new(prior * MDS));
        t.with_env(|cc, _, env| cc.on_ack(&ack, env));
    }
    assert_eq!(t.cwnd(), 12 * MDS);
    // What was in flight two rounds ago doesn't.
    let mut t = cubic();
    for (round, prior) in [(5, 10), (7, 1)] {
        (ack.round.count, ack.prior_inflight) = (round, ByteCount::new(prior * MDS));
        t.with_env(|cc, _, env| cc.on_ack(&ack, env));
    }
    assert_eq!(t.cwnd(), 11 * MDS);
}

#[test]
fn being_held_back_by_the_pacer_is_not_application_limited() {
    for name in &names() {
        let mut t = Transport::new(by_name(name).unwrap().as_ref());
        t.supply = Supply::Blocked(8);
        t.run_rounds(5);
        assert!(t.packets() > 15.0, "{name} has {} packets", t.packets());
    }
}

#[test]
fn the_window_runs_at_most_twice_ahead_of_what_was_in_flight() {
    for name in &names() {
        let mut t = Transport::new(by_name(name).unwrap().as_ref());
        t.supply = Supply::Blocked(8);
        t.run_rounds(200);
        assert!(t.cwnd() <= 2 * 8 * MDS, "{name} in slow start");
        t.supply = Supply::Unlimited;
        let mut t = in_avoidance(t, 20.0);
        t.supply = Supply::Blocked(60);
        t.run_rounds(2_000);
        assert_eq!(t.cwnd(), 90 * MDS, "{name} in congestion avoidance");
    }
}

#[test]
fn touching_zero_in_flight_every_round_does_not_stop_growth() {
    // Two packets at a time: each round ends with nothing in flight, and sending "resumes".
    for t in [cubic(), newreno(), cubic_plus()] {
        let mut t = t;
        t.black_out(10);
        assert_eq!(t.cwnd(), 2 * MDS);
        for _ in 0..400 {
            t.fill();
            t.supply = Supply::App(0);
            t.idle(Duration::ZERO);
            t.supply = Supply::Unlimited;
        }
        assert!(t.packets() > 8.0, "{} packets", t.packets());
    }
}

#[test]
fn idle_time_never_counts_as_probing_time() {
    for flow in [cubic(), cubic_plus()] {
        let mut t = in_avoidance(flow, 60.0);
        t.run_rounds(3);
        let time = t.detail("t");
        for _ in 0..10 {
            t.fill();
            t.supply = Supply::App(0);
            t.idle(Duration::from_mins(1));
            t.supply = Supply::Unlimited;
        }
        assert!(t.detail("t") - time < 1.0, "ten minutes of idling");
    }
}

// Section: numbers.

#[test]
fn an_unknown_round_trip_time_is_no_round_trip_time() {
    let rtt = RttView {
        latest: Duration::ZERO,
        smoothed: Duration::from_millis(333),
        var: Duration::ZERO,
        min: Duration::ZERO,
        min_at: Instant::ZERO,
        has_sample: false,
    };
    assert_eq!(rtt.known_smoothed(), None);
    let factory = CubicConfig::default();
    let mut t = Transport::new(&factory);
    let mut ack = support::ack(&t, 4);
    ack.rtt = rtt;
    for _ in 0..1_000 {
        ack.now += Duration::from_millis(1);
        t.with_env(|cc, _, env| cc.on_ack(&ack, env));
    }
    // Slow start up to twice what was in flight, whatever the zeros would suggest.
    assert_eq!(t.cwnd(), 20 * MDS);
    assert_eq!(factory.name(), "cubic");
}

#[test]
fn ten_days_without_loss_do_not_overflow() {
    for flow in [cubic(), cubic_plus()] {
        let mut t = in_avoidance(flow, 60.0);
        let mut ack = support::ack(&t, 1);
        ack.rtt = t.rtt_view();
        ack.now = t.now;
        let end = t.now + Duration::from_hours(240);
        while ack.now < end {
            // A window's worth of data each ten seconds.
            (ack.acked_bytes, ack.prior_inflight) = (t.cc.cwnd(), t.cc.cwnd());
            ack.now += Duration::from_secs(10);
            ack.round.count += 1;
            let before = t.cc.cwnd();
            t.with_env(|cc, _, env| cc.on_ack(&ack, env));
            assert!(t.cc.cwnd() >= before);
            assert!(t.cc.cwnd() <= before.scaled(1.5) + ByteCount::new(1));
        }
        assert_eq!(t.cc.cwnd(), MAX_WINDOW);
        assert!(
            t.snapshot()
                .details
                .iter()
                .all(|(_, value)| value.is_finite())
        );
    }
}

#[test]
fn function_of_time_stays_finite_forever() {
    let function = CubicFunction::new(7e4, 1e5, 0.4, 65_527.0);
    assert!(function.at(Duration::MAX).is_finite());
}
