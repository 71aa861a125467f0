//! Faults that begin and end while a link is in use.

use std::time::Duration;

use swiftwater_link::{
    DropReason, Link, LinkCondition, LinkConfig, LinkConfigError, LossModel, Packet,
};
use swiftwater_units::{Bandwidth, Instant};

const DELAY: Duration = Duration::from_millis(10);

fn link(config: LinkConfig) -> Link<Vec<u8>> {
    Link::new(config, 3, Instant::ZERO).unwrap()
}

/// When a packet that is sent at `at` arrives, in milliseconds; `None` if it is dropped.
fn sent(link: &mut Link<Vec<u8>>, at: u64) -> Option<u64> {
    let dropped = link.enqueue(Instant::from_millis(at), Packet::new(vec![0]));
    assert!(dropped.is_none_or(|dropped| dropped.reason == DropReason::Random));
    let arrival = link.next_event()?;
    link.poll(arrival).unwrap();
    Some(arrival.as_nanos() / 1_000_000)
}

#[test]
fn a_cut_link_passes_nothing_until_it_is_restored() {
    let mut link = link(LinkConfig::default().delay(DELAY));
    link.enqueue(Instant::ZERO, Packet::new(vec![0]));
    let cut = LinkCondition {
        cut: true,
        ..LinkCondition::default()
    };
    link.set_condition(Instant::from_millis(5), cut).unwrap();
    assert_eq!(link.condition(), cut);
    // It was on the link already.
    assert!(link.poll(Instant::from_millis(10)).is_some());
    assert_eq!(sent(&mut link, 20), None);
    let restored = LinkCondition::default();
    link.set_condition(Instant::from_millis(30), restored)
        .unwrap();
    assert_eq!(sent(&mut link, 30), Some(40));
    assert_eq!(link.counters().dropped_random.packets.get(), 1);
}

#[test]
fn loss_comes_on_top_of_that_of_the_link() {
    let mut link = link(LinkConfig::default().loss(LossModel::Bernoulli(0.5)));
    let condition = LinkCondition {
        loss: 0.5,
        ..LinkCondition::default()
    };
    link.set_condition(Instant::ZERO, condition).unwrap();
    let count = 10_000;
    let arrived = (0..count).filter(|_| sent(&mut link, 0).is_some()).count();
    let share = arrived as f64 / f64::from(count);
    assert!((share - 0.25).abs() < 0.02, "{share}");
}

#[test]
fn a_fault_does_not_change_which_packets_the_link_loses() {
    let lossy = || LinkConfig::default().loss(LossModel::Bernoulli(0.3));
    let mut plain = link(lossy());
    let mut slow = link(lossy());
    let condition = LinkCondition {
        delay_factor: 10.0,
        ..LinkCondition::default()
    };
    slow.set_condition(Instant::ZERO, condition).unwrap();
    for _ in 0..1000 {
        let fates = [&mut plain, &mut slow].map(|link| sent(link, 0).is_some());
        assert_eq!(fates[0], fates[1]);
    }
}

#[test]
fn delays_become_longer_behind_any_queue() {
    for queue in ["droptail", "codel"] {
        let config = LinkConfig::default()
            .delay(DELAY)
            .rate(Bandwidth::from_mbps(1000))
            .queue(queue.parse().unwrap());
        let mut link = link(config);
        assert_eq!(sent(&mut link, 0), Some(10));
        let condition = LinkCondition {
            delay_factor: 10.0,
            ..LinkCondition::default()
        };
        link.set_condition(Instant::from_millis(20), condition)
            .unwrap();
        link.enqueue(Instant::from_millis(20), Packet::new(vec![0]));
        assert!(link.poll(Instant::from_millis(119)).is_none(), "{queue}");
        assert!(link.poll(Instant::from_millis(121)).is_some(), "{queue}");
    }
}

#[test]
fn values_out_of_range_are_refused() {
    let mut link = link(LinkConfig::default());
    for (loss, delay_factor) in [
        (1.1, 1.0),
        (f64::NAN, 1.0),
        (0.0, 0.5),
        (0.0, f64::INFINITY),
    ] {
        let condition = LinkCondition {
            cut: true,
            loss,
            delay_factor,
        };
        let refused = link.set_condition(Instant::ZERO, condition).unwrap_err();
        assert!(matches!(
            refused,
            LinkConfigError::Probability { .. } | LinkConfigError::DelayFactor { .. }
        ));
    }
    assert_eq!(link.condition(), LinkCondition::default());
}
