//! Proportional Rate Reduction (RFC 9937) as an option of the loss-based controllers.

use crate::support::script::{Script, times};
use crate::support::{Fate, MDS, Transport};
use proptest::prelude::*;
use swiftwater_congestion::{ControllerFactory, CubicConfig, NewRenoConfig, by_name};

/// The loss-based algorithms with PRR, and what the first loss multiplies their window by.
const WITH_PRR: [(&str, f64); 3] = [
    ("cubic:prr=on,hystart=off", 0.7),
    ("newreno:prr=on", 0.5),
    ("cubic-plus:prr=on,hystart=off", 0.7),
];

/// A flow of about 160 packets just before its first loss is noticed.
fn before_loss(factory: &dyn ControllerFactory) -> Transport {
    let mut t = Transport::new(factory);
    t.run_rounds(4);
    t
}

/// Packets sent so far in the recovery that begins with the next loss, at each of its ACKs, and the
/// packets in flight there.
fn recovery(t: &mut Transport, fate: impl FnMut(u64) -> Fate + 'static) -> Vec<(f64, f64)> {
    t.fate = Box::new(fate);
    let events = t.events;
    assert!(t.run_until(20, |t| t.events > events));
    let mut seen = Vec::new();
    while t.snapshot().state == "recovery" {
        seen.push((t.packets(), (t.inflight() / MDS) as f64));
        t.step();
    }
    seen
}

#[test]
fn without_the_option_the_window_is_the_reduced_one_at_once() {
    for name in ["cubic:hystart=off", "newreno"] {
        let mut t = before_loss(by_name(name).unwrap().as_ref());
        t.one_loss();
        assert_eq!(t.cwnd(), t.snapshot().ssthresh.unwrap().get(), "{name}");
    }
}

#[test]
fn the_flight_shrinks_in_proportion_to_what_is_delivered() {
    for (name, beta) in WITH_PRR {
        let mut t = before_loss(by_name(name).unwrap().as_ref());
        let mut lost = false;
        let seen = recovery(&mut t, move |_| {
            if std::mem::replace(&mut lost, true) {
                Fate::Arrive
            } else {
                Fate::Lose
            }
        });
        let flight = seen[0].1 + 2.0;
        assert!(seen.len() as f64 > 0.9 * flight, "{name}: a whole round");
        for (n, &(window, _)) in seen.iter().enumerate() {
            // Each ACK takes one packet out and lets `beta` of one in; the loss left at once.
            let expected = flight - 1.0 - (1.0 - beta) * (n as f64 + 1.0);
            let expected = expected.max(beta * flight);
            assert!(
                (window - expected).abs() <= 2.0,
                "{name}, ACK {n}: {window} of {expected}"
            );
        }
        // It ends at the reduced window.
        let ssthresh = t.snapshot().ssthresh.unwrap().get();
        assert!(t.cwnd() >= ssthresh && t.cwnd() <= ssthresh + MDS, "{name}");
        assert!(t.inflight() <= ssthresh + MDS, "{name}");
    }
}

/// All but each 16th packet of a flight are lost, so that less is left than the reduced window. The
/// most bytes that could leave at once in the recovery from that, and the least flight as a share of
/// the reduced window.
fn after_heavy_loss(factory: &dyn ControllerFactory) -> (u64, f64) {
    let mut t = before_loss(factory);
    let (mut sent, flight) = (0, t.cwnd() / MDS);
    t.fate = Box::new(move |n| {
        sent += 1;
        if sent <= flight && n % 16 != 0 {
            Fate::Lose
        } else {
            Fate::Arrive
        }
    });
    let events = t.events;
    assert!(t.run_until(20, |t| t.events > events));
    let ssthresh = t.snapshot().ssthresh.expect("set by the loss").get();
    let (mut burst, mut least) = (0, 1.0_f64);
    while t.snapshot().state == "recovery" {
        burst = burst.max(t.cwnd().saturating_sub(t.inflight()));
        least = least.min(t.inflight() as f64 / ssthresh as f64);
        if t.inflight() + 4 * MDS <= ssthresh {
            assert!(t.cwnd() <= ssthresh, "never beyond the threshold");
        }
        t.step();
    }
    (burst, least)
}

#[test]
fn after_heavy_loss_the_flight_recovers_without_a_burst() {
    for (name, _) in WITH_PRR {
        let (with, least) = after_heavy_loss(by_name(name).unwrap().as_ref());
        let off = name.replace("prr=on", "prr=off");
        let (without, _) = after_heavy_loss(by_name(&off).unwrap().as_ref());
        assert!(least < 1.0, "{name}: {least} of the window left");
        assert!(with < without, "{name}: {with} and {without} bytes");
        assert!(with <= 4 * MDS, "{name}: {with} bytes");
    }
}

#[test]
fn one_packet_may_always_leave_on_entering_recovery() {
    let mut s = Script::new(&prr_cubic());
    let window = s.cwnd();
    // A timer revealed the loss of all but a packet: no ACK comes with it.
    s.lose(99);
    assert_eq!(s.cwnd(), 2 * MDS, "the packet in flight and one more");
    assert_eq!(
        s.cc.snapshot().ssthresh.unwrap().get(),
        times(window, &[0.7])
    );
}

#[test]
fn losses_in_recovery_make_no_room_before_an_ack() {
    let mut s = Script::new(&prr_cubic());
    s.lose(1);
    let window = s.cwnd();
    assert_eq!(window, 100 * MDS);
    s.lose_more(10);
    assert_eq!(s.cwnd(), window - 10 * MDS);
}

#[test]
fn persistent_congestion_and_undo_end_it() {
    let mut s = Script::new(&prr_cubic());
    let window = s.cwnd();
    s.lose(10);
    s.refute(1);
    assert_eq!(s.cwnd(), window);
    s.lose(10);
    s.with(|cc, now, env| cc.on_persistent_congestion(now, env));
    assert_eq!(s.cwnd(), 2 * MDS);
    s.settle();
    s.ack_packets(2);
    assert_eq!(s.cwnd(), 4 * MDS, "slow start");
}

#[test]
fn a_mark_is_followed_by_it_too() {
    let mut s = Script::new(&prr_cubic());
    let window = s.cwnd();
    s.mark();
    assert!(s.cwnd() >= window, "no step down");
    s.settle();
    assert_eq!(s.cwnd(), times(window, &[0.7]));
}

#[test]
fn a_held_loss_of_cubic_plus_limits_nothing() {
    let factory = by_name("cubic-plus-paper:prr=on").unwrap();
    let mut s = Script::after_first_event(factory.as_ref());
    let window = s.cwnd();
    s.lose(5);
    s.lose_more(5);
    assert_eq!((s.cwnd(), s.state()), (window, "random-hold"));
    // Also if the recovery before it was still open.
    let mut s = Script::new(factory.as_ref());
    s.lose(10);
    s.wait(5);
    s.lose(1);
    assert_eq!((s.cwnd(), s.state()), (window, "random-hold"));
}

fn prr_cubic() -> CubicConfig {
    let mut config = CubicConfig::default();
    config.base.prr = true;
    config
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    /// RFC 9937, section 8: what was sent never exceeds what was delivered by more than slow start
    /// would allow, and the flight ends at the threshold or below.
    #[test]
    fn any_pattern_of_losses_is_left_at_the_threshold(
        losses in prop::collection::vec(prop::bool::weighted(0.2), 200),
    ) {
        let factory = NewRenoConfig {
            base: swiftwater_congestion::LossBasedConfig { prr: true, hystart: swiftwater_congestion::SlowStartExit::Loss, ..Default::default() },
            ..Default::default()
        };
        let mut t = before_loss(&factory);
        let mut pattern = losses.into_iter();
        t.fate = Box::new(move |_| {
            if pattern.next().unwrap_or(false) { Fate::Lose } else { Fate::Arrive }
        });
        for _ in 0..600 {
            let (state, ssthresh) = (t.snapshot().state, t.snapshot().ssthresh);
            t.step();
            if state == "recovery" && t.snapshot().state == "congestion_avoidance" {
                let ssthresh = ssthresh.unwrap().get();
                prop_assert!(t.inflight() <= ssthresh + MDS, "{} over {ssthresh}", t.inflight());
            }
            prop_assert!(t.cwnd() >= t.minimum_window);
        }
    }
}
