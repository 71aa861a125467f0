//! CoDel (RFC 8289) on a link.

use crate::support;

use std::time::Duration;

use support::{Driver, Fate, T0, at, load, ms, slow};
use swiftwater_link::{
    AqmState, Buffer, CoDelConfig, DropReason, Ecn, EcnThreshold, LinkConfigError, QueueDiscipline,
};
use swiftwater_units::{ByteCount, Instant};

fn codel() -> QueueDiscipline {
    QueueDiscipline::CoDel(CoDelConfig::default())
}

fn drop_times(driver: &Driver) -> Vec<Instant> {
    let dropped = |each: &&support::Outcome| each.fate == Fate::Dropped(DropReason::Aqm);
    let outcomes = driver.outcomes.iter().filter(dropped);
    outcomes.map(|each| each.at).collect()
}

#[test]
fn under_an_overload_drops_follow_the_control_law() {
    let mut driver = Driver::new(slow().queue(codel()), 1);
    driver.run(&[load(1, 1.1, Ecn::NotEct)], at(1_800), |_| {});
    let drops = drop_times(&driver);
    // Packet n arrives at n / 1.1 ms and is dequeued at n ms: the 55th waits for 5 ms, and the
    // first drop is an interval after its dequeue.
    let first = drops[0].saturating_since(T0);
    assert!(first >= ms(155) && first <= ms(157), "{first:?}");
    // The sum of interval / sqrt(n), each when the transmitter is free next.
    let mut due = drops[0];
    for (n, &time) in drops.iter().enumerate().skip(1) {
        due += Duration::from_secs_f64(0.1 / (n as f64).sqrt());
        let late = time.saturating_since(due - Duration::from_micros(1));
        assert!(
            time + Duration::from_micros(1) >= due && late < ms(1) + ms(1) / 10,
            "{n}: {late:?}"
        );
    }
    // The first n of 1 / sqrt(i) sum up to 2 sqrt(n) - 1.46.
    let intervals = (at(1_800) - drops[0]).as_secs_f64() / 0.1;
    let expected = (0.5 * (intervals + 1.46)).powi(2);
    let count = drops.len() as f64;
    assert!((count / expected - 1.0).abs() < 0.05, "{count} {expected}");
    let AqmState::CoDel { dropping, count } = driver.link.aqm_state() else {
        panic!("another discipline");
    };
    assert!(dropping && count as usize == drops.len());
}

#[test]
fn an_overload_does_not_grow_a_queue_for_ever() {
    let mut driver = Driver::new(slow().queue(codel()), 1);
    let overload = [load(1, 1.1, Ecn::NotEct)];
    driver.run(&overload, at(30_000), |_| {});
    // Where a queue without control has 3000 packets after 30 s.
    let stats = driver.link.queue_stats(at(30_000));
    assert!(stats.max_packets.get() < 150, "{stats:?}");
    assert!(stats.delay.mean < ms(75), "{stats:?}");
    let mut uncontrolled = Driver::new(slow(), 1);
    uncontrolled.run(&overload, at(30_000), |_| {});
    assert!(uncontrolled.link.queue_stats(at(30_000)).max_packets.get() > 2_900);
}

#[test]
fn below_the_target_nothing_is_dropped() {
    let mut driver = Driver::new(slow().queue(codel()), 1);
    // Every 20 ms five packets at once: the last waits for 4 ms, forever.
    for burst in 0..1_000 {
        for _ in 0..5 {
            driver.send(at(20 * burst), 1, 1472, Ecn::NotEct);
        }
    }
    driver.advance(at(21_000));
    assert_eq!(driver.link.counters().dropped().packets.get(), 0);
    assert_eq!(driver.link.queue_stats(driver.now).delay.max, ms(4));
}

#[test]
fn bursts_shorter_than_an_interval_pass() {
    let mut driver = Driver::new(slow().queue(codel()), 1);
    // 90 packets, 90 ms: above the target but not for an interval.
    for burst in 0..20 {
        for _ in 0..90 {
            driver.send(at(100 * burst), 1, 1472, Ecn::NotEct);
        }
    }
    driver.advance(at(3_000));
    assert_eq!(driver.link.counters().dropped().packets.get(), 0);
    assert!(driver.link.queue_stats(driver.now).delay.max > ms(80));
}

#[test]
fn capable_packets_are_marked_and_others_dropped() {
    let run = |ecn, config| {
        let mut driver = Driver::new(slow().queue(QueueDiscipline::CoDel(config)), 1);
        driver.run(&[load(1, 1.1, ecn)], at(1_000), |_| {});
        let counters = driver.link.counters();
        (
            counters.dropped_aqm.packets.get(),
            counters.ecn_marked.packets.get(),
        )
    };
    let default = CoDelConfig::default();
    let (drops, marks) = run(Ecn::NotEct, default);
    assert!(drops > 10 && marks == 0);
    for ecn in [Ecn::Ect0, Ecn::Ect1] {
        let (drops, marks) = run(ecn, default);
        assert!(drops == 0 && marks > 10);
    }
    let without = CoDelConfig {
        ecn: false,
        ..default
    };
    assert_eq!(run(Ecn::Ect0, without), run(Ecn::NotEct, default));
    // A mark that was there is no mark of this queue.
    assert_eq!(run(Ecn::Ce, default), (0, 0));
}

#[test]
fn the_buffer_is_a_limit_all_the_same() {
    let config = slow()
        .queue(codel())
        .buffer(Buffer::Bytes(ByteCount::new(15_000)));
    let mut driver = Driver::new(config, 1);
    driver.run(&[load(1, 2.0, Ecn::NotEct)], at(100), |_| {});
    let counters = driver.link.counters();
    assert_eq!(counters.dropped_aqm.packets.get(), 0);
    assert!(counters.dropped_queue.packets.get() > 80);
    assert_eq!(
        driver.link.queue_stats(driver.now).max_bytes,
        ByteCount::new(15_000)
    );
    assert!(
        driver
            .outcomes
            .iter()
            .all(|each| each.arrived() || each.fate == Fate::Refused(DropReason::Queue))
    );
}

#[test]
fn a_step_of_marks_is_for_drop_tail() {
    let config = slow()
        .queue(codel())
        .ecn_threshold(EcnThreshold::Delay(ms(1)));
    assert_eq!(
        config.validate(),
        Err(LinkConfigError::EcnThresholdWithoutDropTail)
    );
}

#[test]
fn the_link_says_when_its_transmitter_turns_to_the_next_packet() {
    let mut driver = Driver::new(slow().delay(ms(50)).queue(codel()), 1);
    let link = &mut driver.link;
    for number in 0..2 {
        let probe = support::Probe {
            flow: 1,
            number,
            sent: T0,
            len: 1472,
        };
        link.enqueue(T0, swiftwater_link::Packet::new(probe));
    }
    assert_eq!(link.next_event(), Some(at(1)));
    assert!(link.poll(at(1)).is_none());
    assert_eq!(link.next_event(), Some(at(51)));
    assert!(link.poll(at(51)).is_some());
    assert_eq!(link.next_event(), Some(at(52)));
    assert!(link.poll(at(52)).is_some());
    assert_eq!(link.next_event(), None);
}
