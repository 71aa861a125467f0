//! What the strategies choose on networks whose best protocol is known.

use std::time::Duration;

use crate::world::{Conditions, NETWORK, World, origin, selector};
use swiftwater_select::{
    Arm, Boundary, Config, EventKind, Measured, Models, Outcome, Reason, RequestDescription,
    Selector, Strategy, SwitchCause, Trigger,
};
use swiftwater_units::Instant;

const MINUTE: Duration = Duration::from_secs(60);

fn browse(strategy: Strategy, conditions: Conditions) -> World {
    let mut world = World::new(selector(strategy), conditions, 3);
    world.browse(MINUTE);
    world
}

#[test]
fn an_experiment_of_four_and_four_finds_the_quicker_protocol() {
    for (tcp, quic, best) in [(80.0, 50.0, Arm::h3()), (50.0, 80.0, Arm::h2())] {
        let mut world = World::new(selector(Strategy::wise()), Conditions::new(tcp, quic), 3);
        // Not for so long that arms are compared again anyway.
        world.browse(Duration::from_secs(10));
        assert_eq!(world.current(), best);
        let stats = world.selector.stats();
        assert_eq!(stats.experiments, 1);
        assert_eq!(stats.with_reason("experiment"), 8);
    }
}

#[test]
fn the_requests_of_an_experiment_alternate() {
    let mut world = World::new(selector(Strategy::wise()), Conditions::new(80.0, 50.0), 3);
    let decisions: Vec<_> = (0..12).map(|_| world.send(true)).collect();
    let arms: Vec<&str> = decisions[..8].iter().map(|it| it.arm.name()).collect();
    assert_eq!(arms, ["h2", "h3", "h2", "h3", "h2", "h3", "h2", "h3"]);
    for (number, decision) in decisions[..8].iter().enumerate() {
        let expected = Reason::Experiment {
            trigger: Trigger::NewConnection,
            position: number as u32,
        };
        assert_eq!(decision.reason, expected);
    }
    // QUIC has not answered yet: further requests go over the arm that was selected last.
    for decision in &decisions[8..] {
        assert_eq!(
            (decision.arm.name(), decision.reason),
            ("h2", Reason::ExperimentWaits)
        );
    }
}

#[test]
fn both_arms_carry_as_many_requests_while_an_experiment_waits() {
    let mut world = World::new(selector(Strategy::wise()), Conditions::new(50.0, 80.0), 3);
    world.browse(Duration::from_secs(10));
    let (network, arm) = (world.network, Arm::h2());
    world
        .selector
        .on_connection(world.now, network, origin(), &arm);
    let decisions: Vec<_> = (0..12).map(|_| world.send(true)).collect();
    let further: Vec<_> = decisions[8..]
        .iter()
        .map(|it| (it.arm.name(), it.reason))
        .collect();
    let selected = ("h2", Reason::ExperimentWaits);
    let other = ("h3", Reason::Balanced);
    assert_eq!(further, [selected, other, selected, other]);
}

#[test]
fn an_arm_that_does_not_answer_gets_no_more_requests_than_are_in_flight_on_the_other() {
    let mut world = World::new(
        selector(Strategy::wise()),
        Conditions::new(50.0, 2_000.0),
        3,
    );
    for _ in 0..8 {
        world.send(true);
    }
    // TCP has answered, QUIC has not.
    let soon = world.now + Duration::from_millis(200);
    world.run_until(soon);
    for _ in 0..4 {
        let decision = world.send(true);
        assert_eq!(
            (decision.arm.name(), decision.reason),
            ("h2", Reason::ExperimentWaits)
        );
    }
}

#[test]
fn a_request_that_must_not_be_sent_twice_is_not_used_for_balance() {
    let mut world = World::new(selector(Strategy::wise()), Conditions::new(80.0, 50.0), 3);
    for _ in 0..9 {
        world.send(true);
    }
    let decision = world.send(false);
    assert_eq!(
        (decision.arm.name(), decision.reason),
        ("h2", Reason::NotReplaySafe)
    );
}

#[test]
fn a_difference_below_five_percent_changes_nothing() {
    let mut conditions = Conditions::new(50.0, 49.0);
    conditions.noise = 0.001;
    let world = browse(Strategy::wise(), conditions);
    assert_eq!(world.current(), Arm::h2());
    assert_eq!(world.selector.stats().switches, 0);
}

#[test]
fn a_switch_to_the_worse_is_undone() {
    let mut world = World::new(selector(Strategy::wise()), Conditions::new(50.0, 80.0), 3);
    // The first requests are compared, and TCP wins.
    world.browse(Duration::from_secs(20));
    assert_eq!(world.current(), Arm::h2());
    // For the length of an experiment QUIC looks better than it is.
    world.conditions = Conditions::new(50.0, 30.0);
    let (network, arm) = (world.network, Arm::h2());
    world
        .selector
        .on_connection(world.now, network, origin(), &arm);
    for _ in 0..8 {
        world.send(true);
    }
    let soon = world.now + Duration::from_millis(200);
    world.run_until(soon);
    assert_eq!(world.current(), Arm::h3());
    world.conditions = Conditions::new(50.0, 80.0);
    world.browse(Duration::from_secs(14));
    assert_eq!(world.current(), Arm::h2());
    assert_eq!(world.selector.stats().rollbacks, 1);
    let causes: Vec<SwitchCause> = std::iter::from_fn(|| world.selector.poll_event())
        .filter_map(|event| match event.kind {
            EventKind::Switched { cause, .. } => Some(cause),
            _ => None,
        })
        .collect();
    assert_eq!(causes, [SwitchCause::Experiment, SwitchCause::Rollback]);
}

#[test]
fn blocked_udp_fails_no_request_and_is_remembered() {
    for strategy in [Strategy::wise(), Strategy::Plus] {
        let name = strategy.to_string();
        let world = browse(strategy, Conditions::blocked(50.0));
        assert!(world.done.iter().all(|done| !done.failed), "{name}");
        assert_eq!(world.current(), Arm::h2(), "{name}");
        assert!(world.selector.stats().blocks > 0, "{name}");
        let over_quic = world
            .done
            .iter()
            .filter(|done| done.decision.arm == Arm::h3());
        let count = over_quic.count();
        assert!(count <= 6, "{name}: {count}");
    }
}

#[test]
fn udp_that_becomes_blocked_is_left_at_once() {
    for strategy in [Strategy::wise(), Strategy::Plus] {
        let name = strategy.to_string();
        let mut world = browse(strategy, Conditions::new(80.0, 50.0));
        assert_eq!(world.current(), Arm::h3(), "{name}");
        world.conditions = Conditions::blocked(80.0);
        let since = world.now;
        world.browse(MINUTE);
        assert_eq!(world.current(), Arm::h2(), "{name}");
        assert!(world.done.iter().all(|done| !done.failed), "{name}");
        let slow = world.done.iter().filter(|done| done.begun >= since);
        let slow = slow.filter(|done| done.completion > Duration::from_millis(200));
        // One click, and what was tried again half a minute later.
        assert!(slow.count() <= 20, "{name}");
    }
}

#[test]
fn quic_is_tried_again_once_the_block_expires() {
    let mut world = browse(Strategy::wise(), Conditions::blocked(80.0));
    world.conditions = Conditions::new(80.0, 50.0);
    world.browse(5 * MINUTE);
    assert_eq!(world.current(), Arm::h3());
    assert!(!world.selector.is_quic_blocked(world.now, NETWORK, origin()));
}

#[test]
fn a_request_that_must_not_be_repeated_avoids_an_arm_that_just_failed() {
    let mut world = browse(Strategy::wise(), Conditions::new(80.0, 50.0));
    world.conditions = Conditions::blocked(80.0);
    world.send(true);
    let later = world.now + Duration::from_millis(700);
    world.run_until(later);
    assert_eq!(world.current(), Arm::h3());
    let decision = world.send(false);
    assert_eq!(
        (decision.arm, decision.reason),
        (Arm::h2(), Reason::Suspect)
    );
}

#[test]
fn another_network_starts_an_experiment() {
    let mut world = browse(Strategy::wise(), Conditions::new(80.0, 50.0));
    let before = world.selector.stats().experiments;
    world.selector.on_network_change(world.now, NETWORK);
    let decision = world.send(true);
    let expected = Reason::Experiment {
        trigger: Trigger::NetworkChange,
        position: 0,
    };
    assert_eq!(decision.reason, expected);
    assert_eq!(world.selector.stats().experiments, before + 1);
}

#[test]
fn select_plus_finds_the_quicker_protocol_and_follows_it() {
    for (tcp, quic, best, other) in [
        (80.0, 50.0, Arm::h3(), Arm::h2()),
        (50.0, 80.0, Arm::h2(), Arm::h3()),
    ] {
        let mut world = browse(Strategy::Plus, Conditions::new(tcp, quic));
        assert_eq!(world.current(), best);
        world.conditions = Conditions::new(quic, tcp);
        world.browse(MINUTE);
        assert_eq!(world.current(), other);
        let stats = world.selector.stats();
        let share = stats.with_reason("probe") as f64 / stats.requests as f64;
        let most = world.selector.config().parameters.plus_probe_rate;
        assert!(share < most, "{share}");
    }
}

#[test]
fn select_plus_chooses_among_more_than_two_arms() {
    let arms = ["h2", "h3", "h3:bbr1"].map(|name| name.parse().unwrap());
    let config = Config::new(arms.to_vec(), Strategy::Plus);
    let selector = Selector::new(config, Models::none(), 1).unwrap();
    // The driver knows h3 as quick; every other arm takes the time of TCP.
    let mut world = World::new(selector, Conditions::new(80.0, 50.0), 3);
    world.browse(MINUTE);
    assert_eq!(world.current(), Arm::h3());
}

#[test]
fn today_s_strategies_keep_what_connected_first() {
    let mut world = World::new(selector(Strategy::Race), Conditions::new(80.0, 50.0), 3);
    assert_eq!(world.send(true).reason, Reason::Race);
    world
        .selector
        .on_connection(world.now, NETWORK, origin(), &Arm::h2());
    world.browse(MINUTE);
    assert_eq!(world.current(), Arm::h2());
    assert_eq!(world.send(true).reason, Reason::ConnectedFirst);
    let world = browse(Strategy::Fixed(Arm::h3()), Conditions::new(50.0, 80.0));
    assert!(world.done.iter().all(|done| done.answered_by == Arm::h3()));
}

#[test]
fn a_race_that_the_caller_decides_is_counted_once() {
    let mut selector = selector(Strategy::Race);
    let request = RequestDescription::new(NETWORK, origin());
    let now = Instant::ZERO;
    assert!(selector.needs_race(now, &request));
    selector.on_connection(now, NETWORK, origin(), &Arm::h3());
    let decision = selector.decide_connected(now, &request, &Arm::h3());
    assert_eq!(decision.arm, Arm::h3());
    assert_eq!(decision.reason, Reason::ConnectedFirst);
    assert!(!selector.needs_race(now, &request));
    // Back on the network, the race is to be run again; but not where QUIC can't be used.
    selector.on_network_change(now, NETWORK);
    assert!(selector.needs_race(now, &request));
    let only_tcp = RequestDescription {
        available: 1,
        ..request.clone()
    };
    assert!(!selector.needs_race(now, &only_tcp));
    selector.on_quic_blocked(now, NETWORK, origin());
    assert!(!selector.needs_race(now, &request));
    let stats = selector.stats();
    assert_eq!(
        (stats.requests, stats.with_reason("connected_first")),
        (1, 1)
    );
}

#[test]
fn the_strawman_follows_its_boundary() {
    // QUIC above a round-trip time of 100 ms, which is 0.3 of the completion time here.
    let boundary = Boundary {
        bias: -1.0,
        rtt: 0.01,
        ..Boundary::default()
    };
    for (time, best) in [(500.0, Arm::h3()), (100.0, Arm::h2())] {
        let conditions = Conditions::new(time, time);
        let world = browse(Strategy::Strawman(boundary), conditions);
        assert_eq!(world.current(), best, "{time} ms");
    }
}

/// A page of thirteen requests over QUIC that TCP overtakes, while QUIC's connection is alive.
fn overtake(selector: &mut Selector, now: Instant) -> Vec<Reason> {
    let request = RequestDescription::new(NETWORK, origin());
    let decisions: Vec<_> = (0..13).map(|_| selector.decide(now, &request)).collect();
    let completion = Duration::from_millis(900);
    let mut reasons = Vec::new();
    for decision in decisions {
        let measured = Measured {
            first_byte: completion,
            completion,
            bytes: 20_000,
            ..Measured::default()
        };
        let outcome = Outcome::new(Arm::h2(), Ok(measured));
        selector.on_outcome(now + completion, decision.id, &outcome);
        reasons.push(decision.reason);
    }
    reasons
}

#[test]
fn an_overtaken_request_starts_an_experiment_and_blocks_nothing() {
    let mut world = World::new(selector(Strategy::wise()), Conditions::new(80.0, 50.0), 3);
    // Not for so long that arms are compared again anyway.
    world.browse(Duration::from_secs(10));
    let later = world.now + Duration::from_secs(1);
    overtake(&mut world.selector, later);
    let stats = world.selector.stats();
    assert_eq!((stats.overtaken, stats.blocks), (13, 0));
    assert_eq!(world.current(), Arm::h3());
    let after = later + Duration::from_secs(1);
    let reason = overtake(&mut world.selector, after)[0];
    let trigger = Trigger::Overtaken;
    assert_eq!(
        reason,
        Reason::Experiment {
            trigger,
            position: 0
        }
    );
}

#[test]
fn a_protocol_that_is_quick_again_is_found_without_a_sign_of_it() {
    // The throttle on QUIC ends while TCP is in use, over which nothing changes.
    let mut world = browse(Strategy::wise(), Conditions::new(80.0, 500.0));
    assert_eq!(world.current(), Arm::h2());
    world.conditions = Conditions::new(80.0, 40.0);
    world.browse(3 * MINUTE);
    assert_eq!(world.current(), Arm::h3());
}

#[test]
fn comparisons_without_a_change_become_rarer() {
    let mut world = browse(Strategy::wise(), Conditions::new(80.0, 50.0));
    let mut experiments = Vec::new();
    for _ in 0..4 {
        world.browse(10 * MINUTE);
        experiments.push(world.selector.stats().experiments);
    }
    let last = experiments[3] - experiments[2];
    assert!(experiments[0] >= 3, "{experiments:?}");
    assert_eq!(last, 1, "{experiments:?}");
}

#[test]
fn select_plus_probes_an_arm_with_several_requests_together() {
    let mut world = World::new(selector(Strategy::Plus), Conditions::new(60.0, 50.0), 3);
    world.browse(2 * MINUTE);
    let probes: Vec<bool> = (world.done.iter())
        .map(|done| matches!(done.decision.reason, Reason::Probe { .. }))
        .collect();
    let longest = probes.split(|is_probe| !is_probe).map(<[bool]>::len).max();
    let most = world.selector.config().parameters.plus_burst as usize;
    assert_eq!(longest, Some(most));
}

/// The share of requests that went over another arm because fewer waited there, in two minutes.
fn less_loaded(conditions: Conditions) -> f64 {
    let mut world = World::new(selector(Strategy::Plus), conditions, 3);
    world.browse(2 * MINUTE);
    let stats = world.selector.stats();
    stats.with_reason("less_loaded") as f64 / stats.requests as f64
}

#[test]
fn select_plus_sends_requests_where_they_wait_for_fewer_others() {
    let waits = |tcp, quic, wait| {
        let conditions = Conditions::new(tcp, quic);
        less_loaded(Conditions { wait, ..conditions })
    };
    // Half of a click's requests, less those that probe.
    assert!(waits(60.0, 50.0, 1.0) > 0.25, "{}", waits(60.0, 50.0, 1.0));
    // With nothing to wait for, it is the quicker arm's level alone that counts.
    assert!(waits(60.0, 50.0, 0.0) < f64::EPSILON);
    // An arm that takes 100 times as long is not worth it.
    assert!(waits(5000.0, 50.0, 1.0) < f64::EPSILON);
}

#[test]
fn a_request_that_must_not_be_sent_twice_stays_on_the_arm_in_use() {
    let conditions = Conditions {
        wait: 1.0,
        ..Conditions::new(60.0, 50.0)
    };
    let mut world = World::new(selector(Strategy::Plus), conditions, 3);
    world.browse(2 * MINUTE);
    for _ in 0..13 {
        world.send(true);
    }
    let decision = world.send(false);
    assert_eq!(decision.arm, world.current());
}

/// How often select+ changes the arm in six clicks where QUIC, slower on its first click alone, is quicker than TCP afterwards. The requests
/// of the first click waited so long for their connection.
fn switches_after_a_slow_start(waited: Duration) -> u64 {
    let mut selector = selector(Strategy::Plus);
    let request = RequestDescription::new(NETWORK, origin());
    selector.on_connection(Instant::ZERO, NETWORK, origin(), &Arm::h3());
    for click in 0..6 {
        let now = Instant::ZERO + click * Duration::from_secs(2);
        let decisions: Vec<_> = (0..6).map(|_| selector.decide(now, &request)).collect();
        for decision in decisions {
            let millis = match (click, decision.arm == Arm::h3()) {
                (0, true) => 1000,
                (_, true) => 320,
                (_, false) => 420,
            };
            let completion = Duration::from_millis(millis);
            let measured = Measured {
                first_byte: completion / 2,
                completion,
                waited: if click == 0 { waited } else { Duration::ZERO },
                bytes: 20_000,
                rtt: Some(Duration::from_millis(300)),
                traffic: None,
            };
            let outcome = Outcome::new(decision.arm.clone(), Ok(measured));
            selector.on_outcome(now + completion, decision.id, &outcome);
        }
    }
    selector.stats().switches
}

#[test]
fn select_plus_does_not_judge_an_arm_by_the_first_requests_on_its_connection() {
    assert_eq!(switches_after_a_slow_start(Duration::from_millis(300)), 0);
    assert!(switches_after_a_slow_start(Duration::ZERO) > 0);
}

/// Whether select+ takes six slow requests on a known network for a change of it. Each waited so long for a connection.
fn is_a_change_after_slow_requests(waited: Duration) -> bool {
    let mut world = World::new(selector(Strategy::Plus), Conditions::new(80.0, 50.0), 3);
    world.browse(2 * MINUTE);
    let is_change = |world: &mut World| {
        let events = std::iter::from_fn(|| world.selector.poll_event());
        // All of them, so that the next look finds new ones only.
        events.fold(false, |found, event| {
            found | matches!(event.kind, EventKind::ChangeDetected)
        })
    };
    is_change(&mut world);
    world.conditions = Conditions::new(400.0, 250.0);
    world.waited = waited;
    for _ in 0..6 {
        world.send(true);
        world.run_until(world.now + Duration::from_secs(1));
    }
    is_change(&mut world)
}

#[test]
fn select_plus_does_not_take_first_requests_on_connections_for_a_change() {
    assert!(!is_a_change_after_slow_requests(Duration::from_millis(100)));
    assert!(is_a_change_after_slow_requests(Duration::ZERO));
}

#[test]
fn select_plus_probes_rarely_where_it_knows_enough() {
    let mut world = World::new(selector(Strategy::Plus), Conditions::new(100.0, 70.0), 3);
    world.browse(5 * MINUTE);
    let early = world.selector.stats().with_reason("probe");
    let requests = world.selector.stats().requests;
    world.browse(20 * MINUTE);
    let probes = world.selector.stats().with_reason("probe") - early;
    let share = probes as f64 / (world.selector.stats().requests - requests) as f64;
    assert!(early > 0);
    assert!(share < 0.05, "{share}");
}
