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

/// Intervals after which a comparison ends although there were few requests.
const LONGEST: u32 = 6;

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
        let least = parameters.min_requests as usize;
        let recent = window.samples().rev().enumerate();
        let recent = recent.take_while(|(place, sample)| {
            *place < least || now.saturating_since(sample.at) <= parameters.watch
        });
        let before = recent.map(|(_, sample)| Timed {
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

    /// Adds a request sent on the new arm that took longer than this, and had no response by then.
    pub(crate) fn add_slow(&mut self, elapsed: f32) {
        let bytes = self.before.iter().map(|timed| timed.bytes).sum::<f32>();
        self.add(Timed {
            completion: elapsed,
            bytes: bytes / self.before.len().max(1) as f32,
        });
    }

    /// When the comparison is over at the latest: later with fewer requests than are to be compared.
    pub(crate) fn due(&self, parameters: &Parameters) -> Instant {
        let is_short = self.after.len() < parameters.min_requests as usize;
        let intervals = if is_short { LONGEST } else { 1 };
        self.since + parameters.watch * intervals
    }

    /// True if requests became significantly slower: by little once the interval is over, by much before.
    pub(crate) fn is_worse(&self, now: Instant, parameters: &Parameters) -> bool {
        let least = if now >= self.due(parameters) {
            parameters.deterioration
        } else {
            parameters.collapse
        };
        self.is_worse_by(least, parameters)
    }

    fn is_worse_by(&self, ratio: f64, parameters: &Parameters) -> bool {
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
        mean(&after) >= ratio * mean(&before)
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
