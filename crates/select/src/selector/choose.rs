//! The choice of an arm for a request, by strategy.

use std::time::Duration;

use super::turn::Turn;
use crate::arm::Transport;
use crate::bandit::{Advice, Situation};
use crate::decision::{Hedge, Reason, Trigger};
use crate::event::{EventKind, SwitchCause};
use crate::experiment::{Contender, Experiment};
use crate::request::RequestDescription;
use crate::strategy::{Boundary, Strategy};

/// A choice.
pub(super) struct Choice {
    pub(super) arm: usize,
    pub(super) reason: Reason,
    /// Position in the running experiment.
    pub(super) position: Option<u32>,
}

impl Choice {
    pub(super) fn of(arm: usize, reason: Reason) -> Self {
        Self {
            arm,
            reason,
            position: None,
        }
    }
}

/// A set of arms.
#[derive(Clone, Copy)]
struct Arms(u32);

impl Arms {
    fn has(self, arm: usize) -> bool {
        self.0 >> arm & 1 == 1
    }

    fn count(self) -> u32 {
        self.0.count_ones()
    }

    fn first(self) -> usize {
        self.0.trailing_zeros() as usize
    }
}

impl Turn<'_> {
    pub(super) fn choose(&mut self, request: &RequestDescription) -> Choice {
        let choice = self.by_strategy(request);
        if request.replay_safe || self.origin.failures[choice.arm] == 0 {
            return choice;
        }
        let usable = self.usable(self.available(request));
        let sound = (0..self.config.arms.len())
            .find(|arm| usable.has(*arm) && self.origin.failures[*arm] == 0);
        match (sound, &self.config.strategy) {
            (_, Strategy::Fixed(_)) | (None, _) => choice,
            (Some(arm), _) => Choice::of(arm, Reason::Suspect),
        }
    }

    fn available(&self, request: &RequestDescription) -> Arms {
        let all = (1 << self.config.arms.len()) - 1;
        match request.available & all {
            0 => Arms(all),
            some => Arms(some),
        }
    }

    /// The available arms without those that are blocked; all of them if nothing is left.
    fn usable(&self, available: Arms) -> Arms {
        let arms = 0..self.config.arms.len();
        let open = arms.filter(|arm| available.has(*arm) && !self.is_blocked(*arm));
        match open.fold(0, |arms, arm| arms | 1 << arm) {
            0 => available,
            some => Arms(some),
        }
    }

    fn by_strategy(&mut self, request: &RequestDescription) -> Choice {
        if let Strategy::Fixed(fixed) = &self.config.strategy {
            let arm = self.config.arms.iter().position(|arm| arm == fixed);
            return Choice::of(arm.unwrap_or_default(), Reason::Fixed);
        }
        let available = self.available(request);
        if available.count() == 1 {
            return Choice::of(available.first(), Reason::OnlyArm);
        }
        let usable = self.usable(available);
        let current = self.origin.current;
        if !usable.has(current) && available.has(current) {
            self.switch(usable.first(), SwitchCause::Blocked);
        }
        if usable.count() == 1 {
            let transport = Transport::Quic;
            return Choice::of(usable.first(), Reason::Blocked { transport });
        }
        if !usable.has(self.origin.current) {
            // The arm in use can't carry this one request.
            return Choice::of(usable.first(), Reason::OnlyArm);
        }
        match self.config.strategy {
            Strategy::Race if !self.origin.connected => Choice::of(usable.first(), Reason::Race),
            Strategy::Strawman(boundary) => self.by_boundary(boundary, usable),
            Strategy::WiseV1 { .. } => self.by_model(usable),
            Strategy::WiseV2 { .. } => self.by_experiment(request, usable),
            Strategy::Plus => self.by_belief(request, usable),
            Strategy::Fixed(_) | Strategy::Race => Choice::of(self.origin.current, self.origin.why),
        }
    }

    /// The first usable arm of a transport.
    fn arm_of(&self, transport: Transport, usable: Arms) -> Option<usize> {
        let mut arms = 0..self.config.arms.len();
        arms.find(|arm| usable.has(*arm) && self.transport(*arm) == transport)
    }

    fn prefer(&mut self, quic: bool, usable: Arms, cause: SwitchCause) {
        let transport = if quic {
            Transport::Quic
        } else {
            Transport::Tcp
        };
        if self.transport(self.origin.current) != transport
            && let Some(arm) = self.arm_of(transport, usable)
        {
            self.switch(arm, cause);
        }
    }

    fn by_boundary(&mut self, boundary: Boundary, usable: Arms) -> Choice {
        let window = &self.origin.windows[self.origin.current];
        let full = window.len() >= self.parameters().min_requests as usize;
        let Some(value) = boundary.value(window).filter(|_| full) else {
            return Choice::of(self.origin.current, self.origin.why);
        };
        self.prefer(value > 0.0, usable, SwitchCause::Boundary);
        Choice::of(self.origin.current, Reason::Boundary { value })
    }

    fn by_model(&mut self, usable: Arms) -> Choice {
        let Some(score) = self.origin.score else {
            return Choice::of(self.origin.current, self.origin.why);
        };
        let margin = self.parameters().v1_margin;
        let beyond = f64::from((score - 0.5).abs()) > margin;
        if !beyond || self.origin.pause.is_active(self.now) {
            return Choice::of(self.origin.current, self.origin.why);
        }
        self.prefer(score > 0.5, usable, SwitchCause::Model);
        Choice::of(self.origin.current, Reason::Model { score })
    }

    fn by_experiment(&mut self, request: &RequestDescription, usable: Arms) -> Choice {
        let current = self.origin.current;
        if self.origin.experiment.is_none() {
            self.look_for_trigger();
            if self.origin.due.is_none() {
                return Choice::of(current, self.origin.why);
            }
        }
        if !request.replay_safe {
            return Choice::of(current, Reason::NotReplaySafe);
        }
        if let Some(trigger) = self.origin.due.take()
            && self.origin.experiment.is_none()
        {
            self.start_experiment(trigger, usable);
        }
        let now = self.now;
        let Some(experiment) = &mut self.origin.experiment else {
            return Choice::of(current, self.origin.why);
        };
        let Some((position, arm)) = experiment.send(now, |arm| usable.has(arm)) else {
            return self.balanced(usable);
        };
        let trigger = experiment.trigger();
        Choice {
            arm,
            reason: Reason::Experiment { trigger, position },
            position: Some(position),
        }
    }

    /// The arm with the fewest requests in flight, the one in use among equals. If that one carried the rest of a page alone
    /// while an experiment waits, its requests would share their connection with more others than those of the other arms.
    /// Arms that have not answered yet, or failed last, get the experiment's own requests only.
    fn balanced(&self, usable: Arms) -> Choice {
        let current = self.origin.current;
        let answers =
            |arm: usize| self.origin.failures[arm] == 0 && !self.origin.windows[arm].is_empty();
        let arms = (0..self.config.arms.len()).filter(|arm| usable.has(*arm));
        let arms = arms.filter(|arm| *arm == current || answers(*arm));
        let least = arms.min_by_key(|arm| (self.origin.in_flight[*arm], *arm != current));
        match least {
            Some(arm) if arm != current => Choice::of(arm, Reason::Balanced),
            _ => Choice::of(current, Reason::ExperimentWaits),
        }
    }

    /// Applies the pause after rollbacks, and finds blocks that have expired.
    fn look_for_trigger(&mut self) {
        let now = self.now;
        let tried_again = self.origin.block.is_expired(now) || self.shared.block.is_expired(now);
        if tried_again && !self.origin.monitor.is_recent(now, self.parameters()) {
            self.origin.due = Some(Trigger::BlockExpired);
        }
        let triggers = matches!(self.config.strategy, Strategy::WiseV2 { trigger: true, .. });
        if triggers && self.origin.recheck.is_due(now) {
            self.origin.due.get_or_insert(Trigger::Recheck);
        }
        let pauses = [Trigger::ScoreMoved, Trigger::Overtaken, Trigger::Recheck];
        let pauses = self.origin.due.is_some_and(|due| pauses.contains(&due));
        if pauses && self.origin.pause.is_active(now) {
            self.origin.due = None;
        }
    }

    fn start_experiment(&mut self, trigger: Trigger, usable: Arms) {
        let arms = (0..self.config.arms.len()).filter(|arm| usable.has(*arm));
        // Of an arm that was not used lately nothing is known, but the network is slow for all arms.
        let known = self.mean_completion(self.origin.current);
        let contenders = arms.map(|arm| Contender {
            arm,
            is_quic: self.is_quic(arm),
            mean: self.mean_completion(arm).or(known),
        });
        let contenders = contenders.collect();
        let experiment = Experiment::new(self.now, trigger, contenders, self.parameters());
        self.origin.experiment = Some(experiment);
        self.origin.experiments += 1;
        // What is watched would be compared with requests of the experiment.
        self.origin.watch = None;
        self.stats.experiments += 1;
        self.tell(EventKind::ExperimentStarted { trigger });
    }

    fn mean_completion(&self, arm: usize) -> Option<Duration> {
        let mean = self.origin.windows[arm].mean_completion()?;
        Duration::try_from_secs_f32(mean / 1e3).ok()
    }

    fn by_belief(&mut self, request: &RequestDescription, usable: Arms) -> Choice {
        let current = self.origin.current;
        let arms = 0..self.config.arms.len();
        let ahead: Vec<u32> = arms.map(|arm| self.origin.ahead(arm)).collect();
        let Some(bandit) = &mut self.origin.bandit else {
            return Choice::of(current, self.origin.why);
        };
        let situation = Situation {
            usable: &|arm| usable.has(arm),
            ahead: &ahead,
            is_free: request.replay_safe,
            is_alone: self.origin.in_flight.iter().all(|count| *count == 0),
        };
        let parameters = &self.config.parameters;
        let advice = bandit.advise(self.now, current, &situation, self.random, parameters);
        match advice {
            Advice::Stay(probability) => {
                let probability = probability as f32;
                Choice::of(current, Reason::Belief { probability })
            }
            Advice::Switch(arm, probability) => {
                self.switch(arm, SwitchCause::Belief);
                let probability = probability as f32;
                Choice::of(arm, Reason::Belief { probability })
            }
            Advice::Spread(arm, probability) if self.origin.failures[arm] > 0 => {
                let probability = probability as f32;
                Choice::of(current, Reason::Belief { probability })
            }
            Advice::Spread(arm, probability) => {
                let probability = probability as f32;
                Choice::of(arm, Reason::LessLoaded { probability })
            }
            Advice::Probe(arm, probability) => {
                let probability = probability as f32;
                Choice::of(arm, Reason::Probe { probability })
            }
        }
    }

    /// When a request on `arm` is also sent over TCP.
    pub(super) fn hedge(&self, arm: usize, request: &RequestDescription) -> Option<Hedge> {
        if !request.replay_safe || !self.is_quic(arm) || !self.config.strategy.hedges() {
            return None;
        }
        let second = self.arm_of(Transport::Tcp, self.available(request))?;
        let parameters = self.parameters();
        let windows = [&self.origin.windows[arm], &self.origin.windows[second]];
        let scaled = |mean: Option<f32>, factor: f64| {
            let seconds = f64::from(mean?) / 1e3 * factor;
            Duration::try_from_secs_f64(seconds).ok()
        };
        let rtt = windows.iter().find_map(|window| window.mean_rtt());
        let first_byte = windows.iter().find_map(|window| window.mean_first_byte());
        let floor = parameters.hedge_floor;
        let handshake = scaled(rtt, parameters.hedge_rtts).unwrap_or(floor);
        let packet = scaled(rtt, parameters.silence_rtts);
        let stalled = self.origin.patience.factor(parameters);
        let response = scaled(first_byte, stalled);
        let response = response.unwrap_or(parameters.experiment_limit).max(floor);
        Some(Hedge {
            arm: self.config.arms[second].clone(),
            without_handshake: handshake.max(floor),
            without_packet: packet.map_or(response, |packet| packet.max(floor)),
            without_response: response,
        })
    }
}
