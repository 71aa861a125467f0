//! Where missing packets were lost.

use std::time::Duration;

use proptest::prelude::*;
use swiftwater_tecc::{Classifier, LossPlace, LostPackets};
use swiftwater_units::Instant;

const MEMORY: Duration = Duration::from_millis(100);

fn at(ms: u64) -> Instant {
    Instant::ZERO + Duration::from_millis(ms)
}

/// A classifier to which packets came, with their numbers in the tunnel.
fn received(packets: &[(u64, u64)]) -> Classifier {
    let mut classifier = Classifier::new();
    for (packet, number) in packets {
        classifier.on_packet(*packet, Some(*number));
    }
    classifier
}

fn lost(classifier: &Classifier) -> Vec<LostPackets> {
    classifier.lost().copied().collect()
}

#[test]
fn a_gap_in_packets_but_not_in_numbers_is_upstream() {
    let mut classifier = received(&[(0, 0), (1, 1), (4, 2), (5, 3), (6, 4)]);
    classifier.classify(at(0), MEMORY);
    assert_eq!(lost(&classifier), [], "two more came: it may be reordering");
    assert_eq!(classifier.settled(), 2);
    classifier.on_packet(7, Some(5));
    assert!(classifier.classify(at(1), MEMORY));
    let place = LossPlace::Upstream;
    let (first, last) = (2, 3);
    assert_eq!(lost(&classifier), [LostPackets { first, last, place }]);
    assert_eq!(classifier.settled(), 8);
    assert!(!classifier.classify(at(2), MEMORY), "told once");
}

#[test]
fn a_gap_in_both_is_being_repaired_until_the_proxy_has_settled_it() {
    let mut classifier = received(&[(0, 0), (1, 1), (3, 3), (4, 4), (5, 5), (6, 6)]);
    classifier.on_settled(2);
    classifier.classify(at(0), MEMORY);
    assert_eq!(lost(&classifier), []);
    assert_eq!(classifier.settled(), 2);
    let mut repaired = classifier.clone();
    repaired.on_packet(2, Some(2));
    repaired.classify(at(1), MEMORY);
    assert_eq!((lost(&repaired), repaired.settled()), (vec![], 7));

    classifier.on_settled(3);
    classifier.classify(at(1), MEMORY);
    let place = LossPlace::Abandoned;
    let (first, last) = (2, 2);
    assert_eq!(lost(&classifier), [LostPackets { first, last, place }]);
    assert_eq!(classifier.settled(), 7);
}

#[test]
fn with_more_packets_missing_than_numbers_some_never_reached_the_proxy() {
    let mut classifier = received(&[(0, 0), (5, 2), (6, 3)]);
    classifier.on_settled(2);
    classifier.classify(at(0), MEMORY);
    assert_eq!(lost(&classifier).len(), 1);
    assert_eq!(lost(&classifier)[0].place, LossPlace::Upstream);
}

#[test]
fn packets_reordered_before_the_proxy_are_not_lost() {
    let mut classifier = received(&[(0, 0), (2, 1), (1, 2), (3, 3), (4, 4), (5, 5)]);
    classifier.classify(at(0), MEMORY);
    assert_eq!((lost(&classifier), classifier.settled()), (vec![], 6));
}

#[test]
fn packets_without_a_number_count_as_received() {
    let mut classifier = Classifier::new();
    classifier.on_packet(0, None);
    classifier.on_packet(1, None);
    classifier.on_packet(2, Some(0));
    classifier.classify(at(0), MEMORY);
    assert_eq!((lost(&classifier), classifier.settled()), (vec![], 3));
}

#[test]
fn losses_are_forgotten_after_a_while() {
    let mut classifier = received(&[(0, 0), (2, 1), (3, 2), (4, 3), (5, 4)]);
    classifier.classify(at(0), MEMORY);
    assert_eq!(lost(&classifier).len(), 1);
    classifier.classify(at(101), MEMORY);
    assert_eq!(lost(&classifier), []);
    assert_eq!(classifier.settled(), 6);
}

proptest! {
    /// Losses on both sides of the proxy, repaired or given up: what is named as lost never came, and a packet that is
    /// still being repaired is never named.
    #[test]
    fn only_what_is_lost_is_named(fates in prop::collection::vec(0_u8..10, 1..300)) {
        let mut classifier = Classifier::new();
        let mut number = 0;
        let (mut open, mut came) = (Vec::new(), Vec::new());
        for (packet, fate) in (0_u64..).zip(fates) {
            match fate {
                // Lost before the proxy.
                0 => continue,
                // Lost after it, and repaired later.
                1 => open.push((packet, number)),
                _ => {
                    came.push(packet);
                    classifier.on_packet(packet, Some(number));
                }
            }
            number += 1;
            let settled = open.first().map_or(number, |(_, number)| *number);
            classifier.on_settled(settled);
            classifier.classify(at(packet), Duration::from_secs(60));
            for lost in classifier.lost() {
                for packet in lost.first..=lost.last {
                    prop_assert!(!came.contains(&packet));
                    prop_assert!(!open.iter().any(|(open, _)| *open == packet));
                }
            }
            if open.len() == 3 {
                let (packet, number) = open.remove(0);
                came.push(packet);
                classifier.on_packet(packet, Some(number));
            }
        }
    }

    #[test]
    fn any_packets_and_numbers_are_survived(
        packets in prop::collection::vec((any::<u64>(), any::<Option<u64>>(), any::<u64>()), 0..200),
    ) {
        let mut classifier = Classifier::new();
        for (packet, number, settled) in packets {
            let within = |n: u64| n >> 2;
            classifier.on_packet(within(packet), number.map(within));
            classifier.on_settled(within(settled));
            classifier.classify(at(0), MEMORY);
            prop_assert!(classifier.lost().count() <= 64);
        }
    }
}
