//! AutoRec driven by hand: when it measures, decides and asks.

use std::collections::BTreeMap;

use proptest::prelude::*;
use swiftwater_quic::policy::{
    DataRange, Occasion, PacketFate, RejectionReason, Repair, RepairCause,
};
use swiftwater_units::ByteCount;

use crate::support::{ReinjectorDriver, SRTT, data_range, drive, millis, named, view};

const ACKED: PacketFate = PacketFate::Acked;
const LOST: PacketFate = PacketFate::Lost;
const SPURIOUS: PacketFate = PacketFate::Spurious;

#[test]
fn the_example_of_the_paper() {
    // Section V-B: level 2; a timed copy, one in off-mode, no third.
    let mut driver = drive("autorec-paper:level=2");
    driver.retransmit(data_range(0));
    driver.interval(5);
    assert_eq!(driver.report().silence_threshold, Some(millis(30)));
    driver.retransmit(data_range(1));
    assert_eq!(driver.ask(Occasion::LossRetransmitted), []);
    driver.wait(29);
    assert_eq!(
        driver.send(Occasion::Timer),
        [data_range(0)],
        "the older one"
    );
    driver.recovered(data_range(0));
    assert_eq!(driver.deadline_in(), Some(1));
    driver.wait(1);
    assert_eq!(driver.send(Occasion::Timer), [data_range(1)]);
    driver.wait(5);
    assert!(driver.policy.can_use_spare_room());
    assert_eq!(driver.send(Occasion::SpareRoom), [data_range(1)]);
    assert!(!driver.policy.can_use_spare_room());
    assert_eq!(driver.deadline_in(), None);
    driver.wait(100);
    assert_eq!(driver.send(Occasion::SpareRoom), []);
    assert_eq!(driver.send(Occasion::Timer), []);
    driver.retransmit_as(data_range(1), 2, 190, RepairCause::Loss);
    assert_eq!(
        driver.report().queued,
        0,
        "plain retransmission from now on"
    );
}

#[test]
fn a_copy_asked_for_is_not_asked_for_again_before_it_left() {
    let mut driver = drive("autorec-paper:level=3");
    driver.retransmit(data_range(0));
    assert_eq!(driver.ask(Occasion::SpareRoom).len(), 1);
    assert!(!driver.policy.can_use_spare_room());
    assert_eq!(driver.deadline_in(), None);
    driver.wait(500);
    assert_eq!(driver.ask(Occasion::Timer), []);
    driver.replica_sent(data_range(0));
    assert!(driver.policy.can_use_spare_room());
    assert_eq!(driver.ask(Occasion::SpareRoom).len(), 1);
    driver.recovered(data_range(0));
    driver.replica_sent(data_range(0));
    assert_eq!(driver.report().queued, 0, "it left after all, for nothing");
}

#[test]
fn a_rejected_copy_is_asked_for_again_after_another_silence() {
    for reason in [RejectionReason::QueueFull, RejectionReason::NoPath] {
        let mut driver = drive("autorec-paper:level=2");
        driver.retransmit(data_range(0));
        driver.interval(5);
        let asked = driver.ask(Occasion::Timer);
        assert_eq!(asked.len(), 1);
        driver.reject(&asked, reason);
        assert_eq!(driver.report().queued, 1);
        assert_eq!(driver.deadline_in(), Some(30), "not at once");
        driver.wait(30);
        assert_eq!(driver.send(Occasion::Timer), [data_range(0)]);
        // A rejection counts as no copy: the second is still to come.
        driver.wait(30);
        assert_eq!(driver.send(Occasion::Timer), [data_range(0)]);
        assert_eq!(driver.report().queued, 0);
    }
}

#[test]
fn a_copy_of_what_is_gone_is_not_asked_for_again() {
    let mut driver = drive("autorec-paper:level=2");
    driver.retransmit(data_range(0));
    driver.interval(5);
    let asked = driver.ask(Occasion::Timer);
    driver.reject(&asked, RejectionReason::RangeGone);
    assert_eq!(driver.report().queued, 0);
    assert_eq!(driver.deadline_in(), None);
    // What never was under repair may be rejected too.
    driver.reject(&[data_range(7).reinjection()], RejectionReason::QueueFull);
    assert_eq!(driver.report().queued, 0);
}

#[test]
fn the_first_interval_has_no_level() {
    let mut driver = drive("autorec-paper");
    driver.outcomes(&[(ACKED, 95), (LOST, 5)], false);
    driver.retransmit(data_range(0));
    assert_eq!((driver.level(), driver.report().decisions), (0, 0));
    assert!(!driver.policy.can_use_spare_room());
    driver.wait(301);
    driver.outcomes(&[], false);
    // 90 ms at 5 %: F(3) is 23.7 ms, F(2) 31.7 ms.
    assert_eq!((driver.level(), driver.report().decisions), (3, 1));
    assert!(
        !driver.policy.can_use_spare_room(),
        "that data range came too early"
    );
    driver.retransmit(data_range(1));
    assert!(driver.policy.can_use_spare_room());
}

#[test]
fn an_interval_lasts_five_round_trips() {
    let mut driver = drive("autorec-paper");
    driver.outcomes(&[(ACKED, 95), (LOST, 5)], false);
    driver.wait(299);
    driver.outcomes(&[], false);
    assert_eq!(driver.report().decisions, 0);
    driver.wait(1);
    driver.outcomes(&[], false);
    assert_eq!(driver.report().decisions, 1);
}

#[test]
fn an_interval_goes_on_until_it_has_enough_packets() {
    let mut driver = drive("autorec-paper");
    driver.outcomes(&[(ACKED, 18), (LOST, 1)], false);
    driver.wait(2_000);
    driver.outcomes(&[], false);
    assert_eq!(driver.report().decisions, 0);
    driver.outcomes(&[(ACKED, 1)], false);
    assert_eq!(driver.report().decisions, 1);
    assert!((driver.report().loss_rate - 0.05).abs() < 1e-12);
}

#[test]
fn an_interval_without_loss_switches_the_paper_off_and_the_default_not() {
    let mut paper = drive("autorec-paper");
    let mut ours = drive("autorec");
    for driver in [&mut paper, &mut ours] {
        driver.interval(5);
        driver.interval(5);
        assert!(driver.level() > 0);
        driver.retransmit(data_range(0));
        assert_eq!(driver.report().queued, 1);
        driver.interval(0);
    }
    assert_eq!((paper.level(), paper.report().queued), (0, 0));
    assert_eq!(ours.report().queued, 1);
    let rate = ours.report().loss_rate;
    assert!(
        rate > 0.03 && rate < 0.035,
        "of the last three intervals: {rate}"
    );
    // Long after, no loss counts any more.
    for _ in 0..200 {
        ours.interval(0);
    }
    assert_eq!((ours.level(), ours.report().queued), (0, 0));
}

#[test]
fn spurious_losses_are_no_losses() {
    let fates = [(ACKED, 90), (LOST, 10), (SPURIOUS, 10)];
    let rate = |specification: &str| {
        let mut driver = drive(specification);
        driver.outcomes(&fates, false);
        driver.interval(0);
        driver.report().loss_rate
    };
    assert!((rate("autorec-paper") - 0.05).abs() < 1e-12);
    assert!(rate("autorec").abs() < 1e-12);
    assert!(rate("autorec-paper:subtract-spurious=on").abs() < 1e-12);
}

#[test]
fn replicas_may_be_kept_out_of_the_loss_rate() {
    let rate = |specification: &str| {
        let mut driver = drive(specification);
        driver.outcomes(&[(ACKED, 50), (LOST, 50)], true);
        driver.interval(0);
        driver.report().loss_rate
    };
    assert!((rate("autorec-paper") - 0.25).abs() < 1e-12);
    assert!(rate("autorec-paper:exclude-replicas=on").abs() < 1e-12);
}

#[test]
fn the_detection_time_is_the_mean_over_the_interval() {
    let mut driver = drive("autorec-paper");
    // RFC 9002's time threshold until there is a sample.
    driver.interval(5);
    assert_eq!(driver.report().detection_time, Some(SRTT + SRTT / 8));
    driver.retransmit_as(data_range(0), 1, 80, RepairCause::Loss);
    driver.retransmit_as(data_range(1), 1, 120, RepairCause::Probe);
    driver.retransmit_as(data_range(1), 2, 900, RepairCause::Loss);
    driver.interval(5);
    assert_eq!(driver.report().detection_time, Some(millis(100)));
    driver.interval(5);
    assert_eq!(driver.report().detection_time, Some(millis(100)), "no news");
    driver.retransmit_as(data_range(2), 1, 60, RepairCause::Loss);
    driver.interval(5);
    assert_eq!(driver.report().detection_time, Some(millis(60)));
}

#[test]
fn probes_may_count_for_nothing() {
    let mut driver = drive("autorec-paper:probes=off,level=2");
    driver.retransmit_as(data_range(0), 1, 500, RepairCause::Probe);
    driver.interval(5);
    assert_eq!(driver.report().detection_time, Some(SRTT + SRTT / 8));
    assert_eq!(driver.report().queued, 0);
}

#[test]
fn copies_in_off_mode_keep_their_distance() {
    // 90 ms and level 2: T_thres is 30 ms, a quarter of it 7.5 ms.
    let mut driver = drive("autorec:level=2");
    driver.retransmit(data_range(0));
    driver.interval(5);
    driver.recovered(data_range(0));
    driver.retransmit(data_range(1));
    assert!(driver.policy.can_use_spare_room());
    assert_eq!(driver.ask(Occasion::SpareRoom), [], "too early");
    assert_eq!(driver.deadline_in(), Some(7));
    driver.wait(8);
    assert_eq!(
        driver.ask(Occasion::Timer),
        [],
        "the transport asks again if it has room"
    );
    assert_eq!(driver.deadline_in(), Some(22), "it doesn't spin");
    assert_eq!(driver.send(Occasion::SpareRoom), [data_range(1)]);
    // New data ends off-mode.
    assert_eq!(driver.ask(Occasion::SpareRoom), []);
    driver.policy.on_new_data(driver.now, ByteCount::new(1_000));
    assert_eq!(driver.deadline_in(), Some(30));

    let mut fixed = drive("autorec:level=2,min-gap=5ms");
    fixed.interval(0);
    fixed.retransmit(data_range(0));
    assert_eq!(fixed.ask(Occasion::SpareRoom), []);
    assert_eq!(fixed.deadline_in(), Some(5));

    let mut off = drive("autorec-paper:level=2");
    off.retransmit(data_range(0));
    assert_eq!(off.send(Occasion::SpareRoom), [data_range(0)]);
    assert_eq!(off.send(Occasion::SpareRoom), [data_range(0)]);
}

#[test]
fn each_way_to_send_can_be_switched_off() {
    let mut driver = drive("autorec-paper:level=2,opportunistic=off");
    driver.retransmit(data_range(0));
    assert_eq!(driver.deadline_in(), None);
    driver.wait(1_000);
    assert_eq!(driver.ask(Occasion::Timer), []);
    assert_eq!(driver.send(Occasion::SpareRoom), [data_range(0)]);

    let mut driver = drive("autorec-paper:level=2,off-mode=off");
    driver.retransmit(data_range(0));
    assert!(!driver.policy.can_use_spare_room());
    assert_eq!(driver.ask(Occasion::SpareRoom), []);
    driver.wait(1_000);
    assert_eq!(driver.send(Occasion::Timer), [data_range(0)]);
}

#[test]
fn the_newest_copy_counts_unless_configured_otherwise() {
    assert!(drive("autorec").policy.live_copies_defer_retransmission());
    assert!(
        !drive("autorec:watch=each")
            .policy
            .live_copies_defer_retransmission()
    );
}

#[test]
fn a_split_data_range_is_two_with_one_history() {
    let mut driver = drive("autorec-paper:level=2");
    driver.retransmit(data_range(0));
    assert_eq!(driver.send(Occasion::SpareRoom), [data_range(0)]);
    driver.policy.on_repair(
        driver.now,
        &Repair::Split {
            range: data_range(0),
            at: 400,
        },
    );
    let first = DataRange {
        len: 400,
        ..data_range(0)
    };
    let rest = DataRange {
        offset: 400,
        len: 600,
        ..data_range(0)
    };
    assert_eq!(driver.send(Occasion::SpareRoom), [first]);
    assert_eq!(driver.send(Occasion::SpareRoom), [rest]);
    assert_eq!(driver.send(Occasion::SpareRoom), []);
}

#[test]
fn parameters_change_while_it_runs() {
    let mut driver = drive("autorec-paper");
    driver.retransmit(data_range(0));
    driver.interval(5);
    driver.retransmit(data_range(1));
    assert_eq!((driver.level(), driver.report().queued), (3, 1));
    driver.policy.configure("alpha=0ms, beta=0.15").unwrap();
    assert_eq!(driver.level(), 3, "F(3) is infeasible, G(3) is allowed");
    driver.policy.configure("beta=0.5").unwrap();
    assert_eq!(driver.level(), 5, "gamma binds");
    let error = driver.policy.configure("beta=0,gama=1").unwrap_err();
    assert!(
        error.0.contains("gama") && error.0.contains("gamma"),
        "{error}"
    );
    assert_eq!(driver.level(), 5, "nothing changed");
    driver.policy.configure("beta=0").unwrap();
    assert_eq!((driver.level(), driver.report().queued), (0, 0));
}

#[test]
fn the_budget_looks_ten_seconds_back() {
    let mut driver = drive("autorec-paper:level=1,beta=0.5");
    assert_eq!(driver.report().budget_used, None);
    driver
        .policy
        .on_new_data(driver.now, ByteCount::new(10_000));
    driver.retransmit(data_range(0));
    driver.send(Occasion::SpareRoom);
    let used = |driver: &ReinjectorDriver| driver.report().budget_used.unwrap();
    // 1000 bytes of the 5000 that beta allows.
    assert!((used(&driver) - 0.2).abs() < 1e-12);
    driver.wait(5_000);
    driver
        .policy
        .on_new_data(driver.now, ByteCount::new(10_000));
    assert!((used(&driver) - 0.1).abs() < 1e-12);
    driver.wait(5_000);
    driver.policy.on_new_data(driver.now, ByteCount::new(1_000));
    assert!(used(&driver).abs() < 1e-12);
    driver.policy.configure("beta=0").unwrap();
    assert_eq!(driver.report().budget_used, None);
}

/// One thing that happens.
#[derive(Clone, Debug)]
enum Step {
    Lose(u64),
    Recover(usize),
    Abandon(usize),
    SpareRoom,
    Leave,
    Wait(u64),
    Interval(u64),
    NewData,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        5 => (0_u64..40).prop_map(Step::Lose),
        3 => any::<usize>().prop_map(Step::Recover),
        1 => any::<usize>().prop_map(Step::Abandon),
        5 => Just(Step::SpareRoom),
        6 => Just(Step::Leave),
        4 => (0_u64..60).prop_map(Step::Wait),
        1 => (0_u64..30).prop_map(Step::Interval),
        1 => Just(Step::NewData),
    ]
}

/// What is known of a data range under repair.
#[derive(Clone, Copy, Debug, Default)]
struct Known {
    rounds: u32,
    asked: u32,
    is_requested: bool,
}

/// Plays the transport, and checks what the policy asks for.
struct Transport {
    driver: ReinjectorDriver,
    data: BTreeMap<u64, Known>,
    requests: Vec<DataRange>,
    highest: u32,
    said: Vec<DataRange>,
}

impl Transport {
    fn new(specification: &str) -> Self {
        let driver = drive(specification);
        Self {
            highest: driver.level(),
            driver,
            data: BTreeMap::new(),
            requests: Vec::new(),
            said: Vec::new(),
        }
    }

    fn ask(&mut self, occasion: Occasion) -> Result<(), TestCaseError> {
        let wanted = self.driver.policy.can_use_spare_room();
        let asked: Vec<_> = self.driver.ask(occasion).iter().map(named).collect();
        if occasion == Occasion::SpareRoom {
            prop_assert!(asked.len() <= 1);
            prop_assert!(wanted || asked.is_empty());
        }
        for range in asked {
            let Some(known) = self.data.get_mut(&(range.offset / 1_000)) else {
                return Err(TestCaseError::fail(format!("{range:?} isn't under repair")));
            };
            prop_assert!(!known.is_requested, "{range:?} was asked for already");
            known.is_requested = true;
            known.asked += 1;
            prop_assert!(known.asked <= self.highest, "{range:?}: {known:?}");
            self.requests.push(range);
            self.said.push(range);
        }
        Ok(())
    }

    /// Lets time pass, deadline by deadline.
    fn wait(&mut self, ms: u64) -> Result<(), TestCaseError> {
        let until = self.driver.now + millis(ms);
        while let Some(deadline) = self.driver.policy.next_deadline()
            && deadline <= until
        {
            self.driver.now = self.driver.now.max(deadline);
            self.ask(Occasion::Timer)?;
            let next = self.driver.policy.next_deadline();
            prop_assert!(next.is_none_or(|next| next > self.driver.now), "it spins");
        }
        self.driver.now = until;
        Ok(())
    }

    fn end(&mut self, which: usize, recovered: bool) {
        let Some(&nth) = self.data.keys().nth(which % self.data.len().max(1)) else {
            return;
        };
        self.data.remove(&nth);
        self.requests.retain(|asked| *asked != data_range(nth));
        if recovered {
            self.driver.recovered(data_range(nth));
        } else {
            let event = Repair::Abandoned {
                range: data_range(nth),
            };
            self.driver.policy.on_repair(self.driver.now, &event);
        }
    }

    fn step(&mut self, step: &Step) -> Result<(), TestCaseError> {
        match *step {
            Step::Lose(nth) => {
                let known = self.data.entry(nth).or_default();
                known.rounds += 1;
                let round = known.rounds;
                self.driver
                    .retransmit_as(data_range(nth), round, 90, RepairCause::Loss);
            }
            Step::Recover(which) => self.end(which, true),
            Step::Abandon(which) => self.end(which, false),
            Step::SpareRoom => self.ask(Occasion::SpareRoom)?,
            Step::Leave => {
                if !self.requests.is_empty() {
                    let sent = self.requests.remove(0);
                    if let Some(known) = self.data.get_mut(&(sent.offset / 1_000)) {
                        known.is_requested = false;
                    }
                    self.driver.replica_sent(sent);
                }
            }
            Step::Wait(ms) => self.wait(ms)?,
            Step::Interval(lost) => {
                self.driver
                    .outcomes(&[(ACKED, 100 - lost), (LOST, lost)], false);
                self.wait(301)?;
                self.driver
                    .policy
                    .on_outcomes(self.driver.now, &[], &view());
            }
            Step::NewData => {
                let size = ByteCount::new(1_000);
                self.driver.policy.on_new_data(self.driver.now, size);
            }
        }
        self.highest = self.highest.max(self.driver.level());
        Ok(())
    }
}

proptest! {
    #[test]
    fn no_data_range_gets_more_copies_than_its_level_permits(
        steps in proptest::collection::vec(step(), 1..150),
        which in 0_usize..5,
    ) {
        let specification = [
            "autorec-paper",
            "autorec",
            "autorec-rtc-hc",
            "autorec:level=3",
            "autorec-paper:level=1,off-mode=off",
        ][which];
        let mut transport = Transport::new(specification);
        let mut twin = Transport::new(specification);
        for step in &steps {
            transport.step(step)?;
            twin.step(step)?;
        }
        prop_assert_eq!(&transport.said, &twin.said);
        prop_assert_eq!(transport.driver.report(), twin.driver.report());
        while !transport.data.is_empty() {
            transport.end(0, true);
        }
        transport.wait(1_000)?;
        transport.ask(Occasion::SpareRoom)?;
        prop_assert_eq!(transport.driver.report().queued, 0);
        prop_assert_eq!(transport.driver.policy.next_deadline(), None);
        prop_assert!(!transport.driver.policy.can_use_spare_room());
    }
}
