//! The reinjection controller (AutoRec, section V-B): decides when a copy leaves.
//!
//! In off-mode, the data range without a copy for longest gets a copy whenever the transport has room; beside new data, every
//! data range without a copy for `T_thres`. A copy asked for counts once it has left; until then its
//! data range asks for no other.

use std::time::Duration;

use swiftwater_quic::policy::{
    ConfigureError, Hints, Occasion, OutstandingRange, PacketOutcome, PathView, Reinjection,
    Reinjector, ReinjectorReport, Rejection, RejectionReason, Repair, RepairCause,
};
use swiftwater_tunable::Tunable;
use swiftwater_units::{ByteCount, Instant};

use super::adapter::RedundancyAdapter;
use super::config::{AutoRecConfig, Watch};
use super::queue::ReinjectionQueue;
use super::spending::Spending;
use crate::congestion_guard::{CongestionGuard, CopyLimit};
use crate::reinjector_factory::ReinjectorFactory;

/// AutoRec on a connection.
#[derive(Clone, Debug)]
pub struct AutoRec {
    config: AutoRecConfig,
    adapter: RedundancyAdapter,
    queue: ReinjectionQueue,
    spending: Spending,
    /// Until when the head must not leave although there was room for it.
    held_until: Option<Instant>,
    guard: CongestionGuard,
    /// Until when copies wait because the path was congested.
    paused_until: Option<Instant>,
}

impl AutoRec {
    /// A re-injector for a new connection.
    pub fn new(config: AutoRecConfig) -> Self {
        Self {
            adapter: RedundancyAdapter::new(&config),
            queue: ReinjectionQueue::new(),
            spending: Spending::default(),
            held_until: None,
            guard: CongestionGuard::new(config.guard),
            paused_until: None,
            config,
        }
    }

    /// The reinjection queue.
    pub fn queue(&self) -> &ReinjectionQueue {
        &self.queue
    }

    fn level(&self) -> u32 {
        self.adapter.decision().level
    }

    fn silence_threshold(&self) -> Duration {
        self.adapter.decision().silence_threshold()
    }

    /// There is room: the turn of the first in line, unless its last copy left just now, or that of the first
    /// that may have another copy during congestion.
    fn use_spare_room(&mut self, now: Instant, paths: &[PathView], out: &mut Vec<Reinjection>) {
        self.held_until = None;
        let Some((_, last_sent_at)) = self.queue.head() else {
            return;
        };
        let gap = self.config.min_gap.at(self.silence_threshold());
        if last_sent_at + gap > now {
            self.held_until = Some(last_sent_at + gap);
            return;
        }
        let taken = match self.guard.limit(paths) {
            CopyLimit::NONE => self.queue.take_head(),
            limit => self.queue.take_permitted(now - gap, limit),
        };
        match taken {
            Some(range) => out.push(range.reinjection()),
            None => self.held_until = Some(self.guard.retry_at(now, paths)),
        }
    }

    /// The deadline has come: all without a copy for too long, as far as the guard permits. Whatever was held
    /// may leave when the transport asks again.
    fn use_timer(&mut self, now: Instant, paths: &[PathView], out: &mut Vec<Reinjection>) {
        self.paused_until = None;
        if self.held_until.is_some_and(|until| until <= now) {
            self.held_until = None;
        }
        if !self.config.opportunistic {
            return;
        }
        let threshold = self.silence_threshold();
        let limit = self.guard.limit(paths);
        while let Some((_, last_sent_at)) = self.queue.head()
            && last_sent_at + threshold <= now
        {
            let Some(range) = self.queue.take_permitted(now - threshold, limit) else {
                self.paused_until = Some(self.guard.retry_at(now, paths));
                return;
            };
            out.push(range.reinjection());
        }
    }
}

impl Reinjector for AutoRec {
    fn can_use_spare_room(&self) -> bool {
        self.config.off_mode && !self.queue.is_empty()
    }

    fn is_asked_on(&self, _: Occasion) -> bool {
        false
    }

    fn live_copies_defer_retransmission(&self) -> bool {
        self.config.watch == Watch::Newest
    }

    fn on_unsent_data(&mut self, _: Instant, waiting: ByteCount) {
        self.guard.on_unsent_data(waiting);
    }

    fn on_outcomes(&mut self, now: Instant, outcomes: &[PacketOutcome], path: &PathView) {
        let decided = self
            .adapter
            .on_outcomes(now, outcomes, path.smoothed_rtt, &self.config);
        if decided {
            self.queue.set_level(self.level());
        }
    }

    fn on_repair(&mut self, now: Instant, event: &Repair) {
        match *event {
            Repair::Retransmitted {
                range,
                first_sent_at,
                round,
                cause,
                ..
            } => {
                if cause == RepairCause::Probe && !self.config.probes {
                    return;
                }
                if round == 1 {
                    self.adapter
                        .on_detection(now.saturating_since(first_sent_at));
                }
                self.queue.on_retransmitted(&range, now, self.level());
            }
            Repair::ReplicaSent { range } => {
                let size = ByteCount::new(range.len.into());
                self.spending.on_replica(now, size);
                self.queue.on_replica_sent(&range, now, self.level());
            }
            Repair::Split { range, at } => self.queue.split(&range, at),
            Repair::Recovered { range, .. } | Repair::Abandoned { range } => {
                self.queue.remove(&range);
            }
        }
        if self.queue.is_empty() {
            self.held_until = None;
        }
    }

    fn on_rejected(&mut self, now: Instant, rejections: &[Rejection]) {
        for rejection in rejections {
            let again = rejection.reason != RejectionReason::RangeGone;
            let range = rejection.copy.data_range();
            self.queue.on_rejected(&range, now, self.level(), again);
        }
    }

    fn on_new_data(&mut self, now: Instant, size: ByteCount) {
        self.spending.on_new(now, size);
        // On-mode: nothing waits for room.
        self.held_until = None;
    }

    fn reinject(
        &mut self,
        now: Instant,
        occasion: Occasion,
        _outstanding: &mut dyn Iterator<Item = OutstandingRange>,
        paths: &[PathView],
        _hints: &Hints,
        out: &mut Vec<Reinjection>,
    ) {
        match occasion {
            Occasion::SpareRoom if self.config.off_mode => self.use_spare_room(now, paths, out),
            Occasion::Timer => self.use_timer(now, paths, out),
            _ => {}
        }
    }

    fn next_deadline(&self) -> Option<Instant> {
        let silent = self
            .queue
            .head()
            .filter(|_| self.config.opportunistic)
            .map(|(_, last_sent_at)| last_sent_at + self.silence_threshold())
            .map(|at| self.paused_until.map_or(at, |until| until.max(at)));
        match (silent, self.held_until) {
            (Some(silent), Some(held)) => Some(silent.min(held)),
            (silent, held) => silent.or(held),
        }
    }

    fn configure(&mut self, settings: &str) -> Result<(), ConfigureError> {
        let mut config = self.config.clone();
        config
            .set_all(settings)
            .map_err(|error| ConfigureError(error.to_string()))?;
        self.config = config;
        self.guard.configure(self.config.guard);
        self.adapter.apply(&self.config);
        self.queue.set_level(self.level());
        self.held_until = None;
        self.paused_until = None;
        Ok(())
    }

    fn report(&self) -> ReinjectorReport {
        let decision = self.adapter.decision();
        let beta = self.config.tolerances.beta;
        ReinjectorReport {
            redundancy_level: decision.level,
            loss_rate: decision.loss_rate,
            detection_time: Some(decision.detection_time),
            silence_threshold: Some(decision.silence_threshold()),
            queued: self.queue.len() + self.queue.requested(),
            budget_used: self
                .spending
                .cost()
                .filter(|_| beta > 0.0)
                .map(|cost| cost / beta),
            decisions: self.adapter.decisions(),
        }
    }
}

impl ReinjectorFactory for AutoRecConfig {
    fn reinjector(&self) -> Box<dyn Reinjector> {
        Box::new(AutoRec::new(self.clone()))
    }
}
