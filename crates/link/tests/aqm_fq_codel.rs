//! FQ-CoDel (RFC 8290) on a link.

use crate::support;

use std::time::Duration;

use support::{Driver, Fate, Stream, at, load, ms, slow};
use swiftwater_link::{
    AqmState, Buffer, CoDelConfig, DropReason, Ecn, FqCoDelConfig, QueueDiscipline,
};
use swiftwater_units::{Instant, PacketCount};

fn fq_codel() -> QueueDiscipline {
    QueueDiscipline::FqCoDel(FqCoDelConfig::default())
}

/// Separate queues, but no packet is dropped for its delay.
fn fair_only(flows: u32) -> QueueDiscipline {
    let day = Duration::from_secs(24 * 60 * 60);
    QueueDiscipline::FqCoDel(FqCoDelConfig {
        codel: CoDelConfig {
            interval: day,
            ..CoDelConfig::default()
        },
        flows,
        ..FqCoDelConfig::default()
    })
}

/// A packet of 200 bytes every 50 ms.
fn sparse(flow: u64) -> Stream {
    Stream {
        flow,
        from: Instant::from_micros(7_300),
        gap: ms(50),
        len: 172,
        ecn: Ecn::NotEct,
    }
}

fn longest(driver: &Driver, flow: u64) -> Duration {
    driver
        .of(flow)
        .map(support::Outcome::latency)
        .max()
        .unwrap()
}

#[test]
fn flows_of_unequal_rates_get_equal_shares() {
    for (discipline, fair) in [(fq_codel(), true), (QueueDiscipline::DropTail, false)] {
        let config = slow()
            .queue(discipline)
            .buffer(Buffer::Packets(PacketCount::new(100)));
        let mut driver = Driver::new(config, 1);
        let streams = [load(1, 0.75, Ecn::NotEct), load(2, 1.5, Ecn::NotEct)];
        driver.run(&streams, at(10_000), |_| {});
        let ratio = driver.carried(2) / driver.carried(1);
        if fair {
            assert!((ratio - 1.0).abs() < 0.02, "{ratio}");
        } else {
            assert!(ratio > 1.5, "{ratio}");
        }
        let total = driver.carried(1) + driver.carried(2);
        assert!((total / 15e6 - 1.0).abs() < 0.01, "{total}");
    }
}

#[test]
fn a_flow_within_its_share_gets_what_it_sends() {
    let mut driver = Driver::new(slow().queue(fq_codel()), 1);
    let streams = [load(1, 0.4, Ecn::NotEct), load(2, 3.0, Ecn::NotEct)];
    driver.run(&streams, at(5_000), |_| {});
    assert!(driver.of(1).all(support::Outcome::arrived));
    assert!(driver.of(2).any(|each| !each.arrived()));
}

#[test]
fn shares_are_of_bytes_not_of_packets() {
    let mut driver = Driver::new(slow().queue(fq_codel()), 1);
    let small = Stream {
        gap: Duration::from_micros(200),
        len: 272,
        ..load(1, 1.0, Ecn::NotEct)
    };
    driver.run(&[small, load(2, 1.0, Ecn::NotEct)], at(5_000), |_| {});
    let ratio = driver.carried(2) / driver.carried(1);
    assert!((ratio - 1.0).abs() < 0.05, "{ratio}");
}

#[test]
fn a_sparse_flow_does_not_wait_for_the_bulk() {
    let streams = || {
        [
            load(1, 1.5, Ecn::NotEct),
            load(2, 1.5, Ecn::NotEct),
            sparse(3),
        ]
    };
    let mut driver = Driver::new(slow().queue(fq_codel()), 1);
    driver.run(&streams(), at(5_000), |_| {});
    // The packet in service, and its own 133 µs.
    assert!(driver.of(3).all(support::Outcome::arrived));
    assert!(longest(&driver, 3) < ms(1) + Duration::from_micros(140));
    assert!(longest(&driver, 1) > ms(50));
    // In one queue it waits like all others.
    let mut driver = Driver::new(slow().queue(fair_only(1)), 1);
    driver.run(&streams(), at(5_000), |_| {});
    assert!(longest(&driver, 3) > ms(50));
}

#[test]
fn a_full_buffer_costs_the_longest_queue() {
    let config = slow()
        .queue(fair_only(1_024))
        .buffer(Buffer::Packets(PacketCount::new(50)));
    let mut driver = Driver::new(config, 1);
    let streams = [load(1, 0.3, Ecn::NotEct), load(2, 2.0, Ecn::NotEct)];
    driver.run(&streams, at(2_000), |driver| {
        assert!(driver.link.queue_stats(driver.now).packets <= PacketCount::new(50));
    });
    assert!(driver.of(1).all(support::Outcome::arrived));
    let evicted = |each: &&support::Outcome| each.fate == Fate::Dropped(DropReason::Queue);
    let evicted = driver.of(2).filter(evicted).count() as u64;
    // The head of the long queue is dropped, not the arriving packet.
    assert!(evicted > 2_000);
    assert_eq!(driver.link.counters().dropped_queue.packets.get(), evicted);
    assert_eq!(driver.link.counters().dropped_aqm.packets.get(), 0);
}

#[test]
fn a_packet_that_finds_no_room_in_an_empty_queue_of_its_own_is_refused() {
    let config = slow()
        .queue(fair_only(1_024))
        .buffer(Buffer::Packets(PacketCount::new(1)));
    let mut driver = Driver::new(config, 1);
    driver.send(at(0), 1, 1472, Ecn::NotEct);
    driver.send(at(0), 2, 1472, Ecn::NotEct);
    assert_eq!(driver.outcomes.len(), 1);
    assert_eq!(driver.outcomes[0].fate, Fate::Refused(DropReason::Queue));
}

#[test]
fn queues_that_have_nothing_to_send_leave_the_lists() {
    let listed = |driver: &Driver| match driver.link.aqm_state() {
        AqmState::FqCoDel { new, old } => new + old,
        _ => panic!("another discipline"),
    };
    let mut driver = Driver::new(slow().queue(fq_codel()), 1);
    for flow in 0..20 {
        driver.send(at(0), flow, 1472, Ecn::NotEct);
    }
    // Collisions are possible.
    assert!((15..=20).contains(&listed(&driver)));
    driver.send(at(30), 99, 1472, Ecn::NotEct);
    assert_eq!(listed(&driver), 1);
    driver.advance(at(40));
    let AqmState::FqCoDel { new: 0, old: 0 } = driver.link.aqm_state() else {
        panic!("{:?}", driver.link.aqm_state());
    };
}

#[test]
fn the_seed_decides_which_flows_collide() {
    // Two flows over four queues: one seed in four makes them share one.
    let shares_queue = |seed| {
        let mut driver = Driver::new(slow().queue(fair_only(4)), seed);
        for _ in 0..10 {
            driver.send(at(0), 1, 1472, Ecn::NotEct);
        }
        driver.send(at(0), 2, 1472, Ecn::NotEct);
        driver.advance(at(100));
        longest(&driver, 2) > ms(9)
    };
    let shared = (0..400).filter(|seed| shares_queue(*seed)).count();
    assert!((60..=140).contains(&shared), "{shared}");
}
