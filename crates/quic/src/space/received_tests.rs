//! Each ack-eliciting packet is reported at least once (RFC 9000, section 13.2.1), against a naive model.

use std::collections::BTreeSet;

use proptest::prelude::*;
use swiftwater_units::{Instant, PacketNumber};

use super::{Arrivals, Received};

/// What happens to one end's packet number space.
#[derive(Clone, Debug)]
enum Step {
    /// The packet that is `behind` the next one arrives, unless it did already.
    Arrive { behind: u64, ack_eliciting: bool },
    /// An ACK frame is written, with room for so many ranges.
    Report { ranges: usize },
    /// The peer acknowledges the ACK that was sent as many ACKs ago.
    ReportAcked { ago: usize },
}

fn step() -> impl Strategy<Value = Step> {
    let arrive =
        (prop_oneof![3 => Just(0_u64), 1 => 0..12_u64], 0..5_u8).prop_map(|(behind, kind)| {
            Step::Arrive {
                behind,
                ack_eliciting: kind > 0,
            }
        });
    let ranges = prop_oneof![4 => Just(usize::MAX), 1 => 1..3_usize];
    prop_oneof![
        6 => arrive,
        2 => ranges.prop_map(|ranges| Step::Report { ranges }),
        2 => (0..4_usize).prop_map(|ago| Step::ReportAcked { ago }),
    ]
}

#[derive(Debug)]
struct Model {
    received: Received,
    now: Instant,
    next: u64,
    arrived: BTreeSet<u64>,
    unreported: BTreeSet<u64>,
    reports: Vec<u64>,
}

impl Model {
    fn new() -> Self {
        Self {
            received: Received::new(),
            now: Instant::from_millis(1),
            next: 0,
            arrived: BTreeSet::new(),
            unreported: BTreeSet::new(),
            reports: Vec::new(),
        }
    }

    fn arrive(&mut self, number: u64, ack_eliciting: bool) {
        if !self.arrived.insert(number) {
            return;
        }
        if ack_eliciting {
            self.unreported.insert(number);
        }
        let packet = PacketNumber::new(number);
        let received = &mut self.received;
        received.on_packet(self.now, packet, ack_eliciting, None, None);
    }

    fn report(&mut self, ranges: usize) {
        let Some(largest) = self.received.largest() else {
            return;
        };
        let written: Vec<_> = self.received.ranges().take(ranges).collect();
        for range in &written {
            self.unreported.retain(|number| !range.contains(number));
        }
        self.reports.push(largest.get());
        self.received.on_ack_sent(written.len() as u64);
    }

    fn step(&mut self, step: &Step) {
        match *step {
            Step::Arrive {
                behind,
                ack_eliciting,
            } => {
                let number = self.next.saturating_sub(behind);
                // One number in a while is never used.
                self.next += if behind == 7 { 2 } else { 1 };
                self.arrive(number, ack_eliciting);
            }
            Step::Report { ranges } => self.report(ranges),
            Step::ReportAcked { ago } => {
                let report = self.reports.iter().rev().nth(ago);
                if let Some(&largest) = report {
                    self.received.on_ack_acked(PacketNumber::new(largest));
                }
            }
        }
    }

    fn check(&self) {
        let to_report: Vec<_> = self.received.ranges().collect();
        for number in &self.unreported {
            let is_kept = to_report.iter().any(|range| range.contains(number));
            assert!(is_kept, "{number} is never reported: {to_report:?}");
        }
        if !self.unreported.is_empty() {
            assert!(self.received.has_unacked());
        }
    }
}

proptest! {
    #[test]
    fn every_ack_eliciting_packet_is_reported(steps in prop::collection::vec(step(), 0..300)) {
        let mut model = Model::new();
        for step in &steps {
            model.step(step);
            model.check();
        }
        model.report(usize::MAX);
        prop_assert!(model.unreported.is_empty());
    }
}

#[test]
fn a_packet_that_arrives_after_an_ack_outlives_its_acknowledgement() {
    let mut model = Model::new();
    model.arrive(0, true);
    model.arrive(2, true);
    model.report(usize::MAX);
    model.arrive(1, true);
    model.received.on_ack_acked(PacketNumber::new(2));
    model.check();
}

/// A batch of datagrams may come in more pieces than an ACK lists otherwise.
#[test]
fn many_gaps_at_once_lose_no_report() {
    let mut model = Model::new();
    for number in 0..150 {
        model.arrive(number * 2, true);
        model.check();
    }
    assert!(model.received.ack_is_due(model.now));
    model.report(usize::MAX);
    assert!(model.unreported.is_empty());
    model.arrive(301, true);
    // Reported ranges are not kept beyond the limit.
    assert!(model.received.ranges().count() <= 64);
}

/// Expected and missing after these packets came, in this order.
fn arrivals(numbers: impl IntoIterator<Item = u64>) -> (u64, u64) {
    let mut model = Model::new();
    for number in numbers {
        model.arrive(number, true);
    }
    let arrivals = model.received.arrivals();
    (arrivals.expected.get(), arrivals.missing.get())
}

#[test]
fn a_number_is_missing_once_three_greater_ones_are_in_use() {
    assert_eq!(arrivals([]), (0, 0));
    assert_eq!(arrivals([0, 1, 2]), (0, 0));
    assert_eq!(arrivals(0..10), (7, 0));
    // 4 may still be under way.
    assert_eq!(arrivals([0, 1, 2, 3, 5, 6]), (4, 0));
    assert_eq!(arrivals([0, 1, 2, 3, 5, 6, 7]), (5, 1));
    assert_eq!(arrivals([0, 1, 2, 3, 7]), (5, 1));
    assert_eq!(arrivals([0, 1, 2, 3, 10]), (8, 4));
}

#[test]
fn what_comes_late_is_not_missing() {
    assert_eq!(arrivals([0, 1, 3, 2, 5, 4, 7, 6]), (5, 0));
    assert_eq!(arrivals([0, 9, 1, 2, 3, 4, 5, 6, 7, 8]), (7, 0));
    let sent = 0..400;
    assert_eq!(arrivals(sent.rev()), (397, 0));
}

#[test]
fn numbers_count_from_the_least_that_came() {
    assert_eq!(arrivals(1_000..1_010), (7, 0));
    assert_eq!(arrivals([7, 5, 6, 8, 9]), (2, 0));
    let last = (1 << 62) - 1;
    assert_eq!(arrivals([last]), (0, 0));
    assert_eq!(arrivals([0, last]), (last - 2, last - 3));
}

#[test]
fn the_difference_between_two_counts_is_never_negative() {
    let counts = |expected: u64, missing: u64| Arrivals {
        expected: expected.into(),
        missing: missing.into(),
    };
    let before = counts(10, 3);
    assert_eq!(counts(30, 5).since(&before), counts(20, 2));
    assert_eq!(counts(30, 1).since(&before), counts(20, 0));
    assert_eq!(counts(4, 1).since(&before), counts(0, 0));
    assert_eq!(counts(20, 2).missing_share(), Some(0.1));
    assert_eq!(counts(0, 0).missing_share(), None);
}

proptest! {
    /// With no more gaps than are kept, against a set.
    #[test]
    fn arrivals_agree_with_a_set(numbers in prop::collection::vec(100..400_u64, 0..200)) {
        let set: BTreeSet<u64> = numbers.iter().copied().collect();
        let expected = match (set.first(), set.last()) {
            (Some(&first), Some(&last)) => first..(last + 1).saturating_sub(3).max(first),
            _ => 0..0,
        };
        let missing = expected.clone().filter(|number| !set.contains(number)).count();
        prop_assert_eq!(arrivals(numbers), (expected.end - expected.start, missing as u64));
    }
}
