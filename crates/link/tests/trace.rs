//! Traces: formats, sample-and-hold, wrap-around, packet opportunities, models.

use std::time::Duration;

use swiftwater_link::{Link, LinkConfig, LinkConfigError, Packet, Trace, TraceSample, TraceUse};
use swiftwater_units::{Bandwidth, Instant};

const HEADER: &str = "t_ms,rate_kbps,rtt_ms,loss\n";

fn ms(millis: u64) -> Instant {
    Instant::from_millis(millis)
}

fn csv(lines: &str) -> Trace {
    Trace::parse_csv(&format!("{HEADER}{lines}")).unwrap()
}

fn link(config: LinkConfig) -> Link<Vec<u8>> {
    Link::new(config, 1, Instant::ZERO).unwrap()
}

/// Sends a packet of `size` bytes on the wire at `now`; when does it arrive?
fn arrival(link: &mut Link<Vec<u8>>, now: Instant, size: usize) -> Instant {
    link.enqueue(now, Packet::new(vec![0; size - 28]));
    let at = link.next_event().unwrap();
    assert!(link.poll(at).is_some());
    at
}

#[test]
fn a_rate_holds_until_the_next_sample() {
    // 12 Mbit/s for 10 ms, 1.2 Mbit/s for 10 ms.
    let mut link = link(LinkConfig::default().rate(csv("0,12000,,\n10,1200,,\n")));
    assert_eq!(arrival(&mut link, ms(0), 1500), ms(1));
    assert_eq!(arrival(&mut link, ms(9), 1500), ms(10));
    assert_eq!(arrival(&mut link, ms(10), 150), ms(11));
    // Half of it in the fast sample, the rest ten times slower.
    let mut link = self::link(link.config().clone());
    assert_eq!(
        arrival(&mut link, Instant::from_micros(9_500), 1500),
        ms(15)
    );
    // From the slow sample into the repetition: 750 bytes until 20 ms, then 750 in 0.5 ms.
    assert_eq!(
        arrival(&mut link, ms(15), 1500),
        Instant::from_micros(20_500)
    );
}

#[test]
fn a_rate_of_zero_stalls() {
    let mut link = link(LinkConfig::default().rate(csv("0,12000,,\n10,0,,\n50,12000,,\n60,0,,\n")));
    assert_eq!(
        arrival(&mut link, Instant::from_micros(9_500), 1500),
        Instant::from_micros(50_500)
    );
    assert_eq!(arrival(&mut link, ms(65), 1500), ms(71));
}

#[test]
fn many_repetitions_pass_at_once() {
    // 1500 bytes in 100 ms: 1000 s for 15 MB, and the last of 15 MB is done when the first
    // millisecond of the last repetition is.
    let mut link = link(LinkConfig::default().rate(csv("0,12000,,\n1,0,,\n2,0,,\n51,0,,\n")));
    assert_eq!(link.config().rate.mean(), Some(Bandwidth::from_kbps(120)));
    assert_eq!(arrival(&mut link, ms(0), 15_000_000), ms(999_901));
    assert_eq!(arrival(&mut link, ms(999_950), 1500), ms(1_000_001));
    // Long idle, far away.
    assert_eq!(
        arrival(&mut link, ms(10_000_000_000), 1500),
        ms(10_000_000_001)
    );
}

#[test]
fn rounding_errors_do_not_add_up_over_samples() {
    // 3 Mbit/s in samples of 7 ms; one second carries 375 packets of 1000 bytes.
    let lines: Vec<_> = (0..1000).map(|i| format!("{},3000,,", i * 7)).collect();
    let mut link = link(LinkConfig::default().rate(csv(&lines.join("\n"))));
    for _ in 0..375 {
        link.enqueue(ms(0), Packet::new(vec![0; 972]));
    }
    let mut last = ms(0);
    while let Some(at) = link.next_event() {
        link.poll(at);
        last = at;
    }
    assert_eq!(last, ms(1000));
}

#[test]
fn half_the_round_trip_time_is_the_delay() {
    let trace = csv("0,,20,\n100,,,\n200,,50.5,\n");
    let config = LinkConfig::default()
        .trace(&trace, TraceUse::all(&trace))
        .delay(Duration::from_millis(1));
    let mut link = link(config);
    assert_eq!(arrival(&mut link, ms(0), 100), ms(11));
    assert_eq!(arrival(&mut link, ms(150), 100), ms(161));
    assert_eq!(
        arrival(&mut link, ms(250), 100),
        Instant::from_micros(276_250)
    );
    // Back to 10 ms at 300 ms, but not past the packet sent just before.
    link.enqueue(Instant::from_micros(299_999), Packet::new(vec![1]));
    link.enqueue(ms(300), Packet::new(vec![2]));
    assert_eq!(link.poll(ms(400)).unwrap().payload, [1]);
    assert_eq!(link.poll(ms(400)).unwrap().payload, [2]);
}

#[test]
fn a_link_may_start_within_the_trace() {
    let config = LinkConfig::default().rate(csv("0,12000,,\n10,1200,,\n"));
    let mut link = link(config.trace_offset(Duration::from_millis(30)));
    assert_eq!(arrival(&mut link, ms(0), 150), ms(1));
    assert_eq!(arrival(&mut link, ms(10), 1500), ms(11));
}

#[test]
fn gaps_are_filled_with_the_value_before() {
    let trace = csv("0,,30,\n10,5000,,\n30,,40,\n");
    let samples: Vec<_> = trace.samples().collect();
    let sample = |at, rtt| TraceSample {
        at: Duration::from_millis(at),
        rate: Some(Bandwidth::from_mbps(5)),
        rtt: Some(Duration::from_millis(rtt)),
        loss: None,
    };
    assert_eq!(samples, [sample(0, 30), sample(10, 30), sample(30, 40)]);
    // The last holds as long as the one before it.
    assert_eq!(trace.period(), Duration::from_millis(50));
    assert_eq!(trace.mean_rtt(), Some(Duration::from_millis(34)));
    assert_eq!(
        (trace.has_rate(), trace.has_rtt(), trace.has_loss()),
        (true, true, false)
    );
    assert_eq!(Trace::parse_csv(&trace.to_csv()), Ok(trace));
}

#[test]
fn of_samples_at_the_same_time_the_last_counts() {
    let trace = csv("0,1,,\n0,2,30,\n10,4,,\n20,6,,\n20,,50,\n");
    let rates: Vec<_> = trace.samples().filter_map(|sample| sample.rate).collect();
    assert_eq!(rates, [2, 4, 6].map(Bandwidth::from_kbps));
    assert_eq!(trace.period(), Duration::from_millis(30));
    assert_eq!(trace.mean_rate(), Some(Bandwidth::from_kbps(4)));
}

#[test]
fn means_are_weighted_by_time_and_scaling_scales_them() {
    let trace = csv("0,1000,,\n30,5000,,\n40,3000,,\n");
    assert_eq!(trace.mean_rate(), Some(Bandwidth::from_kbps(2200)));
    assert_eq!(
        trace.scaled(1.5).mean_rate(),
        Some(Bandwidth::from_kbps(3300))
    );
    let error = LinkConfig::default()
        .rate(trace.scaled(f64::NAN))
        .validate();
    assert_eq!(error, Err(LinkConfigError::TraceAlwaysZero));
    let ups = Trace::parse_mahimahi("1\n3\n6\n").unwrap();
    assert_eq!(ups.mean_rate(), Some(Bandwidth::from_mbps(6)));
    assert_eq!(ups.scaled(2.0).mean_rate(), Some(Bandwidth::from_mbps(12)));
}

#[test]
fn opportunities_carry_1500_bytes_each() {
    let mut link =
        link(LinkConfig::default().rate(Trace::parse_mahimahi("1\n1\n4\n10\n").unwrap()));
    let mut at = |now, size| arrival(&mut link, now, size);
    assert_eq!(at(ms(0), 1500), ms(1));
    // Small packets share the second one, also those that arrive at exactly this time; a packet
    // that doesn't fit ends in the next.
    assert_eq!(at(ms(0), 700), ms(1));
    assert_eq!(at(ms(1), 700), ms(1));
    assert_eq!(at(ms(1), 101), ms(4));
    assert_eq!(at(ms(1), 1499), ms(4));
    // The opportunity at 10 ms passes unused; after it all repeats.
    assert_eq!(at(Instant::from_nanos(10_000_001), 1500), ms(11));
    assert_eq!(at(ms(11), 4000), ms(20));
    // The rest of an opportunity isn't kept for later arrivals.
    assert_eq!(at(Instant::from_nanos(20_000_001), 100), ms(21));
    // Arriving together with an opportunity is early enough, also at the end of the period.
    assert_eq!(at(ms(24), 1500), ms(24));
    assert_eq!(at(ms(30), 1500), ms(30));
    assert_eq!(at(ms(50), 1500), ms(50));
}

#[test]
fn opportunities_at_both_ends_of_the_period_count() {
    let mut link = link(LinkConfig::default().rate(Trace::parse_mahimahi("0\n5\n").unwrap()));
    for _ in 0..5 {
        link.enqueue(ms(0), Packet::new(vec![0; 1472]));
    }
    let times: Vec<_> = (0..5)
        .map(|_| {
            let at = link.next_event().unwrap();
            link.poll(at);
            at
        })
        .collect();
    assert_eq!(times, [ms(0), ms(5), ms(5), ms(10), ms(10)]);
    assert_eq!(
        arrival(&mut link, ms(1_000_000_003), 1500),
        ms(1_000_000_005)
    );
}

#[test]
fn formats_are_distinguished() {
    assert!(
        Trace::detect("\n0\n7\n")
            .unwrap()
            .samples()
            .next()
            .is_none()
    );
    assert_eq!(
        Trace::detect(&format!("\u{feff}{HEADER}0,5,,\r\n"))
            .unwrap()
            .samples()
            .count(),
        1
    );
    let error = Trace::detect("hello\n").unwrap_err().to_string();
    assert!(
        error.contains("hello") && error.contains("Mahimahi"),
        "{error}"
    );
    assert!(Trace::detect("\n \n").is_err());
}

#[test]
fn errors_name_the_line_and_what_was_expected() {
    let csv = |lines: &str| {
        Trace::parse_csv(&format!("{HEADER}{lines}"))
            .unwrap_err()
            .to_string()
    };
    let mahimahi = |text: &str| Trace::parse_mahimahi(text).unwrap_err().to_string();
    for (error, parts) in [
        (
            csv("0,1,,\n\n5,fast,,\n"),
            ["line 4", "rate_kbps", "'fast'"],
        ),
        (csv("0,1,,\n5,-1,,\n"), ["line 3", "rate_kbps", "'-1'"]),
        (csv("0,inf,,\n"), ["line 2", "rate_kbps", "'inf'"]),
        (csv("0,1,,\n5,1,,1.5\n"), ["line 3", "loss", "from 0 to 1"]),
        (csv("0,1,x,\n"), ["line 2", "rtt_ms", "'x'"]),
        (csv("0,1,,\n5,1\n"), ["line 3", "2 fields", "expected 4"]),
        (csv("0,1,,,,\n"), ["line 2", "6 fields", "expected 4"]),
        (
            csv("0,1,,\n5,1,,\n4,1,,\n"),
            ["line 4", "t_ms", "no less than"],
        ),
        (csv("3,1,,\n"), ["line 2", "t_ms", "expected 0"]),
        (csv("0.5,1,,\n"), ["line 2", "t_ms", "whole number"]),
        (
            csv("0,1,,\n99999999999999,1,,\n"),
            ["line 3", "t_ms", "a year"],
        ),
        (
            mahimahi("1\n\n5 ms\n"),
            ["line 3", "'5 ms'", "whole number"],
        ),
        (mahimahi("3\n2\n"), ["line 2", "'2'", "no less than"]),
        (mahimahi("0\n0\n"), ["last opportunity", "0 ms", "period"]),
    ] {
        for part in parts {
            assert!(error.contains(part), "{error} lacks {part}");
        }
    }
    let error = Trace::parse_csv("time,rate\n0,1\n")
        .unwrap_err()
        .to_string();
    assert!(
        error.contains("line 1") && error.contains("t_ms,rate_kbps"),
        "{error}"
    );
}

#[test]
fn a_trace_must_have_what_it_is_used_for() {
    let trace = csv("0,1000,,\n");
    for (config, column) in [
        (LinkConfig::default().delay_trace(trace.clone()), "rtt_ms"),
        (LinkConfig::default().loss_trace(trace.clone()), "loss"),
        (LinkConfig::default().rate(csv("0,,5,\n")), "rate_kbps"),
    ] {
        let error = config.validate().unwrap_err().to_string();
        assert!(error.contains(column), "{error}");
    }
}

#[test]
fn models_keep_to_their_parameters() {
    let length = Duration::from_secs(600);
    let mean = |trace: &Trace| trace.mean_rate().unwrap().as_mbps_f64();
    for seed in 0..5 {
        let lte = Trace::synthetic_lte(seed, length);
        assert_eq!(lte.period(), length);
        assert!((10.0..21.0).contains(&mean(&lte)), "{}", mean(&lte));
        let dead = lte
            .samples()
            .filter(|sample| sample.rate == Some(Bandwidth::ZERO))
            .count();
        assert!(
            (1..300).contains(&dead),
            "{dead} of 6000 samples without rate"
        );
        assert_eq!(lte, Trace::synthetic_lte(seed, length));
        assert_ne!(lte, Trace::synthetic_lte(seed + 1, length));

        let wifi = Trace::synthetic_wifi(seed, length);
        assert!((22.0..38.0).contains(&mean(&wifi)), "{}", mean(&wifi));
        let loss = wifi.samples().filter_map(|sample| sample.loss).sum::<f64>() / 30_000.0;
        assert!((0.004..0.03).contains(&loss), "{loss}");

        let leo = Trace::synthetic_leo(seed, length);
        assert!((50.0..70.0).contains(&mean(&leo)), "{}", mean(&leo));
    }
    assert_eq!(Trace::synthetic_lte(1, Duration::ZERO).samples().count(), 1);
    assert_eq!(
        Trace::synthetic_lte(1, Duration::MAX).period(),
        Duration::from_secs(3600)
    );
}
