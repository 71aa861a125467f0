//! The state machine that owns all of the selection.
//!
//! `turn` is one step for one origin on one network; `choose` decides, `learn` takes outcomes in. State by
//! network and origin lies in `origin`, its stored form in `snapshot`.

mod choose;
mod config;
mod learn;
mod origin;
mod snapshot;
mod turn;

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use rand_chacha::ChaCha8Rng;
use rand_core::SeedableRng;
use swiftwater_units::Instant;

use crate::agenda::Agenda;
use crate::arm::{Arm, Transport};
use crate::blocked::Evidence;
use crate::decision::{Decision, Reason, Trigger};
use crate::event::Event;
use crate::features::Features;
use crate::key::{NetworkId, OriginHash};
use crate::model::Models;
use crate::request::{Outcome, RequestDescription, RequestId};
use crate::stats::Stats;
use crate::strategy::Strategy;
use choose::Choice;
use learn::Pending;
use origin::{NetworkState, OriginState};
use turn::{Key, Turn};

pub use config::{Config, ConfigError};
pub use snapshot::SnapshotError;

/// How long the connection of an arm is worth keeping open without requests.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Warm {
    /// It is in use.
    InUse,
    /// It lost: for so long, then it may be closed.
    For(Duration),
}

/// Chooses the arm of each request. See the crate's documentation for an example.
pub struct Selector {
    config: Config,
    models: Models,
    random: ChaCha8Rng,
    networks: BTreeMap<NetworkId, NetworkState>,
    pending: BTreeMap<RequestId, Pending>,
    /// Origins with something to be done at a certain time.
    due: Agenda<Key>,
    next: u64,
    stats: Stats,
    events: VecDeque<Event>,
}

impl Selector {
    /// A selector that knows nothing. Equal calls with equal seeds give equal decisions.
    pub fn new(config: Config, models: Models, seed: u64) -> Result<Self, ConfigError> {
        config.check()?;
        Ok(Self {
            config,
            models,
            random: ChaCha8Rng::seed_from_u64(seed),
            networks: BTreeMap::new(),
            pending: BTreeMap::new(),
            due: Agenda::default(),
            next: 0,
            stats: Stats::default(),
            events: VecDeque::new(),
        })
    }

    /// Arms, strategy and parameters.
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// Uses other models from the next outcome on.
    pub fn set_models(&mut self, models: Models) {
        self.models = models;
    }

    /// Chooses the arm of a request that is sent now. Its end is to be told by [`Self::on_outcome`].
    pub fn decide(&mut self, now: Instant, request: &RequestDescription) -> Decision {
        self.decide_by(now, request, |turn| turn.choose(request))
    }

    /// The decision for a request over the arm whose connection was established first, as the caller found out:
    /// for an origin that is not known, or where [`Self::needs_race`] is true. Its end is to be told, too. An arm
    /// that is not in the list stands for the first.
    pub fn decide_connected(
        &mut self,
        now: Instant,
        request: &RequestDescription,
        arm: &Arm,
    ) -> Decision {
        let arm = self.config.arms.iter().position(|known| known == arm);
        let choice = Choice::of(arm.unwrap_or_default(), Reason::ConnectedFirst);
        self.decide_by(now, request, |_| choice)
    }

    /// True if [`Self::decide`] would answer a request with [`Reason::Race`]: the caller may let arms race at once,
    /// and use [`Self::decide_connected`], so that the request is counted once.
    pub fn needs_race(&self, now: Instant, request: &RequestDescription) -> bool {
        let state = self.state(request.network, request.origin);
        let (connected, current) = state.map_or((false, 0), |it| (it.connected, it.current));
        if self.config.strategy != Strategy::Race || connected {
            return false;
        }
        let is_blocked = self.is_quic_blocked(now, request.network, request.origin);
        let all = (1_u32 << self.config.arms.len()) - 1;
        let available = Some(request.available & all).filter(|some| *some != 0);
        let arms = self.config.arms.iter().enumerate();
        let usable = arms.filter(|(position, arm)| {
            let is_open = arm.transport() == Transport::Tcp || !is_blocked;
            available.unwrap_or(all) >> position & 1 == 1 && is_open
        });
        let usable: Vec<usize> = usable.map(|(position, _)| position).collect();
        usable.len() > 1 && usable.contains(&current)
    }

    fn decide_by(
        &mut self,
        now: Instant,
        request: &RequestDescription,
        choose: impl FnOnce(&mut Turn<'_>) -> Choice,
    ) -> Decision {
        let key = (request.network, request.origin);
        self.enter(now, key);
        let id = RequestId(self.next);
        self.next += 1;
        let (pending, decision) = self
            .with(now, key, |turn| {
                turn.advance();
                turn.origin.used = now;
                let choice = choose(turn);
                let arm = &turn.config.arms[choice.arm];
                let in_flight = turn.origin.ahead(choice.arm);
                turn.origin.in_flight[choice.arm] += 1;
                let limit = choice.position.and(turn.origin.experiment.as_ref());
                let limit = limit.map(|it| it.limit(choice.arm, turn.parameters()));
                turn.stats.count(choice.reason);
                let off_arm = choice.reason.is_probe() && choice.arm != turn.origin.current;
                turn.stats.off_arm += u64::from(off_arm);
                let decision = Decision {
                    id,
                    arm: arm.clone(),
                    reason: choice.reason,
                    hedge: turn.hedge(choice.arm, request),
                    limit,
                };
                let number = turn.origin.experiments;
                let pending = Pending {
                    key,
                    arm: choice.arm,
                    at: now,
                    experiment: choice.position.map(|position| (number, position)),
                    is_probe: matches!(choice.reason, Reason::Probe { .. }),
                    in_flight,
                };
                Some((pending, decision))
            })
            // `enter` has made the state that `with` looks for.
            .unwrap_or_else(|| self.without_state(id, now, key));
        self.pending.insert(id, pending);
        self.forget_pending(now);
        tracing::trace!(origin = %key.1, arm = %decision.arm, reason = %decision.reason, "decided");
        decision
    }

    fn without_state(&self, id: RequestId, now: Instant, key: Key) -> (Pending, Decision) {
        let pending = Pending {
            key,
            arm: 0,
            at: now,
            experiment: None,
            is_probe: false,
            in_flight: 0,
        };
        let decision = Decision {
            id,
            arm: self.config.arms[0].clone(),
            reason: Reason::Kept,
            hedge: None,
            limit: None,
        };
        (pending, decision)
    }

    /// Takes the outcome of a request in. A second outcome of a request is ignored, and so is one with an
    /// arm that is not in the list.
    pub fn on_outcome(&mut self, now: Instant, id: RequestId, outcome: &Outcome) {
        let arms = &self.config.arms;
        let Some(arm) = arms.iter().position(|arm| *arm == outcome.arm) else {
            return;
        };
        let Some(pending) = self.pending.remove(&id) else {
            return;
        };
        self.with(now, pending.key, |turn| {
            turn.learn(&pending, arm, outcome);
            Some(())
        });
    }

    /// A connection to an origin was established: QUIC works if it is one of QUIC, the first one names the
    /// arm that is used at first, and a new one on the arm in use starts an experiment.
    pub fn on_connection(
        &mut self,
        now: Instant,
        network: NetworkId,
        origin: OriginHash,
        arm: &Arm,
    ) {
        let Some(arm) = self.config.arms.iter().position(|known| known == arm) else {
            return;
        };
        let key = (network, origin);
        self.enter(now, key);
        self.with(now, key, |turn| {
            if turn.is_quic(arm) {
                turn.unblock();
            }
            let first = !std::mem::replace(&mut turn.origin.connected, true);
            if first && turn.origin.experiment.is_none() && !turn.is_blocked(arm) {
                turn.origin.current = arm;
                turn.origin.why = Reason::ConnectedFirst;
            }
            let recent = turn.origin.monitor.is_recent(now, turn.parameters());
            if arm == turn.origin.current && turn.origin.experiment.is_none() && !recent {
                turn.origin.due.get_or_insert(Trigger::NewConnection);
            }
            Some(())
        });
    }

    /// No connection of QUIC could be established where TCP could: QUIC is blocked.
    pub fn on_quic_blocked(&mut self, now: Instant, network: NetworkId, origin: OriginHash) {
        let key = (network, origin);
        self.enter(now, key);
        self.with(now, key, |turn| {
            turn.block(Evidence::Failed);
            Some(())
        });
    }

    /// The host is on another network now, or on the same one again. What was measured there before is
    /// forgotten; what was learned (blocked UDP, comparisons) is not.
    pub fn on_network_change(&mut self, now: Instant, network: NetworkId) {
        self.due = Agenda::default();
        for (id, state) in &mut self.networks {
            for origin in state.origins.values_mut() {
                if *id == network {
                    origin.start_anew(&self.config);
                } else {
                    origin.suspend();
                }
            }
        }
        if let Some(state) = self.networks.get_mut(&network) {
            state.used = now;
        }
    }

    /// When [`Self::on_timeout`] is to be called next, if at all.
    pub fn next_timeout(&self) -> Option<Instant> {
        self.due.next()
    }

    /// Ends what is due: experiments by their time limits, comparisons after switches. Takes time for each origin
    /// with something due, not for all.
    pub fn on_timeout(&mut self, now: Instant) {
        let mut keys = Vec::new();
        while let Some(key) = self.due.take_due(now) {
            keys.push(key);
        }
        for key in keys {
            self.with(now, key, |turn| {
                turn.advance();
                Some(())
            });
        }
    }

    /// What happened since the last call; at most 256 events wait.
    pub fn poll_event(&mut self) -> Option<Event> {
        self.events.pop_front()
    }

    /// Counters.
    pub fn stats(&self) -> Stats {
        self.stats
    }

    /// The selected arm of an origin; `None` if the origin is not known.
    pub fn current(&self, network: NetworkId, origin: OriginHash) -> Option<Arm> {
        let state = self.state(network, origin)?;
        Some(self.config.arms[state.current].clone())
    }

    /// The features of an arm now; `None` without requests.
    pub fn features(&self, network: NetworkId, origin: OriginHash, arm: &Arm) -> Option<Features> {
        let state = self.state(network, origin)?;
        let position = self.config.arms.iter().position(|known| known == arm)?;
        state.windows[position].features()
    }

    /// The last score of an origin's network: the probability that QUIC is quicker.
    pub fn score(&self, network: NetworkId, origin: OriginHash) -> Option<f32> {
        let state = self.state(network, origin)?;
        state.score.or(state.monitor.score())
    }

    /// True while arms over QUIC are not used for an origin.
    pub fn is_quic_blocked(&self, now: Instant, network: NetworkId, origin: OriginHash) -> bool {
        let state = self.networks.get(&network);
        state.is_some_and(|state| {
            let of_origin = state.origins.get(&origin);
            state.shared.block.is_active(now)
                || of_origin.is_some_and(|origin| origin.block.is_active(now))
        })
    }

    /// True while an experiment is running for an origin.
    pub fn is_experimenting(&self, network: NetworkId, origin: OriginHash) -> bool {
        self.state(network, origin)
            .is_some_and(|state| state.experiment.is_some())
    }

    /// How long the idle connection of an arm is useful.
    pub fn warm(
        &mut self,
        now: Instant,
        network: NetworkId,
        origin: OriginHash,
        arm: &Arm,
    ) -> Warm {
        let position = self.config.arms.iter().position(|known| known == arm);
        let left = position.and_then(|arm| {
            self.with(now, (network, origin), |turn| {
                let in_use = turn.origin.current == arm || turn.origin.experiment.is_some();
                (!in_use).then(|| turn.warm(arm))
            })
        });
        match (left, position) {
            (Some(left), _) => Warm::For(left),
            (None, Some(_)) => Warm::InUse,
            (None, None) => Warm::For(Duration::ZERO),
        }
    }

    /// Networks and origins that are remembered, and requests without an outcome.
    pub fn remembered(&self) -> (usize, usize, usize) {
        let origins = self.networks.values().map(|state| state.origins.len());
        (self.networks.len(), origins.sum(), self.pending.len())
    }

    fn state(&self, network: NetworkId, origin: OriginHash) -> Option<&OriginState> {
        self.networks.get(&network)?.origins.get(&origin)
    }

    /// Runs one step for an origin that is known.
    fn with<T>(
        &mut self,
        now: Instant,
        key: Key,
        step: impl FnOnce(&mut Turn<'_>) -> Option<T>,
    ) -> Option<T> {
        let network = self.networks.get_mut(&key.0)?;
        let origin = network.origins.get_mut(&key.1)?;
        let mut turn = Turn {
            now,
            key,
            config: &self.config,
            models: &self.models,
            random: &mut self.random,
            stats: &mut self.stats,
            events: &mut self.events,
            shared: &mut network.shared,
            origin,
        };
        let result = step(&mut turn);
        let due = origin.next_due(&self.config.parameters);
        self.due.set(key, due);
        result
    }

    /// Makes the state of an origin if there is none, in place of the least recently used one if need be.
    fn enter(&mut self, now: Instant, key: Key) {
        let (network, origin) = key;
        let (networks, origins) = {
            let parameters = &self.config.parameters;
            let most = (parameters.max_networks, parameters.max_origins);
            (most.0 as usize, most.1 as usize)
        };
        if !self.networks.contains_key(&network) && self.networks.len() >= networks {
            let all = self.networks.iter();
            let oldest = all.min_by_key(|(id, state)| (state.used, **id));
            if let Some(oldest) = oldest.map(|(id, _)| *id) {
                self.networks.remove(&oldest);
                self.due.retain(|key| key.0 != oldest);
            }
        }
        let state = self.networks.entry(network).or_default();
        state.used = now;
        if state.origins.contains_key(&origin) {
            return;
        }
        if state.origins.len() >= origins {
            let all = state.origins.iter();
            let oldest = all.min_by_key(|(hash, state)| (state.used, **hash));
            if let Some(oldest) = oldest.map(|(hash, _)| *hash) {
                state.origins.remove(&oldest);
                self.due.set((network, oldest), None);
            }
        }
        let fresh = OriginState::new(now, &self.config);
        state.origins.insert(origin, fresh);
    }

    fn forget_pending(&mut self, now: Instant) {
        while self.pending.len() > self.config.parameters.max_pending as usize {
            let Some((_, pending)) = self.pending.pop_first() else {
                return;
            };
            self.stats.forgotten += 1;
            self.with(now, pending.key, |turn| {
                let in_flight = &mut turn.origin.in_flight[pending.arm];
                *in_flight = in_flight.saturating_sub(1);
                if let Some(bandit) = turn.origin.bandit.as_mut().filter(|_| pending.is_probe) {
                    bandit.probe_ended(pending.arm);
                }
                Some(())
            });
        }
    }
}
