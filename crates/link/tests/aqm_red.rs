//! RED (Floyd and Jacobson 1993) on a link.

use crate::support;

use std::time::Duration;

use support::{Driver, Fate, Outcome, at, slow};
use swiftwater_link::{
    AqmState, Buffer, DropReason, Ecn, LinkConfig, QueueDiscipline, RedConfig, RedThreshold,
};
use swiftwater_units::{ByteCount, PacketCount};

/// From 10 to 30 packets.
fn config() -> RedConfig {
    RedConfig {
        min: RedThreshold::Packets(PacketCount::new(10)),
        max: RedThreshold::Packets(PacketCount::new(30)),
        ..RedConfig::default()
    }
}

fn with(red: RedConfig) -> LinkConfig {
    slow().queue(QueueDiscipline::Red(red))
}

fn state(driver: &Driver) -> (f64, f64) {
    let AqmState::Red {
        average,
        probability,
    } = driver.link.aqm_state()
    else {
        panic!("another discipline");
    };
    (average, probability)
}

/// A queue that always has this many packets when the next one arrives.
fn standing(red: RedConfig, packets: u64, ecn: Ecn, then: u64) -> Driver {
    let mut driver = Driver::new(with(red), 1);
    for _ in 0..packets {
        driver.send(at(0), 1, 1472, ecn);
    }
    // Half a millisecond into each packet.
    for n in 0..then {
        let now = at(n) + Duration::from_micros(500);
        driver.send(now, 1, 1472, ecn);
        driver.advance(at(n + 1));
    }
    driver
}

#[test]
fn the_average_follows_the_queue_slowly() {
    let driver = standing(config(), 20, Ecn::Ect0, 1_000);
    let queue = 30_000.0;
    let expected = queue * (1.0 - 0.998_f64.powi(1_000));
    let (average, _) = state(&driver);
    assert!(
        (average / expected - 1.0).abs() < 0.02,
        "{average} {expected}"
    );
}

#[test]
fn marks_rise_with_the_average() {
    // Gaps are uniform from 1 to 1/p: 2p / (1 + p) of packets are marked.
    for (packets, probability) in [(8, 0.0), (15, 0.025), (20, 0.05), (29, 0.095)] {
        let driver = standing(config(), packets, Ecn::Ect0, 30_000);
        let (_, now) = state(&driver);
        assert!((now - probability).abs() < 0.001, "{packets}: {now}");
        let late = driver.outcomes.iter().skip(5_000);
        let (all, marked) = late.fold((0.0, 0.0), |(all, marked), each| {
            (all + 1.0, marked + f64::from(u8::from(each.marked())))
        });
        let expected = 2.0 * probability / (1.0 + probability);
        let share = marked / all;
        assert!((share - expected).abs() < 0.005, "{packets}: {share}");
    }
}

#[test]
fn marks_are_spread_evenly() {
    let driver = standing(config(), 20, Ecn::Ect0, 30_000);
    let marks: Vec<_> = (0..driver.outcomes.len())
        .filter(|index| driver.outcomes[*index].marked())
        .collect();
    let gaps = marks.windows(2).map(|pair| pair[1] - pair[0]);
    // 1/p = 20, once the average is there.
    assert!(gaps.skip(400).all(|gap| (1..=21).contains(&gap)));
}

#[test]
fn what_cannot_be_marked_is_dropped_early() {
    let red = RedConfig {
        weight: 0.1,
        ..config()
    };
    for (ecn, config) in [
        (Ecn::NotEct, red),
        (Ecn::Ect0, RedConfig { ecn: false, ..red }),
    ] {
        let mut driver = Driver::new(with(config), 1);
        driver.run(&[support::load(1, 1.2, ecn)], at(5_000), |_| {});
        let counters = *driver.link.counters();
        assert_eq!(counters.ecn_marked.packets.get(), 0);
        assert_eq!(counters.dropped_queue.packets.get(), 0);
        let dropped = counters.dropped_aqm.packets.get();
        // All of the excess, except for the queue between the thresholds.
        assert!((900..=1_100).contains(&dropped), "{dropped}");
        let refused = |each: &&Outcome| each.fate == Fate::Refused(DropReason::Aqm);
        assert_eq!(
            driver.outcomes.iter().filter(refused).count() as u64,
            dropped
        );
        let stats = driver.link.queue_stats(driver.now);
        assert!(
            (15_000.0..60_000.0).contains(&stats.mean_bytes),
            "{stats:?}"
        );
    }
}

#[test]
fn from_twice_the_maximum_on_even_capable_packets_are_dropped() {
    let red = RedConfig {
        weight: 1.0,
        ..config()
    };
    let mut driver = Driver::new(with(red), 1);
    driver.run(&[support::load(1, 4.0, Ecn::Ect0)], at(1_000), |_| {});
    let stats = driver.link.queue_stats(driver.now);
    // A packet is let in by chance up to 60 packets in the queue.
    assert!(stats.max_packets <= PacketCount::new(61), "{stats:?}");
    assert!(driver.link.counters().dropped_aqm.packets.get() > 2_500);
}

#[test]
fn an_idle_queue_decays_its_average() {
    let red = RedConfig {
        weight: 0.01,
        ..config()
    };
    let mut driver = standing(red, 20, Ecn::Ect0, 1_000);
    let (before, _) = state(&driver);
    let idle_since = 1_020;
    driver.advance(at(idle_since + 100));
    driver.send(at(idle_since + 100), 1, 1472, Ecn::Ect0);
    let (after, _) = state(&driver);
    let expected = before * 0.99_f64.powi(100);
    assert!((after / expected - 1.0).abs() < 0.02, "{after} {expected}");
}

#[test]
fn thresholds_may_be_shares_of_the_buffer() {
    let shares = |min, max| {
        QueueDiscipline::Red(RedConfig {
            min: RedThreshold::Share(min),
            max: RedThreshold::Share(max),
            ..RedConfig::default()
        })
    };
    let bytes = slow().buffer(Buffer::Bytes(ByteCount::new(60_000)));
    assert_eq!(bytes.clone().queue(shares(0.2, 0.6)).validate(), Ok(()));
    let packets = slow().buffer(Buffer::Packets(PacketCount::new(40)));
    assert_eq!(packets.queue(shares(0.2, 0.6)).validate(), Ok(()));
    for (config, part) in [
        (slow().queue(shares(0.2, 0.6)), "set buffer"),
        (bytes.clone().queue(shares(0.6, 0.2)), "max must be above"),
        (bytes.queue(shares(0.0, 0.2)), "min"),
    ] {
        let error = config.validate().unwrap_err().to_string();
        assert!(error.contains(part), "{error}");
    }
}
