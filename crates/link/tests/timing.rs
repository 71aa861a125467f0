//! When packets arrive: serialisation, propagation, constant rates.

use std::time::Duration;

use swiftwater_link::{Jitter, Link, LinkConfig, Packet, Rate};
use swiftwater_units::{Bandwidth, Instant};

const T0: Instant = Instant::ZERO;

fn ms(millis: u64) -> Instant {
    Instant::from_millis(millis)
}

/// A packet that is `size` bytes on the wire.
fn packet(size: usize) -> Packet<Vec<u8>> {
    Packet::new(vec![0; size - 28])
}

/// Arrival times of all packets in transit.
fn arrivals(link: &mut Link<Vec<u8>>) -> Vec<Instant> {
    let mut times = Vec::new();
    while let Some(at) = link.next_event() {
        if times.last() != Some(&at) {
            let before = at - Duration::from_nanos(1);
            assert!(link.poll(before).is_none(), "arrived early");
        }
        assert!(link.poll(at).is_some(), "announced, but not there");
        times.push(at);
    }
    times
}

#[test]
fn serialisation_and_propagation_add_up() {
    let config = LinkConfig::default()
        .rate(Bandwidth::from_mbps(100))
        .delay(Duration::from_micros(15_300));
    let mut link = Link::new(config, 1, T0).unwrap();
    for _ in 0..3 {
        link.enqueue(T0, packet(1500));
    }
    // 1500 bytes at 100 Mbit/s take 120 us.
    let expected = [15_420, 15_540, 15_660].map(Instant::from_micros);
    assert_eq!(arrivals(&mut link), expected);
}

#[test]
fn an_idle_link_starts_anew() {
    let config = LinkConfig::default().rate(Bandwidth::from_mbps(12));
    let mut link = Link::new(config, 1, ms(5)).unwrap();
    link.enqueue(ms(10), packet(1500));
    assert_eq!(link.next_event(), Some(ms(11)));
    assert!(link.poll(ms(11)).is_some());
    link.enqueue(ms(100), packet(1500));
    assert_eq!(link.next_event(), Some(ms(101)));
}

#[test]
fn rounding_errors_do_not_add_up() {
    // 8000 bits at 3 Mbit/s are 2666666.67 ns; 3000 packets take exactly 8 s.
    let config = LinkConfig::default().rate(Bandwidth::from_mbps(3));
    let mut link = Link::new(config, 1, T0).unwrap();
    for _ in 0..3000 {
        link.enqueue(T0, packet(1000));
    }
    let times = arrivals(&mut link);
    assert_eq!(times[0], Instant::from_nanos(2_666_667));
    assert_eq!(times[1], Instant::from_nanos(5_333_334));
    assert_eq!(times[2], ms(8));
    assert_eq!(times[2999], ms(8000));
}

#[test]
fn an_unlimited_rate_costs_no_time() {
    let config = LinkConfig::default().delay(Duration::from_millis(7));
    let mut link = Link::new(config, 1, T0).unwrap();
    link.enqueue(ms(1), packet(60_000));
    link.enqueue(ms(1), packet(60_000));
    assert_eq!(arrivals(&mut link), [ms(8), ms(8)]);
    assert_eq!(link.queue_stats(ms(8)).max_bytes.get(), 0);
}

#[test]
fn overhead_is_configurable() {
    let config = LinkConfig::default()
        .rate(Bandwidth::from_mbps(8))
        .per_packet_overhead(0);
    let mut link = Link::new(config, 1, T0).unwrap();
    link.enqueue(T0, Packet::new(vec![0; 1000]));
    link.enqueue(T0, Packet::new(vec![]));
    assert_eq!(arrivals(&mut link), [ms(1), ms(1)]);
}

#[test]
fn jitter_keeps_the_order_and_its_bounds() {
    for jitter in [
        Jitter::Uniform(Duration::from_millis(20)),
        Jitter::Normal {
            mean: Duration::from_millis(10),
            deviation: Duration::from_millis(3),
        },
    ] {
        let config = LinkConfig::default()
            .delay(Duration::from_millis(10))
            .jitter(jitter);
        let mut link = Link::new(config, 7, T0).unwrap();
        let mut delays = Vec::new();
        for number in 0..2000u32 {
            let sent = ms(u64::from(number));
            link.enqueue(sent, Packet::new(number.to_be_bytes().to_vec()));
        }
        for number in 0..2000u32 {
            let at = link.next_event().unwrap();
            assert_eq!(link.poll(at).unwrap().payload, number.to_be_bytes());
            delays.push(at - ms(u64::from(number)));
        }
        assert_eq!(link.counters().reordered.packets.get(), 0);
        assert!(
            delays
                .iter()
                .all(|delay| *delay >= Duration::from_millis(10))
        );
        assert!(
            delays
                .iter()
                .all(|delay| *delay <= Duration::from_millis(30))
        );
        assert!(
            delays
                .iter()
                .any(|delay| *delay < Duration::from_millis(18))
        );
        assert!(
            delays
                .iter()
                .any(|delay| *delay > Duration::from_millis(22))
        );
    }
}

#[test]
fn spread_out_packets_see_the_jitter_that_was_asked_for() {
    let (mean, deviation) = (Duration::from_millis(50), Duration::from_millis(5));
    let config = LinkConfig::default().jitter(Jitter::Normal { mean, deviation });
    let mut link = Link::new(config, 3, T0).unwrap();
    let delays: Vec<f64> = (0..20_000)
        .map(|i| {
            let sent = ms(1000 * i);
            link.enqueue(sent, packet(100));
            let at = link.next_event().unwrap();
            link.poll(at);
            (at - sent).as_secs_f64() * 1e3
        })
        .collect();
    let count = delays.len() as f64;
    let mean = delays.iter().sum::<f64>() / count;
    let variance = delays
        .iter()
        .map(|delay| (delay - mean).powi(2))
        .sum::<f64>()
        / count;
    assert!((mean - 50.0).abs() < 0.15, "mean {mean}");
    assert!(
        (variance.sqrt() - 5.0).abs() < 0.15,
        "deviation {}",
        variance.sqrt()
    );
}

#[test]
fn time_that_goes_back_is_held() {
    let mut link = Link::new(LinkConfig::default(), 1, ms(10)).unwrap();
    link.enqueue(ms(20), packet(100));
    link.enqueue(ms(5), packet(100));
    assert_eq!(link.next_event(), Some(ms(20)));
    assert!(link.poll(ms(6)).is_some());
    assert_eq!(link.next_event(), Some(ms(20)));
}

#[test]
fn the_ends_of_time_and_size_are_safe() {
    let config = LinkConfig::default().rate(Rate::Constant(Bandwidth::from_bps(1)));
    let mut link = Link::new(config, 1, T0).unwrap();
    // 16 MB at 1 bit/s take four years each: a few hundred don't fit into time.
    for _ in 0..300 {
        link.enqueue(T0, packet(1 << 24));
    }
    link.enqueue(Instant::FAR_FUTURE, packet(1500));
    assert!(link.next_event().is_some());
    while link.poll(Instant::FAR_FUTURE).is_some() {}
    assert_eq!(link.next_event(), None);
}
