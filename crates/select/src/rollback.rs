//! The rollback checker: compares requests before and after a switch, and undoes switches to the worse.

use std::time::Duration;

use swiftwater_units::Instant;

use crate::blocked::doubled;
use crate::comparison::{Timed, sizes_differ, value};
use crate::parameters::Parameters;
use crate::rank_sum::p_greater;
use crate::window::Window;

/// Most requests that are compared on each side.
const MOST: usize = 200;

/// A switch under observation.
#[derive(Clone, Debug)]
pub(crate) struct Watch {
    /// Position of the arm before.
    pub(crate) from: usize,
    /// Position of the arm after.
    pub(crate) to: usize,
    /// When the switch took place.
    pub(crate) since: Instant,
    before: Vec<Timed>,
    after: Vec<Timed>,
}

impl Watch {
    /// The switch at `now`; `window` has the last requests on the arm before.
    pub(crate) fn new(
        from: usize,
        to: usize,
        now: Instant,
        window: &Window,
        parameters: &Parameters,
    ) -> Self {
        let recent = window.samples().rev();
        let recent = recent.filter(|sample| now.saturating_since(sample.at) <= parameters.watch);
        let before = recent.map(|sample| Timed {
            completion: sample.completion,
            bytes: sample.bytes,
        });
        Self {
            from,
            to,
            since: now,
            before: before.take(MOST).collect(),
            after: Vec::new(),
        }
    }

    /// Adds a request sent on the new arm after the switch.
    pub(crate) fn add(&mut self, timed: Timed) {
        if self.after.len() < MOST {
            self.after.push(timed);
        }
    }

    /// When the comparison is due.
    pub(crate) fn due(&self, parameters: &Parameters) -> Instant {
        self.since + parameters.watch
    }

    /// True if requests became significantly slower.
    pub(crate) fn is_worse(&self, parameters: &Parameters) -> bool {
        let least = parameters.min_requests as usize;
        if self.before.len() < least || self.after.len() < least {
            return false;
        }
        let all = self.before.iter().chain(&self.after).copied();
        let by_size = sizes_differ(all, parameters);
        let values = |side: &[Timed]| -> Vec<f64> {
            let values = side.iter().map(|timed| value(*timed, by_size, parameters));
            values.collect()
        };
        let (before, after) = (values(&self.before), values(&self.after));
        let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
        mean(&after) >= parameters.deterioration * mean(&before)
            && p_greater(&before, &after) < parameters.significance
    }
}

/// The pause after rollbacks.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Pause {
    until: Option<Instant>,
    times: u32,
}

impl Pause {
    /// Notes a rollback: no switch for a while, longer with each repetition.
    pub(crate) fn start(&mut self, now: Instant, parameters: &Parameters) {
        // A pause long over is no repetition.
        let longest = parameters.rollback_pause_max;
        if self.until.is_some_and(|until| now > until + longest) {
            self.times = 0;
        }
        self.until = Some(now + self.length(parameters));
        self.times = self.times.saturating_add(1);
    }

    fn length(&self, parameters: &Parameters) -> Duration {
        doubled(
            parameters.rollback_pause,
            self.times,
            parameters.rollback_pause_max,
        )
    }

    /// True while no switch is permitted.
    pub(crate) fn is_active(&self, now: Instant) -> bool {
        self.until.is_some_and(|until| now < until)
    }

    /// Forgets the rollbacks: another network.
    pub(crate) fn clear(&mut self) {
        *self = Self::default();
    }
}
