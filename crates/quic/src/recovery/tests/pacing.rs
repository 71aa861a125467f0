//! The pacer as seen through a path (RFC 9002, section 7.7).

use super::*;

/// A paced path whose controller sets rate and quantum itself, its first burst spent, with an RTT
/// of 100 ms and an open window.
fn paced(rate: Bandwidth, quantum: Option<ByteCount>) -> Bench {
    let mut bench = Bench::with(|_| {});
    bench.set_cwnd(ByteCount::new(1 << 40));
    bench.cc.script().pacing = Pacing {
        rate: Some(rate),
        gain: 1.0,
        quantum,
    };
    bench.sample_rtt(ms(100), ms(0));
    spend(&mut bench);
    bench
}

/// Sends until the pacer says stop; the bytes sent.
fn spend(bench: &mut Bench) -> u64 {
    let mut sent = 0;
    while bench.path.pacing_release(bench.now) <= bench.now {
        bench.send();
        sent += u64::from(MDS);
    }
    sent
}

/// Follows the pacer for `total` packets; send times.
fn follow(bench: &mut Bench, total: usize) -> Vec<Instant> {
    let mut times = Vec::new();
    while times.len() < total {
        bench.now = bench.path.pacing_release(bench.now).max(bench.now);
        bench.send();
        times.push(bench.now);
    }
    times
}

#[test]
fn without_pacing_nothing_is_ever_delayed() {
    let mut bench = Bench::new();
    bench.cc.script().pacing.rate = Some(Bandwidth::from_bps(1));
    bench.sample_rtt(ms(100), ms(0));
    for _ in 0..1_000 {
        assert_eq!(bench.path.pacing_release(bench.now), bench.now);
        assert_eq!(bench.path.pacing_budget(bench.now), usize::MAX);
        bench.send();
    }
}

#[test]
fn an_initial_window_leaves_at_once_and_the_rest_is_paced() {
    let mut bench = Bench::with(|_| {});
    assert_eq!(bench.path.pacing_budget(bench.now), 12_000);
    assert_eq!(spend(&mut bench), 12_000);
    assert_eq!(bench.path.pacing_budget(bench.now), 0);
    // 1.25 windows of 120,000 bytes in each assumed RTT of 333 ms
    let gap = bench.path.pacing_release(bench.now) - bench.now;
    assert!(gap.abs_diff(us(2_664)) < us(1), "{gap:?}");
}

#[test]
fn gaps_between_packets_match_the_rate() {
    for mbps in [1, 7, 100, 1_000, 40_000] {
        let rate = Bandwidth::from_mbps(mbps);
        let mut bench = paced(rate, None);
        let times = follow(&mut bench, 2_001);
        let span = (times[2_000] - times[0]).as_nanos();
        let ideal = rate.time_to_send(2_000 * 1_200).as_nanos();
        assert!(
            span.abs_diff(ideal) <= ideal / 10_000 + 1,
            "{mbps}: {span} against {ideal}"
        );
        let smallest = times.windows(2).map(|w| w[1] - w[0]).min().unwrap();
        assert!(
            smallest + Duration::from_nanos(1) >= rate.time_to_send(1_200) / 2,
            "{smallest:?}"
        );
    }
}

#[test]
fn bursts_stay_within_the_quantum() {
    let mut bench = paced(Bandwidth::from_mbps(50), Some(packets(4)));
    for _ in 0..50 {
        bench.wait(ms(20));
        assert_eq!(bench.path.pacing_budget(bench.now), 4_800);
        assert_eq!(spend(&mut bench), 4_800);
    }
}

#[test]
fn depth_is_a_millisecond_within_two_and_ten_packets() {
    for (mbps, depth) in [(1, 2_400), (48, 6_000), (100_000, 12_000)] {
        let mut bench = paced(Bandwidth::from_mbps(mbps), None);
        bench.wait(ms(1_000));
        assert_eq!(bench.path.pacing_budget(bench.now), depth, "{mbps}");
    }
}

/// A driver whose timers are a millisecond late sends at once what is due within one, up to 64 packets.
#[test]
fn coarse_timers_deepen_the_bucket() {
    for (mbps, depth) in [(1, 2_400), (192, 24_000), (100_000, 76_800)] {
        let mut bench = paced(Bandwidth::from_mbps(mbps), None);
        bench.path.set_timer_granularity(bench.now, ms(1));
        bench.wait(ms(1_000));
        assert_eq!(bench.path.pacing_budget(bench.now), depth, "{mbps}");
    }
}

#[test]
fn a_quantum_below_a_packet_still_lets_packets_go() {
    let mut bench = paced(Bandwidth::from_mbps(10), Some(ByteCount::new(1)));
    let times = follow(&mut bench, 101);
    assert!((times[100] - times[0]).abs_diff(ms(96)) < us(1));
}

#[test]
fn short_packets_cost_what_they_weigh() {
    let mut bench = paced(Bandwidth::from_mbps(8), None);
    let start = bench.now;
    let mut sent = 0_u64;
    while sent < 100_000 {
        bench.now = bench.path.pacing_release(bench.now).max(bench.now);
        bench.send_size(100, false);
        sent += 100;
    }
    // 1 byte in each microsecond, and one full packet's worth of waiting before the first
    let took = bench.now - start;
    assert!(took.abs_diff(ms(100)) <= us(2_400), "{took:?}");
}

#[test]
fn rate_comes_from_window_and_smoothed_rtt_if_the_controller_names_none() {
    let mut bench = Bench::with(|_| {});
    bench.set_cwnd(packets(100));
    bench.sample_rtt(ms(50), ms(0));
    spend(&mut bench);
    let times = follow(&mut bench, 101);
    // 1.25 * 100 packets each 50 ms
    assert!((times[100] - times[0]).abs_diff(ms(40)) < us(10));
    bench.cc.script().pacing.gain = 2.0;
    bench.ack(&[]);
    let times = follow(&mut bench, 101);
    assert!((times[100] - times[0]).abs_diff(ms(25)) < us(500));
}

#[test]
fn the_rate_is_initialised_anew_at_the_first_rtt_sample() {
    let mut bench = Bench::with(|config| config.initial_rtt = ms(1));
    spend(&mut bench);
    let before = bench.path.pacing_release(bench.now) - bench.now;
    bench.sample_rtt(ms(100), ms(0));
    let after = bench.path.pacing_release(bench.now) - bench.now;
    let ratio = after.as_nanos() / before.as_nanos().max(1);
    assert!((95..=105).contains(&ratio), "{before:?} and {after:?}");
}

#[test]
fn idle_time_earns_no_more_than_an_initial_window() {
    let mut bench = paced(Bandwidth::from_mbps(10), None);
    let sent: Vec<_> = bench.send_many(5);
    bench.wait(ms(100));
    // Packets in flight: the depth for a flow at 10 Mbit/s is two packets.
    assert_eq!(bench.path.pacing_budget(bench.now), 2_400);
    let first: Vec<_> = bench.send_many(1);
    let all = ByteCount::new(bench.path.bytes_in_flight().get());
    bench.ack(&sent);
    bench.ack(&first);
    bench.path.on_discard(all);
    bench.ack(&[]);
    bench.wait(ms(3_600_000));
    assert_eq!(bench.path.pacing_budget(bench.now), 12_000);
    assert_eq!(spend(&mut bench), 12_000);
}

#[test]
fn time_in_flight_does_not_count_as_idle() {
    let mut bench = paced(Bandwidth::from_mbps(10), None);
    let everything = bench.path.bytes_in_flight();
    bench.wait(ms(100));
    bench.path.on_discard(everything - packets(1));
    let last = Packet {
        snapshot: DeliverySnapshot::default(),
        ..bench.send()
    };
    bench.path.on_discard(packets(1));
    bench.wait(ms(100));
    bench.ack(&[last]);
    assert!(bench.path.bytes_in_flight().is_zero());
    assert_eq!(bench.path.pacing_budget(bench.now), 2_400);
}

#[test]
fn credit_of_a_late_timer_is_kept_while_data_wait() {
    // A driver that wakes every 3 ms, whatever was asked: at 100 Mbit/s that is three times the
    // depth of the bucket.
    let run = |tell: bool| {
        let mut bench = paced(Bandwidth::from_mbps(100), None);
        let mut sent = 0;
        for _ in 0..1_000 {
            if tell {
                bench.path.on_pacer_blocked(bench.now, packets(1_000));
            }
            bench.wait(ms(3));
            sent += spend(&mut bench);
        }
        sent
    };
    let ideal = Bandwidth::from_mbps(100).bytes_in(ms(3_000));
    assert!(run(true).abs_diff(ideal) < ideal / 100);
    assert!(
        run(false) <= 1_000 * 12_000,
        "without waiting data the depth holds"
    );
}

#[test]
fn credit_of_a_late_timer_is_bounded_and_expires_without_data() {
    let mut bench = paced(Bandwidth::from_mbps(100), None);
    bench.path.on_pacer_blocked(bench.now, packets(1_000));
    bench.wait(ms(60_000));
    let budget = bench.path.pacing_budget(bench.now) as u64;
    assert!(
        budget <= 12_000 + Bandwidth::from_mbps(100).bytes_in(ms(5)),
        "{budget}"
    );
    bench.path.set_app_limited(bench.now);
    assert_eq!(bench.path.pacing_budget(bench.now), 12_000);
}

#[test]
fn waiting_for_the_window_earns_no_late_credit() {
    let mut bench = paced(Bandwidth::from_mbps(100), None);
    bench.path.on_pacer_blocked(bench.now, packets(1_000));
    bench.path.on_window_blocked();
    bench.wait(ms(50));
    assert_eq!(bench.path.pacing_budget(bench.now), 12_000);
}

#[test]
fn a_rate_of_zero_still_sends_within_the_probe_timeout() {
    let mut bench = paced(Bandwidth::ZERO, None);
    let times = follow(&mut bench, 10);
    let largest = times.windows(2).map(|w| w[1] - w[0]).max().unwrap();
    assert!(largest <= bench.path.pto_base() + us(1), "{largest:?}");
}

#[test]
fn extreme_rates_and_times_do_not_overflow() {
    let mut bench = paced(Bandwidth::MAX, Some(ByteCount::MAX));
    bench.now = Instant::from_nanos(u64::MAX - 1);
    assert_eq!(bench.path.pacing_release(bench.now), bench.now);
    bench.send();
    let mut zero_rtt = Bench::with(|_| {});
    zero_rtt.sample_rtt(ms(0), ms(0));
    zero_rtt.wait(ms(1));
    assert_eq!(zero_rtt.path.pacing_release(zero_rtt.now), zero_rtt.now);
    let mut nan = Bench::with(|_| {});
    nan.cc.script().pacing.gain = f64::NAN;
    nan.sample_rtt(ms(10), ms(0));
    assert!(!follow(&mut nan, 30).is_empty());
}

#[test]
fn the_release_time_does_not_move_when_asked_again() {
    let mut bench = paced(Bandwidth::from_bps(9_999_991), None);
    let release = bench.path.pacing_release(bench.now);
    while bench.now < release {
        assert_eq!(bench.path.pacing_release(bench.now), release);
        bench.now = (bench.now + Duration::from_nanos(77_777)).min(release);
    }
    assert_eq!(bench.path.pacing_release(release), release);
    assert!(bench.path.pacing_budget(release) >= usize::from(MDS));
}

#[test]
fn probes_are_debited_but_the_debt_is_bounded() {
    let mut bench = paced(Bandwidth::from_mbps(1), None);
    let before = bench.path.pacing_release(bench.now);
    bench.send_size(MDS, true);
    let after = bench.path.pacing_release(bench.now);
    assert!((after - before).abs_diff(us(9_600)) < us(1));
    for _ in 0..1_000 {
        bench.send_size(MDS, true);
    }
    // at most the depth (two packets) in debt, and one packet's credit
    assert!(bench.path.pacing_release(bench.now) - bench.now <= us(3 * 9_600 + 1));
}

#[test]
fn credit_for_lateness_still_counts_a_moment_later() {
    let mut bench = paced(Bandwidth::from_mbps(100), None);
    bench.path.on_pacer_blocked(bench.now, packets(1_000));
    bench.wait(ms(4));
    let credit = bench.path.pacing_budget(bench.now);
    assert!(credit > 40_000, "{credit}");
    bench.wait(us(10));
    assert_eq!(
        bench.path.pacing_budget(bench.now),
        credit,
        "neither cut to the depth nor grown"
    );
}
