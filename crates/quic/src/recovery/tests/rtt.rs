//! Round-trip times and what is derived from them (RFC 9002, sections 5 and 6).

use super::*;

#[test]
fn before_the_first_sample_the_initial_rtt_is_assumed() {
    let bench = Bench::new();
    let rtt = bench.path.rtt();
    assert!(!rtt.has_sample);
    assert_eq!(rtt.smoothed, ms(333));
    assert_eq!(bench.path.first_rtt_sample_at(), None);
    assert_eq!(bench.path.pto_base(), ms(999));
    assert_eq!(bench.path.loss_thresholds().delay, us(374_625));
    assert_eq!(bench.path.loss_thresholds().packets, 3);
}

#[test]
fn first_sample_sets_everything_and_ignores_ack_delay() {
    let mut bench = Bench::new();
    bench.sample_rtt(ms(100), ms(20));
    let rtt = bench.path.rtt();
    assert_eq!(
        (rtt.latest, rtt.smoothed, rtt.var, rtt.min),
        (ms(100), ms(100), ms(50), ms(100))
    );
    assert!(rtt.has_sample);
    assert_eq!(bench.path.first_rtt_sample_at(), Some(bench.now));
}

#[test]
fn later_samples_are_weighted() {
    let mut bench = Bench::new();
    bench.sample_rtt(ms(100), ms(0));
    bench.wait(ms(1));
    bench.sample_rtt(ms(140), ms(0));
    let rtt = bench.path.rtt();
    assert_eq!(rtt.smoothed, ms(105));
    assert_eq!(rtt.var, us(47_500));
    assert_eq!(rtt.min, ms(100));
    bench.sample_rtt(ms(97), ms(0));
    assert_eq!(bench.path.rtt().smoothed, ms(104));
    assert_eq!(bench.path.rtt().var, us(37_625));
}

#[test]
fn ack_delay_is_subtracted_only_down_to_min_rtt() {
    let mut bench = Bench::new();
    bench.sample_rtt(ms(100), ms(0));
    bench.sample_rtt(ms(120), ms(20));
    assert_eq!(
        bench.path.rtt().latest,
        ms(100),
        "exactly min_rtt is left: subtracted"
    );
    assert_eq!(bench.path.rtt().smoothed, ms(100));
    bench.sample_rtt(ms(120), ms(21));
    assert_eq!(
        bench.path.rtt().latest,
        ms(120),
        "would fall below min_rtt: taken as measured"
    );
    bench.sample_rtt(ms(120), Duration::MAX);
    assert_eq!(bench.path.rtt().latest, ms(120));
}

#[test]
fn min_rtt_ignores_ack_delay() {
    let mut bench = Bench::new();
    bench.sample_rtt(ms(100), ms(0));
    bench.wait(ms(5));
    bench.sample_rtt(ms(90), ms(25));
    assert_eq!(bench.path.rtt().min, ms(90));
    assert_eq!(bench.path.rtt().min_at, bench.now);
    bench.wait(ms(5));
    bench.sample_rtt(ms(95), ms(25));
    assert_eq!(bench.path.rtt().min, ms(90));
}

#[test]
fn loss_delay_takes_the_larger_rtt_and_is_at_least_a_millisecond() {
    let mut bench = Bench::new();
    bench.sample_rtt(ms(80), ms(0));
    bench.sample_rtt(ms(160), ms(80));
    // latest_rtt as measured, not as adjusted
    assert_eq!(bench.path.loss_thresholds().delay, ms(180));
    bench.sample_rtt(ms(8), ms(0));
    assert_eq!(
        bench.path.loss_thresholds().delay,
        us(80_000 * 7 / 8 + 1_000) * 9 / 8
    );
    let mut fast = Bench::new();
    fast.sample_rtt(us(50), ms(0));
    assert_eq!(fast.path.loss_thresholds().delay, ms(1));
}

#[test]
fn pto_has_the_granularity_as_least_variation() {
    let mut bench = Bench::new();
    for _ in 0..200 {
        bench.sample_rtt(ms(40), ms(0));
    }
    assert_eq!(bench.path.pto_base(), ms(41));
    assert_eq!(bench.path.persistent_congestion_duration(ms(25)), ms(198));
}

#[test]
fn pto_count_is_counted_reported_and_reset() {
    let mut bench = Bench::new();
    bench.path.on_pto(bench.now, &mut bench.rng);
    bench.path.on_pto(bench.now, &mut bench.rng);
    assert_eq!(bench.path.pto_count(), 2);
    assert_eq!(bench.calls(), [Call::Pto(1), Call::Pto(2)]);
    bench.path.reset_pto_count();
    assert_eq!(bench.path.pto_count(), 0);
    assert_eq!(bench.path.stats().pto_count, 2);
}

#[test]
fn persistent_congestion_restarts_min_rtt() {
    let mut bench = Bench::new();
    bench.sample_rtt(ms(50), ms(0));
    bench.sample_rtt(ms(200), ms(0));
    assert_eq!(bench.path.rtt().min, ms(50));
    let mut lost = bench.send_many(2);
    bench.lose(&mut lost, true);
    assert_eq!(bench.path.rtt().min, ms(200));
}

#[test]
fn the_mean_takes_every_sample_as_measured() {
    let mut bench = Bench::new();
    assert_eq!(bench.path.mean_rtt(), ms(0));
    bench.sample_rtt(ms(100), ms(0));
    bench.sample_rtt(ms(140), ms(30));
    let config = bench.config.clone();
    bench
        .path
        .reset_for_new_path(bench.now, &config, config.initial_rtt, &mut bench.rng);
    let sent = bench.now;
    bench.wait(ms(60));
    bench.path.on_rtt_sample(bench.now, sent, ms(0));
    assert_eq!(bench.path.mean_rtt(), ms(100));
}
