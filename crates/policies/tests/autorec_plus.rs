//! autorec+: the parts on their own, and the whole under made-up events.

use std::collections::BTreeMap;
use std::time::Duration;

use proptest::prelude::*;
use swiftwater_policies::CongestionGuardConfig;
use swiftwater_policies::autorec::LossModel;
use swiftwater_policies::autorec_plus::{
    AutoRecPlus, AutoRecPlusConfig, Budget, Ceiling, ConditionalLoss, LossCorrelation, LossRate,
    MAX_COPIES, Spacing,
};
use swiftwater_quic::policy::{
    Copied, DataRange, Hints, Occasion, PacketFate, PacketOutcome, PathView, Reinjection,
    Reinjector, Rejection, RejectionReason, Repair, RepairCause,
};
use swiftwater_units::{Dir, Instant, PacketNumber, PathId, Side, StreamId};

fn millis(n: u64) -> Duration {
    Duration::from_millis(n)
}

fn at(ms: u64) -> Instant {
    Instant::ZERO + millis(ms)
}

fn outcome(number: u64, sent_at: Instant, lost: bool) -> PacketOutcome {
    PacketOutcome {
        path: PathId::ZERO,
        number: PacketNumber::new(number),
        sent_at,
        size: 1200,
        repeated: false,
        fate: if lost {
            PacketFate::Lost
        } else {
            PacketFate::Acked
        },
    }
}

/// A generator of pseudo-random numbers below 1, so that tests are the same every time.
struct Dice(u64);

impl Dice {
    fn roll(&mut self) -> f64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) as f64 / (1_u64 << 53) as f64
    }
}

#[test]
fn independent_losses_give_a_flat_curve() {
    let mut dice = Dice(7);
    let mut correlation = LossCorrelation::new();
    for n in 0..20_000 {
        correlation.on_outcome(&outcome(n, at(n), dice.roll() < 0.05));
    }
    let curve = correlation.curve(0.05);
    for lag in [1, 4, 8, 15, 30, 60, 120, 200] {
        let loss = curve.after(millis(lag));
        assert!((loss - 0.05).abs() < 0.03, "{lag} ms: {loss}");
    }
}

#[test]
fn bursts_of_30_ms_show_in_the_curve() {
    let mut dice = Dice(3);
    let mut correlation = LossCorrelation::new();
    let mut bad = false;
    for n in 0..40_000 {
        if n % 30 == 0 {
            bad = dice.roll() < 0.1;
        }
        let lost = dice.roll() < if bad { 0.6 } else { 0.01 };
        correlation.on_outcome(&outcome(n, at(n), lost));
    }
    let curve = correlation.curve(0.07);
    assert!(curve.after(millis(1)) > 0.45, "{curve:?}");
    assert!(curve.after(millis(100)) < 0.15, "{curve:?}");
}

#[test]
fn the_order_in_which_fates_are_known_does_not_matter() {
    let packets: Vec<_> = (0..200).map(|n| outcome(n, at(n), n % 7 == 0)).collect();
    let mut rising = LossCorrelation::new();
    for packet in &packets {
        rising.on_outcome(packet);
    }
    // Losses are known later than the packets around them.
    let mut late = LossCorrelation::new();
    for chunk in packets.chunks(20) {
        let (lost, acked): (Vec<_>, Vec<_>) = chunk
            .iter()
            .partition(|packet| packet.fate == PacketFate::Lost);
        for packet in acked.into_iter().chain(lost) {
            late.on_outcome(packet);
        }
    }
    assert_eq!(rising.curve(0.14), late.curve(0.14));
}

fn spacing(loss: &ConditionalLoss, loss_rate: f64, detection_time: Duration) -> Spacing<'_> {
    Spacing {
        loss,
        loss_rate,
        detection_time,
        min_gap: millis(1),
        tail_weight: 4.0,
    }
}

#[test]
fn copies_follow_at_once_where_losses_are_independent() {
    let time = millis(100);
    for rate in [0.01, 0.05, 0.2] {
        let loss = ConditionalLoss::independent(rate);
        for copies in 1..=MAX_COPIES {
            let plan = spacing(&loss, rate, time).plan(copies);
            let even = LossModel::new(rate, time).recovery_latency(copies as u32);
            assert!(plan.expected_latency < even, "{rate} {copies}");
            assert_eq!(plan.gap(0), Some(millis(1)));
        }
        let none = spacing(&loss, rate, time).plan(0);
        let model = LossModel::new(rate, time).recovery_latency(0);
        assert!(none.expected_latency.abs_diff(model) < Duration::from_micros(1));
    }
}

#[test]
fn copies_wait_for_the_end_of_bursts() {
    let mut dice = Dice(9);
    let mut correlation = LossCorrelation::new();
    let mut bad = false;
    for n in 0..40_000 {
        if n % 30 == 0 {
            bad = dice.roll() < 0.1;
        }
        let lost = dice.roll() < if bad { 0.95 } else { 0.0 };
        correlation.on_outcome(&outcome(n, at(n), lost));
    }
    let curve = correlation.curve(0.095);
    let plan = spacing(&curve, 0.095, millis(300)).plan(1);
    assert!(plan.gap(0).unwrap() >= millis(20), "{plan:?}");
}

#[test]
fn spurious_losses_are_taken_off_the_rate() {
    let mut rate = LossRate::new();
    for n in 0..100 {
        rate.on_outcome(&outcome(n, at(n), n % 10 == 0));
    }
    let before = rate.rate();
    assert!((before - 0.1).abs() < 1e-9);
    for n in (0..100).step_by(20) {
        rate.on_outcome(&PacketOutcome {
            fate: PacketFate::Spurious,
            ..outcome(n, at(n), false)
        });
    }
    assert!((rate.rate() - 0.05).abs() < 1e-9);
}

proptest! {
    /// Whatever was sent when, what the budget grants keeps the share in every window that ends
    /// with a copy.
    #[test]
    fn the_budget_holds_in_every_window(
        steps in prop::collection::vec((0_u64..400, 0_u64..4000), 1..300),
        share in 0.05_f64..1.0,
    ) {
        let mut budget = Budget::new();
        let mut now = Instant::ZERO;
        let mut sent: Vec<(Instant, u64, u64)> = Vec::new();
        for (gap, bytes) in steps {
            now += millis(gap);
            budget.on_new_data(now, bytes);
            sent.push((now, bytes, 0));
            let room = budget.room(now, share, 0);
            if room > 0 {
                budget.on_replica(now, room);
                sent.push((now, 0, room));
                // Accounts are kept in quarters of a second: the window is 9.75 to 10 s.
                let window = Duration::from_secs(10);
                let (new, copies) = sent
                    .iter()
                    .filter(|(at, _, _)| now.saturating_since(*at) < window)
                    .fold((0, 0), |(new, copies), (_, n, c)| (new + n, copies + c));
                let slack = sent
                    .iter()
                    .filter(|(at, _, _)| {
                        let age = now.saturating_since(*at);
                        age + millis(250) >= window && age < window
                    })
                    .map(|(_, _, copies)| copies)
                    .sum::<u64>();
                prop_assert!(copies - slack <= (share * new as f64) as u64 + 1);
            }
        }
    }

    /// The curve never rises, whatever was seen.
    #[test]
    fn the_curve_falls(
        packets in prop::collection::vec((0_u64..50, any::<bool>()), 0..400),
        rate in 0.0_f64..0.99,
    ) {
        let mut correlation = LossCorrelation::new();
        let mut now = 0;
        for (n, (gap, lost)) in packets.into_iter().enumerate() {
            now += gap;
            correlation.on_outcome(&outcome(n as u64, at(now), lost));
        }
        let curve = correlation.curve(rate);
        let lags = [1, 3, 7, 15, 30, 60, 120, 240].map(|lag| curve.after(millis(lag)));
        prop_assert!(lags.windows(2).all(|pair| pair[0] >= pair[1] - 1e-12), "{lags:?}");
        prop_assert!(lags.iter().all(|loss| (0.0..=1.0).contains(loss)), "{lags:?}");
    }
}

/// Runs a policy as a connection would: time steps of 1 ms, packets that are lost by a rule, every
/// loss detected and retransmitted after `T`, copies sent at once.
struct World {
    policy: AutoRecPlus,
    view: PathView,
    now: u64,
    /// Copies of each data range and round.
    copies: BTreeMap<(DataRange, u32), usize>,
    rounds: BTreeMap<DataRange, u32>,
    replica_bytes: u64,
    new_bytes: u64,
    /// (time, new, replica) for windows.
    accounts: Vec<(u64, u64, u64)>,
}

const LEN: u32 = 1000;
const T: u64 = 70;

fn data_range(n: u64) -> DataRange {
    DataRange {
        stream: StreamId::new(Side::Server, Dir::Uni, 0),
        offset: n * u64::from(LEN),
        len: LEN,
    }
}

fn view() -> PathView {
    PathView::builder(PathId::ZERO)
        .smoothed_rtt(millis(60))
        .rtt_var(millis(1))
        .min_rtt(millis(60))
        .latest_rtt(millis(60))
        .build()
}

impl World {
    fn new(config: AutoRecPlusConfig) -> Self {
        Self {
            policy: AutoRecPlus::new(config),
            view: view(),
            now: 0,
            copies: BTreeMap::new(),
            rounds: BTreeMap::new(),
            replica_bytes: 0,
            new_bytes: 0,
            accounts: Vec::new(),
        }
    }

    /// One new packet, and whatever copies are due.
    fn step(&mut self, lost: bool) {
        let now = at(self.now);
        self.policy.on_new_data(now, u64::from(LEN).into());
        self.new_bytes += u64::from(LEN);
        let mut replicas = 0;
        let outcome = outcome(self.now, now, lost);
        self.policy.on_outcomes(now, &[outcome], &self.view);
        while self.policy.next_deadline().is_some_and(|due| due <= now) {
            let mut out: Vec<Reinjection> = Vec::new();
            let none = &mut std::iter::empty();
            let hints = Hints::default();
            self.policy
                .reinject(now, Occasion::Timer, none, &[self.view], &hints, &mut out);
            for copy in out {
                let range = DataRange {
                    stream: copy.stream,
                    offset: copy.offset,
                    len: copy.len,
                };
                self.policy.on_repair(now, &Repair::ReplicaSent { range });
                let round = self.rounds[&range];
                *self.copies.entry((range, round)).or_default() += 1;
                replicas += u64::from(copy.len);
            }
        }
        self.replica_bytes += replicas;
        self.accounts.push((self.now, u64::from(LEN), replicas));
        self.now += 1;
    }

    fn retransmit(&mut self, n: u64, round: u32, deadline: Option<Instant>) {
        let now = at(self.now);
        let first_sent_at = now - millis(T);
        self.rounds.insert(data_range(n), round);
        let event = Repair::Retransmitted {
            range: data_range(n),
            first_sent_at,
            lost_at: now,
            round,
            cause: RepairCause::Loss,
            priority: swiftwater_quic::Priority::default(),
            deadline,
        };
        self.policy.on_repair(now, &event);
    }

    fn recover(&mut self, n: u64) {
        let event = Repair::Recovered {
            range: data_range(n),
            by: Copied::Replica,
        };
        self.policy.on_repair(at(self.now), &event);
    }

    fn sent(&self, n: u64) -> usize {
        let of = |((other, _), _): &(&(DataRange, u32), &usize)| *other == data_range(n);
        self.copies
            .iter()
            .filter(of)
            .map(|(_, copies)| copies)
            .sum()
    }
}

fn eager() -> AutoRecPlusConfig {
    AutoRecPlusConfig {
        ceiling: Ceiling::Off,
        alpha: Duration::ZERO,
        beta: 1.0,
        gamma: 1.0,
        ..AutoRecPlusConfig::default()
    }
}

/// A world that has seen 5 % of its packets lost for a while.
fn seasoned(config: AutoRecPlusConfig) -> World {
    let mut world = World::new(config);
    let mut dice = Dice(5);
    for _ in 0..4000 {
        world.step(dice.roll() < 0.05);
    }
    world
}

#[test]
fn a_recovered_data_range_gets_no_more_copies() {
    let mut world = seasoned(eager());
    world.retransmit(1, 1, None);
    world.recover(1);
    for _ in 0..300 {
        world.step(false);
    }
    assert_eq!(world.sent(1), 0);
    assert_eq!(world.policy.report().queued, 0);
    assert_eq!(world.policy.next_deadline(), None);
}

#[test]
fn a_second_round_has_copies_again_and_each_round_is_bounded() {
    let mut world = seasoned(eager());
    for round in 1..=3 {
        world.retransmit(1, round, None);
        for _ in 0..T {
            world.step(false);
        }
        let copies = world.copies[&(data_range(1), round)];
        assert!((1..=MAX_COPIES).contains(&copies), "{round}: {copies}");
    }
    let single = AutoRecPlusConfig {
        renew: false,
        ..eager()
    };
    let mut world = seasoned(single);
    world.retransmit(1, 2, None);
    for _ in 0..300 {
        world.step(false);
    }
    assert_eq!(world.sent(1), 0);
}

#[test]
fn no_copy_leaves_that_would_come_too_late() {
    let mut world = seasoned(eager());
    // Half a round trip is 30 ms.
    let deadline = at(world.now + 25);
    world.retransmit(1, 1, Some(deadline));
    for _ in 0..300 {
        world.step(false);
    }
    assert_eq!(world.sent(1), 0);
}

#[test]
fn the_last_chance_has_more_copies_than_an_early_one() {
    let copies = |left: u64| {
        let mut world = seasoned(eager());
        let deadline = at(world.now + left);
        world.retransmit(1, 1, Some(deadline));
        for _ in 0..60 {
            world.step(false);
        }
        world.sent(1)
    };
    let (last, early) = (copies(90), copies(1000));
    assert!(last > early, "{last} {early}");
}

#[test]
fn the_budget_holds_under_a_flood_of_losses() {
    let config = AutoRecPlusConfig {
        beta: 0.1,
        gamma: 1.0,
        alpha: Duration::ZERO,
        ceiling: Ceiling::Off,
        ..AutoRecPlusConfig::default()
    };
    let mut world = World::new(config);
    let mut dice = Dice(11);
    for n in 0..30_000 {
        let lost = dice.roll() < if n / 2000 % 2 == 0 { 0.3 } else { 0.0 };
        world.step(lost);
        if lost {
            world.retransmit(n, 1, None);
        }
    }
    assert!(world.replica_bytes > 0);
    for end in (10_000..30_000).step_by(100) {
        let window = &world.accounts[end - 10_000..end];
        let new: u64 = window.iter().map(|(_, new, _)| new).sum();
        let copies: u64 = window.iter().map(|(_, _, copies)| copies).sum();
        let share = copies as f64 / new as f64;
        assert!(share <= 0.11, "{end}: {share}");
    }
}

#[test]
fn no_more_is_spent_than_by_autorec() {
    // AutoRec's decisions for the same packets: what its replicas come to.
    let mut world = seasoned(AutoRecPlusConfig::default());
    let mut dice = Dice(17);
    let (spent, first) = (world.replica_bytes, world.now);
    let mut lost = 0;
    for n in first..first + 20_000 {
        let is_lost = dice.roll() < 0.05;
        world.step(is_lost);
        if is_lost {
            lost += 1;
            world.retransmit(n, 1, None);
        }
    }
    // T is 70 ms: F(2) <= 30 ms, and 2 * 5 % is within the other tolerances.
    let per_loss = (world.replica_bytes - spent) as f64 / f64::from(lost * LEN);
    assert!(per_loss > 1.5, "{per_loss}");
    assert!(per_loss < 2.2, "{per_loss}");
}

#[test]
fn tolerances_change_on_a_running_policy() {
    let mut world = seasoned(eager());
    assert!(world.policy.report().redundancy_level > 0);
    let error = world.policy.configure("beta=zero").unwrap_err();
    assert!(error.to_string().contains("beta"), "{error}");
    world.policy.configure("beta=0,alpha=1s").unwrap();
    world.step(false);
    assert_eq!(world.policy.report().redundancy_level, 0);
}

/// Asks for the copies that are due in the next `ms` milliseconds, without sending any.
fn asked_within(policy: &mut AutoRecPlus, now: &mut u64, ms: u64) -> Vec<Reinjection> {
    let mut out = Vec::new();
    for _ in 0..ms {
        *now += 1;
        let none = &mut std::iter::empty();
        let hints = Hints::default();
        policy.reinject(at(*now), Occasion::Timer, none, &[view()], &hints, &mut out);
    }
    out
}

#[test]
fn rejected_copies_give_their_share_of_the_budget_back() {
    let mut world = World::new(AutoRecPlusConfig {
        ceiling: Ceiling::Off,
        ..AutoRecPlusConfig::default()
    });
    for n in 0..400 {
        world.step(n % 20 == 0);
    }
    // As much as the budget holds is asked for, and rejected.
    for n in 0..400 {
        world.retransmit(n, 1, None);
    }
    let mut now = world.now;
    let asked = asked_within(&mut world.policy, &mut now, 60);
    let first = asked.len();
    assert!((3..200).contains(&first), "{first}");
    let rejections: Vec<_> = asked
        .iter()
        .map(|&copy| Rejection::new(copy, RejectionReason::RangeGone))
        .collect();
    world.policy.on_rejected(at(now), &rejections);
    // As many of the data that had no copy for want of budget have theirs now.
    let asked = asked_within(&mut world.policy, &mut now, 60);
    assert!(asked.len() * 2 >= first, "{first} {}", asked.len());
    // And those whose copy had no room in the queue are tried again.
    let rejections: Vec<_> = asked
        .iter()
        .map(|&copy| Rejection::new(copy, RejectionReason::QueueFull))
        .collect();
    world.policy.on_rejected(at(now), &rejections);
    let others = |n: &u64| {
        !asked
            .iter()
            .any(|copy| copy.offset == data_range(*n).offset)
    };
    for n in (0..400).filter(others) {
        world.recover(n);
    }
    let again = asked_within(&mut world.policy, &mut now, 60);
    assert!(asked.iter().all(|copy| again.contains(copy)));
}

/// Copies per loss when one packet in `every` is lost, one per millisecond, after the first `skip`
/// losses; and the fewest of a loss.
fn copies_of_rare_losses(config: AutoRecPlusConfig, every: u64, skip: u64) -> (f64, usize) {
    let mut world = World::new(config);
    for _ in 0..200 {
        world.step(false);
    }
    let losses = 60;
    for loss in 0..losses {
        for n in 0..every {
            world.step(n == 0);
            if n == 0 {
                world.retransmit(loss, 1, None);
            }
            // An acknowledgement of the retransmission.
            if n == 2 * T {
                world.recover(loss);
            }
        }
    }
    let copies: Vec<usize> = (skip..losses).map(|loss| world.sent(loss)).collect();
    let mean = copies.iter().sum::<usize>() as f64 / copies.len() as f64;
    (mean, copies.into_iter().min().unwrap())
}

fn under(ceiling: Ceiling) -> AutoRecPlusConfig {
    AutoRecPlusConfig {
        ceiling,
        // As many copies as the limit permits.
        residual: 0.0,
        ..AutoRecPlusConfig::default()
    }
}

#[test]
fn the_shipped_ceiling_pays_for_losses_after_intervals_without_any() {
    // One loss in 700 packets: the interval before a loss has none, and the published AutoRec no
    // replicas.
    let (shipped, _) = copies_of_rare_losses(under(Ceiling::Shipped), 700, 20);
    let (paper, _) = copies_of_rare_losses(under(Ceiling::Paper), 700, 20);
    assert!(paper <= 1.0, "{paper}");
    assert!(shipped >= 1.25, "{shipped}");
    let off = AutoRecPlusConfig {
        alpha: Duration::ZERO,
        ..under(Ceiling::Off)
    };
    let (off, _) = copies_of_rare_losses(off, 700, 20);
    assert!(off > shipped, "{off}");
}

#[test]
fn a_rare_loss_has_a_copy_even_if_autorec_grants_none() {
    let (_, least) = copies_of_rare_losses(under(Ceiling::Paper), 2500, 20);
    assert!(least >= 1);
}

#[test]
fn an_unused_budget_gives_a_data_range_more_copies() {
    let copies = |surplus_step| {
        let mut world = seasoned(AutoRecPlusConfig {
            surplus_step,
            ..under(Ceiling::Shipped)
        });
        for _ in 0..20_000 {
            world.step(false);
        }
        for n in 1..=3 {
            world.step(true);
            world.retransmit(n, 1, None);
            for _ in 0..200 {
                world.step(false);
            }
        }
        world.sent(3)
    };
    let (more, usual) = (copies(Some(4)), copies(None));
    assert!(more > usual, "{more} {usual}");
}

#[test]
fn the_weight_of_second_detections_spreads_copies() {
    let mut dice = Dice(9);
    let mut correlation = LossCorrelation::new();
    let mut bad = false;
    for n in 0..40_000 {
        if n % 30 == 0 {
            bad = dice.roll() < 0.1;
        }
        let lost = dice.roll() < if bad { 0.6 } else { 0.01 };
        correlation.on_outcome(&outcome(n, at(n), lost));
    }
    let curve = correlation.curve(0.07);
    let residual = |tail_weight| {
        let spacing = Spacing {
            tail_weight,
            ..spacing(&curve, 0.07, millis(100))
        };
        spacing.plan(2).residual_loss
    };
    assert!(residual(50.0) < residual(0.0));
}

#[test]
fn the_ceiling_has_three_settings() {
    let mut policy = AutoRecPlus::new(AutoRecPlusConfig::default());
    for setting in ["paper", "shipped", "off", "shipped"] {
        policy.configure(&format!("ceiling={setting}")).unwrap();
    }
    let error = policy.configure("ceiling=on").unwrap_err();
    assert!(error.to_string().contains("shipped"), "{error}");
}

#[test]
fn the_budget_holds_under_each_ceiling() {
    for ceiling in [Ceiling::Paper, Ceiling::Shipped, Ceiling::Off] {
        let config = AutoRecPlusConfig {
            beta: 0.1,
            gamma: 1.0,
            alpha: Duration::ZERO,
            ..under(ceiling)
        };
        let mut world = World::new(config);
        let mut dice = Dice(13);
        for n in 0..30_000 {
            let lost = dice.roll() < if n / 2000 % 2 == 0 { 0.2 } else { 0.01 };
            world.step(lost);
            if lost {
                world.retransmit(n, 1, None);
            }
        }
        assert!(world.replica_bytes > 0);
        for end in (10_000..30_000).step_by(100) {
            let window = &world.accounts[end - 10_000..end];
            let new: u64 = window.iter().map(|(_, new, _)| new).sum();
            let copies: u64 = window.iter().map(|(_, _, copies)| copies).sum();
            // The accounts go by quarters of a second.
            assert!(copies as f64 <= 0.11 * new as f64, "{ceiling:?} {end}");
        }
    }
}

#[test]
fn a_queue_in_the_network_limits_the_copies_of_a_round() {
    let copies = |is_on| {
        let guard = CongestionGuardConfig {
            is_on,
            ..CongestionGuardConfig::default()
        };
        let mut world = seasoned(AutoRecPlusConfig { guard, ..eager() });
        world.view.latest_rtt = millis(200);
        world.retransmit(1, 1, None);
        for _ in 0..T {
            world.step(false);
        }
        world.sent(1)
    };
    assert_eq!(copies(true), 1);
    assert!(copies(false) > 1, "{}", copies(false));
}
