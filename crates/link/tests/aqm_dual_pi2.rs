//! DualPI2 (RFC 9332) on a link.

use crate::support;

use std::time::Duration;

use support::{Driver, Fate, Law, Stream, Window, Windows, at, load, ms, slow};
use swiftwater_link::{
    AqmState, DelayStats, DropReason, DualPi2Config, DualPi2State, DualQueueScheduler, Ecn,
    LinkConfig, QueueDiscipline,
};
use swiftwater_units::{Bandwidth, PacketCount};

fn with(config: DualPi2Config) -> LinkConfig {
    slow().queue(QueueDiscipline::DualPi2(config))
}

fn state(driver: &Driver) -> DualPi2State {
    match driver.link.aqm_state() {
        AqmState::DualPi2(state) => state,
        _ => panic!("another discipline"),
    }
}

/// A tenth of the link in small packets, so that the L4S queue itself is no reason to mark.
fn light_l4s() -> Stream {
    Stream {
        flow: 1,
        from: at(0) + Duration::from_micros(300),
        gap: ms(1),
        len: 122,
        ecn: Ecn::Ect1,
    }
}

#[test]
fn codepoints_choose_the_queue() {
    let mut driver = Driver::new(with(DualPi2Config::default()), 1);
    driver.send(at(0), 0, 1472, Ecn::NotEct);
    for ecn in [Ecn::NotEct, Ecn::Ect0, Ecn::Ect0, Ecn::Ect1, Ecn::Ce] {
        driver.send(at(0), 1, 1472, ecn);
    }
    let state = state(&driver);
    assert_eq!(state.classic.packets, PacketCount::new(3));
    assert_eq!(state.l4s.packets, PacketCount::new(2));
}

#[test]
fn l4s_packets_are_marked_from_the_threshold_on() {
    // Eight at once: the first waits not at all, the next 1 ms, 2 ms and so on.
    let marks = |config| {
        let mut driver = Driver::new(with(config), 1);
        for _ in 0..8 {
            driver.send(at(0), 1, 1472, Ecn::Ect1);
        }
        driver.advance(at(20));
        let outcomes = driver.outcomes.iter();
        outcomes.map(support::Outcome::marked).collect::<Vec<_>>()
    };
    let step = |threshold| DualPi2Config {
        l4s_threshold: threshold,
        l4s_range: Duration::ZERO,
        l4s_min: PacketCount::ZERO,
        ..DualPi2Config::default()
    };
    // The decimator's sum must exceed one: the first packet above the threshold is not marked.
    let expect = |first_marked: usize| (0..8).map(|i| i >= first_marked).collect::<Vec<_>>();
    assert_eq!(marks(step(ms(1))), expect(3));
    assert_eq!(marks(step(ms(4))), expect(6));
    assert_eq!(marks(step(ms(7))), expect(8));
    // The ramp from 1 to 5 ms: 0, 1/4, 2/4 and so on.
    let ramp = DualPi2Config {
        l4s_range: ms(4),
        ..step(ms(3))
    };
    let sums = [0.0, 0.0, 0.25, 0.75, 1.5, 1.5, 1.5, 1.5];
    let expected: Vec<_> = sums.iter().map(|sum| *sum > 1.0).collect();
    assert_eq!(marks(ramp), expected);
    // With only the head left, nothing.
    let lone = DualPi2Config {
        l4s_min: PacketCount::new(1),
        ..step(ms(1))
    };
    assert_eq!(
        marks(lone),
        [false, false, false, true, true, true, true, false]
    );
}

#[test]
fn both_queues_signal_as_the_coupling_says() {
    let mut driver = Driver::new(with(DualPi2Config::default()), 1);
    // 20 ms of classic packets that stay, since the load is what the link carries: the delay is
    // above the target, and the base probability rises slowly.
    for _ in 0..20 {
        driver.send(at(0), 2, 1472, Ecn::Ect0);
    }
    let streams = [load(2, 0.9, Ecn::Ect0), light_l4s()];
    let (mut squared, mut coupled, mut base, mut packets) = (0.0, 0.0, 0.0_f64, 0.0);
    driver.run(&streams, at(6_000), |driver| {
        let state = state(driver);
        assert!((state.classic_probability - state.base.powi(2)).abs() < 1e-12);
        let k_base = (2.0 * state.base).min(1.0);
        assert!((state.coupled_probability - k_base).abs() < 1e-12);
        squared += state.classic_probability;
        coupled += state.coupled_probability;
        packets += 1.0;
        base = base.max(state.base);
    });
    assert!((0.2..0.5).contains(&base), "{base}");
    let state = state(&driver);
    let share = |marked: PacketCount, sent: PacketCount| marked.get() as f64 / sent.get() as f64;
    let l4s = share(state.l4s.marked, state.l4s.sent);
    let classic = share(state.classic.marked, state.classic.sent);
    let (expected_l4s, expected_classic) = (coupled / packets, squared / packets);
    assert!(
        (l4s / expected_l4s - 1.0).abs() < 0.02,
        "{l4s} {expected_l4s}"
    );
    assert!(
        (classic / expected_classic - 1.0).abs() < 0.04,
        "{classic} {expected_classic}"
    );
    // An L4S packet waits for the one in service, and occasionally one more.
    assert!(state.l4s.delay.max <= ms(2), "{:?}", state.l4s.delay);
    assert!(state.classic.delay.mean > ms(15));
    assert_eq!(driver.link.counters().dropped().packets.get(), 0);
}

fn mean_between(delay: DelayStats, low: Duration, high: Duration) {
    assert!(delay.mean > low && delay.mean < high, "{delay:?}");
}

#[test]
fn a_scalable_and_a_classic_flow_share_the_link_and_not_the_delay() {
    for scheduler in [
        DualQueueScheduler::Weighted(0.1),
        DualQueueScheduler::TimeShifted(ms(30)),
    ] {
        let config = DualPi2Config {
            scheduler,
            ..DualPi2Config::default()
        };
        let config = with(config).rate(Bandwidth::from_mbps(40));
        let mut driver = Driver::new(config, 1);
        let windows = vec![
            Window::new(1, Ecn::Ect1, Law::Scalable),
            Window::new(2, Ecn::Ect0, Law::Reno),
        ];
        let mut windows = Windows::new(windows, ms(15));
        windows.run(&mut driver, at(5_000));
        driver.link.reset_queue_stats(driver.now);
        let before = [driver.carried(1), driver.carried(2)];
        windows.run(&mut driver, at(25_000));
        let state = state(&driver);
        mean_between(
            state.l4s.delay,
            Duration::ZERO,
            Duration::from_micros(1_200),
        );
        assert!(state.l4s.delay.p99 < ms(4), "{:?}", state.l4s.delay);
        mean_between(state.classic.delay, ms(10), ms(20));
        let carried = [driver.carried(1) - before[0], driver.carried(2) - before[1]];
        let used = (carried[0] + carried[1]) / (40e6 / 8.0 * 20.0);
        assert!(used > 0.97, "{used}");
        let ratio = carried[0] / carried[1];
        assert!((0.5..2.5).contains(&ratio), "{ratio}");
        // Scalable congestion control loses nothing.
        assert!(driver.of(1).all(support::Outcome::arrived));
    }
}

#[test]
fn a_scalable_flow_alone_has_a_queue_of_a_millisecond() {
    let config = with(DualPi2Config::default()).rate(Bandwidth::from_mbps(40));
    let mut driver = Driver::new(config, 1);
    let mut windows = Windows::new(vec![Window::new(1, Ecn::Ect1, Law::Scalable)], ms(15));
    windows.run(&mut driver, at(3_000));
    driver.link.reset_queue_stats(driver.now);
    let before = driver.carried(1);
    windows.run(&mut driver, at(13_000));
    let state = state(&driver);
    mean_between(
        state.l4s.delay,
        Duration::from_micros(300),
        Duration::from_micros(1_300),
    );
    let used = (driver.carried(1) - before) / (40e6 / 8.0 * 10.0);
    assert!(used > 0.97, "{used}");
}

#[test]
fn under_overload_marks_turn_into_drops() {
    // What doesn't respond to marks: half of the load more than the link carries.
    for ecn in [Ecn::NotEct, Ecn::Ect0, Ecn::Ect1] {
        let mut driver = Driver::new(with(DualPi2Config::default()), 1);
        driver.run(&[load(1, 1.5, ecn)], at(10_000), |_| {});
        driver.link.reset_queue_stats(driver.now);
        let before = driver.link.counters().dropped_aqm.packets.get();
        driver.run(
            &[Stream {
                from: at(10_000),
                ..load(1, 1.5, ecn)
            }],
            at(30_000),
            |_| {},
        );
        // A third of the arriving packets.
        let dropped = driver.link.counters().dropped_aqm.packets.get() - before;
        assert!((9_700..=10_300).contains(&dropped), "{ecn:?}: {dropped}");
        // And the delay is at the target, not at the buffer's end.
        let delay = driver.link.queue_stats(driver.now).delay;
        mean_between(delay, ms(10), ms(20));
        assert!(
            driver
                .outcomes
                .iter()
                .all(|each| each.arrived() || each.fate == Fate::Dropped(DropReason::Aqm))
        );
    }
}

#[test]
fn the_classic_queue_gets_its_share_even_if_l4s_takes_all() {
    let config = DualPi2Config {
        scheduler: DualQueueScheduler::Weighted(0.2),
        // No drops for the moment.
        target: Duration::from_secs(100),
        ..DualPi2Config::default()
    };
    let mut driver = Driver::new(with(config), 1);
    let streams = [load(1, 2.0, Ecn::Ect1), load(2, 1.0, Ecn::NotEct)];
    driver.run(&streams, at(2_000), |_| {});
    let share = driver.carried(2) / (driver.carried(1) + driver.carried(2));
    assert!((share - 0.2).abs() < 0.01, "{share}");
}

#[test]
fn shifted_time_lets_old_classic_packets_overtake() {
    let config = DualPi2Config {
        scheduler: DualQueueScheduler::TimeShifted(ms(5)),
        ..DualPi2Config::default()
    };
    let mut driver = Driver::new(with(config), 1);
    for _ in 0..3 {
        driver.send(at(0), 2, 1472, Ecn::NotEct);
    }
    for n in 0..20 {
        driver.send(at(0) + Duration::from_micros(900) * n, 1, 1472, Ecn::Ect1);
    }
    driver.advance(at(40));
    let order: Vec<_> = driver.outcomes.iter().map(|each| each.probe.flow).collect();
    // One classic packet is in service already; the others wait until L4S packets are less than
    // 5 ms younger in effect.
    assert_eq!(order[..5], [2, 1, 1, 1, 1]);
    let second = order.iter().skip(1).position(|flow| *flow == 2).unwrap();
    assert!((4..10).contains(&second), "{order:?}");
}
