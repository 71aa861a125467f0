//! Draining the queue (section 3.3), and what comes of it.

use std::time::Duration;

use swiftwater_units::Instant;

use super::competition::Outcome;
use super::config::DrainRule;
use super::drain::Decision;
use super::mode::Mode;
use super::{CubicPlus, ratio};
use crate::controller::Env;
use crate::loss_based::Curve as _;
use crate::sample::AckBatch;

impl CubicPlus {
    /// What a drain multiplies the window by, with a base round-trip time of `base` seconds; `None`
    /// if it isn't to be drained at all.
    fn drain_factor(&self, base: f64) -> Option<f64> {
        let (beta, delta) = (self.cubic.curve().beta(), self.config.delta);
        let queue = self.drain.queue_to_drain(self.delay.queue());
        match self.config.drain {
            DrainRule::Off => None,
            DrainRule::Text => Some(beta),
            DrainRule::Algo => Some(beta * delta.max(1.0 - ratio(queue, base))),
            DrainRule::Bdp if self.competition.is_some() => Some(1.0 / (1.0 + ratio(queue, base))),
            DrainRule::Bdp => Some((1.0 / (1.0 + ratio(queue, base))).max(beta * delta)),
        }
    }

    /// True while drains are left out because others fill the queue; takes drains back that didn't
    /// empty it.
    fn is_competitive(&mut self, ack: &AckBatch, base: f64) -> bool {
        let srtt = ack.rtt.known_smoothed().unwrap_or_default();
        let nearly_empty = self.delay.newest() <= self.config.nearly_empty(base);
        let Some(competition) = &mut self.competition else {
            return false;
        };
        let base = Duration::try_from_secs_f64(base).unwrap_or_default();
        match competition.observe(ack.now, [srtt, base], nearly_empty) {
            Outcome::None => {}
            Outcome::Emptied => self.before_drains = None,
            Outcome::Futile => {
                if let Some(saved) = self.before_drains.take() {
                    self.cubic.restore(saved, ack.now);
                }
                self.mode = Mode::DrainSkip;
                self.tally.count(Mode::DrainSkip);
            }
        }
        competition.is_competitive()
    }

    /// Decides about draining at the end of a period; true if the window was reduced.
    pub(super) fn check_queue(&mut self, ack: &AckBatch, env: &Env<'_>) -> bool {
        let Some(base) = self.delay.base() else {
            return false;
        };
        if self.config.drain == DrainRule::Off {
            return false;
        }
        let barred = self.cubic.in_slow_start() && !self.config.drain_in_slow_start;
        if barred || self.is_young || self.is_competitive(ack, base) {
            self.drain.restart();
            return false;
        }
        let queue = if self.config.drain_relief > 0.0 {
            self.delay.certain()
        } else {
            self.delay.queue()
        };
        match self
            .drain
            .on_ack(ack, queue, queue > self.config.t_high(base))
        {
            Decision::None => false,
            Decision::Calm => {
                if self.competition.is_none() {
                    self.before_drains = None;
                }
                if self.mode == Mode::DrainSkip {
                    self.mode = Mode::Cubic;
                }
                false
            }
            Decision::Drain { first } => {
                let Some(factor) = self.drain_factor(base) else {
                    return false;
                };
                let first = match &mut self.competition {
                    Some(competition) => competition.on_drain(ack.now),
                    None => first,
                };
                if first {
                    self.before_drains = Some(self.cubic.checkpoint());
                }
                self.enter(Mode::Drain);
                self.drain.on_drain(factor, queue, base);
                self.cubic.reduce(factor, None, env);
                if self.config.drain_plateau {
                    self.cubic.begin_stage();
                }
                self.after_reduction(ack.now);
                if let Some(spare) = &mut self.spare {
                    spare.restart();
                }
                true
            }
            Decision::Skip { first } => {
                self.enter(Mode::DrainSkip);
                if self.competition.is_none() {
                    let saved = self.before_drains.take();
                    if let Some(saved) = saved.filter(|_| first && self.config.drain_restore) {
                        self.cubic.restore(saved, ack.now);
                    }
                }
                false
            }
        }
    }

    /// Congestion came before drains had emptied the queue: the reaction is that of a flow that
    /// had not drained.
    pub(super) fn abandon_test(&mut self, now: Instant) {
        let saved = self.before_drains.take();
        if let Some(competition) = &mut self.competition {
            competition.abandon_test();
            if let Some(saved) = saved {
                self.cubic.restore(saved, now);
            }
        }
    }
}
