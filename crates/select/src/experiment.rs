//! The probe agent: an experiment that compares the arms by real requests, sent alternately.

use std::time::Duration;

use swiftwater_units::Instant;

use crate::comparison::{Timed, sizes_differ, value};
use crate::decision::Trigger;
use crate::parameters::Parameters;

/// What became of one request.
#[derive(Clone, Copy, Debug, PartialEq)]
enum State {
    Unsent,
    Sent(Instant),
    Complete(Timed),
    Failed {
        /// Whether nothing came on the connection, if that is known.
        silent: Option<bool>,
    },
    /// No value, and no failure either.
    Void,
}

#[derive(Clone, Copy, Debug)]
struct Slot {
    /// Position in the arms of the experiment.
    arm: usize,
    state: State,
}

/// One of the arms that are compared.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Contender {
    /// Position in the selector's list.
    pub(crate) arm: usize,
    /// It is over QUIC: the experiment does not end before its last response.
    pub(crate) is_quic: bool,
    /// Mean completion time before the experiment, if known.
    pub(crate) mean: Option<Duration>,
}

/// A running experiment.
#[derive(Clone, Debug)]
pub(crate) struct Experiment {
    trigger: Trigger,
    begun: Instant,
    contenders: Vec<Contender>,
    slots: Vec<Slot>,
    /// When the last value of a QUIC arm came.
    quic_done: Option<Instant>,
}

/// The result for one arm.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Score {
    /// Position in the selector's list.
    pub(crate) arm: usize,
    /// Median of the values, ms; infinite if the arm failed; `None` if there are too few
    /// values to say.
    pub(crate) value: Option<f64>,
    /// Nothing came for several of its requests, and none was answered.
    pub(crate) is_dead: bool,
}

/// The result of an experiment.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Verdict {
    /// The arms with their results, in the order of the experiment.
    pub(crate) scores: Vec<Score>,
    /// Position of the arm to use; `None` if the values say nothing.
    pub(crate) winner: Option<usize>,
}

impl Experiment {
    /// An experiment over at least two arms, which takes their order.
    pub(crate) fn new(
        now: Instant,
        trigger: Trigger,
        contenders: Vec<Contender>,
        parameters: &Parameters,
    ) -> Self {
        let rounds = 0..parameters.experiment_size;
        let round = |_| {
            (0..contenders.len()).map(|arm| Slot {
                arm,
                state: State::Unsent,
            })
        };
        let slots = rounds.flat_map(round).collect();
        Self {
            trigger,
            begun: now,
            contenders,
            slots,
            quic_done: None,
        }
    }

    /// What started it.
    pub(crate) fn trigger(&self) -> Trigger {
        self.trigger
    }

    /// Sends the next request, if there is one left: its position and its arm. Arms that are not
    /// `usable` any more are left out.
    pub(crate) fn send(
        &mut self,
        now: Instant,
        usable: impl Fn(usize) -> bool,
    ) -> Option<(u32, usize)> {
        for (position, slot) in self.slots.iter_mut().enumerate() {
            if slot.state != State::Unsent {
                continue;
            }
            let arm = self.contenders[slot.arm].arm;
            if usable(arm) {
                slot.state = State::Sent(now);
                return Some((position as u32, arm));
            }
            slot.state = State::Void;
        }
        None
    }

    /// The time limit of requests on an arm.
    pub(crate) fn limit(&self, arm: usize, parameters: &Parameters) -> Duration {
        let mut all = self.contenders.iter();
        let mean = all
            .find(|contender| contender.arm == arm)
            .and_then(|it| it.mean);
        let scaled = mean.map(|mean| mean.mul_f64(parameters.experiment_limit_factor));
        parameters.experiment_limit.max(scaled.unwrap_or_default())
    }

    /// Notes the response to the request at `position`.
    pub(crate) fn complete(&mut self, now: Instant, position: u32, timed: Timed) {
        self.set(now, position, State::Complete(timed));
    }

    /// Notes a failure, and whether nothing came on the connection, if that is known.
    pub(crate) fn fail(&mut self, now: Instant, position: u32, silent: Option<bool>) {
        self.set(now, position, State::Failed { silent });
    }

    /// Notes that a request gives no value; another one takes its place.
    pub(crate) fn cancel(&mut self, now: Instant, position: u32) {
        self.set(now, position, State::Unsent);
    }

    fn set(&mut self, now: Instant, position: u32, state: State) {
        if let Some(slot) = self.slots.get_mut(position as usize)
            && matches!(slot.state, State::Sent(_))
        {
            slot.state = state;
            if self.contenders[slot.arm].is_quic && state != State::Unsent {
                self.quic_done = Some(now);
            }
        }
    }

    fn waits_for(&self, quic: bool) -> bool {
        self.slots.iter().any(|slot| {
            let waits = matches!(slot.state, State::Unsent | State::Sent(_));
            waits && self.contenders[slot.arm].is_quic == quic
        })
    }

    /// How long the experiment waits for TCP once QUIC is done.
    fn straggler_wait(&self, parameters: &Parameters) -> Duration {
        let means = self.contenders.iter().filter(|it| !it.is_quic);
        let mean = means.filter_map(|contender| contender.mean).max();
        let mean = mean.unwrap_or(parameters.experiment_limit);
        mean.mul_f64(parameters.straggler_factor)
    }

    fn straggler_end(&self, parameters: &Parameters) -> Option<Instant> {
        let has_quic = self.contenders.iter().any(|it| it.is_quic);
        let only_tcp = has_quic && !self.waits_for(true);
        let done = self.quic_done.filter(|_| only_tcp)?;
        Some(done + self.straggler_wait(parameters))
    }

    /// The next time at which [`Self::advance`] has an effect.
    pub(crate) fn due(&self, parameters: &Parameters) -> Instant {
        let age = self.begun + parameters.experiment_age;
        let limits = self.slots.iter().map(|slot| match slot.state {
            State::Sent(at) => at + self.limit(self.contenders[slot.arm].arm, parameters),
            State::Unsent => age,
            _ => Instant::FAR_FUTURE,
        });
        let first = limits.min().unwrap_or(Instant::FAR_FUTURE);
        match self.straggler_end(parameters) {
            Some(end) => first.min(end),
            None => first,
        }
    }

    /// Applies the time limits at `now`; the verdict once nothing is awaited any more. `current` is the
    /// position of the arm in use.
    pub(crate) fn advance(
        &mut self,
        now: Instant,
        current: usize,
        parameters: &Parameters,
    ) -> Option<Verdict> {
        let too_old = now >= self.begun + parameters.experiment_age;
        for position in 0..self.slots.len() {
            let slot = self.slots[position];
            let arm = self.contenders[slot.arm].arm;
            match slot.state {
                State::Sent(at) if now >= at + self.limit(arm, parameters) => {
                    self.fail(now, position as u32, None);
                }
                State::Unsent if too_old => self.slots[position].state = State::Void,
                _ => {}
            }
        }
        let end = self.straggler_end(parameters);
        let over = end.is_some_and(|end| now >= end);
        if self.waits_for(true) || (self.waits_for(false) && !over) {
            return None;
        }
        Some(self.verdict(current, parameters))
    }

    fn verdict(&self, current: usize, parameters: &Parameters) -> Verdict {
        let complete = |slot: &Slot| match slot.state {
            State::Complete(timed) => Some(timed),
            _ => None,
        };
        let by_size = sizes_differ(self.slots.iter().filter_map(complete), parameters);
        let contenders = self.contenders.iter().enumerate();
        let scores: Vec<Score> = contenders
            .map(|(number, contender)| {
                let slots = self.slots.iter().filter(|slot| slot.arm == number);
                let timed = slots.clone().filter_map(complete);
                let values = timed.map(|timed| value(timed, by_size, parameters));
                let values: Vec<f64> = values.collect();
                let failed = slots.filter_map(|slot| match slot.state {
                    State::Failed { silent } => Some(silent),
                    _ => None,
                });
                let failed: Vec<Option<bool>> = failed.collect();
                let is_alive = failed.contains(&Some(false)) || !values.is_empty();
                let median = median(&values);
                Score {
                    arm: contender.arm,
                    value: median.or((!failed.is_empty()).then_some(f64::INFINITY)),
                    is_dead: failed.len() >= 2 && !is_alive,
                }
            })
            .collect();
        let winner = winner(&scores, current, parameters);
        Verdict { scores, winner }
    }
}

/// The median; `None` with fewer than two values. The paper has the mean of the two most similar ones of three.
fn median(values: &[f64]) -> Option<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let upper = *sorted.get(sorted.len() / 2).filter(|_| sorted.len() >= 2)?;
    Some(f64::midpoint(sorted[(sorted.len() - 1) / 2], upper))
}

/// The best arm; the current one if the difference is too small to matter.
fn winner(scores: &[Score], current: usize, parameters: &Parameters) -> Option<usize> {
    let finite = |score: &&Score| score.value.is_some_and(f64::is_finite);
    let known = scores.iter().filter(finite);
    let best = known.min_by(|a, b| a.value.partial_cmp(&b.value).unwrap_or(a.arm.cmp(&b.arm)))?;
    let mine = scores.iter().find(|score| score.arm == current);
    let mine = mine.and_then(|score| score.value);
    match (mine, best.value) {
        (Some(mine), Some(value)) if value < mine * (1.0 - parameters.tie) => Some(best.arm),
        (Some(_), _) => Some(current),
        // Nothing to compare the current arm by.
        (None, _) => None,
    }
}
