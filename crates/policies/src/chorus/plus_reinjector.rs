//! `chorus+`, the project's variant of Chorus: the copies.
//!
//! Chorus copies all that is in flight from a fixed time on, on whichever path has room, however little a copy gains,
//! and without a limit; before that time nothing. Here a range is copied as soon as nothing else waits to be sent, if
//! a copy is estimated to arrive sooner by `gain` at least; from `beta` times the expected time after the request on, sooner is
//! enough. All copies leave within one hard budget, a token bucket filled by a share of the bytes that are sent for the first
//! time. [`TailCopies`], which this policy hosts, keeps it. Without an announced response or an expected time, only the
//! first rule holds.
//!
//! An expected time is of the response that has begun if it arrives within four times its age after the request, else
//! of the next one.

use std::time::Duration;

use swiftwater_quic::policy::{
    Hints, Occasion, OutstandingRange, PathView, ReceivedFeedback, Reinjection, Reinjector,
    ReinjectorReport, Rejection, ResponseStart,
};
use swiftwater_tunable::tunable;
use swiftwater_units::{ByteCount, Instant};

use super::expectations::Expectations;
use super::new_response;
use crate::reinjector_factory::ReinjectorFactory;
use crate::tail_copies::{TailCopies, TailCopiesConfig};

/// Longest expected time that is counted.
const FOREVER: f64 = 1e6;

/// Parameters of [`ChorusPlusReinjector`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ChorusPlusReinjectorConfig {
    /// Whether a copy need not gain `gain` once the expected time is about to be missed; default true. If not, it is
    /// [`TailCopies`].
    pub expected_time: bool,
    /// Part of the expected time after which that is so, 0 to 2; default 0.9.
    pub beta: f64,
    /// Budget, by default 1.5 % of the bytes that are sent for the first time, and gain.
    pub tail: TailCopiesConfig,
}

impl Default for ChorusPlusReinjectorConfig {
    fn default() -> Self {
        Self {
            expected_time: true,
            beta: 0.9,
            tail: TailCopiesConfig {
                share: 0.015,
                ..TailCopiesConfig::default()
            },
        }
    }
}

tunable!(ChorusPlusReinjectorConfig {
    "expected-time" => expected_time, "whether any gain is enough when the expected time is about to be missed";
    "beta" => beta in 0.0..=2.0, "part of the expected time after which that is so";
    ..tail;
});

impl ReinjectorFactory for ChorusPlusReinjectorConfig {
    fn reinjector(&self) -> Box<dyn Reinjector> {
        Box::new(ChorusPlusReinjector::new(*self))
    }
}

/// See the module's documentation.
#[derive(Clone, Debug)]
pub struct ChorusPlusReinjector {
    config: ChorusPlusReinjectorConfig,
    tail: TailCopies,
    response: Option<ResponseStart>,
    expectations: Expectations,
}

impl ChorusPlusReinjector {
    /// No response was announced yet.
    pub fn new(config: ChorusPlusReinjectorConfig) -> Self {
        Self {
            config,
            tail: TailCopies::new(config.tail),
            response: None,
            expectations: Expectations::default(),
        }
    }

    /// From when on any gain is enough.
    fn overdue_from(&self) -> Option<Instant> {
        let expected = self.expectations.current();
        let expected = expected.filter(|_| self.config.expected_time)?;
        let seconds = (self.config.beta * expected.as_secs_f64()).min(FOREVER);
        let within = Duration::try_from_secs_f64(seconds).ok()?;
        Some(self.response?.requested_at + within)
    }
}

impl Reinjector for ChorusPlusReinjector {
    fn can_use_spare_room(&self) -> bool {
        self.tail.can_use_spare_room()
    }

    fn is_asked_on(&self, occasion: Occasion) -> bool {
        occasion == Occasion::Hints || self.tail.is_asked_on(occasion)
    }

    fn on_new_data(&mut self, now: Instant, size: ByteCount) {
        self.tail.on_new_data(now, size);
    }

    fn on_unsent_data(&mut self, now: Instant, waiting: ByteCount) {
        self.tail.on_unsent_data(now, waiting);
    }

    fn on_feedback(&mut self, now: Instant, feedback: &ReceivedFeedback) {
        // It left with the request, and took another path or was lost once.
        let late = 4 * feedback.age;
        let response = self.response.as_ref();
        let has_begun = response.is_some_and(|it| now <= it.requested_at + late);
        self.expectations.on_feedback(feedback, has_begun);
    }

    fn on_rejected(&mut self, now: Instant, rejections: &[Rejection]) {
        self.tail.on_rejected(now, rejections);
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
        if let Some(response) = new_response(hints, self.response.as_ref()) {
            self.response = Some(response);
            self.expectations.start();
        }
        if occasion == Occasion::Hints {
            return;
        }
        self.tail.set_overdue_from(self.overdue_from());
        self.tail
            .reinject(now, occasion, outstanding, paths, hints, out);
    }

    fn next_deadline(&self) -> Option<Instant> {
        self.tail.next_deadline()
    }

    fn report(&self) -> ReinjectorReport {
        self.tail.report()
    }
}
