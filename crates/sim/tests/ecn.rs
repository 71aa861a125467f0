//! Explicit congestion notification: marks that count, paths that bleach, change or drop them.

use crate::support;

use swiftwater_link::{Ecn, EcnThreshold, LinkConfig};
use swiftwater_quic::EcnState;
use swiftwater_quic::observe::{Observation, Observer, ObserverFactory};
use swiftwater_sim::{Cipher, Direction, Pair, TapDatagram, Verdict};
use swiftwater_units::{Instant, PacketCount, Side};

use support::{BOTH, SIDES, link, millis, path, secs};

fn marking(threshold: u64) -> LinkConfig {
    link(10, 20).ecn_threshold(EcnThreshold::Packets(PacketCount::new(threshold)))
}

fn mark_as(pair: &mut Pair, direction: Direction, mark: Ecn) {
    pair.tap(direction, move |datagram| {
        if *datagram.ecn != Ecn::NotEct {
            *datagram.ecn = mark;
        }
        Verdict::Pass
    });
}

#[test]
fn marks_slow_a_sender_down_without_loss() {
    for direction in BOTH {
        let mut pair = Pair::builder().link(marking(30)).build().unwrap();
        assert!(pair.connect());
        let report = pair.transfer(4_000_000, direction);
        assert!(report.verified);
        let sender = path(&pair, direction.sender());
        let marked = pair.counters(direction).ecn_marked.packets.get();
        assert!(sender.ecn);
        assert!(marked > 0);
        // At most the marks of the last ACK are missing.
        let counted = sender.ecn_ce.get();
        assert!(
            counted <= marked && counted + 50 > marked,
            "{counted} of {marked}"
        );
        assert_eq!(sender.lost_packets.get(), 0, "{direction:?}");
        assert!(sender.congestion_events >= 2, "{sender:?}");
        // One round trip of queue at most beside the path's own: without marks it grows to many.
        assert!(sender.smoothed_rtt < millis(110), "{sender:?}");
        let took = report.finish - report.start;
        assert!(took < millis(4_200), "the link stays busy: {took:?}");
    }
}

#[test]
fn without_ecn_there_are_no_marks() {
    let mut pair = Pair::builder()
        .link(marking(30))
        .both_configs(|config| config.ecn = false)
        .build()
        .unwrap();
    assert!(pair.connect());
    assert!(pair.transfer(1_000_000, Direction::ToServer).verified);
    assert_eq!(
        pair.counters(Direction::ToServer).ecn_marked.packets.get(),
        0
    );
    let sender = path(&pair, Side::Client);
    assert!(!sender.ecn && sender.ecn_ce.get() == 0);
}

#[test]
fn one_side_can_do_without() {
    let mut pair = Pair::builder()
        .link(marking(30))
        .client_config(|config| config.ecn = false)
        .build()
        .unwrap();
    assert!(pair.connect());
    assert!(pair.transfer(2_000_000, Direction::ToClient).verified);
    assert!(
        path(&pair, Side::Server).ecn_ce.get() > 0,
        "the client still reports marks"
    );
}

#[test]
fn validation_succeeds_on_a_clean_path() {
    for cipher in [Cipher::Null, Cipher::Tls] {
        let mut pair = Pair::builder()
            .cipher(cipher)
            .link(link(10, 20))
            .build()
            .unwrap();
        assert!(pair.connect());
        for direction in BOTH {
            assert!(pair.transfer(200_000, direction).verified);
        }
        for side in SIDES {
            assert!(path(&pair, side).ecn, "{cipher:?} {side:?}");
        }
        // Marking goes on after the test.
        let recorded = std::rc::Rc::new(std::cell::Cell::new(0));
        let marked = std::rc::Rc::clone(&recorded);
        pair.tap(Direction::ToServer, move |datagram| {
            if *datagram.ecn == Ecn::Ect0 {
                marked.set(marked.get() + 1);
            }
            Verdict::Pass
        });
        assert!(pair.transfer(100_000, Direction::ToServer).verified);
        assert!(recorded.get() > 80, "{}", recorded.get());
    }
}

#[test]
fn disorder_and_loss_do_not_end_ecn() {
    for seed in 0..20 {
        let mut rough = link(10, 20)
            .loss(swiftwater_link::LossModel::Bernoulli(0.05))
            .jitter(swiftwater_link::Jitter::Uniform(millis(20)))
            .duplicate(0.05);
        rough.jitter_reorders = true;
        let mut pair = Pair::builder().seed(seed).link(rough).build().unwrap();
        assert!(pair.connect());
        for direction in BOTH {
            assert!(pair.transfer(200_000, direction).verified);
        }
        for side in SIDES {
            assert!(path(&pair, side).ecn, "seed {seed}, {side:?}");
        }
    }
}

#[test]
fn a_path_that_bleaches_marks_fails_validation_and_works() {
    for direction in BOTH {
        let mut pair = Pair::builder().link(link(10, 20)).build().unwrap();
        mark_as(&mut pair, direction, Ecn::NotEct);
        assert!(pair.connect());
        assert_eq!(
            pair.stats(Side::Client)
                .handshake_duration
                .map(|took| took < millis(45)),
            Some(true)
        );
        let report = pair.transfer(500_000, direction);
        assert!(
            report.verified && report.finish - report.start < millis(700),
            "{report:?}"
        );
        assert!(!path(&pair, direction.sender()).ecn, "{direction:?}");
        // The other direction isn't concerned.
        assert!(pair.transfer(100_000, other(direction)).verified);
        assert!(path(&pair, direction.receiver()).ecn, "{direction:?}");
    }
}

fn other(direction: Direction) -> Direction {
    match direction {
        Direction::ToServer => Direction::ToClient,
        Direction::ToClient => Direction::ToServer,
    }
}

#[test]
fn a_path_that_starts_to_bleach_is_noticed() {
    let mut pair = Pair::builder().link(link(10, 20)).build().unwrap();
    assert!(pair.connect());
    assert!(pair.transfer(200_000, Direction::ToServer).verified);
    assert!(path(&pair, Side::Client).ecn);
    mark_as(&mut pair, Direction::ToServer, Ecn::NotEct);
    assert!(pair.transfer(200_000, Direction::ToServer).verified);
    assert!(!path(&pair, Side::Client).ecn);
}

#[test]
fn remarking_to_the_other_codepoint_fails_validation() {
    let mut pair = Pair::builder().link(link(10, 20)).build().unwrap();
    mark_as(&mut pair, Direction::ToServer, Ecn::Ect1);
    assert!(pair.connect());
    assert!(pair.transfer(200_000, Direction::ToServer).verified);
    assert!(!path(&pair, Side::Client).ecn);
}

#[test]
fn everything_marked_congested_slows_down_but_works() {
    let mut pair = Pair::builder().link(link(10, 20)).build().unwrap();
    mark_as(&mut pair, Direction::ToServer, Ecn::Ce);
    assert!(pair.connect());
    let report = pair.transfer(50_000, Direction::ToServer);
    assert!(report.verified);
    let sender = path(&pair, Side::Client);
    assert!(sender.cwnd.get() <= 4_800, "{sender:?}");
    // Two packets a round trip at least.
    assert!(report.finish - report.start < secs(2), "{report:?}");
}

#[test]
fn a_path_that_drops_marked_packets_is_found_out_in_the_handshake() {
    for (directions, limit) in [
        (&[Direction::ToServer][..], millis(1_300)),
        (&[Direction::ToClient][..], millis(1_300)),
        (&BOTH[..], millis(2_500)),
    ] {
        let mut pair = Pair::builder().link(link(10, 20)).build().unwrap();
        for direction in directions {
            support::drop_if(&mut pair, *direction, |datagram| {
                *datagram.ecn != Ecn::NotEct
            });
        }
        assert!(pair.connect(), "{directions:?}");
        let took = pair.stats(Side::Client).handshake_duration.unwrap();
        assert!(took < limit, "{directions:?}: {took:?}");
        for direction in BOTH {
            let report = pair.transfer(200_000, direction);
            assert!(report.verified, "{directions:?} {report:?}");
            assert!(
                report.finish - report.start < secs(3),
                "{directions:?} {report:?}"
            );
        }
    }
}

#[test]
fn a_path_that_starts_to_drop_marked_packets_is_survived() {
    let mut pair = Pair::builder().link(link(10, 20)).build().unwrap();
    assert!(pair.connect());
    assert!(pair.transfer(200_000, Direction::ToServer).verified);
    support::drop_if(&mut pair, Direction::ToServer, |datagram| {
        *datagram.ecn != Ecn::NotEct
    });
    let report = pair.transfer(200_000, Direction::ToServer);
    assert!(
        report.verified,
        "{:?}",
        support::reason(&pair, Side::Client)
    );
    assert!(report.finish - report.start < secs(2), "{report:?}");
    assert!(!path(&pair, Side::Client).ecn, "and noticed");
}

/// A pair whose sides use this controller.
fn pair_with(controller: &str, link: LinkConfig) -> Pair {
    let controller = swiftwater_congestion::by_name(controller).unwrap();
    let mut pair = Pair::builder()
        .link(link)
        .both_configs(|config| config.controller = controller.clone())
        .build()
        .unwrap();
    assert!(pair.connect());
    pair
}

/// How many datagrams of a direction have this mark.
fn count_marks(
    pair: &mut Pair,
    direction: Direction,
    mark: Ecn,
) -> std::rc::Rc<std::cell::Cell<u64>> {
    let count = std::rc::Rc::new(std::cell::Cell::new(0));
    let counted = std::rc::Rc::clone(&count);
    pair.tap(direction, move |datagram| {
        if *datagram.ecn == mark {
            counted.set(counted.get() + 1);
        }
        Verdict::Pass
    });
    count
}

#[test]
fn the_controller_chooses_the_codepoint() {
    for (controller, mark) in [
        ("prague", Ecn::Ect1),
        ("cubic", Ecn::Ect0),
        ("copa", Ecn::NotEct),
    ] {
        for direction in BOTH {
            let mut pair = pair_with(controller, link(10, 20));
            let marked = count_marks(&mut pair, direction, mark);
            assert!(pair.transfer(200_000, direction).verified);
            assert!(marked.get() > 150, "{controller}: {}", marked.get());
            // Validation expects the count of the codepoint that was sent.
            let usable = path(&pair, direction.sender()).ecn;
            assert_eq!(usable, mark != Ecn::NotEct, "{controller}");
        }
    }
}

#[test]
fn ect1_that_arrives_as_ect0_fails_validation() {
    let mut pair = pair_with("prague", link(10, 20));
    assert!(pair.transfer(100_000, Direction::ToServer).verified);
    assert!(path(&pair, Side::Client).ecn);
    mark_as(&mut pair, Direction::ToServer, Ecn::Ect0);
    assert!(pair.transfer(100_000, Direction::ToServer).verified);
    assert!(!path(&pair, Side::Client).ecn);
}

#[test]
fn an_algorithm_that_ignores_marks_gets_none() {
    let mut pair = pair_with("copa", marking(3));
    assert!(pair.transfer(1_000_000, Direction::ToServer).verified);
    let counters = pair.counters(Direction::ToServer);
    assert_eq!(counters.ecn_marked.packets.get(), 0);
    // Its receiver still reports the marks of others.
    let mut pair = Pair::builder()
        .link(marking(3))
        .server_config(|config| {
            config.controller = swiftwater_congestion::by_name("copa").unwrap();
        })
        .build()
        .unwrap();
    assert!(pair.connect());
    assert!(pair.transfer(1_000_000, Direction::ToServer).verified);
    assert!(path(&pair, Side::Client).ecn_ce.get() > 0);
}

#[test]
fn t14_counts_in_reordered_acks_are_no_validation_failure() {
    for controller in ["cubic", "prague"] {
        let mut pair = pair_with(controller, marking(20));
        // Every third datagram on the way back is overtaken by the ones after it.
        pair.tap(Direction::ToClient, |datagram| {
            if datagram.index.is_multiple_of(3) {
                Verdict::Delay(millis(15))
            } else {
                Verdict::Pass
            }
        });
        assert!(pair.transfer(2_000_000, Direction::ToServer).verified);
        pair.advance(secs(1));
        let sender = path(&pair, Side::Client);
        assert!(sender.ecn, "{controller}: {sender:?}");
        // Counts are cumulative: no mark is reported twice, and none is missing in the end.
        let marked = pair.counters(Direction::ToServer).ecn_marked.packets;
        assert!(marked.get() > 0);
        assert_eq!(sender.ecn_ce, marked, "{controller}");
        assert_eq!(sender.lost_packets.get(), 0, "{controller}");
    }
}

#[test]
fn any_number_of_timeouts_may_follow_once_marking_ended() {
    let mut pair = Pair::builder().link(link(10, 20)).build().unwrap();
    pair.tap(Direction::ToServer, |datagram| match *datagram.ecn {
        Ecn::NotEct => Verdict::Pass,
        _ => Verdict::Drop,
    });
    assert!(pair.connect());
    for _ in 0..300 {
        pair.drop_next(Direction::ToServer);
        pair.client().ping();
        pair.advance(secs(1));
    }
    assert!(!path(&pair, Side::Client).ecn);
    assert!(pair.transfer(10_000, Direction::ToServer).verified);
}

/// Events of a side's marks at an observer.
#[derive(Clone, Debug)]
struct States(Side, std::sync::Arc<std::sync::Mutex<Vec<EcnState>>>);

impl ObserverFactory for States {
    fn observer(&self, side: Side) -> Option<Box<dyn Observer>> {
        (side == self.0).then(|| Box::new(self.clone()) as Box<dyn Observer>)
    }
}

impl Observer for States {
    fn observe(&mut self, _now: Instant, observation: &Observation<'_>) {
        if let Observation::EcnUpdated { state, .. } = *observation {
            self.1.lock().unwrap().push(state);
        }
    }
}

/// The states of a client's path while `harm` is done to what it sends and it sends data.
fn states_of_client(harm: impl Fn(&mut TapDatagram<'_>) -> Verdict + 'static) -> Vec<EcnState> {
    let states = States(Side::Client, std::sync::Arc::default());
    let watch: std::sync::Arc<dyn ObserverFactory> = std::sync::Arc::new(states.clone());
    let mut pair = Pair::builder()
        .link(link(10, 20))
        .client_config(|config| config.observer = Some(watch))
        .build()
        .unwrap();
    pair.tap(Direction::ToServer, harm);
    assert!(pair.connect());
    assert!(pair.transfer(300_000, Direction::ToServer).verified);
    let told = states.1.lock().unwrap().clone();
    assert_eq!(told.last(), Some(&path(&pair, Side::Client).ecn_state));
    told
}

#[test]
fn observers_receive_what_a_path_does_with_marks() {
    let kept = states_of_client(|_| Verdict::Pass);
    assert_eq!(kept, [EcnState::Capable]);
    let cleared = states_of_client(|datagram| {
        *datagram.ecn = Ecn::NotEct;
        Verdict::Pass
    });
    assert_eq!(cleared, [EcnState::Failed]);
    let dropped = states_of_client(|datagram| match *datagram.ecn {
        Ecn::NotEct => Verdict::Pass,
        _ => Verdict::Drop,
    });
    assert_eq!(dropped.last(), Some(&EcnState::Failed), "{dropped:?}");
}

/// Marked packets that are lost while unmarked ones arrive are detected without a timeout.
#[test]
fn a_new_path_that_drops_marked_packets_is_found_out() {
    let mut pair = Pair::builder().link(link(10, 20)).build().unwrap();
    assert!(pair.connect());
    assert!(pair.transfer(200_000, Direction::ToClient).verified);
    assert_eq!(path(&pair, Side::Server).ecn_state, EcnState::Capable);
    support::drop_if(&mut pair, Direction::ToClient, |datagram| {
        *datagram.ecn != Ecn::NotEct
    });
    pair.rebind(Side::Client, ([203, 0, 113, 9], 50_000).into())
        .unwrap();
    assert!(pair.transfer(20_000, Direction::ToServer).verified);
    let report = pair.transfer(2_000_000, Direction::ToClient);
    assert!(
        report.verified,
        "{report:?} {:?}",
        support::reason(&pair, Side::Server)
    );
    assert_eq!(path(&pair, Side::Server).ecn_state, EcnState::Failed);
}

/// Validation starts again on a new path, and doesn't fail for the previous one's losses.
#[test]
fn a_new_path_is_tested_anew() {
    let mut pair = Pair::builder().link(link(10, 20)).build().unwrap();
    let bleaching = std::rc::Rc::new(std::cell::Cell::new(true));
    let bleaches = std::rc::Rc::clone(&bleaching);
    pair.tap(Direction::ToClient, move |datagram| {
        if bleaches.get() {
            *datagram.ecn = Ecn::NotEct;
        }
        Verdict::Pass
    });
    assert!(pair.connect());
    assert!(pair.transfer(200_000, Direction::ToClient).verified);
    assert_eq!(path(&pair, Side::Server).ecn_state, EcnState::Failed);
    bleaching.set(false);
    pair.rebind(Side::Client, ([203, 0, 113, 9], 50_000).into())
        .unwrap();
    assert!(pair.transfer(20_000, Direction::ToServer).verified);
    assert!(pair.transfer(2_000_000, Direction::ToClient).verified);
    assert_eq!(path(&pair, Side::Server).ecn_state, EcnState::Capable);
}

/// Packets that carry marks are under way on a slow path when the client moves to a fast one that clears
/// them. Their counts come while the new path is tested, and are not its own.
#[test]
fn marks_of_the_path_before_do_not_validate_a_new_one() {
    for at_once in [false, true] {
        for wait in (0..200).step_by(10) {
            let states = States(Side::Client, std::sync::Arc::default());
            let watch: std::sync::Arc<dyn ObserverFactory> = std::sync::Arc::new(states.clone());
            let mut pair = Pair::builder()
                .link(link(10, 100))
                .client_config(|config| config.observer = Some(watch))
                .build()
                .unwrap();
            assert!(pair.connect());
            pair.start_transfer(6_000_000, Direction::ToServer);
            pair.advance(millis(1_500 + wait));
            assert_eq!(states.1.lock().unwrap().last(), Some(&EcnState::Capable));
            let there = pair
                .attach(Side::Client, ([192, 0, 2, 200], 50_000).into(), link(10, 5))
                .unwrap();
            pair.network().tap(there.uplink, |datagram| {
                *datagram.ecn = Ecn::NotEct;
                Verdict::Pass
            });
            let now = pair.now();
            if at_once {
                pair.client().rebind(now, there.local).unwrap();
            } else {
                pair.client().migrate(now, there.local).unwrap();
            }
            assert!(pair.run_until(|pair| path(pair, Side::Client).local == there.local));
            let before = states.1.lock().unwrap().len();
            assert!(pair.finish_transfers());
            let states = states.1.lock().unwrap().split_off(before);
            assert!(!states.contains(&EcnState::Capable), "{wait}: {states:?}");
            assert_eq!(states.last(), Some(&EcnState::Failed), "{wait}: {states:?}");
        }
    }
}
