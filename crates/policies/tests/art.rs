//! ART driven by hand.

use swiftwater_policies::{Art, ArtConfig};
use swiftwater_quic::policy::{DataRange, Occasion, PacketFate, Reinjector, Repair, RepairCause};
use swiftwater_units::Instant;

use crate::support::{ReinjectorDriver, at, data_range, drive};

/// Milliseconds after now at which each copy leaves.
fn departures(driver: &mut ReinjectorDriver) -> Vec<(u128, DataRange)> {
    let start = driver.now;
    let mut all = Vec::new();
    while let Some(deadline) = driver.policy.next_deadline() {
        driver.now = driver.now.max(deadline);
        let after = deadline.saturating_since(start).as_millis();
        all.extend(
            driver
                .send(Occasion::Timer)
                .into_iter()
                .map(|range| (after, range)),
        );
    }
    all
}

/// As in the released code.
fn art() -> ReinjectorDriver {
    let mut driver = drive("art:feedback=copies");
    // Shows the policy the path: its least round-trip time is 50 ms.
    driver.outcomes(&[(PacketFate::Acked, 5)], false);
    driver
}

#[test]
fn levels_start_from_odd_numbers() {
    let art = Art::new(ArtConfig::default());
    let levels: Vec<_> = (1..=4).map(|round| art.copies(round)).collect();
    assert_eq!(levels, [1, 3, 5, 7]);
    assert_eq!(art.copies(20), 39);
    assert_eq!(art.copies(99), 39, "later rounds share the last");
}

#[test]
fn without_losses_of_copies_there_are_none() {
    let mut driver = art();
    // E = 1: one copy of one arrives, which is enough.
    driver.retransmit(data_range(0));
    assert_eq!(departures(&mut driver), []);
    assert!(!driver.policy.can_use_spare_room());
}

#[test]
fn a_lost_copy_in_ten_makes_the_level_two_until_it_is_dropped() {
    let mut driver = art();
    driver.outcomes(&[(PacketFate::Acked, 9), (PacketFate::Lost, 1)], true);
    assert!((driver.report().loss_rate - 0.1).abs() < 1e-12);
    // E = 0.9: up to 2; then E = 1.8 keeps it.
    for nth in 0..2 {
        driver.retransmit(data_range(nth));
        assert_eq!(driver.level(), 1);
        assert_eq!(departures(&mut driver).len(), 1);
    }
    // Ten copies later E = 2: down to 1.
    driver.outcomes(&[(PacketFate::Acked, 10)], true);
    driver.retransmit(data_range(3));
    assert_eq!(driver.level(), 0);
    assert_eq!(departures(&mut driver), []);
}

#[test]
fn first_transmissions_need_not_count() {
    let mut driver = art();
    driver.outcomes(&[(PacketFate::Lost, 50)], false);
    driver.outcomes(&[(PacketFate::Spurious, 1)], true);
    assert!(driver.report().loss_rate.abs() < 1e-12);
}

#[test]
fn by_default_every_packet_counts() {
    let mut driver = drive("art");
    driver.outcomes(&[(PacketFate::Acked, 9), (PacketFate::Lost, 1)], false);
    driver.retransmit(data_range(0));
    assert_eq!(
        departures(&mut driver).len(),
        1,
        "its own loss asks for a copy"
    );
}

#[test]
fn a_higher_round_has_a_higher_level() {
    let mut driver = art();
    driver.outcomes(&[(PacketFate::Acked, 5), (PacketFate::Lost, 5)], true);
    driver.retransmit_as(data_range(0), 3, 300, RepairCause::Loss);
    // E = 5 * 0.5 is at least 2: 4 copies, the retransmission among them.
    assert_eq!(departures(&mut driver).len(), 3);
    driver.retransmit_as(data_range(1), 3, 300, RepairCause::Loss);
    // E = 2: 3.
    assert_eq!(departures(&mut driver).len(), 2);
    driver.retransmit_as(data_range(2), 3, 300, RepairCause::Loss);
    // E = 1.5.
    assert_eq!(departures(&mut driver).len(), 2);
}

#[test]
fn copies_leave_within_a_least_round_trip_at_various_times() {
    let mut driver = art();
    driver.outcomes(&[(PacketFate::Lost, 10)], true);
    let mut all = Vec::new();
    for nth in 0..30 {
        driver.retransmit_as(data_range(nth), 20, 300, RepairCause::Loss);
        all.extend(departures(&mut driver).into_iter().map(|(after, _)| after));
    }
    assert!(all.len() > 1_000);
    assert!(all.iter().all(|&after| after < 50), "min_rtt is 50 ms");
    let early = all.iter().filter(|&&after| after < 25).count();
    let share = early as f64 / all.len() as f64;
    assert!((share - 0.5).abs() < 0.06, "{share} in the first half");
}

#[test]
fn what_is_recovered_or_lost_again_has_no_old_copies() {
    let mut driver = art();
    driver.outcomes(&[(PacketFate::Acked, 5), (PacketFate::Lost, 5)], true);
    driver.retransmit_as(data_range(0), 5, 300, RepairCause::Loss);
    let planned = driver.report().queued;
    assert!(planned > 3);
    driver.retransmit_as(data_range(0), 5, 400, RepairCause::Loss);
    assert!(
        driver.report().queued <= planned,
        "instead, not in addition"
    );
    driver.recovered(data_range(0));
    assert_eq!(
        (driver.report().queued, driver.policy.next_deadline()),
        (0, None)
    );
    driver.retransmit_as(data_range(0), 5, 300, RepairCause::Loss);
    let event = Repair::Abandoned {
        range: data_range(0),
    };
    driver.policy.on_repair(driver.now, &event);
    assert_eq!(driver.report().queued, 0);
}

#[test]
fn a_probe_is_no_loss() {
    let mut driver = art();
    driver.outcomes(&[(PacketFate::Lost, 10)], true);
    driver.retransmit_as(data_range(0), 2, 300, RepairCause::Probe);
    assert_eq!(driver.report().queued, 0);
}

#[test]
fn both_parts_of_a_split_data_range_get_copies() {
    let mut driver = art();
    driver.outcomes(&[(PacketFate::Acked, 5), (PacketFate::Lost, 5)], true);
    driver.retransmit(data_range(0));
    let event = Repair::Split {
        range: data_range(0),
        at: 300,
    };
    driver.policy.on_repair(driver.now, &event);
    let mut copies: Vec<_> = departures(&mut driver)
        .into_iter()
        .map(|(_, copy)| (copy.offset, copy.len))
        .collect();
    copies.sort_unstable();
    assert_eq!(copies, [(0, 300), (300, 700)]);
}

/// When the copies of one loss leave.
fn times(specification: &str, first_loss: Instant) -> Vec<Instant> {
    let mut driver = drive(specification);
    driver.now = first_loss;
    driver.outcomes(&[(PacketFate::Lost, 10)], true);
    driver.retransmit_as(data_range(0), 10, 300, RepairCause::Loss);
    let mut all = Vec::new();
    while let Some(deadline) = driver.policy.next_deadline() {
        driver.now = deadline;
        all.push(deadline);
        driver.send(Occasion::Timer);
    }
    all
}

#[test]
fn the_same_seed_and_loss_give_the_same_times() {
    assert_eq!(times("art", at(5)), times("art", at(5)));
    assert_ne!(times("art", at(5)), times("art:seed=2", at(5)));
}

#[test]
fn parameters_change_while_it_runs() {
    let mut art = Art::new(ArtConfig::default());
    art.configure("max-copies=4").unwrap();
    assert_eq!((art.copies(2), art.copies(9)), (3, 4));
    assert!(art.configure("max-copies=0").is_err());
    assert_eq!(art.copies(9), 4);
}
