//! One step of the state machine for one origin on one network: what it may touch, and what several steps
//! share.

use std::collections::VecDeque;

use rand_chacha::ChaCha8Rng;
use swiftwater_units::Instant;

use super::config::Config;
use super::origin::{OriginState, Shared};
use crate::arm::Transport;
use crate::blocked::Evidence;
use crate::decision::Reason;
use crate::event::{Event, EventKind, SwitchCause};
use crate::key::{NetworkId, OriginHash};
use crate::model::Models;
use crate::parameters::Parameters;
use crate::rollback::Watch;
use crate::stats::Stats;

/// Events that wait to be read; older ones are dropped.
const MAX_EVENTS: usize = 256;

/// Network and origin.
pub(super) type Key = (NetworkId, OriginHash);

/// One step.
pub(super) struct Turn<'a> {
    pub(super) now: Instant,
    pub(super) key: Key,
    pub(super) config: &'a Config,
    pub(super) models: &'a Models,
    pub(super) random: &'a mut ChaCha8Rng,
    pub(super) stats: &'a mut Stats,
    pub(super) events: &'a mut VecDeque<Event>,
    pub(super) shared: &'a mut Shared,
    pub(super) origin: &'a mut OriginState,
}

impl Turn<'_> {
    pub(super) fn parameters(&self) -> &Parameters {
        &self.config.parameters
    }

    pub(super) fn transport(&self, arm: usize) -> Transport {
        self.config.arms[arm].transport()
    }

    pub(super) fn is_quic(&self, arm: usize) -> bool {
        self.transport(arm) == Transport::Quic
    }

    /// The arm needs QUIC, which must not be used now.
    pub(super) fn is_blocked(&self, arm: usize) -> bool {
        let (network, origin) = (&self.shared.block, &self.origin.block);
        self.is_quic(arm) && (network.is_active(self.now) || origin.is_active(self.now))
    }

    pub(super) fn tell(&mut self, kind: EventKind) {
        let event = Event {
            network: self.key.0,
            origin: self.key.1,
            kind,
        };
        tracing::debug!(network = %event.network, origin = %event.origin, "{event}");
        if self.events.len() >= MAX_EVENTS {
            self.events.pop_front();
        }
        self.events.push_back(event);
    }

    /// Selects another arm.
    pub(super) fn switch(&mut self, to: usize, cause: SwitchCause) {
        let from = self.origin.current;
        let experimented = cause == SwitchCause::Experiment;
        self.origin.why = match cause {
            SwitchCause::Experiment => Reason::WonExperiment,
            SwitchCause::Rollback => Reason::RolledBack,
            SwitchCause::Failures => Reason::FailedOver,
            SwitchCause::ConnectedFirst => Reason::ConnectedFirst,
            _ => Reason::Kept,
        };
        if from == to {
            return;
        }
        let watches = experimented || cause == SwitchCause::Model;
        self.origin.watch = (watches && self.config.strategy.rolls_back()).then(|| {
            let window = &self.origin.windows[from];
            Watch::new(from, to, self.now, window, self.parameters())
        });
        self.origin.current = to;
        self.origin
            .recheck
            .compared(self.now, true, &self.config.parameters);
        self.origin.loser = Some((from, self.now + self.parameters().warm));
        self.origin.score = None;
        if !experimented {
            // The other model's scores are not comparable.
            self.origin.monitor.explored(self.now);
        }
        match cause {
            SwitchCause::Rollback => self.stats.rollbacks += 1,
            SwitchCause::Failures | SwitchCause::Blocked => self.stats.failovers += 1,
            _ => self.stats.switches += 1,
        }
        let arms = &self.config.arms;
        let (from, to) = (arms[from].clone(), arms[to].clone());
        self.tell(EventKind::Switched { from, to, cause });
    }

    /// QUIC failed: it is not used for a while.
    pub(super) fn block(&mut self, evidence: Evidence) {
        let parameters = &self.config.parameters;
        let (now, origin) = (self.now, self.key.1);
        let least = parameters.block_origins as usize;
        if evidence == Evidence::Failed && self.shared.failing.len() < least {
            self.shared.failing.insert(origin);
        }
        let everywhere = self.shared.failing.len() >= least;
        let of_origin = self.origin.block.fail(now, evidence, parameters);
        let of_network = everywhere && self.shared.block.fail(now, evidence, parameters);
        if !of_origin && !of_network {
            return;
        }
        self.stats.blocks += 1;
        let ends = [self.origin.block.until(), self.shared.block.until()];
        let end = ends.into_iter().flatten().max().unwrap_or(now);
        self.tell(EventKind::Blocked {
            on_network: of_network,
            seconds: end.saturating_since(now).as_secs_f64(),
        });
    }

    /// QUIC works.
    pub(super) fn unblock(&mut self) {
        self.origin.block.clear();
        self.shared.block.clear();
        self.shared.failing.clear();
    }
}
