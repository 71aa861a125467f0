//! NewReno as RFC 9002, section 7 and appendix B, has it.

use crate::support;

use support::{Fate, MDS, Supply, Transport};
use swiftwater_congestion::{HyStartConfig, NewRenoConfig, SlowStartExit, by_name};

fn newreno() -> Transport {
    Transport::new(&NewRenoConfig::default())
}

/// A flow in congestion avoidance with a window of about `packets` packets, out of recovery.
fn avoidance(packets: u64) -> Transport {
    let mut t = newreno();
    assert!(t.run_until(20, |t| t.packets() >= 2.0 * packets as f64));
    t.one_loss();
    t.run_rounds(2);
    assert_eq!(t.snapshot().state, "congestion_avoidance");
    t
}

#[test]
fn starts_with_the_initial_window_and_no_threshold() {
    let t = newreno();
    assert_eq!(t.cwnd(), 10 * MDS);
    assert_eq!(t.snapshot().ssthresh, None);
    assert_eq!(t.snapshot().state, "slow_start");
    assert!((t.gain() - 2.0).abs() < f64::EPSILON);
}

#[test]
fn slow_start_adds_every_byte_acknowledged() {
    let mut t = newreno();
    t.step();
    assert_eq!(t.cwnd(), 11 * MDS);
    t.run_rounds(3);
    assert_eq!(t.cwnd(), 81 * MDS);
}

#[test]
fn a_congestion_event_halves_the_window() {
    let mut t = newreno();
    t.run_rounds(3);
    t.next_packet(Fate::Lose);
    let mut before = t.cwnd();
    while t.events == 0 {
        before = t.cwnd();
        t.step();
    }
    assert_eq!(t.cwnd(), before / 2);
    assert_eq!(t.snapshot().ssthresh.unwrap().get(), before / 2);
    assert_eq!(t.snapshot().state, "recovery");
    assert!((t.gain() - 1.25).abs() < f64::EPSILON);
}

#[test]
fn losses_of_one_episode_reduce_once() {
    let mut t = newreno();
    t.run_rounds(3);
    // Ten packets of one flight, among others.
    t.fate = Box::new(|n| {
        if (100..120).contains(&n) && n % 2 == 0 {
            Fate::Lose
        } else {
            Fate::Arrive
        }
    });
    assert!(t.run_until(10, |t| t.events == 1));
    let reduced = t.cwnd();
    assert!(t.run_until(10, |t| t.snapshot().state != "recovery"));
    assert_eq!(t.events, 1);
    assert!(t.cwnd() >= reduced && t.cwnd() <= reduced + MDS);
}

#[test]
fn acks_of_packets_sent_before_recovery_do_not_grow_the_window() {
    let mut t = newreno();
    t.run_rounds(3);
    t.one_loss();
    let reduced = t.cwnd();
    while t.snapshot().state == "recovery" {
        assert_eq!(t.cwnd(), reduced);
        t.step();
    }
}

#[test]
fn avoidance_adds_one_datagram_a_round() {
    let mut t = avoidance(40);
    for _ in 0..20 {
        let before = t.packets();
        t.run_rounds(1);
        let grown = t.packets() - before;
        assert!((0.9..=1.05).contains(&grown), "grew by {grown} packets");
    }
}

#[test]
fn deterministic_loss_gives_the_average_window_of_the_formula() {
    for n in [100_u32, 1_000, 10_000] {
        let expected = 1.22 * f64::from(n).sqrt();
        let rtt = std::time::Duration::from_millis(50);
        let average = support::average_window(&NewRenoConfig::default(), n.into(), rtt, expected);
        let ratio = average / expected;
        println!("one in {n}: {average:.1} packets, {ratio:.3} of the formula");
        assert!(
            (0.85..=1.15).contains(&ratio),
            "one in {n}: ratio {ratio:.3}"
        );
    }
}

#[test]
fn packets_of_a_discarded_space_do_not_change_the_window() {
    let mut t = avoidance(40);
    let before = t.snapshot();
    t.with_env(|cc, _, _| cc.on_discard(swiftwater_units::ByteCount::new(10 * MDS)));
    assert_eq!(t.snapshot(), before);
}

#[test]
fn slow_start_after_persistent_congestion_stops_at_the_threshold() {
    let mut t = avoidance(40);
    t.with_env(|cc, now, env| cc.on_persistent_congestion(now, env));
    assert_eq!(t.cwnd(), 2 * MDS);
    let ssthresh = t.snapshot().ssthresh.unwrap().get();
    t.idle(std::time::Duration::from_millis(1));
    while t.snapshot().state == "slow_start" {
        t.step();
    }
    // What is left of the ACK that reaches the threshold already grows additively.
    assert!(t.cwnd() >= ssthresh && t.cwnd() <= ssthresh + MDS / 10);
}

#[test]
fn an_ack_that_spans_the_threshold_grows_both_ways() {
    let mut t = avoidance(40);
    t.with_env(|cc, now, env| cc.on_persistent_congestion(now, env));
    let ssthresh = t.snapshot().ssthresh.unwrap().get();
    let mut ack = support::ack(&t, 1);
    ack.prior_inflight = swiftwater_units::ByteCount::new(1000 * MDS);
    ack.acked_bytes = swiftwater_units::ByteCount::new(ssthresh);
    t.with_env(|cc, _, env| cc.on_ack(&ack, env));
    // What slow start left over, two datagrams, is that share of a round.
    assert_eq!(t.cwnd(), ssthresh + 2 * MDS * MDS / ssthresh);
}

#[test]
fn ce_reacts_like_loss_once_per_episode() {
    let mut t = avoidance(40);
    let (events, before) = (t.events, t.cwnd());
    // Half of the packets of one flight come back marked.
    let from = t.inflight() / MDS;
    let mut seen = 0;
    t.fate = Box::new(move |_| {
        seen += 1;
        if seen < from && seen % 2 == 0 {
            Fate::Mark
        } else {
            Fate::Arrive
        }
    });
    assert!(t.run_until(10, |t| t.events > events));
    assert!((t.cwnd() as f64 / before as f64 - 0.5).abs() < 0.05);
    t.run_rounds(1);
    assert_eq!(t.events, events + 1);
}

#[test]
fn reductions_stop_at_the_minimum_window() {
    let mut t = newreno();
    t.lose_every(2);
    for _ in 0..200 {
        t.step();
        assert!(t.cwnd() >= 2 * MDS);
    }
    t.black_out(10);
    assert_eq!(t.cwnd(), 2 * MDS);
}

#[test]
fn a_probe_timeout_does_not_change_the_window() {
    let mut t = avoidance(40);
    let before = t.snapshot();
    t.with_env(|cc, now, env| (1..10).for_each(|n| cc.on_pto(now, n, env)));
    assert_eq!(t.snapshot(), before);
}

#[test]
fn an_underused_window_does_not_grow() {
    let mut t = newreno();
    t.supply = Supply::App(4);
    t.run_rounds(50);
    assert_eq!(t.cwnd(), 10 * MDS);
}

#[test]
fn the_untouched_initial_window_follows_the_datagram_size() {
    let mut t = newreno();
    (t.mds, t.initial_window, t.minimum_window) = (1400, 14_000, 2800);
    t.with_env(|cc, _, env| cc.on_max_datagram_size_change(env));
    assert_eq!(t.cwnd(), 14_000);
    t.step();
    (t.mds, t.initial_window, t.minimum_window) = (1200, 12_000, 2400);
    t.with_env(|cc, _, env| cc.on_max_datagram_size_change(env));
    assert_eq!(t.cwnd(), 15_400, "a window in use stays");
}

#[test]
fn a_larger_datagram_raises_a_window_below_the_new_minimum() {
    let mut t = newreno();
    t.black_out(10);
    t.minimum_window = 2 * 1452;
    t.with_env(|cc, _, env| cc.on_max_datagram_size_change(env));
    assert_eq!(t.cwnd(), 2 * 1452);
}

#[test]
fn hystart_is_an_option() {
    let mut config = NewRenoConfig::default();
    config.base.hystart = SlowStartExit::HyStartPlusPlus(HyStartConfig::default());
    let mut t = Transport::new(&config);
    t.rate = Some(swiftwater_units::Bandwidth::from_mbps(20));
    assert!(t.run_until(30, |t| t.snapshot().state == "congestion_avoidance"));
    assert_eq!(t.events, 0);
}

#[test]
fn algorithms_are_found_by_name() {
    for name in &swiftwater_congestion::names() {
        let factory = by_name(name).unwrap();
        assert_eq!(factory.name(), name);
        assert_eq!(Transport::new(factory.as_ref()).cc.name(), name);
    }
    assert_eq!(by_name("CUBIC").unwrap().name(), "cubic");
    let error = by_name("vegas").unwrap_err().to_string();
    assert!(
        error.contains("`vegas`") && error.contains("cubic") && error.contains("newreno"),
        "{error}"
    );
}
