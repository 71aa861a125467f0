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
//!
//! Extensions that are not in the paper, each with a switch and in a file of its own: `full_queue`
//! and `recurrence` distinguish overflow from random loss in shallow buffers, `competition` ends drains
//! beside flows that fill buffers, `spare_capacity` grows into capacity that others have left.

mod classification;
mod competition;
mod config;
mod delay_signal;
mod drain;
mod draining;
mod full_queue;
mod loss_classifier;
mod mode;
mod recurrence;
mod spare_capacity;

use std::time::Duration;

use swiftwater_tunable::parameters::{live_parameters, set_live};
use swiftwater_tunable::{Parameter, ParameterError};
use swiftwater_units::{ByteCount, Instant};

pub use config::{CubicPlusConfig, DrainRule, LossFilter, RttMode};

use self::classification::Reaction;
use self::competition::Competition;
use self::delay_signal::DelaySignal;
use self::drain::DrainTimer;
use self::full_queue::FullQueue;
use self::loss_classifier::{Events, LossClassifier};
use self::mode::{Mode, Tally};
use self::recurrence::Recurrence;
use self::spare_capacity::SpareCapacity;
use crate::controller::{Controller, Env, Pacing, Snapshot};
use crate::cubic::{Cubic, CubicCurve};
use crate::loss_based::Checkpoint;
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
    "drain_plateau",
    "recurrence_packets",
    "shallow_beta",
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
    recurrence: Option<Recurrence>,
    spare: Option<SpareCapacity>,
    competition: Option<Competition>,
    /// The path has had fewer rounds than `drain_age`, so that nothing is drained yet.
    is_young: bool,
    mode: Mode,
    tally: Tally,
    /// Event counts before the last loss event, should it be refuted.
    before_event: Option<(EpisodeId, Events)>,
    /// The last loss event, if it reduced nothing.
    held: Option<EpisodeId>,
    /// The window before the drains in a row, while nothing else has reduced it since.
    before_drains: Option<Checkpoint<CubicCurve>>,
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
            recurrence: config.recurrence.then(Recurrence::default),
            spare: Self::spare(config),
            competition: Self::competition(config),
            is_young: config.drain_age > 0,
            mode: Mode::Cubic,
            tally: Tally::default(),
            before_event: None,
            held: None,
            before_drains: None,
            config: *config,
        }
    }

    fn spare(config: &CubicPlusConfig) -> Option<SpareCapacity> {
        let on = config.spare_gain > 0.0;
        on.then(|| SpareCapacity::new(config.spare_gain, config.spare_rounds))
    }

    fn competition(config: &CubicPlusConfig) -> Option<Competition> {
        let on = config.compete_rtts > 0.0;
        on.then(|| Competition::new(config.compete_rtts, config.drain_backoff))
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

    /// The window is about to be reduced because of congestion.
    fn note_congestion(&mut self) {
        if let Some(spare) = &mut self.spare {
            spare.on_congestion(self.cubic.cwnd());
        }
    }

    /// Grows into capacity that others have left.
    fn grow_into_spare(&mut self, ack: &AckBatch) {
        let Some(base) = self.delay.base() else {
            return;
        };
        let queue = self.delay.newest() > CubicPlusConfig::no_spare(base);
        let Some(spare) = &mut self.spare else {
            return;
        };
        spare.on_ack(ack.round.count, queue, self.cubic.cwnd());
        if ack.may_grow() && !self.cubic.in_slow_start() {
            self.cubic.grow_ahead(spare.growth(ack.acked_bytes));
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
            if let Some(recurrence) = &mut self.recurrence {
                recurrence.on_sent(sent.inflight_before + sent.bytes);
            }
        }
        self.cubic.on_sent(sent, env);
    }

    fn on_ack(&mut self, ack: &AckBatch, env: &mut Env<'_>) {
        self.delay.on_ack(ack.now, &ack.rtt);
        if let Some(full_queue) = &mut self.full_queue {
            full_queue.on_ack(ack.now, &ack.rtt);
        }
        self.losses.on_round(ack.round.count);
        self.is_young &= ack.round.count < u64::from(self.config.drain_age);
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
        if !drained {
            self.grow_into_spare(&ack);
        }
    }

    fn on_loss(&mut self, loss: &LossBatch<'_>, env: &mut Env<'_>) {
        self.losses.on_lost(loss.lost_packets.get());
        if let Some(recurrence) = &mut self.recurrence {
            recurrence.on_lost(loss.packets);
        }
        self.drain.on_congestion();
        if !loss.new_episode {
            self.cubic.on_loss(loss, env);
            return;
        }
        self.before_event = Some((loss.episode, self.losses.events()));
        let flight = loss
            .packets
            .first()
            .map_or(loss.prior_inflight, |packet| packet.tx_in_flight);
        let ratio = self.losses.ratio();
        let size = env.max_datagram_size;
        let packets = flight.get() as f64 / size.get().max(1) as f64;
        let few = packets < f64::from(self.config.recurrence_packets);
        let recurs = (self.recurrence).is_some_and(|losses| few || losses.overflows(flight, ratio));
        let (mode, reaction) = self.classify(recurs, packets);
        self.enter(mode);
        self.held = (reaction == Reaction::Hold).then_some(loss.episode);
        if let Some(spare) = &mut self.spare {
            spare.restart();
        }
        match reaction {
            Reaction::Hold => {
                self.cubic.end_recovery();
                if let Some(full_queue) = &mut self.full_queue {
                    full_queue.end_stretch();
                }
            }
            Reaction::Reduce(factor) => {
                self.abandon_test(loss.now);
                self.note_congestion();
                self.cubic.reduce_for_loss(factor, loss, env);
                self.after_reduction(loss.now);
                if let Some(recurrence) = &mut self.recurrence {
                    recurrence.on_reduction(flight);
                }
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
        if due {
            self.abandon_test(ce.now);
            self.note_congestion();
        }
        self.cubic.on_ce(&ce, env);
        if due {
            self.losses.first_event();
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
        self.competition = Self::competition(&self.config);
        self.spare = Self::spare(&self.config);
    }

    fn on_idle_restart(&mut self, now: Instant, idle: Duration, env: &mut Env<'_>) {
        self.drain.restart();
        self.before_drains = None;
        if let Some(competition) = &mut self.competition {
            competition.abandon_test();
        }
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

    fn set_growth_scale(&mut self, scale: f64) {
        self.cubic.set_growth_scale(scale);
    }

    fn can_be_coupled(&self) -> bool {
        true
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
