//! What outcomes of requests and the passing of time change.

use std::time::Duration;

use swiftwater_units::Instant;

use super::turn::{Key, Turn};
use crate::bandit::Observation;
use crate::blocked::Evidence;
use crate::comparison::Timed;
use crate::decision::Trigger;
use crate::event::{EventKind, SwitchCause};
use crate::experiment::{Score, Verdict};
use crate::request::{Failure, Measured, Outcome};
use crate::strategy::Strategy;
use crate::window::Sample;

/// A request without an outcome yet.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pending {
    pub(super) key: Key,
    pub(super) arm: usize,
    pub(super) at: Instant,
    /// Number of the experiment, and position in it.
    pub(super) experiment: Option<(u64, u32)>,
    /// A probe of the bandit.
    pub(super) is_probe: bool,
    /// Requests in flight when it was sent.
    pub(super) in_flight: u32,
}

impl Turn<'_> {
    /// Takes the outcome of a request in; `arm` answered or failed.
    pub(super) fn learn(&mut self, pending: &Pending, arm: usize, outcome: &Outcome) {
        let (result, silent) = (outcome.result, outcome.silent);
        let in_flight = &mut self.origin.in_flight[pending.arm];
        *in_flight = in_flight.saturating_sub(1);
        if let Some(bandit) = &mut self.origin.bandit
            && pending.is_probe
        {
            bandit.probe_ended(pending.arm);
        }
        if outcome.hedged && !silent && result.is_ok() && pending.arm == self.origin.current {
            let tcp_answered = !self.is_quic(arm);
            let parameters = &self.config.parameters;
            self.origin.patience.hedged(tcp_answered, parameters);
        }
        if arm != pending.arm && result != Err(Failure::Cancelled) {
            self.stats.overtaken += 1;
            if silent || !self.is_quic(pending.arm) {
                self.fail(pending, pending.arm, Evidence::Overtaken);
            } else {
                self.slow(pending, pending.arm);
            }
        }
        match result {
            Ok(measured) => self.succeed(pending, arm, &measured),
            Err(Failure::Cancelled) => self.cancel(pending),
            Err(Failure::TooSlow) if self.is_quic(arm) && !silent => {
                self.stats.failed += 1;
                self.slow(pending, arm);
            }
            Err(_) => {
                self.stats.failed += 1;
                self.fail(pending, arm, Evidence::Failed);
            }
        }
        self.advance();
    }

    /// The running experiment, if the request belongs to it on this arm, and its position.
    fn position(&self, pending: &Pending, arm: usize) -> Option<u32> {
        let (number, position) = pending.experiment?;
        (number == self.origin.experiments && arm == pending.arm).then_some(position)
    }

    fn succeed(&mut self, pending: &Pending, arm: usize, measured: &Measured) {
        let now = self.now;
        let sample = Sample::new(now, measured);
        self.origin.windows[arm].push(sample, &self.config.parameters);
        self.origin.failures[arm] = 0;
        if self.is_quic(arm) {
            self.unblock();
        }
        let timed = Timed {
            completion: sample.completion,
            bytes: sample.bytes,
        };
        let position = self.position(pending, arm);
        if let (Some(position), Some(experiment)) = (position, &mut self.origin.experiment) {
            experiment.complete(now, position, timed);
        }
        if let Some(watch) = &mut self.origin.watch
            && watch.to == arm
            && pending.at >= watch.since
        {
            watch.add(timed);
        }
        let observation = Observation {
            arm,
            completion: f64::from(sample.completion),
            bytes: Some(f64::from(sample.bytes)),
            in_flight: pending.in_flight,
            rtt: measured.rtt.map(|rtt| rtt.as_secs_f64() * 1e3),
            is_first: measured.waited_for_handshake(),
        };
        self.observe(observation);
        if arm == self.origin.current {
            self.score(arm);
        }
    }

    fn observe(&mut self, observation: Observation) {
        let Some(bandit) = &mut self.origin.bandit else {
            return;
        };
        let changed = bandit.observe(
            self.now,
            self.origin.current,
            observation,
            &mut self.shared.comparisons,
            &self.config.parameters,
        );
        if changed {
            self.tell(EventKind::ChangeDetected);
        }
    }

    /// Scores the network after a request on the arm in use.
    fn score(&mut self, arm: usize) {
        let Some(model) = self.models.of(self.transport(arm)) else {
            return;
        };
        let window = &self.origin.windows[arm];
        let parameters = &self.config.parameters;
        match self.config.strategy {
            Strategy::WiseV1 { .. } if window.len() >= parameters.min_requests as usize => {
                let features = window.features();
                self.origin.score = features.map(|features| model.predict(&features));
            }
            Strategy::WiseV2 { trigger: true, .. } if self.origin.experiment.is_none() => {
                let monitor = &mut self.origin.monitor;
                if monitor.observe(self.now, window, model, parameters) {
                    self.origin.due.get_or_insert(Trigger::ScoreMoved);
                }
            }
            _ => {}
        }
    }

    fn cancel(&mut self, pending: &Pending) {
        let position = self.position(pending, pending.arm);
        if let (Some(position), Some(experiment)) = (position, &mut self.origin.experiment) {
            experiment.cancel(self.now, position);
        }
    }

    /// A request took too long, on a connection that is alive: the arm may be slow, but is not broken.
    fn slow(&mut self, pending: &Pending, arm: usize) {
        self.lose(pending, arm, false);
        let triggers = matches!(self.config.strategy, Strategy::WiseV2 { trigger: true, .. });
        let is_recent = self.origin.monitor.is_recent(self.now, self.parameters());
        if triggers && arm == self.origin.current && self.origin.experiment.is_none() && !is_recent
        {
            self.origin.due.get_or_insert(Trigger::Overtaken);
        }
    }

    /// Takes a request without a response into account where arms are compared.
    fn lose(&mut self, pending: &Pending, arm: usize, silent: bool) {
        let position = self.position(pending, arm);
        if let (Some(position), Some(experiment)) = (position, &mut self.origin.experiment) {
            experiment.fail(self.now, position, Some(silent));
        }
        let elapsed = self.now.saturating_since(pending.at);
        if let Some(watch) = &mut self.origin.watch
            && watch.to == arm
            && pending.at >= watch.since
        {
            watch.add_slow(elapsed.as_secs_f32() * 1e3);
        }
        let mean = self.origin.windows[arm].mean_completion().unwrap_or(0.0);
        // How long it would have taken is not known: where nothing came, longer than where only the response is late.
        let longer = if silent { 3.0 } else { 1.0 };
        self.observe(Observation {
            arm,
            completion: f64::from(mean).max(elapsed.as_secs_f64() * 1e3) * longer,
            bytes: None,
            in_flight: pending.in_flight,
            rtt: None,
            is_first: false,
        });
    }

    fn fail(&mut self, pending: &Pending, arm: usize, evidence: Evidence) {
        self.lose(pending, arm, true);
        self.origin.failures[arm] = self.origin.failures[arm].saturating_add(1);
        if self.origin.failures[arm] < self.parameters().failures {
            return;
        }
        if matches!(self.config.strategy, Strategy::Fixed(_)) {
            return;
        }
        if self.is_quic(arm) {
            self.block(evidence);
        }
        if arm == self.origin.current {
            self.fail_over();
        }
    }

    /// Leaves the arm in use for one that has not failed.
    fn fail_over(&mut self) {
        let current = self.origin.current;
        let others = (0..self.config.arms.len()).filter(|arm| *arm != current);
        let sound = |arm: &usize| !self.is_blocked(*arm) && self.origin.failures[*arm] == 0;
        if let Some(arm) = others.filter(sound).min_by_key(|arm| self.transport(*arm)) {
            self.switch(arm, SwitchCause::Failures);
            self.origin.pause.start(self.now, &self.config.parameters);
        }
    }

    /// Ends experiments and comparisons that are due.
    pub(super) fn advance(&mut self) {
        let (now, current) = (self.now, self.origin.current);
        let parameters = &self.config.parameters;
        if let Some(experiment) = &mut self.origin.experiment
            && let Some(verdict) = experiment.advance(now, current, parameters)
        {
            self.origin.experiment = None;
            self.conclude(&verdict);
        }
        let worse = (self.origin.watch.as_ref()).is_some_and(|it| it.is_worse(now, parameters));
        if let Some(watch) = (self.origin.watch).take_if(|it| worse || now >= it.due(parameters))
            && watch.to == self.origin.current
            && worse
            && !self.is_blocked(watch.from)
        {
            self.switch(watch.from, SwitchCause::Rollback);
            self.origin.pause.start(now, parameters);
        }
    }

    fn conclude(&mut self, verdict: &Verdict) {
        self.origin.monitor.explored(self.now);
        let changed = verdict.winner.is_some_and(|arm| arm != self.origin.current);
        self.origin
            .recheck
            .compared(self.now, changed, &self.config.parameters);
        let arms = &self.config.arms;
        let finite = |value: Option<f64>| value.filter(|value| value.is_finite());
        let values = verdict.scores.iter();
        let values = values.map(|score| (arms[score.arm].clone(), finite(score.value)));
        self.tell(EventKind::ExperimentEnded {
            winner: verdict.winner.map(|arm| arms[arm].clone()),
            values: values.collect(),
        });
        let (quic, tcp): (Vec<Score>, Vec<Score>) = verdict
            .scores
            .iter()
            .copied()
            .partition(|score| self.is_quic(score.arm));
        let tcp_works = tcp.iter().any(|score| finite(score.value).is_some());
        if tcp_works && !quic.is_empty() && quic.iter().all(|score| score.is_dead) {
            self.block(Evidence::Failed);
        }
        match verdict.winner {
            Some(arm) if !self.is_blocked(arm) => self.switch(arm, SwitchCause::Experiment),
            Some(_) => {}
            None => self.stats.inconclusive += 1,
        }
    }

    /// How long the idle connection of a losing arm is worth keeping; zero once that is over.
    pub(super) fn warm(&self, arm: usize) -> Duration {
        match self.origin.loser {
            Some((loser, until)) if loser == arm => until.saturating_since(self.now),
            _ => Duration::ZERO,
        }
    }
}
