//! autorec+: AutoRec's aims with measured burstiness, a hard budget and deadlines.
//!
//! AutoRec (`autorec/`) assumes independent losses, spreads copies evenly over the detection time,
//! fixes their number per decision interval from that interval's losses, and bounds cost in
//! expectation. From the sender alone, like AutoRec, this policy does otherwise where that costs
//! most:
//!
//! - **Spacing** (`spacing.rs`): a copy is as likely lost as the conditional loss curve
//!   (`correlation.rs`) says for its distance from the one before. Where losses are independent the
//!   first copy follows at once, so the mean recovery latency is a few milliseconds instead of
//!   `T_unit / (K + 1)`; where they come in bursts it waits until the burst is likely over.
//! - **How many**: as many as AutoRec would send in all (`autorec_budget.rs`), but where they are of use: the
//!   first losses after a quiet time, for which AutoRec's last interval says nothing, have copies; a
//!   burst doesn't switch itself off; and none are sent once a further one is pointless.
//! - **Later rounds**: a data range lost with all its copies gets copies again. Such data are rare, and the
//!   ones that a viewer notices.
//! - **Budget** (`budget.rs`): β bounds the replica bytes of any ten seconds, not an expectation. When
//!   it runs short, first copies go before further ones, higher priorities before lower ones.
//! - **Deadlines**: no copy that would come too late; few copies while another retransmission would
//!   still arrive before their deadline, as many as the budget gives for the last one.
//! - **Spurious losses** don't count as losses.

mod autorec_budget;
mod budget;
mod config;
mod correlation;
mod decision;
mod loss_rate;
mod spacing;

pub use budget::Budget;
pub use config::{AutoRecPlusConfig, Ceiling};
pub use correlation::{ConditionalLoss, LossCorrelation};
pub use loss_rate::LossRate;
pub use spacing::{MAX_COPIES, Plan, Spacing};

use std::time::Duration;

use swiftwater_quic::Priority;
use swiftwater_quic::policy::{
    ConfigureError, DataRange, Hints, Occasion, OutstandingRange, PacketFate, PacketOutcome,
    PathView, Reinjection, Reinjector, ReinjectorReport, Rejection, RejectionReason, Repair,
    RepairCause,
};
use swiftwater_tunable::Tunable;
use swiftwater_units::{ByteCount, Instant};

use self::autorec_budget::AutoRecBudget;
use self::decision::{CopyDecision, PathLosses};
use crate::autorec::{LossModel, Tolerances};
use crate::congestion_guard::CongestionGuard;
use crate::due_queue::DueQueue;

/// Least time between two decisions.
const MIN_INTERVAL: Duration = Duration::from_millis(100);

/// A copy that the budget doesn't cover is tried again after this time.
const RETRY: Duration = Duration::from_millis(20);

/// Share of the budget that is kept for first copies.
const RESERVE: f64 = 0.2;

/// Detection time of a path of which nothing is known.
const ASSUMED_DETECTION: Duration = Duration::from_millis(100);

/// Weight of a sample in the smoothed detection time.
const DETECTION_GAIN: f64 = 0.125;

/// See the module's documentation.
#[derive(Debug)]
pub struct AutoRecPlus {
    config: AutoRecPlusConfig,
    loss_rate: LossRate,
    correlation: LossCorrelation,
    budget: Budget,
    /// `None` without a ceiling.
    ceiling: Option<AutoRecBudget>,
    guard: CongestionGuard,
    under_repair: DueQueue<Grant>,
    /// Data that are due, while it is decided which are asked for.
    due: Vec<(DataRange, Instant, Grant)>,
    /// Bytes asked for that have not left.
    asked: u64,
    detection_time: Option<Duration>,
    /// What stands in until a detection time was measured.
    assumed_detection: Duration,
    /// Half a round trip: what a copy needs to arrive.
    one_way: Duration,
    decision: CopyDecision,
    decided_at: Option<Instant>,
    /// A packet was lost since the last decision.
    lossy: bool,
    decisions: u64,
}

/// What is granted to data under repair. They are due when their next copy is; not while one that was
/// asked for hasn't left, and not after the last.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Grant {
    /// Copies sent in this round.
    copies: usize,
    /// Copies granted in this round.
    granted: usize,
    /// Retransmissions so far.
    round: u32,
    priority: Priority,
    deadline: Option<Instant>,
    /// A copy was asked for and hasn't left.
    is_asked: bool,
}

impl AutoRecPlus {
    /// Nothing is known of the path yet.
    pub fn new(config: AutoRecPlusConfig) -> Self {
        Self {
            config,
            loss_rate: LossRate::new(),
            correlation: LossCorrelation::new(),
            budget: Budget::new(),
            ceiling: AutoRecBudget::new(&config),
            guard: CongestionGuard::new(config.guard),
            under_repair: DueQueue::default(),
            due: Vec::new(),
            asked: 0,
            detection_time: None,
            assumed_detection: ASSUMED_DETECTION,
            one_way: Duration::ZERO,
            decision: CopyDecision::none(PathLosses::none(ASSUMED_DETECTION)),
            decided_at: None,
            lossy: false,
            decisions: 0,
        }
    }

    fn detection_time(&self) -> Duration {
        self.detection_time.unwrap_or(self.assumed_detection)
    }

    fn decide(&mut self, now: Instant) {
        self.decided_at = Some(now);
        self.decisions += 1;
        self.loss_rate.decay(now);
        self.correlation.decay(now);
        let loss_rate = self.loss_rate.rate();
        let curve = if self.config.burst_aware {
            self.correlation.curve(loss_rate)
        } else {
            ConditionalLoss::independent(loss_rate)
        };
        let path = PathLosses {
            loss_rate,
            curve,
            detection_time: self.detection_time(),
        };
        self.decision = CopyDecision::new(path, self.limit(loss_rate), &self.config);
    }

    /// The most copies per data range that the tolerances permit at the present loss rate.
    fn limit(&self, loss_rate: f64) -> usize {
        let config = &self.config;
        if loss_rate <= 0.0 {
            return 0;
        }
        let max = config.max_level;
        if let Some(ceiling) = &self.ceiling {
            return ceiling.level().min(max as usize);
        }
        let tolerances = Tolerances {
            alpha: config.alpha,
            beta: config.beta,
            gamma: config.gamma,
        };
        let model = LossModel::new(loss_rate, self.detection_time());
        let choice = model.choose(&tolerances, max);
        // Where no whole level fits the budget, the budget itself says when it is used up.
        let for_cost = choice.for_cost.max(u32::from(config.beta > 0.0));
        choice.for_latency.min(for_cost).min(choice.for_goodput) as usize
    }

    /// Copies for a data range that was retransmitted for the `round`th time.
    fn grant(&mut self, now: Instant, round: u32, deadline: Option<Instant>) -> usize {
        if round > 1 && !self.config.renew {
            return 0;
        }
        let usual = if round > 1 {
            self.decision.strong.copies()
        } else {
            self.decision.plan.copies()
        };
        let Some(deadline) = deadline.filter(|_| self.config.deadline_aware) else {
            return usual;
        };
        let left = deadline.saturating_since(now + self.one_way);
        if left.is_zero() {
            return 0;
        }
        let rounds_left = left.as_nanos() / self.detection_time().as_nanos().max(1);
        if rounds_left == 0 {
            return self.decision.strong.copies().max(usual);
        }
        // What this round leaves is left to the later ones, each with the strongest plan.
        let again = self.decision.path.curve.after(self.detection_time());
        let later = again * self.decision.strong.residual_loss;
        let later = libm::pow(later, rounds_left as f64);
        let (decision, config) = (&mut self.decision, &self.config);
        (0..=usual)
            .find(|&copies| again * decision.residual(copies, config) * later <= config.residual)
            .unwrap_or(usual)
    }

    /// When copy `nth` of a data range in `round` is due if the one before leaves now.
    fn gap(&self, round: u32, nth: usize) -> Duration {
        self.decision.gap(round, nth, &self.config)
    }

    fn on_retransmitted(
        &mut self,
        now: Instant,
        range: DataRange,
        round: u32,
        priority: Priority,
        deadline: Option<Instant>,
    ) {
        let granted = self.grant(now, round, deadline);
        let known = self.under_repair.get(&range);
        let is_asked = known.is_some_and(|grant| grant.is_asked);
        let grant = Grant {
            copies: 0,
            granted,
            round,
            priority,
            deadline,
            is_asked,
        };
        self.under_repair.insert(&range, grant);
        if granted > 0 && !is_asked {
            self.under_repair.set_due(&range, now + self.gap(round, 0));
        }
    }

    fn on_replica_sent(&mut self, now: Instant, range: DataRange) {
        self.budget.on_replica(now, range.len.into());
        if let Some(ceiling) = &mut self.ceiling {
            ceiling.on_replica(range.len);
        }
        let Some(grant) = self.under_repair.get_mut(&range) else {
            return;
        };
        if std::mem::take(&mut grant.is_asked) {
            self.asked = self.asked.saturating_sub(range.len.into());
        }
        grant.copies += 1;
        let Grant {
            copies,
            granted,
            round,
            ..
        } = *grant;
        if copies < granted {
            self.under_repair
                .set_due(&range, now + self.gap(round, copies));
        } else {
            self.under_repair.clear_due(&range);
        }
    }

    /// The copy of `range` that was asked for will not leave; its bytes are free for others. It is
    /// tried again if that is of use.
    fn on_rejection(&mut self, now: Instant, rejection: &Rejection) {
        let range = rejection.copy.data_range();
        let Some(grant) = self.under_repair.get_mut(&range) else {
            return;
        };
        if std::mem::take(&mut grant.is_asked) {
            self.asked = self.asked.saturating_sub(range.len.into());
            if rejection.reason != RejectionReason::RangeGone {
                self.under_repair.set_due(&range, now + RETRY);
            }
        }
    }

    fn on_end(&mut self, range: &DataRange) {
        if let Some(grant) = self.under_repair.remove(range)
            && grant.is_asked
        {
            self.asked = self.asked.saturating_sub(range.len.into());
        }
    }

    /// A first sample sets it, the others move it.
    fn on_detection(&mut self, sample: Duration) {
        self.detection_time = Some(match self.detection_time {
            None => sample,
            Some(smoothed) => {
                smoothed.mul_f64(1.0 - DETECTION_GAIN) + sample.mul_f64(DETECTION_GAIN)
            }
        });
    }

    /// Asks for the copies that are due, as far as the guard and the budget permit.
    fn ask(&mut self, now: Instant, paths: &[PathView], out: &mut Vec<Reinjection>) {
        let limit = self.guard.limit(paths);
        let mut due = std::mem::take(&mut self.due);
        let waiting = self.under_repair.due_by(now);
        due.extend(waiting.map(|(range, at, grant)| (range, at, *grant)));
        // First copies before further ones, what is urgent before what isn't.
        due.sort_by_key(|(range, at, grant)| {
            let no_deadline = grant.deadline.is_none();
            let urgency = (grant.priority, no_deadline, grant.deadline);
            (grant.copies > 0, urgency, *at, *range)
        });
        for (range, _, grant) in due.drain(..) {
            let is_late = grant
                .deadline
                .is_some_and(|at| self.config.deadline_aware && now + self.one_way >= at);
            if is_late {
                self.under_repair.clear_due(&range);
                continue;
            }
            let copies = grant.copies as u32;
            let is_permitted = limit.permits(copies, false)
                || (limit.permits(copies, true) && self.under_repair.is_first_of_stream(&range));
            if !is_permitted {
                let retry_at = self.guard.retry_at(now, paths);
                self.under_repair.set_due(&range, retry_at);
                continue;
            }
            if !self.is_covered(now, range.len, grant.copies == 0) {
                self.under_repair.set_due(&range, now + RETRY);
                continue;
            }
            self.asked += u64::from(range.len);
            self.under_repair.clear_due(&range);
            if let Some(grant) = self.under_repair.get_mut(&range) {
                grant.is_asked = true;
            }
            out.push(range.reinjection());
        }
        self.due = due;
    }

    /// True if both budgets have room for a copy of `len` bytes.
    fn is_covered(&mut self, now: Instant, len: u32, is_first: bool) -> bool {
        let reserve = if is_first { 0.0 } else { RESERVE };
        let share = self.config.beta * (1.0 - reserve);
        self.budget.room(now, share, self.asked) >= u64::from(len)
            && self
                .ceiling
                .as_ref()
                .is_none_or(|ceiling| ceiling.has_room_for(len, self.asked, is_first))
    }
}

impl Reinjector for AutoRecPlus {
    fn can_use_spare_room(&self) -> bool {
        // Copies go by the clock: an idle sender is no reason to send them into the same burst. But
        // AutoRec would use it.
        self.ceiling
            .as_ref()
            .is_some_and(AutoRecBudget::can_use_spare_room)
    }

    fn is_asked_on(&self, _: Occasion) -> bool {
        false
    }

    fn on_outcomes(&mut self, now: Instant, outcomes: &[PacketOutcome], path: &PathView) {
        // Losses are what decisions are about.
        for outcome in outcomes {
            self.lossy |= outcome.fate != PacketFate::Acked;
            self.loss_rate.on_outcome(outcome);
            if self.config.burst_aware {
                self.correlation.on_outcome(outcome);
            }
        }
        if let Some(ceiling) = &mut self.ceiling {
            ceiling.on_outcomes(now, outcomes, path);
        }
        self.assumed_detection =
            (path.smoothed_rtt * 9 / 8).max(path.smoothed_rtt + Duration::from_millis(1));
        self.one_way = path.smoothed_rtt / 2;
        let interval = path.smoothed_rtt.max(MIN_INTERVAL);
        let is_due = |at: Instant| now.saturating_since(at) >= interval;
        // The first one is not to wait for its turn.
        let is_first = self.decision.path.loss_rate <= 0.0;
        if self.lossy && (is_first || self.decided_at.is_none_or(is_due)) {
            self.lossy = false;
            self.decide(now);
        }
    }

    fn on_repair(&mut self, now: Instant, event: &Repair) {
        if let Some(ceiling) = &mut self.ceiling {
            ceiling.on_repair(now, event);
        }
        match *event {
            Repair::Retransmitted {
                range,
                first_sent_at,
                round,
                cause,
                priority,
                deadline,
                ..
            } => {
                if round == 1 && cause == RepairCause::Loss {
                    self.on_detection(now.saturating_since(first_sent_at));
                }
                self.on_retransmitted(now, range, round, priority, deadline);
            }
            Repair::ReplicaSent { range } => self.on_replica_sent(now, range),
            Repair::Split { range, at } => {
                self.under_repair.split(&range, at);
            }
            Repair::Recovered { range, .. } | Repair::Abandoned { range } => self.on_end(&range),
        }
    }

    fn on_rejected(&mut self, now: Instant, rejections: &[Rejection]) {
        for rejection in rejections {
            self.on_rejection(now, rejection);
        }
    }

    fn on_new_data(&mut self, now: Instant, size: ByteCount) {
        self.budget.on_new_data(now, size.get());
        if let Some(ceiling) = &mut self.ceiling {
            ceiling.on_new_data(now, size);
        }
    }

    fn on_unsent_data(&mut self, now: Instant, waiting: ByteCount) {
        self.guard.on_unsent_data(waiting);
        if let Some(ceiling) = &mut self.ceiling {
            ceiling.on_unsent_data(now, waiting);
        }
    }

    fn reinject(
        &mut self,
        now: Instant,
        occasion: Occasion,
        _outstanding: &mut dyn Iterator<Item = OutstandingRange>,
        paths: &[PathView],
        _hints: &Hints,
        out: &mut Vec<Reinjection>,
    ) {
        match occasion {
            Occasion::SpareRoom => {
                if let Some(ceiling) = &mut self.ceiling {
                    ceiling.on_spare_room(now);
                }
            }
            _ => self.ask(now, paths, out),
        }
    }

    fn next_deadline(&self) -> Option<Instant> {
        self.under_repair.next_due()
    }

    fn configure(&mut self, settings: &str) -> Result<(), ConfigureError> {
        let mut config = self.config;
        config
            .set_all(settings)
            .map_err(|error| ConfigureError(error.to_string()))?;
        self.config = config;
        self.guard.configure(config.guard);
        self.ceiling = match self.ceiling.take() {
            Some(ceiling) => ceiling.apply(&config),
            None => AutoRecBudget::new(&config),
        };
        // What was decided under the old ones holds no more.
        self.decided_at = None;
        self.lossy = true;
        Ok(())
    }

    fn report(&self) -> ReinjectorReport {
        ReinjectorReport {
            redundancy_level: self.decision.plan.copies() as u32,
            loss_rate: self.decision.path.loss_rate,
            detection_time: self.detection_time,
            silence_threshold: self.decision.plan.gap(0),
            queued: self.under_repair.len(),
            budget_used: Some(self.budget.used(self.config.beta)),
            decisions: self.decisions,
        }
    }
}
