//! The ledger discards what is settled, whatever lies at its front.

use std::time::Duration;

use swiftwater_units::{Instant, PacketNumber};

use super::{AckOutcome, Ledger, SentPacket};
use crate::frame_writer::Carried;
use crate::recovery::{DeliverySnapshot, LossThresholds};

fn packet(now: Instant) -> SentPacket {
    SentPacket {
        sent_at: now,
        size: 1200,
        ack_eliciting: true,
        in_flight: true,
        ecn_marked: false,
        retransmission: false,
        mtu_probe: false,
        on_path: true,
        snapshot: DeliverySnapshot::default(),
    }
}

const CARRIED: [Carried; 1] = [Carried::Crypto { offset: 0, len: 1 }];

fn thresholds() -> LossThresholds {
    LossThresholds {
        packets: 3,
        delay: Duration::from_millis(10),
    }
}

/// Acknowledges one packet, detects losses, discards what is old.
fn settle(ledger: &mut Ledger, now: Instant, number: u64) -> usize {
    let mut outcome = AckOutcome::default();
    let (mut numbers, mut lost) = (Vec::new(), Vec::new());
    ledger.on_ack(
        PacketNumber::new(number),
        std::iter::once(number..=number),
        &mut outcome,
    );
    assert!(!outcome.bogus);
    ledger.detect_lost(now, thresholds(), &mut numbers, &mut lost);
    ledger.discard(now - Duration::from_millis(100));
    lost.len()
}

#[test]
fn a_lost_packet_after_a_skipped_number_does_not_hold_the_ledger() {
    let mut ledger = Ledger::new();
    let mut now = Instant::from_millis(1);
    ledger.skip_number(now);
    ledger.on_sent(packet(now), &CARRIED);
    let mut lost = 0;
    for _ in 0..10_000 {
        now += Duration::from_millis(1);
        let number = ledger.next_number().get();
        ledger.on_sent(packet(now), &CARRIED);
        lost += settle(&mut ledger, now, number);
    }
    assert_eq!(lost, 1);
    assert!(ledger.len() < 200, "{} packets kept", ledger.len());
}

#[test]
fn acknowledging_a_skipped_number_is_noticed() {
    let mut ledger = Ledger::new();
    let now = Instant::from_millis(1);
    ledger.on_sent(packet(now), &CARRIED);
    ledger.skip_number(now);
    ledger.on_sent(packet(now), &CARRIED);
    let mut outcome = AckOutcome::default();
    ledger.on_ack(PacketNumber::new(2), std::iter::once(0..=2), &mut outcome);
    assert!(outcome.bogus);
}

#[test]
fn a_receiver_that_only_acknowledges_keeps_little() {
    let mut ledger = Ledger::new();
    let mut now = Instant::from_millis(1);
    for _ in 0..10_000 {
        now += Duration::from_millis(1);
        let silent = SentPacket {
            ack_eliciting: false,
            in_flight: false,
            ..packet(now)
        };
        ledger.on_sent(silent, &[]);
        ledger.discard(now - Duration::from_millis(100));
    }
    assert!(ledger.len() < 200, "{} packets kept", ledger.len());
}

#[test]
fn a_loss_that_proves_spurious_is_reported_with_its_episode() {
    let mut ledger = Ledger::new();
    let mut now = Instant::from_millis(1);
    for _ in 0..5 {
        ledger.on_sent(packet(now), &CARRIED);
    }
    now += Duration::from_millis(1);
    assert_eq!(
        settle(&mut ledger, now, 4),
        2,
        "packets 0 and 1 are three behind"
    );
    let episode = swiftwater_congestion::EpisodeId(7);
    ledger.set_episode(&[PacketNumber::new(0), PacketNumber::new(1)], episode);
    let mut outcome = AckOutcome::default();
    ledger.on_ack(
        PacketNumber::new(4),
        [3..=4, 0..=0].into_iter(),
        &mut outcome,
    );
    let late: Vec<_> = outcome
        .acked
        .iter()
        .filter_map(|packet| packet.lost_in)
        .collect();
    assert_eq!(late, [episode]);
    assert_eq!(ledger.eliciting_in_flight(), 1, "packet 2 alone");
}

#[test]
fn what_was_acknowledged_behind_a_lost_packet_is_discarded() {
    let mut ledger = Ledger::new();
    let now = Instant::from_millis(1);
    ledger.on_sent(packet(now), &CARRIED);
    ledger.skip_number(now);
    let mut lost = 0;
    // All within the time in which the loss may prove spurious.
    for _ in 0..10_000 {
        let number = ledger.next_number().get();
        ledger.on_sent(packet(now), &[]);
        lost += settle(&mut ledger, now, number);
    }
    assert_eq!(lost, 1);
    assert!(ledger.len() < 1100, "{} packets kept", ledger.len());
    let episode = swiftwater_congestion::EpisodeId(7);
    ledger.set_episode(&[PacketNumber::new(0)], episode);
    let mut outcome = AckOutcome::default();
    let acknowledge = |ledger: &mut Ledger, number, outcome: &mut AckOutcome| {
        let largest = PacketNumber::new(10_001);
        ledger.on_ack(
            largest,
            [10_001..=10_001, number..=number].into_iter(),
            outcome,
        );
    };
    acknowledge(&mut ledger, 0, &mut outcome);
    assert_eq!(outcome.numbers, [PacketNumber::new(0)]);
    assert_eq!(outcome.acked[0].lost_in, Some(episode));
    let carried: Vec<_> = ledger.carried_by(PacketNumber::new(0)).collect();
    assert_eq!(carried, CARRIED);
    // Only once; and the skipped number is still a trap.
    acknowledge(&mut ledger, 0, &mut outcome);
    assert!(outcome.numbers.is_empty() && !outcome.bogus);
    acknowledge(&mut ledger, 1, &mut outcome);
    assert!(outcome.bogus);
    ledger.discard(now + Duration::from_millis(1));
    assert_eq!(ledger.len(), 0);
}

#[test]
fn what_lost_packets_carried_is_distinguished() {
    let mut ledger = Ledger::new();
    let now = Instant::from_millis(1);
    let carried = |number: u64| {
        let crypto = |part| Carried::Crypto {
            offset: number * 10 + part,
            len: 1,
        };
        (0..number % 4).map(crypto).collect::<Vec<_>>()
    };
    for number in 0..10_000 {
        ledger.on_sent(packet(now), &carried(number));
    }
    // Of each ten packets four arrive; the others are lost.
    for number in (0..10_000).filter(|number| number % 10 > 5) {
        settle(&mut ledger, now, number);
    }
    assert!(ledger.len() < 8_000, "{} packets kept", ledger.len());
    for number in (0..10_000).filter(|number| number % 10 <= 5) {
        let found: Vec<_> = ledger.carried_by(PacketNumber::new(number)).collect();
        assert_eq!(found, carried(number), "packet {number}");
    }
}
