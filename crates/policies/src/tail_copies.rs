//! Copies of the end of the data on a faster path: re-injection as in XLINK (SIGCOMM 2021) and Chorus
//! (`MobiCom` 2024), within a hard budget.
//!
//! An object is complete when the path that delivers the last of it has done so. Once nothing waits to
//! be sent for the first time, ranges in flight on one path are copied to another on which they arrive sooner.
//! A path delivers in the order of sending, so that the newest range in flight is the last to arrive: copies
//! begin with it and go backwards, until the copy of a range would arrive no sooner than the range itself.
//!
//! When ranges and copies arrive is estimated by `arrivals`.
//!
//! The budget is a token bucket, filled by a share of the bytes that are sent for the first time, so that
//! copies never exceed that share. A datum has one copy at most. What is in flight on a path that went
//! down is treated as by [`Failover`](crate::Failover).

use std::collections::BTreeSet;
use std::time::Duration;

use swiftwater_quic::policy::{
    Hints, Occasion, OutstandingRange, PathChoice, PathPhase, PathView, Rank, Reinjection,
    Reinjector, ReinjectorReport, Rejection,
};
use swiftwater_tunable::tunable;
use swiftwater_units::{ByteCount, Instant, StreamId};

use crate::arrivals::{Arrivals, Target};
use crate::failover::{Failover, FailoverConfig};
use crate::reinjector_factory::ReinjectorFactory;

/// Time between two looks at what is in flight while nothing waits to be sent.
const RECHECK: Duration = Duration::from_millis(5);

/// Parameters of [`TailCopies`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TailCopiesConfig {
    /// Copies as a share of the bytes that are sent for the first time, 0 to 1; default 0.03. 0 switches the
    /// copies off.
    pub share: f64,
    /// Bytes of copies that may be saved up, and so leave at a time; default 256 KiB.
    pub depth: ByteCount,
    /// How much sooner a copy must arrive, 0 to 10 s; default 50 ms. Less spends the budget where little is
    /// gained.
    pub gain: Duration,
}

impl Default for TailCopiesConfig {
    fn default() -> Self {
        Self {
            share: 0.03,
            depth: ByteCount::new(262_144),
            gain: Duration::from_millis(50),
        }
    }
}

tunable!(TailCopiesConfig {
    "share" => share in 0.0..=1.0, "copies as a share of the bytes sent for the first time";
    "depth" => depth, "bytes of copies that may be saved up";
    "gain" => gain in Duration::ZERO..=Duration::from_secs(10), "how much sooner a copy must arrive";
});

impl ReinjectorFactory for TailCopiesConfig {
    fn reinjector(&self) -> Box<dyn Reinjector> {
        Box::new(TailCopies::new(*self))
    }
}

/// See the module's documentation.
#[derive(Clone, Debug)]
pub struct TailCopies {
    config: TailCopiesConfig,
    /// Bytes of copies that may leave.
    tokens: f64,
    /// Data have left since what is in flight was last looked at.
    is_due: bool,
    /// Bytes that wait to be sent for the first time.
    unsent: ByteCount,
    /// When to look again.
    recheck: Option<Instant>,
    /// Ranges in flight that a copy was asked for, by stream and offset.
    copied: BTreeSet<(StreamId, u64)>,
    /// From then on whatever arrives sooner as a copy is copied.
    overdue_from: Option<Instant>,
    /// Stream data in flight, of the last walk, by path and in the order of sending.
    in_flight: Vec<OutstandingRange>,
}

impl TailCopies {
    /// Nothing is in flight yet.
    pub fn new(config: TailCopiesConfig) -> Self {
        Self {
            config,
            tokens: 0.0,
            is_due: false,
            unsent: ByteCount::ZERO,
            recheck: None,
            copied: BTreeSet::new(),
            overdue_from: None,
            in_flight: Vec::new(),
        }
    }

    /// From `time` on a copy has to arrive sooner, by however little; `None`: always by the configured gain.
    pub(crate) fn set_overdue_from(&mut self, time: Option<Instant>) {
        self.overdue_from = time;
    }

    /// Takes down what is in flight.
    fn walk(&mut self, outstanding: &mut dyn Iterator<Item = OutstandingRange>) {
        self.in_flight.clear();
        self.in_flight.extend(outstanding);
        self.in_flight
            .sort_by_key(|range| (range.path, range.sent_at));
        if !self.copied.is_empty() {
            let in_flight: BTreeSet<_> = self.in_flight.iter().map(key).collect();
            self.copied.retain(|range| in_flight.contains(range));
        }
    }

    /// Asks for copies of the ranges on `path` that arrive later than on one of the `targets`. False if some
    /// range has none.
    fn ask(
        &mut self,
        now: Instant,
        path: &PathView,
        targets: &mut [Target],
        out: &mut Vec<Reinjection>,
    ) {
        let from = self.in_flight.partition_point(|range| range.path < path.id);
        let to = self
            .in_flight
            .partition_point(|range| range.path <= path.id);
        let ranges = &self.in_flight[from..to];
        let Some(oldest) = ranges.first() else {
            return;
        };
        let mut arrivals = Arrivals::new(now, path, oldest.sent_at);
        let arrivals: Vec<_> = ranges.iter().map(|range| arrivals.next(range)).collect();
        let is_overdue = self.overdue_from.is_some_and(|from| from <= now);
        let gain = if is_overdue {
            0.0
        } else {
            self.config.gain.as_secs_f64()
        };
        for (range, arrival) in ranges.iter().zip(arrivals).rev() {
            if range.copies > 0 || self.copied.contains(&key(range)) {
                continue;
            }
            let len = u64::from(range.len);
            let fits = targets
                .iter_mut()
                .filter(|target| target.id != path.id && target.room >= len);
            let Some(target) = fits.min_by(|a, b| a.arrival(len).total_cmp(&b.arrival(len))) else {
                return;
            };
            if target.arrival(len) + gain > arrival || self.tokens < len as f64 {
                return;
            }
            self.tokens -= len as f64;
            target.take(len);
            self.copied.insert(key(range));
            let target = PathChoice::On(target.id);
            out.push(range.reinjection().target(target).rank(Rank::AfterNewData));
        }
    }
}

fn key(range: &OutstandingRange) -> (StreamId, u64) {
    (range.stream, range.offset)
}

impl Reinjector for TailCopies {
    fn can_use_spare_room(&self) -> bool {
        self.is_due
    }

    fn is_asked_on(&self, occasion: Occasion) -> bool {
        matches!(occasion, Occasion::PathDown(_))
    }

    fn on_new_data(&mut self, _now: Instant, size: ByteCount) {
        let depth = self.config.depth.get() as f64;
        self.tokens = (self.tokens + self.config.share * size.get() as f64).min(depth);
        self.is_due = self.config.share > 0.0;
        self.recheck = None;
    }

    fn on_unsent_data(&mut self, _now: Instant, waiting: ByteCount) {
        self.unsent = waiting;
    }

    fn on_rejected(&mut self, _now: Instant, rejections: &[Rejection]) {
        for copy in rejections.iter().map(|rejection| rejection.copy) {
            if self.copied.remove(&(copy.stream, copy.offset)) {
                self.tokens += f64::from(copy.len);
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
        if let Occasion::PathDown(_) = occasion {
            self.recheck = Some(now + RECHECK);
            Failover(FailoverConfig::default()).reinject(
                now,
                occasion,
                outstanding,
                paths,
                hints,
                out,
            );
            return;
        }
        self.recheck = None;
        // Data wait: they leave first.
        self.is_due = !self.unsent.is_zero();
        if self.is_due || self.config.share <= 0.0 {
            return;
        }
        let can_carry = |path: &&PathView| {
            path.is_usable() && !path.is_backup() && path.pto_count == 0 && path.has_rtt_sample
        };
        let mut targets: Vec<_> = paths
            .iter()
            .filter(can_carry)
            .map(|path| Target::new(now, path))
            .collect();
        if paths.len() < 2 || targets.is_empty() {
            return;
        }
        self.walk(outstanding);
        if self.in_flight.is_empty() {
            return;
        }
        for path in paths
            .iter()
            .filter(|path| path.phase != PathPhase::Validating)
        {
            self.ask(now, path, &mut targets, out);
        }
        self.recheck = Some(now + RECHECK);
    }

    fn next_deadline(&self) -> Option<Instant> {
        self.recheck
    }

    fn report(&self) -> ReinjectorReport {
        let depth = self.config.depth.get().max(1) as f64;
        ReinjectorReport {
            budget_used: Some(1.0 - self.tokens / depth),
            ..ReinjectorReport::default()
        }
    }
}
