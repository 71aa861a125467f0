//! XLINK (SIGCOMM 2021): data in flight on one path are copied to another while the player's buffer is low.
//!
//! | part | where |
//! |---|---|
//! | whether to copy: two thresholds of buffered play time | [`BufferControl`] |
//! | the thresholds, from the distribution of play times | [`PlayTimes`] |
//! | what to copy, where to, and its place among other data | here |
//! | a hard bound of the cost, which the paper doesn't have | `budget` |
//!
//! Data are copied when nothing of their priority waits to be sent and another path has room in its
//! window. A copy never leaves on the path of its original, and no datum is copied twice; only what is in flight
//! on a path that went down is copied as by [`Failover`], outside of the budget. The first video frame is copied whatever the
//! player has buffered, at level [`Level::Frame`].
//!
//! What the player has buffered comes from the peer ([`QoeSignal::Player`], sent by the feedback policy `player`), what
//! the first frame is from the application ([`RangeHints::first_frame`](swiftwater_quic::RangeHints::first_frame),
//! [`Hints::first_frame`]). The scheduler that the paper uses is `min-rtt`; see [`Policies::xlink`](crate::Policies::xlink).

mod asked;
mod budget;
mod buffer_control;
mod config;
mod play_times;

pub use buffer_control::{BufferControl, Need};
pub use config::{Level, XlinkConfig};
pub use play_times::{PlayTimes, Thresholds};

use std::collections::BTreeMap;
use std::time::Duration;

use swiftwater_quic::policy::{
    ConfigureError, Hints, NextData, Occasion, OutstandingRange, PathChoice, PathView, QoeSignal,
    Rank, ReceivedFeedback, Reinjection, Reinjector, ReinjectorReport, Rejection,
};
use swiftwater_tunable::Tunable;
use swiftwater_units::{ByteCount, Instant, PathId};

use self::asked::AskedCopies;
use self::budget::Budget;
use crate::arrivals::{Arrivals, Target};
use crate::failover::{Failover, FailoverConfig};

/// Least time between two looks at what is in flight that acknowledgements or the timer bring about.
const RECHECK: Duration = Duration::from_millis(5);
/// Ranges in flight that are looked at, at most.
const MAX_RANGES: usize = 16_384;

/// See the module's documentation.
#[derive(Clone, Debug)]
pub struct Xlink {
    config: XlinkConfig,
    control: BufferControl,
    budget: Budget,
    asked: AskedCopies,
    /// Bytes that wait to be sent for the first time.
    unsent: ByteCount,
    /// The data that leave next.
    next: Option<NextData>,
    /// What is in flight or known of the player has changed since the last look.
    is_due: bool,
    /// There was no second path at the last look.
    is_alone: bool,
    /// Acknowledgements bring no look before then.
    not_before: Instant,
    recheck: Option<Instant>,
    /// The player's buffer, or that nothing is known of it, calls for copies.
    is_copying: bool,
    /// Times that this changed.
    decisions: u64,
    /// Ranges of the last walk that may be copied.
    candidates: Vec<Candidate>,
}

/// A range that may be copied, and in how many seconds it is expected to arrive.
#[derive(Clone, Copy, Debug)]
struct Candidate {
    range: OutstandingRange,
    arrival: f64,
}

impl Xlink {
    /// Nothing was sent, nothing is known of a player.
    pub fn new(config: XlinkConfig) -> Self {
        Self {
            config,
            control: BufferControl::default(),
            budget: Budget::default(),
            asked: AskedCopies::default(),
            unsent: ByteCount::ZERO,
            next: None,
            is_due: false,
            is_alone: false,
            not_before: Instant::ZERO,
            recheck: None,
            is_copying: false,
            decisions: 0,
            candidates: Vec::new(),
        }
    }

    /// The thresholds in force.
    pub fn thresholds(&self) -> Thresholds {
        self.control.thresholds(&self.config)
    }

    /// Bytes of copies that may leave now: urgent ones, and others.
    fn room(&mut self, now: Instant) -> [u64; 2] {
        let Some(share) = self.config.budget else {
            return [u64::MAX; 2];
        };
        let urgent = self.config.urgent_budget.max(share);
        [urgent, share].map(|share| self.budget.room(now, share))
    }

    /// True if data wait that go before a copy of `range`, or are of its priority.
    fn has_more_urgent_data(&self, range: &OutstandingRange) -> bool {
        let Some(next) = self.next else {
            // Of which nothing is known.
            return !self.unsent.is_zero();
        };
        match self.config.level {
            Level::Plain => true,
            Level::Frame if range.first_frame => next.first_frame,
            Level::Stream | Level::Frame => {
                let (own, other) = (range.priority, next.priority);
                // Streams that are not incremental leave one after another.
                let is_later = own == other && !own.incremental && range.stream < next.stream;
                own >= other && !is_later
            }
        }
    }

    /// Takes down what may be copied, the most urgent first.
    fn walk(
        &mut self,
        now: Instant,
        outstanding: &mut dyn Iterator<Item = OutstandingRange>,
        paths: &[PathView],
        hints: &Hints,
    ) {
        self.candidates.clear();
        let mut arrivals = BTreeMap::new();
        let is_frame_level = self.config.level == Level::Frame;
        for mut range in outstanding.take(MAX_RANGES) {
            let arrival = arrival_of(now, &range, paths, &mut arrivals);
            range.first_frame = is_frame_level && is_of_first_frame(&range, hints);
            let is_needed = self.is_copying || range.first_frame;
            let is_new = !self.asked.meets(now, &range) && range.copies == 0;
            if is_needed && is_new && !self.has_more_urgent_data(&range) {
                self.candidates.push(Candidate { range, arrival });
            }
        }
        self.asked.expire(now);
        let (level, latest_first) = (self.config.level, self.config.latest_first);
        let place = |Candidate { range, .. }: &Candidate| match level {
            Level::Plain => None,
            Level::Stream | Level::Frame => {
                Some((!range.first_frame, range.priority, range.stream))
            }
        };
        self.candidates.sort_by(|a, b| {
            let in_time = if latest_first {
                b.arrival.total_cmp(&a.arrival)
            } else {
                a.range.sent_at.cmp(&b.range.sent_at)
            };
            place(a).cmp(&place(b)).then(in_time)
        });
    }

    /// Asks for copies of the candidates, as far as other paths have room and the budget lasts. True if some are
    /// left.
    fn ask(
        &mut self,
        now: Instant,
        need: Need,
        paths: &[PathView],
        out: &mut Vec<Reinjection>,
    ) -> bool {
        let can_carry = |path: &&PathView| {
            path.is_usable() && !path.is_backup() && path.pto_count == 0 && path.has_rtt_sample
        };
        let mut carriers: Vec<_> = paths.iter().filter(can_carry).collect();
        carriers.sort_by_key(|path| (path.smoothed_rtt, path.id));
        let mut targets: Vec<_> = carriers.iter().map(|path| Target::new(now, path)).collect();
        let mut room = self.room(now);
        let gain = self.config.gain.map(|gain| gain.as_secs_f64());
        let mut are_left = false;
        for Candidate { range, arrival } in std::mem::take(&mut self.candidates) {
            let len = u64::from(range.len);
            let is_urgent = need == Need::Urgent || range.first_frame;
            let granted = room[usize::from(!is_urgent)];
            let other = targets
                .iter_mut()
                .find(|target| target.id != range.path && target.room >= len);
            let Some(target) = other.filter(|target| {
                let is_sooner = gain.is_none_or(|gain| target.arrival(len) + gain <= arrival);
                granted >= len && is_sooner
            }) else {
                are_left = true;
                continue;
            };
            target.take(len);
            room = room.map(|room| room.saturating_sub(len));
            self.budget.spend(now, len);
            self.asked.add(now, &range, range.len);
            let copy = range.reinjection().target(PathChoice::On(target.id));
            out.push(copy.rank(self.rank(&range)));
        }
        are_left
    }

    /// The place of a copy of `range` among other data.
    fn rank(&self, range: &OutstandingRange) -> Rank {
        match self.config.level {
            Level::Plain => Rank::AfterNewData,
            Level::Frame if range.first_frame => Rank::First,
            Level::Stream | Level::Frame => Rank::WithPriority(range.priority),
        }
    }

    /// A path went down: what is in flight on it leaves on the others at once.
    fn fail_over(
        &mut self,
        now: Instant,
        down: PathId,
        outstanding: &mut dyn Iterator<Item = OutstandingRange>,
        paths: &[PathView],
        hints: &Hints,
        out: &mut Vec<Reinjection>,
    ) {
        let on_path: Vec<_> = outstanding.filter(|range| range.path == down).collect();
        let occasion = Occasion::PathDown(down);
        let mut ranges = on_path.iter().copied();
        Failover(FailoverConfig::default()).reinject(now, occasion, &mut ranges, paths, hints, out);
        if !out.is_empty() {
            for range in &on_path {
                self.asked.add(now, range, 0);
            }
        }
        self.recheck = Some(now + RECHECK);
    }

    /// Whether the player's buffer calls for copies.
    fn decide(&mut self, now: Instant, paths: &[PathView]) -> Need {
        let need = self.control.decide(now, &self.config, paths);
        let is_copying = !matches!(need, Need::None { .. });
        self.decisions += u64::from(is_copying != self.is_copying);
        self.is_copying = is_copying;
        need
    }
}

/// In how many seconds `range` is expected to arrive; `arrivals` are those of the ranges before, by path. Never, if
/// its path is gone.
fn arrival_of(
    now: Instant,
    range: &OutstandingRange,
    paths: &[PathView],
    arrivals: &mut BTreeMap<PathId, Arrivals>,
) -> f64 {
    let Some(path) = paths.iter().find(|path| path.id == range.path) else {
        return f64::INFINITY;
    };
    let of_path = arrivals.entry(path.id);
    of_path
        .or_insert_with(|| Arrivals::new(now, path, range.sent_at))
        .next(range)
}

/// True if some of `range` belongs to the first video frame.
fn is_of_first_frame(range: &OutstandingRange, hints: &Hints) -> bool {
    let of_connection = hints
        .first_frame
        .is_some_and(|bytes| range.stream.index() == 0 && range.offset < bytes.get());
    range.first_frame || of_connection
}

impl Reinjector for Xlink {
    fn can_use_spare_room(&self) -> bool {
        self.is_due
    }

    fn is_asked_on(&self, occasion: Occasion) -> bool {
        match occasion {
            Occasion::Ack => !self.is_alone,
            Occasion::Feedback | Occasion::PathDown(_) | Occasion::PathUp(_) => true,
            _ => false,
        }
    }

    fn on_new_data(&mut self, now: Instant, size: ByteCount) {
        self.control.on_data(now);
        self.budget.on_new_data(now, size.get());
        self.is_due = true;
    }

    fn on_unsent_data(&mut self, _now: Instant, waiting: ByteCount) {
        self.unsent = waiting;
    }

    fn on_next_data(&mut self, _now: Instant, next: Option<NextData>) {
        self.next = next;
    }

    fn on_feedback(&mut self, now: Instant, feedback: &ReceivedFeedback) {
        let signal = QoeSignal::decode(feedback.kind, &feedback.payload);
        if let Some(QoeSignal::Player(state)) = signal {
            self.control.on_report(now, feedback.age, &state);
            self.is_due = true;
        }
    }

    fn on_rejected(&mut self, _now: Instant, rejections: &[Rejection]) {
        for rejection in rejections {
            if let Some((asked_at, bytes)) = self.asked.reject(&rejection.copy) {
                self.budget.refund(asked_at, bytes.into());
            }
        }
    }

    fn reinject(
        &mut self,
        now: Instant,
        occasion: Occasion,
        outstanding: &mut dyn Iterator<Item = OutstandingRange>,
        paths: &[PathView],
        hints: &Hints,
        out: &mut Vec<Reinjection>,
    ) {
        self.is_alone = paths.len() < 2;
        if let Occasion::PathDown(down) = occasion {
            self.fail_over(now, down, outstanding, paths, hints, out);
            return;
        }
        if occasion == Occasion::Ack && now < self.not_before {
            return;
        }
        (self.is_due, self.recheck) = (false, None);
        if self.is_alone {
            return;
        }
        let need = self.decide(now, paths);
        if let Need::None { until } = need {
            let in_flight = paths.iter().any(|path| !path.bytes_in_flight.is_zero());
            self.recheck = until.filter(|_| in_flight);
            if self.config.level != Level::Frame {
                return;
            }
        }
        if self.room(now) == [0; 2] {
            return;
        }
        self.walk(now, outstanding, paths, hints);
        let are_left = self.ask(now, need, paths, out);
        self.not_before = now + RECHECK;
        if are_left {
            self.recheck = Some(self.not_before);
        }
    }

    fn next_deadline(&self) -> Option<Instant> {
        self.recheck
    }

    fn configure(&mut self, settings: &str) -> Result<(), ConfigureError> {
        let mut config = self.config;
        config
            .set_all(settings)
            .map_err(|error| ConfigureError(error.to_string()))?;
        self.config = config;
        self.is_due = true;
        Ok(())
    }

    /// `redundancy_level` is 1 while the player's buffer calls for copies, `queued` the copies that were asked for
    /// of data in flight, `decisions` how often copying began or ended.
    fn report(&self) -> ReinjectorReport {
        ReinjectorReport {
            redundancy_level: self.is_copying.into(),
            queued: self.asked.len(),
            budget_used: self.config.budget.map(|share| {
                let share = share.max(self.config.urgent_budget);
                self.budget.used(share).min(1.0)
            }),
            decisions: self.decisions,
            ..ReinjectorReport::default()
        }
    }
}
