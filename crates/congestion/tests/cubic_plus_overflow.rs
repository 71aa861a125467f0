//! Cubic+: overflow of buffers that are too short to show a queue, and the reduction after it.

use std::time::Duration;

use crate::support::MDS;
use crate::support::script::{BASE_MS, Script, times};
use swiftwater_congestion::{CubicPlusConfig, Tunable};

/// The window after the first loss event, which was an overflow at 100 packets.
const WINDOW: u64 = 70 * MDS;

fn flow(settings: &str) -> Script {
    let mut config = CubicPlusConfig::paper();
    config
        .set_all("full_queue=on,recurrence=on,drain=off")
        .and_then(|()| config.set_all(settings))
        .expect("settings of the test");
    let mut s = Script::after_first_event(&config);
    // The share of packets lost in that event is forgotten.
    for _ in 0..40 {
        s.round_of(1_000);
    }
    s
}

/// One lost packet of a flight of `flight` packets, in a round trip of 1,000 sent ones.
fn lose_one_at(s: &mut Script, flight: u64) {
    s.round_of(1_000);
    s.lost_flight = Some(flight);
    s.lose(1);
}

#[test]
fn a_loss_at_the_flight_of_the_last_overflow_is_one() {
    for (settings, factor) in [("recurrence=on", 0.7), ("recurrence=off", 1.0)] {
        let mut s = flow(settings);
        lose_one_at(&mut s, 98);
        assert_eq!(s.cwnd(), times(WINDOW, &[factor]), "{settings}");
    }
}

#[test]
fn a_loss_at_much_less_is_random_and_so_are_those_that_follow() {
    let mut s = flow("");
    lose_one_at(&mut s, 80);
    s.settle();
    assert_eq!(s.cwnd(), WINDOW);
    // Now the share of random losses is known, and no more than that is lost here.
    lose_one_at(&mut s, 98);
    assert_eq!(s.cwnd(), WINDOW);
}

#[test]
fn more_losses_than_at_small_flights_are_an_overflow() {
    let mut s = flow("");
    lose_one_at(&mut s, 80);
    s.settle();
    s.round_of(1_000);
    s.lost_flight = Some(98);
    s.lose_more(60);
    s.lose(1);
    assert_eq!(s.cwnd(), times(WINDOW, &[0.7]));
}

#[test]
fn a_few_packets_in_flight_say_nothing_about_a_share() {
    for (settings, factor) in [
        ("recurrence_packets=41", 0.7),
        ("recurrence_packets=40", 1.0),
    ] {
        let mut s = flow(settings);
        lose_one_at(&mut s, 40);
        assert_eq!(s.cwnd(), times(WINDOW, &[factor]), "{settings}");
    }
}

#[test]
fn where_a_queue_was_seen_the_delay_decides() {
    let mut s = flow("");
    s.queue_of(20.0);
    s.rtt = Duration::from_millis(BASE_MS);
    s.acks_for(BASE_MS);
    lose_one_at(&mut s, 98);
    assert_eq!(s.cwnd(), WINDOW);
}

#[test]
fn the_reduction_can_be_as_large_as_empties_the_longest_queue() {
    for (queue, most, factor) in [
        // A window of 70 packets with a quarter of a round trip of queue.
        (10.0, 0.95, 0.8),
        (10.0, 0.75, 0.75),
        // Never more than CUBIC's.
        (40.0, 0.95, 0.7),
        (10.0, 0.1, 0.7),
    ] {
        let mut s = flow(&format!("shallow_beta={most}"));
        s.queue_of(queue);
        lose_one_at(&mut s, 69);
        assert!(
            s.cwnd().abs_diff(times(WINDOW, &[factor])) <= 2,
            "{queue} {most}"
        );
    }
}
