//! Rules for every version of BBR: what goes into the model, and what comes out of it. Most are
//! mistakes that other implementations made and repaired.

use std::time::Duration;

use crate::feed::{Feed, INITIAL, MDS};
use swiftwater_congestion::blocks::{
    AckAggregation, FullPipe, Gain, MaxBandwidth, MinRtt, PacingRate, ProbeRtt, ProbeRttStep,
    Refresh,
};
use swiftwater_units::{Bandwidth, ByteCount, Instant};

const ALL: [&str; 4] = ["bbr1", "bbr1-xquic", "bbr2", "bbr3"];

fn mbps(mbps: u64) -> Bandwidth {
    Bandwidth::from_mbps(mbps)
}

fn at(millis: u64) -> Instant {
    Instant::from_millis(millis)
}

fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

// Section: bandwidth.

#[test]
fn the_window_follows_the_model_not_what_was_acked_in_total() {
    for name in ALL {
        let mut feed = Feed::settled(name);
        for _ in 0..20 {
            feed.rounds(50);
            assert!(feed.cwnd() <= 4 * feed.bdp(), "{name}: {}", feed.cwnd());
        }
    }
}

#[test]
fn app_limited_samples_count_if_they_raise_the_estimate_and_never_lower_it() {
    for name in ALL {
        let mut feed = Feed::new(name);
        feed.app_limited = true;
        feed.rate = mbps(2);
        feed.rounds(5);
        assert!((feed.max_mbps() - 2.0).abs() < 0.01, "{name}: not empty");
        feed.rate = mbps(8);
        feed.rounds(2);
        assert!((feed.max_mbps() - 8.0).abs() < 0.01, "{name}: raised");
        feed.rate = mbps(1);
        feed.rounds(400);
        assert!(
            (feed.max_mbps() - 8.0).abs() < 0.01,
            "{name}: not discarded"
        );
    }
}

#[test]
fn samples_of_a_slower_path_replace_old_ones() {
    for (name, rounds) in [("bbr1", 12), ("bbr2", 200), ("bbr3", 200)] {
        let mut feed = Feed::settled(name);
        let queue = 2 * feed.bdp();
        feed.rate = mbps(3);
        for _ in 0..rounds {
            let drains = feed.state() == "probe_rtt";
            feed.inflight = Some(if drains { 0 } else { queue });
            feed.rounds(1);
        }
        let estimate = feed.max_mbps();
        assert!((estimate - 3.0).abs() < 0.01, "{name}: {estimate}");
    }
}

#[test]
fn a_bandwidth_sample_counts_for_its_window_only() {
    let mut filter = MaxBandwidth::new(2);
    filter.on_sample(1, mbps(9), false);
    filter.on_sample(2, mbps(5), false);
    filter.on_sample(3, mbps(4), false);
    assert_eq!(filter.get(), mbps(9));
    filter.on_sample(4, mbps(4), true);
    assert_eq!(
        filter.get(),
        mbps(9),
        "a limited sample lets nothing expire"
    );
    filter.on_sample(4, mbps(4), false);
    assert_eq!(filter.get(), mbps(5));
}

#[test]
fn rates_far_beyond_34_gbit_do_not_wrap() {
    for name in ALL {
        let mut feed = Feed::new(name);
        feed.rate = mbps(400_000);
        feed.rounds(30);
        assert!((feed.max_mbps() - 400_000.0).abs() < 1.0, "{name}");
        assert!(feed.cwnd() > feed.bdp() / 4, "{name}");
    }
}

// Section: full pipe.

#[test]
fn a_plateau_of_three_rounds_ends_startup() {
    for name in ALL {
        let mut feed = Feed::new(name);
        for step in 0..5 {
            feed.rate = mbps(1 << step);
            feed.rounds(1);
            assert_eq!(feed.state(), "startup", "{name} at {step}");
        }
        feed.inflight = Some(10 * feed.bdp());
        feed.rounds(2);
        assert_eq!(feed.state(), "startup", "{name}: two flat rounds");
        feed.rounds(2);
        assert_eq!(feed.state(), "drain", "{name}");
    }
}

#[test]
fn app_limited_rounds_do_not_count_towards_a_full_pipe() {
    for name in ALL {
        let mut feed = Feed::new(name);
        feed.app_limited = true;
        feed.rounds(50);
        assert_eq!(feed.state(), "startup", "{name}");
        feed.app_limited = false;
        feed.rounds(6);
        assert_ne!(feed.state(), "startup", "{name}");
    }
}

#[test]
fn growth_at_the_threshold_is_growth() {
    let mut pipe = FullPipe::new(Gain::new(1.25), 3);
    for rate in [100, 125, 157, 158, 159] {
        pipe.on_round(Bandwidth::from_kbps(rate), false);
        assert!(!pipe.is_full_now());
    }
    pipe.on_round(Bandwidth::from_kbps(160), true);
    assert!(!pipe.is_full_now(), "a limited round says nothing");
    pipe.on_round(Bandwidth::from_kbps(160), false);
    assert!(pipe.is_full_now() && pipe.was_full());
    pipe.look_again();
    assert!(!pipe.is_full_now() && pipe.was_full());
}

// Section: pacing.

#[test]
fn the_rate_is_set_anew_at_the_first_round_trip_time() {
    for (name, gain) in [("bbr1", 2.885), ("bbr2", 2.885), ("bbr3", 2.77)] {
        let mut feed = Feed::new(name);
        feed.app_limited = true;
        feed.rate = Bandwidth::from_kbps(100);
        feed.ack();
        // An initial window per measured round trip, not per millisecond.
        let expected = gain * INITIAL as f64 * 8.0 / 0.040 / 1e6;
        assert!(
            (feed.pacing_mbps() - expected).abs() < 0.01,
            "{name}: {}",
            feed.pacing_mbps()
        );
    }
}

#[test]
fn the_rate_only_rises_until_the_pipe_was_full() {
    for name in ALL {
        let mut feed = Feed::new(name);
        feed.app_limited = true;
        feed.rate = mbps(8);
        feed.rounds(2);
        let before = feed.pacing_mbps();
        feed.rate = mbps(1);
        feed.rounds(50);
        assert!(feed.pacing_mbps() >= before, "{name}");
    }
}

#[test]
fn the_rate_stays_a_percent_below_the_estimate() {
    for name in ALL {
        let mut feed = Feed::settled(name);
        feed.until(&["probe_bw_cruise"], 100);
        feed.ack();
        let ratio = feed.pacing_mbps() / feed.max_mbps();
        assert!((ratio - 0.99).abs() < 1e-6, "{name}: {ratio}");
    }
}

#[test]
fn the_rate_is_never_zero() {
    let mut rate = PacingRate::new(0.01, Gain::new(2.0));
    rate.set(Bandwidth::ZERO, Gain::UNITY, true);
    rate.set(mbps(1), Gain::new(0.0), true);
    assert_eq!(rate.get(), None);
    let feed = Feed::new("bbr3");
    let pacing = rate.pacing(ByteCount::ZERO, ByteCount::new(MDS), &feed.rtt_view());
    assert!(pacing.rate.unwrap() > Bandwidth::ZERO);
}

#[test]
fn bursts_are_a_millisecond_within_two_packets_and_64_kib() {
    let quantum = |bandwidth| {
        let mut rate = PacingRate::new(0.0, Gain::UNITY);
        rate.set(bandwidth, Gain::UNITY, true);
        rate.send_quantum(ByteCount::new(MDS)).get()
    };
    assert_eq!(quantum(Bandwidth::from_kbps(10)), 2 * MDS);
    assert_eq!(quantum(mbps(80)), 10_000);
    assert_eq!(quantum(mbps(10_000)), 64 * 1024);
}

// Section: round-trip time.

#[test]
fn min_rtt_outlives_the_probe_that_measures_it_anew() {
    let mut min = MinRtt::new(at(0), ms(5_000), ms(10_000), Refresh::Lower);
    min.on_sample(at(10), ms(40));
    min.on_sample(at(5_011), ms(70));
    assert!(min.probe_is_due());
    assert_eq!(
        min.get(),
        Some(ms(40)),
        "the old estimate stands in the probe"
    );
    min.on_sample(at(5_100), ms(45));
    assert!(!min.probe_is_due());
    min.on_probe_done(at(5_200));
    min.on_sample(at(10_150), ms(80));
    assert_eq!(min.get(), Some(ms(45)), "then that of the probe");
    assert!(!min.probe_is_due(), "an interval from the end of the last");
    min.on_sample(at(10_201), ms(80));
    assert!(min.probe_is_due());
}

#[test]
fn an_equal_round_trip_time_confirms_only_where_it_should() {
    for (refresh, due) in [(Refresh::EqualOrLower, false), (Refresh::Lower, true)] {
        let mut min = MinRtt::new(at(0), ms(5_000), ms(10_000), refresh);
        min.on_sample(at(10), ms(40));
        min.on_sample(at(4_000), ms(40));
        min.on_sample(at(5_500), ms(60));
        assert_eq!(min.probe_is_due(), due, "{refresh:?}");
    }
}

#[test]
fn probe_rtt_lasts_its_time_and_a_round() {
    let mut probe = ProbeRtt::new(ms(200));
    probe.enter();
    assert_eq!(probe.on_ack(at(10), false, true), ProbeRttStep::Draining);
    assert_eq!(probe.on_ack(at(20), true, false), ProbeRttStep::Started);
    assert_eq!(probe.on_ack(at(100), true, true), ProbeRttStep::Holding);
    assert_eq!(probe.on_ack(at(221), true, false), ProbeRttStep::Done);
    probe.enter();
    assert_eq!(probe.on_ack(at(300), true, false), ProbeRttStep::Started);
    assert_eq!(probe.on_ack(at(900), true, false), ProbeRttStep::Holding);
    assert_eq!(probe.on_ack(at(901), true, true), ProbeRttStep::Done);
}

#[test]
fn samples_in_probe_rtt_are_marked_as_limited() {
    for name in ALL {
        let mut feed = Feed::settled(name);
        assert!(!feed.cc.uses_app_limited_mark());
        feed.rtt = ms(50);
        feed.until(&["probe_rtt"], 400);
        assert!(feed.cc.uses_app_limited_mark(), "{name}");
        feed.inflight = Some(0);
        feed.rounds(8);
        assert_ne!(feed.state(), "probe_rtt", "{name}");
        assert!(!feed.cc.uses_app_limited_mark());
    }
}

#[test]
fn a_probe_rtt_window_is_not_saved_as_good() {
    for name in ALL {
        let mut feed = Feed::settled(name);
        feed.rounds(5);
        let before = feed.cwnd();
        feed.rtt = ms(41);
        feed.until(&["probe_rtt"], 400);
        feed.rounds(1);
        assert!(
            feed.cwnd() < before / 2,
            "{name}: {} of {before}",
            feed.cwnd()
        );
        // A loss meanwhile must not take the small window for the one to return to.
        feed.lose(1, 1);
        feed.inflight = Some(0);
        feed.until(
            &[
                "probe_bw_up",
                "probe_bw_down",
                "probe_bw_cruise",
                "probe_bw_refill",
            ],
            20,
        );
        assert!(
            feed.cwnd() >= before * 8 / 10,
            "{name}: {} of {before}",
            feed.cwnd()
        );
    }
}

/// Draft, A.18.
#[test]
fn probe_rtt_before_the_pipe_was_full_returns_to_startup() {
    for name in ALL {
        let mut feed = Feed::new(name);
        feed.app_limited = true;
        feed.rounds(1);
        feed.rtt = ms(50);
        feed.until(&["probe_rtt"], 400);
        feed.inflight = Some(0);
        feed.rounds(8);
        assert_eq!(feed.state(), "startup", "{name}");
    }
}

/// Draft, A.10.
#[test]
fn idle_time_replaces_probe_rtt() {
    for name in ALL {
        let mut feed = Feed::settled(name);
        feed.rounds(3);
        feed.app_limited = true;
        feed.ack();
        feed.idle(Duration::from_secs(11));
        feed.ack();
        assert_ne!(feed.state(), "probe_rtt", "{name}");
    }
}

#[test]
fn a_flow_restarts_from_idle_at_exactly_the_bandwidth() {
    for name in ALL {
        let mut feed = Feed::settled(name);
        feed.rounds(3);
        feed.app_limited = true;
        feed.ack();
        let window = feed.cwnd();
        feed.idle(Duration::from_secs(1));
        assert!(
            (feed.pacing_mbps() / feed.max_mbps() - 0.99).abs() < 1e-6,
            "{name}"
        );
        assert_eq!(feed.cwnd(), window, "{name}");
    }
}

#[test]
fn idle_time_without_data_limits_is_no_restart() {
    // The pacer lets one packet go at a time: nothing is in flight before each.
    for name in ALL {
        let mut feed = Feed::settled(name);
        feed.rtt = ms(50);
        for _ in 0..3_000 {
            feed.idle(ms(1));
            feed.ack();
            if feed.state() == "probe_rtt" {
                break;
            }
        }
        assert_eq!(feed.state(), "probe_rtt", "{name}");
    }
}

// Section: aggregation.

/// Draft, A.11 and A.12.
#[test]
fn data_acknowledged_in_lumps_raise_the_window() {
    let mut aggregation = AckAggregation::new(at(0));
    let cwnd = ByteCount::new(100_000);
    // 8 Mbit/s are 1000 bytes per millisecond; 10 ms' worth comes at once.
    for n in 1..=20 {
        let acked = ByteCount::new(10_000);
        aggregation.on_ack(at(10 * n), acked, mbps(8), cwnd, (n, 10));
    }
    assert_eq!(aggregation.extra(), ByteCount::new(10_000));
    // Smooth and a bit slower from then on: the lumps leave the filter with their rounds.
    for n in 1..=400 {
        let acked = ByteCount::new(900);
        aggregation.on_ack(at(200 + n), acked, mbps(8), cwnd, (20 + n / 20, 10));
    }
    assert!(
        aggregation.extra() <= ByteCount::new(2_000),
        "{}",
        aggregation.extra()
    );
}

#[test]
fn an_excess_never_exceeds_the_window() {
    let mut aggregation = AckAggregation::new(at(0));
    let cwnd = ByteCount::new(5_000);
    aggregation.on_ack(at(1), ByteCount::new(90_000), mbps(1), cwnd, (1, 10));
    assert_eq!(aggregation.extra(), cwnd);
}
