//! What is copied at the end of a response, and from when on (Eq. 10 of the Chorus paper).
//!
//! | [`Stage`] | paper | entered |
//! |---|---|---|
//! | [`Stage::Idle`] | INIT | at first, and when nothing of a response is in flight any more |
//! | [`Stage::Coarse`] | CD | when the application announces a response |
//! | [`Stage::Fine`] | FC1 | when its first data leave |
//! | [`Stage::Copying`] | FC2 | `E` after the request arrived |
//!
//! The player says in which time it expects a response, `D`. Copies are of use only if the response may come later than
//! that: `E = beta * D - sum(alpha_p * RTT_p)` (Eq. 10), where `alpha_p` is the share of path `p` (Eq. 3). From `E` on,
//! and once all of the response has left for the first time, each datum in flight on one path is copied to another, the
//! one of the least round-trip time whose window has room, once. Without an expected time copies are always made.
//!
//! An expected time is of the response that is announced next, or of the one that is being sent if that has none yet.
//! If the application announces more bytes than it writes, the end isn't known and nothing is copied; the next
//! announcement begins anew in whichever stage. What is in flight on a path that went down is treated as by
//! [`Failover`] in every stage.

use std::collections::BTreeSet;
use std::time::Duration;

use swiftwater_quic::policy::{
    Hints, Occasion, OutstandingRange, PacketOutcome, PathChoice, PathView, Rank, ReceivedFeedback,
    Reinjection, Reinjector, ReinjectorReport, Rejection, ResponseStart,
};
use swiftwater_tunable::tunable;
use swiftwater_units::{ByteCount, Instant, PathId, StreamId};

use super::expectations::Expectations;
use super::path_rate::{PathRates, RateSource};
use super::shares::proportional;
use super::{is_shared, new_response};
use crate::failover::{Failover, FailoverConfig};
use crate::reinjector_factory::ReinjectorFactory;

/// Parameters of [`ChorusReinjector`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ChorusReinjectorConfig {
    /// Whether copies wait for `E`; default true. If not, they are made at the end of every response.
    pub expected_time: bool,
    /// Part of the expected time that is waited for, 0 to 2; default 0.9. The paper finds that above 1 quality falls
    /// sharply, and that below fewer copies are needed the larger it is.
    pub beta: f64,
    /// What bandwidths are read from; default [`RateSource::Delivery`].
    pub rate: RateSource,
}

impl Default for ChorusReinjectorConfig {
    fn default() -> Self {
        Self {
            expected_time: true,
            beta: 0.9,
            rate: RateSource::default(),
        }
    }
}

tunable!(ChorusReinjectorConfig {
    "expected-time" => expected_time, "whether copies are made only of a response that may come late";
    "beta" => beta in 0.0..=2.0, "part of the expected time that is waited for";
    "rate" => rate, "what bandwidths are read from: delivery or window";
});

impl ReinjectorFactory for ChorusReinjectorConfig {
    fn reinjector(&self) -> Box<dyn Reinjector> {
        Box::new(ChorusReinjector::new(*self))
    }
}

/// How far a response has come.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum Stage {
    /// INIT: none is being sent.
    #[default]
    Idle,
    /// CD: announced, none of its data have left.
    Coarse,
    /// FC1: being sent, in time.
    Fine,
    /// FC2: it may come late; the end of it is copied.
    Copying,
}

/// See the module's documentation.
#[derive(Clone, Debug)]
pub struct ChorusReinjector {
    config: ChorusReinjectorConfig,
    rates: PathRates,
    stage: Stage,
    response: Option<ResponseStart>,
    /// Stream bytes that have left since it was announced.
    sent: u64,
    expectations: Expectations,
    /// Bytes that wait to be sent for the first time.
    unsent: ByteCount,
    /// When copies begin, in [`Stage::Coarse`] and [`Stage::Fine`].
    copies_at: Option<Instant>,
    /// Something changed since what is in flight was last looked at.
    is_due: bool,
    /// Ranges in flight that a copy was asked for, by stream and offset.
    copied: BTreeSet<(StreamId, u64)>,
    copies: u64,
}

/// A path that copies may leave on.
#[derive(Clone, Copy, Debug)]
struct Target {
    id: PathId,
    rtt: Duration,
    room: u64,
}

impl ChorusReinjector {
    /// No response was announced yet.
    pub fn new(config: ChorusReinjectorConfig) -> Self {
        Self {
            config,
            rates: PathRates::new(config.rate),
            stage: Stage::Idle,
            response: None,
            sent: 0,
            expectations: Expectations::default(),
            unsent: ByteCount::ZERO,
            copies_at: None,
            is_due: false,
            copied: BTreeSet::new(),
            copies: 0,
        }
    }

    /// How far the response has come.
    pub fn stage(&self) -> Stage {
        self.stage
    }

    /// CD: a response was announced.
    fn start(&mut self, response: ResponseStart) {
        self.stage = Stage::Coarse;
        self.response = Some(response);
        self.sent = 0;
        self.expectations.start();
        self.copied.clear();
    }

    /// FC1 to FC2, if the time has come; else when it comes.
    fn judge_time(&mut self, now: Instant, paths: &[PathView]) {
        self.copies_at = None;
        let Some(response) = self
            .response
            .filter(|_| matches!(self.stage, Stage::Coarse | Stage::Fine))
        else {
            return;
        };
        let at = response.requested_at + self.patience(paths);
        if at > now {
            self.copies_at = Some(at);
        } else if self.stage == Stage::Fine {
            self.stage = Stage::Copying;
            self.is_due = true;
        }
    }

    /// `E`: from the request to the first copies.
    fn patience(&self, paths: &[PathView]) -> Duration {
        let Some(expected) = self
            .expectations
            .current()
            .filter(|_| self.config.expected_time)
        else {
            return Duration::ZERO;
        };
        let shared: Vec<_> = paths.iter().filter(|path| is_shared(path)).collect();
        let rates: Vec<_> = shared.iter().map(|path| self.rates.rate(path)).collect();
        let shares = proportional(&rates);
        let rtts = shared.iter().map(|path| path.smoothed_rtt.as_secs_f64());
        let delay: f64 = rtts.zip(shares).map(|(rtt, share)| rtt * share).sum();
        let patience = self.config.beta * expected.as_secs_f64() - delay;
        // A time beyond the range is one that never comes.
        Duration::try_from_secs_f64(patience.clamp(0.0, 1e6)).unwrap_or_default()
    }

    /// True if every byte of the response has left.
    fn has_left(&self) -> bool {
        self.unsent.is_zero() && self.response.is_some_and(|it| self.sent >= it.bytes.get())
    }

    /// Asks for a copy of each range of the response that has none, on another path. INIT if none is in flight.
    fn copy_end(
        &mut self,
        outstanding: &mut dyn Iterator<Item = OutstandingRange>,
        paths: &[PathView],
        out: &mut Vec<Reinjection>,
    ) {
        let Some(response) = self.response else {
            return;
        };
        let mut targets: Vec<_> = paths.iter().filter_map(target).collect();
        targets.sort_by_key(|target| (target.rtt, target.id));
        let mut in_flight = BTreeSet::new();
        for range in outstanding.filter(|range| range.stream == response.stream) {
            let key = (range.stream, range.offset);
            in_flight.insert(key);
            if self.stage != Stage::Copying || range.copies > 0 || self.copied.contains(&key) {
                continue;
            }
            let mut others = targets.iter_mut().filter(|target| target.id != range.path);
            let Some(target) = others.find(|target| target.room >= range.len.into()) else {
                continue;
            };
            target.room -= u64::from(range.len);
            self.copied.insert(key);
            self.copies += 1;
            let target = PathChoice::On(target.id);
            out.push(range.reinjection().target(target).rank(Rank::AfterNewData));
        }
        self.copied.retain(|key| in_flight.contains(key));
        if in_flight.is_empty() {
            self.stage = Stage::Idle;
            self.copies_at = None;
        }
    }
}

/// A path that answers, with the room in its window.
fn target(path: &PathView) -> Option<Target> {
    (is_shared(path) && path.pto_count == 0 && path.has_rtt_sample).then(|| Target {
        id: path.id,
        rtt: path.smoothed_rtt,
        room: path.window_room().get(),
    })
}

impl Reinjector for ChorusReinjector {
    fn can_use_spare_room(&self) -> bool {
        self.is_due && self.stage != Stage::Idle && self.stage != Stage::Coarse
    }

    fn is_asked_on(&self, occasion: Occasion) -> bool {
        matches!(
            occasion,
            Occasion::Hints | Occasion::Feedback | Occasion::PathDown(_)
        )
    }

    fn on_outcomes(&mut self, now: Instant, _outcomes: &[PacketOutcome], path: &PathView) {
        // Room in a window, for copies, and maybe the end of the response.
        self.is_due = true;
        self.rates.observe_path(now, path);
    }

    fn on_new_data(&mut self, _now: Instant, size: ByteCount) {
        self.sent = self.sent.saturating_add(size.get());
        self.is_due = true;
        if self.stage == Stage::Coarse {
            self.stage = Stage::Fine;
        }
    }

    fn on_unsent_data(&mut self, _now: Instant, waiting: ByteCount) {
        self.unsent = waiting;
    }

    fn on_feedback(&mut self, _now: Instant, feedback: &ReceivedFeedback) {
        let has_begun = self.stage != Stage::Idle;
        self.expectations.on_feedback(feedback, has_begun);
    }

    fn on_rejected(&mut self, _now: Instant, rejections: &[Rejection]) {
        for copy in rejections.iter().map(|rejection| rejection.copy) {
            self.copied.remove(&(copy.stream, copy.offset));
        }
        self.is_due = true;
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
        self.rates.observe(now, paths);
        if let Some(response) = new_response(hints, self.response.as_ref()) {
            self.start(response);
        }
        if let Occasion::PathDown(_) = occasion {
            self.is_due = true;
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
        self.judge_time(now, paths);
        if !self.has_left() {
            return;
        }
        self.is_due = false;
        self.copy_end(outstanding, paths, out);
    }

    fn next_deadline(&self) -> Option<Instant> {
        self.copies_at
    }

    fn report(&self) -> ReinjectorReport {
        ReinjectorReport {
            decisions: self.copies,
            ..ReinjectorReport::default()
        }
    }
}
