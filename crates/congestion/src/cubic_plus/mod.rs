//! Cubic+ (*Computer Science* 2025, 52(8):335-342): CUBIC that first asks what a loss means, and
//! drains long queues before they overflow.
//!
//! Growth, slow start, ECN and every reaction that the paper leaves alone are the CUBIC below; here
//! is only the decision whether to reduce the window and by how much. The paper leaves thresholds
//! open and contradicts itself in places; [`CubicPlusConfig`] has each reading as a parameter.
//!
//! On a loss event (one per recovery period), after the first of the path:
//!
//! 1. `dRTT > T_high`: the buffer is deep and full; reduce by `newbeta`.
//! 2. Otherwise, loss ratio below `L`: random; keep the window.
//! 3. Otherwise, `dRTT < T_low`: the buffer is shallow; reduce at each third event only.
//! 4. Otherwise CUBIC reacts.
//!
//! Without losses and marks, `dRTT > T_high` at the end of a period reduces the window too; after
//! two such drains in a row one is left out.

mod config;
mod delay_signal;
mod drain;
mod full_queue;
mod loss_classifier;
mod mode;

use std::time::Duration;

use swiftwater_tunable::parameters::{live_parameters, set_live};
use swiftwater_tunable::{Parameter, ParameterError};
use swiftwater_units::{ByteCount, Instant};

pub use config::{CubicPlusConfig, DrainRule, LossFilter, RttMode};

use self::delay_signal::DelaySignal;
use self::drain::{Decision, DrainTimer};
use self::full_queue::FullQueue;
use self::loss_classifier::{Events, LossClassifier};
use self::mode::{Mode, Tally};
use crate::controller::{Controller, Env, Pacing, Snapshot};
use crate::cubic::{Cubic, CubicCurve};
use crate::loss_based::{Checkpoint, Curve};
use crate::sample::{AckBatch, EcnBatch, EpisodeId, LossBatch, RttView, SentInfo};

/// Parameters that are read whenever they matter, so that they can be changed while the controller runs.
const LIVE: &[&str] = &[
    "filter",
    "drain",
    "k_low",
    "t_low_min",
    "k_high",
    "t_high_min",
    "t_high_max",
    "l_ratio",
    "newbeta",
    "shallow_n",
    "delta",
    "drain_in_slow_start",
    "hold_growth",
    "drain_restore",
    "drain_relief",
];

/// The Cubic+ controller.
#[derive(Clone, Debug)]
pub struct CubicPlus {
    config: CubicPlusConfig,
    cubic: Cubic,
    delay: DelaySignal,
    losses: LossClassifier,
    drain: DrainTimer,
    full_queue: Option<FullQueue>,
    mode: Mode,
    tally: Tally,
    /// Event counts before the last loss event, should it be refuted.
    before_event: Option<(EpisodeId, Events)>,
    /// The last loss event, if it reduced nothing.
    held: Option<EpisodeId>,
    /// The window before the drains in a row, while nothing else has reduced it since.
    before_drains: Option<Checkpoint<CubicCurve>>,
}

/// What a loss event does to the window.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Reaction {
    Hold,
    Reduce(f64),
}

impl CubicPlus {
    fn new(config: &CubicPlusConfig, env: &Env<'_>) -> Self {
        Self {
            cubic: config.cubic.controller(env),
            delay: DelaySignal::new(config),
            losses: LossClassifier::new(config.a_loss),
            drain: DrainTimer::new(config),
            full_queue: config
                .full_queue
                .then(|| FullQueue::new(config.full_queue_share)),
            mode: Mode::Cubic,
            tally: Tally::default(),
            before_event: None,
            held: None,
            before_drains: None,
            config: *config,
        }
    }

    /// What a loss event means, and so what is to be done.
    fn classify(&mut self) -> (Mode, Reaction) {
        let beta = self.cubic.curve().beta();
        let cubic = (Mode::Cubic, Reaction::Reduce(beta));
        let (first, Some(base)) = (self.losses.first_event(), self.delay.base()) else {
            return cubic;
        };
        // The loss ratio is still unknown, and slow start must end.
        if first {
            return cubic;
        }
        let queue = self.delay.queue();
        if queue > self.config.t_high(base) {
            self.losses.discard_shallow();
            return (Mode::Cubic, Reaction::Reduce(self.config.newbeta));
        }
        let no_queue = queue < self.config.t_low(base);
        if self.config.filter != LossFilter::Off && self.losses.ratio() < self.config.l_ratio {
            let full = self
                .full_queue
                .as_ref()
                .is_some_and(|queue| queue.looks_full(base));
            return match self.config.filter {
                LossFilter::Text if !full => (Mode::RandomHold, Reaction::Hold),
                LossFilter::Algo if !full && no_queue => {
                    let factor = beta.max(1.0 - ratio(queue, base));
                    (Mode::RandomHold, Reaction::Reduce(factor))
                }
                _ => cubic,
            };
        }
        if !no_queue {
            return cubic;
        }
        if self.losses.count_shallow(self.config.shallow_n) {
            (Mode::PeriodicDecrease, Reaction::Reduce(beta))
        } else {
            (Mode::PeriodicHold, Reaction::Hold)
        }
    }

    /// Enters `mode` by a decision.
    fn enter(&mut self, mode: Mode) {
        self.mode = mode;
        self.tally.count(mode);
    }

    /// The window has been reduced at `now`, for whatever reason.
    fn after_reduction(&mut self, now: Instant) {
        self.drain.on_reduction(now);
        if let Some(full_queue) = &mut self.full_queue {
            full_queue.end_stretch();
        }
    }

    /// What a drain multiplies the window by, with a base round-trip time of `base` seconds; `None`
    /// if it isn't to be drained at all.
    fn drain_factor(&self, base: f64) -> Option<f64> {
        let (beta, delta) = (self.cubic.curve().beta(), self.config.delta);
        let queue = self.delay.queue();
        match self.config.drain {
            DrainRule::Off => None,
            DrainRule::Text => Some(beta),
            DrainRule::Algo => Some(beta * delta.max(1.0 - ratio(queue, base))),
            DrainRule::Bdp => Some((1.0 / (1.0 + ratio(queue, base))).max(beta * delta)),
        }
    }

    /// Decides about draining at the end of a period; true if the window was reduced.
    fn check_queue(&mut self, ack: &AckBatch, env: &Env<'_>) -> bool {
        let Some(base) = self.delay.base() else {
            return false;
        };
        let Some(factor) = self.drain_factor(base) else {
            return false;
        };
        if self.cubic.in_slow_start() && !self.config.drain_in_slow_start {
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
                self.before_drains = None;
                if self.mode == Mode::DrainSkip {
                    self.mode = Mode::Cubic;
                }
                false
            }
            Decision::Drain { first } => {
                if first {
                    self.before_drains = Some(self.cubic.checkpoint());
                }
                self.enter(Mode::Drain);
                self.drain.on_drain(factor, queue, base);
                self.cubic.reduce(factor, None, env);
                self.after_reduction(ack.now);
                true
            }
            Decision::Skip { first } => {
                self.enter(Mode::DrainSkip);
                let saved = self.before_drains.take();
                if let Some(saved) = saved.filter(|_| first && self.config.drain_restore) {
                    self.cubic.restore(saved, ack.now);
                }
                false
            }
        }
    }
}

/// `part / whole`, infinite over nothing.
fn ratio(part: f64, whole: f64) -> f64 {
    if whole > 0.0 {
        part / whole
    } else {
        f64::INFINITY
    }
}

impl Controller for CubicPlus {
    fn name(&self) -> &'static str {
        self.config.name
    }

    fn on_sent(&mut self, sent: &SentInfo, env: &mut Env<'_>) {
        if !sent.is_mtu_probe {
            self.losses.on_sent();
        }
        self.cubic.on_sent(sent, env);
    }

    fn on_ack(&mut self, ack: &AckBatch, env: &mut Env<'_>) {
        self.delay.on_ack(ack.now, &ack.rtt);
        if let Some(full_queue) = &mut self.full_queue {
            full_queue.on_ack(ack.now, &ack.rtt);
        }
        self.losses.on_round(ack.round.count);
        let drained = self.check_queue(ack, env);
        let over = match self.mode {
            Mode::Cubic | Mode::DrainSkip => false,
            Mode::Drain => !self.drain.awaits_effect(),
            _ => ack.sent_after_recovery_start,
        };
        if over {
            self.mode = Mode::Cubic;
        }
        // The ACK that leads to a drain grows nothing, like one that reveals a loss.
        let no_recovery = self.config.hold_growth && self.held.is_some();
        let sent_after_recovery_start = (ack.sent_after_recovery_start || no_recovery) && !drained;
        let ack = AckBatch {
            sent_after_recovery_start,
            ..*ack
        };
        self.cubic.on_ack(&ack, env);
    }

    fn on_loss(&mut self, loss: &LossBatch<'_>, env: &mut Env<'_>) {
        self.losses.on_lost(loss.lost_packets.get());
        self.drain.on_congestion();
        if !loss.new_episode {
            self.cubic.on_loss(loss, env);
            return;
        }
        self.before_event = Some((loss.episode, self.losses.events()));
        let (mode, reaction) = self.classify();
        self.enter(mode);
        self.held = (reaction == Reaction::Hold).then_some(loss.episode);
        match reaction {
            Reaction::Hold => {
                self.cubic.end_recovery();
                if let Some(full_queue) = &mut self.full_queue {
                    full_queue.end_stretch();
                }
            }
            Reaction::Reduce(factor) => {
                self.before_drains = None;
                self.cubic.reduce_for_loss(factor, loss, env);
                self.after_reduction(loss.now);
            }
        }
    }

    fn on_ce(&mut self, ce: &EcnBatch, env: &mut Env<'_>) {
        self.drain.on_congestion();
        self.before_event = None;
        // A mark is no guess: within an episode that was held the reaction is still due.
        let held = self.held.take();
        let due = ce.new_episode || held == Some(ce.episode);
        let ce = EcnBatch {
            new_episode: due,
            ..*ce
        };
        self.cubic.on_ce(&ce, env);
        if due {
            self.losses.first_event();
            self.before_drains = None;
            self.enter(Mode::Cubic);
            self.after_reduction(ce.now);
        }
    }

    fn on_spurious(&mut self, episode: EpisodeId, now: Instant, env: &mut Env<'_>) {
        if let Some((_, events)) = self.before_event.take_if(|(of, _)| *of == episode) {
            self.losses.set_events(events);
            self.mode = Mode::Cubic;
        }
        if self.held.take_if(|held| *held == episode).is_some() {
            // Nothing is there to be undone, but the window did not grow either.
            self.cubic.pause(now);
        }
        self.cubic.on_spurious(episode, now, env);
    }

    fn on_persistent_congestion(&mut self, now: Instant, env: &mut Env<'_>) {
        self.cubic.on_persistent_congestion(now, env);
        self.losses.clear();
        self.drain.clear();
        self.drain.on_congestion();
        self.after_reduction(now);
        self.mode = Mode::Cubic;
        self.before_event = None;
        self.held = None;
        self.before_drains = None;
    }

    fn on_idle_restart(&mut self, now: Instant, idle: Duration, env: &mut Env<'_>) {
        self.drain.restart();
        self.cubic.on_idle_restart(now, idle, env);
    }

    fn on_max_datagram_size_change(&mut self, env: &mut Env<'_>) {
        self.cubic.on_max_datagram_size_change(env);
    }

    fn cwnd(&self) -> ByteCount {
        self.cubic.cwnd()
    }

    fn pacing(&self, rtt: &RttView) -> Pacing {
        self.cubic.pacing(rtt)
    }

    fn parameters(&self) -> Vec<Parameter> {
        live_parameters(&self.config, LIVE)
    }

    fn configure(&mut self, settings: &str) -> Result<(), ParameterError> {
        set_live(&mut self.config, LIVE, settings)
    }

    fn snapshot(&self) -> Snapshot {
        let mut snapshot = self.cubic.snapshot();
        if let Some(name) = self.mode.name() {
            snapshot.state = name;
        }
        let base = self.delay.base().unwrap_or_default();
        snapshot.details.extend([
            ("rtt_base", base),
            ("drtt", self.delay.queue()),
            ("loss_ratio", self.losses.ratio()),
            ("shallow_count", f64::from(self.losses.events().shallow)),
            ("drains_in_a_row", f64::from(self.drain.drains())),
        ]);
        snapshot.details.extend(self.tally.details());
        snapshot
    }

    fn clone_box(&self) -> Box<dyn Controller> {
        Box::new(self.clone())
    }
}
